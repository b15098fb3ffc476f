"""The posterior over look-alikes by its formula: the reference for the tables that a server uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def look_alike_weights(signal: NDArray[Any], look_alikes: NDArray[Any], eta: float) -> NDArray[np.float64]:
    """P(a) ~ exp(-|f - f_a|_1 / eta): the exact Bayes posterior for a uniform prior on look-alikes and Laplace noise."""
    distances = np.abs(np.asarray(look_alikes, dtype=np.float64) - np.asarray(signal, dtype=np.float64)).sum(axis=1)
    weights = np.exp(-(distances - distances.min()) / eta)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares
