"""Private input as arrays of floats. What is refused is refused for its shape or kind, and never shown."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput

# cells of these types become floats of the same value in whatever company; all others are read one by one
PLAIN_NUMBERS = frozenset(
    {bool, int, float, np.bool_, np.float16, np.float32, np.float64}
    | {np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
)


@np.errstate(all="ignore")  # a wider float beyond float64 becomes infinite, or 0
def real_array(raw: ArrayLike, what: str) -> NDArray[np.float64]:
    """``raw`` as float64; complex numbers, text and ragged lists are refused. What a float cannot hold is infinite."""
    values = _array(raw)
    if values is not None and values.dtype.kind in "biuf":
        return np.array(values, dtype=np.float64)  # a copy
    if values is not None and values.dtype.kind == "O":
        cells = [_wide(cell) for cell in values.flat]
        if None not in cells:
            return np.array(cells, dtype=np.float64).reshape(values.shape)
    raise InvalidInput(f"{what} must be an array of real numbers.")


@np.errstate(all="ignore")
def real_table(raw: Any, what: str, columns: int | None = None) -> sparse.csr_array:
    """``raw``, dense or sparse, as a sparse float64 table in which every cell stands once. The caller's table stays as it is.

    Only its shape and type can be refused, which the caller's program decides: an array of text or of complex numbers, rows of
    different lengths. A single cell of a list, or of an array of objects, that is no number becomes NaN, because refusing the
    table for it would be an answer about one user. Such cells are read one by one: numpy would look for a type that fits all of
    them, and one text would turn other users' numbers into text. A list without users is a table of ``columns``.
    """
    if sparse.issparse(raw):
        if raw.ndim != 2 or raw.dtype.kind not in "biuf":
            raise InvalidInput(f"{what} must be a table of real numbers: one row for each user.")
        if raw.format == "csr":
            table = sparse.csr_array(raw).astype(np.float64)  # a copy
            if table.has_canonical_format:
                return table
        cells = raw.tocoo()  # as they are stored, in the order of each row
        stored = np.flatnonzero(cells.data != 0) if raw.format == "bsr" else slice(None)  # a block has zeros of others
        return summed(cells.row[stored], cells.col[stored], cells.data[stored].astype(np.float64), raw.shape)
    if not hasattr(raw, "__array__"):
        return sparse.csr_array(_from_lists(raw, what, columns))
    dense = np.asarray(raw)
    if dense.shape == (0,) and columns is not None:
        dense = np.zeros((0, columns))
    if dense.ndim != 2:
        raise InvalidInput(f"{what} must be a table: one row for each user.")
    if dense.dtype.kind == "O":
        dense = np.array([[real_cell(cell) for cell in row] for row in dense], dtype=np.float64).reshape(dense.shape)
    return sparse.csr_array(real_array(dense, what))


def summed(row: NDArray[Any], column: NDArray[Any], value: NDArray[Any], shape: tuple[int, int]) -> sparse.csr_array:
    """A sparse table in which every cell stands once; numbers of the same cell are added up in the order in which they are given.

    scipy adds them up in an order that depends on other rows: it sorts all of them, equal cells in any order, if one is not sorted.
    The sum of floats would then tell of those rows.
    """
    table = sparse.coo_array((value, (row, column)), shape=shape).tocsr()
    if table.nnz == value.size:  # no cell is named twice
        return table
    order = np.lexsort((column, row))  # equal cells stay in order
    row, column, value = row[order], column[order], value[order]
    first = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(column) != 0)))
    table.data = np.add.reduceat(value, first)  # the same cells in the same order
    return table


def _from_lists(raw: Any, what: str, columns: int | None) -> NDArray[np.float64]:
    users = _cells(raw)
    if users is not None and not users and columns is not None:
        return np.zeros((0, columns))
    rows = [cells for cells in map(_cells, users or []) if cells is not None]
    if not users or len(rows) < len(users) or len({len(row) for row in rows}) > 1:
        raise InvalidInput(f"{what} must be a table: one row for each user, all of one length.")
    try:
        if not all(PLAIN_NUMBERS.issuperset(map(type, row)) for row in rows):
            raise OverflowError
        dense = np.array(rows, dtype=np.float64)
    except OverflowError:  # a whole number beyond floats, or a cell of another type
        dense = np.array([[real_cell(cell) for cell in row] for row in rows], dtype=np.float64)
    return dense.reshape(len(rows), len(rows[0]))


def _cells(row: Any) -> list[Any] | None:
    """What stands in a list or an array, one by one; None if it is neither."""
    try:
        if isinstance(row, str | bytes | bytearray | memoryview):
            return None
        return list(row) if isinstance(row, Sequence) or (hasattr(row, "__array__") and np.ndim(row) > 0) else None
    except Exception:  # of whatever class, and whatever it says
        return None


def _array(raw: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(raw)
    except Exception:  # of whatever class: it may hold a number of the input
        return None


def _wide(cell: Any) -> float | None:
    """NaN for nothing, None for what is no number; a whole number beyond floats is infinite: to refuse it would tell of it."""
    try:
        try:
            return math.nan if cell is None else _number(cell)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf
    except Exception:
        return None


def real_cell(cell: Any) -> float:
    """The number in one cell, whatever stands in it; NaN for what is none. It raises nothing and warns of nothing."""
    try:
        return _number(cell)
    except Exception:  # whatever a cell does when it is asked for its value, it is no number
        return math.nan


def _number(cell: Any) -> float:
    if type(cell) in PLAIN_NUMBERS:
        return float(cell)
    if isinstance(cell, np.ndarray) and cell.ndim == 0:
        cell = cell[()]
    # float() takes arrays of one number, durations and, with a warning, complex numbers
    if isinstance(cell, np.ndarray) or (isinstance(cell, np.generic) and cell.dtype.kind not in "biufUS"):
        raise TypeError
    with warnings.catch_warnings():  # a class of somebody's own may warn, which would tell of the cell
        warnings.simplefilter("ignore")
        return float(cell)
