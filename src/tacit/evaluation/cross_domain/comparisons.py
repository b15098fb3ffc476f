"""Two methods of one world compared with each other, user by user, and claims that several such differences decide."""

from collections.abc import Iterator, Mapping, Sequence

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.outcome import Outcome, Value
from tacit.evaluation.federated_prototypes.rows import settled
from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import Estimate

Setting = Mapping[str, Value]
INF: Setting = {"epsilon": names.INF}
Apart = Sequence[tuple[str, Estimate | None]]  # what is compared, and how far the first error is below the second


class Table:
    """The figures of one world."""

    def __init__(self, found: Outcome, world: str) -> None:
        self.found, self.world = found, world

    def lower(self, one: str, other: str, of_one: Setting = INF, of_other: Setting = INF) -> Estimate | None:
        """How far one method's error is below another's; None where one of them was not tried."""
        first = self.found.find(one, world=self.world, **of_one)
        second = self.found.find(other, world=self.world, **of_other)
        if first is None or second is None or first.errors.size != second.errors.size:
            return None
        return self.found.lower(first, second)

    def epsilons(self, method: str) -> list[float]:
        """At which the method was tried, without further settings."""
        found = [
            dict(setting)["epsilon"]
            for name, setting in self.found.scored
            if name == method and settled({"world": self.world, "epsilon": dict(setting).get("epsilon", "")}) == setting
        ]
        return sorted(one for one in found if isinstance(one, float))

    def claim(self, by: str, told: str, apart: Apart) -> Iterator[Claim]:
        """Whether every difference that was tried is above 0 by 2 standard errors."""
        tried = [(name, one) for name, one in apart if one is not None]
        if tried:
            yield Claim(by, f"{self.world}: {told}", all(one.above(0.0) for _, one in tried), _evidence(tried))

    def no_worse(self, by: str, told: str, apart: Apart, room: float) -> Iterator[Claim]:
        """Whether no difference is below -room."""
        tried = [(name, one) for name, one in apart if one is not None]
        if tried:
            yield Claim(by, f"{self.world}: {told}", all(one.value >= -room for _, one in tried), _evidence(tried))

    def level(self, by: str, told: str, apart: Apart, room: float) -> Iterator[Claim]:
        """Whether no difference is further than ``room`` from 0, either way."""
        tried = [(name, one) for name, one in apart if one is not None]
        if tried:
            yield Claim(by, f"{self.world}: {told}", all(abs(one.value) <= room for _, one in tried), _evidence(tried))


def _evidence(tried: Sequence[tuple[str, Estimate]]) -> str:
    return "; ".join(f"{name}{': ' if name else ''}{one}" for name, one in tried)
