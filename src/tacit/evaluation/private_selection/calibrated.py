"""Beyond the paper: noise at the rate that an epsilon exactly pays for, instead of half of it over the width."""

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.measures import (
    CTR,
    Measured,
    lift,
    lift_rows,
    measured,
    percent,
    public_law,
    server_prices,
)
from tacit.evaluation.private_selection.rules import RR, Scored, by_value, clipped_noise, rr, scaled_noise
from tacit.evaluation.private_selection.selection_laws import Floats, permute_and_flip, softmax
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import difference

EPSILONS = (1.0, 2.0, 3.0, 5.0)
PF, GUMBEL, CLIPPED = "pf scaled", "gumbel scaled", "gumbel clipped 2"
EXACT = ", exact"
_REFERENCE = {  # world, rule, epsilon: CTR lift before and after
    ("display", PF, 5.0): (0.177, 0.217),
    ("search", PF, 5.0): (-0.151, -0.120),
    ("display", CLIPPED, 2.0): (0.019, 0.038),
}


def calibrated(world: World) -> Part:
    scored, prices = by_value(world), server_prices(world)
    public = measured(world, public_law(scored.public, world.mask), prices)
    found: dict[tuple[str, float], Measured] = {}
    for epsilon in EPSILONS:
        found[RR, epsilon] = measured(world, rr(scored, epsilon), prices)
        for name in (PF, GUMBEL, CLIPPED):
            for exact in (False, True):
                law = _law(name, scored, epsilon, exact)
                found[name + EXACT * exact, epsilon] = measured(world, law, prices)
    rows: list[Row] = []
    for (name, epsilon), at in found.items():
        rows += lift_rows(name, at, public, (CTR,), world=world.name, epsilon=epsilon, rate="plain or exact")
    return Part(tuple(rows), tuple(_claims(world, public, found)))


def _law(name: str, scored: Scored, epsilon: float, exact: bool) -> Floats:
    if name == CLIPPED:
        return clipped_noise(scored, epsilon, width=2.0, law=softmax, exact=exact)
    return scaled_noise(scored, epsilon, law=permute_and_flip if name == PF else softmax, exact=exact)


def _claims(world: World, public: Measured, found: dict[tuple[str, float], Measured]) -> list[Claim]:
    claims = []
    for name in (PF, GUMBEL, CLIPPED):
        gains = [difference(found[name + EXACT, e][CTR], found[name, e][CTR]) for e in EPSILONS]
        told = ", ".join(
            f"epsilon {e:g}: {percent(lift(found[name, e], public, CTR))} to "
            f"{percent(lift(found[name + EXACT, e], public, CTR))}"
            for e in EPSILONS
        )
        holds = not any(gain.below(0.0) for gain in gains) and gains[-1].above(0.0)
        claims.append(Claim(paper.OURS, f"{world.name}: exact calibration raises the CTR of {name}", holds, told))
    behind = {e: difference(found[PF + EXACT, e][CTR], found[RR, e][CTR]) for e in EPSILONS if e >= 2.0}
    claims.append(
        Claim(
            paper.OURS,
            f"{world.name}: pf scaled stays behind rr in CTR with exact calibration, from epsilon 2 on",
            all(gap.below(0.0) for gap in behind.values()),
            ", ".join(f"epsilon {e:g}: {gap}" for e, gap in behind.items()),
        )
    )
    for (where, name, epsilon), wanted in _REFERENCE.items():
        if where == world.name:
            lifts = [lift(found[rule, epsilon], public, CTR) for rule in (name, name + EXACT)]
            claims.append(
                Claim(
                    reference.NAME,
                    f"{where}: exact calibration of {name} at epsilon {epsilon:g} moves the CTR lift from "
                    f"{100 * wanted[0]:+.1f} to {100 * wanted[1]:+.1f} %, within {100 * reference.TOLERANCE:g} points",
                    bool(
                        np.all(
                            np.abs([one.value - value for one, value in zip(lifts, wanted, strict=True)])
                            <= reference.TOLERANCE
                        )
                    ),
                    " to ".join(percent(one) for one in lifts),
                )
            )
    return claims
