"""How prototypes by a grid divide their epsilon among their steps: exactly, rounded down, so that the sum is never above it."""

from dataclasses import dataclass, fields
from fractions import Fraction

from tacit.checks import finite, keep, positive
from tacit.errors import InvalidParameter
from tacit.guarantees.rounding import down

_FINAL = Fraction(1, 10)  # of epsilon for the choice among trials, taken from the values, unless said otherwise


@dataclass(frozen=True)
class GridShares:
    """The parts of epsilon for each step; they add up to 1. ``final``, for the choice among several trials, is taken from
    ``values`` if it is left out: 0.1 where there is such a choice, else 0.
    """

    candidates: float = 0.10
    swaps: float = 0.10
    count: float = 0.05  # for the number of users of each cluster
    select: float = 0.20
    values: float = 0.55
    final: float | None = None

    def __post_init__(self) -> None:
        for name in ("candidates", "swaps", "count", "select", "values"):
            keep(self, **{name: positive(f"the share `{name}`", getattr(self, name))})
        if self.final is not None and finite("the share `final`", self.final) < 0.0:
            raise InvalidParameter("the share `final` must be at least 0.")
        if abs(sum(getattr(self, one.name) or 0.0 for one in fields(self)) - 1.0) > 1e-9:
            raise InvalidParameter("the shares of epsilon must add up to 1.")

    def of(self, epsilon: float, trials: int) -> "GridEpsilons":
        """What each step may spend, in each trial, rounded down: all together at most epsilon.

        ``epsilon`` is in nats, and so is what each step gets.
        """
        share = {one.name: Fraction(getattr(self, one.name) or 0.0) for one in fields(self)}
        total = sum(share.values())
        if trials > 1 and self.final is None:
            share["final"] = _FINAL * total
            share["values"] -= share["final"]
        if trials == 1:  # nothing to choose among
            share["values"], share["final"] = share["values"] + share["final"], Fraction(0)
        if share["values"] <= 0 or (trials > 1 and share["final"] <= 0):
            raise InvalidParameter("several trials need a share above 0 for the final choice, and one for the values.")
        each = {
            name: down(Fraction(epsilon) * part / total / (1 if name == "final" else trials))
            for name, part in share.items()
        }
        return GridEpsilons(trials=trials, **each)


@dataclass(frozen=True)
class GridEpsilons:
    """What each step spends: all but ``final`` once in every trial."""

    candidates: float
    swaps: float
    count: float
    select: float
    values: float
    final: float
    trials: int

    @property
    def total(self) -> Fraction:
        """All of it together, exactly."""
        one = sum(Fraction(part) for part in (self.candidates, self.swaps, self.count, self.select, self.values))
        return self.trials * one + Fraction(self.final)
