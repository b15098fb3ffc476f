"""The loops over pairs of items, compiled by numba (extra `fast`). `loops_plain` does the same in numpy; tests compare them.

A row of items is summed in two floats for every column item: z_i . z_j, and the counts of common raters packed into
one float, together + 2^27 * (agree - differ). With e = +1 for a like and -1 for a dislike, a rater adds (z_i z_j, 1 +
2^27 e_i e_j): one multiplication and two additions of pairs, which a vector register does at once. Whole numbers
below 2^53 add up exactly.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from tacit.models.arrays import Array, Floats
from tacit.models.cross_domain.edges import DIGITS, ROUNDING, By, CentredRatings, Edges
from tacit.models.cross_domain.loops_plain import Pairs

PACK = float(1 << 27)
_STEPS = 10.0**DIGITS
_ROOM = 1 << 20  # pairs at a time in one thread


def all_edges(table: CentredRatings, shrink: int, *, dense: bool = False, threads: int = 1) -> Edges:
    """Every edge, in blocks of rows; every thread has one block at a time."""
    n = table.n_items
    rows, columns = _later(table), (table.items, _pairs(table))
    scratch = local()

    def block(bounds: tuple[int, int]) -> Pairs:
        first, last = bounds
        room = (last - first) * (2 * n - first - last - 1) // 2
        if getattr(scratch, "room", -1) < room:  # memory is reused: fresh memory costs more than writing to it
            kinds = (np.int32, np.int32, np.float64, np.int64, np.float64)
            scratch.room, scratch.columns = room, tuple(np.empty(room, dtype=kind) for kind in kinds)
            scratch.sums = np.zeros((n, 2))
        count = upper_rows(first, last, rows, columns, table.scale, table.raters, shrink, scratch.sums, scratch.columns)
        return Pairs(*(column[:count].copy() for column in scratch.columns))

    return _mirror(_each(block, _bounds(n, n), threads), n)


def best_across(
    left: CentredRatings, right: CentredRatings, k: int, shrink: int, by: By, *, dense: bool = False, threads: int = 1
) -> tuple[Pairs, NDArray[np.bool_]]:
    """The k best edges of every left item to right items, and which right items have an edge at all.

    No item is on both sides.

    It works row by row, which keeps the pairs of a row in the cache. Offering a pair to both items at once is slower
    with many items.
    """
    lists = _empty(left.n_items, min(k, max(right.n_items, 1)))
    opens, users, positions = _by_item(left)
    rows = opens, right.starts[users], right.starts[users + 1], _pairs(left, 1.0)[positions]
    columns, scales, raters = (right.items, _pairs(right)), (left.scale, right.scale), (left.raters, right.raters)
    absolute = by == "absolute"

    def block(bounds: tuple[int, int]) -> NDArray[np.bool_]:
        touched = np.zeros(right.n_items, dtype=bool)
        best_rows(bounds, rows, columns, scales, raters, shrink, absolute, lists, touched)
        return touched

    touched = np.zeros(right.n_items, dtype=bool)
    for part in _each(block, _bounds(left.n_items, right.n_items), threads):
        touched |= part
    return _list_pairs(lists), touched


def _each(block: Any, bounds: list[tuple[int, int]], threads: int) -> list[Any]:
    """The results of all blocks, in order, by so many threads."""
    if threads == 1:
        return [block(part) for part in bounds]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(block, bounds))


def _bounds(n: int, width: int) -> list[tuple[int, int]]:
    """Blocks of rows with at most `_ROOM` pairs."""
    height = max(1, _ROOM // max(width, 1))
    return [(first, min(first + height, n)) for first in range(0, n, height)]


def _mirror(parts: list[Pairs], n: int) -> Edges:
    """All edges in both directions."""
    earlier, later = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for part in parts:
        earlier += np.bincount(part.second, minlength=n)
        later += np.bincount(part.first, minlength=n)
    starts = np.concatenate(([0], np.cumsum(earlier + later)))
    back, forth = starts[:-1].copy(), starts[:-1] + earlier
    out = tuple(np.empty(starts[-1], dtype=kind) for kind in (np.int32, np.float64, np.int64, np.float64))
    for part in parts:
        mirror(tuple(part), np.bincount(part.second, minlength=n), forth, back, out)
    return Edges(starts, *out)


def _empty(n: int, k: int) -> tuple[Array, ...]:
    """Empty lists of the k best pairs of n rows, as `_put` fills them."""
    heap, items = np.zeros((n, k), dtype=np.int32), np.zeros((n, k), dtype=np.int32)
    good, cosine, share = (np.zeros((n, k)) for _ in range(3))
    bars, length, significance = np.full(n, -np.inf), np.zeros(n, dtype=np.int64), np.zeros((n, k), dtype=np.int64)
    return bars, heap, good, items, length, cosine, significance, share


def _list_pairs(best: tuple[Array, ...]) -> Pairs:
    """The pairs in these lists, ascending by row and item."""
    _, _, _, items, length, cosine, significance, share = best
    row, slot = np.nonzero(np.arange(items.shape[1]) < length[:, None])
    order = np.lexsort((items[row, slot], row))
    row, slot = row[order], slot[order]
    return Pairs(row.astype(np.int32), items[row, slot], cosine[row, slot], significance[row, slot], share[row, slot])


def _pairs(table: CentredRatings, pack: float = PACK) -> Floats:
    """(z, +-pack) of every rating."""
    return np.stack((table.values, np.where(table.likes, pack, -pack)), axis=1)


def _by_item(table: CentredRatings) -> tuple[Array, Array, Array]:
    """Where each item's ratings start, the users who gave them, ascending, and where these stand in the rows of users."""
    turned: Any = sparse.csc_array(table.table(np.arange(table.items.size, dtype=np.int64)))
    return turned.indptr.astype(np.int64), turned.indices, turned.data


def _later(table: CentredRatings) -> tuple[Array, ...]:
    """Where the ratings of later items by an item's raters begin and end, item by item, and the raters' own pairs."""
    opens, users, positions = _by_item(table)
    return opens, positions + 1, table.starts[users + 1], _pairs(table, 1.0)[positions]


@njit(cache=True, nogil=True)
def upper_rows(first, last, rows, columns, scale, raters, shrink, sums, out):  # type: ignore[no-untyped-def]
    """Edges from items first to last - 1 to later items. Writes them to ``out`` and returns how many there are."""
    opens, begins, ends, own = rows
    items, pairs = columns
    rated = np.empty(len(sums), dtype=np.int32)
    firsts, seconds, cosine, significance, share = out
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
    """Writes both directions of edges i < j, ascending, to the next free positions of their rows (``forth`` and ``back``).

    It sorts by j first, by counting, so that each row is written contiguously, and memory is accessed page by page.
    ``counts`` has the edges of each j.
    """
    first, second, cosine, significance, share = edges
    items, cosines, significances, shares = out
    for edge in range(first.size):
        slot = forth[first[edge]]
        forth[first[edge]] += 1
        items[slot] = second[edge]
        cosines[slot], significances[slot], shares[slot] = cosine[edge], significance[edge], share[edge]
    turned = np.empty(first.size, dtype=np.int32)
    ends = np.cumsum(counts)
    for edge in range(first.size - 1, -1, -1):
        ends[second[edge]] -= 1
        turned[ends[second[edge]]] = edge
    for edge in turned:
        slot = back[second[edge]]
        back[second[edge]] += 1
        items[slot] = first[edge]
        cosines[slot], significances[slot], shares[slot] = cosine[edge], significance[edge], share[edge]


@njit(cache=True, nogil=True)
def best_rows(bounds, rows, columns, scales, raters, shrink, absolute, best, touched):  # type: ignore[no-untyped-def]
    """The best pairs of a block of rows, among pairs on which some rater agrees."""
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
            if abs(raw) <= ROUNDING or agreed < 1:
                continue
            touched[item] = True
            cosine = _shrunk(raw, together, shrink)
            rank = np.rint(cosine * _STEPS)
            if absolute:
                rank = abs(rank)
            if rank >= bars[row]:
                _put(row, item, rank, cosine, agreed, raters[0][row] + raters[1][item] - together, best)


@njit(cache=True, nogil=True)
def _put(row, item, rank, cosine, agreed, either, best):  # type: ignore[no-untyped-def]
    """Keeps a pair among the k best of its row, unless there are k better ones.

    Pairs stay where they were written; ``heap`` orders these positions, the worst pair's first. ``bars`` is the worst
    rank kept, once there are k.
    """
    bars, heap, good, items, length, cosines, significance, share = best
    k = heap.shape[1]
    if length[row] < k:
        slot = length[row]
        length[row] += 1
        good[row, slot], items[row, slot] = rank, item
        child = slot
        while child > 0:
            parent = (child - 1) // 2
            if not _worse(good, items, row, slot, heap[row, parent]):
                break
            heap[row, child] = heap[row, parent]
            child = parent
        heap[row, child] = slot
    else:
        slot = heap[row, 0]
        if rank == good[row, slot] and item > items[row, slot]:
            return
        good[row, slot], items[row, slot] = rank, item
        parent = 0
        while True:
            child = 2 * parent + 1
            if child >= k:
                break
            if child + 1 < k and _worse(good, items, row, heap[row, child + 1], heap[row, child]):
                child += 1
            if not _worse(good, items, row, heap[row, child], slot):
                break
            heap[row, parent] = heap[row, child]
            parent = child
        heap[row, parent] = slot
    cosines[row, slot] = cosine
    significance[row, slot] = np.int64(agreed)
    share[row, slot] = agreed / either
    if length[row] == k:
        bars[row] = good[row, heap[row, 0]]


@njit(cache=True, nogil=True, inline="always")
def _worse(good, items, row, first, second):  # type: ignore[no-untyped-def]
    return good[row, first] < good[row, second] or (
        good[row, first] == good[row, second] and items[row, first] > items[row, second]
    )


@njit(cache=True, nogil=True, fastmath={"contract"})
def _sum_row(row, after, opens, begins, ends, own, items, pairs, sums, rated):  # type: ignore[no-untyped-def]
    """Sums the ratings of one item's raters over all other items.

    Returns how many items from ``after`` on they rated, listed in ``rated``.

    ``begins`` to ``ends`` is where each rater's other ratings stand.
    """
    for entry in range(opens[row], opens[row + 1]):
        value, sign = own[entry, 0], own[entry, 1]
        for index in range(begins[entry], ends[entry]):
            item = items[index]
            sums[item, 0] += value * pairs[index, 0]
            sums[item, 1] += sign * pairs[index, 1] + 1.0
    count = 0
    for item in range(after, rated.size):  # without a branch, which the processor could not predict
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
