"""Figures 4 and 8: sending only candidates whose public score is at least (1 - gamma) times the best, with randomised response."""

from dataclasses import dataclass

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.measures import (
    CTR,
    METRICS,
    VALUE,
    Measured,
    lift_rows,
    measured,
    public_law,
    server_prices,
)
from tacit.evaluation.private_selection.rules import RR, Scored, by_value
from tacit.evaluation.private_selection.selection_laws import Floats, Mask, response
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import difference

EPSILONS = (5.0, 2.0)
GAMMAS = tuple(step / 10 for step in range(11))
_NEAR = 0.1 + 1e-9


def kept(scored: Scored, gamma: float) -> Mask:
    """The candidates that are sent: a function of public scores only."""
    best = np.where(scored.mask, scored.public, -np.inf).max(axis=1, keepdims=True)
    return np.asarray(scored.mask & (scored.public >= (1.0 - gamma) * best), dtype=np.bool_)


def cut_response(scored: Scored, epsilon: float, gamma: float) -> Floats:
    return response(scored.private, epsilon, mask=kept(scored, gamma))


@dataclass(frozen=True)
class Cut:
    world: World
    epsilon: float
    found: dict[float, Measured]

    def best(self, metric: str) -> float:
        """The first of the best gammas."""
        return max(self.found, key=lambda gamma: float(self.found[gamma][metric].mean()))


def cutoff(world: World) -> Part:
    scored, prices = by_value(world), server_prices(world)
    public = measured(world, public_law(scored.public, world.mask), prices)
    rows: list[Row] = []
    claims: list[Claim] = []
    for epsilon in EPSILONS:
        cut = Cut(
            world,
            epsilon,
            {gamma: measured(world, cut_response(scored, epsilon, gamma), prices) for gamma in GAMMAS},
        )
        for gamma, at in cut.found.items():
            rows += lift_rows(RR, at, public, METRICS, world=world.name, epsilon=epsilon, gamma=gamma)
        rows += [
            Row(
                RR,
                {"world": world.name, "epsilon": epsilon, "by": metric},
                "best gamma",
                cut.best(metric),
                n=len(world),
            )
            for metric in METRICS
        ]
        claims += _claims(cut)
    return Part(tuple(rows), tuple(claims))


def _claims(cut: Cut) -> list[Claim]:
    found = []
    if cut.epsilon == paper.GOOD_EPSILON:
        best = cut.best(CTR)
        ends = [difference(cut.found[best][CTR], cut.found[end][CTR]) for end in (0.0, 1.0)]
        near = abs(best - paper.BEST_GAMMA) <= _NEAR
        found.append(
            Claim(
                paper.NAME,
                f"{cut.world.name}: with rr at epsilon 5, CTR has its optimum between gamma 0 and 1, near {paper.BEST_GAMMA:g}",
                near and all(end.above(0.0) for end in ends),
                f"best gamma {best:g} ({', '.join(f'{metric} {cut.best(metric):g}' for metric in METRICS)}); CTR above gamma 0 by "
                f"{ends[0]}, above gamma 1 by {ends[1]}",
            )
        )
    for metric in (CTR, VALUE):
        expected = reference.BEST_GAMMA.get((cut.world.name, cut.epsilon), {}).get(metric)
        if expected is not None:
            best = cut.best(metric)
            found.append(
                Claim(
                    reference.NAME,
                    f"{cut.world.name}: the best gamma with rr at epsilon {cut.epsilon:g} is {expected:g} by {metric}, within 0.1",
                    abs(best - expected) <= _NEAR,
                    f"{best:g}",
                )
            )
    return found
