"""Similarities of items from ratings, and the edges that paths between two domains may take.

`edges_of` computes all edges between items, `layers` says how far each item is from the other domain, and `pruned`
keeps the k best edges of each item towards it. `streamed` does all three straight from the ratings, in less memory.
The loops over pairs of items are compiled by numba (extra `fast`), or numpy with sparse or dense products.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import member, whole
from tacit.models import loops
from tacit.models.arrays import Array, Codes, Floats, Ints
from tacit.models.cross_domain import loops_plain
from tacit.models.cross_domain.edges import (
    By,
    CentredRatings,
    Edges,
    best_of_groups,
    centred,
    checked_order,
    goodness,
)

_MOST_DENSE = 5000  # items: dense tables of 5,000 x 5,000 take 600 MB
_DENSE_GAIN = 300.0  # multiply-adds of a dense product in the time of one step of a sparse one
SHRINK = 50  # common raters


class SimilarityMethod(StrEnum):
    """How pairs are summed. All methods give the same edges; cosines differ in the last bits."""

    AUTO = "auto"
    COMPILED = "compiled"
    DENSE = "dense"
    PLAIN = "plain"


def edges_of(
    ratings: Any,
    *,
    shrink: int = SHRINK,
    most_each: int | None = None,
    times: Ints | None = None,
    method: SimilarityMethod | str = SimilarityMethod.AUTO,
    threads: int = 1,
) -> Edges:
    """Every edge between two items of ``ratings``, users x items.

    A cosine with fewer than ``shrink`` common raters is shrunk in proportion; 0 shrinks none. ``most_each`` caps the
    ratings of each user (see `capped`). Memory grows with the number of edges: `streamed` keeps only the best.
    """
    shrink, threads = whole("shrink", shrink, least=0), whole("threads", threads, least=1)
    table = centred(ratings, most_each, times)
    pair_loops, dense = choose_loops(method, table)
    edges: Edges = pair_loops.all_edges(table, shrink, dense=dense, threads=threads)
    return edges


Layers = NDArray[np.int8]


class Layer(IntEnum):
    """How far an item is from the other domain: a bridge touches it, a near item touches a bridge, a far item a near one.

    The paper says BB, NB, NN.
    """

    UNREACHABLE = 0
    BRIDGE = 1
    NEAR = 2
    FAR = 3


def layers(edges: Edges, n_source: int) -> Layers:
    """The layer of every item. Without users in common no item is a bridge, and all are unreachable."""
    n_source = whole("n_source", n_source, least=0, most=edges.n_items)
    rows, items = edges.rows, edges.items
    across = (rows < n_source) != (items < n_source)
    layer = np.full(edges.n_items, Layer.UNREACHABLE, dtype=np.int8)
    layer[rows[across]] = Layer.BRIDGE
    rows, items = rows[~across], items[~across]
    for inner, outer in ((Layer.BRIDGE, Layer.NEAR), (Layer.NEAR, Layer.FAR)):
        touching = np.unique(rows[layer[items] == inner])
        layer[touching[layer[touching] == Layer.UNREACHABLE]] = outer
    return layer


@dataclass(frozen=True, eq=False, repr=False)
class Leg:
    """Pruned edges of one kind, ascending by (first, second). ``first`` is the outer item, which chose the edge.

    Items are codes of the union of both domains, also in the target. In a bridge ``first`` is the source item and
    ``second`` the target item.
    """

    first: Codes
    second: Codes
    cosine: Floats
    significance: Ints
    share: Floats

    def __repr__(self) -> str:
        return f"Leg({self.first.size} edges)"


@dataclass(frozen=True, eq=False)
class Legs:
    """The pruned edges of all paths.

    A path takes [far source, near source,] bridge source - bridge target [, near target, far target], each at most
    once.
    """

    n_items: int
    n_source: int
    far_source: Leg
    near_source: Leg
    bridge: Leg
    near_target: Leg
    far_target: Leg

    @property
    def n_target(self) -> int:
        """How many items the target domain has."""
        return self.n_items - self.n_source


def pruned(edges: Edges, layers: Layers, n_source: int, k: int = 10, by: By = "signed") -> Legs:
    """Each far item keeps its k best edges to near items, each near item to bridges, each source bridge to target bridges.

    Best is most similar, or of largest |s| if ``by`` is "absolute"; ties go to the lower item.
    """
    n_source = whole("n_source", n_source, least=0, most=edges.n_items)
    k, by = whole("k", k, least=1), checked_order(by)
    kinds = layers.astype(np.int8) + 4 * (np.arange(edges.n_items) >= n_source).astype(np.int8)
    # Of both ends: the layer, plus 4 in the target.
    towards = 8 * np.repeat(kinds, np.diff(edges.starts)) + kinds[edges.items]

    def leg(outer: int, inner: int) -> Leg:
        entries = np.flatnonzero(towards == 8 * outer + inner)
        rows = (np.searchsorted(edges.starts, entries, side="right") - 1).astype(np.int32)
        best = best_of_groups(rows, goodness(edges.cosine[entries], by), k)
        kept = entries[best]
        return Leg(rows[best], edges.items[kept], edges.cosine[kept], edges.significance[kept], edges.share[kept])

    return Legs(
        edges.n_items,
        n_source,
        far_source=leg(Layer.FAR, Layer.NEAR),
        near_source=leg(Layer.NEAR, Layer.BRIDGE),
        bridge=leg(Layer.BRIDGE, 4 + Layer.BRIDGE),
        near_target=leg(4 + Layer.NEAR, 4 + Layer.BRIDGE),
        far_target=leg(4 + Layer.FAR, 4 + Layer.NEAR),
    )


def streamed(
    ratings: Any,
    n_source: int,
    k: int = 10,
    *,
    by: By = "signed",
    shrink: int = SHRINK,
    most_each: int | None = None,
    times: Ints | None = None,
    method: SimilarityMethod | str = SimilarityMethod.AUTO,
    threads: int = 1,
) -> tuple[Layers, Legs]:
    """`layers` and `pruned` straight from ``ratings``, in memory for the ratings and k edges per item.

    A bridge is an item with an edge across, so the pairs across show which items are bridges and which edges they
    keep. The pairs of other items with the bridges of their domain then do the same for near items, and the pairs of
    the rest with near items for far ones. No pair is computed twice, and pairs that no leg can hold are never
    computed.
    """
    shrink, threads = whole("shrink", shrink, least=0), whole("threads", threads, least=1)
    k, by = whole("k", k, least=1), checked_order(by)
    table = centred(ratings, most_each, times)
    n_source = whole("n_source", n_source, least=0, most=table.n_items)
    pair_loops, dense = choose_loops(method, table)
    layer = np.full(table.n_items, Layer.UNREACHABLE, dtype=np.int8)

    def leg(outer: Array, inner: Array) -> tuple[Leg, Array]:
        """The edges that outer items keep, and the inner items that have one."""
        pairs, touched = pair_loops.best_across(
            table.part(outer), table.part(inner), k, shrink, by, dense=dense, threads=threads
        )
        return Leg(outer[pairs.first], inner[pairs.second], *pairs[2:]), inner[touched]

    items = np.arange(table.n_items, dtype=np.int32)
    domains = items[:n_source], items[n_source:]
    bridge, reached = leg(*domains)
    layer[bridge.first] = Layer.BRIDGE
    layer[reached] = Layer.BRIDGE
    legs = []
    for inner, outer in ((Layer.BRIDGE, Layer.NEAR), (Layer.NEAR, Layer.FAR)):
        for own in domains:
            kept, _ = leg(own[layer[own] == Layer.UNREACHABLE], own[layer[own] == inner])
            layer[kept.first] = outer
            legs.append(kept)
    near_source, near_target, far_source, far_target = legs
    return layer, Legs(table.n_items, n_source, far_source, near_source, bridge, near_target, far_target)


def choose_loops(method: SimilarityMethod | str, table: CentredRatings) -> tuple[ModuleType, bool]:
    """The loops over pairs, and whether their products are dense. By default compiled if numba is installed, for every table."""
    method = member("method", SimilarityMethod, method)
    compiled = None if method is SimilarityMethod.AUTO else method is SimilarityMethod.COMPILED
    if loops.use_compiled(compiled):
        from tacit.models.cross_domain import loops_compiled

        return loops_compiled, False
    return loops_plain, _dense_pays(table) if compiled is None else method is SimilarityMethod.DENSE


def _dense_pays(table: CentredRatings) -> bool:
    """Whether dense products are faster.

    Sparse ones take sum m^2 steps over users of m ratings, dense ones users * items^2 much shorter steps.
    """
    profile = (table.starts[1:] - table.starts[:-1]).astype(float)
    return table.n_items <= _MOST_DENSE and table.n_users * table.n_items**2 <= _DENSE_GAIN * float(profile @ profile)
