"""The innermost loops over pairs of items, compiled by numba.

A row of items is summed in two floats for every column item: z_i . z_j, and the counts of common raters packed into one float,
together + 2^27 * (agree - differ). With e = +1 for a like and -1 for a dislike a rater adds (z_i z_j, 1 + 2^27 e_i e_j): one
multiplication and two additions of pairs, which a vector register does at once. Whole numbers below 2^53 add up exactly.
"""

import numpy as np
from numba import njit

from tacit.models.cross_domain.edges import DIGITS, ROUNDING

PACK = float(1 << 27)
_STEPS = 10.0**DIGITS


@njit(cache=True, nogil=True, fastmath={"contract"})
def _sum_row(row, after, opens, begins, ends, own, items, pairs, sums, rated):  # type: ignore[no-untyped-def]
    """Sums what the raters of one item say of all others; returns how many items from ``after`` on they rated, into ``rated``.

    ``begins`` to ``ends``: where the rater's other ratings stand.
    """
    for entry in range(opens[row], opens[row + 1]):
        value, sign = own[entry, 0], own[entry, 1]
        for place in range(begins[entry], ends[entry]):
            item = items[place]
            sums[item, 0] += value * pairs[place, 0]
            sums[item, 1] += sign * pairs[place, 1] + 1.0
    count = 0
    for item in range(after, rated.size):  # without a branch, which few items would take and none could foresee
        rated[count] = item
        count += sums[item, 1] != 0.0
    return count


@njit(cache=True, nogil=True, inline="always")
def counts(packed):  # type: ignore[no-untyped-def]
    """How many agree, and how many rated both."""
    surplus = np.rint(packed / PACK)
    together = packed - surplus * PACK
    return (together + surplus) * 0.5, together


@njit(cache=True, nogil=True, inline="always")
def _shrunk(raw, together, shrink):  # type: ignore[no-untyped-def]
    return raw * (min(together, float(shrink)) / shrink) if shrink > 0 else raw


@njit(cache=True, nogil=True)
def upper_rows(first, last, rows, columns, scale, raters, shrink, sums, found):  # type: ignore[no-untyped-def]
    """Edges from items first to last - 1 to later items; returns how many, as written to ``found``."""
    opens, begins, ends, own = rows
    items, pairs = columns
    rated = np.empty(len(sums), dtype=np.int32)
    firsts, seconds, cosine, significance, share = found
    count = 0
    for row in range(first, last):
        for item in rated[: _sum_row(row, row + 1, opens, begins, ends, own, items, pairs, sums, rated)]:
            packed = sums[item, 1]
            raw = sums[item, 0] * (scale[row] * scale[item])
            sums[item, 0] = 0.0
            sums[item, 1] = 0.0
            agreed, together = counts(packed)
            if abs(raw) <= ROUNDING or agreed < 1.0:
                continue
            firsts[count] = row
            seconds[count] = item
            cosine[count] = _shrunk(raw, together, shrink)
            significance[count] = np.int64(agreed)
            share[count] = agreed / (raters[row] + raters[item] - together)
            count += 1
    return count


@njit(cache=True, nogil=True)
def mirror(edges, counts, forth, back, out):  # type: ignore[no-untyped-def]
    """Writes both directions of edges i < j, ascending, to where their rows have got to (``forth`` and ``back``).

    Sorted by j first, by counting, so that each row is written in one run: memory is met page by page. ``counts``: edges of each j.
    """
    first, second, cosine, significance, share = edges
    items, cosines, significances, shares = out
    for edge in range(first.size):
        place = forth[first[edge]]
        forth[first[edge]] += 1
        items[place] = second[edge]
        cosines[place], significances[place], shares[place] = cosine[edge], significance[edge], share[edge]
    turned = np.empty(first.size, dtype=np.int32)
    ends = np.cumsum(counts)
    for edge in range(first.size - 1, -1, -1):
        ends[second[edge]] -= 1
        turned[ends[second[edge]]] = edge
    for edge in turned:
        place = back[second[edge]]
        back[second[edge]] += 1
        items[place] = first[edge]
        cosines[place], significances[place], shares[place] = cosine[edge], significance[edge], share[edge]


@njit(cache=True, nogil=True, inline="always")
def _worse(good, items, row, one, other):  # type: ignore[no-untyped-def]
    return good[row, one] < good[row, other] or (
        good[row, one] == good[row, other] and items[row, one] > items[row, other]
    )


@njit(cache=True, nogil=True)
def _put(row, item, rank, cosine, agreed, either, best):  # type: ignore[no-untyped-def]
    """Holds a pair among the k best of its row, unless k better ones are held.

    Pairs stay where they were written; ``heap`` orders these places, the worst pair's first. ``bars``: the worst rank held, once
    there are k.
    """
    bars, heap, good, items, held, cosines, significance, share = best
    k = heap.shape[1]
    if held[row] < k:
        place = held[row]
        held[row] += 1
        good[row, place], items[row, place] = rank, item
        child = place
        while child > 0:
            parent = (child - 1) // 2
            if not _worse(good, items, row, place, heap[row, parent]):
                break
            heap[row, child] = heap[row, parent]
            child = parent
        heap[row, child] = place
    else:
        place = heap[row, 0]
        if rank == good[row, place] and item > items[row, place]:
            return
        good[row, place], items[row, place] = rank, item
        parent = 0
        while True:
            child = 2 * parent + 1
            if child >= k:
                break
            if child + 1 < k and _worse(good, items, row, heap[row, child + 1], heap[row, child]):
                child += 1
            if not _worse(good, items, row, heap[row, child], place):
                break
            heap[row, parent] = heap[row, child]
            parent = child
        heap[row, parent] = place
    cosines[row, place] = cosine
    significance[row, place] = np.int64(agreed)
    share[row, place] = agreed / either
    if held[row] == k:
        bars[row] = good[row, heap[row, 0]]


@njit(cache=True, nogil=True)
def best_rows(bounds, rows, columns, scales, raters, shrink, least, absolute, same, best, touched):  # type: ignore[no-untyped-def]
    """The best pairs of a block of rows. ``same``: rows and columns are the same items, and none is paired with itself."""
    opens, begins, ends, own = rows
    items, pairs = columns
    scale, other_scale = scales
    rated, sums = np.empty(touched.size, dtype=np.int32), np.zeros((touched.size, 2))
    bars = best[0]
    for row in range(bounds[0], bounds[1]):
        for item in rated[: _sum_row(row, 0, opens, begins, ends, own, items, pairs, sums, rated)]:
            raw, packed = sums[item, 0] * (scale[row] * other_scale[item]), sums[item, 1]
            sums[item, 0] = 0.0
            sums[item, 1] = 0.0
            agreed, together = counts(packed)
            if abs(raw) <= ROUNDING or agreed < least or (same and item == row):
                continue
            touched[item] = True
            cosine = _shrunk(raw, together, shrink)
            rank = np.rint(cosine * _STEPS)
            if absolute:
                rank = abs(rank)
            if rank >= bars[row]:
                _put(row, item, rank, cosine, agreed, raters[0][row] + raters[1][item] - together, best)
