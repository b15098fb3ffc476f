"""Binomial laws in float64: masses to about twelve digits, tails, and windows outside of which a stated mass is left."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def window(n: Floats, share: float, log_left: float) -> tuple[Floats, Floats]:
    """(low, high), whole numbers: a Bin(n, share) count lies outside on either side with probability at most e^-log_left.

    Bernstein: P(X - mean >= t) <= exp(-t^2 / (2 (variance + t/3))), solved for t.
    """
    reach = log_left / 3.0 + np.sqrt(log_left**2 / 9.0 + 2.0 * log_left * n * share * (1.0 - share))
    low = np.maximum(0.0, np.floor(n * share - reach))
    return low, np.minimum(n, np.ceil(n * share + reach))


def masses(n: int, share: float, log_left: float) -> tuple[Floats, Floats, float]:
    """(counts, masses, mass left out) of Bin(n, share), restricted to its window and scaled to sum to 1 there.

    Scaling only raises the masses, so that an expectation over them plus the mass left out is never too small.
    """
    if not 0.0 < share < 1.0:  # an e^-epsilon that floats cannot tell from 0 or 1
        return np.array([float(n) * share]), np.ones(1), n * math.ulp(1.0)
    low, high = window(np.full(1, float(n)), share, log_left)
    counts = np.arange(low[0], high[0] + 1.0)
    steps = np.log((n - counts[:-1]) / (counts[:-1] + 1.0)) + math.log(share / (1.0 - share))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    weights = np.exp(logs - logs.max())
    left_out = int(low[0] > 0.0) + int(high[0] < n)  # numpy's truths do not add up
    return counts, weights / weights.sum(), left_out * math.exp(-log_left)


def mass(n: Floats, count: Floats, share: float) -> Floats:
    """P(X = count) for X ~ Bin(n, share) with 0 < share < 1, by Loader's saddle point (2000); 0 outside of 0..n."""
    with np.errstate(all="ignore"):
        rest = n - count
        log = (
            _stirling(n)
            - _stirling(count)
            - _stirling(rest)
            - _deviance(count, n * share)
            - _deviance(rest, n * (1.0 - share))
            + 0.5 * np.log(n / (2.0 * math.pi * count * rest))
        )
        log = np.where(count == 0.0, n * math.log1p(-share), np.where(rest == 0.0, n * math.log(share), log))
        result: Floats = np.where((count < 0.0) | (rest < 0.0), 0.0, np.exp(log))
    return result


def at_least(n: Floats, count: Floats, share: float) -> Floats:
    """P(X >= count) for X ~ Bin(n, share)."""
    from scipy.special import betainc

    inside = (count > 0.0) & (count <= n)
    first, second = np.where(inside, count, 1.0), np.where(inside, n - count + 1.0, 1.0)
    result: Floats = np.where(inside, betainc(first, second, share), np.where(count <= 0.0, 1.0, 0.0))
    return result


def _stirling(n: Floats) -> Floats:
    """ln n! - ln(sqrt(2 pi n) (n/e)^n), for n >= 1."""
    from scipy.special import gammaln

    small = np.clip(n, 1.0, 16.0)
    direct = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2.0 * math.pi)
    square = np.maximum(n, 1.0) ** -2.0
    series = (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - square / 1188) * square) * square) * square) / n
    result: Floats = np.where(n <= 16.0, direct, series)
    return result


def _deviance(count: Floats, mean: Floats) -> Floats:
    """count ln(count/mean) + mean - count."""
    excess = count - mean
    result: Floats = count * np.log1p(excess / mean) - excess
    return result
