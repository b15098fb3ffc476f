"""The loops over pairs of items, compiled by numba (extra `fast`). `similarity_loops_plain` does the same; tests hold them equal.

A row of items is summed in two floats for every column item: z_i . z_j, and the counts of common raters packed into one float,
together + 2^27 * (agree - differ). With e = +1 for a like and -1 for a dislike a rater adds (z_i z_j, 1 + 2^27 e_i e_j): one
multiplication and two additions of pairs, which a vector register does at once. Whole numbers below 2^53 add up exactly.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from tacit.models.cross_domain.centred import Centred
from tacit.models.cross_domain.edges import DIGITS, ROUNDING, By, Edges
from tacit.models.cross_domain.similarity_loops_plain import Pairs

_PACK = float(1 << 27)
_ROOM = 1 << 20  # pairs found at a time, by one thread
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
def _counts(packed):  # type: ignore[no-untyped-def]
    """How many agree, and how many rated both."""
    surplus = np.rint(packed / _PACK)
    together = packed - surplus * _PACK
    return (together + surplus) * 0.5, together


@njit(cache=True, nogil=True, inline="always")
def _shrunk(raw, together, shrink):  # type: ignore[no-untyped-def]
    return raw * (min(together, float(shrink)) / shrink) if shrink > 0 else raw


@njit(cache=True, nogil=True)
def _upper_rows(first, last, rows, columns, scale, raters, shrink, sums, found):  # type: ignore[no-untyped-def]
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
            agreed, together = _counts(packed)
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
def _mirror(edges, counts, forth, back, out):  # type: ignore[no-untyped-def]
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
def _best_rows(bounds, rows, columns, scales, raters, shrink, least, absolute, same, best, touched):  # type: ignore[no-untyped-def]
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
            agreed, together = _counts(packed)
            if abs(raw) <= ROUNDING or agreed < least or (same and item == row):
                continue
            touched[item] = True
            cosine = _shrunk(raw, together, shrink)
            rank = np.rint(cosine * _STEPS)
            if absolute:
                rank = abs(rank)
            if rank >= bars[row]:
                _put(row, item, rank, cosine, agreed, raters[0][row] + raters[1][item] - together, best)


def all_edges(table: Centred, shrink: int, *, dense: bool = False, threads: int = 1) -> Edges:
    """Every edge, in blocks of rows; every thread has one block at a time."""
    n = table.n_items
    rows, columns = _later(table), (table.items, _pairs(table))
    scratch = local()

    def block(bounds: tuple[int, int]) -> Pairs:
        first, last = bounds
        room = (last - first) * (2 * n - first - last - 1) // 2
        if (
            getattr(scratch, "room", -1) < room
        ):  # kept from block to block: fresh memory costs more than what is written to it
            kinds = (np.int32, np.int32, np.float64, np.int64, np.float64)
            scratch.room, scratch.found = room, tuple(np.empty(room, dtype=kind) for kind in kinds)
            scratch.sums = np.zeros((n, 2))
        count = _upper_rows(first, last, rows, columns, table.scale, table.raters, shrink, scratch.sums, scratch.found)
        return Pairs(*(column[:count].copy() for column in scratch.found))

    return _mirrored(_each(block, _bounds(n, n), threads), n)


def _mirrored(parts: list[Pairs], n: int) -> Edges:
    earlier, later = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for part in parts:
        earlier += np.bincount(part.second, minlength=n)
        later += np.bincount(part.first, minlength=n)
    starts = np.concatenate(([0], np.cumsum(earlier + later)))
    back, forth = starts[:-1].copy(), starts[:-1] + earlier
    out = tuple(np.empty(starts[-1], dtype=kind) for kind in (np.int32, np.float64, np.int64, np.float64))
    for part in parts:
        _mirror(tuple(part), np.bincount(part.second, minlength=n), forth, back, out)
    return Edges(starts, *out)


def best(table: Centred, k: int, shrink: int, by: By, least: int, *, dense: bool = False, threads: int = 1) -> Pairs:
    """Of every item the k best others with a cosine other than 0 and a significance of at least ``least``."""
    return _best(table, table, k, shrink, by, least, threads)[0]


def best_across(
    left: Centred, right: Centred, k: int, shrink: int, by: By, *, dense: bool = False, threads: int = 1
) -> tuple[Pairs, NDArray[np.bool_]]:
    """Of every left item the k best edges to right items, and which right items have an edge at all. No item is on both sides."""
    return _best(left, right, k, shrink, by, 1, threads)


def _best(
    left: Centred, right: Centred, k: int, shrink: int, by: By, least: int, threads: int
) -> tuple[Pairs, NDArray[np.bool_]]:
    """Row by row, so that the pairs held are at hand: offering a pair to both of its items at once was slower on many items."""
    held = _empty(left.n_items, min(k, max(right.n_items, 1)))
    opens, users, places = _by_item(left)
    rows = opens, right.starts[users], right.starts[users + 1], _pairs(left, 1.0)[places]
    columns, scales, raters = (right.items, _pairs(right)), (left.scale, right.scale), (left.raters, right.raters)
    how = shrink, least, by == "absolute", left is right

    def block(bounds: tuple[int, int]) -> NDArray[np.bool_]:
        touched = np.zeros(right.n_items, dtype=bool)
        _best_rows(bounds, rows, columns, scales, raters, *how, held, touched)
        return touched

    touched = np.zeros(right.n_items, dtype=bool)
    for found in _each(block, _bounds(left.n_items, right.n_items), threads):
        touched |= found
    return _listed(held), touched


def _each(block: Any, bounds: list[tuple[int, int]], threads: int) -> list[Any]:
    if threads == 1:
        return [block(one) for one in bounds]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(block, bounds))


def _bounds(n: int, width: int) -> list[tuple[int, int]]:
    height = max(1, _ROOM // max(width, 1))
    return [(first, min(first + height, n)) for first in range(0, n, height)]


def _pairs(table: Centred, pack: float = _PACK) -> NDArray[np.float64]:
    """(z, +-pack) of every rating."""
    return np.stack((table.values, np.where(table.likes, pack, -pack)), axis=1)


def _by_item(table: Centred) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Where each item's ratings start, the users who gave them, ascending, and where they stand in the rows of users."""
    turned: Any = sparse.csc_array(table.table(np.arange(table.items.size, dtype=np.int64)))
    return turned.indptr.astype(np.int64), turned.indices, turned.data


def _later(table: Centred) -> tuple[NDArray[Any], ...]:
    """By item: where the ratings that its raters gave to later items begin and end, and the raters' own pairs."""
    opens, users, places = _by_item(table)
    return opens, places + 1, table.starts[users + 1], _pairs(table, 1.0)[places]


def _empty(n: int, k: int) -> tuple[NDArray[Any], ...]:
    heap, items = np.zeros((n, k), dtype=np.int32), np.zeros((n, k), dtype=np.int32)
    good, cosine, share = (np.zeros((n, k)) for _ in range(3))
    bars, held, significance = np.full(n, -np.inf), np.zeros(n, dtype=np.int64), np.zeros((n, k), dtype=np.int64)
    return bars, heap, good, items, held, cosine, significance, share


def _listed(best: tuple[NDArray[Any], ...]) -> Pairs:
    """What is held, ascending by row and item."""
    _, _, _, items, held, cosine, significance, share = best
    row, place = np.nonzero(np.arange(items.shape[1]) < held[:, None])
    order = np.lexsort((items[row, place], row))
    row, place = row[order], place[order]
    return Pairs(
        row.astype(np.int32), items[row, place], cosine[row, place], significance[row, place], share[row, place]
    )
