"""What a charge costs under a subject's terms, what a budget allows, and what all charges together promise.

Every sum is over integers; charges are rounded up, budgets down (docs/proofs/ledger).
"""

import math
from collections.abc import Mapping
from functools import lru_cache

from tacit.errors import GuaranteeRefused, InvalidGuarantee, InvalidParameter, MixedUnits
from tacit.guarantees import Guarantee, metric, pure, rho_for, rho_of, tight, times_within
from tacit.guarantees.composition import PROOF, add_up
from tacit.guarantees.rounding import exactly, shown_up
from tacit.ledger.amounts import DELTA_DIGITS, MOST, Cost, units_down, units_up
from tacit.ledger.budgets import Accounting, Budget, Terms

MEASURES = {
    Accounting.BASIC: ("epsilon", 9),  # in nano-epsilon
    Accounting.ZCDP: ("rho", 12),  # an epsilon of 0.001 is a rho of 0.0000005: it needs finer units
    Accounting.PLD: ("releases", 0),
}
ADAPTIVE = "how many charges there are and what they cost was not chosen by looking at releases"
NOTHING_YET = "nothing was released"


def price(guarantee: Guarantee, terms: Terms) -> Cost:
    """What one release under ``guarantee`` costs; refuses what the terms cannot charge."""
    if not isinstance(guarantee, Guarantee):
        raise InvalidParameter("a charge is made for a Guarantee: pass the mechanism's or the release's.")
    if guarantee.protects != terms.protects:
        raise MixedUnits(
            f"the guarantee protects '{guarantee.protects}', the budget '{terms.protects}'. Convert the guarantee first "
            "(within, anywhere, group, replace_from_add_remove), or charge a subject with the same unit."
        )
    if guarantee.promises_nothing:
        return _unprotected(guarantee, terms)
    if guarantee.rounding > terms.rounding:
        raise GuaranteeRefused(
            f"rounding adds up to {shown_up(guarantee.rounding, 3)} to distances, and the subject's terms allow "
            f"{exactly(terms.rounding)}. Use a finer grid, or enrol a subject whose terms say `rounding`."
        )
    match terms.accounting:
        case Accounting.BASIC:
            return Cost(
                units_up(guarantee.epsilon, MEASURES[Accounting.BASIC][1]), units_up(guarantee.delta, DELTA_DIGITS)
            )
        case Accounting.ZCDP:
            try:
                rho = rho_of(guarantee)
            except InvalidGuarantee as problem:
                raise GuaranteeRefused(f"this subject's charges add up by zCDP, and {_reason(problem)}") from None
            if math.isinf(rho):
                raise GuaranteeRefused(
                    "the rho of this guarantee is beyond all numbers: it protects nothing worth charging."
                )
            return Cost(units_up(rho, MEASURES[Accounting.ZCDP][1]))
        case Accounting.PLD:
            return _one_of_each(guarantee, terms)


@lru_cache(maxsize=1024)
def allowance(budget: Budget, terms: Terms) -> Cost:
    """What may be spent in one window of ``budget``, rounded down."""
    match terms.accounting:
        case Accounting.BASIC:
            allowed = Cost(
                units_down(budget.epsilon, MEASURES[Accounting.BASIC][1]), units_down(budget.delta, DELTA_DIGITS)
            )
        case Accounting.ZCDP:
            allowed = Cost(units_down(rho_for(budget.epsilon, budget.delta), MEASURES[Accounting.ZCDP][1]))
        case Accounting.PLD:
            if terms.each is None:
                raise InvalidParameter("PLD accounting states the guarantee of `each` release.")
            allowed = Cost(times_within(terms.each, budget.epsilon, budget.delta))
    if not 1 <= allowed.amount <= MOST:
        raise InvalidParameter(
            f"the budget '{budget}' is {'too small for a single charge' if allowed.amount < 1 else 'beyond what can be counted'}"
            f" under {terms.accounting} accounting."
        )
    return allowed


def promised(counted: Mapping[Guarantee, int], terms: Terms) -> Guarantee:
    """What all charges together promise: the statement that anybody can recompute from the charges alone."""
    if not counted:
        free = frozenset({NOTHING_YET})
        if terms.protects.distance is not None and terms.protects.radius is None:
            return metric(0.0, distance=terms.protects.distance, assumes=free)
        return pure(0.0, terms.protects, assumes=free)
    if terms.accounting is Accounting.BASIC or any(guarantee.promises_nothing for guarantee in counted):
        total = add_up(list(counted.items()))
    else:
        delta = min(budget.delta for budget in terms.budgets)
        if terms.accounting is Accounting.ZCDP or terms.each is None:
            total = tight(counted, delta, "zcdp")
        else:  # the parts differ in what they assume at most: counted as one they are counted as the budget counted them
            total = tight({terms.each: sum(counted.values())}, delta)
            total = total.assuming(*(reason for guarantee in counted for reason in guarantee.assumes))
    # The loss of pure releases adds up along every path; any delta is a statement about a plan (docs/proofs/ledger).
    return total.assuming(ADAPTIVE) if total.delta and not total.promises_nothing else total


def _unprotected(guarantee: Guarantee, terms: Terms) -> Cost:
    """One charge without a promise, if the terms name every reason for that, or the mechanism's own proof page."""
    if guarantee.assumes <= terms.unprotected or (guarantee.proof != PROOF and guarantee.proof in terms.unprotected):
        return Cost(0, 0, 1)
    raise GuaranteeRefused(
        f"this release promises nothing ({', '.join(sorted(guarantee.assumes))}), and the subject's terms do not name it in "
        "`unprotected`. Use a mode that promises something, or enrol a subject whose terms name every reason, or the proof page."
    )


def _one_of_each(guarantee: Guarantee, terms: Terms) -> Cost:
    each = terms.each
    if each is None or (guarantee.epsilon, guarantee.delta, guarantee.loss) != (each.epsilon, each.delta, each.loss):
        stated = "one" if each is None else f"epsilon = {exactly(each.epsilon)}"
        raise GuaranteeRefused(
            f"this subject's releases are counted, each under the guarantee her terms state ({stated}); another one needs a "
            "subject with other terms."
        )
    return Cost(1)


def _reason(problem: InvalidGuarantee) -> str:
    return str(problem).removeprefix(f"{problem.code}: ")
