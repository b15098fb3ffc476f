"""Eigenvalues and eigenvectors of B B^T for a tall B, from its small Gram matrix B^T B."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput

Floats = NDArray[np.float64]

_EPSILON = 2.0**-52
_SPAN = 1e-4  # of the largest eigenvalue: what lies below is found anew, in what the larger ones leave of B
_SQUARES_FIT = 300  # squares of numbers within 2^-300 .. 2^300, and sums of them, neither overflow nor vanish


def spectrum(rows: Any) -> tuple[Floats, Floats]:
    """The logarithms of the r eigenvalues of B B^T above 0, and its eigenvectors in r x n rows. B: n x d, dense or sparse.

    An eigenvalue counts as 0 where its square root is below 8 d 2^-52 of B's Frobenius norm: what rounding leaves of dependent
    columns. (A sparse B with more columns than rows: where the eigenvalue itself is below 8 n 2^-52 of the largest.)

    O(n d^2 + d^3), or O(d n^2 + n^3) if that is less.
    """
    rows = _floats(rows)
    largest = max(float(rows.max()), -float(rows.min())) if min(rows.shape) else 0.0
    if not np.isfinite(largest):
        raise InvalidInput(
            "the rows of a kernel must be finite numbers. Clip them and count what is not a number as 0."
        )
    exponent = int(np.frexp(largest)[1])
    if abs(exponent) > _SQUARES_FIT:
        rows = rows * 2.0 ** (-exponent // 2) * 2.0 ** (-exponent - -exponent // 2)
    else:
        exponent = 0
    if largest == 0.0:
        values, vectors = np.zeros(0), np.zeros((0, rows.shape[0]))
    elif rows.shape[1] <= rows.shape[0]:
        values, vectors = _tall(rows)
    elif sparse.issparse(rows):
        values, vectors = np.linalg.eigh((rows @ rows.T).toarray())
        above = values > 8.0 * len(values) * _EPSILON * values[-1]
        values, vectors = values[above], vectors[:, above].T
    else:
        values, vectors = _tall(np.asarray(np.linalg.qr(rows.T, mode="r")).T)  # B^T = Q R, so that B B^T = R^T R
    return np.log(values) + 2.0 * exponent * np.log(2.0), vectors


def _tall(rows: Any) -> tuple[Floats, Floats]:
    """A Gram matrix carries errors of the size of its LARGEST eigenvalue, so that each pass keeps those within `_SPAN` of it."""
    d = rows.shape[1]
    values: list[Floats] = []
    vectors: list[Floats] = []
    floor = None
    while True:
        gram = rows.T @ rows
        gram = gram.toarray() if sparse.issparse(gram) else gram
        if floor is None:
            floor = (8.0 * d * _EPSILON) ** 2 * float(np.trace(gram))
        found, turn = np.linalg.eigh(gram)
        kept = found > max(_SPAN * found[-1], floor)
        values.append(found[kept])
        vectors.append(_turned(rows, turn[:, kept] / np.sqrt(found[kept])))
        if kept.all() or found[-1] <= floor:
            break
        rest = _turned(rows, turn[:, ~kept])
        for _ in range(2):  # twice, which is enough in floats
            for done in vectors:
                rest -= (rest @ done.T) @ done
        rows = rest.T
    return np.concatenate(values), vectors[0] if len(vectors) == 1 else np.concatenate(vectors)


def _turned(rows: Any, turn: Floats) -> Floats:
    """(B W)^T, row after row in memory: a column of B W is then read in one go."""
    if sparse.issparse(rows):
        return np.ascontiguousarray((rows @ turn).T)
    turned: Floats = turn.T @ rows.T
    return turned


def _floats(rows: Any) -> Any:
    if sparse.issparse(rows):
        return sparse.csr_array(rows, dtype=np.float64)
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2:
        raise InvalidInput(
            f"the rows of a kernel must be a matrix, items x columns, not an array of {rows.ndim} dimensions."
        )
    return rows
