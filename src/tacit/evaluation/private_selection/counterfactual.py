"""What another way to choose would have brought, from a log of private choices: without bias, but with large errors.

In a simulated display world clicks are drawn by the private probability, so that the truth is known. Three estimates of the clicks
per offer of the public choice: from propensities that a server must not see (the yardstick); from terms that devices form and that
leave as a sum with noise; from the few offers that the server itself made uniform, with randomised clicks.
"""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_selection import click_counts, further_reference
from tacit.evaluation.private_selection.selection_laws import response
from tacit.evaluation.private_selection.uniform_offers import uniform_rows
from tacit.evaluation.private_selection.worlds import World, simulated
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import mean
from tacit.mechanisms import LaplaceSum
from tacit.mechanisms.noise import ReplayedNoise

Floats = NDArray[np.float64]

OURS = "tacit"
CLICKS: Final = "clicks per offer"
SD: Final = "sd of one run"
EXACT_SD: Final = "sd of one run, exact"
AUCTIONS, EPSILON, RELEASE_EPSILON = 2041, 3.0, 1.0
OFFERED, OUT_OF = 3, 8
RR_LOG: dict[str, int | float | str] = {"target": "public", "log": "rr", "epsilon": EPSILON}
OUTSIDE: dict[str, int | float | str] = {"target": "greedy", "log": "rr", "m": OFFERED, "k": OUT_OF}
_REPLICATES = {Effort.QUICK: 200, Effort.DEFAULT: 1000, Effort.FULL: 2000}
_DRAWN = {Effort.QUICK: 12, Effort.DEFAULT: 200, Effort.FULL: 400}  # replicates whose noise is drawn by the mechanisms


class Log(NamedTuple):
    """One run, by auction: the target's probability of what was shown over its propensity, and that times the click."""

    weights: Floats
    terms: Floats


def logged(world: World, law: Floats, target: Floats, *, rng: np.random.Generator) -> Log:
    """One run: an item drawn from the law in every auction, a click drawn by its private probability."""
    reached = np.cumsum(law, axis=1) < rng.random((len(law), 1))
    place = np.minimum(reached.sum(axis=1), world.mask.sum(axis=1) - 1)  # a sum of the law may end a little below 1
    each = np.arange(len(law))
    weights = target[each, place] / law[each, place]
    return Log(weights, weights * (rng.random(len(law)) < world.private[each, place]))


def exact_sd(world: World, law: Floats, target: Floats) -> float:
    """Of the mean term over the auctions, which are fixed: Var = sum_i target_i^2 c_i / law_i - (sum_i target_i c_i)^2."""
    share = np.divide(target**2, law, out=np.zeros_like(law), where=law > 0.0)
    variance = (share * world.private).sum(axis=1) - (target * world.private).sum(axis=1) ** 2
    return float(np.sqrt(variance.sum())) / len(law)


def run(effort: Effort = Effort.DEFAULT, *, seed: int = 0, progress: Progress = untold) -> Part:
    """Estimates by inverse propensity, and counts of randomised clicks."""
    progress("counterfactual estimates", 0, 3)
    world = simulated("display", AUCTIONS, rng=np.random.default_rng([seed, 50]))
    rows = [*_yardstick(world, effort, seed)]
    rows += _outside(seed)
    rows += further_reference.counterfactual(RR_LOG, OUTSIDE, CLICKS, SD)
    progress("counterfactual estimates", 1, 3)
    rows += uniform_rows(world, _DRAWN[effort], rng=np.random.default_rng([seed, 53]))
    progress("counterfactual estimates", 2, 3)
    notes = (
        "Counterfactual estimates: those from bare propensities are a yardstick. With rr a propensity tells whether what was shown "
        "was the best, so no server may see it.",
        "Counterfactual estimates: sums with noise assume one report of each user, and an aggregator trusted with the terms.",
    )
    part = Part(tuple(rows), tuple(_claims(rows)), notes).and_(click_counts.run(_DRAWN[effort], seed=seed))
    progress("counterfactual estimates", 3, 3)
    return part


def _yardstick(world: World, effort: Effort, seed: int) -> Iterator[Row]:
    law = response(world.private_scores, EPSILON, mask=world.mask)
    target = response(world.public_scores, np.inf, mask=world.mask)
    truth = float((target * world.private).sum(axis=1).mean())
    rng = np.random.default_rng([seed, 51])
    runs = [logged(world, law, target, rng=rng) for _ in range(_REPLICATES[effort])]
    plain = np.array([log.terms.mean() for log in runs])
    normalised = np.array([log.terms.sum() / log.weights.sum() for log in runs])
    setting = RR_LOG
    # rr gives each of m candidates at least 1 / (e^epsilon + m - 1), so no inverse propensity is larger than this. Public.
    most = math.exp(EPSILON) + (int(world.mask.sum(axis=1).max()) - 1)
    yield Row("truth", setting, CLICKS, truth, n=AUCTIONS)
    yield Row.of("propensities", CLICKS, mean(plain), **setting)
    yield Row("propensities", setting, SD, float(plain.std(ddof=1)), n=len(runs))
    yield Row("propensities", setting, EXACT_SD, exact_sd(world, law, target))
    yield Row("propensities", setting, "largest weight", max(float(log.weights.max()) for log in runs))
    yield Row("propensities", setting, "bound on weights", most)
    yield Row.of("propensities, self-normalised", CLICKS, mean(normalised), **setting)
    yield Row("propensities, self-normalised", setting, SD, float(normalised.std(ddof=1)), n=len(runs))
    sums, sd_of_noise = LaplaceSum(1, most, RELEASE_EPSILON), math.sqrt(2.0) * most / RELEASE_EPSILON / AUCTIONS
    noise = ReplayedNoise(seed)
    with_noise = np.array(
        [
            sums.release(np.clip(log.terms, 0.0, most)[:, None], noise).value.to_floats()[0] / AUCTIONS
            for log in runs[: _DRAWN[effort]]
        ]
    )
    setting = setting | {"release epsilon": RELEASE_EPSILON}
    yield Row.of("device terms, noisy sum", CLICKS, mean(with_noise), **setting)
    yield Row("device terms, noisy sum", setting, SD, float(with_noise.std(ddof=1)), n=len(with_noise))
    yield Row(
        "device terms, noisy sum",
        setting,
        EXACT_SD,
        float(np.hypot(exact_sd(world, law, target), sd_of_noise)),
    )
    yield Row("device terms, noisy sum", setting, "sd of the noise", sd_of_noise)


def _outside(seed: int) -> Iterator[Row]:
    """The target is greedy over 8, of which the 3 publicly best are offered: what lies outside counts as no click."""
    drawn = simulated("display", 20 * AUCTIONS, rng=np.random.default_rng([seed, 52]))
    world = drawn.of(drawn.sizes >= OUT_OF)
    mask = world.mask & (np.arange(world.mask.shape[1]) < OUT_OF)
    private, public = world.private_scores, world.public_scores
    each = np.arange(len(world))
    liked = np.where(mask, private, -np.inf).argmax(axis=1)
    order = np.argsort(np.where(mask, -public, np.inf), axis=1, kind="stable")[:, :OFFERED]
    found = world.private[each, liked]
    setting = OUTSIDE
    yield Row.of("truth", CLICKS, mean(found), **setting)
    yield Row.of("device terms", CLICKS, mean(found * (order == liked[:, None]).any(axis=1)), **setting)


def _claims(rows: list[Row]) -> Iterator[Claim]:
    """Bias is looked for at 3 standard errors, from the exact sd of a run: terms are so skewed that few runs understate it."""

    def of(method: str, target: str, metric: str = CLICKS) -> Row:
        return next(row for row in rows if (row.method, row.metric, row.setting["target"]) == (method, metric, target))

    truth = of("truth", "public").value
    for method in ("propensities", "device terms, noisy sum", "uniform offers"):
        found = of(method, "public")
        error = of(method, "public", EXACT_SD).value / math.sqrt(found.n)
        yield Claim(
            OURS,
            f"{method}: no bias for the target public",
            abs(found.value - truth) <= 3.0 * error,
            f"{found.value:.4f} ± {error:.4f} for {truth:.4f}",
        )
    truth, seen = of("truth", "greedy").value, of("device terms", "greedy")
    yield Claim(
        OURS,
        "device terms: no bias for a target that chooses outside of the offered candidates",
        abs(seen.value - truth) <= 3.0 * (seen.stderr or 0.0),
        f"greedy over {OUT_OF} from offers of {OFFERED}: {seen.value:.3f} for {truth:.3f}",
    )
