"""X-SIM without listing paths: the division by sum S becomes an integral, and sums over paths become products of matrices.

`1/sum S = integral of x^(sum S - 1) over 0..1`. At a node x an edge weighs share x^S, and, once on each path, S s share x^S:
products of such matrices add up c_p s_p sum S_p x^(sum S_p) over all paths. Gauss-Legendre nodes are exact up to sum S = twice
their number; beyond, their relative error grows with sum S alone, so that the largest sum decides how many nodes it takes.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.models.cross_domain.x_sim_paths import Paths, Thirds, shifted

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
    """Paths as matrices: one for each x, on one structure."""

    paths: Paths
    shape: tuple[int, int]
    powers: NDArray[Any]  # the different sums of S
    which: NDArray[Any]

    def at(self, x: float) -> tuple[Any, Any]:
        """Sums over paths of c x^(sum S), and of c x^(sum S) sum (S s)."""
        plain = self.paths.certainty * (x**self.powers)[self.which]
        return self._matrix(plain), self._matrix(plain * self.paths.weighted)

    def _matrix(self, values: Floats) -> Any:
        return csr_array((values, (self.paths.start, self.paths.end)), shape=self.shape)


def _grid(paths: Paths, shape: tuple[int, int]) -> _Grid:
    powers, which = np.unique(paths.weight, return_inverse=True)
    return _Grid(paths, shape, powers.astype(np.float64), which)


def sums_over_paths(parts: Thirds, out: Paths, rows: int, n_source: int, n_target: int, nodes: int) -> tuple[Any, Any]:
    """Dense rows x target items: sums of c_p s_p and of c_p, for the partial paths ``out`` of source items 0 to rows."""
    left = _grid(out, (rows, n_source))
    across = _grid(shifted(parts.bridge, 0, -n_source), (n_source, n_target))
    right = _grid(shifted(parts.back, -n_source, -n_source), (n_target, n_target))
    total = np.zeros((rows, n_target))
    for x, weight in zip(*rule(nodes), strict=True):
        # the derivative of a product: S s stands once in each of the three places
        (one, one_s), (two, two_s), (three, three_s) = left.at(x), across.at(x), right.at(x)
        total += ((one_s @ two + one @ two_s) @ three + (one @ two) @ three_s).toarray() * (weight / x)
    certain = (left.at(1.0)[0] @ across.at(1.0)[0]) @ right.at(1.0)[0]
    return total, certain.toarray()
