"""Where the samplers' randomness comes from: mechanisms bring the operating system's, experiments and servers a generator."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Coins(Protocol):
    def uniforms(self, count: int) -> NDArray[np.float64]:
        """``count`` independent uniform numbers, strictly between 0 and 1."""
        ...


def from_words(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Uniform numbers from uniform 64-bit words: the middles of 2^52 cells, each exact in float64.

    With one bit more the last middle, 1 - 2^-54, would round to 1.
    """
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


class RngCoins:
    """Coins of a numpy generator: for experiments, and for servers that draw from what was already released."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def uniforms(self, count: int) -> NDArray[np.float64]:
        return from_words(self._rng.integers(0, 1 << 64, size=count, dtype=np.uint64))
