"""Coins, uniform whole numbers and binomial counts with exact probabilities, many at a time.

A coin asks whether U < p for a uniform U. ``is_below`` decides that exactly, however close, by drawing further bits of U.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.guarantees.arithmetic import exp_bounds, precise
from tacit.mechanisms.noise import Noise, bits, words16, words32, words64

# bounds(b) are whole numbers (low, high) with low <= 2^b p <= high, whose difference stays small as b grows
Bounds = Callable[[int], tuple[int, int]]


def is_below(bounds: Bounds, noise: Noise, *, prefix: int = 0, known: int = 0) -> bool:
    """Whether U < p, given that the first ``known`` bits of U are ``prefix``. The rest of U is drawn here."""
    while True:
        low, high = bounds(known)
        if prefix + 1 <= low:  # U < (prefix + 1) / 2^known <= p
            return True
        if prefix >= high:  # U >= prefix / 2^known >= p
            return False
        prefix = (prefix << 64) | bits(noise, 64)
        known += 64


def ratio_bounds(probability: Fraction) -> Bounds:
    """Bounds of a rational probability."""

    def bounds(count: int) -> tuple[int, int]:
        scaled = probability.numerator << count
        return scaled // probability.denominator, -(-scaled // probability.denominator)

    return bounds


def exponential_bounds(exponent: Fraction) -> Bounds:
    """Bounds of e^-exponent, exponent >= 0."""
    return lambda count: exp_bounds(-exponent, count)


def logistic_bounds(exponent: Fraction) -> Bounds:
    """Bounds of 1 / (1 + e^exponent), exponent >= 0."""

    def bounds(count: int) -> tuple[int, int]:
        unit = 1 << (count + 8)
        low, high = exp_bounds(-exponent, count + 8)  # t/(1+t) rises in t = e^-exponent
        return (low << count) // (unit + low), -(-(high << count) // (unit + high))

    return bounds


# An exponent x whose float is within 2^-48 max(1, x) of it gives e^-x within 2^-48 (x e^-x < 1), and numpy's exp adds at most
# 4 units in the last place: less than 2^-46 in all. The guard is four times as wide.
GUARD = 2.0**-44


def coins(bounds: Bounds, count: int, noise: Noise) -> NDArray[np.bool_]:
    """``count`` coins, each heads with the probability enclosed by ``bounds``."""
    word = words16(noise, count)
    low, high = bounds(16)
    if low >= 1 << 16:  # certain heads; the comparison below would need a 17th bit
        return np.ones(count, dtype=np.bool_)
    heads = word < low
    for i in np.flatnonzero((word >= low) & (word < high)):
        heads[i] = is_below(bounds, noise, prefix=int(word[i]), known=16)
    return heads


def bernoulli(probability: Fraction, count: int, noise: Noise) -> NDArray[np.bool_]:
    """``count`` coins, each heads with the given rational probability."""
    if not 0 <= probability <= 1:
        raise InvalidParameter("a probability must lie from 0 to 1.")
    return coins(ratio_bounds(probability), count, noise)


@np.errstate(all="ignore")  # Silence numpy: an error could reveal that a coin is nearly always tails
def exponential_coins(
    exponents: NDArray[np.float64],
    exact: Callable[[int], Fraction],
    noise: Noise,
    *,
    guard: float = GUARD,
) -> NDArray[np.bool_]:
    """A coin for each exponent x >= 0, heads with probability e^-x.

    ``exponents`` holds x in floats, each within 2^-48 max(1, x) of it; ``exact(i)`` is the i-th x as a fraction. It is called if
    the first 16 bits of U, or an error of ``guard`` in e^-x, leave open whether U < e^-x: about once in 65,000 coins.
    """
    flat = exponents.ravel()
    word = words16(noise, flat.size)
    gap = np.exp(-flat)
    gap *= 65536.0
    gap -= word  # U = (word + v) / 2^16 with v in [0, 1): heads if v < gap
    margin = 65536.0 * guard
    heads = gap >= 1.0 + margin
    for i in ((gap > -margin) > heads).nonzero()[0]:  # neither surely tails nor surely heads
        heads[i] = is_below(exponential_bounds(exact(int(i))), noise, prefix=int(word[i]), known=16)
    return heads.reshape(exponents.shape)


def few_exponential_coins(
    exponents: list[float], exact: Callable[[int], Fraction], noise: Noise, *, guard: float = GUARD
) -> list[bool]:
    """Like ``exponential_coins``, for a handful of exponents, without the fixed cost of array calls.

    Every coin is tossed, so the time does not tell which of them are heads.
    """
    words = memoryview(noise.draw(2 * len(exponents))).cast("H")
    margin = 65536.0 * guard
    heads = []
    for i, exponent in enumerate(exponents):
        gap = 65536.0 * math.exp(-exponent) - words[i]
        sure = gap >= 1.0 + margin
        if not sure and gap > -margin:
            sure = is_below(exponential_bounds(exact(i)), noise, prefix=words[i], known=16)
        heads.append(sure)
    return heads


def below(bound: int, noise: Noise) -> int:
    """One uniform whole number in [0, bound), by rejection: all values are exactly equally likely."""
    size = (bound - 1).bit_length()
    while True:
        value = bits(noise, size) if size else 0
        if value < bound:
            return value


def below_each(bounds: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
    """A uniform whole number in [0, bound) for every bound in [1, 2^62)."""
    flat = np.ascontiguousarray(bounds, dtype=np.int64).ravel()
    small = flat.size == 0 or int(flat.max()) < 1 << 24
    result = np.zeros(flat.size, dtype=np.int64)
    todo = np.flatnonzero(flat > 1)
    while todo.size:
        limit = flat[todo]
        if small:
            draw = words32(noise, todo.size).astype(np.int64)
            span = np.int64(1 << 32)
        else:
            draw = (words64(noise, todo.size) >> np.uint64(1)).view(np.int64)  # 63 bits
            span = np.int64((1 << 63) - 1)  # the value 2^63 - 1 itself is always rejected
        kept = draw < span - span % limit  # a whole number of rounds: no value is favoured
        result[todo[kept]] = draw[kept] % limit[kept]
        todo = todo[~kept]
    return result.reshape(np.shape(bounds))


# probability(context) is f in (0, 1), computed in the precision of an mpmath context
Probability = Callable[[Any], Any]

# A float f = e^-x with x below 2^10 is right to 2^-40 of itself; with at most 2^7 heads expected ln P(no heads) is then right to
# 2^-33, and P(heads <= k), of less than 2^9 factors, to 2^-28. The slack is 16 times as wide.
_SLACK = 2.0**-24
_MOST = 1 << 900  # coins for which floats are tried
_LEAST_LOG = -600.0  # ln P(no heads) of which floats still have all digits
_EACH = 64  # expected heads in a group, at most


def rare_heads(coins: int, probability: Probability, noise: Noise) -> list[int]:
    """Which of ``coins`` independent coins are heads, each with the given probability, in the order drawn.

    The number of heads is drawn first, then that many different coins. Skipping from one head to the next by
    floor(ln u / ln(1 - f)) would need as many digits in u as there are coins: with 2^60 coins and 53 bits nearly all heads would
    be at even positions.
    """
    heads: dict[int, None] = {}
    count = binomial(coins, probability, noise)
    while len(heads) < count:  # drawing a coin twice changes nothing: all sets of `count` coins are equally likely
        heads[below(coins, noise)] = None
    return list(heads)


def binomial(coins: int, probability: Probability, noise: Noise) -> int:
    """The number of heads, drawn by inversion of its distribution function: in floats if they settle it, else in enough digits.

    Inversion starts from P(no heads), about e^-mean, which is no float beyond a mean of 745. So the coins are divided into groups
    with a mean of at most 64, whose independent numbers of heads are added up. Error budget: docs/proofs/exact-samplers.md.
    """
    groups = max(1, math.ceil(coins * probability(precise(256)) / _EACH))
    size, more = divmod(coins, groups)
    return sum(_heads(size + (group < more), probability, noise) for group in range(groups))


def _heads(coins: int, probability: Probability, noise: Noise) -> int:
    """The smallest k with U < P(heads <= k), for a uniform U whose bits are drawn as they are needed."""
    known, prefix = 64, bits(noise, 64)
    decided = _in_floats(coins, probability, prefix)
    while decided is None:
        # ln(1 - f) loses as many bits by cancellation as f has leading zeros, the power as many as the number of coins has bits;
        # 64 bits are spare, and half of them are given up
        context, f = _precisely(known + 128 + 2 * coins.bit_length(), probability)
        slack = context.ldexp(1, -known - 32)
        low, high = context.ldexp(prefix, -known), context.ldexp(prefix + 1, -known)
        decided = _between(coins, f, context.exp(coins * context.log(1 - f)), low - slack, high + slack)
        prefix = (prefix << 64) | (bits(noise, 64) if decided is None else 0)
        known += 64
    return decided


def _precisely(needed: int, probability: Probability) -> tuple[Any, Any]:
    """A context and f in it, precise enough that 1 - f has ``needed`` bits too: near 1 the difference cancels."""
    spare = 0
    while True:
        context = precise(-(-(needed + spare) // 256) * 256)  # few different contexts, so that they stay cached
        f = probability(context)
        lost = context.prec if f >= 1 else max(0, -int(context.mag(1 - f)))
        if lost <= spare:
            return context, f
        spare = 2 * lost


def _in_floats(coins: int, probability: Probability, prefix: int) -> int | None:
    """The number of heads, if floats can tell it from the first 64 bits of U; else None."""
    from mpmath import fp

    if coins >= _MOST:
        return None
    try:
        f = float(probability(fp))
    except OverflowError:
        return None
    if not 2.0**-1000 < f <= 0.5 or coins * math.log1p(-f) < _LEAST_LOG:
        return None
    uniform = prefix * 2.0**-64
    return _between(coins, f, math.exp(coins * math.log1p(-f)), uniform - _SLACK, uniform + _SLACK)


def _between(coins: int, f: Any, term: Any, low: Any, high: Any) -> int | None:
    """k if P(heads < k) <= low and high <= P(heads <= k); None if there is none. ``term`` is P(no heads).

    P(k + 1 heads) / P(k heads) = (n - k) f / ((k + 1) (1 - f)).
    """
    odds, total, heads = f / (1 - f), term, 0
    while total < high and heads < coins:
        if total > low:
            return None
        term = term * (coins - heads) * odds / (heads + 1)
        heads += 1
        total += term
    return heads
