"""X-SIM without listing paths: the division by sum S becomes an integral, and sums over paths become products of matrices.

`1/sum S = integral of x^(sum S - 1) over 0..1`. At a node x an edge weighs share x^S, and, once on each path, S s share x^S:
products of such matrices add up c_p s_p sum S_p x^(sum S_p) over all paths. Gauss-Legendre nodes are exact up to sum S = twice
their number; beyond, their relative error grows with sum S alone, so that the largest sum decides how many nodes it takes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.models.cross_domain.legs import Legs
from tacit.models.cross_domain.x_sim_paths import Paths, Sums, Thirds, of_leg, shifted

Floats = NDArray[np.float64]

ACCURACY = 1e-9  # relative, of each path's similarity
_NODES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@lru_cache(maxsize=len(_NODES))
def rule(nodes: int) -> tuple[Floats, Floats]:
    """Nodes and weights on 0..1."""
    places, weights = np.polynomial.legendre.leggauss(nodes)
    return (places + 1.0) / 2.0, weights / 2.0


def error(nodes: int, largest: int) -> float:
    """The relative error of the rule at sum S = ``largest``; smaller sums have a smaller one (all derivatives are positive)."""
    places, weights = rule(nodes)
    return abs(1.0 - largest * float(weights @ places ** (largest - 1)))


def nodes_for(largest: int) -> int | None:
    """The fewest nodes (of a short list) that are accurate for every sum of S up to ``largest``; None where none is."""
    return next((nodes for nodes in _NODES if 2 * nodes >= largest or error(nodes, largest) <= ACCURACY), None)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Edges, or partial paths, as matrices: one for each x, on one structure."""

    paths: Paths
    shape: tuple[int, int]
    powers: Floats  # the different sums of S
    which: NDArray[Any]

    def at(self, x: float) -> tuple[Any, Any]:
        """Sums over the paths of c x^(sum S), and of c x^(sum S) sum (S s)."""
        plain = self.paths.certainty * (x**self.powers)[self.which]
        return self._matrix(plain), self._matrix(plain * self.paths.weighted)

    def _matrix(self, values: Floats) -> Any:
        return csr_array((values, (self.paths.start, self.paths.end)), shape=self.shape)


def _grid(paths: Paths, shape: tuple[int, int]) -> _Grid:
    powers, which = np.unique(paths.weight, return_inverse=True)
    return _Grid(paths, shape, powers.astype(np.float64), which)


def integrated(legs: Legs, parts: Thirds, nodes: int, cells: int) -> Iterator[Sums]:
    """Sums of c_p s_p and of c_p for all source items and some target items at a time."""
    n_source, n_target = int(legs.n_source), int(legs.n_items - legs.n_source)
    square = (n_source, n_source)
    out = [_grid(of_leg(leg), square) for leg in (legs.near_source, legs.far_source)]
    across = _grid(shifted(parts.bridge, 0, -n_source), (n_source, n_target))
    step = max(1, cells // max(n_source, 1))
    for first in range(0, n_target, step):
        columns = min(step, n_target - first)
        back = parts.back.part((parts.back.end >= n_source + first) & (parts.back.end < n_source + first + columns))
        home = _grid(shifted(back, -n_source, -n_source - first), (n_target, columns))
        total = np.zeros((n_source, columns))
        for x, weight in zip(*rule(nodes), strict=True):
            total += _sums(out, across, home, x)[1] * (weight / x)
        certain = _sums(out, across, home, 1.0)[0]
        rows, found = np.nonzero(certain)  # a share is above 0, and so is a product of five
        yield rows, found + first, total[rows, found], certain[rows, found]


def _sums(out: list[_Grid], across: _Grid, home: _Grid, x: float) -> tuple[Floats, Floats]:
    """Over all paths: sums of c x^(sum S), and of c x^(sum S) sum (S s). Each source item stands in one layer only."""
    plain, marked = (part.toarray() for part in home.at(x))
    totals = []
    for grid in (across, *out):  # a step outwards: bridge items, then near ones, then far ones
        edges, marks = grid.at(x)
        plain, marked = edges @ plain, edges @ marked + marks @ plain  # the rule for the derivative of a product
        totals.append((plain, marked))
    return sum(one for one, _ in totals[1:]) + totals[0][0], sum(one for _, one in totals[1:]) + totals[0][1]


def work(legs: Legs, nodes: int) -> int:
    """Multiplications at all nodes together."""
    edges = legs.bridge.first.size + legs.near_source.first.size + legs.far_source.first.size
    return 3 * nodes * int(edges) * int(legs.n_items - legs.n_source)
