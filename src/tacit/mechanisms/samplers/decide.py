"""Is U < p? Decided exactly, however close, for a uniform U whose bits are drawn as they are needed."""

from collections.abc import Callable
from fractions import Fraction

from tacit.guarantees.rounding import exp_bounds
from tacit.mechanisms.noise import Noise, bits

# Bounds(b) are whole numbers (low, high) with low <= 2^b p <= high, whose difference stays small as b grows.
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
        one = 1 << (count + 8)
        low, high = exp_bounds(-exponent, count + 8)  # t/(1+t) rises in t = e^-exponent
        return (low << count) // (one + low), -(-(high << count) // (one + high))

    return bounds
