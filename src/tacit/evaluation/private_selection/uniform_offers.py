"""The server's own exploration: 2 % of offers are uniform, their propensity is known to all, their clicks are randomised bits."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import mean
from tacit.server.clicks import Estimate, ExploredOffer, estimate, reward

Floats = NDArray[np.float64]

EXPLORE, CLICK_EPSILON = 0.02, 1.0
OFFERS = 100_000
WANTED = 0.1  # standard error, as a share of the truth


def explored(world: World, offers: int, *, rng: np.random.Generator) -> Estimate:
    """One run of the server's estimator, on uniform offers of random auctions of the world."""
    auctions = rng.integers(len(world), size=offers)
    sizes = world.mask.sum(axis=1)[auctions]
    # Candidates of an offer stand in falling order of public scores: the first is the public choice.
    order = np.argsort(np.where(world.mask, -world.public_scores, np.inf), axis=1, kind="stable")
    place = (rng.random(offers) * sizes).astype(np.int64)
    shown = order[auctions, place]
    clicks = rng.random(offers) < world.private[auctions, shown]
    kept = 1.0 / (1.0 + math.exp(-CLICK_EPSILON))
    bits = np.where(rng.random(offers) < kept, clicks, ~clicks)
    names = [str(item) for item in range(world.mask.shape[1])]
    rows = [
        ExploredOffer("", tuple(names[:size]), names[at], int(bit))
        for size, at, bit in zip(sizes.tolist(), place.tolist(), bits.tolist(), strict=True)
    ]
    return estimate(rows, CLICK_EPSILON)


def exact_variance(world: World) -> float:
    """Of one uniform offer's term k [public shown] r: E k E(r^2) - truth^2, over auctions as well."""
    best = np.where(world.mask, world.public_scores, -np.inf).argmax(axis=1)
    chance = world.private[np.arange(len(world)), best]
    kept = 1.0 / (1.0 + math.exp(-CLICK_EPSILON))
    ones = chance * kept + (1.0 - chance) * (1.0 - kept)
    squared = ones * reward(1, CLICK_EPSILON) ** 2 + (1.0 - ones) * reward(0, CLICK_EPSILON) ** 2
    return float((world.sizes * squared).mean() - chance.mean() ** 2)


def uniform_rows(world: World, replicates: int, *, rng: np.random.Generator) -> Iterator[Row]:
    uniform = round(EXPLORE * OFFERS)
    runs = [explored(world, uniform, rng=rng) for _ in range(replicates)]
    values = np.array([run.value for run in runs])
    best = np.where(world.mask, world.public_scores, -np.inf).argmax(axis=1)
    truth = float(world.private[np.arange(len(world)), best].mean())
    variance = exact_variance(world)
    setting: dict[str, int | float | str] = {
        "target": "public",
        "log": "uniform",
        "offers": OFFERS,
        "explore": EXPLORE,
        "click epsilon": CLICK_EPSILON,
    }
    yield Row.of("uniform offers", "clicks per offer", mean(values), **setting)
    yield Row("uniform offers", setting, "sd of one run", float(values.std(ddof=1)), n=replicates)
    yield Row("uniform offers", setting, "sd of one run, exact", math.sqrt(variance / uniform))
    yield Row("uniform offers", setting, "error that the estimator states", float(np.mean([run.error for run in runs])))
    needed = variance / (WANTED * truth) ** 2 / EXPLORE
    yield Row("uniform offers", setting, f"offers for a standard error of {WANTED:.0%}", float(math.ceil(needed)))
