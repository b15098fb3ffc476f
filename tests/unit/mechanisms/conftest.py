import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Experiment randomness for a test, the same in every run."""
    return np.random.default_rng(20_240_229)
