"""Concentrated privacy: rho bounds the Renyi divergence of every order a > 1 by a * rho. Rhos add up, adaptively too.

Two conversions to (epsilon, delta) are offered: ``"tight"`` takes the best order in Proposition 12 of Canonne, Kamath and
Steinke (2020); ``"simple"`` is the closed form rho + 2 sqrt(rho ln(1/delta)) of Bun and Steinke (2016), a little larger.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from tacit.checks import positive, probability
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.guarantee import Guarantee, LossKind
from tacit.guarantees.rounding import down_from, precise, up, up_from

Conversion = Literal["tight", "simple"]
UNITS = 10**12  # in 1: a ledger counts rho in whole ones, a charge rounded up and a budget rounded down
_BITS = 256


def rho_of(guarantee: Guarantee) -> float:
    """The smallest rho that follows from what is proved of the loss, rounded up; refuses where nothing but delta is known.

    Refuses as well where the loss holds except with probability delta: a rho alone would lose that delta.
    """
    if exceptions(guarantee) > 0.0:
        raise InvalidGuarantee(
            "the loss holds except with probability delta, which a rho does not carry: use tight(...) with a larger delta."
        )
    known = rho_exactly(guarantee)
    if known is None:
        raise InvalidGuarantee(
            "no rho follows from an (epsilon, delta) alone: state the shape of the loss, or compose by `pld` or `basic`."
        )
    return up(known)


def rho_exactly(guarantee: Guarantee) -> Fraction | None:
    """As ``rho_of``, without rounding; None where no rho is known.

    A pure or bounded-range loss beside a delta above 0 holds *except with probability delta*; the rho then does too, and
    whoever uses it adds that delta up (``exceptions``).
    """
    if guarantee.promises_nothing or guarantee.per_distance:
        return None
    bounds = []
    if guarantee.delta == 0.0:
        bounds.append(Fraction(guarantee.epsilon) ** 2 / 2)
    if guarantee.loss is not None:
        value = Fraction(guarantee.loss.value)
        match guarantee.loss.kind:
            case LossKind.PURE | LossKind.GAUSSIAN:
                bounds.append(value**2 / 2)
            case LossKind.BOUNDED_RANGE:
                bounds.append(value**2 / 8)  # not /2: see docs/proofs/composition
            case LossKind.ZCDP:
                bounds.append(value)
    return min(bounds, default=None)


def exceptions(guarantee: Guarantee) -> float:
    """The probability outside of which the stated loss holds: delta beside a pure or bounded-range loss, else 0.

    Beside a zCDP or Gaussian loss delta is what the loss was converted at; the loss itself holds outright.
    """
    loss = guarantee.loss
    return guarantee.delta if loss is not None and loss.kind in (LossKind.PURE, LossKind.BOUNDED_RANGE) else 0.0


def epsilon_of_rho(rho: float, delta: float, conversion: Conversion = "tight") -> float:
    """The epsilon with which a rho-zCDP release is (epsilon, delta)-private, rounded up.

    Epsilon is in nats, ``delta`` a probability.
    """
    if not (isinstance(rho, (int, float)) and 0.0 <= rho < math.inf) or isinstance(rho, bool):
        raise InvalidParameter(f"rho must be a finite number of at least 0, not {rho!r}.")
    return _epsilon_of_rho(float(rho), probability("delta", delta), _known(conversion))


def rho_for(epsilon: float, delta: float, conversion: Conversion = "tight") -> float:
    """The largest rho that stays within (epsilon, delta), rounded down; refuses where that is below every number above 0.

    ``epsilon`` is in nats, ``delta`` a probability.
    """
    rho = _rho_for(positive("epsilon", epsilon), probability("delta", delta), _known(conversion))
    if rho == 0.0:
        raise InvalidParameter(f"epsilon = {epsilon!r} at delta = {delta!r} allows no rho above 0: raise one of them.")
    return rho


def epsilon_within(epsilon: float, delta: float) -> float:
    """An epsilon below this one by about 10^-12, whose rho a ledger rounds up to what a budget of (epsilon, delta) holds."""
    units = math.floor(Fraction(rho_for(epsilon, delta)) * UNITS)
    if units < 1:
        raise InvalidParameter("epsilon is too small at this delta: raise it.")
    return min(epsilon, epsilon_of_rho(float(Fraction(2 * units - 1, 2 * UNITS)), delta))


@lru_cache(maxsize=4096)
def _epsilon_of_rho(rho: float, delta: float, conversion: Conversion) -> float:
    if rho == 0.0:
        return 0.0
    mp = precise(_BITS)
    exact_rho, log_delta = mp.mpf(rho), mp.log(mp.mpf(delta))
    if conversion == "simple":
        return up_from(exact_rho + 2 * mp.sqrt(-exact_rho * log_delta))
    # Every order gives a valid epsilon, so floats may choose it and only the last evaluation has to be exact.
    excess = math.exp(_best_order(rho, -math.log(delta)))
    return max(0.0, up_from(_at_order(mp, exact_rho, log_delta, mp.mpf(excess)), spare=100))


def _at_order(mp: Any, rho: Any, log_delta: Any, excess: Any) -> Any:
    order = 1 + excess
    return order * rho + mp.log(excess / order) - (log_delta + mp.log(order)) / excess


def _best_order(rho: float, log_inverse_delta: float) -> float:
    """ln(order - 1) of the order with the smallest epsilon, by golden section."""

    def epsilon(t: float) -> float:
        excess = math.exp(t)
        log_order = math.log1p(excess)
        return rho * excess + (t - log_order) + (log_inverse_delta - log_order) / excess

    start = 0.5 * (math.log(log_inverse_delta) - math.log(rho))  # the optimum without the two logarithms
    return golden(epsilon, start - 8.0, start + 8.0)


def golden(function: Callable[[float], float], low: float, high: float, steps: int = 60) -> float:
    """Where a function with one valley between ``low`` and ``high`` is smallest."""
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
    """The largest float found for which ``fits`` is true, from a ``start`` above 0 near it: doubling, then bisection.

    Only values that were tested are returned, so a ``fits`` that errs on the safe side keeps the answer safe. 0.0 where
    nothing fits.
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
    """The smallest float found for which ``fits`` is true, given a ``start`` that fits: bisection down to 0."""
    low, high = 0.0, start
    for _ in range(200):
        middle = low + (high - low) / 2.0
        if not low < middle < high or high - low <= 4e-16 * high:
            break
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _known(conversion: Conversion) -> Conversion:
    if conversion not in ("tight", "simple"):
        raise InvalidParameter(f"the conversion must be 'tight' or 'simple', not {conversion!r}.")
    return conversion
