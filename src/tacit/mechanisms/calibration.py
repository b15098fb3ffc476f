"""How large the rate of a selection may be, exactly: its true loss over the public boxes, solved for epsilon.

The loss of a candidate between two profiles is largest between opposite corners of the boxes (its own score at one edge, all
others at the other), and largest of all for the candidate whose box lies lowest: docs/proofs/private-selection.md. With
lambda = rate * steps, and g_j >= 0 the distance of the j-th other box from the lowest one in widths, that loss is

    exponential       2 lambda + ln(1 + T e^-lambda) - ln(1 + T e^lambda),  1/T = sum of e^(lambda g_j)
    permute-and-flip  lambda (1 + G) + ln I(1) - ln I(G),  G = max g_j < 1,  I(x) = integral of prod(1 - e^(-lambda(x - g_j)) t),
                      t from 0 to 1; for equal boxes 2 lambda + ln(1 - (1 - e^-lambda)^k); 2 lambda where G >= 1

It rises with lambda, lies between lambda and 2 lambda, and so lambda between epsilon/2 and epsilon.

Floats. No difference of near numbers is formed: 1 - a t is (1 - a) + a (1 - t), both terms at least 0, and lambda - ln 1/T enters
through ln(1 + e^x), which is no steeper than 1. With u = 2^-53, k others, and exponents lambda g_j of which only those up to about
lambda count, the errors of the exponential loss add up to less than (3k + 8 lambda + 40) u. The products of permute-and-flip
have at most 64 factors of 4 u each, and nodes and weights are right to 1e-13 (checked against many digits in the tests).
MARGIN is several times as much, and is taken off epsilon before it is solved for: the loss at the result is truly at most epsilon.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.mechanisms.boxes import Boxed

MARGIN = 2.0**-35  # of epsilon, at least 2^-35 itself
_MOST_FACTORS = 64  # of permute-and-flip over unequal boxes; beyond it there is next to nothing to gain
_CLOSE = 2.0**-40

Loss = Callable[[float], float]  # of lambda


def exponential_rate(source: Boxed, epsilon: float) -> Fraction:
    """The largest known rate per grid step at which the exponential mechanism over these boxes spends epsilon."""
    return _rate(_exponential, source, epsilon)


def permute_and_flip_rate(source: Boxed, epsilon: float) -> Fraction:
    """The largest known rate per grid step at which permute-and-flip over these boxes spends epsilon."""
    return _rate(_permute_and_flip, source, epsilon)


def require_boxes(source: object) -> None:
    """Calibration needs to know the boxes: refuses sources that do not have them."""
    if not hasattr(source, "lows"):
        raise InvalidParameter("only scores in public boxes (scaled, or clipped around centres) can be calibrated.")


def _rate(loss_of: Callable[[tuple[float, ...]], Loss | None], source: Boxed, epsilon: float) -> Fraction:
    steps, lowest = source.sensitivity, min(source.lows)
    plain = Fraction(epsilon) / (2 * steps)
    gaps = sorted((low - lowest) / steps for low in source.lows)[1:]  # the others', in widths
    return max(plain, Fraction(_solved(loss_of, tuple(gaps), epsilon)) / steps)


@lru_cache(maxsize=1024)  # all of it is public, and asked for at every decision
def _solved(loss_of: Callable[[tuple[float, ...]], Loss | None], gaps: tuple[float, ...], epsilon: float) -> float:
    """A lambda whose loss is at most epsilon, and by at most three margins less; 0 where nothing is gained."""
    margin = MARGIN * max(1.0, epsilon)
    target = epsilon - margin
    if not target > 0.0:  # no loss is below it; epsilon / 2 may have left the floats
        return 0.0
    loss = loss_of(gaps) if gaps else None
    low, high = epsilon / 2.0, epsilon
    if loss is None or not (below := loss(low) - target) <= 0.0:
        return 0.0
    if (above := loss(high) - target) <= 0.0:
        return high
    # false position with the Illinois rule; what is returned was found to be low enough, wherever the search went
    found, last = below, 0
    for _ in range(100):
        if found >= -margin or high - low <= _CLOSE * high:
            break
        middle = low + (high - low) * min(max(below / (below - above), 2.0**-30), 1.0 - 2.0**-30)
        value = loss(middle) - target
        if value <= 0.0:
            above = above / 2.0 if last < 0 else above
            low, found, below, last = middle, value, value, -1
        else:
            below = below / 2.0 if last > 0 else below
            high, above, last = middle, value, 1
    return low


def _exponential(gaps: tuple[float, ...]) -> Loss:
    distance = np.array(gaps)

    def loss(rate: float) -> float:
        most = rate * gaps[-1]
        inverse = most + math.log(float(np.exp(rate * distance - most).sum()))  # ln 1/T, at least 0
        return 2.0 * rate + math.log1p(math.exp(-rate - inverse)) - _log_one_plus_exp(rate - inverse)

    return loss


def _log_one_plus_exp(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _permute_and_flip(gaps: tuple[float, ...]) -> Loss | None:
    most = gaps[-1]
    if most == 0.0:
        return lambda rate: 2.0 * rate + _tied(rate, len(gaps) + 1)
    if most >= 1.0 or len(gaps) > _MOST_FACTORS:
        return None
    distance = np.array(gaps)
    nodes, weights = _quadrature(len(gaps) // 2 + 1)

    behind = np.stack([1.0 - distance, most - distance])

    def loss(rate: float) -> float:
        head, tail = np.exp(-rate * behind), -np.expm1(-rate * behind)  # a and 1 - a
        # nodes are symmetric, so they stand for 1 - t as well as for t
        first, second = (tail[:, None] + nodes[:, None] * head[:, None]).prod(axis=2) @ weights
        return rate * (1.0 + most) + math.log(first / second)

    return loss


def _tied(rate: float, k: int) -> float:
    """ln(1 - (1 - e^-rate)^k)."""
    if rate > 600.0:  # e^-rate leaves the floats; 1 - (1 - a)^k <= k a, and hardly below it
        return math.log(k) - rate
    tails = k * (math.log(-math.expm1(-rate)) if rate < 0.7 else math.log1p(-math.exp(-rate)))
    return math.log1p(-math.exp(tails)) if tails < -0.7 else math.log(-math.expm1(tails))


@lru_cache(maxsize=64)
def _quadrature(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Legendre on [0, 1]: exact for polynomials of degree below 2 count."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1.0) / 2.0, weights / 2.0
