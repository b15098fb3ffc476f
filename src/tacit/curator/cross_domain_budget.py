"""How much noise a budget leaves to one release: the largest loss whose charge still fits, so that epsilon may be all of it."""

import math
from fractions import Fraction

from tacit.checks import positive, probability
from tacit.errors import InvalidParameter
from tacit.guarantees import epsilon_of_gaussian, mu_for, rho_for
from tacit.guarantees.rounding import sqrt_down
from tacit.guarantees.zcdp import UNITS
from tacit.ledger import Accounting
from tacit.ledger.accounting import MEASURES
from tacit.ledger.amounts import DELTA_DIGITS, shown, units_down


def rho_within(epsilon: float, delta: float) -> Fraction:
    """A rho a little below that of (epsilon, delta): a ledger counts whole units, and rounds charges up and budgets down."""
    units = math.floor(Fraction(rho_for(epsilon, delta)) * UNITS)
    if units < 1:
        raise InvalidParameter("epsilon is too small at this delta: raise it.")
    return Fraction(2 * units - 1, 2 * UNITS)


def in_units(epsilon: float, delta: float) -> tuple[float, float]:
    """Both rounded down to what a ledger counts in, as it rounds a budget: a budget of 2/3 holds a charge of 2/3."""
    epsilon_units = units_down(positive("epsilon", epsilon), MEASURES[Accounting.BASIC][1])
    delta_units = units_down(probability("delta", delta), DELTA_DIGITS)
    if epsilon_units < 1 or delta_units < 1:
        raise InvalidParameter("epsilon or delta is too small to be charged: raise it.")
    return float(shown(epsilon_units, MEASURES[Accounting.BASIC][1])), float(shown(delta_units, DELTA_DIGITS))


def mu_within(epsilon: float, delta: float, accounting: Accounting) -> float:
    """The largest Gaussian loss that costs no more than (epsilon, delta) where charges add up in this way.

    Alone a release is worth its exact epsilon (Balle and Wang, 2018). Among others that add up by zCDP it is worth rho = mu^2 / 2,
    and pays for the conversion of the sum.
    """
    if accounting is Accounting.ZCDP:
        return sqrt_down(2 * rho_within(epsilon, delta))
    epsilon, delta = in_units(epsilon, delta)
    mu = mu_for(epsilon, delta)
    while epsilon_of_gaussian(mu, delta) > epsilon:  # found by bisection: an ulp above would be charged as a whole unit
        mu *= 1.0 - 1e-15
    return mu
