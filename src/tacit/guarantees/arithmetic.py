"""Rounding that never understates a cost: epsilon, delta and rho are rounded up, noise scales to their safe side.

Floats are dyadic rationals, so sums and products are formed exactly as ``Fraction`` and rounded once. Numbers from mpmath are
computed with spare bits, and a few of them are given up on the safe side.
"""

import math
import sys
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any


def up(value: Fraction | int) -> float:
    """The smallest float that is not below ``value``; infinity beyond the largest float."""
    near = _nearest(value)
    if math.isinf(near):
        return near if near > 0.0 else -sys.float_info.max
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def down(value: Fraction | int) -> float:
    """The largest float that is not above ``value``; minus infinity below the smallest float."""
    near = _nearest(value)
    if math.isinf(near):
        return near if near < 0.0 else sys.float_info.max
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers (low, high) with low <= 2^bits * e^exponent <= high and high - low <= 2 for exponents of at most 0."""
    from mpmath.libmp import from_rational, mpf_exp, to_fixed

    if exponent == 0:
        return 1 << bits, 1 << bits
    precision = bits + 96 + max(0, abs(exponent.numerator // exponent.denominator)).bit_length()
    # mpmath gets its last bits right in practice but does not prove it: 64 spare bits, of which 32 are given up here.
    value = mpf_exp(from_rational(exponent.numerator, exponent.denominator, precision, "n"), precision, "n")
    fixed = int(to_fixed(value, bits + 32))
    slack = 2 + (fixed >> (bits + 16))
    return max(0, (fixed - slack) >> 32), -((-(fixed + slack)) >> 32)


def sqrt_up(value: Fraction) -> float:
    """A float that is not below the square root of ``value`` >= 0, and within two units in its last place of it."""
    root, scale, exact = _sqrt(value)
    return up(Fraction(root if exact else root + 1, scale))


def sqrt_down(value: Fraction) -> float:
    """A float that is not above the square root of ``value`` >= 0, and within two units in its last place of it."""
    root, scale, _ = _sqrt(value)
    return down(Fraction(root, scale))


def shown_up(value: float, digits: int) -> str:
    """A finite number of at least 0 as text with at most ``digits`` digits, rounded up: reading it gives at least ``value``."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(Decimal(repr(value)))):.{digits}g}"


def exactly(value: float) -> str:
    """A number as the shortest text that reads as the same number."""
    return repr(float(value)).removesuffix(".0")


@lru_cache(maxsize=8)
def precise(bits: int) -> Any:
    """An mpmath context of ``bits`` bits. The global precision of mpmath is neither read nor changed."""
    from mpmath import MPContext

    context = MPContext()
    context.prec = bits
    return context


def up_from(value: Any, *, spare: int = 60) -> float:
    """A float that is not below an mpmath number whose relative error is at most 2^-spare."""
    return up(_exactly(value) + abs(_exactly(value)) / (1 << spare))


def down_from(value: Any, *, spare: int = 60) -> float:
    """A float that is not above an mpmath number whose relative error is at most 2^-spare."""
    return down(_exactly(value) - abs(_exactly(value)) / (1 << spare))


def _exactly(value: Any) -> Fraction:
    from mpmath.libmp import to_rational

    numerator, denominator = to_rational(value._mpf_)
    return Fraction(int(numerator), int(denominator))


def _sqrt(value: Fraction) -> tuple[int, int, bool]:
    """(root, scale, exact) with root <= scale * sqrt(value) < root + 1, to at least 120 bits."""
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 124 - size // 2)
    whole, rest = divmod(value.numerator << (2 * shift), value.denominator)
    root = math.isqrt(whole)
    return root, 1 << shift, rest == 0 and root * root == whole


def _nearest(value: Fraction | int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
