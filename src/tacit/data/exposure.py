"""Which items a user of a synthetic world rates: popular ones more often, agreeable ones more often, each once."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 16  # of drawing what is still missing; a heavy user of a small catalogue may end a little short
_RELUCTANCE = np.float32(1.0)  # an item that leaves a user cold is rated on one of four occasions
_PAIRS_PER_CHUNK = 1 << 18  # bounds the memory, whatever the size of the world


@dataclass(frozen=True, slots=True)
class Exposure:
    tastes: NDArray[np.float32]  # users x rank
    factors: NDArray[np.float32]  # items x rank
    popularity: NDArray[np.float64]  # of each item, sums to 1
    selectivity: float  # how strongly taste decides what is rated; 0: not at all


def rated_pairs(
    targets: NDArray[np.int64], exposure: Exposure, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
    """Users, items and affinities, sorted by user, then item, in chunks; ``targets[u]`` items for user ``u``."""
    ends = np.cumsum(targets)
    edges = np.searchsorted(
        ends, np.arange(_PAIRS_PER_CHUNK, ends[-1] + _PAIRS_PER_CHUNK, _PAIRS_PER_CHUNK), side="right"
    )
    bounds = np.unique(np.concatenate([[0], np.minimum(edges + 1, targets.size), [targets.size]]))
    cumulative = np.cumsum(exposure.popularity)
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        users, items = _chunk(np.arange(low, high), targets[low:high], exposure, cumulative, rng)
        yield users, items, _affinity(exposure, users, items)


def _chunk(
    users: NDArray[np.int64],
    targets: NDArray[np.int64],
    exposure: Exposure,
    cumulative: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n_items = exposure.popularity.size
    pairs = np.zeros(0, dtype=np.int64)  # user's place in the chunk x items + item, ascending
    for _ in range(_ROUNDS):
        wanted = targets - np.bincount(pairs // n_items, minlength=users.size)
        if not wanted.any():
            break
        drawn = np.repeat(np.arange(users.size), 3 * wanted)
        items = np.searchsorted(cumulative, rng.random(drawn.size) * cumulative[-1], side="right")
        liking = _affinity(exposure, users[drawn], items) * np.float32(exposure.selectivity)
        taken = rng.random(drawn.size, dtype=np.float32) * (1 + np.exp(_RELUCTANCE - liking)) < 1
        candidates = drawn[taken] * n_items + items[taken]
        _, first = np.unique(candidates, return_index=True)
        candidates = candidates[
            np.sort(first)
        ]  # in the order of drawing, so that no item is favoured when some are cut
        candidates = candidates[~np.isin(candidates, pairs, assume_unique=True)]
        place = candidates // n_items
        rank = np.arange(place.size) - np.searchsorted(place, place)
        pairs = np.sort(np.concatenate([pairs, candidates[rank < wanted[place]]]))
    return users[pairs // n_items], pairs % n_items


def _affinity(exposure: Exposure, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
    product: NDArray[np.float32] = np.einsum("ij,ij->i", exposure.tastes[users], exposure.factors[items])
    return product
