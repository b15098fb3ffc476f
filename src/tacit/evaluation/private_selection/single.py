"""Figure 9: six single auctions, three of 3 candidates and three of 10 or more; and how often what is seen in them is so.

Row 1 has a common gap between the private optimum and the public choice, row 2 a large one (the public score tells little), and in
row 3 the public choice is the best already. Scores are bid times click probability, noise is Gumbel, as in the paper.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import paper
from tacit.evaluation.private_selection.rules import RR, Rule, Scored, by_value, clipped_noise, rr, scaled_noise
from tacit.evaluation.private_selection.selection_laws import Floats, Mask, softmax
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Claim, Row

EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0)
SMALL = 0.5
SCALED, CLIPPED = "gumbel scaled", "gumbel clipped 1"
RULES: dict[str, Rule] = {
    RR: rr,
    SCALED: partial(scaled_noise, law=softmax),
    CLIPPED: partial(clipped_noise, width=1.0, law=softmax),
}
METRIC = "expected score, single auction"
_GAPS = {"common gap": 0.5, "large gap": 0.95}  # quantiles of the gap where the public choice is not the best
_EQUAL = 1e-12


def single(world: World) -> Part:
    scored = by_value(world)
    few, many = world.sizes == 3, world.sizes >= 10
    values = {
        (name, epsilon): (rule(scored, epsilon) * scored.private).sum(axis=1)
        for name, rule in RULES.items()
        for epsilon in EPSILONS
    }
    first = np.arange(len(world))
    public = scored.private[first, np.where(scored.mask, scored.public, -np.inf).argmax(axis=1)]
    best = np.where(scored.mask, scored.private, -np.inf).max(axis=1)
    rows: list[Row] = []
    for size, chosen in (("3", few), ("10 or more", many)):
        for kind, place in _examples(best / public - 1.0, chosen):
            setting = {"world": world.name, "candidates": size, "auction": kind}
            lines = {"greedy": best[place], "public": public[place]}
            rows += [Row(name, setting, METRIC, float(value), n=1) for name, value in lines.items()]
            rows += [
                Row(name, {**setting, "epsilon": epsilon}, METRIC, float(value[place]), n=1)
                for (name, epsilon), value in values.items()
            ]
    return Part(tuple(rows), tuple(_claims(world, scored, values, public, best, few, many)))


def _examples(gap: Floats, chosen: Mask) -> Iterator[tuple[str, int]]:
    """Auctions by a rule, not by hand: the ones whose gap is nearest to a quantile, and the first without a gap."""
    apart = np.flatnonzero(chosen & (gap > _EQUAL))
    none = np.flatnonzero(chosen & (gap <= _EQUAL))
    for kind, share in _GAPS.items():
        if apart.size:
            yield kind, int(apart[np.abs(gap[apart] - np.quantile(gap[apart], share)).argmin()])
    if none.size:
        yield "no gap", int(none[0])


def _claims(
    world: World,
    scored: Scored,
    values: dict[tuple[str, float], Floats],
    public: Floats,
    best: Floats,
    few: Mask,
    many: Mask,
) -> Iterator[Claim]:
    """Each is said of single auctions in the paper: here of most auctions of the kind."""
    always = np.all([values[RR, e] >= values[name, e] - _EQUAL for name in (SCALED, CLIPPED) for e in EPSILONS], axis=0)
    yield _most(f"{world.name}: of 3 candidates rr is best at every epsilon, in most auctions", always[few])
    small = values[CLIPPED, SMALL] > values[RR, SMALL]
    yield _most(
        f"{world.name}: of 10 or more, clipped noisy max is ahead of rr at epsilon {SMALL:g}, in most auctions", small[many]
    )  # fmt: skip
    hardly = values[CLIPPED, SMALL] <= 1.05 * public
    yield _most(
        f"{world.name}: of 10 or more, clipped noisy max then gains at most 5 % over the public choice, in most auctions",
        hardly[many],
    )
    known = best <= public + _EQUAL
    ahead = np.all([values[CLIPPED, e] >= values[name, e] - _EQUAL for name in (RR, SCALED) for e in EPSILONS], axis=0)
    statement = f"{world.name}: of 10 or more whose publicly best is the best, clipped noisy max is best at every epsilon, mostly"
    yield _most(statement, ahead[many & known])
    yield _most(
        f"{world.name}: of 3 whose publicly best is the best, rr is best at every epsilon, mostly", always[few & known]
    )


def _most(statement: str, seen: Mask) -> Claim:
    share = float(seen.mean()) if seen.size else np.nan
    error = np.sqrt(share * (1 - share) / max(1, seen.size))
    return Claim(
        paper.NAME, statement, bool(share - 2 * error > 0.5), f"in {100 * share:.0f} % of {seen.size:,} auctions"
    )
