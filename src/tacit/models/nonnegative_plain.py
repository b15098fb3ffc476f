"""The inner steps of the non-negative factorisation in numpy; `nonnegative_compiled` does the same by numba, to rounding."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

_VALUES = 1 << 22  # numbers of the normal equations that are held at a time (32 MB)


def masked_step(
    starts: NDArray[Any], columns: NDArray[Any], values: Floats, other: Floats, current: Floats, ridges: Floats,
    anchor: Floats, pull: float, sweeps: int,
) -> Floats:  # fmt: skip
    """Every row of ``current`` moves towards its least squares on its own cells, one coordinate after the other; in place.

    Row i: sum over its cells (x - u . other_j)^2 + ridges_i |u|^2 + pull |u - anchor_i|^2, u >= 0. Returns the first sum of each
    row. A row without cells goes to its anchor, which is 0 where nothing pulls.
    """
    n, rank = current.shape
    upper, lower = np.triu_indices(rank)
    pairs = other[:, upper] * other[:, lower]
    loss = np.zeros(n)
    step = max(1, _VALUES // (rank * rank))
    for first in range(0, n, step):
        last = min(first + step, n)
        cells = slice(int(starts[first]), int(starts[last]))
        places = (columns[cells], starts[first : last + 1] - starts[first])
        shape = (last - first, len(other))
        grams = np.empty((last - first, rank, rank))
        ones = sparse.csr_array((np.ones(cells.stop - cells.start), *places), shape=shape)
        grams[:, upper, lower] = grams[:, lower, upper] = ones @ pairs
        part = sparse.csr_array((values[cells], *places), shape=shape)
        products = part @ other
        squares = part.multiply(part).sum(axis=1) if cells.stop > cells.start else np.zeros(last - first)
        rows = current[first:last]
        rows[np.diff(places[1]) == 0] = 0.0 if pull == 0.0 else anchor[first:last][np.diff(places[1]) == 0]
        diagonal = ridges[first:last] + pull
        _sweep(rows, products + pull * anchor[first:last] if pull > 0.0 else products, grams, diagonal, sweeps)
        fitted = np.einsum("nc,ncd,nd->n", rows, grams, rows)
        loss[first:last] = np.maximum(squares - 2.0 * (rows * products).sum(axis=1) + fitted, 0.0)
    return loss


def shared_step(products: Floats, gram: Floats, current: Floats, ridges: Floats, sweeps: int) -> None:
    """The same where all cells are observed: one Gram matrix serves all rows. ``products`` = values @ other. In place."""
    _sweep(current, products, np.broadcast_to(gram, (len(current), *gram.shape)), ridges, sweeps)


def _sweep(rows: Floats, products: Floats, grams: Floats, ridges: Floats, sweeps: int) -> None:
    """Gauss-Seidel: each coordinate to its exact optimum given the others, cut off at 0."""
    for _ in range(sweeps):
        for c in range(rows.shape[1]):
            own = grams[:, c, c]
            rest = products[:, c] - (grams[:, c, :] * rows).sum(axis=1) + own * rows[:, c]
            total = own + ridges
            best = np.maximum(rest, 0.0) / np.where(total > 0.0, total, 1.0)
            rows[:, c] = np.where(total > 0.0, best, rows[:, c])  # nothing depends on it: it stays
