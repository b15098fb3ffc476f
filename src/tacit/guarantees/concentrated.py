"""Concentrated privacy (zCDP) and the Gaussian trade-off, and what both cost as (epsilon, delta).

rho bounds the Renyi divergence of every order a > 1 by a * rho. Rhos add up, also if later mechanisms depend on earlier outputs.
There are two conversions to (epsilon, delta): ``"tight"`` takes the best order in Proposition 12 of Canonne, Kamath and Steinke
(2020); ``"simple"`` is the closed form rho + 2 sqrt(rho ln(1/delta)) of Bun and Steinke (2016), which is a little larger.

A Gaussian loss mu makes two inputs as hard to tell apart as N(0,1) and N(mu,1). Its exact trade-off is delta(epsilon) =
Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang, 2018), computed in as many bits as the difference
needs, and rounded up.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from tacit.checks import finite, positive, probability
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.arithmetic import down_from, precise, up, up_from
from tacit.guarantees.guarantee import Guarantee, exceptions, rho_exactly

Conversion = Literal["tight", "simple"]
UNITS = 10**12  # of rho in 1: a ledger counts whole units, with charges rounded up and budgets rounded down
_BITS = 256


def rho_of(guarantee: Guarantee) -> float:
    """The smallest rho that follows from what is proved of the loss, rounded up.

    Raises InvalidGuarantee if only an (epsilon, delta) is known, or if the loss holds except with probability delta: a rho
    alone would lose that delta.
    """
    if exceptions(guarantee) > 0.0:
        raise InvalidGuarantee(
            "the loss holds except with probability delta, and a rho cannot express that: use tight(...) with a larger delta."
        )
    known = rho_exactly(guarantee)
    if known is None:
        raise InvalidGuarantee(
            "no rho follows from an (epsilon, delta) alone: state the loss, or compose by `pld` or `basic`."
        )
    return up(known)


def epsilon_of_rho(rho: float, delta: float, conversion: Conversion = "tight") -> float:
    """The epsilon with which a rho-zCDP release is (epsilon, delta)-private, rounded up.

    Epsilon is in nats, ``delta`` a probability.
    """
    if not (isinstance(rho, (int, float)) and 0.0 <= rho < math.inf) or isinstance(rho, bool):
        raise InvalidParameter(f"rho must be a finite number of at least 0, not {rho!r}.")
    return _epsilon_of_rho(float(rho), probability("delta", delta), _checked(conversion))


def rho_for(epsilon: float, delta: float, conversion: Conversion = "tight") -> float:
    """The largest rho that stays within (epsilon, delta), rounded down.

    ``epsilon`` is in nats, ``delta`` a probability. Raises InvalidParameter if that rho is too small for a float.
    """
    rho = _rho_for(positive("epsilon", epsilon), probability("delta", delta), _checked(conversion))
    if rho == 0.0:
        raise InvalidParameter(f"epsilon = {epsilon!r} at delta = {delta!r} allows no rho above 0: raise one of them.")
    return rho


def rho_within(epsilon: float, delta: float) -> Fraction:
    """A rho just below that of (epsilon, delta). A ledger counts whole units, rounds charges up and budgets down."""
    units = math.floor(Fraction(rho_for(epsilon, delta)) * UNITS)
    if units < 1:
        raise InvalidParameter("epsilon is too small at this delta: raise it.")
    return Fraction(2 * units - 1, 2 * UNITS)


def epsilon_within(epsilon: float, delta: float) -> float:
    """An epsilon about 10^-12 below this one. A ledger rounds its rho up to what a budget of (epsilon, delta) holds."""
    return min(epsilon, epsilon_of_rho(float(rho_within(epsilon, delta)), delta))


@lru_cache(maxsize=4096)
def _epsilon_of_rho(rho: float, delta: float, conversion: Conversion) -> float:
    if rho == 0.0:
        return 0.0
    mp = precise(_BITS)
    exact_rho, log_delta = mp.mpf(rho), mp.log(mp.mpf(delta))
    if conversion == "simple":
        return up_from(exact_rho + 2 * mp.sqrt(-exact_rho * log_delta))
    # Every order gives a valid epsilon, so floats may choose it and only the last evaluation has to be exact.
    excess = mp.mpf(math.exp(_best_log_excess(rho, -math.log(delta))))
    order = 1 + excess
    epsilon = order * exact_rho + mp.log(excess / order) - (log_delta + mp.log(order)) / excess
    return max(0.0, up_from(epsilon, spare=100))


def _best_log_excess(rho: float, log_inverse_delta: float) -> float:
    """ln(order - 1) of the order with the smallest epsilon, by golden section."""

    def epsilon(t: float) -> float:
        excess = math.exp(t)
        log_order = math.log1p(excess)
        return rho * excess + (t - log_order) + (log_inverse_delta - log_order) / excess

    start = 0.5 * (math.log(log_inverse_delta) - math.log(rho))  # the optimum without the two logarithms
    return golden(epsilon, start - 8.0, start + 8.0)


def golden(function: Callable[[float], float], low: float, high: float, steps: int = 60) -> float:
    """The argument between ``low`` and ``high`` at which a function with one valley is smallest."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return left if at_left <= at_right else right


@lru_cache(maxsize=4096)
def _rho_for(epsilon: float, delta: float, conversion: Conversion) -> float:
    mp = precise(_BITS)
    log_inverse = -mp.log(mp.mpf(delta))
    # (sqrt(L + epsilon) - sqrt(L))^2, written without the difference
    root = mp.mpf(epsilon) / (mp.sqrt(log_inverse + mp.mpf(epsilon)) + mp.sqrt(log_inverse))
    simple = down_from(root**2)
    if conversion == "simple":
        return simple
    return largest(lambda rho: _epsilon_of_rho(rho, delta, "tight") <= epsilon, max(simple, 1e-300))


def largest(fits: Callable[[float], bool], start: float, steps: int = 64) -> float:
    """The largest float found for which ``fits`` is true: doubling from a ``start`` above 0, then bisection.

    Only tested values are returned, so a ``fits`` that errs on the safe side keeps the answer safe. Returns 0.0 if nothing
    fits.
    """
    low = start
    while not fits(low):
        low /= 2.0
        if low == 0.0:
            return 0.0
    high = 2.0 * low
    while high < math.inf and fits(high):
        low, high = high, 2.0 * high
    for _ in range(steps):
        middle = low + (high - low) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def smallest(fits: Callable[[float], bool], start: float) -> float:
    """The smallest float found for which ``fits`` is true, by bisection between 0 and a ``start`` that fits."""
    low, high = 0.0, start
    for _ in range(200):
        middle = low + (high - low) / 2.0
        if not low < middle < high or high - low <= 4e-16 * high:
            break
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _checked(conversion: Conversion) -> Conversion:
    if conversion not in ("tight", "simple"):
        raise InvalidParameter(f"`conversion` must be 'tight' or 'simple', not {conversion!r}.")
    return conversion


_SMALLEST = math.ulp(0.0)


def delta_of_gaussian(mu: float, epsilon: float) -> float:
    """The exact delta at ``epsilon`` >= 0 of a Gaussian loss mu (sensitivity / noise deviation), rounded up.

    ``epsilon`` is in nats, delta a probability; mu has no unit.
    """
    if finite("epsilon", epsilon) < 0.0:
        raise InvalidParameter(f"epsilon must be a finite number of at least 0, not {epsilon!r}.")
    return _delta(positive("mu", mu), float(epsilon))


def epsilon_of_gaussian(mu: float, delta: float) -> float:
    """The smallest epsilon of a Gaussian loss mu at ``delta``, rounded up.

    Epsilon is in nats, ``delta`` a probability; mu has no unit.
    """
    return _epsilon(positive("mu", mu), probability("delta", delta))


def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu that stays within (epsilon, delta), rounded down: the noise deviation is sensitivity / mu.

    ``epsilon`` is in nats, ``delta`` a probability; mu, the Gaussian loss, has no unit.
    """
    return _mu(positive("epsilon", epsilon), probability("delta", delta))


@lru_cache(maxsize=4096)
def _delta(mu: float, epsilon: float) -> float:
    if epsilon / mu - mu / 2.0 > 1e4:
        return _SMALLEST  # below e^(-5e7), so below every float
    if mu / 2.0 - epsilon / mu > 1e4:
        return 1.0  # above 1 - e^(-5e7)
    bits = 192
    while True:
        mp = precise(bits)
        ratio, half, root = mp.mpf(epsilon) / mu, mp.mpf(mu) / 2, mp.sqrt(mp.mpf(2))
        first = mp.erfc((ratio - half) / root) / 2
        second = mp.exp(mp.mpf(epsilon)) * mp.erfc((ratio + half) / root) / 2
        if first - second > mp.ldexp(first, 100 - bits):
            return min(1.0, up_from(first - second))
        bits *= 2


@lru_cache(maxsize=4096)
def _epsilon(mu: float, delta: float) -> float:
    if _delta(mu, 0.0) <= delta:
        return 0.0
    enough = max(epsilon_of_rho(mu * mu * (1.0 + 1e-12) / 2.0, delta), 1e-300)
    while _delta(mu, enough) > delta:
        enough *= 2.0
    return smallest(lambda epsilon: _delta(mu, epsilon) <= delta, enough)


@lru_cache(maxsize=4096)
def _mu(epsilon: float, delta: float) -> float:
    log_inverse = -math.log(delta)
    start = math.sqrt(2.0) * epsilon / (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse))
    return largest(lambda mu: _delta(mu, epsilon) <= delta, max(start, 1e-300))
