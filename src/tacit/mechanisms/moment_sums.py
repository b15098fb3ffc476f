"""The exact first and second moments of users' unit rows, in whole numbers of 2^-20: what a moment share adds its noise to.

Every user's numbers are found from her row alone and rounded down, so that their squares add up to at most 2^40 (popularity) and
2^39 (Gram vector), exactly. Whole numbers add up to the same sum in any order, so one user moves it by her own numbers.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput
from tacit.mechanisms.arrays import real_table
from tacit.mechanisms.grid import whole_sums
from tacit.models.moments import STEPS, triangle

_ROWS, _COLUMNS = 1 << 14, 128  # of a dense table, and of the matrix, at a time


def popularity_sums(rows: ArrayLike | sparse.csr_array, items: int) -> NDArray[np.int64]:
    """The sum over users of x / |x| in steps. Private."""
    table = marked(rows, items)
    sizes = np.diff(table.indptr)
    weight, _, _ = row_weights(sizes)
    return whole_sums(np.repeat(weight, sizes), table.indices, items)


def gram_sums(rows: ArrayLike | sparse.csr_array, items: int, head: Sequence[int]) -> NDArray[np.int64]:
    """The sum over users of the vector (w_i w_i / sqrt 2; w_i w_j for i < j), w = x / |x| on the head, in steps. Private."""
    table = marked(rows, items)[:, np.array(head)]
    sizes = np.diff(table.indptr)
    _, pair, single = row_weights(sizes)
    vector = np.empty(triangle(len(head)), dtype=np.int64)
    vector[: len(head)] = whole_sums(np.repeat(single, sizes), table.indices, len(head))
    weighed = sparse.csr_array((np.repeat(pair, sizes), table.indices, table.indptr), shape=table.shape)
    filled = len(head)
    for above in _above_diagonal(table, weighed):
        vector[filled : filled + above.size] = above
        filled += above.size
    return vector


def row_weights(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of unit rows with so many items: the whole numbers nearest below 2^20 / sqrt c, 2^20 / c and 2^20 / (c sqrt 2); 0 for none.

    In whole numbers all the way. Rounded down, c squares of the first add up to at most 2^40, and c squares of the third with
    c (c - 1) / 2 squares of the second to at most 2^39.
    """
    counts, place = np.unique(sizes, return_inverse=True)
    rows = [
        (math.isqrt(STEPS**2 // c), STEPS // c, math.isqrt(STEPS**2 // (2 * c * c))) if c > 0 else (0, 0, 0)
        for c in counts.tolist()
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)[place.reshape(-1)]
    return table[:, 0], table[:, 1], table[:, 2]


def marked(rows: ArrayLike | sparse.csr_array, items: int) -> sparse.csr_array:
    """Users x items: 1 where a cell is a finite number above 0. Every row by itself; no cell is ever refused."""
    big = isinstance(rows, np.ndarray) and rows.ndim == 2
    parts = [rows[i : i + _ROWS] for i in range(0, max(len(rows), 1), _ROWS)] if big else [rows]  # type: ignore[arg-type, index]
    return sparse.vstack([_marked(part, items) for part in parts], format="csr")


@np.errstate(all="ignore")  # a caller who has numpy raise must not be told of a cell
def _marked(rows: ArrayLike | sparse.csr_array, items: int) -> sparse.csr_array:
    table = real_table(rows, "rows", items)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    had = np.isfinite(table.data) & (table.data > 0.0)
    ends = np.concatenate([[0], np.cumsum(had)])[table.indptr]
    return sparse.csr_array((np.ones(int(ends[-1]), dtype=np.int64), table.indices[had], ends), shape=table.shape)


def _above_diagonal(table: sparse.csr_array, weighed: sparse.csr_array) -> Iterator[NDArray[np.int64]]:
    """The numbers above the diagonal of table^T weighed, row by row, for some rows of the matrix at a time."""
    by_item, items = table.T.tocsr(), table.shape[1]
    for first in range(0, items, _COLUMNS):
        block = (by_item[first : first + _COLUMNS] @ weighed[:, first:]).toarray()
        yield block[np.arange(items - first)[None, :] > np.arange(len(block))[:, None]]
