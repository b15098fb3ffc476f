"""Discrete Laplace: P(n) = tanh(1/2s) e^(-|n|/s) on the whole numbers, drawn exactly, many at a time.

A geometric number G >= 0 with P(G = g) proportional to e^(-g/s) has independent binary digits: digit i is 1 with probability
1/(1 + e^(2^i/s)), because e^(-g/s) is a product over the digits of g. So one comparison per digit draws it. The digits above
the m-th, taken together, are again geometric, with ratio e^(-2^m/s) < 2^-16: they are nearly always 0 and are drawn by coin.
A sign that is redrawn for "-0" makes it two-sided (Canonne, Kamath and Steinke 2020, Algorithm 2).

The number of comparisons depends on the scale alone. What is drawn, in rare ties and high digits, may cost microseconds more;
what it is added to never does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.mechanisms.noise import Noise, words16
from tacit.mechanisms.samplers.decide import Bounds, exponential_bounds, is_below, logistic_bounds

_CHUNK = 1 << 14  # draws at a time: the random digits then stay within a processor's second-level cache
_MOST_DIGITS = 55  # keeps every draw, its high digits included, inside an int64 but for a chance below 2^-1000


@dataclass(frozen=True, slots=True)
class _Digits:
    """The exact probabilities of the binary digits of a geometric number."""

    bounds: tuple[Bounds, ...]  # digit 0, ..., digit m - 1, then the coin "the digits above are not all 0"
    floor: NDArray[np.uint16]  # floor(2^16 p) of each, as a column: only a first word equal to it leaves U < p open

    @property
    def count(self) -> int:
        return len(self.bounds) - 1


def sample(scale: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` independent draws of the discrete Laplace law with the given scale (in steps of the grid)."""
    digits = _digits(scale)
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        block = result[start : start + _CHUNK]
        _fill(block, digits, noise)
    return result


def pmf(n: NDArray[np.int64] | int, scale: Fraction) -> NDArray[np.float64]:
    """P(n)."""
    rate = float(1 / scale)
    return np.asarray(math.tanh(rate / 2.0) * np.exp(-np.abs(n) * rate))


def cdf(n: NDArray[np.int64] | int, scale: Fraction) -> NDArray[np.float64]:
    """P(draw <= n)."""
    rate = float(1 / scale)
    n = np.asarray(n, dtype=np.float64)
    tail = np.exp(-np.where(n >= 0, n + 1.0, -n) * rate) / (1.0 + math.exp(-rate))  # beyond |n| on its own side
    return np.where(n >= 0, 1.0 - tail, tail)


def survival(n: NDArray[np.int64] | int, scale: Fraction) -> NDArray[np.float64]:
    """P(draw >= n), without the cancellation of 1 - cdf."""
    return cdf(-np.asarray(n), scale)


def _fill(block: NDArray[np.int64], digits: _Digits, noise: Noise) -> None:
    todo = np.arange(block.size)
    while todo.size:
        magnitude = _geometric(digits, todo.size, noise)
        signs = np.frombuffer(noise.draw(-(-todo.size // 8)), dtype=np.uint8)
        negative = np.unpackbits(signs, count=todo.size).view(np.bool_)
        block[todo] = np.where(negative, -magnitude, magnitude)
        todo = todo[negative & (magnitude == 0)]  # "-0" would make 0 twice as likely: draw these again


def _geometric(digits: _Digits, count: int, noise: Noise) -> NDArray[np.int64]:
    rows = digits.count + 1
    word = words16(noise, rows * count).reshape(rows, count)
    ones = word < digits.floor
    for row, column in zip(*np.nonzero(word == digits.floor), strict=True):
        ones[row, column] = is_below(digits.bounds[row], noise, prefix=int(word[row, column]), known=16)
    value = np.zeros(count, dtype=np.int64)
    if digits.count:
        packed = np.packbits(ones[:-1], axis=0, bitorder="little")  # one byte row for eight digits
        for byte in range(packed.shape[0]):
            value |= packed[byte].astype(np.int64) << np.int64(8 * byte)
    for column in np.flatnonzero(ones[-1]):  # high digits: how often the coin falls heads in a row
        high = 1
        while is_below(digits.bounds[-1], noise):
            high += 1
        value[column] += high << digits.count
    return value


def require_drawable(scale: Fraction) -> None:
    """Refuses a scale that cannot be drawn, so that a mechanism fails when it is built and not when it is used."""
    if scale <= 0:
        raise InvalidParameter("the scale of discrete Laplace noise must be above 0.")
    if _digit_count(scale) > _MOST_DIGITS:
        raise InvalidParameter(
            "the noise is more than 2^51 grid steps wide; take a larger epsilon (or scale) or a coarser grid."
        )


def _digit_count(scale: Fraction) -> int:
    """The smallest count >= 0 with 2^count >= 11.5 scale: then e^-(2^count/scale) <= e^-11.5 < 2^-16."""
    return max(0, math.ceil(scale * 23 / 2) - 1).bit_length()


@lru_cache(maxsize=1024)
def _digits(scale: Fraction) -> _Digits:
    require_drawable(scale)
    count = _digit_count(scale)
    bounds = [_remember(logistic_bounds((1 << i) / scale)) for i in range(count)]
    bounds.append(_remember(exponential_bounds((1 << count) / scale)))
    return _Digits(tuple(bounds), np.array([[_floor16(bound)] for bound in bounds], dtype=np.uint16))


def _floor16(bounds: Bounds) -> int:
    """floor(2^16 p): refined until both ends of the enclosure agree. p is irrational, so they do."""
    count = 16
    while True:
        count += 64
        low, high = bounds(count)
        if low >> (count - 16) == high >> (count - 16):
            return low >> (count - 16)


def _remember(bounds: Bounds) -> Bounds:
    cached: Callable[[int], tuple[int, int]] = lru_cache(maxsize=8)(bounds)
    return cached
