"""How many of very many rare coins fall heads, and which: exactly, for any number of coins.

Skipping from one head to the next by floor(ln u / ln(1 - f)) would need as many digits in u as there are coins: with 2^60 coins and
53 bits nearly all heads would fall on even places. Here the number of heads is drawn first, by inversion of its distribution
function (in floats where that settles it, else in as many digits as it takes), and then that many different places.

Inversion starts from P(no heads), about e^-mean, which is no float beyond a mean of 745. So the coins are divided into groups with
a mean of at most 64, and the heads of the groups, which are independent, added up. Error budget: docs/proofs/exact-samplers.md.
"""

import math
from collections.abc import Callable
from typing import Any

from tacit.guarantees.rounding import precise
from tacit.mechanisms.noise import Noise, bits
from tacit.mechanisms.samplers.uniform import below

# probability(context) is f in (0, 1), computed in the precision of an mpmath context
Probability = Callable[[Any], Any]

# A float f = e^-x with x below 2^10 is right to 2^-40 of itself; with at most 2^7 heads expected ln P(no heads) is then right to
# 2^-33, and P(heads <= k), of less than 2^9 factors, to 2^-28. The slack is 16 times as wide.
_SLACK = 2.0**-24
_MOST = 1 << 900  # coins for which floats are tried
_LEAST_LOG = -600.0  # ln P(no heads) of which floats still have all digits
_EACH = 64  # heads expected in a group, at most


def rare_heads(coins: int, probability: Probability, noise: Noise) -> list[int]:
    """The places, of ``coins`` independent coins, that fall heads with the given probability each; in the order drawn."""
    found: dict[int, None] = {}
    count = binomial(coins, probability, noise)
    while len(found) < count:
        found[below(coins, noise)] = (
            None  # a place drawn again is no new one: all sets of `count` places are equally likely
        )
    return list(found)


def binomial(coins: int, probability: Probability, noise: Noise) -> int:
    """The number of heads: the sum over groups of coins. Any division is right; this one keeps the mean of each group small."""
    groups = max(1, math.ceil(coins * probability(precise(256)) / _EACH))
    size, more = divmod(coins, groups)
    return sum(_heads(size + (place < more), probability, noise) for place in range(groups))


def _heads(coins: int, probability: Probability, noise: Noise) -> int:
    """The smallest k with U < P(heads <= k), for a uniform U whose bits are drawn as they are needed."""
    known, prefix = 64, bits(noise, 64)
    decided = _in_floats(coins, probability, prefix)
    while decided is None:
        # ln(1 - f) loses as many bits by cancellation as f has zeros, the power as many as it has coins; 64 are spare, half of
        # which are given away
        context, f = _precisely(known + 128 + 2 * coins.bit_length(), probability)
        slack = context.ldexp(1, -known - 32)
        low, high = context.ldexp(prefix, -known), context.ldexp(prefix + 1, -known)
        decided = _between(coins, f, context.exp(coins * context.log(1 - f)), low - slack, high + slack)
        prefix = (prefix << 64) | (bits(noise, 64) if decided is None else 0)
        known += 64
    return decided


def _precisely(needed: int, probability: Probability) -> tuple[Any, Any]:
    """A context and f in it, where 1 - f has ``needed`` bits too: near 1 the difference cancels."""
    spare = 0
    while True:
        context = precise(-(-(needed + spare) // 256) * 256)  # few different ones, which are kept
        f = probability(context)
        lost = context.prec if f >= 1 else max(0, -int(context.mag(1 - f)))
        if lost <= spare:
            return context, f
        spare = 2 * lost


def _in_floats(coins: int, probability: Probability, prefix: int) -> int | None:
    """The number of heads if floats can tell it from the first 64 bits of U."""
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
