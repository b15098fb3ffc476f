"""The one place where a release is made: the mechanism's guarantee, unless the noise itself promises nothing."""

from typing import TypeVar

from tacit.guarantees import Guarantee, Release, nothing
from tacit.mechanisms.noise import Noise

T = TypeVar("T")


def released(value: T, guarantee: Guarantee, noise: Noise) -> Release[T]:
    """``value`` as a release under ``guarantee``; with replayed noise the release says that it promises nothing."""
    if noise.caveat is None:
        return Release(value, guarantee)
    return Release(value, nothing(guarantee.protects, noise.caveat, proof=guarantee.proof))
