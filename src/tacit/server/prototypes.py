"""What the server makes of entities' prototypes: items' factors for all, item means, and who moved the factors how far.

Everything here is computed from releases: it costs no privacy. Nothing is drawn but by the public seed.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.models.nonnegative_stack import Factorisation, Released, Stack, known_cells

__all__ = ["Factorisation", "influence", "item_means", "shared_items"]

Floats = NDArray[np.float64]

_INFLUENCE_EPOCHS = 5


def shared_items(released: Mapping[str, Released], how: Factorisation) -> Floats:
    """V (items x rank) from the prototypes of all entities, in whichever order these came."""
    return how.items(_stack(released, how))


def influence(released: Mapping[str, Released], items: Floats, how: Factorisation) -> dict[str, float]:
    """How far V moves without each entity, as a part of its size: |V - V_without| / |V|.

    Both go on from ``items`` for a few epochs, so that the difference is the entity's and not that of another start. Entities whose
    prototypes are like the others' have little influence; one far above the rest deserves a look.
    """
    if len(released) < 2:
        raise InvalidParameter("influence compares a model with the one without an entity: at least 2 are needed.")
    if not items.any():
        return dict.fromkeys(sorted(released), 0.0)
    whole = how.items(_stack(released, how), start=items, epochs=_INFLUENCE_EPOCHS)
    size = float(np.linalg.norm(whole))
    moved = {}
    for name in sorted(released):
        others = {other: one for other, one in released.items() if other != name}
        without = how.items(_stack(others, how), start=items, epochs=_INFLUENCE_EPOCHS)
        moved[name] = float(np.linalg.norm(whole - without)) / size if size > 0.0 else 0.0
    return moved


def item_means(released: Mapping[str, Released], *, zeros_observed: bool = False, trim: float = 0.0) -> Floats:
    """The mean over entities of each entity's item mean (by its sizes); NaN where nothing is known.

    ``zeros_observed`` as in `Factorisation`: without it a released 0 is unknown, and in no mean.

    ``trim``: the part of the entities that is left out at each end, item by item, rounded down. No single entity can then move a
    mean beyond what others released, as soon as that part is one entity.
    """
    if not 0.0 <= trim < 0.5:
        raise InvalidParameter(f"trim must be at least 0 and below 0.5, not {trim}.")
    means = np.array([_own_means(released[name], zeros_observed) for name in sorted(released)])
    told = (~np.isnan(means)).sum(axis=0)
    cut = np.floor(trim * told).astype(np.int64)
    ordered = np.sort(means, axis=0)  # NaN comes last
    place = np.arange(len(means))[:, None]
    kept = (place >= cut) & (place < told - cut)
    counts = kept.sum(axis=0)
    sums = np.where(kept, ordered, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _own_means(one: Released, zeros_observed: bool) -> Floats:
    known = known_cells(one.centres, zeros_observed=zeros_observed)
    weights = np.maximum(one.sizes, 0.0)[:, None] * known
    weights = np.where(weights.sum(axis=0) > 0.0, weights, known)  # sizes that noise made 0 say nothing
    total = weights.sum(axis=0)
    sums = (weights * np.where(known, one.centres, 0.0)).sum(axis=0)
    return np.where(total > 0.0, sums / np.where(total > 0.0, total, 1.0), np.nan)


def _stack(released: Mapping[str, Released], how: Factorisation) -> Stack:
    return how.stack([released[name] for name in sorted(released)])
