"""X-SIM: how similar a source item and a target item are, over all meta-paths between them (Guerraoui et al., PVLDB 2017).

For a path p with edges e, `s_p = sum S_e s_e / sum S_e` and `c_p = product of the normalised S_e`. X-SIM is the mean
of s_p with weights c_p: a convex combination of cosines, so it lies between -1 and 1. Without a path it is undefined,
which is not 0.

**Listing paths.** A path runs `[far] [near] bridge item - bridge item [near] [far]`, from a source item to a target
item. It is joined from partial paths that meet in an item. Each keeps three numbers: sum of S s, sum of S, and
product of the normalised S. They join by a sum, a sum and a product.

**Quadrature.** Without listing paths, the division by sum S becomes an integral, and sums over paths become matrix
products. `1/sum S = integral of x^(sum S - 1) over 0..1`. At a node x an edge weighs share x^S and, once on each
path, S s share x^S; products of such matrices add up c_p s_p sum S_p x^(sum S_p) over all paths. Gauss-Legendre nodes
are exact up to sum S = twice their number. Beyond that, the relative error grows with sum S alone, so the largest sum
decides how many nodes are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.checks import member, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Array, Floats, Ints
from tacit.models.cross_domain.similarities import Leg, Legs
from tacit.models.quadrature import unit_gauss_legendre

ACCURACY = 1e-9  # relative error allowed in each path's similarity
_NODES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_PATHS = 1 << 20  # in memory at once: about 50 MB
_SPARSE = 16  # cells of a table per path from which sorting is faster
_CELLS = 1 << 23  # source items x target items to integrate at once: 64 MB an array
_FEW_PATHS = 1_000_000  # up to so many, listing them is faster
_PATH_WORK = 32  # multiplications in matrix products that take as long as one listed path


@dataclass(frozen=True, eq=False)
class XSim:
    """Source items x target items (codes of each domain, from 0). Both tables have one structure: stored pairs are defined."""

    values: Any  # csr_array, float64: X-SIM
    certainty: Any  # csr_array, float64: sum of c_p

    @property
    def n_source(self) -> int:
        """How many items the source domain has."""
        return int(self.values.shape[0])

    @property
    def n_target(self) -> int:
        """How many items the target domain has."""
        return int(self.values.shape[1])


class PathMethod(Enum):
    """How X-SIM adds up paths: one by one, by quadrature, or by the cheaper of the two."""

    AUTO = "auto"
    ENUMERATE = "enumerate"
    QUADRATURE = "quadrature"


# Source items and target items, each from 0, and sums of c s and of c over their paths.
Sums: TypeAlias = tuple[Ints, Ints, Floats, Floats]


@dataclass(frozen=True, eq=False)
class Paths:
    """Partial paths, ascending by ``start``."""

    start: Ints
    end: Ints
    weighted: Floats  # sum of S s over the edges
    weight: Ints  # sum of S
    certainty: Floats  # product of the shares

    def __len__(self) -> int:
        return int(self.start.size)

    def part(self, positions: Any) -> "Paths":
        """Some of the paths, by position."""
        return Paths(
            self.start[positions],
            self.end[positions],
            self.weighted[positions],
            self.weight[positions],
            self.certainty[positions],
        )

    def after(self, other: "Paths") -> tuple[Ints, Ints]:
        """For each path of ``other``: where the paths begin that continue from its end, and how many there are."""
        first = np.searchsorted(self.start, other.end, side="left")
        return first, np.searchsorted(self.start, other.end, side="right") - first


@dataclass(frozen=True, eq=False)
class Thirds:
    """All paths as out ⋈ bridge ⋈ back: source item to source bridge, across, target bridge to target item."""

    out: Paths
    bridge: Paths
    back: Paths

    @property
    def counts(self) -> Ints:
        """How many whole paths continue each path of ``out``."""
        _, each = self.back.after(self.bridge)
        first, count = self.bridge.after(self.out)
        running = np.concatenate([[0], np.cumsum(each)])
        counts: Ints = running[first + count] - running[first]
        return counts

    def blocks(self, paths: int) -> Iterator[Paths]:
        """Partial paths of ``out`` ⋈ ``bridge``, in blocks.

        A block has as many source items as have ``paths`` whole paths together, or one item that has more.
        """
        _, begin = np.unique(self.out.start, return_index=True)
        ends = np.append(begin[1:], len(self.out))
        running = np.concatenate([[0], np.cumsum(self.counts)])
        item = 0
        while item < begin.size:
            last = int(np.searchsorted(running[ends], running[begin[item]] + paths, side="right"))
            last = max(last, item + 1)
            yield joined(self.out.part(slice(begin[item], ends[last - 1])), self.bridge)
            item = last


def x_sim(legs: Legs, method: str | PathMethod = PathMethod.AUTO, nodes: int | None = None) -> XSim:
    """X-SIM of all pairs that a path joins. If no path exists (no user rated in both domains), nothing is stored.

    ``enumerate`` lists the paths. ``quadrature`` integrates to 1e-9, at a cost that does not grow with their number.
    ``auto`` takes the cheaper one that is accurate. ``nodes`` is the number of nodes of the quadrature; by default as
    few as are accurate.
    """
    method = member("method", PathMethod, method)
    if nodes is not None:
        nodes = whole("nodes", nodes, least=1, most=4096)
    parts, n_source, n_target = thirds(legs), legs.n_source, legs.n_target
    if method is not PathMethod.ENUMERATE:
        nodes = _nodes(legs, parts, method, nodes)
    if method is PathMethod.ENUMERATE or nodes is None:
        return _store(_sums_of_listed(parts, n_source, n_target), n_source, n_target)
    return _store(integrated(legs, parts, nodes, _CELLS), n_source, n_target)


def _nodes(legs: Legs, parts: Thirds, method: PathMethod, nodes: int | None) -> int | None:
    """How many nodes to integrate with, or None to list the paths instead."""
    largest = max(longest(parts), 1)
    wanted = nodes_for(largest) if nodes is None else nodes
    accurate = wanted is not None and quadrature_error(wanted, largest) <= ACCURACY
    if method is PathMethod.QUADRATURE and not accurate:
        raise InvalidParameter(
            f"the significances along a path add up to {largest:,}, which {nodes or 'no number of'} nodes do not integrate to "
            f"{ACCURACY:g}. Leave out nodes, or use method='auto' or 'enumerate'."
        )
    if method is PathMethod.AUTO and accurate:
        paths = int(parts.counts.sum())
        accurate = paths > max(_FEW_PATHS, multiplications(legs, wanted or 1) // _PATH_WORK)
    return wanted if accurate else None


def _sums_of_listed(parts: Thirds, n_source: int, n_target: int) -> Iterator[Sums]:
    """Sums over the paths of each pair, from blocks of listed paths."""
    for onward in parts.blocks(_PATHS):
        running = np.cumsum(parts.back.after(onward)[1])
        begin = 0
        while begin < len(onward):  # in one piece, except for an item with more paths than fit
            done = running[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(running, done + _PATHS, side="right")))
            yield _sum_paths(joined(onward.part(slice(begin, end)), parts.back), n_source, n_target)
            begin = end


def _sum_paths(paths: Paths, n_source: int, n_target: int) -> Sums:
    """Sums over the paths of each pair: in a table if they fill it, by sorting if not."""
    first = int(paths.start.min(initial=n_source))
    cell = (paths.start - first) * n_target + (paths.end - n_source)
    names: Ints | None = None  # of the cells; None if they are their own names
    if int(cell.max(initial=-1)) >= _SPARSE * len(paths):
        names, cell = np.unique(cell, return_inverse=True)
    certain: Any = np.bincount(cell, weights=paths.certainty)
    similar: Any = np.bincount(cell, weights=paths.certainty * paths.weighted / paths.weight)
    present = np.flatnonzero(certain)  # shares are above 0, and so are products of five
    named = present if names is None else names[present]
    return named // n_target + first, named % n_target, similar[present], certain[present]


def _store(blocks: Iterator[Sums], n_source: int, n_target: int) -> XSim:
    """X-SIM from blocks of sums."""
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    rows, columns, similar, certain = (np.concatenate(list(part)) for part in zip(nothing, *blocks, strict=True))
    # csr_array adds up entries of one pair: an item's paths may come in several pieces.
    sums, certainty = (csr_array((part, (rows, columns)), shape=(n_source, n_target)) for part in (similar, certain))
    for part in (sums, certainty):
        part.sort_indices()
    sums.data = np.clip(sums.data / certainty.data, -1.0, 1.0)  # out of range by rounding only
    return XSim(sums, certainty)


def thirds(legs: Legs) -> Thirds:
    """The three parts of all paths along the pruned edges. An item has one layer, so no path occurs twice."""
    bridge = of_leg(legs.bridge)
    near, near_back = of_leg(legs.near_source), of_leg(legs.near_target, turned=True)
    far, far_back = of_leg(legs.far_source), of_leg(legs.far_target, turned=True)
    return Thirds(
        sorted_paths(empty_paths(bridge.start), near, joined(far, near)),
        bridge,
        sorted_paths(empty_paths(bridge.end), near_back, joined(near_back, far_back)),
    )


def of_leg(leg: Leg, *, turned: bool = False) -> Paths:
    """Paths of one edge, from the outer item to the inner one, or the other way round if ``turned``."""
    significance = np.asarray(leg.significance, dtype=np.int64)
    first, second = np.asarray(leg.first, dtype=np.int64), np.asarray(leg.second, dtype=np.int64)
    ends = (second, first) if turned else (first, second)
    return sorted_paths(Paths(*ends, significance * leg.cosine, significance, np.asarray(leg.share, dtype=np.float64)))


def empty_paths(items: Array) -> Paths:
    """Paths without an edge: a bridge item is both the start and the end of its own part of a path."""
    own = np.unique(np.asarray(items, dtype=np.int64))
    return Paths(own, own, np.zeros(own.size), np.zeros(own.size, dtype=np.int64), np.ones(own.size))


def shifted(paths: Paths, start: int, end: int) -> Paths:
    """The same paths with other codes."""
    return Paths(paths.start + start, paths.end + end, paths.weighted, paths.weight, paths.certainty)


def sorted_paths(*parts: Paths) -> Paths:
    """All paths of these parts, ascending by start, then by end."""
    paths = Paths(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.weighted for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.certainty for part in parts]),
    )
    return paths.part(np.lexsort((paths.end, paths.start)))


def joined(first: Paths, second: Paths) -> Paths:
    """Every path of ``first`` with every path of ``second`` that begins at its end, in the order of ``first``."""
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


def longest(parts: Thirds) -> int:
    """The largest sum of S on any path; 0 if there is no path."""
    back, there = _largest(parts.back.start, parts.back.weight, parts.bridge.end)
    bridge = np.where(there, parts.bridge.weight + back, -1)
    out, there = _largest(parts.bridge.start, bridge, parts.out.end)
    return int(np.where(there & (out >= 0), parts.out.weight + out, 0).max(initial=0))


def _largest(groups: Ints, values: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """For each wanted group the largest value (groups ascend), and whether the group exists."""
    if not groups.size:
        return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=np.bool_)
    names, begin = np.unique(groups, return_index=True)
    index = np.minimum(np.searchsorted(names, wanted), names.size - 1)
    return np.maximum.reduceat(values, begin)[index], names[index] == wanted


@dataclass(frozen=True, eq=False)
class _Grid:
    """Edges, or partial paths, as matrices with one structure, one matrix for each x."""

    paths: Paths
    shape: tuple[int, int]
    powers: Floats  # the different sums of S
    which: Array

    def at(self, x: float) -> tuple[Any, Any]:
        """Sums over the paths of c x^(sum S), and of c x^(sum S) sum (S s)."""
        plain = self.paths.certainty * (x**self.powers)[self.which]
        return self._matrix(plain), self._matrix(plain * self.paths.weighted)

    def _matrix(self, values: Floats) -> Any:
        return csr_array((values, (self.paths.start, self.paths.end)), shape=self.shape)


def integrated(legs: Legs, parts: Thirds, nodes: int, cells: int) -> Iterator[Sums]:
    """Sums of c_p s_p and of c_p for all source items and some target items at a time."""
    n_source, n_target = legs.n_source, legs.n_target
    square = (n_source, n_source)
    out = [_grid(of_leg(leg), square) for leg in (legs.near_source, legs.far_source)]
    across = _grid(shifted(parts.bridge, 0, -n_source), (n_source, n_target))
    step = max(1, cells // max(n_source, 1))
    for first in range(0, n_target, step):
        columns = min(step, n_target - first)
        back = parts.back.part((parts.back.end >= n_source + first) & (parts.back.end < n_source + first + columns))
        home = _grid(shifted(back, -n_source, -n_source - first), (n_target, columns))
        total = np.zeros((n_source, columns))
        for x, weight in zip(*unit_gauss_legendre(nodes), strict=True):
            total += _path_sums(out, across, home, x)[1] * (weight / x)
        certain = _path_sums(out, across, home, 1.0)[0]
        rows, targets = np.nonzero(certain)  # shares are above 0, and so are products of five
        yield rows, targets + first, total[rows, targets], certain[rows, targets]


def _grid(paths: Paths, shape: tuple[int, int]) -> _Grid:
    powers, which = np.unique(paths.weight, return_inverse=True)
    return _Grid(paths, shape, powers.astype(np.float64), which)


def _path_sums(out: list[_Grid], across: _Grid, home: _Grid, x: float) -> tuple[Floats, Floats]:
    """Over all paths: sums of c x^(sum S), and of c x^(sum S) sum (S s). Each source item is in one layer only."""
    plain, marked = (part.toarray() for part in home.at(x))
    totals = []
    for grid in (across, *out):  # outwards: bridge items, then near ones, then far ones
        edges, marks = grid.at(x)
        plain, marked = edges @ plain, edges @ marked + marks @ plain  # the rule for the derivative of a product
        totals.append((plain, marked))
    return sum(part for part, _ in totals[1:]) + totals[0][0], sum(part for _, part in totals[1:]) + totals[0][1]


def quadrature_error(nodes: int, largest: int) -> float:
    """The relative error of the rule at sum S = ``largest``.

    It is smaller at smaller sums, because all derivatives are positive.
    """
    points, weights = unit_gauss_legendre(nodes)
    return abs(1.0 - largest * float(weights @ points ** (largest - 1)))


def nodes_for(largest: int) -> int | None:
    """The fewest nodes, of a short list, that are accurate for every sum of S up to ``largest``; None if no number is."""
    return next(
        (nodes for nodes in _NODES if 2 * nodes >= largest or quadrature_error(nodes, largest) <= ACCURACY), None
    )


def multiplications(legs: Legs, nodes: int) -> int:
    """Multiplications at all nodes together."""
    edges = legs.bridge.first.size + legs.near_source.first.size + legs.far_source.first.size
    return 3 * nodes * edges * legs.n_target
