"""The epsilon of each of several releases that together stay within (epsilon, delta), as a ledger adds them up."""

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, rho_of
from tacit.ledger import Accounting, Budget, Terms
from tacit.ledger.accounting import MEASURES, allowance, price
from tacit.ledger.amounts import DELTA_DIGITS, shown

_STEPS = 8  # towards the epsilon of a given rho: nearly always the square root is right at once
_LEAST = 2.0**-20  # of the share: where not even that fits it is not a matter of rounding


def each_of(promise: Callable[[float], Guarantee], times: int, budget: Budget, accounting: Accounting) -> float:
    """The epsilon at which ``times`` charges under ``promise(epsilon)`` have room in ``budget``, none of them above its epsilon.

    Every charge is rounded up to the ledger's units: a plain epsilon / times could leave the last one without room. And ten times
    the float 0.1 is more than 1: what adds up by epsilons adds up to no more than the budget's, in whole numbers and in floats.
    """
    terms = Terms.of(budget, ONE_USER, accounting)
    allowed = allowance(budget, terms)
    share = float(shown(allowed.amount // times, MEASURES[accounting][1]))
    if share == 0.0:
        raise _no_room(times, budget)

    def fits(epsilon: float) -> bool:
        one = promise(epsilon)
        if accounting is Accounting.BASIC and Fraction(one.epsilon) * times > Fraction(budget.epsilon):
            return False
        cost = price(one, terms)
        return cost.amount * times <= allowed.amount and cost.delta * times <= allowed.delta

    nominal = promise(budget.epsilon)
    if nominal.promises_nothing or nominal.epsilon == 0.0:  # nothing to add up: the figure is a nominal one
        return budget.epsilon / times
    start = share if accounting is Accounting.BASIC else _of_rho(promise, share, budget.epsilon)
    epsilon, less = start, 2.0**-53
    while not fits(epsilon):
        epsilon, less = epsilon * (1.0 - less), min(0.5, 2.0 * less)
        if epsilon < _LEAST * start:
            raise _no_room(times, budget)
    return epsilon


def counted(delta: float) -> float:
    """``delta`` to twelve digits, rounded down: a ledger rounds what is finer than 10^-18 up, and would have no room for it."""
    digits = Context(prec=12, rounding=ROUND_FLOOR).create_decimal(repr(delta))
    kept = digits.quantize(Decimal((0, (1,), -DELTA_DIGITS)), rounding=ROUND_FLOOR)
    return float(kept) if kept > 0 else delta


def _no_room(times: int, budget: Budget) -> InvalidParameter:
    return InvalidParameter(f"{times:,} slates have no share in {budget}: ask for fewer, or give a larger one.")


def _of_rho(promise: Callable[[float], Guarantee], rho: float, most: float) -> float:
    """The epsilon whose rho is ``rho``, about: rho grows with its square, for some routes not quite."""
    epsilon = most
    for _ in range(_STEPS):
        better = min(most, epsilon * math.sqrt(rho / rho_of(promise(epsilon))))
        if abs(better - epsilon) <= 1e-14 * epsilon:
            break
        epsilon = better
    return epsilon
