"""How far an item stands from the other domain: a bridge touches it, a near item touches a bridge, a far item a near one."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.models.cross_domain.edges import Edges

Layers = NDArray[np.int8]


class Layer(IntEnum):
    """The layer of an item within its own domain; the paper calls them BB, NB and NN."""

    UNREACHABLE = 0
    BRIDGE = 1
    NEAR = 2
    FAR = 3


def layers(edges: Edges, n_source: int) -> Layers:
    """The layer of every item. Without users in common no item is a bridge, and all are unreachable."""
    n_source = whole("n_source", n_source, least=0, most=edges.n_items)
    rows, items = edges.rows, edges.items
    across = (rows < n_source) != (items < n_source)
    found = np.full(edges.n_items, Layer.UNREACHABLE, dtype=np.int8)
    found[rows[across]] = Layer.BRIDGE
    rows, items = rows[~across], items[~across]
    for inner, outer in ((Layer.BRIDGE, Layer.NEAR), (Layer.NEAR, Layer.FAR)):
        touching = np.unique(rows[found[items] == inner])
        found[touching[found[touching] == Layer.UNREACHABLE]] = outer
    return found
