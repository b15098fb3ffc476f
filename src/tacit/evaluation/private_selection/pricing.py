"""Figures 2 and 6: what prices yield when they know less. Selection is greedy on private scores, so that only prices differ."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.measures import (
    REVENUE,
    SURPLUS,
    Measured,
    lift,
    lift_rows,
    measured,
    per_click,
    per_impression,
    percent,
    reserve,
)
from tacit.evaluation.private_selection.noisy_prices import noisy_prices
from tacit.evaluation.private_selection.selection_laws import Floats, response
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Claim

SERVER, MEAN = "server", "global mean"
IMPRESSION, CLICK = "impression", "click"
_FIRST = 3  # how far a figure may be from the reference's, in points: it gives whole points, of one seed


def pricing(world: World, *, rng: np.random.Generator) -> Part:
    greedy = response(world.private_scores, np.inf, mask=world.mask)
    with_device = measured(world, greedy, prices_from(world, world.private, IMPRESSION))
    known = {SERVER: world.public, MEAN: np.full_like(world.public, world.public[world.mask].mean())}
    found = {
        (name, pay): measured(world, greedy, prices_from(world, probability, pay))
        for name, probability in known.items()
        for pay in (IMPRESSION, CLICK)
    }
    rows = [
        row
        for (name, pay), one in found.items()
        for row in lift_rows(
            "greedy", one, with_device, (REVENUE, SURPLUS), **{"world": world.name, "prices": name, "pay per": pay}
        )
    ]
    claims = [_more_revenue(world, found, with_device, pay) for pay in (IMPRESSION, CLICK)]
    claims += _like_reference(world, found, with_device)
    return Part(tuple(rows), tuple(claims)).and_(noisy_prices(world, rng=rng))


def prices_from(world: World, probability: Floats, pay: str) -> Floats:
    """The expected payment for each candidate if shown; a click happens with the private probability, which is the truth here."""
    if pay == IMPRESSION:
        return per_impression(world.bids * probability, reserve(world) * probability, world.mask)
    return world.private * per_click(world.bids, probability, reserve(world), world.mask)


def _more_revenue(world: World, found: dict[tuple[str, str], Measured], full: Measured, pay: str) -> Claim:
    """The trend as the paper tells it: device, server, global mean in rising order of revenue, falling order of surplus."""
    server, average = (found[name, pay] for name in (SERVER, MEAN))
    steps = {
        "server over device": (lift(server, full, REVENUE), lift(server, full, SURPLUS)),
        "global mean over server": (lift(average, server, REVENUE), lift(average, server, SURPLUS)),
    }
    holds = all(revenue.above(0.0) and surplus.below(0.0) for revenue, surplus in steps.values())
    evidence = "; ".join(
        f"{name}: revenue {percent(revenue)}, surplus {percent(surplus)}" for name, (revenue, surplus) in steps.items()
    )
    statement = f"{world.name}: prices that know less bring more revenue and less surplus, paying per {pay}"
    return Claim(paper.NAME, statement, holds, evidence)


def _like_reference(world: World, found: dict[tuple[str, str], Measured], full: Measured) -> Iterator[Claim]:
    for name in (SERVER, MEAN):
        expected = reference.PRICING.get((world.name, name))
        if expected is not None:
            cells = [
                lift(found[name, pay], full, metric) for pay in (IMPRESSION, CLICK) for metric in (REVENUE, SURPLUS)
            ]
            apart = max(abs(cell.value - value) for cell, value in zip(cells, expected, strict=True))
            statement = (
                f"{world.name}: {name} prices move revenue and surplus as in the reference, within {_FIRST} points"
            )
            told = "revenue and surplus per impression, per click: " + ", ".join(percent(cell) for cell in cells)
            yield Claim(
                reference.NAME, statement, apart <= _FIRST / 100, f"{told}; largest gap {100 * apart:.1f} points"
            )
