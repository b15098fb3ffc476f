"""An entity's rows over the common catalogue: users x items, whatever they came as. Private; nothing in them is ever refused.

What the program decides may be refused (the shape of a table, the number of its columns); what a record holds never is: an item
that the catalogue does not list is left out, a value that is no number counts as 0, rows of the same user are added up.

How rows are read is decided by what holds them, never by what is in it, so that no record changes how others are read:

- a sparse matrix, or whatever numpy takes for an array (ndarray, data frame): a table, one row for each user;
- anything, lists of lists too, where ``users`` names the user of each row: a table;
- Ratings; a mapping {user: {item: value}};
- any other iterable: cells (user, item, value). **So a table in plain lists needs np.array(...) or ``users``.** Of cells, what is
  no tuple or list of three is left out, silently.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.data.ratings import Ratings
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms.arrays import real_table
from tacit.messages.private_slates_parts import Item

Rows: TypeAlias = (
    ArrayLike
    | sparse.csr_array
    | Ratings
    | Mapping[Any, Mapping[Any, Any]]
    | Iterable[tuple[Any, Any, Any]]
    | Callable[[], Any]
)


class PrivateRows:
    """Rows that are read when they are first needed: after the manifest has been checked, never before."""

    def __init__(self, rows: Rows, catalogue: Sequence[Item], users: Sequence[Any] | None = None) -> None:
        self._rows, self._users = rows, users
        self._place = {item: place for place, item in enumerate(catalogue)}
        self._table: sparse.csr_array | None = None
        self._ids: list[Any] | None = None

    def __repr__(self) -> str:
        return "PrivateRows()"  # not even how many

    def table(self) -> sparse.csr_array:
        """One row for each user, one column for each item of the catalogue."""
        if self._table is None:
            rows = self._rows() if callable(self._rows) else self._rows
            self._table = self._read(rows)
        return self._table

    def ids(self) -> list[Any]:
        """The users' ids, in the order of the table; their places where a table came without ids."""
        count = self.table().shape[0]
        return list(range(count)) if self._ids is None else self._ids

    def _read(self, rows: Any) -> sparse.csr_array:
        if isinstance(rows, Ratings):
            return self._from_ratings(rows)
        if isinstance(rows, Mapping):
            cells = ((user, item, value) for user, row in rows.items() for item, value in _cells(row))
            return self._from_triples(cells)
        if self._users is not None or sparse.issparse(rows) or hasattr(rows, "__array__"):
            return self._from_table(rows)
        if isinstance(rows, str | bytes | bytearray | os.PathLike) or not isinstance(rows, Iterable):
            raise InvalidInput(
                "rows must be a table (an array or a sparse matrix), Ratings, {user: {item: value}}, or cells (user, item, value)."
            )
        return self._from_triples(one for one in rows if isinstance(one, tuple | list) and len(one) == 3)

    def _from_ratings(self, ratings: Ratings) -> sparse.csr_array:
        places = np.array([self._place.get(item, -1) for item in ratings.catalogue.ids.tolist()], dtype=np.int64)
        self._ids = ratings.user_ids.tolist()
        return self._summed(ratings.users, places[ratings.items], ratings.values, ratings.n_users)

    def _from_table(self, rows: Any) -> sparse.csr_array:
        table = real_table(rows, "rows", len(self._place))
        if table.shape[1] != len(self._place):
            raise InvalidInput(f"expected one column for each of the {len(self._place):,} items of the catalogue.")
        if self._users is None:
            return self._cleaned(table)
        if len(self._users) != table.shape[0]:
            raise InvalidParameter("expected one user's id for each row of the table.")
        codes, self._ids = _codes(self._users)
        coordinates = table.tocoo()
        return self._summed(codes[coordinates.row], coordinates.col, coordinates.data, len(self._ids))

    def _from_triples(self, cells: Iterable[Sequence[Any]]) -> sparse.csr_array:
        users, places, values = [], [], []
        for user, item, value in cells:
            users.append(user)
            places.append(_found(self._place, item))
            values.append(_number(value))
        codes, self._ids = _codes(users)
        numbers = np.array(values, dtype=np.float64)
        return self._summed(codes, np.array(places, dtype=np.int64), numbers, len(self._ids))

    def _summed(self, users: NDArray[Any], places: NDArray[Any], values: NDArray[Any], count: int) -> sparse.csr_array:
        """Cells of the same user and item are added up, once what is no finite number has become 0."""
        known = places >= 0
        numbers = np.nan_to_num(values[known].astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        shape = (count, len(self._place))
        with np.errstate(all="ignore"):
            table = sparse.coo_array((numbers, (users[known], places[known])), shape=shape).tocsr()
            table.sum_duplicates()
        return self._cleaned(table)

    def _cleaned(self, table: sparse.csr_array) -> sparse.csr_array:
        table.data = np.nan_to_num(table.data, nan=0.0, posinf=0.0, neginf=0.0)
        table.eliminate_zeros()
        return table


def _cells(row: Any) -> Iterable[tuple[Any, Any]]:
    return row.items() if isinstance(row, Mapping) else ()


def _found(places: Mapping[Any, int], item: Any) -> int:
    try:
        return places.get(item, -1)
    except TypeError:  # what cannot be looked up is no item
        return -1


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _codes(users: Iterable[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """A number for each id, the same for the same id; and the ids by their numbers."""
    known: dict[Any, int] = {}
    codes = [known.setdefault(_id(user), len(known)) for user in users]
    return np.array(codes, dtype=np.int64), list(known)


def _id(user: Any) -> Any:
    try:
        hash(user)
    except TypeError:  # a list, or a tuple that holds one
        return repr(user)
    return user
