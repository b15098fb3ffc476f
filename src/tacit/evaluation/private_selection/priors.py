"""Priors of private scores, as draws x candidates: those of simulated auctions, and some that rr(m) does not suit.

As in an offer, candidates stand in falling order of their public scores.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.private_selection.worlds import World, logit, sigmoid

Floats = NDArray[np.float64]

FEW = 80  # draws of a prior
CANDIDATES = 6  # of the priors that rr(m) does not suit
BERNOULLI, ALIKE = 0.1, 20


def auction_draws(world: World, auction: int, draws: int, *, clicks: bool, rng: np.random.Generator) -> Floats:
    """Draws of the private scores of one auction, whose means are the public scores."""
    real = world.mask[auction]
    public, stakes = world.public[auction, real], np.ones(real.sum()) if clicks else world.bids[auction, real]
    drawn = sigmoid(logit(public) + world.spread * rng.normal(size=(draws, public.size)))
    drawn *= stakes * public / drawn.mean(axis=0)
    return np.asarray(drawn[:, np.argsort(-stakes * public, kind="stable")])


def unequal_spreads(rng: np.random.Generator) -> Floats:
    """Some candidates are well known, others are not."""
    sigma = np.where(rng.random(CANDIDATES) < 0.5, 0.002, 0.08)
    return _about(rng.uniform(0.05, 0.15, CANDIDATES), sigma * rng.normal(size=(FEW, CANDIDATES)))


def shared_taste(rng: np.random.Generator) -> Floats:
    """One trait of the user moves all candidates, each to its own side."""
    loadings = 0.08 * rng.normal(size=CANDIDATES)
    noise = 0.01 * rng.normal(size=(FEW, CANDIDATES))
    return _about(rng.uniform(0.05, 0.15, CANDIDATES), rng.normal(size=(FEW, 1)) * loadings + noise)


def equal_items(rng: np.random.Generator) -> Floats:
    """Each candidate is right for one user in ten, and nothing public tells them apart."""
    return np.asarray(rng.random((FEW, ALIKE)) < BERNOULLI, dtype=np.float64)


EQUAL = f"Bernoulli({BERNOULLI:g}), k = {ALIKE}"
UNSUITED: dict[str, Callable[[np.random.Generator], Floats]] = {
    "unequal spreads": unequal_spreads,
    "shared taste": shared_taste,
    EQUAL: equal_items,
}


def _about(means: Floats, apart: Floats) -> Floats:
    drawn: Floats = means + apart - apart.mean(axis=0)
    return drawn[:, np.argsort(-means, kind="stable")]
