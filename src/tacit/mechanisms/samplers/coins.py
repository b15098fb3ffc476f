"""Coins with exact probabilities, many at a time."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.mechanisms.noise import Noise, words16
from tacit.mechanisms.samplers.decide import Bounds, exponential_bounds, is_below, ratio_bounds

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


def geometric(success: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    """How many failures come before the first success, ``count`` times; ``success`` is a rational probability above 0."""
    if success <= 0:
        raise InvalidParameter("a success that never comes cannot be waited for; its probability must be above 0.")
    failures = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        running = running[~bernoulli(success, running.size, noise)]
        failures[running] += 1
    return failures


@np.errstate(all="ignore")  # a caller who has numpy raise must not be told of a coin that hardly ever falls heads
def exponential_coins(
    exponents: NDArray[np.float64],
    exact: Callable[[int], Fraction],
    noise: Noise,
    *,
    guard: float = GUARD,
) -> NDArray[np.bool_]:
    """A coin for each exponent x >= 0, heads with probability e^-x.

    ``exponents`` holds x in floats, each within 2^-48 max(1, x) of it; ``exact(i)`` is the i-th x itself, as a rational. It is
    asked for when the first 16 bits of U, or an error of ``guard`` in e^-x, leave open whether U < e^-x: once in 65,000 coins.
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
    """The same as ``exponential_coins`` for a handful of exponents, without the fixed cost of array calls.

    Every coin is tossed, so the time does not tell which of them fell heads.
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
