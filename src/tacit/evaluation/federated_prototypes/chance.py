"""Where randomness comes from: each use has its own, so that no figure depends on what else is tried."""

import hashlib

import numpy as np

from tacit.mechanisms import ReplayedNoise


def noise_of(seed: int, *what: object) -> ReplayedNoise:
    """Noise that nothing else has, replayed from the seed: an evaluation is reproducible, and its releases promise nothing."""
    return ReplayedNoise(_number(seed, what))


def rng_of(seed: int, *what: object) -> np.random.Generator:
    """For worlds, splits, starts of factorisations, and comparisons that are not private."""
    return np.random.default_rng(_number(seed, what))


def _number(seed: int, what: tuple[object, ...]) -> int:
    return int.from_bytes(hashlib.sha256(repr((seed, *what)).encode()).digest()[:16], "big")
