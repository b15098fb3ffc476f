"""Figures 3, 5 and 7: CTR, surplus and revenue against epsilon, for randomised response and noisy max, scaled and clipped."""

from dataclasses import dataclass

import numpy as np

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part
from tacit.evaluation.private_selection.measures import (
    METRICS,
    Measured,
    lift,
    lift_rows,
    measured,
    public_law,
    server_prices,
    told,
)
from tacit.evaluation.private_selection.rules import GUMBEL, SWEPT, by_value
from tacit.evaluation.private_selection.sweep_claims import claims
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.statistics import Estimate

EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
QUICK_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)


@dataclass(frozen=True)
class Swept:
    """Every rule at every epsilon in one world."""

    world: World
    public: Measured
    found: dict[tuple[str, float], Measured]

    @property
    def epsilons(self) -> list[float]:
        return sorted({epsilon for _, epsilon in self.found if np.isfinite(epsilon)})

    def lift(self, rule: str, epsilon: float, metric: str) -> Estimate:
        return lift(self.found[rule, epsilon], self.public, metric)

    def ahead(self, one: str, other: str, epsilon: float, metric: str) -> Estimate:
        """How far ``one`` is ahead of ``other``, in shares of `public`."""
        apart = self.found[one, epsilon][metric] - self.found[other, epsilon][metric]
        base = self.public[metric].mean()
        return Estimate(float(apart.mean() / base), float(apart.std(ddof=1) / np.sqrt(apart.size) / base), apart.size)


def swept(world: World, effort: Effort) -> Swept:
    scored, prices = by_value(world), server_prices(world)
    epsilons = (*(QUICK_EPSILONS if effort is Effort.QUICK else EPSILONS), np.inf)
    rules = SWEPT | (GUMBEL if effort is Effort.FULL else {})
    found = {
        (name, epsilon): measured(world, rule(scored, epsilon), prices)
        for name, rule in rules.items()
        for epsilon in epsilons
    }
    return Swept(world, measured(world, public_law(scored.public, world.mask), prices), found)


def sweep(world: World, effort: Effort) -> Part:
    one = swept(world, effort)
    rows = [
        row
        for (name, epsilon), at in one.found.items()
        for row in lift_rows(name, at, one.public, METRICS, world=world.name, epsilon=told(epsilon))
    ]
    return Part(tuple(rows), tuple(claims(one)))
