"""Whether server prices raise or lower revenue, over worlds of other bid spreads, user spreads, sizes and interests.

Selection is greedy on private scores, as in figures 2 and 6: only prices differ, and expectations are in closed form.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.stats import norm

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import paper
from tacit.evaluation.private_selection.measures import REVENUE, SURPLUS, Measured, lift, measured, percent
from tacit.evaluation.private_selection.pricing import CLICK, IMPRESSION, prices_from
from tacit.evaluation.private_selection.selection_laws import response
from tacit.evaluation.private_selection.worlds import DISPLAY, SEARCH, Shape, World, shaped
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import Estimate

AUCTIONS = {Effort.QUICK: 1500, Effort.DEFAULT: 8000, Effort.FULL: 16_000}
_SIZES = {"few": DISPLAY, "many": SEARCH}
_QUICK = ("few, as it is", "few, sparse interests", "many, as it is", "many, bids alike")
_CONTRARY = 0.05  # the chance that some setting shows a sign falsely


def settings() -> Iterator[tuple[str, Shape]]:
    """Twelve: few candidates (display) or many (search), as they are and with one thing changed."""
    for size, shape in _SIZES.items():
        yield f"{size}, as it is", shape
        yield f"{size}, bids alike", replace(shape, bid_spread=0.3)
        yield f"{size}, bids apart", replace(shape, bid_spread=1.5)
        yield f"{size}, users alike", replace(shape, user_spread=shape.user_spread / 2.0)
        yield f"{size}, users apart", replace(shape, user_spread=shape.user_spread * 2.0)
        # One candidate in ten interests its user, who then clicks at 20 times the odds.
        yield (
            f"{size}, sparse interests",
            replace(shape, rate=0.03, user_spread=0.1, interested=0.1, interest=float(np.log(20.0))),
        )


def run(effort: Effort = Effort.DEFAULT, *, seed: int = 0, progress: Progress = untold) -> Part:
    wanted = {
        name: (place, shape)
        for place, (name, shape) in enumerate(settings())
        if effort is not Effort.QUICK or name in _QUICK
    }
    rows: list[Row] = []
    found: dict[str, dict[str, Estimate]] = {IMPRESSION: {}, CLICK: {}}
    for done, (name, (place, shape)) in enumerate(wanted.items()):
        progress("price settings", done, len(wanted))
        world = shaped(name, shape, AUCTIONS[effort], rng=np.random.default_rng([seed, 22, place]))
        for pay, (one, device) in moved(world).items():
            found[pay][name] = lift(one, device, REVENUE)
            rows += [
                Row.of(
                    "server prices", f"{metric} lift", lift(one, device, metric), **{"setting": name, "pay per": pay}
                )
                for metric in (REVENUE, SURPLUS)
            ]
    progress("price settings", len(wanted), len(wanted))
    return Part(tuple(rows), tuple(claim(pay, lifts) for pay, lifts in found.items()))


def moved(world: World) -> dict[str, tuple[Measured, Measured]]:
    """For each way to pay: with server prices, and with prices from private scores (the same in expectation, either way)."""
    greedy = response(world.private_scores, np.inf, mask=world.mask)
    device = measured(world, greedy, prices_from(world, world.private, IMPRESSION))
    return {
        pay: (measured(world, greedy, prices_from(world, world.public, pay)), device) for pay in (IMPRESSION, CLICK)
    }


def claim(pay: str, lifts: dict[str, Estimate]) -> Claim:
    """Neither sign is general if both are shown somewhere, at a level shared among the settings."""
    errors = float(norm.isf(_CONTRARY / (2 * len(lifts))))  # either sign of each
    up = [name for name, value in lifts.items() if value.above(0.0, errors)]
    down = [name for name, value in lifts.items() if value.below(0.0, errors)]
    least, most = (pick(lifts, key=lambda name: lifts[name].value) for pick in (min, max))
    return Claim(
        paper.OURS,
        f"paying per {pay}, neither sign of what server prices do to revenue is general",
        bool(up and down),
        f"revenue is shown to rise in {len(up)} and to fall in {len(down)} of {len(lifts)} settings: "
        f"from {percent(lifts[least])} ({least}) to {percent(lifts[most])} ({most})",
    )
