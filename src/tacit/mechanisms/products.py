"""The sum over users of z z^T for rows z of whole numbers, exactly: its upper triangle as one vector, row by row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MOST_COLUMNS = 1 << 12  # the matrix of floats then takes 134 MB
LARGEST = 1 << 13  # of a number of a row
_CELLS = 1 << 20  # of a dense table at a time
_USERS = 1 << 26  # products of 2^26 each: their sums stay below 2^52, where every whole number is a float
_COLUMNS = 128  # of the matrix at a time
_DENSE_IS_FASTER = 80  # a product of two stored cells takes so many times as long as one of a dense table


def triangle(columns: int, *, diagonal: bool) -> int:
    """How many numbers the upper triangle has, with its diagonal or without."""
    return columns * (columns + 1) // 2 if diagonal else columns * (columns - 1) // 2


def product_sums(rows: sparse.csr_array, *, diagonal: bool) -> NDArray[np.int64]:
    """(sum of z_i z_j) for i <= j, or i < j, row by row. The numbers of ``rows`` are at most 2^13 in size.

    By dense products of floats where that is faster: they are exact, as every partial sum is a whole number below 2^52.
    """
    users, columns = rows.shape
    pairs = int(np.square(np.diff(rows.indptr).astype(np.int64)).sum())
    if pairs * _DENSE_IS_FASTER > users * columns * columns:
        return dense_sums(rows, diagonal=diagonal)
    return sparse_sums(rows, diagonal=diagonal)


def dense_sums(rows: sparse.csr_array, *, diagonal: bool) -> NDArray[np.int64]:
    from scipy.linalg.blas import dsyrk

    users, columns = rows.shape
    vector = np.zeros(triangle(columns, diagonal=diagonal), dtype=np.int64)
    whole = sparse.csr_array((rows.data.astype(np.float64), rows.indices, rows.indptr), shape=rows.shape)
    at_once = max(1, _CELLS // max(1, columns))
    for start in range(0, users, _USERS):
        total = np.zeros((columns, columns), order="F")
        for first in range(start, min(users, start + _USERS), at_once):
            part = whole[first : min(users, start + _USERS, first + at_once)].toarray()
            total = dsyrk(1.0, part.T, beta=1.0, c=total, overwrite_c=1, lower=1)
        filled = 0
        for column in range(columns):
            below = total[column + (0 if diagonal else 1) :, column]
            vector[filled : filled + below.size] += below.astype(np.int64)
            filled += below.size
    return vector


def sparse_sums(rows: sparse.csr_array, *, diagonal: bool) -> NDArray[np.int64]:
    columns = rows.shape[1]
    vector = np.zeros(triangle(columns, diagonal=diagonal), dtype=np.int64)
    by_column, filled = rows.T.tocsr(), 0
    for first in range(0, columns, _COLUMNS):
        block = (by_column[first : first + _COLUMNS] @ rows[:, first:]).toarray()
        above = block[np.arange(columns - first)[None, :] >= np.arange(len(block))[:, None] + (0 if diagonal else 1)]
        vector[filled : filled + above.size] = above
        filled += above.size
    return vector


def as_matrix(vector: NDArray[np.floating[Any]], columns: int, *, diagonal: bool) -> NDArray[np.float64]:
    """The symmetric matrix whose upper triangle is ``vector``; 0 on the diagonal where the vector has none."""
    matrix = np.zeros((columns, columns))
    matrix[np.triu_indices(columns, 0 if diagonal else 1)] = vector
    return matrix + np.triu(matrix, 1).T
