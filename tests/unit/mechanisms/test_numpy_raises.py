"""A caller who has numpy raise is told of no underflow and no overflow in private numbers: the releases are the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import (
    ExponentialMechanism,
    FeatureBox,
    GramShare,
    GridPrototypes,
    GumbelTopK,
    LocalSwaps,
    PopularityShare,
    PrivatePartition,
    ProfileBounds,
    ReplayedNoise,
    SparseRecovery,
    TreePrototypes,
    VoteTotals,
)

RNG = np.random.default_rng(0)
POINTS = RNG.integers(-60_000, 60_000, (5000, 3))
ROWS = RNG.random((5000, 200)) ** 8 * 5.0
FAR = np.where(RNG.random((400, 6)) < 0.5, 1e308, 5e-324)
WIDE = ProfileBounds(200, 200, 5.0)

RELEASES: dict[str, Callable[[Any], Any]] = {
    "partition": lambda noise: PrivatePartition(3, 6, 1.0).release(POINTS, noise),
    "swaps": lambda noise: LocalSwaps(5, 50.0, 4).release(POINTS, POINTS[:300], noise),
    "swaps at any price": lambda noise: LocalSwaps(5, 1e300, 4).release(POINTS, POINTS[:300], noise),
    "recovery": lambda noise: SparseRecovery(WIDE, 4, 20, 1.0, 1e5, 1.0).release(ROWS, np.arange(5000) % 4, noise),
    "recovery of few": lambda noise: SparseRecovery(ProfileBounds(6, 6, 1e-200), 2, 3, 1.0, 1e300, 1.0).release(
        FAR, np.arange(400) % 2, noise
    ),
    "recovery of tiny values": lambda noise: SparseRecovery(
        ProfileBounds(6, 6, 1e-250), 2, 3, 1.0, 1.0, 1.0, 1e60
    ).release(FAR, np.arange(400) % 2, noise),
    "grid": lambda noise: GridPrototypes(WIDE, 5, 1e5, 5000, trials=2, repetitions=2).release(ROWS, noise),
    "grid of extremes": lambda noise: GridPrototypes(ProfileBounds(6, 3, 1e250), 3, 1e5, 400, trials=3).release(
        FAR, noise
    ),
    "tree": lambda noise: TreePrototypes(WIDE, 5, 100.0, 1e-6).release(ROWS, noise),
    "tree of a box": lambda noise: TreePrototypes(FeatureBox.cube(6, -1.0, 1.0), 3, 5.0, 1e-6).release(FAR, noise),
    "popularity": lambda noise: PopularityShare(200, 0.5, 1e-6).release(ROWS, noise),
    "gram": lambda noise: GramShare(200, tuple(range(40)), 0.5, 1e-6).release(ROWS, noise),
    "one choice of many": lambda noise: ExponentialMechanism(VoteTotals(), 50.0).release(ROWS, noise),
    "some choices of many": lambda noise: GumbelTopK(VoteTotals(), 3, 500.0).release(ROWS, noise),
}


def numbers(value: Any) -> list[Any]:
    parts = [getattr(value, name) for name in ("centres", "sizes", "steps") if hasattr(value, name)]
    return [np.asarray(part).tolist() for part in parts or [value]]


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_releases_of_large_data_are_the_same_where_numpy_raises(release: Callable[[Any], Any]) -> None:
    quiet = release(ReplayedNoise(3)).value
    with np.errstate(all="raise"):
        loud = release(ReplayedNoise(3)).value
    assert str(numbers(loud)) == str(numbers(quiet))  # as text: NaN stands for what was not released
