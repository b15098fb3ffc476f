"""The edges that paths from a source item to a target item may take: the k best of each item towards the other domain."""

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.edges import By, Codes, Edges, Floats, Ints, best_of_groups, goodness
from tacit.models.cross_domain.layers import Layer, Layers


@dataclass(frozen=True, eq=False, repr=False)
class Leg:
    """Pruned edges of one kind, ascending by (first, second): ``first`` is the item that chose the edge, the outer one.

    Items are codes of the union, also in the target. Of a bridge ``first`` is the source item and ``second`` the target item.
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
    """A path goes [far source, near source,] bridge source - bridge target [, near target, far target], each at most once."""

    n_items: int
    n_source: int
    far_source: Leg
    near_source: Leg
    bridge: Leg
    near_target: Leg
    far_target: Leg


def checked_order(by: str) -> By:
    """``by``, if it is an order that edges are ranked in."""
    if by not in get_args(By):
        raise InvalidParameter("by must be 'signed' (most similar first) or 'absolute' (strongest first).")
    return by  # type: ignore[return-value]


def pruned(edges: Edges, layers: Layers, n_source: int, k: int = 10, by: By = "signed") -> Legs:
    """Each far item keeps its k best edges to near items, each near one to bridges, each source bridge to target bridges.

    Best is most similar, or of largest |s| where ``by`` is "absolute"; ties go to the lower item.
    """
    n_source = whole("n_source", n_source, least=0, most=edges.n_items)
    k, by = whole("k", k, least=1), checked_order(by)
    kinds = layers.astype(np.int8) + 4 * (np.arange(edges.n_items) >= n_source).astype(np.int8)
    towards = (
        8 * np.repeat(kinds, np.diff(edges.starts)) + kinds[edges.items]
    )  # of both ends: layer, and 4 in the target

    def leg(outer: int, inner: int) -> Leg:
        places = np.flatnonzero(towards == 8 * outer + inner)
        rows = (np.searchsorted(edges.starts, places, side="right") - 1).astype(np.int32)
        best = best_of_groups(rows, goodness(edges.cosine[places], by), k)
        return _at(edges, rows[best], places[best])

    return Legs(
        edges.n_items,
        n_source,
        far_source=leg(Layer.FAR, Layer.NEAR),
        near_source=leg(Layer.NEAR, Layer.BRIDGE),
        bridge=leg(Layer.BRIDGE, 4 + Layer.BRIDGE),
        near_target=leg(4 + Layer.NEAR, 4 + Layer.BRIDGE),
        far_target=leg(4 + Layer.FAR, 4 + Layer.NEAR),
    )


def _at(edges: Edges, rows: Codes, places: NDArray[np.intp]) -> Leg:
    return Leg(rows, edges.items[places], edges.cosine[places], edges.significance[places], edges.share[places])
