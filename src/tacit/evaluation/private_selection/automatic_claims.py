"""What `auto` is claimed to be: never worse than the public choice, better than plain rr, level with a tuned one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.measures import CTR, VALUE, percent
from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import Estimate

if TYPE_CHECKING:
    from tacit.evaluation.private_selection.automatic import Tried

_CLICKS = "click"
_AUTO, _RR, _TUNED = "auto", "rr", "rr, tuned gamma"
_SPREADS = (_AUTO, "auto, half the spread", "auto, twice the spread")
_POINTS = 0.005  # level with: not shown to be further behind than half a point
_ALONE = 0.06


def claims(one: "Tried") -> Iterator[Claim]:
    name = one.world.name
    for score in (_CLICKS, VALUE):
        for rule in _SPREADS:
            lifts = {
                epsilon: one.lift(score, rule, epsilon)
                for epsilon in one.epsilons
                if (score, rule, epsilon) in one.found
            }
            yield _all(
                f"{name}, {score} score: {rule} is not behind the public choice at any epsilon",
                {epsilon: not found.below(0.0) for epsilon, found in lifts.items()},
                lifts,
            )
        yield _ahead(one, score, _RR, f"{name}, {score} score: auto is ahead of plain rr at every epsilon", least=0.0)
        statement = (
            f"{name}, {score} score: auto is not behind rr with gamma tuned in hindsight by more than 0.5 points"
        )
        yield _ahead(one, score, _TUNED, statement, least=-_POINTS)
        for rule in ("pf clipped 0.5", "pf clipped 2"):
            statement = f"{name}, {score} score: auto is not behind {rule}"
            yield _ahead(one, score, rule, statement, least=-_POINTS)
    yield Claim(
        paper.OURS,
        f"{name}: more than one preferred item (d > 1) does not pay in auctions",
        one.several == 0.0,
        f"chosen in {100 * one.several:.1f} % of offers",
    )
    yield from _as_reference(one)


def _ahead(one: "Tried", score: str, rival: str, statement: str, *, least: float) -> Claim:
    """Ahead (``least`` 0): shown nowhere to be behind, and somewhere ahead; else nowhere shown to be further behind."""
    gaps = {epsilon: one.ahead(score, _AUTO, rival, epsilon) for epsilon in one.epsilons}
    fine = {epsilon: not gap.below(least) for epsilon, gap in gaps.items()}
    if least == 0.0 and not any(gap.above(0.0) for gap in gaps.values()):
        fine = dict.fromkeys(fine, False)
    return _all(statement, fine, gaps)


def _all(statement: str, fine: dict[float, bool], found: dict[float, Estimate]) -> Claim:
    evidence = ", ".join(f"epsilon {epsilon:g}: {percent(value)}" for epsilon, value in found.items())
    return Claim(paper.OURS, statement, all(fine.values()), evidence)


def _as_reference(one: "Tried") -> Iterator[Claim]:
    name = one.world.name
    cells = {
        (rule, epsilon): (one.lift(_CLICKS, rule, epsilon, CTR), expected)
        for rule in (_RR, _AUTO, _TUNED)
        for epsilon in one.epsilons
        if (expected := reference.click_lift(name, rule, epsilon)) is not None
    }
    if cells:
        apart = {cell: abs(found.value - expected) for cell, (found, expected) in cells.items()}
        rule, epsilon = max(apart, key=lambda cell: apart[cell])
        found, expected = cells[rule, epsilon]
        within = sum(gap <= reference.TOLERANCE for gap in apart.values())
        yield Claim(
            reference.NAME,
            f"{name}, click score: CTR lifts of rr, auto and tuned rr are within {100 * reference.TOLERANCE:g} points",
            within == len(cells),
            f"{within} of {len(cells)} cells; widest at {rule}, epsilon {epsilon:g}: {percent(found)} for {100 * expected:+.1f} %; "
            f"the full lift is {percent(one.lift(_CLICKS, _RR, np.inf, CTR))}",
        )
    if name in reference.SPENDS_NOTHING:
        share = one.alone[_CLICKS, 1.0]
        yield Claim(
            reference.NAME,
            f"{name}: at epsilon 1 auto spends nothing in about {reference.SPENDS_NOTHING[name]:.0%} of offers",
            abs(share - reference.SPENDS_NOTHING[name]) <= _ALONE,
            f"m = 1 in {100 * share:.0f} % of all offers (click score; {100 * one.alone[VALUE, 1.0]:.0f} % with value); "
            f"{100 * float((one.world.sizes == 1).mean()):.0f} % have one candidate only",
        )
