"""The loops over pairs of items, compiled by numba (extra `fast`). `similarity_loops_plain` does the same; tests hold them equal.

A row of items is summed in two floats for every column item: z_i . z_j, and the counts of common raters packed into one float,
together + 2^27 * (agree - differ). With e = +1 for a like and -1 for a dislike a rater adds (z_i z_j, 1 + 2^27 e_i e_j): one
multiplication and two additions of pairs, which a vector register does at once. Whole numbers below 2^53 add up exactly.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from tacit.models.cross_domain.centred import Centred
from tacit.models.cross_domain.edges import DIGITS, ROUNDING, By
from tacit.models.cross_domain.similarity_loops_plain import Pairs, joined

_PACK = float(1 << 27)
_ROOM = 1 << 20  # pairs found at a time, by one thread
_STEPS = 10.0**DIGITS


@njit(cache=True, nogil=True, fastmath={"contract"}, inline="always")
def _sum_row(row, opens, begins, ends, own, items, pairs, sums):  # type: ignore[no-untyped-def]
    """Adds what the raters of one item say of all others. ``begins`` to ``ends``: where the rater's other ratings stand."""
    for entry in range(opens[row], opens[row + 1]):
        value, sign = own[entry, 0], own[entry, 1]
        for place in range(begins[entry], ends[entry]):
            item = items[place]
            sums[item, 0] += value * pairs[place, 0]
            sums[item, 1] += sign * pairs[place, 1] + 1.0


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
    firsts, seconds, cosine, significance, share = found
    n, count = scale.size, 0
    for row in range(first, last):
        _sum_row(row, opens, begins, ends, own, items, pairs, sums)
        for item in range(row + 1, n):
            packed = sums[item, 1]
            if packed == 0.0:
                continue
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


@njit(cache=True, nogil=True, inline="always")
def _worse(good, items, one, other):  # type: ignore[no-untyped-def]
    return good[one] < good[other] or (good[one] == good[other] and items[one] > items[other])


@njit(cache=True, nogil=True)
def _keep(heap, good, items, held, rank, item):  # type: ignore[no-untyped-def]
    """The place where a pair is to be written, or -1 if k better ones are held. ``heap`` orders places, the worst first."""
    k = heap.size
    if held < k:
        good[held], items[held] = rank, item
        child = held
        while child > 0:
            parent = (child - 1) // 2
            if not _worse(good, items, held, heap[parent]):
                break
            heap[child] = heap[parent]
            child = parent
        heap[child] = held
        return held
    place = heap[0]
    if rank < good[place] or (rank == good[place] and item > items[place]):
        return -1
    good[place], items[place] = rank, item
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= k:
            break
        if child + 1 < k and _worse(good, items, heap[child + 1], heap[child]):
            child += 1
        if not _worse(good, items, heap[child], place):
            break
        heap[parent] = heap[child]
        parent = child
    heap[parent] = place
    return place


@njit(cache=True, nogil=True)
def _put(row, item, cosine, agreed, together, either, absolute, best):  # type: ignore[no-untyped-def]
    heap, good, items, held, cosines, significance, share = best
    rank = np.rint(cosine * _STEPS)
    if absolute:
        rank = abs(rank)
    if held[row] == heap.shape[1] and rank < good[row, heap[row, 0]]:
        return
    place = _keep(heap[row], good[row], items[row], held[row], rank, item)
    if place >= 0:
        held[row] = max(held[row], place + 1)
        cosines[row, place] = cosine
        significance[row, place] = np.int64(agreed)
        share[row, place] = agreed / either


@njit(cache=True, nogil=True)
def _best_rows(n, rows, columns, scale, raters, shrink, least, absolute, sums, best):  # type: ignore[no-untyped-def]
    """Each pair is summed once, i < j, and offered to both of its items."""
    opens, begins, ends, own = rows
    items, pairs = columns
    for row in range(n):
        _sum_row(row, opens, begins, ends, own, items, pairs, sums)
        for item in range(row + 1, n):
            packed = sums[item, 1]
            if packed == 0.0:
                continue
            raw = sums[item, 0] * (scale[row] * scale[item])
            sums[item, 0] = 0.0
            sums[item, 1] = 0.0
            agreed, together = _counts(packed)
            if abs(raw) <= ROUNDING or agreed < least:
                continue
            cosine, either = _shrunk(raw, together, shrink), raters[row] + raters[item] - together
            _put(row, item, cosine, agreed, together, either, absolute, best)
            _put(item, row, cosine, agreed, together, either, absolute, best)


@njit(cache=True, nogil=True)
def _across_rows(first, last, rows, columns, scales, raters, shrink, absolute, sums, best, touched):  # type: ignore[no-untyped-def]
    opens, begins, ends, own = rows
    items, pairs = columns
    for row in range(first, last):
        _sum_row(row, opens, begins, ends, own, items, pairs, sums)
        for item in range(touched.size):
            packed = sums[item, 1]
            if packed == 0.0:
                continue
            raw = sums[item, 0] * (scales[0][row] * scales[1][item])
            sums[item, 0] = 0.0
            sums[item, 1] = 0.0
            agreed, together = _counts(packed)
            if abs(raw) <= ROUNDING or agreed < 1.0:
                continue
            touched[item] = True
            cosine, either = _shrunk(raw, together, shrink), raters[0][row] + raters[1][item] - together
            _put(row, item, cosine, agreed, together, either, absolute, best)


def upper_edges(table: Centred, shrink: int, *, dense: bool = False, threads: int = 1) -> Pairs:
    """All edges i < j, in blocks of rows; every thread has one block at a time."""
    n = table.n_items
    rows, columns = _later(table), (table.items, _pairs(table))

    def block(bounds: tuple[int, int]) -> Pairs:
        first, last = bounds
        room = max(0, (last - first) * (2 * n - first - last - 1) // 2)
        found = tuple(np.empty(room, dtype=kind) for kind in (np.int32, np.int32, np.float64, np.int64, np.float64))
        sums = np.zeros((n, 2))
        count = _upper_rows(first, last, rows, columns, table.scale, table.raters, shrink, sums, found)
        return Pairs(*(column[:count].copy() for column in found))

    return joined(_each(block, _bounds(n, n), threads))


def best(table: Centred, k: int, shrink: int, by: By, least: int, *, dense: bool = False) -> Pairs:
    """Of every item the k best others with a cosine other than 0 and a significance of at least ``least``."""
    n = table.n_items
    held = _empty(n, min(k, max(n - 1, 1)))
    rows, columns = _later(table), (table.items, _pairs(table))
    _best_rows(n, rows, columns, table.scale, table.raters, shrink, least, by == "absolute", np.zeros((n, 2)), held)
    return _listed(held)


def best_across(
    left: Centred, right: Centred, k: int, shrink: int, by: By, *, dense: bool = False, threads: int = 1
) -> tuple[Pairs, NDArray[np.bool_]]:
    """Of every left item the k best edges to right items, and which right items have an edge at all. No item is on both sides."""
    held = _empty(left.n_items, min(k, max(right.n_items, 1)))
    opens, users, places = _by_item(left)
    rows = opens, right.starts[users], right.starts[users + 1], _pairs(left, 1.0)[places]
    columns, scales, raters = (right.items, _pairs(right)), (left.scale, right.scale), (left.raters, right.raters)

    def block(bounds: tuple[int, int]) -> NDArray[np.bool_]:
        touched, sums = np.zeros(right.n_items, dtype=bool), np.zeros((right.n_items, 2))
        _across_rows(*bounds, rows, columns, scales, raters, shrink, by == "absolute", sums, held, touched)
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
    floats = [np.zeros((n, k)) for _ in range(3)]
    return heap, floats[0], items, np.zeros(n, dtype=np.int64), floats[1], np.zeros((n, k), dtype=np.int64), floats[2]


def _listed(best: tuple[NDArray[Any], ...]) -> Pairs:
    """What is held, ascending by row and item."""
    _, _, items, held, cosine, significance, share = best
    row, place = np.nonzero(np.arange(items.shape[1]) < held[:, None])
    order = np.lexsort((items[row, place], row))
    row, place = row[order], place[order]
    return Pairs(
        row.astype(np.int32), items[row, place], cosine[row, place], significance[row, place], share[row, place]
    )
