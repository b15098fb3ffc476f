"""A budget: the most a subject may spend in a period. A subject's terms: her budgets, their unit, and how charges add up."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tacit.checks import finite, keep, member, positive, probability
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees import Guarantee, Neighbours
from tacit.ledger.clock import DAY, start_of_month, start_of_next_month
from tacit.ledger.names import name

_SLIDING_MONTH = 31 * DAY  # never shorter than a month of the calendar
BEFORE_ALL = -(2**62)


class Period(StrEnum):
    """How long a budget lasts: a day or month of the calendar (UTC), or for ever."""

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
    """At most (epsilon, delta) in any one period: a day or month of the calendar (UTC), or, sliding, any 24 hours or 31 days."""

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
        """The window of a charge at ``at`` holds the charges from this moment on.

        Moments are in microseconds since 1970.
        """
        if self.per is Period.LIFETIME:
            return BEFORE_ALL
        if self.sliding:
            return at - (DAY if self.per is Period.DAY else _SLIDING_MONTH) + 1  # the window is (at - length, at]
        return at - at % DAY if self.per is Period.DAY else start_of_month(at)

    def renews(self, at: int) -> int | None:
        """When the calendar opens the next window; None where it does not.

        Moments are in microseconds since 1970.
        """
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
    """What was agreed with a subject when she was enrolled. Terms never change: a promise is kept, not edited.

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
            raise InvalidParameter("one budget for each kind of period: two for the same one contradict each other.")
        if (self.accounting is Accounting.PLD) != (self.each is not None):
            raise InvalidParameter("PLD accounting, and only that, states the guarantee of `each` release.")
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
        """Terms from what a person writes: one budget or several, the accounting by its name, names in any collection."""
        return cls(budgets, protects, accounting, each, unprotected, rounding)  # type: ignore[arg-type]  # checked and made right there

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
        """The terms that ``to_json`` wrote; anything else is refused."""
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
    """The parts of terms, each of its own type."""
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
        "unprotected": frozenset(name("a name in `unprotected`", one, most=1000) for one in unprotected),
    }
