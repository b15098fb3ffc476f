"""Whole-number noise, drawn exactly, many at a time: discrete Laplace, discrete Gaussian and rounded Gaussian.

Discrete Laplace: P(n) = tanh(1/2s) e^(-|n|/s).
A geometric number G >= 0 with P(G = g) proportional to e^(-g/s) has independent binary digits: digit i is 1 with probability
1/(1 + e^(2^i/s)), because e^(-g/s) is a product over the digits of g. So one comparison per digit draws it. The digits above
the m-th, taken together, are again geometric, with ratio e^(-2^m/s) < 2^-16: they are nearly always 0 and are drawn by coin.
A sign that is redrawn for "-0" makes it two-sided (Canonne, Kamath and Steinke 2020, Algorithm 2).

The number of comparisons depends on the scale alone. Rare ties and high digits of a draw may cost microseconds more; the number
it is added to never does.

Discrete Gaussian: P(n) proportional to e^(-n^2 / 2 sigma^2). It is drawn by rejection from the discrete Laplace law of scale
t = floor(sigma) + 1: a proposal y is kept with probability e^(-(|y| - sigma^2/t)^2 / 2 sigma^2) (Canonne, Kamath and Steinke 2020,
Algorithm 3), a coin that is tossed exactly.

Rounded Gaussian: the whole number nearest to N(0, sigma^2), so P(k) = Phi((k + 1/2) / sigma) - Phi((k - 1/2) / sigma). A whole
number plus such a draw is the whole number nearest to the first plus a continuous Gaussian. It is the continuous Gaussian
mechanism, rounded afterwards, so its trade-off is that of N(0, 1) and N(mu, 1) in any number of coordinates
(docs/proofs/exact-samplers.md). A discrete Gaussian has no such proof.

``GridNoise`` puts such noise on numbers of a public grid. Noise added to floats is not private, whatever its law: the last bits of
a sum tell what it was. So every exact number is a whole number of grid steps, and the noise is a whole number too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.guarantees.arithmetic import precise
from tacit.mechanisms.noise import Noise, bits, words16, words64
from tacit.mechanisms.samplers.coins import Bounds, exponential_bounds, exponential_coins, is_below, logistic_bounds

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


def sample_discrete_laplace(scale: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` independent draws of the discrete Laplace law with the given scale (in steps of the grid)."""
    digits = _digits(scale)
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        block = result[start : start + _CHUNK]
        _fill(block, digits, noise)
    return result


def discrete_laplace_pmf(n: NDArray[np.int64] | int, scale: Fraction) -> NDArray[np.float64]:
    """P(n)."""
    rate = float(1 / scale)
    return np.asarray(math.tanh(rate / 2.0) * np.exp(-np.abs(n) * rate))


def discrete_laplace_cdf(n: NDArray[np.int64] | int, scale: Fraction) -> NDArray[np.float64]:
    """P(draw <= n)."""
    rate = float(1 / scale)
    n = np.asarray(n, dtype=np.float64)
    tail = np.exp(-np.where(n >= 0, n + 1.0, -n) * rate) / (1.0 + math.exp(-rate))  # beyond |n| on its own side
    return np.where(n >= 0, 1.0 - tail, tail)


def discrete_laplace_survival(n: NDArray[np.int64] | int, scale: Fraction) -> NDArray[np.float64]:
    """P(draw >= n), without the cancellation of 1 - cdf."""
    return discrete_laplace_cdf(-np.asarray(n), scale)


def _fill(block: NDArray[np.int64], digits: _Digits, noise: Noise) -> None:
    todo = np.arange(block.size)
    while todo.size:
        magnitude = _geometric(digits, todo.size, noise)
        signs = np.frombuffer(noise.draw(-(-todo.size // 8)), dtype=np.uint8)
        negative = np.unpackbits(signs, count=todo.size).view(np.bool_)
        block[todo] = np.where(negative, -magnitude, magnitude)
        todo = todo[negative & (magnitude == 0)]  # "-0" would make 0 twice as likely: draw it again


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
    for column in np.flatnonzero(ones[-1]):  # high digits: how often the coin is heads in a row
        high = 1
        while is_below(digits.bounds[-1], noise):
            high += 1
        value[column] += high << digits.count
    return value


def require_drawable_discrete_laplace(scale: Fraction) -> None:
    """Raises InvalidParameter for a scale that cannot be drawn."""
    if scale <= 0:
        raise InvalidParameter("the scale of discrete Laplace noise must be above 0.")
    if _digit_count(scale) > _MOST_DIGITS:
        raise InvalidParameter(
            "the noise is more than 2^51 grid steps wide: choose a larger epsilon, a smaller scale or a coarser grid."
        )


def _digit_count(scale: Fraction) -> int:
    """The smallest count >= 0 with 2^count >= 11.5 scale: then e^-(2^count/scale) <= e^-11.5 < 2^-16."""
    return max(0, math.ceil(scale * 23 / 2) - 1).bit_length()


@lru_cache(maxsize=1024)
def _digits(scale: Fraction) -> _Digits:
    require_drawable_discrete_laplace(scale)
    count = _digit_count(scale)
    bounds = [_remember(logistic_bounds((1 << i) / scale)) for i in range(count)]
    bounds.append(_remember(exponential_bounds((1 << count) / scale)))
    return _Digits(tuple(bounds), np.array([[_floor16(bound)] for bound in bounds], dtype=np.uint16))


def _floor16(bounds: Bounds) -> int:
    """floor(2^16 p), refined until both ends of the enclosure agree. They do, because p is irrational."""
    count = 16
    while True:
        count += 64
        low, high = bounds(count)
        if low >> (count - 16) == high >> (count - 16):
            return low >> (count - 16)


def _remember(bounds: Bounds) -> Bounds:
    cached: Callable[[int], tuple[int, int]] = lru_cache(maxsize=8)(bounds)
    return cached


@np.errstate(all="ignore")  # proposals are secret, and so is how far out they lie
def sample_discrete_gaussian(variance: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` independent draws of the discrete Gaussian law; ``variance`` is its sigma^2, in steps of the grid squared."""
    require_drawable_discrete_gaussian(variance)
    scale = _proposal_scale(variance)
    centre = variance / scale
    result = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        # between 0.44 and 0.77 of the proposals are kept, for every sigma: draw a few more than needed
        size = min(1 << 16, 2 * (count - filled) + 8)
        proposal = sample_discrete_laplace(Fraction(scale), size, noise)
        away = np.abs(proposal) - float(centre)
        exponent = away * away / float(2 * variance)
        kept = proposal[
            exponential_coins(exponent, lambda i, y=proposal: (abs(int(y[i])) - centre) ** 2 / (2 * variance), noise)  # type: ignore[misc]
        ][: count - filled]
        result[filled : filled + kept.size] = kept
        filled += kept.size
    return result


def require_drawable_discrete_gaussian(variance: Fraction) -> None:
    """Raises InvalidParameter for a variance that cannot be drawn."""
    if variance <= 0:
        raise InvalidParameter("the variance of discrete Gaussian noise must be above 0.")
    require_drawable_discrete_laplace(Fraction(_proposal_scale(variance)))


def _proposal_scale(variance: Fraction) -> int:
    return math.isqrt(math.floor(variance)) + 1


def discrete_gaussian_pmf(n: NDArray[np.int64] | int, variance: Fraction) -> NDArray[np.float64]:
    """P(n)."""
    spread = float(2 * variance)
    if variance >= 9:
        total = math.sqrt(math.pi * spread)  # Poisson summation: the next term is e^(-2 pi^2 sigma^2) < 1e-77 of it
    else:
        total = 1.0 + 2.0 * math.fsum(np.exp(-(np.arange(1, 128, dtype=np.float64) ** 2) / spread))
    return np.asarray(np.exp(-np.square(np.asarray(n, dtype=np.float64)) / spread) / total)


# A draw is a sign and a tail probability T, uniform below 1/2, of which the first 64 bits are known; |N| = sigma z with
# z = -ndtri(T). T within 2^-64 / 2 and at least 2^-20: z is within 2^-45 * 1.26 of that at the middle, since dz/dT = -1/phi(z) and
# T / phi(z) <= sqrt(pi / 2). ndtri errs by less than 2^-43 max(1, z) (2^-50.7 was seen); T, sigma and their product as floats add
# less than 2^-50 max(1, z). In all less than 2^-42 max(1, z).
MARGIN = 2.0**-42
LEAST_TAIL = 1 << 44  # of the first 64 bits of T; below it floats decide nothing
MOST_SD = 1 << 36  # beyond it floats decide too few draws
_LARGE_SD = 4096.0
_AT_ONCE = 1 << 16
_SIGN = np.uint64(1 << 63)


def sample_rounded_gaussian(variance: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` independent draws of the rounded Gaussian law; ``variance`` is its sigma^2, in steps of the grid squared."""
    require_drawable_rounded_gaussian(variance)
    result = np.empty(count, dtype=np.int64)
    for first in range(0, count, _AT_ONCE):
        part = result[first : first + _AT_ONCE]
        part[:] = _draw_block(variance, part.size, noise)
    return result


def require_drawable_rounded_gaussian(variance: Fraction) -> None:
    """Raises InvalidParameter for a variance that cannot be drawn."""
    if variance <= 0:
        raise InvalidParameter("the variance of rounded Gaussian noise must be above 0.")
    if variance > MOST_SD**2:
        raise InvalidParameter(
            f"noise of more than {MOST_SD} grid steps takes too long to draw: choose a larger epsilon or a lower norm."
        )


def rounded_gaussian_pmf(k: NDArray[np.int64] | int, variance: Fraction) -> NDArray[np.float64]:
    """P(k)."""
    from scipy.special import ndtr

    sd, size = math.sqrt(variance), np.abs(np.asarray(k, dtype=np.float64))
    if sd >= _LARGE_SD:  # a difference would cancel; the integral of phi over 1 / sd, to third order
        z = size / sd
        return np.asarray(
            np.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi) / sd * (1.0 + (z * z - 1.0) / (24.0 * sd * sd))
        )
    return np.asarray(ndtr((0.5 - size) / sd) - ndtr((-0.5 - size) / sd))


@np.errstate(all="ignore")  # draws are secret, and so is how far out they lie
def _draw_block(variance: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    from scipy.special import ndtri

    word = words64(noise, count)
    known = word & ~_SIGN  # T = known / 2^64 and more
    sd = math.sqrt(variance)
    z = -ndtri((known.astype(np.float64) + 0.5) * 2.0**-64)
    size = z * sd
    low = np.floor(size)
    to_half = size - low - 0.5  # exact
    drawn = low.astype(np.int64) + (to_half > 0.0)
    open_ = (np.abs(to_half) <= sd * MARGIN * np.maximum(z, 1.0)) | (known < np.uint64(LEAST_TAIL))
    for i in np.flatnonzero(open_):
        drawn[i] = decide(int(known[i]), 64, variance, noise)
    return np.asarray(np.where(word >= _SIGN, -drawn, drawn), dtype=np.int64)


def decide(known: int, count: int, variance: Fraction, noise: Noise) -> int:
    """|N| for a T whose first ``count`` bits are ``known``, below 2^(count - 1). Further bits are drawn until it is certain."""
    while True:
        k: int | None = _guess(known, count, variance) if known else None
        while k is not None:
            nearer, further = is_beyond(k, known, count, variance), is_beyond(k + 1, known, count, variance)
            if nearer is True and further is False:
                return k
            # False of the nearer border, or True of the further one: a step that way; None: these bits do not tell
            k = k - 1 if nearer is False else k + 1 if further is True else None
        known, count = (known << 64) | bits(noise, 64), count + 64


def is_beyond(k: int, known: int, count: int, variance: Fraction) -> bool | None:
    """Whether |N| > k - 1/2: True for all T that begin with these bits, False for no such T, None if it depends on T."""
    if k <= 0:
        return True
    low, high = tail_bounds(Fraction(2 * k - 1, 2), variance, count)
    if known + 1 <= low:  # T < P(N > k - 1/2)
        return True
    return False if known >= high else None


def tail_bounds(at: Fraction, variance: Fraction, count: int) -> tuple[int, int]:
    """Whole numbers (low, high) with low <= 2^count P(N > at) <= high, at >= 0, and high - low of at most 2."""
    square = at * at / variance / 2  # P(N > at) = erfc(sqrt square) / 2
    # relative errors of the root grow by 2 * square; mpmath gets its last bits right in practice but does not prove it: 64 spare
    # bits, of which 32 are given up here
    mp = precise(-(-(count + 128 + 2 * math.ceil(square).bit_length()) // 64) * 64)
    root = mp.sqrt(mp.mpf(square.numerator) / mp.mpf(square.denominator))
    fixed = int(mp.floor(mp.ldexp(mp.erfc(root), count + 31)))
    slack = 2 + (fixed >> (count + 16))
    return max(0, (fixed - slack) >> 32), -((-(fixed + slack)) >> 32)


def _guess(known: int, count: int, variance: Fraction) -> int:
    """About |N|: where the search starts."""
    from scipy.special import ndtri_exp

    log = math.log(2 * known + 1) - (count + 1) * math.log(2.0)
    return max(0, round(-float(ndtri_exp(log)) * math.sqrt(variance)))


@dataclass(frozen=True, slots=True, eq=False)
class GridVector:
    """``steps`` whole numbers, each worth ``step``."""

    steps: NDArray[np.int64]
    step: Fraction

    def to_floats(self) -> NDArray[np.float64]:
        """The released numbers in the units of the input."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class GridMatrix:
    """A symmetric matrix of whole numbers, each worth ``step``."""

    steps: NDArray[np.int64]
    step: Fraction

    def to_floats(self) -> NDArray[np.float64]:
        """The released numbers in the units of the input. Noise may make eigenvalues negative."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


class NoiseKind(StrEnum):
    """Which law the noise has."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"
    ROUNDED_GAUSSIAN = "rounded Gaussian"  # a continuous Gaussian, rounded to whole steps: it has the same trade-off


_PMF = {
    NoiseKind.LAPLACE: discrete_laplace_pmf,
    NoiseKind.GAUSSIAN: discrete_gaussian_pmf,
    NoiseKind.ROUNDED_GAUSSIAN: rounded_gaussian_pmf,
}
_SAMPLE = {
    NoiseKind.LAPLACE: sample_discrete_laplace,
    NoiseKind.GAUSSIAN: sample_discrete_gaussian,
    NoiseKind.ROUNDED_GAUSSIAN: sample_rounded_gaussian,
}
_REQUIRE_DRAWABLE = {
    NoiseKind.LAPLACE: require_drawable_discrete_laplace,
    NoiseKind.GAUSSIAN: require_drawable_discrete_gaussian,
    NoiseKind.ROUNDED_GAUSSIAN: require_drawable_rounded_gaussian,
}


@dataclass(frozen=True)
class GridNoise:
    """Independent noise on every number of a release: one law, in whole steps of ``step``.

    ``width`` is the scale of a Laplace law in steps, or the variance of a Gaussian one in squared steps. Raises InvalidParameter
    if such noise cannot be drawn, so that a mechanism fails when it is built and not when it is used.
    """

    kind: NoiseKind
    width: Fraction
    step: Fraction

    def __post_init__(self) -> None:
        _REQUIRE_DRAWABLE[self.kind](self.width)

    @classmethod
    def laplace(cls, scale: Fraction, step: Fraction) -> "GridNoise":
        """Discrete Laplace noise of ``scale`` steps: sensitivity / epsilon, with the L1 sensitivity in steps."""
        return cls(NoiseKind.LAPLACE, scale, step)

    @classmethod
    def gaussian(cls, squared_sensitivity: Fraction | int, *, rho: Fraction | float, step: Fraction) -> "GridNoise":
        """Discrete Gaussian noise that costs ``rho`` of zCDP: its variance is sensitivity^2 / (2 rho), L2, in squared steps."""
        return cls(NoiseKind.GAUSSIAN, Fraction(squared_sensitivity) / (2 * Fraction(rho)), step)

    @classmethod
    def rounded_gaussian(cls, squared_sensitivity: Fraction | int, *, mu: float, step: Fraction) -> "GridNoise":
        """Rounded Gaussian noise with a Gaussian loss of ``mu``: its variance is sensitivity^2 / mu^2, L2, in squared steps."""
        return cls(NoiseKind.ROUNDED_GAUSSIAN, Fraction(squared_sensitivity) / Fraction(mu) ** 2, step)

    @property
    def sd(self) -> float:
        """The standard deviation of the noise on one number, in the units of the input."""
        if self.kind is not NoiseKind.LAPLACE:
            return math.sqrt(self.width) * float(self.step)
        rate = float(1 / self.width)  # sqrt(2 r) / (1 - r) with r = e^-rate
        return math.sqrt(2.0) * math.exp(-rate / 2.0) / -math.expm1(-rate) * float(self.step)

    def pmf(self, steps: NDArray[np.int64] | int, total: int = 0) -> NDArray[np.float64]:
        """The probability that one number, which truly is ``total`` steps, is released as ``steps``."""
        return _PMF[self.kind](np.asarray(steps) - total, self.width)

    def sample(self, count: int, noise: Noise) -> NDArray[np.int64]:
        """``count`` independent draws, in steps."""
        return _SAMPLE[self.kind](self.width, count, noise)

    def add(self, totals: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        """``totals`` in steps, with noise on each."""
        return totals + self.sample(totals.size, noise).reshape(totals.shape)

    def vector(self, totals: NDArray[np.int64], noise: Noise) -> GridVector:
        """``totals`` in steps, with noise on each, and what a step is worth."""
        return GridVector(self.add(totals, noise), self.step)
