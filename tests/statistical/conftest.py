"""Seeds are fixed by default and free with ``TACIT_SEED=fresh``: no test may depend on one lucky value."""

import os

import numpy as np
import pytest

from tacit.mechanisms import SYSTEM_NOISE, Noise, ReplayedNoise

FRESH = os.environ.get("TACIT_SEED") == "fresh"


@pytest.fixture
def noise() -> Noise:
    """Privacy noise for a test: replayed, or the operating system's when seeds are free."""
    return SYSTEM_NOISE if FRESH else ReplayedNoise(20_240_229)


@pytest.fixture
def rng() -> np.random.Generator:
    """Experiment randomness for a test."""
    return np.random.default_rng(None if FRESH else 20_240_229)
