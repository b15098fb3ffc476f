"""A store with 19 genres, as in the paper: 38 features. With fewer than the 20 principal components these could tell nothing."""

import numpy as np

from tacit.guarantees import ONE_USER, nothing
from tacit.messages.store import Store
from tacit.models.features import GenreProfile
from tacit.models.items import Items
from tests.releases import message_of
from tests.unit.server.small_store import random_features, random_network

GENRES = 19


def tiny_store(items: int = 120, look_alikes: int = 60, seed: int = 0) -> Store:
    flags = np.random.default_rng(seed + 5).random((items, GENRES)) < 0.15
    public = nothing(ONE_USER, "made up for a test")
    people = random_features(look_alikes, genres=GENRES).astype(np.float32)
    return message_of(
        Store,
        Items(np.arange(items) * 3 + 100),
        GenreProfile(flags),
        random_network(flags, seed),
        people,
        public,
        public,
        "tiny",
    )


def tiny_users(count: int, seed: int = 9) -> np.ndarray:
    return random_features(count, seed, GENRES)
