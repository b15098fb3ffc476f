"""The server's guess of whose signal it got: a posterior over look-alikes, or over the whole feature domain."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def look_alike_weights(signal: NDArray[Any], look_alikes: NDArray[Any], eta: float) -> NDArray[np.float64]:
    """P(a) ~ exp(-|f - f_a|_1 / eta): the exact Bayes posterior for a uniform prior on look-alikes and Laplace noise."""
    distances = np.abs(np.asarray(look_alikes, dtype=np.float64) - np.asarray(signal, dtype=np.float64)).sum(axis=1)
    weights = np.exp(-(distances - distances.min()) / eta)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def capped_draws(
    signal: NDArray[Any],
    eta: float,
    count: int,
    inside: Callable[[NDArray[Any]], NDArray[np.float64]],
    *,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draws of the posterior `cap`: the signal plus fresh Laplace noise, brought ``inside`` the domain of features.

    This is the server guessing, not a privacy mechanism: its noise is experiment randomness.
    """
    return inside(np.asarray(signal) + rng.laplace(scale=eta, size=(count, len(signal))))
