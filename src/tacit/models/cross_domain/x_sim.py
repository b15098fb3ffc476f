"""X-SIM: how similar a source item and a target item are, over all meta-paths between them (Guerraoui et al., PVLDB 2017).

Of a path p with edges e: `s_p = sum S_e s_e / sum S_e` and `c_p = product of the normalised S_e`. X-SIM is the mean of s_p
with weights c_p: a convex combination of cosines, so between -1 and 1. Where there is no path it is undefined, which is not 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit.checks import member, whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.legs import Legs
from tacit.models.cross_domain.x_sim_paths import Paths, Sums, Thirds, Whole, joined, longest, thirds
from tacit.models.cross_domain.x_sim_quadrature import ACCURACY, error, integrated, nodes_for, work

_PATHS = 1 << 20  # listed at a time: about 50 MB
_SPARSE = 16  # cells of a table for each path from which sorting is faster
_CELLS = 1 << 23  # of source items x target items at a time, where all are integrated: 64 MB an array
_FEW_PATHS = 1_000_000  # up to here listing them is faster
_PATH_WORK = 32  # multiplications of matrices that take as long as one listed path


class Way(Enum):
    AUTO = "auto"
    ENUMERATE = "enumerate"
    QUADRATURE = "quadrature"


@dataclass(frozen=True, eq=False)
class XSim:
    """Source items x target items (codes of each domain, from 0), both with one structure: what is stored is defined."""

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


def x_sim(legs: Legs, way: str | Way = Way.AUTO, nodes: int | None = None) -> XSim:
    """X-SIM of all pairs that a path joins. Without one (no user rated in both domains) nothing is stored.

    ``enumerate`` lists the paths, ``quadrature`` integrates (to 1e-9, at a cost that does not grow with their number), ``auto``
    takes the cheaper one that is accurate. ``nodes``: of the quadrature; by default as few as are accurate.
    """
    way = member("way", Way, way)
    if nodes is not None:
        nodes = whole("nodes", nodes, least=1, most=4096)
    parts, n_source, n_target = thirds(legs), int(legs.n_source), int(legs.n_items - legs.n_source)
    if way is not Way.ENUMERATE:
        nodes = _nodes(legs, parts, way, nodes)
    if way is Way.ENUMERATE or nodes is None:
        return _stored(_listed(parts, n_source, n_target), n_source, n_target)
    return _stored(integrated(legs, parts, nodes, _CELLS), n_source, n_target)


def _nodes(legs: Legs, parts: Thirds, way: Way, nodes: int | None) -> int | None:
    """How many nodes to integrate with; None: list the paths instead."""
    largest = max(longest(parts), 1)
    wanted = nodes_for(largest) if nodes is None else nodes
    accurate = wanted is not None and error(wanted, largest) <= ACCURACY
    if way is Way.QUADRATURE and not accurate:
        raise InvalidParameter(
            f"the significances along a path add up to {largest:,}, which {nodes or 'no number of'} nodes do not integrate to "
            f"{ACCURACY:g}. Leave nodes to be chosen, or use way='auto' or 'enumerate'."
        )
    if way is Way.AUTO and accurate:
        paths = int(parts.counts.sum())
        accurate = paths > max(_FEW_PATHS, work(legs, wanted or 1) // _PATH_WORK)
    return wanted if accurate else None


def _listed(parts: Thirds, n_source: int, n_target: int) -> Iterator[Sums]:
    for onward in parts.blocks(_PATHS):
        running = np.cumsum(parts.back.after(onward)[1])
        begin = 0
        while begin < len(onward):  # in one piece, but for an item that has more paths than fit
            done = running[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(running, done + _PATHS, side="right")))
            yield _summed(joined(onward.part(slice(begin, end)), parts.back), n_source, n_target)
            begin = end


def _summed(paths: Paths, n_source: int, n_target: int) -> Sums:
    """Sums over the paths of each pair: in a table where they fill it, by sorting where they do not."""
    first = int(paths.start.min(initial=n_source))
    cell = (paths.start - first) * n_target + (paths.end - n_source)
    names: Whole | None = None  # of the cells: their places, where they are not sorted
    if int(cell.max(initial=-1)) >= _SPARSE * len(paths):
        names, cell = np.unique(cell, return_inverse=True)
    certain: Any = np.bincount(cell, weights=paths.certainty)
    similar: Any = np.bincount(cell, weights=paths.certainty * paths.weighted / paths.weight)
    here = np.flatnonzero(certain)  # a share is above 0, and so is a product of five
    named = here if names is None else names[here]
    return named // n_target + first, named % n_target, similar[here], certain[here]


def _stored(blocks: Iterator[Sums], n_source: int, n_target: int) -> XSim:
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    rows, columns, similar, certain = (np.concatenate(list(part)) for part in zip(nothing, *blocks, strict=True))
    # entries of one place add up: an item's paths may come in several pieces
    sums, certainty = (csr_array((part, (rows, columns)), shape=(n_source, n_target)) for part in (similar, certain))
    for part in (sums, certainty):
        part.sort_indices()
    sums.data = np.clip(sums.data / certainty.data, -1.0, 1.0)  # beyond by a rounding error at most
    return XSim(sums, certainty)
