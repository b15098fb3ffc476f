"""The loops over pairs of items, compiled by numba (extra `fast`). `similarity_loops_plain` does the same: tests compare."""

from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.models.cross_domain.centred import Centred
from tacit.models.cross_domain.edges import By, Edges
from tacit.models.cross_domain.similarity_kernels import PACK, best_rows, mirror, upper_rows
from tacit.models.cross_domain.similarity_loops_plain import Pairs

_ROOM = 1 << 20  # pairs found at a time, by one thread


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
        count = upper_rows(first, last, rows, columns, table.scale, table.raters, shrink, scratch.sums, scratch.found)
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
        mirror(tuple(part), np.bincount(part.second, minlength=n), forth, back, out)
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
        best_rows(bounds, rows, columns, scales, raters, *how, held, touched)
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


def _pairs(table: Centred, pack: float = PACK) -> NDArray[np.float64]:
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
