"""Numbers in 2,000 bits."""

from fractions import Fraction
from typing import Any

import mpmath

MP = mpmath.MPContext()
MP.prec = 2000
ONES = (1 << 64) - 1


def exp(exponent: Fraction) -> Any:
    return MP.exp(MP.mpf(exponent.numerator) / exponent.denominator)


def digits_of(p: Any, count: int) -> int:
    """The first ``count`` binary digits of p after the point."""
    return int(MP.floor(MP.ldexp(p, count)))
