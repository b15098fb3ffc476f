"""Figures 11 to 13: the sizes of auctions, how far private and public probabilities lie apart, and what both do to CTR."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.measures import CTR, lift, measured, public_law, server_prices
from tacit.evaluation.private_selection.rules import RR, SWEPT, by_value, clipped_name
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Claim, Row, Setting
from tacit.evaluation.statistics import mean

ALPHAS = (1.0, 0.75, 0.5, 0.25)
GROUPS = {"up to 3": (1, 3), "4 to 9": (4, 9), "10 or more": (10, 10**9)}
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
QUICK_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
CLIPPED = clipped_name(1.0)
AHEAD = "clipped is ahead up to epsilon"
SIZES, APART = "candidates, cumulative", "|private - public|, cumulative"


def facts(world: World) -> Part:
    """Figures 11 and 12, and the numbers that a world's parameters were chosen by."""
    sizes = world.sizes
    rows = [
        Row.of(world.name, "mean candidates", mean(sizes)),
        Row(world.name, {}, "most candidates", float(sizes.max()), n=len(world)),
        Row.of(world.name, "share of auctions with at most 3", mean(sizes <= 3)),
        Row.of(world.name, "share of auctions with 10 or more", mean(sizes >= 10)),
        Row.of(world.name, "mean public click probability", mean(world.public[world.mask])),
        Row(world.name, {}, "spread of private logits", world.spread),
    ]
    for size in range(1, int(min(sizes.max(), 20)) + 1):
        rows.append(Row(world.name, {"at": size}, SIZES, float((sizes <= size).mean()), n=len(world)))
    for alpha in ALPHAS:
        apart = alpha * world.apart  # equation 6 moves every private probability by this
        rows.append(
            Row(world.name, {"alpha": alpha}, "median |private - public|", float(np.median(apart)), n=apart.size)
        )
        for at in np.linspace(0.0, 0.15, 31):
            share = float((apart <= at).mean())
            rows.append(Row(world.name, {"alpha": alpha, "at": round(float(at), 4)}, APART, share, n=apart.size))
    return Part(tuple(rows))


def mixing(world: World, effort: Effort) -> Part:
    """Figure 13: randomised response and clipped noisy max by set size and by how much private data tells."""
    epsilons = QUICK_EPSILONS if effort is Effort.QUICK else EPSILONS
    prices = server_prices(world)
    rows: list[Row] = []
    ends: dict[tuple[float, str], float] = {}
    for alpha in ALPHAS:
        mixed = world.mixed(alpha)
        scored = by_value(mixed)
        public = measured(mixed, public_law(scored.public, world.mask), prices)
        found = {
            (name, epsilon): measured(mixed, SWEPT[name](scored, epsilon), prices)
            for name in (RR, CLIPPED)
            for epsilon in epsilons
        }
        for group, (low, high) in GROUPS.items():
            chosen = np.flatnonzero((world.sizes >= low) & (world.sizes <= high))
            if chosen.size < 2:
                continue
            at: Setting = {"world": world.name, "alpha": alpha, "candidates": group}
            rows += [
                Row.of(name, f"{CTR} lift", lift(one.of(chosen), public.of(chosen), CTR), **at, epsilon=epsilon)
                for (name, epsilon), one in found.items()
            ]
            ahead = [e for e in epsilons if found[CLIPPED, e].ctr[chosen].mean() > found[RR, e].ctr[chosen].mean()]
            ends[alpha, group] = max(ahead, default=0.0)
            rows.append(Row(CLIPPED, at, AHEAD, ends[alpha, group], n=chosen.size))
    return Part(tuple(rows), tuple(_claims(world, ends)))


def _claims(world: World, ends: dict[tuple[float, str], float]) -> Iterator[Claim]:
    told = "; ".join(
        f"alpha {alpha:g}: " + ", ".join(f"{ends[alpha, group]:g}" for group in GROUPS if (alpha, group) in ends)
        for alpha in ALPHAS
    )
    evidence = f"the last epsilon at which it is ahead, by {', '.join(GROUPS)} candidates: {told}"
    groups = [group for group in GROUPS if (1.0, group) in ends]
    grows = [[ends[alpha, group] for group in groups] for alpha in ALPHAS]
    yield Claim(
        paper.NAME,
        f"{world.name}: the more candidates, the longer clipped noisy max is ahead of rr",
        all(row == sorted(row) and row[0] < row[-1] for row in grows),
        evidence,
    )
    shrinks = [[ends[alpha, group] for alpha in ALPHAS] for group in groups]
    yield Claim(
        paper.NAME,
        f"{world.name}: the nearer private scores are to public ones, the longer clipped noisy max is ahead of rr",
        all(row == sorted(row) and row[0] < row[-1] for row in shrinks),
        evidence,
    )
    if world.name == "display" and len(groups) == len(GROUPS):
        found = {alpha: tuple(ends[alpha, group] for group in GROUPS) for alpha in reference.AHEAD_UP_TO}
        yield Claim(
            reference.NAME,
            f"{world.name}: clipped noisy max is ahead up to epsilon 0.5, 1, 2 at alpha 1 and 2, 3, 5 at alpha 0.25, by size",
            found == reference.AHEAD_UP_TO,
            evidence,
        )
