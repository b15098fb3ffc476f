"""All principal minors of small kernels at once: in logarithms for many kernels, with gradients; and as exact fractions.

Subsets are numbered by their bits: number 5 is the set of the items 0 and 2. Item by item a kernel is split in two: without the
item (its row and column dropped) and with it (the Schur complement; the pivot multiplies the minor).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def sizes(items: int) -> NDArray[np.int64]:
    """How many items each of the 2^n subsets has."""
    return np.array([subset.bit_count() for subset in range(1 << items)])


def log_minors(kernels: Floats) -> Floats:
    """kernels: ... x n x n, positive definite. The log determinants of all subsets, ... x 2^n."""
    return _split(kernels)[0]


def pulled_back(kernels: Floats, weights: Floats) -> Floats:
    """The gradient, by the kernel's entries, of the weighted sum of its log minors: sum of weight(Y) times L_Y inverse."""
    levels = _split(kernels)[1]
    gradient = np.zeros((*weights.shape, 0, 0))
    for level in reversed(levels):  # of the children back to the parent
        half = level.shape[-3]
        without, within = gradient[..., :half, :, :], gradient[..., half:, :, :]
        pivot, column = level[..., 0, 0], level[..., 1:, 0] / level[..., 0, 0, None]
        moved = np.einsum("...ij,...j->...i", within, column)
        parent = np.empty(level.shape)
        parent[..., 1:, 1:] = without + within
        parent[..., 1:, 0] = parent[..., 0, 1:] = -moved
        # every subset of the half with this item has the pivot as a factor
        below = weights.reshape(*weights.shape[:-1], -1, 2, half).sum(axis=-3)[..., 1, :]
        parent[..., 0, 0] = below / pivot + np.einsum("...i,...i->...", column, moved)
        gradient = parent
    return np.asarray(gradient[..., 0, :, :])


def whole_minors(kernel: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """The determinants of all subsets, exactly. Where a pivot is 0, so is every minor with it, if the kernel is semidefinite."""
    if not kernel:
        return [Fraction(1)]
    pivot, rest = kernel[0][0], range(1, len(kernel))
    without = whole_minors([[kernel[i][j] for j in rest] for i in rest])
    if pivot == 0:
        within = [Fraction(0)] * len(without)
    else:
        scaled = [kernel[i][0] / pivot for i in rest]
        schur = [[kernel[i][j] - scaled[i - 1] * kernel[0][j] for j in rest] for i in rest]
        within = [pivot * minor for minor in whole_minors(schur)]
    return [minor for pair in zip(without, within, strict=True) for minor in pair]  # item 0 is the lowest bit


def _split(kernels: Floats) -> tuple[Floats, list[Floats]]:
    here = np.asarray(kernels, dtype=np.float64)[..., None, :, :]
    logs = np.zeros((*here.shape[:-3], 1))
    levels = []
    for _ in range(here.shape[-1]):
        levels.append(here)
        pivot, column, rest = here[..., 0, 0], here[..., 1:, 0], here[..., 1:, 1:]
        schur = rest - column[..., :, None] * (column / pivot[..., None])[..., None, :]
        here = np.concatenate([rest, schur], axis=-3)
        logs = np.concatenate([logs, logs + np.log(pivot)], axis=-1)
    return logs, levels
