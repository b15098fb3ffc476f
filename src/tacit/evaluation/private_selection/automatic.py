"""Beyond the paper: `auto`, which chooses on public data how many candidates to send, against plain and tuned randomised response.

All at equal epsilon. Two scores: the click probability, judged by CTR, and bid times it, judged by value. `auto` knows the spread
of private logits; what a wrong one costs is tried with half and twice of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part
from tacit.evaluation.private_selection.automatic_claims import claims
from tacit.evaluation.private_selection.cutoff import cut_response
from tacit.evaluation.private_selection.measures import (
    CTR,
    VALUE,
    Measured,
    lift,
    lift_rows,
    measured,
    public_law,
    server_prices,
    told,
)
from tacit.evaluation.private_selection.rules import RR, Scored, by_click, by_value, choose_many, clipped_noise, rr
from tacit.evaluation.private_selection.selection_laws import Floats, response
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import Estimate
from tacit.models.private_selection import Spread

CLICKS = "click"
AUTO, HALF, TWICE = "auto", "auto, half the spread", "auto, twice the spread"
TUNED, TUNED_0 = "rr, tuned gamma", "rr, tuned gamma or public"
SPREADS = {AUTO: 1.0, HALF: 0.5, TWICE: 2.0}
GAMMAS = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
WIDTHS = (0.5, 2.0)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
WRONGLY = (1.0, 3.0, 5.0)  # where a wrong spread is tried
_AUCTIONS = {Effort.QUICK: 600, Effort.DEFAULT: 2500, Effort.FULL: 5000}
_FEW = 300  # auctions in which more than one preferred item is tried
Key = tuple[str, str, float]  # score, rule, epsilon


@dataclass(frozen=True)
class Tried:
    """Every rule at every epsilon, with both scores."""

    world: World
    public: dict[str, Measured]
    found: dict[Key, Measured]
    alone: dict[tuple[str, float], float]  # share of offers with m = 1, which cost nothing
    several: float  # share of offers in which d > 1 would be chosen

    @property
    def epsilons(self) -> list[float]:
        return sorted({epsilon for _, _, epsilon in self.found if np.isfinite(epsilon)})

    def lift(self, score: str, rule: str, epsilon: float, metric: str | None = None) -> Estimate:
        """Over `public`; by default in what the score is judged by."""
        return lift(self.found[score, rule, epsilon], self.public[score], metric or JUDGED[score])

    def ahead(self, score: str, one: str, other: str, epsilon: float) -> Estimate:
        """How far ``one`` is ahead of ``other``, in shares of `public`."""
        metric = JUDGED[score]
        apart = self.found[score, one, epsilon][metric] - self.found[score, other, epsilon][metric]
        base = float(self.public[score][metric].mean())
        return Estimate(float(apart.mean()) / base, float(apart.std(ddof=1) / np.sqrt(apart.size)) / base, apart.size)


JUDGED = {CLICKS: CTR, VALUE: VALUE}


def automatic(world: World, effort: Effort) -> Part:
    one = tried(world.of(np.arange(len(world)) < _AUCTIONS[effort]))
    rows: list[Row] = []
    for (score, rule, epsilon), at in one.found.items():
        setting: dict[str, Any] = {"world": world.name, "epsilon": told(epsilon), "score": score}
        rows += lift_rows(rule, at, one.public[score], (CTR, VALUE), **setting)
    for (score, epsilon), share in one.alone.items():
        setting = {"world": world.name, "epsilon": epsilon, "score": score}
        rows.append(Row(AUTO, setting, "share of offers with m = 1", share, n=len(one.world)))
    rows.append(Row(AUTO, {"world": world.name}, "share of offers with d > 1", one.several, n=_FEW))
    return Part(tuple(rows), tuple(claims(one)))


def tried(world: World) -> Tried:
    prices = server_prices(world)
    public: dict[str, Measured] = {}
    found: dict[Key, Measured] = {}
    alone: dict[tuple[str, float], float] = {}
    for score, scored in ((CLICKS, by_click(world)), (VALUE, by_value(world))):
        bids = world.bids if score == VALUE else None
        public[score] = measured(world, public_law(scored.public, world.mask), prices)
        found[score, RR, np.inf] = measured(world, rr(scored, np.inf), prices)
        for epsilon in EPSILONS:
            found[score, RR, epsilon] = measured(world, rr(scored, epsilon), prices)
            cut = [measured(world, cut_response(scored, epsilon, gamma), prices) for gamma in GAMMAS]
            best = max(cut, key=lambda at, metric=JUDGED[score]: float(at[metric].mean()))  # type: ignore[misc]
            found[score, TUNED, epsilon] = best
            found[score, TUNED_0, epsilon] = max(
                (best, public[score]), key=lambda at, metric=JUDGED[score]: float(at[metric].mean())  # type: ignore[misc]
            )  # fmt: skip
            for width in WIDTHS:
                law = clipped_noise(scored, epsilon, width=width)
                found[score, f"pf clipped {width:g}", epsilon] = measured(world, law, prices)
            for name, factor in SPREADS.items():
                if name != AUTO and epsilon not in WRONGLY:
                    continue
                m, _ = chosen(scored, factor * world.spread, epsilon, bids)
                found[score, name, epsilon] = measured(world, first_response(scored, epsilon, m), prices)
                if name == AUTO:
                    alone[score, epsilon] = float((m == 1).mean())
    return Tried(world, public, found, alone, _several(world))


def chosen(
    scored: Scored, spread: float, epsilon: float, bids: Floats | None = None, most_d: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """m and d of every auction, from public scores."""
    order = _falling(scored)
    public = np.take_along_axis(scored.public, order, axis=1)
    choices = choose_many(
        public,
        scored.mask.sum(axis=1),
        Spread(spread),
        epsilon,
        bids=None if bids is None else np.take_along_axis(bids, order, axis=1),
        most_d=most_d,
    )
    return np.array([one.m for one in choices]), np.array([one.d for one in choices])


def first_response(scored: Scored, epsilon: float, m: NDArray[np.int64]) -> Floats:
    """Randomised response among the m publicly best."""
    ranks = np.argsort(_falling(scored), axis=1, kind="stable")
    return response(scored.private, epsilon, mask=scored.mask & (ranks < m[:, None]))


def _falling(scored: Scored) -> NDArray[np.int64]:
    return np.argsort(np.where(scored.mask, -scored.public, np.inf), axis=1, kind="stable")


def _several(world: World) -> float:
    """In how many offers more than one preferred item would be chosen, at epsilon 1 or 3."""
    scored = by_click(world.of(np.arange(len(world)) < _FEW))
    return float(np.mean([chosen(scored, world.spread, epsilon, most_d=3)[1] > 1 for epsilon in (1.0, 3.0)]))
