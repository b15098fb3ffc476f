"""Meta-paths of two domains, put together from partial paths that meet in an item.

A path runs `[far] [near] bridge item — bridge item [near] [far]`, from a source item to a target item. Of each partial path
three numbers are kept, which join by a sum, a sum and a product: sum of S s, sum of S, product of the normalised S.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.cross_domain.legs import Leg, Legs

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Sums = tuple[
    Whole, Whole, Floats, Floats
]  # source items, target items (each from 0), sums of c s and of c over their paths


@dataclass(frozen=True, eq=False)
class Paths:
    """Partial paths, ascending by ``start``."""

    start: Whole
    end: Whole
    weighted: Floats  # sum of S s over the edges
    weight: Whole  # sum of S
    certainty: Floats  # product of the shares

    def __len__(self) -> int:
        return int(self.start.size)

    def part(self, places: Any) -> "Paths":
        return Paths(
            self.start[places],
            self.end[places],
            self.weighted[places],
            self.weight[places],
            self.certainty[places],
        )

    def after(self, other: "Paths") -> tuple[Whole, Whole]:
        """For each path of ``other``: where those begin that go on from its end, and how many they are."""
        first = np.searchsorted(self.start, other.end, side="left")
        return first, np.searchsorted(self.start, other.end, side="right") - first


def sorted_paths(*parts: Paths) -> Paths:
    whole = Paths(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.weighted for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.certainty for part in parts]),
    )
    return whole.part(np.lexsort((whole.end, whole.start)))


def of_leg(leg: Leg, *, turned: bool = False) -> Paths:
    """Paths of one edge, from the outer item to the inner one, or ``turned``."""
    significance = np.asarray(leg.significance, dtype=np.int64)
    first, second = np.asarray(leg.first, dtype=np.int64), np.asarray(leg.second, dtype=np.int64)
    ends = (second, first) if turned else (first, second)
    return sorted_paths(Paths(*ends, significance * leg.cosine, significance, np.asarray(leg.share, dtype=np.float64)))


def standing(items: NDArray[Any]) -> Paths:
    """Paths without an edge: a bridge item is where its own part of the path begins and ends."""
    own = np.unique(np.asarray(items, dtype=np.int64))
    return Paths(own, own, np.zeros(own.size), np.zeros(own.size, dtype=np.int64), np.ones(own.size))


def shifted(paths: Paths, start: int, end: int) -> Paths:
    """The same paths under other codes."""
    return Paths(paths.start + start, paths.end + end, paths.weighted, paths.weight, paths.certainty)


def joined(first: Paths, second: Paths) -> Paths:
    """Every path of ``first`` with every one of ``second`` that begins where it ends; in the order of ``first``."""
    begin, count = second.after(first)
    left = np.repeat(np.arange(len(first)), count)
    right = np.arange(left.size) + np.repeat(begin - np.cumsum(count) + count, count)
    return Paths(
        first.start[left],
        second.end[right],
        first.weighted[left] + second.weighted[right],
        first.weight[left] + second.weight[right],
        first.certainty[left] * second.certainty[right],
    )


@dataclass(frozen=True, eq=False)
class Thirds:
    """All paths are out ⋈ bridge ⋈ back: source item to source bridge item, across, target bridge item to target item."""

    out: Paths
    bridge: Paths
    back: Paths

    @property
    def counts(self) -> Whole:
        """How many whole paths go on from each path of ``out``."""
        _, each = self.back.after(self.bridge)
        first, count = self.bridge.after(self.out)
        running = np.concatenate([[0], np.cumsum(each)])
        whole: Whole = running[first + count] - running[first]
        return whole

    def blocks(self, paths: int) -> Iterator[Paths]:
        """Partial paths of ``out`` ⋈ ``bridge``, of as many source items as have so many whole paths, or of one that has more."""
        _, begin = np.unique(self.out.start, return_index=True)
        ends = np.append(begin[1:], len(self.out))
        running = np.concatenate([[0], np.cumsum(self.counts)])
        place = 0
        while place < begin.size:
            last = int(np.searchsorted(running[ends], running[begin[place]] + paths, side="right"))
            last = max(last, place + 1)
            yield joined(self.out.part(slice(begin[place], ends[last - 1])), self.bridge)
            place = last


def thirds(legs: Legs) -> Thirds:
    """The three parts of all paths that the pruned edges allow. An item has one layer, so no path is found twice."""
    bridge = of_leg(legs.bridge)
    near, near_back = of_leg(legs.near_source), of_leg(legs.near_target, turned=True)
    far, far_back = of_leg(legs.far_source), of_leg(legs.far_target, turned=True)
    return Thirds(
        sorted_paths(standing(bridge.start), near, joined(far, near)),
        bridge,
        sorted_paths(standing(bridge.end), near_back, joined(near_back, far_back)),
    )


def longest(parts: Thirds) -> int:
    """The largest sum of S on any path; 0 where there is none."""
    back, there = _largest(parts.back.start, parts.back.weight, parts.bridge.end)
    bridge = np.where(there, parts.bridge.weight + back, -1)
    out, there = _largest(parts.bridge.start, bridge, parts.out.end)
    return int(np.where(there & (out >= 0), parts.out.weight + out, 0).max(initial=0))


def _largest(groups: Whole, values: Whole, wanted: Whole) -> tuple[Whole, NDArray[np.bool_]]:
    """Of each wanted group the largest value (groups ascend), and whether there is such a group."""
    if not groups.size:
        return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=np.bool_)
    names, begin = np.unique(groups, return_index=True)
    place = np.minimum(np.searchsorted(names, wanted), names.size - 1)
    return np.maximum.reduceat(values, begin)[place], names[place] == wanted
