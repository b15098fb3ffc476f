"""A tree of public hyperplanes whose shape is decided by noisy counts alone; and the whole-number reading of private rows.

``WholeRows`` is private: codes, counts and sums are exact. Products are computed in float64 on whole numbers whose partial sums
all stay below 2^53: they are exact in any order, so that no row's result can depend on which rows stand beside it.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MOST_DEPTH = 16  # a table of all codes has 2^16 places
_CELLS = 1 << 18  # of a dense table at a time

Whole = NDArray[np.int64]


def directions(seed: int, depth: int, dimension: int) -> NDArray[np.float64]:
    """``depth`` public directions as columns of whole numbers, about normal: sums of four bytes, so at most 512 in size.

    From a hash, not from a generator whose stream may change with its version.
    """
    text = f"tacit hyperplanes {seed} {depth} {dimension}".encode()
    drawn = np.frombuffer(hashlib.shake_256(text).digest(4 * depth * dimension), dtype=np.int8)
    table = drawn.astype(np.int64).reshape(depth, dimension, 4).sum(axis=2)
    return np.ascontiguousarray(table.T.astype(np.float64))


class WholeRows:
    """Bounded rows of whole numbers, dense or sparse, read a stretch of users at a time. Everything it answers is private."""

    def __init__(self, rows: NDArray[np.int32] | sparse.csr_array) -> None:
        self._rows = rows
        self.users, self.items = rows.shape

    def codes(self, planes: NDArray[np.float64]) -> Whole:
        """On which side of each hyperplane a row lies, as bits, the first plane's bit highest. On the plane counts as above."""
        values = 1 << np.arange(planes.shape[1])[::-1]
        return self._by_row(lambda part: (part @ planes >= 0.0) @ values)

    def nearest(self, centres: Whole) -> Whole:
        """The place of the nearest centre of each row, the first of those that are equally near."""
        lengths = np.einsum("ij,ij->i", centres, centres).astype(np.float64)
        doubled = np.ascontiguousarray(2.0 * centres.T)
        # |x - c|^2 = |x|^2 - (2 x.c - |c|^2), all of it below 2^53
        return self._by_row(lambda part: np.argmax(part @ doubled - lengths, axis=1))

    def sums(self, group: Whole, groups: int) -> Whole:
        """The sum of the rows of every group, which a row is in one of."""
        total = np.zeros((groups, self.items), dtype=np.float64)
        for first, part in self._parts():
            mine = group[first : first + part.shape[0]]
            one = sparse.csr_array((np.ones(mine.size), (mine, np.arange(mine.size))), shape=(groups, mine.size))
            added = one @ part
            total += added.toarray() if sparse.issparse(added) else added
        return total.astype(np.int64)

    def _by_row(self, answer: Callable[[Any], NDArray[Any]]) -> Whole:
        result = np.empty(self.users, dtype=np.int64)
        for first, part in self._parts():
            result[first : first + part.shape[0]] = answer(part)
        return result

    def _parts(self) -> Iterator[tuple[int, Any]]:
        size = max(1, _CELLS // self.items)
        for first in range(0, self.users, size):
            yield first, self._rows[first : first + size].astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Which leaf each code belongs to, and the leaves' noisy counts."""

    leaf: Whole
    counts: NDArray[np.float64]


def grow(
    noisy_counts: Callable[[int, Whole, int], Whole], depth: int, minimum: Callable[[int], float], branch: float = 3.0
) -> Tree:
    """The tree that noisy counts decide: a node splits if it is large enough and both of its halves have the minimum.

    ``noisy_counts(level, group, groups)`` answers for one level the noisy number of rows whose code is in each group; a code
    outside all groups has -1. ``minimum`` is made of the root's noisy count. A node that a plane does not split may be split by a
    later one: each level is paid for in advance, asked or not.
    """
    codes = np.arange(1 << depth)
    leaf = np.zeros(codes.size, dtype=np.int64)
    counts = noisy_counts(0, leaf, 1)
    least = minimum(int(counts[0]))
    for level in range(1, depth + 1):
        large = np.flatnonzero(counts >= branch * least)
        if not large.size:
            continue
        place = np.full(counts.size, -1, dtype=np.int64)
        place[large] = 2 * np.arange(large.size)
        upper = (codes >> (depth - level)) & 1
        group = np.where(place[leaf] >= 0, place[leaf] + upper, -1)
        halves = noisy_counts(level, group, 2 * large.size).reshape(-1, 2)
        split = (halves >= least).all(axis=1)
        kept = np.full(counts.size, -1, dtype=np.int64)
        kept[large[split]] = counts.size + np.arange(int(split.sum()))
        leaf = np.where((kept[leaf] >= 0) & (upper == 1), kept[leaf], leaf)
        counts = np.concatenate([counts, halves[split, 1]])
        counts[large[split]] = halves[split, 0]
    return Tree(leaf, counts.astype(np.float64))
