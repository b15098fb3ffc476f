"""Layers and legs of many items straight from the ratings, without the edges ever being held.

A bridge is an item with an edge across, so that the pairs across say which items are bridges and which edges they keep. The pairs
of other items with the bridges of their domain then do the same for near items, and those of the rest with near items for far ones.
No pair is looked at twice, and pairs that no leg can hold are not looked at at all.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.models.cross_domain.centred import centred, checked_shrinking
from tacit.models.cross_domain.edges import By
from tacit.models.cross_domain.layers import Layer, Layers
from tacit.models.cross_domain.legs import Leg, Legs, checked_order
from tacit.models.cross_domain.similarities import SHRINK
from tacit.models.cross_domain.similarity_loops import Way, chosen


def streamed(
    ratings: Any,
    n_source: int,
    k: int = 10,
    *,
    by: By = "signed",
    shrink: int = SHRINK,
    most_each: int | None = None,
    times: NDArray[np.int64] | None = None,
    way: Way | str = Way.AUTO,
    threads: int = 1,
) -> tuple[Layers, Legs]:
    """What `layers` and `pruned` say of the edges of ``ratings``, in memory of the order of the ratings and k edges an item."""
    shrink, threads = checked_shrinking(shrink), whole("threads", threads, least=1)
    k, by = whole("k", k, least=1), checked_order(by)
    table = centred(ratings, most_each, times)
    n_source = whole("n_source", n_source, least=0, most=table.n_items)
    loops, dense = chosen(way, table)
    found = np.full(table.n_items, Layer.UNREACHABLE, dtype=np.int8)

    def leg(outer: NDArray[Any], inner: NDArray[Any]) -> tuple[Leg, NDArray[Any]]:
        """The edges that outer items keep, and the inner items that have one."""
        pairs, touched = loops.best_across(
            table.part(outer), table.part(inner), k, shrink, by, dense=dense, threads=threads
        )
        return Leg(outer[pairs.first], inner[pairs.second], *pairs[2:]), inner[touched]

    items = np.arange(table.n_items, dtype=np.int32)
    domains = items[:n_source], items[n_source:]
    bridge, reached = leg(*domains)
    found[bridge.first] = Layer.BRIDGE
    found[reached] = Layer.BRIDGE
    legs = []
    for inner, outer in ((Layer.BRIDGE, Layer.NEAR), (Layer.NEAR, Layer.FAR)):
        for own in domains:
            kept, _ = leg(own[found[own] == Layer.UNREACHABLE], own[found[own] == inner])
            found[kept.first] = outer
            legs.append(kept)
    near_source, near_target, far_source, far_target = legs
    return found, Legs(table.n_items, n_source, far_source, near_source, bridge, near_target, far_target)
