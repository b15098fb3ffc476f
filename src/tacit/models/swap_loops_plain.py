"""Losses of swaps in plain numpy; `swap_loops_compiled` does the same in one pass. Points and candidates: one column each."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_CELLS = 1 << 20  # distances at a time
_USERS = 1 << 18  # at a time: their sums of at most 2^34 each stay below 2^53


def distances(points: Array, centres: Array, most: float) -> Array:
    """Squared distances, users x centres, each at most ``most``."""
    total = np.zeros((points.shape[1], centres.shape[1]))
    for mine, theirs in zip(points, centres, strict=True):
        gap = mine[:, None] - theirs[None, :]
        total += gap * gap
    return np.minimum(total, most)


def swap_losses(
    points: Array, candidates: Array, nearest: Array, second: Array, starts: NDArray[np.int64], most: float
) -> NDArray[np.int64]:
    """centres x candidates: the sum over users of their distance once this centre is out and that candidate is in.

    Users are in the order of their centres: those of centre c from starts[c] to starts[c + 1]. ``nearest`` is their distance to it,
    ``second`` to the next centre, both at most ``most``. A user whose centre stays pays min(nearest, new), else min(second, new).
    """
    stays, goes = _sums(points, candidates, nearest, second, starts, most)
    losses: NDArray[np.int64] = stays.sum(axis=0)[None, :] - stays + goes
    return losses


def _sums(
    points: Array, candidates: Array, nearest: Array, second: Array, starts: NDArray[np.int64], most: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    shape = (len(starts) - 1, candidates.shape[1])
    stays, goes = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    users = max(1, min(_USERS, _CELLS // candidates.shape[1]))
    for centre in range(shape[0]):
        for first in range(starts[centre], starts[centre + 1], users):
            part = slice(first, min(first + users, starts[centre + 1]))
            new = distances(points[:, part], candidates, most)
            stays[centre] += np.minimum(nearest[part, None], new).sum(axis=0).astype(np.int64)
            goes[centre] += np.minimum(second[part, None], new).sum(axis=0).astype(np.int64)
    return stays, goes
