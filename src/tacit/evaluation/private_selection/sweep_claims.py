"""What the sweep over epsilon decides: when clipped noise is ahead, where it ends, and how much randomised response recovers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.measures import CTR, REVENUE, SURPLUS, VALUE, percent
from tacit.evaluation.private_selection.rules import PF_SCALED, RR, WIDTHS, clipped_name
from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import Estimate

if TYPE_CHECKING:
    from tacit.evaluation.private_selection.sweep import Swept

_CLIPPED = tuple(clipped_name(width) for width in WIDTHS)
_NARROW = tuple(clipped_name(width) for width in (0.5, 2.0))
_SHARE = 0.05  # how far the recovered share may be from the reference's


def claims(one: "Swept") -> Iterator[Claim]:
    yield from (_behind_at_high(one, metric) for metric in (CTR, SURPLUS, VALUE))
    yield from (_ahead_at_low(one, metric) for metric in (CTR, SURPLUS, REVENUE))
    yield _worse_than_public(one)
    if one.world.name == "display":
        yield _never_ahead(one)
    yield from _plateaus(one)
    yield _approaches(one)
    yield _raises_all(one)
    yield from _as_reference(one)


def _behind_at_high(one: "Swept", metric: str) -> Claim:
    rivals = (PF_SCALED, *_CLIPPED)
    gaps = {rival: one.ahead(RR, rival, paper.GOOD_EPSILON, metric) for rival in rivals}
    return Claim(
        paper.NAME,
        f"{one.world.name}: at epsilon {paper.GOOD_EPSILON:g} rr has more {metric} than noisy max, scaled or clipped",
        all(gap.above(0.0) for gap in gaps.values()),
        "ahead of " + ", ".join(f"{rival} by {percent(gap)}" for rival, gap in gaps.items()),
    )


def _ahead_at_low(one: "Swept", metric: str) -> Claim:
    low = one.epsilons[0]
    gaps = {rule: one.ahead(rule, RR, low, metric) for rule in _CLIPPED}
    return Claim(
        paper.NAME,
        f"{one.world.name}: at a small epsilon ({low:g}) clipped noisy max can have more {metric} than rr",
        any(gap.above(0.0) for gap in gaps.values()),
        "ahead of rr: " + ", ".join(f"{rule} {percent(gap)}" for rule, gap in gaps.items()),
    )


def _worse_than_public(one: "Swept") -> Claim:
    """The paper: at epsilon 1 no mechanism is better than no personalisation."""
    lifts = {rule: one.lift(rule, paper.BAD_EPSILON, CTR) for rule in (RR, PF_SCALED, *_CLIPPED)}
    return Claim(
        paper.NAME,
        f"{one.world.name}: at epsilon {paper.BAD_EPSILON:g} no mechanism has a higher CTR than the public choice",
        not any(value.above(0.0) for value in lifts.values()),
        ", ".join(f"{rule} {percent(value)}" for rule, value in lifts.items()),
    )


def _never_ahead(one: "Swept") -> Claim:
    """The paper saw this on its display data, and not on search."""
    ahead = [
        f"{rule} at {epsilon:g} by {percent(gap)}"
        for epsilon in one.epsilons
        for rule in (PF_SCALED, *_CLIPPED)
        if (gap := one.ahead(rule, RR, epsilon, CTR)).above(0.0)
    ]
    return Claim(
        paper.NAME,
        f"{one.world.name}: noisy max is never ahead of rr in CTR",
        not ahead,
        "ahead: " + (", ".join(ahead) or "nowhere"),
    )


def _plateaus(one: "Swept") -> Iterator[Claim]:
    for rule in _NARROW:
        gap = one.ahead(RR, rule, np.inf, VALUE)
        yield Claim(
            paper.NAME,
            f"{one.world.name}: {rule} ends below the private optimum however large epsilon is",
            gap.above(0.0),
            f"CTR lift {percent(one.lift(rule, np.inf, CTR))} against {percent(one.lift(RR, np.inf, CTR))}; "
            f"value missed {percent(gap)}",
        )


def recovered(one: "Swept", epsilon: float, metric: str = CTR) -> Estimate:
    """The share of the private optimum's lift that rr keeps; the error is of first order, auctions paired."""
    public, at, full = (found[metric] for found in (one.public, one.found[RR, epsilon], one.found[RR, np.inf]))
    whole = float((full - public).mean())
    if whole == 0.0:
        return Estimate(np.nan, np.nan, public.size)
    share = float((at - public).mean()) / whole
    residuals = ((at - public) - share * (full - public)) / whole
    return Estimate(share, float(residuals.std(ddof=1) / np.sqrt(residuals.size)), residuals.size)


def _approaches(one: "Swept") -> Claim:
    share = recovered(one, paper.GOOD_EPSILON)
    return Claim(
        paper.NAME,
        f"{one.world.name}: rr at epsilon {paper.GOOD_EPSILON:g} is above the public choice and near the private optimum (CTR)",
        one.lift(RR, paper.GOOD_EPSILON, CTR).above(0.0) and share.above(0.9),
        f"it keeps {100 * share.value:.0f} ± {100 * share.stderr:.0f} % of the gain; near: at least 90 %",
    )


def _raises_all(one: "Swept") -> Claim:
    lifts = {metric: one.lift(RR, paper.GOOD_EPSILON, metric) for metric in (CTR, SURPLUS, REVENUE)}
    return Claim(
        paper.NAME,
        f"{one.world.name}: rr at epsilon {paper.GOOD_EPSILON:g} raises CTR, surplus and revenue over the public choice",
        all(value.above(0.0) for value in lifts.values()),
        ", ".join(f"{metric} {percent(value)}" for metric, value in lifts.items()) + " (prices per impression)",
    )


def crossing(one: "Swept") -> tuple[float, float]:
    """The last epsilon at which a narrow clip is ahead of rr in CTR, and the next one; 0 if it never is."""
    ahead = [
        epsilon for epsilon in one.epsilons if max(one.ahead(rule, RR, epsilon, CTR).value for rule in _NARROW) > 0.0
    ]
    last = max(ahead, default=0.0)
    return last, min((epsilon for epsilon in one.epsilons if epsilon > last), default=np.inf)


def _as_reference(one: "Swept") -> Iterator[Claim]:
    name = one.world.name
    gaps = {
        (rule, epsilon): (one.lift(rule, epsilon, CTR), expected)
        for rule, epsilon in one.found
        if (expected := reference.ctr(name, rule, "inf" if np.isinf(epsilon) else epsilon)) is not None
    }
    if gaps:
        (rule, epsilon), (found, expected) = max(gaps.items(), key=lambda cell: abs(cell[1][0].value - cell[1][1]))
        points = reference.TOLERANCE
        within = sum(abs(one.value - wanted) <= points for one, wanted in gaps.values())
        yield Claim(
            reference.NAME,
            f"{name}: CTR lifts of the main table are within {100 * points:g} points",
            within == len(gaps),
            f"{within} of {len(gaps)} cells; widest at {rule}, epsilon {epsilon:g}: {percent(found)} for {100 * expected:+.1f} %",
        )
        wide, narrow = clipped_name(8.0), clipped_name(2.0)
        worst = max((one.ahead(wide, narrow, epsilon, CTR) for epsilon in one.epsilons if epsilon <= 8), key=_value)
        statement = f"{name}: a clip of width 8 has less CTR than one of width 2 at every epsilon up to 8"
        yield Claim(reference.NAME, statement, worst.below(0.0), f"at best {percent(worst)}")
    if name in reference.CROSSING:
        low, high = reference.CROSSING[name]
        last, first = crossing(one)
        yield Claim(
            reference.NAME,
            f"{name}: rr overtakes clipped noisy max between epsilon {low:g} and {high:g}",
            low <= last < high and first <= high,
            f"clipped is last ahead at {last:g}, behind at {first:g}",
        )
    if name in reference.RECOVERED:
        share = recovered(one, paper.GOOD_EPSILON)
        yield Claim(
            reference.NAME,
            f"{name}: rr at epsilon {paper.GOOD_EPSILON:g} recovers about {reference.RECOVERED[name]:.0%} of the gain",
            abs(share.value - reference.RECOVERED[name]) <= _SHARE,
            f"{100 * share.value:.0f} ± {100 * share.stderr:.0f} %",
        )


def _value(found: Estimate) -> float:
    return found.value
