"""Operating-system noise for samplers that compute in floats. Their law is that of the theorem in real arithmetic only."""

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Noise, words64
from tacit.models.dpp.coins import from_words

FLOATS = "real arithmetic in the sampler"  # what a guarantee assumes where floats draw


class NoiseCoins:
    """Uniform numbers strictly between 0 and 1, from privacy noise."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """``count`` independent uniform numbers."""
        return from_words(words64(self._noise, count))
