"""X-SIM: how similar a source item and a target item are, over all meta-paths between them (Guerraoui et al., PVLDB 2017).

Of a path p with edges e: `s_p = sum S_e s_e / sum S_e` and `c_p = product of the normalised S_e`. X-SIM is the mean of s_p
with weights c_p: a convex combination of cosines, so between -1 and 1. Where there is no path it is undefined, which is not 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.checks import member, whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.legs import Legs
from tacit.models.cross_domain.x_sim_paths import Thirds, joined, longest, shifted, thirds
from tacit.models.cross_domain.x_sim_quadrature import ACCURACY, error, nodes_for, sums_over_paths

_PATHS = 1 << 21  # listed at a time: about 100 MB
_CELLS = 1 << 23  # of source items x target items at a time: 64 MB an array
_FEW_PATHS = 1_000_000  # up to here listing them is faster


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
        return int(self.values.shape[0])

    @property
    def n_target(self) -> int:
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
        nodes = _nodes(parts, way, nodes)
    if way is Way.ENUMERATE or nodes is None:
        rows = _listed(parts, n_source, n_target)
    else:
        rows = _integrated(parts, n_source, n_target, nodes)
    return _stored(rows, n_source, n_target)


def _nodes(parts: Thirds, way: Way, nodes: int | None) -> int | None:
    """How many nodes to integrate with; None: list the paths instead."""
    largest = longest(parts)
    enough = nodes_for(largest)
    if way is Way.AUTO:
        wanted = nodes or enough
        if wanted is None or error(wanted, max(largest, 1)) > ACCURACY:
            return None
        paths = int(parts.counts.sum())
        # A node multiplies each pair (source item, target bridge item) once, however many paths lead there; by then the
        # partial paths out ⋈ bridge are merged, and at least these are left to be read at every node.
        _, onward = parts.bridge.after(parts.out)
        return wanted if paths > max(_FEW_PATHS, wanted * int(onward.sum())) else None
    if enough is None or (nodes is not None and error(nodes, max(largest, 1)) > ACCURACY):
        needed = "no number of nodes is" if enough is None else f"{enough} are"
        raise InvalidParameter(
            f"the longest path has a sum of significances of {largest:,}; {nodes or 'the'} nodes do not integrate it to "
            f"{ACCURACY:g}, {needed} enough. Use way='enumerate' or 'auto'."
        )
    return nodes or enough


Block = tuple[int, NDArray[np.float64], NDArray[np.float64]]  # first source item; sums of c s and of c


def _listed(parts: Thirds, n_source: int, n_target: int) -> Iterator[Block]:
    for places, first, rows in parts.blocks(_CELLS, n_target, _PATHS):
        onward = joined(parts.out.part(places), parts.bridge)
        running = np.cumsum(parts.back.after(onward)[1])
        similar, certain = np.zeros((2, rows * n_target))
        begin = 0
        while begin < len(onward):  # one item may hold more paths than fit
            done = running[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(running, done + _PATHS, side="right")))
            paths = joined(onward.part(slice(begin, end)), parts.back)
            cell = (paths.start - first) * n_target + (paths.end - n_source)
            mean = paths.certainty * paths.weighted / paths.weight
            similar += np.bincount(cell, weights=mean, minlength=similar.size)
            certain += np.bincount(cell, weights=paths.certainty, minlength=similar.size)
            begin = end
        yield first, similar.reshape(rows, n_target), certain.reshape(rows, n_target)


def _integrated(parts: Thirds, n_source: int, n_target: int, nodes: int) -> Iterator[Block]:
    everything = int(parts.counts.sum())
    for places, first, rows in parts.blocks(_CELLS, n_target, everything):
        out = shifted(parts.out.part(places), -first, 0)
        yield first, *sums_over_paths(parts, out, rows, n_source, n_target, nodes)


def _stored(blocks: Iterator[Block], n_source: int, n_target: int) -> XSim:
    rows, columns, values, certainties = [], [], [], []
    for first, similar, certain in blocks:
        row, column = np.nonzero(certain)
        rows.append(row + first)
        columns.append(column)
        certainties.append(certain[row, column])
        values.append(np.clip(similar[row, column] / certainties[-1], -1.0, 1.0))  # beyond by a rounding error at most
    counts = np.bincount(np.concatenate([np.zeros(0, dtype=np.int64), *rows]), minlength=n_source)
    starts = np.concatenate([[0], np.cumsum(counts)])
    items = np.concatenate([np.zeros(0, dtype=np.int64), *columns])
    shape = (n_source, n_target)
    return XSim(
        csr_array((np.concatenate([np.zeros(0), *values]), items, starts), shape=shape),
        csr_array((np.concatenate([np.zeros(0), *certainties]), items.copy(), starts.copy()), shape=shape),
    )
