"""Losses of swaps, compiled by numba (extra `fast`). `swap_loops_plain` does the same in numpy; tests hold them equal."""

import numpy as np
from numba import njit

from tacit.models.swap_loops_plain import distances

__all__ = ["distances", "swap_losses"]

_BLOCK = 128  # users at a time: their distances stay in the first-level cache, their sums below 2^53


# sums of whole numbers below 2^53 are exact in any order, and no number is NaN: reordering changes nothing
@njit(cache=True, fastmath={"reassoc", "nnan", "nsz", "contract"})
def _sums(points, candidates, nearest, second, starts, low, high, reach):  # type: ignore[no-untyped-def]
    """As `swap_loops_plain._sums`. A block whose box [low, high] is no nearer to a candidate than ``reach`` is not entered."""
    centres, count = starts.size - 1, candidates.shape[0]
    stays = np.zeros((centres, count), dtype=np.int64)
    goes = np.zeros((centres, count), dtype=np.int64)
    buffer = np.empty(_BLOCK, dtype=np.float64)
    block = 0
    for centre in range(centres):
        for first in range(starts[centre], starts[centre + 1], _BLOCK):
            last = min(first + _BLOCK, starts[centre + 1])
            size = last - first
            near, next_near, new = nearest[first:last], second[first:last], buffer[:size]
            all_near, all_next = 0.0, 0.0
            for u in range(size):
                all_near += near[u]
                all_next += next_near[u]
            for candidate in range(count):
                least = 0.0
                for j in range(points.shape[0]):
                    aim, gap = candidates[candidate, j], 0.0
                    if aim < low[block, j]:
                        gap = low[block, j] - aim
                    elif aim > high[block, j]:
                        gap = aim - high[block, j]
                    least += gap * gap
                if least >= reach[block]:
                    stays[centre, candidate] += np.int64(all_near)
                    goes[centre, candidate] += np.int64(all_next)
                    continue
                for u in range(size):
                    new[u] = 0.0
                for j in range(points.shape[0]):
                    aim, row = candidates[candidate, j], points[j, first:last]
                    for u in range(size):
                        gap = row[u] - aim
                        new[u] += gap * gap
                kept, moved = 0.0, 0.0
                for u in range(size):  # two loops, and no min(): so they fit vector registers
                    kept += near[u] if near[u] < new[u] else new[u]
                for u in range(size):
                    moved += next_near[u] if next_near[u] < new[u] else new[u]
                stays[centre, candidate] += np.int64(kept)
                goes[centre, candidate] += np.int64(moved)
            block += 1
    return stays, goes


def swap_losses(points, candidates, nearest, second, starts, most):  # type: ignore[no-untyped-def]
    """As `swap_loops_plain.swap_losses`. ``nearest`` and ``second`` are at most ``most``, so new distances need no cut."""
    firsts = [first for c in range(starts.size - 1) for first in range(starts[c], starts[c + 1], _BLOCK)]
    low = high = np.empty((0, points.shape[0]))
    reach = np.empty(0)
    if firsts:
        low, high = np.minimum.reduceat(points, firsts, axis=1).T, np.maximum.reduceat(points, firsts, axis=1).T
        reach = np.maximum.reduceat(second, firsts)
    rows = [np.ascontiguousarray(table) for table in (candidates.T, low, high)]
    stays, goes = _sums(points, rows[0], nearest, second, starts, rows[1], rows[2], reach)
    return stays.sum(axis=0)[None, :] - stays + goes
