"""Many small ridge regressions at once, one for each group of rows: a user's ratings, or an item's."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_VALUES = 1 << 22  # numbers of the normal equations that are held at a time (32 MB)


def grouped_ridge(
    starts: NDArray[np.integer[Any]],
    columns: NDArray[np.integer[Any]],
    targets: NDArray[np.floating[Any]],
    design: NDArray[np.float64],
    penalties: NDArray[np.float64],
) -> NDArray[np.float64]:
    """One row of coefficients for each group; a group without rows gets zeros.

    Group g has the rows from starts[g] to starts[g + 1]: ``targets`` regressed on ``design[columns]``. It solves
    (sum a a^T + sqrt(n) diag(penalties)) x = sum a y over its n rows a. The root lies between a penalty for each group, which is
    too little for long profiles, and one for each rating, which is too much for them.
    """
    groups, width = len(starts) - 1, design.shape[1]
    upper, lower = np.triu_indices(width)
    products = design[:, upper] * design[:, lower]  # of every column once: a group's matrix is a sum of these rows
    counts = np.diff(starts)
    shrinkage = np.sqrt(np.maximum(counts, 1))[:, None] * penalties
    solved = np.empty((groups, width))
    step, diagonal = max(1, _VALUES // upper.size), np.arange(width)
    for first in range(0, groups, step):
        part = slice(first, min(first + step, groups))
        rows = slice(int(starts[part.start]), int(starts[part.stop]))
        places = (columns[rows], starts[part.start : part.stop + 1] - starts[part.start])
        shape = (part.stop - part.start, len(design))
        sums = sparse.csr_array((np.ones(rows.stop - rows.start), *places), shape=shape) @ products
        matrices = np.empty((shape[0], width, width))
        matrices[:, upper, lower] = matrices[:, lower, upper] = sums
        matrices[:, diagonal, diagonal] += shrinkage[part]
        right = sparse.csr_array((targets[rows].astype(np.float64), *places), shape=shape) @ design
        solved[part] = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    return solved
