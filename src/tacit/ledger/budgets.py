"""Budgets and terms, the price of a charge under them, and statements.

Everything that adds up is an integer: a sum of floats drifts. One unit of each measure is a power of ten, so the ledger keeps a
decimal that a person wrote exactly, and 0.1 three times is 0.3. Charges are rounded up, budgets down (docs/proofs/ledger.md).
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.checks import finite, keep, member, positive, probability
from tacit.errors import BudgetExhausted, GuaranteeRefused, InvalidGuarantee, InvalidParameter, MixedUnits
from tacit.guarantees import Guarantee, Neighbours, metric, pure, rho_for, rho_of, tight, times_within
from tacit.guarantees.arithmetic import exactly, shown_up
from tacit.guarantees.guarantee import COMPOSITION_PROOF, add_up
from tacit.ledger.chain import DAY, as_text, checked_name, start_of_month, start_of_next_month

_SLIDING_MONTH = 31 * DAY  # never shorter than a month of the calendar
BEFORE_ALL = -(2**62)


class Period(StrEnum):
    """How long a budget lasts: a day or a month of the calendar (UTC), or a lifetime."""

    DAY = "day"
    MONTH = "month"
    LIFETIME = "lifetime"


class Accounting(StrEnum):
    """How charges add up."""

    BASIC = "basic"  # epsilons and deltas add
    ZCDP = "zcdp"  # rhos add; the budget's (epsilon, delta) is what they convert to
    PLD = "pld"  # every release has the same guarantee, stated beforehand; the budget is how many of them fit


@dataclass(frozen=True, slots=True)
class Budget:
    """At most (epsilon, delta) in any one period.

    A period is a day or a month of the calendar (UTC), or with ``sliding`` any 24 hours or any 31 days.
    """

    epsilon: float  # nats
    delta: float = 0.0  # a probability
    per: Period = Period.LIFETIME
    sliding: bool = False

    if TYPE_CHECKING:  # a period may be given by its name: Budget(10, per="month")

        def __init__(
            self, epsilon: float, delta: float = 0.0, per: Period | str = Period.LIFETIME, sliding: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        delta = self.delta
        keep(
            self,
            epsilon=positive("the epsilon of a budget", self.epsilon),
            delta=0.0 if type(delta) in (int, float) and delta == 0 else probability("the delta of a budget", delta),
            per=member("per", Period, self.per),
        )
        if type(self.sliding) is not bool:
            raise InvalidParameter("sliding must be True or False.")
        if self.sliding and self.per is Period.LIFETIME:
            raise InvalidParameter("a lifetime does not slide: give a day or a month, or leave out `sliding`.")

    def start(self, at: int) -> int:
        """The first moment of the window of a charge at ``at``, both in microseconds since 1970."""
        if self.per is Period.LIFETIME:
            return BEFORE_ALL
        if self.sliding:
            return at - (DAY if self.per is Period.DAY else _SLIDING_MONTH) + 1  # the window is (at - length, at]
        return at - at % DAY if self.per is Period.DAY else start_of_month(at)

    def renews(self, at: int) -> int | None:
        """When the calendar opens the next window, in microseconds since 1970; None if it never does."""
        if self.per is Period.LIFETIME or self.sliding:
            return None
        return at - at % DAY + DAY if self.per is Period.DAY else start_of_next_month(at)

    def __str__(self) -> str:
        delta = f", delta {self.delta:g}" if self.delta else ""
        if self.per is Period.LIFETIME:
            return f"epsilon {self.epsilon:g}{delta} in all"
        length = {Period.DAY: "any 24 hours", Period.MONTH: "any 31 days"}[self.per]
        return f"epsilon {self.epsilon:g}{delta} in {length if self.sliding else f'each {self.per}'}"

    def to_json(self) -> dict[str, Any]:
        """The budget as values for JSON."""
        return {"epsilon": self.epsilon, "delta": self.delta, "per": self.per.value, "sliding": self.sliding}


@dataclass(frozen=True, slots=True)
class Terms:
    """The agreement with a subject at enrolment: the budgets, their unit, and how charges add up. Terms never change.

    ``protects`` is the unit of every charge. ``each`` is the one guarantee that PLD accounting needs. ``unprotected`` names
    what may be charged although it promises nothing: all reasons in a guarantee's ``assumes``, or its proof page.
    ``rounding`` is the most that the grid of a metric guarantee may add to a distance: the budget then stands for
    epsilon * (distance + rounding).
    """

    budgets: tuple[Budget, ...]
    protects: Neighbours
    accounting: Accounting = Accounting.BASIC
    each: Guarantee | None = None
    unprotected: frozenset[str] = frozenset()
    rounding: float = 0.0

    def __post_init__(self) -> None:
        keep(self, **_checked(self.budgets, self.protects, self.accounting, self.each, self.unprotected))
        is_metric = self.protects.distance is not None and self.protects.radius is None
        rounding = finite("the rounding of terms", self.rounding)
        if rounding < 0.0 or (rounding > 0.0 and not is_metric):
            raise InvalidParameter("rounding is a distance of at least 0, and belongs to features at any distance.")
        keep(self, rounding=rounding)
        if len({(budget.per, budget.sliding) for budget in self.budgets}) < len(self.budgets):
            raise InvalidParameter(
                "give one budget for each kind of period: two for the same period contradict each other."
            )
        if (self.accounting is Accounting.PLD) != (self.each is not None):
            raise InvalidParameter("`each` belongs to PLD accounting: state it there, and leave it out otherwise.")
        if self.each is not None and self.each.protects != self.protects:
            raise InvalidParameter(f"`each` protects '{self.each.protects}', the budget '{self.protects}'.")
        if self.accounting is not Accounting.BASIC and any(budget.delta == 0.0 for budget in self.budgets):
            raise InvalidParameter(f"{self.accounting} accounting needs a delta above 0 in every budget.")

    @classmethod
    def of(
        cls,
        budgets: Budget | Iterable[Budget],
        protects: Neighbours,
        accounting: Accounting | str = Accounting.BASIC,
        each: Guarantee | None = None,
        unprotected: Collection[str] = (),
        rounding: float = 0.0,
    ) -> "Terms":
        """Terms as a caller writes them: one budget or several, the accounting by its name, names in any collection."""
        return cls(budgets, protects, accounting, each, unprotected, rounding)  # type: ignore[arg-type]  # __post_init__ checks and converts

    @property
    def windowed(self) -> bool:
        """Whether a charge has to look up what was spent before a window began."""
        return any(budget.per is not Period.LIFETIME for budget in self.budgets)

    def to_json(self) -> dict[str, Any]:
        """The terms as values for JSON."""
        return {
            "budgets": [budget.to_json() for budget in self.budgets],
            "protects": self.protects.to_json(),
            "accounting": self.accounting.value,
            "each": None if self.each is None else self.each.to_json(),
            "unprotected": sorted(self.unprotected),
            "rounding": self.rounding,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Terms":
        """The terms that ``to_json`` wrote. Raises InvalidParameter for anything else."""
        try:
            return cls(
                budgets=tuple(Budget(**budget) for budget in value["budgets"]),
                protects=Neighbours.from_json(value["protects"]),
                accounting=Accounting(value["accounting"]),
                each=None if value["each"] is None else Guarantee.from_json(value["each"]),
                unprotected=frozenset(value["unprotected"]),
                rounding=value["rounding"],
            )
        except (KeyError, TypeError, ValueError, InvalidGuarantee) as problem:
            raise InvalidParameter(
                "terms need budgets, protects, accounting, each, unprotected and rounding."
            ) from problem


def _checked(
    budgets: object, protects: object, accounting: object, each: object, unprotected: object
) -> dict[str, Any]:
    """The parts of terms, converted to their types."""
    listed = (budgets,) if isinstance(budgets, Budget) else tuple(budgets) if isinstance(budgets, Iterable) else ()
    if not listed or not all(isinstance(budget, Budget) for budget in listed):
        raise InvalidParameter("budgets are one or several Budget(epsilon=...).")
    if not isinstance(protects, Neighbours):
        raise InvalidParameter("`protects` must be Neighbours, such as ONE_PROFILE or ONE_USER.")
    if not (each is None or isinstance(each, Guarantee)):
        raise InvalidParameter("`each` must be a Guarantee.")
    if isinstance(unprotected, (str, bytes)) or not isinstance(unprotected, Collection):
        raise InvalidParameter("`unprotected` must be a collection of names, such as ['noise replayed'].")
    return {
        "budgets": listed,
        "protects": protects,
        "accounting": member("accounting", Accounting, accounting),
        "each": each,
        "unprotected": frozenset(checked_name("a name in `unprotected`", name, most=1000) for name in unprotected),
    }


MOST = 2**62  # of any sum: both stores keep 64 bits, and one more charge must never wrap around


class Cost(NamedTuple):
    """What a charge takes, or what was spent.

    Whole units of the accounting's measure, whole units of delta (a probability), and the number of charges that promise nothing.
    """

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

    A float counts as the shortest decimal that reads back as it: the decimal that somebody wrote in a program or a file. That
    decimal is within 2^-53 of the float, relatively (docs/proofs/ledger.md).
    """
    return _units(value, digits, ROUND_CEILING)


def units_down(value: float, digits: int) -> int:
    """``value`` in units of 10^-digits, rounded down."""
    return _units(value, digits, ROUND_FLOOR)


def shown(units: int, digits: int) -> Decimal:
    """Units of 10^-digits as an exact decimal, without trailing zeros."""
    context = _CONTEXT[ROUND_FLOOR]
    value = Decimal(units).scaleb(-digits, context)
    return (
        value.quantize(Decimal(1), context=context) if value == value.to_integral_value() else value.normalize(context)
    )


def _units(value: float, digits: int, rounding: str) -> int:
    context = _CONTEXT[rounding]
    scaled = Decimal(repr(float(value))).scaleb(digits, context)
    return int(scaled.to_integral_value(rounding=rounding))


MEASURES = {
    Accounting.BASIC: ("epsilon", 9),  # in nano-epsilon
    Accounting.ZCDP: ("rho", 12),  # an epsilon of 0.001 is a rho of 0.0000005: it needs finer units
    Accounting.PLD: ("releases", 0),
}
ADAPTIVE = "how many charges there are and what they cost was not chosen by looking at releases"
NOTHING_YET = "nothing was released"


def price(guarantee: Guarantee, terms: Terms) -> Cost:
    """What one release under ``guarantee`` costs. Raises MixedUnits or GuaranteeRefused if the terms cannot charge it."""
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
            f"{exactly(terms.rounding)}. Use a finer grid, or enrol a subject whose terms state a larger `rounding`."
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
                reason = str(problem).removeprefix(f"{problem.code}: ")
                raise GuaranteeRefused(f"this subject's charges add up by zCDP, and {reason}") from None
            if math.isinf(rho):
                raise GuaranteeRefused(
                    "the rho of this guarantee is infinite: the guarantee protects too little to be charged."
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


class Shortfall(NamedTuple):
    """Why a charge does not fit into a window of a budget, in exact decimals of ``measure``."""

    measure: str
    spent: Decimal
    requested: Decimal
    left: Decimal
    budget: Decimal

    def error(self, text: str, renews: datetime | None = None) -> BudgetExhausted:
        """The error of this text with these figures."""
        return BudgetExhausted(text, **self._asdict(), renews=renews)


def shortfall(cost: Cost, spent: Cost, allowed: Cost, terms: Terms) -> Shortfall | None:
    """Why ``cost`` does not fit into a window with these amounts; None if it fits."""
    for (measure, digits), requested, used, most in (
        (MEASURES[terms.accounting], cost.amount, spent.amount, allowed.amount),
        (("delta", DELTA_DIGITS), cost.delta, spent.delta, allowed.delta),
    ):
        if used + requested > most:
            left = max(0, most - used)  # a budget never shrinks, but nobody should see a negative amount
            return Shortfall(measure, *(shown(amount, digits) for amount in (used, requested, left, most)))
    return None


@dataclass(frozen=True, slots=True)
class Window:
    """One budget's window at the time of a statement."""

    budget: Budget
    spent: Cost
    left: Cost


@dataclass(frozen=True, slots=True)
class Statement:
    """The guarantee of all releases so far (``promised``), and how the subject's budgets stand at ``at``."""

    subject: str
    terms: Terms
    at: int  # microseconds since 1970
    charges: int
    spent: Cost  # in all
    windows: tuple[Window, ...]
    promised: Guarantee

    def __str__(self) -> str:
        measure, digits = MEASURES[self.terms.accounting]
        lines = [f"{self.subject}: {self.charges:,} charged, {shown(self.spent.amount, digits):f} {measure} in all"]
        lines += [
            f"  {window.budget}: {shown(window.spent.amount, digits):f} {measure} spent, "
            f"{shown(window.left.amount, digits):f} left"
            for window in self.windows
        ]
        return "\n".join([*lines, f"  promised: {self.promised}"])

    def to_json(self) -> dict[str, Any]:
        """The statement as values for JSON. Amounts are exact decimals in text: a float would round them."""
        return {
            "subject": self.subject,
            "at": as_text(self.at),
            "terms": self.terms.to_json(),
            "charges": self.charges,
            "spent": cost_to_json(self.spent, self.terms),
            "windows": [
                {
                    "budget": window.budget.to_json(),
                    "spent": cost_to_json(window.spent, self.terms),
                    "left": cost_to_json(window.left, self.terms),
                }
                for window in self.windows
            ],
            "promised": self.promised.to_json(),
        }


def cost_to_json(cost: Cost, terms: Terms) -> dict[str, Any]:
    """A cost in the measure of the terms' accounting, such as {"epsilon": "0.3", "delta": "0", "unprotected": 0}."""
    measure, digits = MEASURES[terms.accounting]
    return {
        measure: f"{shown(cost.amount, digits):f}",
        "delta": f"{shown(cost.delta, DELTA_DIGITS):f}",
        "unprotected": cost.unprotected,
    }


def stated(
    subject: str, terms: Terms, at: int, counted: Mapping[Guarantee, int], spent: Cost, before: tuple[Cost, ...]
) -> Statement:
    """The statement for these charges: their number under each guarantee, their sum, and the sum before each window."""
    windows = []
    for budget, earlier in zip(terms.budgets, before, strict=True):
        used, allowed = spent - earlier, allowance(budget, terms)
        left = Cost(max(0, allowed.amount - used.amount), max(0, allowed.delta - used.delta))
        windows.append(Window(budget, used, left))
    return Statement(subject, terms, at, sum(counted.values()), spent, tuple(windows), promised(counted, terms))


def promised(counted: Mapping[Guarantee, int], terms: Terms) -> Guarantee:
    """The guarantee of all charges together. Anyone can recompute it from the charges alone."""
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
        else:  # the charges differ at most in their assumptions, so they are composed as the budget counted them
            total = tight({terms.each: sum(counted.values())}, delta)
            total = total.assuming(*(reason for guarantee in counted for reason in guarantee.assumes))
    # The loss of pure releases adds up along every path; any delta is a statement about a plan (docs/proofs/ledger.md).
    return total.assuming(ADAPTIVE) if total.delta and not total.promises_nothing else total


def _unprotected(guarantee: Guarantee, terms: Terms) -> Cost:
    """One charge without a promise, if the terms name all its reasons or the mechanism's own proof page."""
    if guarantee.assumes <= terms.unprotected or (
        guarantee.proof != COMPOSITION_PROOF and guarantee.proof in terms.unprotected
    ):
        return Cost(0, 0, 1)
    raise GuaranteeRefused(
        f"this release promises nothing ({', '.join(sorted(guarantee.assumes))}), and the subject's terms do not name it in "
        "`unprotected`. Use a mode that promises something, or enrol a subject whose terms name every reason, or the proof page."
    )


def _one_of_each(guarantee: Guarantee, terms: Terms) -> Cost:
    each = terms.each
    if each is None or (guarantee.epsilon, guarantee.delta, guarantee.loss) != (each.epsilon, each.delta, each.loss):
        agreed = "one" if each is None else f"epsilon = {exactly(each.epsilon)}"
        raise GuaranteeRefused(
            f"this subject's releases are counted, each under the guarantee in its terms ({agreed}). Another guarantee needs a "
            "subject with other terms."
        )
    return Cost(1)
