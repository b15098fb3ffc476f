"""Integers for everything that adds up: a sum of floats drifts, a sum of integers is what it is.

One unit of each measure is a power of ten, so that what a person wrote as a decimal is kept exactly: 0.1 three times is 0.3.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import NamedTuple

MOST = 2**62  # of any sum: both stores keep 64 bits, and one more charge must never wrap around


class Cost(NamedTuple):
    """What a charge takes, or what was spent: whole units of the accounting's measure, of delta (a probability), and of no promise
    at all."""

    amount: int
    delta: int = 0  # in units of 10^-18
    unprotected: int = 0  # charges whose guarantee promises nothing

    def __add__(self, other: "Cost") -> "Cost":  # type: ignore[override]  # a sum of costs, not a longer tuple
        return Cost(self.amount + other.amount, self.delta + other.delta, self.unprotected + other.unprotected)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.amount - other.amount, self.delta - other.delta, self.unprotected - other.unprotected)


NOTHING_SPENT = Cost(0, 0, 0)
DELTA_DIGITS = 18

_CONTEXT = {
    ROUND_CEILING: Context(prec=400, rounding=ROUND_CEILING),
    ROUND_FLOOR: Context(prec=400, rounding=ROUND_FLOOR),
}


def units_up(value: float, digits: int) -> int:
    """``value`` in units of 10^-digits, rounded up.

    A float is taken as the shortest decimal that reads back as it, which is what was written in a program or a file. That
    decimal is within 2^-53 of the float, relatively; docs/proofs/ledger says what becomes of it.
    """
    return _units(value, digits, ROUND_CEILING)


def units_down(value: float, digits: int) -> int:
    """``value`` in units of 10^-digits, rounded down."""
    return _units(value, digits, ROUND_FLOOR)


def shown(units: int, digits: int) -> Decimal:
    """Units as the exact decimal they stand for, without trailing zeros."""
    context = _CONTEXT[ROUND_FLOOR]
    value = Decimal(units).scaleb(-digits, context)
    return (
        value.quantize(Decimal(1), context=context) if value == value.to_integral_value() else value.normalize(context)
    )


def _units(value: float, digits: int, rounding: str) -> int:
    context = _CONTEXT[rounding]
    scaled = Decimal(repr(float(value))).scaleb(digits, context)
    return int(scaled.to_integral_value(rounding=rounding))
