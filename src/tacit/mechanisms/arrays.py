"""Private input as arrays of floats. What is refused is refused for its shape or kind, and never shown."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput


def real_array(raw: ArrayLike, what: str) -> NDArray[np.float64]:
    """``raw`` as float64; complex numbers, text and ragged lists are refused. What a float cannot hold is infinite."""
    try:
        values = np.asarray(raw)
        if values.dtype == np.float64:
            return np.array(values, dtype=np.float64)  # a copy; nothing to convert, so nothing that could overflow
        if values.dtype.kind not in "biufO":
            raise TypeError
        with np.errstate(all="ignore"):  # a wider float beyond float64 becomes infinite, or 0
            return values.astype(np.float64)
    except OverflowError:  # and so does a whole number: to refuse it would tell of one cell
        return np.array([_wide(cell) for cell in values.flat], dtype=np.float64).reshape(values.shape)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be an array of real numbers.") from None


def real_table(raw: Any, what: str, columns: int | None = None) -> sparse.csr_array:
    """``raw``, dense or sparse, as a sparse float64 table in which every cell stands once. The caller's table stays as it is.

    Only its shape and type can be refused, which the caller's program decides. A single cell that is no number becomes NaN,
    because refusing the table for it would be an answer about one user; a list without users is a table of ``columns``.
    """
    if sparse.issparse(raw):
        if raw.ndim != 2 or raw.dtype.kind not in "biuf":
            raise InvalidInput(f"{what} must be a table of real numbers: one row for each user.")
        with np.errstate(over="ignore"):
            table = sparse.csr_array(raw).astype(np.float64)  # a copy
        table.sum_duplicates()
        return table
    try:
        dense = np.asarray(raw)
    except ValueError:
        raise InvalidInput(f"{what} must be a table: one row for each user, all of one length.") from None
    if dense.shape == (0,) and columns is not None:
        dense = np.zeros((0, columns))
    if dense.ndim != 2:
        raise InvalidInput(f"{what} must be a table: one row for each user.")
    if dense.dtype.kind in "OUS":
        dense = np.array([[_float(cell) for cell in row] for row in dense], dtype=np.float64).reshape(dense.shape)
    return sparse.csr_array(real_array(dense, what))


def _wide(cell: Any) -> float:
    try:
        return math.nan if cell is None else float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _float(cell: object) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
