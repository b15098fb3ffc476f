"""An entity's rows over the common catalogue, users x items. Private; the content of a record never raises an error.

What the program decides may raise (the shape of a table, the number of its columns). What a record holds never does, because the
error would reveal it: an unlisted item is left out, a value that is not a number counts as 0, rows of the same user are added up.

The container decides how rows are read, never its content, so that no record changes how others are read:

- a sparse matrix, or anything that numpy takes for an array (ndarray, data frame): a table, one row for each user;
- anything, also lists of lists, if ``users`` names the user of each row: a table;
- Ratings; a mapping {user: {item: value}};
- any other iterable: cells (user, item, value). **So a table in plain lists needs np.array(...) or ``users``.** A cell that is not
  a tuple or list of three is left out silently.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.data.ratings import Ratings
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms.inputs import PLAIN_NUMBERS, real_cell, real_table, sum_cells
from tacit.messages.items import Item

Rows: TypeAlias = (
    ArrayLike
    | sparse.csr_array
    | Ratings
    | Mapping[Any, Mapping[Any, Any]]
    | Iterable[tuple[Any, Any, Any]]
    | Callable[[], Any]
)

T = TypeVar("T")

# comparing ids of these types runs no code of a record
_PLAIN_IDS = frozenset({str, bytes, type(None), np.str_, np.bytes_}) | PLAIN_NUMBERS


class PrivateRows:
    """Rows that are read when they are first needed, after the manifest was checked."""

    def __init__(self, rows: Rows, catalogue: Sequence[Item], users: Sequence[Any] | None = None) -> None:
        self._rows, self._users = rows, users
        self._code = {item: code for code, item in enumerate(catalogue)}
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
        """The users' ids, in the order of the table; the numbers of the rows if a table came without ids."""
        count = self.table().shape[0]
        return list(range(count)) if self._ids is None else self._ids

    def _read(self, rows: Any) -> sparse.csr_array:
        if isinstance(rows, Ratings):
            return self._read_ratings(rows)
        if isinstance(rows, Mapping):
            return self._read_cells((user, *cell) for user, row in rows.items() for cell in _cells(row))
        if self._users is not None or sparse.issparse(rows) or hasattr(rows, "__array__"):
            return self._read_table(rows)
        if isinstance(rows, str | bytes | bytearray | os.PathLike) or not isinstance(rows, Iterable):
            raise InvalidInput(
                "rows must be a table (an array or a sparse matrix), Ratings, {user: {item: value}}, or cells (user, item, value)."
            )
        return self._read_cells(cell for cell in map(_cell, rows) if cell is not None)

    def _read_ratings(self, ratings: Ratings) -> sparse.csr_array:
        codes = np.array([self._code.get(item, -1) for item in ratings.catalogue.ids.tolist()], dtype=np.int64)
        self._ids = ratings.user_ids.tolist()
        return self._sum_cells(ratings.users, codes[ratings.items], ratings.values, ratings.n_users)

    def _read_table(self, rows: Any) -> sparse.csr_array:
        table = real_table(rows, "rows", len(self._code))
        if table.shape[1] != len(self._code):
            raise InvalidInput(f"expected one column for each of the {len(self._code):,} items of the catalogue.")
        if self._users is None:
            return self._clean(table)
        if len(self._users) != table.shape[0]:
            raise InvalidParameter("expected one user's id for each row of the table.")
        codes, self._ids = _codes(self._users)
        coordinates = table.tocoo()
        return self._sum_cells(codes[coordinates.row], coordinates.col, coordinates.data, len(self._ids))

    def _read_cells(self, cells: Iterable[tuple[Any, ...]]) -> sparse.csr_array:
        users, items, values = [], [], []
        for user, item, value in cells:
            users.append(user)
            items.append(_find(self._code, item))
            values.append(real_cell(value))
        codes, self._ids = _codes(users)
        numbers = np.array(values, dtype=np.float64)
        return self._sum_cells(codes, np.array(items, dtype=np.int64), numbers, len(self._ids))

    def _sum_cells(
        self, users: NDArray[Any], items: NDArray[Any], values: NDArray[Any], count: int
    ) -> sparse.csr_array:
        """Adds up cells of the same user and item; values that are not finite count as 0, and -1 is no user and no item."""
        known = (items >= 0) & (users >= 0)
        numbers = np.nan_to_num(values[known].astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        shape = (count, len(self._code))
        with np.errstate(all="ignore"):
            table = sum_cells(users[known], items[known], numbers, shape)
        return self._clean(table)

    def _clean(self, table: sparse.csr_array) -> sparse.csr_array:
        table.data = np.nan_to_num(table.data, nan=0.0, posinf=0.0, neginf=0.0)
        table.eliminate_zeros()
        return table


def _cell(cell: Any) -> tuple[Any, Any, Any] | None:
    """User, item and value; None if it is not a cell. Errors that a record raises when it is read are hidden."""
    try:
        if not isinstance(cell, tuple | list) or len(cell) != 3:
            return None
        user, item, value = cell
    except Exception:
        return None
    return user, item, value


def _cells(row: Any) -> list[tuple[Any, Any]]:
    try:
        return [(item, value) for item, value in row.items()] if isinstance(row, Mapping) else []
    except Exception:
        return []


def _find(codes: Mapping[Any, int], key: Any) -> int:
    """The code of a key; -1 if it is unknown or cannot be looked up."""
    return _guard(key, lambda: codes.get(key, -1), -1)


def _codes(users: Iterable[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """A number for each id, the same for the same id, and -1 for what cannot be an id; and the ids by their numbers.

    Ids of custom classes are kept apart: what they do when they are compared must not take away another user's record.
    """
    plain: dict[Any, int] = {}
    others: dict[Any, int] = {}
    codes: list[int] = []
    ids: list[Any] = []
    for user in users:
        key = _id(user)
        code = _find(plain, key)
        if code < 0 and others:
            code = _find(others, key)
        if code < 0:
            code = _add(plain if type(key) in _PLAIN_IDS else others, key, len(ids))
            ids += [key] if code >= 0 else []
        codes.append(code)
    return np.array(codes, dtype=np.int64), ids


def _add(known: dict[Any, int], key: Any, code: int) -> int:
    return _guard(key, lambda: code if known.setdefault(key, code) == code else -1, -1)


def _id(user: Any) -> Any:
    def hashed() -> Any:
        try:
            hash(user)
        except TypeError:  # a list, or a tuple that holds one
            return str(repr(user))
        return user

    return user if type(user) in _PLAIN_IDS else _guard(user, hashed, user)


def _guard(key: Any, look_up: Callable[[], T], otherwise: T) -> T:
    """Looks up a key. A custom class may raise or warn when it is hashed or compared, which would reveal a record: hide both."""
    try:
        if type(key) in _PLAIN_IDS:
            return look_up()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return look_up()
    except Exception:
        return otherwise
