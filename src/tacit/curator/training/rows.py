"""What is trained on: one row for each rating, or the same rows gathered by user. Arrays in memory or mapped from a file."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidData, InvalidInput, InvalidParameter
from tacit.models.rating_network import TOP

_CHECKED = 1 << 22  # rows looked at in one go


class Rows(NamedTuple):
    """Row i: the user with code ``users[i]`` gave the item with code ``items[i]`` the rating ``values[i]``."""

    users: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    values: NDArray[np.floating[Any]]


class RowsByUser(NamedTuple):
    """User u holds the rows from starts[u] to starts[u + 1] of ``items`` and ``values``."""

    starts: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    values: NDArray[np.floating[Any]]

    @property
    def n_users(self) -> int:
        return len(self.starts) - 1


def check_tables(features: NDArray[Any], flags: NDArray[Any]) -> None:
    """Users x (2 genres) beside items x genres; only shapes and types are looked at."""
    if not _of_kind(flags, "biuf") or flags.ndim != 2 or not flags.size:
        raise InvalidParameter("flags must be a table: one row for each item, one column for each genre.")
    if not _of_kind(features, "iuf") or features.ndim != 2 or features.shape[1] != 2 * flags.shape[1]:
        raise InvalidParameter(
            f"features must be a table: one row for each user, {2 * flags.shape[1]} columns for {flags.shape[1]} genres."
        )


def check_rows(rows: Rows, n_users: int, n_items: int) -> None:
    """Every code has a place in its table and every rating lies from 0 to 5; looked at in parts, so that files stay on disk."""
    if not len(rows.users) == len(rows.items) == len(rows.values) or not len(rows.values):
        raise InvalidData("users, items and values must be columns of one length, with at least one rating.")
    for first in range(0, len(rows.values), _CHECKED):
        users, items, values = (np.asarray(column[first : first + _CHECKED]) for column in rows)
        for what, codes, size in (("user", users, n_users), ("item", items, n_items)):
            if codes.dtype.kind not in "iu" or not 0 <= int(codes.min()) <= int(codes.max()) < size:
                raise InvalidData(f"every {what} code must be a whole number below {size:,}.")
        if not 0.0 <= float(values.min()) <= float(values.max()) <= TOP:  # written so that NaN fails too
            raise InvalidData(f"every rating must lie from 0 to {TOP:g}: rescale them first.")


def check_rows_by_user(rows: RowsByUser, n_users: int) -> None:
    """Columns of one length, cut into the users of the features. What stands in a row is not looked at: see `private`."""
    kinds = zip(rows, ("iu", "iu", "iuf"), strict=True)
    if not all(
        _of_kind(column, kind) and column.ndim == 1 for column, kind in kinds
    ):  # types are public, contents are not
        raise InvalidInput(
            "starts, items and values must be numpy arrays of one axis: whole numbers, whole numbers (item codes), and ratings."
        )
    starts = rows.starts
    if len(rows.items) != len(rows.values) or starts.shape != (n_users + 1,):
        raise InvalidParameter(
            "rows need columns of one length, and starts for each user of the features and one more."
        )
    if starts[0] != 0 or starts[-1] != len(rows.items) or np.any(starts[1:] < starts[:-1]):
        raise InvalidParameter("starts must rise from 0 to the number of rows.")


def _of_kind(column: object, kinds: str) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in kinds
