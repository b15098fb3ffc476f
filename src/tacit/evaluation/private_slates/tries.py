"""One method at one epsilon: the slates it gave, what they cost, and where its randomness came from."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tacit.evaluation.effort import Effort
from tacit.evaluation.private_slates.films import Items
from tacit.guarantees import Guarantee
from tacit.mechanisms import ReplayedNoise

K = 10
INF = "inf"  # an epsilon in a setting: JSON has no infinity
MANY = {Effort.QUICK: 60, Effort.DEFAULT: 150, Effort.FULL: 600}  # slates
FEW = {Effort.QUICK: 10, Effort.DEFAULT: 25, Effort.FULL: 60}  # where every slate needs releases of its own


class Tried(NamedTuple):
    """``slates`` x k. ``groups``: slates of one group come from one release, so that only groups are independent."""

    method: str
    epsilon: float | str
    slates: Items
    guarantee: Guarantee | None = None  # of one slate, or of the release that all slates come from; None: no privacy
    groups: Items | None = None


def noise_of(seed: int, method: str, epsilon: float | str) -> ReplayedNoise:
    """Noise that no other method or epsilon has: figures do not depend on what else is tried."""
    return ReplayedNoise(int.from_bytes(f"{seed} {method} {epsilon}".encode(), "big"))


def rng_of(seed: int, method: str) -> np.random.Generator:
    """For what is public or not private at all: orders, uniform filling, slates of what was released."""
    return np.random.default_rng([seed, 60, *method.encode()])


def stacked(slates: Iterable[Items]) -> Items:
    """Slates in ascending order of their items, one in each row."""
    return np.sort(np.array(list(slates), dtype=np.int64), axis=1)
