"""Discrete Gaussian: P(n) proportional to e^(-n^2 / 2 sigma^2) on the whole numbers, drawn exactly, many at a time.

Rejection from the discrete Laplace law of scale t = floor(sigma) + 1: a proposal y is kept with probability
e^(-(|y| - sigma^2/t)^2 / 2 sigma^2) (Canonne, Kamath and Steinke 2020, Algorithm 3), a coin that is tossed exactly.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.samplers.coins import exponential_coins


@np.errstate(all="ignore")  # proposals are secret, how far out they lie too
def sample(variance: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` independent draws of the discrete Gaussian law; ``variance`` is its sigma^2, in steps of the grid squared."""
    require_drawable(variance)
    scale = _proposal_scale(variance)
    centre = variance / scale
    result = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        # between 0.44 and 0.77 of the proposals are kept, whatever sigma is: ask for a few more than needed
        size = min(1 << 16, 2 * (count - filled) + 8)
        proposal = discrete_laplace.sample(Fraction(scale), size, noise)
        away = np.abs(proposal) - float(centre)
        exponent = away * away / float(2 * variance)
        kept = proposal[
            exponential_coins(exponent, lambda i, y=proposal: (abs(int(y[i])) - centre) ** 2 / (2 * variance), noise)  # type: ignore[misc]
        ][: count - filled]
        result[filled : filled + kept.size] = kept
        filled += kept.size
    return result


def require_drawable(variance: Fraction) -> None:
    """Refuses a variance that cannot be drawn, so that a mechanism fails when it is built and not when it is used."""
    if variance <= 0:
        raise InvalidParameter("the variance of discrete Gaussian noise must be above 0.")
    discrete_laplace.require_drawable(Fraction(_proposal_scale(variance)))


def _proposal_scale(variance: Fraction) -> int:
    return math.isqrt(math.floor(variance)) + 1


def pmf(n: NDArray[np.int64] | int, variance: Fraction) -> NDArray[np.float64]:
    """P(n)."""
    spread = float(2 * variance)
    if variance >= 9:
        total = math.sqrt(math.pi * spread)  # Poisson summation: the next term is e^(-2 pi^2 sigma^2) < 1e-77 of it
    else:
        total = 1.0 + 2.0 * math.fsum(np.exp(-(np.arange(1, 128, dtype=np.float64) ** 2) / spread))
    return np.asarray(np.exp(-np.square(np.asarray(n, dtype=np.float64)) / spread) / total)
