"""Rounded Gaussian: the whole number nearest to N(0, sigma^2), drawn exactly, many at a time.

P(k) = Phi((k + 1/2) / sigma) - Phi((k - 1/2) / sigma). A whole number plus such a draw is the whole number nearest to the first
plus a continuous Gaussian: the continuous Gaussian mechanism, rounded afterwards, so its trade-off is that of N(0, 1) and N(mu, 1)
in any number of coordinates (docs/proofs/exact-samplers.md). A discrete Gaussian has no such proof.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.guarantees.rounding import precise
from tacit.mechanisms.noise import Noise, bits, words64

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


def sample(variance: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` independent draws of the rounded Gaussian law; ``variance`` is its sigma^2, in steps of the grid squared."""
    require_drawable(variance)
    result = np.empty(count, dtype=np.int64)
    for first in range(0, count, _AT_ONCE):
        part = result[first : first + _AT_ONCE]
        part[:] = _some(variance, part.size, noise)
    return result


def require_drawable(variance: Fraction) -> None:
    """Refuses a variance that cannot be drawn, so that a mechanism fails when it is built and not when it is used."""
    if variance <= 0:
        raise InvalidParameter("the variance of rounded Gaussian noise must be above 0.")
    if variance > MOST_SD**2:
        raise InvalidParameter(
            f"noise of more than {MOST_SD} grid steps takes too long to draw: ask for more epsilon, or for a lower norm."
        )


def pmf(k: NDArray[np.int64] | int, variance: Fraction) -> NDArray[np.float64]:
    """P(k)."""
    from scipy.special import ndtr

    sd, size = math.sqrt(variance), np.abs(np.asarray(k, dtype=np.float64))
    if sd >= _LARGE_SD:  # a difference would cancel; the integral of phi over 1 / sd, to third order
        z = size / sd
        return np.asarray(
            np.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi) / sd * (1.0 + (z * z - 1.0) / (24.0 * sd * sd))
        )
    return np.asarray(ndtr((0.5 - size) / sd) - ndtr((-0.5 - size) / sd))


def tail(k: NDArray[np.int64] | int, variance: Fraction) -> NDArray[np.float64]:
    """P(N >= k)."""
    from scipy.special import ndtr

    return np.asarray(ndtr((0.5 - np.asarray(k, dtype=np.float64)) / math.sqrt(variance)))


@np.errstate(all="ignore")  # draws are secret, how far out they lie too
def _some(variance: Fraction, count: int, noise: Noise) -> NDArray[np.int64]:
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
        drawn[i] = decided(int(known[i]), 64, variance, noise)
    return np.asarray(np.where(word >= _SIGN, -drawn, drawn), dtype=np.int64)


def decided(known: int, count: int, variance: Fraction, noise: Noise) -> int:
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
    """Whether |N| > k - 1/2 for all T that begin with these bits, for none of them (False), or only for some (None)."""
    if k <= 0:
        return True
    low, high = tail_bounds(Fraction(2 * k - 1, 2), variance, count)
    if known + 1 <= low:  # T < P(N > k - 1/2)
        return True
    return False if known >= high else None


def tail_bounds(at: Fraction, variance: Fraction, count: int) -> tuple[int, int]:
    """Whole numbers (low, high) with low <= 2^count P(N > at) <= high, at >= 0, and high - low of at most 2."""
    square = at * at / variance / 2  # P(N > at) = erfc(sqrt square) / 2
    # relative errors of the root grow by 2 * square; mpmath keeps its last bits right in practice but does not prove it: 64 spare
    # bits, of which 32 are given away here
    mp = precise(-(-(count + 128 + 2 * math.ceil(square).bit_length()) // 64) * 64)
    root = mp.sqrt(mp.mpf(square.numerator) / mp.mpf(square.denominator))
    fixed = int(mp.floor(mp.ldexp(mp.erfc(root), count + 31)))
    slack = 2 + (fixed >> (count + 16))
    return max(0, (fixed - slack) >> 32), -((-(fixed + slack)) >> 32)


def _guess(known: int, count: int, variance: Fraction) -> int:
    """About |N|: where to look first."""
    from scipy.special import ndtri_exp

    log = math.log(2 * known + 1) - (count + 1) * math.log(2.0)
    return max(0, round(-float(ndtri_exp(log)) * math.sqrt(variance)))
