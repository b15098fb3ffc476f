"""A small store with a random two-tower model, in which people have different tastes, for tests of the server."""

from fractions import Fraction

import numpy as np

from tacit.guarantees import ONE_USER, nothing
from tacit.mechanisms import ReplayedNoise, VectorLaplace
from tacit.messages.multi_selection import Signal
from tacit.messages.store import Store
from tacit.models.features import GenreProfile
from tacit.models.items import Items
from tacit.models.scorers import TwoTower
from tacit.models.scorers import two_tower_shapes as shapes
from tests.releases import message_of

GENRES = 5


def random_network(flags: np.ndarray, seed: int = 0) -> TwoTower:
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(scale=2.0 / np.sqrt(shape[0]), size=shape).astype(np.float32)
        for name, shape in shapes(flags.shape[1]).items()
    }
    weights["user.0.weight"] *= 3.0  # shares are small numbers: without this all users would like the same item
    weights["item.1.weight"] *= 0.1  # scores well inside (0, 5): ties at 5 are for tests of their own
    return TwoTower(weights, flags)


def random_features(count: int, seed: int = 1, genres: int = GENRES) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.dirichlet(np.full(genres, 0.5), count) for _ in range(2)], axis=1)


def small_store(items: int = 60, look_alikes: int = 80, seed: int = 0) -> Store:
    flags = np.random.default_rng(seed + 5).random((items, GENRES)) < 0.4
    public = nothing(ONE_USER, "made up for a test")
    return message_of(
        Store,
        Items(np.arange(items) * 3 + 100),
        GenreProfile(flags),
        random_network(flags, seed),
        random_features(look_alikes).astype(np.float32),
        public,
        public,
        "small",
    )


def signal_of(features: np.ndarray, eta: Fraction = Fraction(1, 10), seed: int = 7) -> Signal:
    mechanism = VectorLaplace(len(features), eta)
    return Signal.from_release(mechanism.release(features, ReplayedNoise(seed)), eta)
