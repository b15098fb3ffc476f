"""What repeated Gaussian sums over random samples of the users cost: Renyi divergences of whole orders, rounded up.

Every user is in a sample with probability ``rate``, by a coin of their own. The deviation of the noise is ``multiplier`` times the
bound of one user's row. The formulas hold for the discrete law as for the continuous one (docs/proofs/sampled-gaussian).
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees.arithmetic import precise, up_from

MOST_STEPS = 10**7
MOST_MULTIPLIER = 2.0**30
_BITS = 256
_MARGIN = 2.0**-64  # added to epsilon, for what 256 bits may lose of a difference of terms below 2^100
# 2, 3, 4, ..., then every 8 %: leaving an order out may raise epsilon a little, and epsilon stays valid
_ORDERS: NDArray[np.int64] = np.unique(np.concatenate([np.arange(2, 65), np.geomspace(64, 4096, 55).astype(np.int64)]))


def checked_rate(rate: Fraction | float) -> Fraction:
    """The probability of being sampled, above 0 and at most 1, as an exact fraction of at most 64 bits."""
    allowed = isinstance(rate, (int, float, Fraction)) and not isinstance(rate, bool) and 0 < rate <= 1
    exact = Fraction(rate) if allowed else Fraction(0)
    if not allowed or exact.denominator >= 1 << 64:
        raise InvalidParameter("`rate` must be above 0 and at most 1, and a fraction whose denominator is below 2^64.")
    return exact


def renyi_of_sampled(order: int, multiplier: float, rate: Fraction | float) -> float:
    """The Renyi divergence of whole ``order`` that one step costs at most, in either direction, rounded up.

    1/(a-1) ln sum_l C(a,l) (1-r)^(a-l) r^l e^(l(l-1) / 2 m^2)
    """
    order = whole("order", order, least=2, most=int(_ORDERS[-1]))
    return _renyi(order, positive("multiplier", multiplier), checked_rate(rate))


def epsilon_of_sampled(multiplier: float, rate: Fraction | float, steps: int, delta: float) -> float:
    """The epsilon at ``delta`` of all ``steps`` steps together, rounded up. A step may depend on the outputs of earlier ones."""
    steps = whole("steps", steps, least=1, most=MOST_STEPS)
    return _epsilon(positive("multiplier", multiplier), checked_rate(rate), steps, probability("delta", delta))


def multiplier_for(epsilon: float, delta: float, rate: Fraction | float, steps: int) -> float:
    """The noise multiplier with which ``steps`` steps stay within (epsilon, delta): the smallest one to nine digits, rounded up."""
    steps = whole("steps", steps, least=1, most=MOST_STEPS)
    return _multiplier(positive("epsilon", epsilon), probability("delta", delta), checked_rate(rate), steps)


@lru_cache(maxsize=4096)
def _renyi(order: int, multiplier: float, rate: Fraction) -> float:
    return max(0.0, up_from(_exact_renyi(precise(_BITS), order, multiplier, rate), spare=100))


@lru_cache(maxsize=4096)
def _epsilon(multiplier: float, rate: Fraction, steps: int, delta: float) -> float:
    # Every order gives a valid epsilon, so floats may choose it and only the last evaluation has to be exact.
    order = int(_ORDERS[int(np.argmin(_guesses(multiplier, rate, steps, delta)))])
    mp = precise(_BITS)
    total = steps * _exact_renyi(mp, order, multiplier, rate)
    log_delta = mp.log(mp.mpf(delta))
    epsilon = total + mp.log1p(-mp.mpf(1) / order) - (log_delta + mp.log(mp.mpf(order))) / (order - 1)
    return max(0.0, up_from(epsilon + _MARGIN, spare=100))


@lru_cache(maxsize=1024)
def _multiplier(epsilon: float, delta: float, rate: Fraction, steps: int) -> float:
    def guess(multiplier: float) -> float:
        return float(_guesses(multiplier, rate, steps, delta).min())

    low, high = 2.0**-20, MOST_MULTIPLIER
    if guess(high) > epsilon * (1.0 - 1e-9):
        raise InvalidParameter(f"no noise gives epsilon = {epsilon!r} at delta = {delta!r} here: raise one of them.")
    while high / low > 1.0 + 1e-10:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if guess(middle) <= epsilon else (middle, high)
    extra = 1e-10
    while _epsilon(high, rate, steps, delta) > epsilon:  # floats erred on the wrong side
        high *= 1.0 + extra
        extra *= 2.0
    return high


def _exact_renyi(mp: Any, order: int, multiplier: float, rate: Fraction) -> Any:
    """As an mpmath number. 1 is taken out of the sum, so that all its terms are positive and no digits are lost."""
    sampled, spread = mp.mpf(rate.numerator) / rate.denominator, 2 * mp.mpf(multiplier) ** 2
    left = 1 - sampled if rate < 1 else mp.mpf(0)
    total = mp.mpf(0)
    for size in range(2, order + 1) if rate < 1 else (order,):
        weight = math.comb(order, size) * left ** (order - size) * sampled**size
        total += weight * mp.expm1(size * (size - 1) / spread)
    return mp.log1p(total) / (order - 1)


def _guesses(multiplier: float, rate: Fraction, steps: int, delta: float) -> NDArray[np.float64]:
    """The epsilon of every order, in floats."""
    with np.errstate(over="ignore"):
        renyi = np.array([_log_sum(int(order), multiplier, float(rate)) for order in _ORDERS]) / (_ORDERS - 1.0)
        return np.asarray(
            steps * renyi + np.log1p(-1.0 / _ORDERS) - (math.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1.0)
        )


def _log_sum(order: int, multiplier: float, rate: float) -> float:
    """ln(1 + sum), in floats, to choose an order."""
    from scipy.special import gammaln

    if rate == 1.0:
        return order * (order - 1.0) / (2.0 * multiplier**2)
    size = np.arange(2, order + 1, dtype=np.float64)
    growth = size * (size - 1.0) / (2.0 * multiplier**2)
    log_expm1 = np.where(growth > 30.0, growth, np.log(np.expm1(np.minimum(growth, 30.0))))
    logs = gammaln(order + 1.0) - gammaln(size + 1.0) - gammaln(order - size + 1.0)
    logs += (order - size) * math.log1p(-rate) + size * math.log(rate) + log_expm1
    top = float(logs.max())
    return float(np.logaddexp(0.0, top + np.log(np.exp(logs - top).sum())))
