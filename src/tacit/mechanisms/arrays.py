"""Private input as arrays of floats. What is refused is refused for its shape or kind, and never shown."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput


def real_array(raw: ArrayLike, what: str) -> NDArray[np.float64]:
    """``raw`` as float64; complex numbers, text and ragged lists are refused."""
    try:
        values = np.asarray(raw)
        if values.dtype.kind not in "biufO":
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{what} must be an array of real numbers.") from None


def real_table(raw: Any, what: str) -> sparse.csr_array:
    """``raw``, dense or sparse, as a sparse float64 table in which every cell stands once. The caller's table stays as it is."""
    if not sparse.issparse(raw):
        dense = real_array(raw, what)
        if dense.ndim != 2:
            raise InvalidInput(f"{what} must be a table: one row for each user.")
        return sparse.csr_array(dense)
    if raw.ndim != 2 or raw.dtype.kind not in "biuf":
        raise InvalidInput(f"{what} must be a table of real numbers: one row for each user.")
    table = sparse.csr_array(raw).astype(np.float64)  # a copy
    table.sum_duplicates()
    return table
