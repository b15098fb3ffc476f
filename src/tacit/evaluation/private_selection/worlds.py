"""Simulated worlds of auctions: display (few candidates, private data tells much) and search (many, it tells little).

The parameters are choices that meet the facts known of the paper's data sets: candidates per auction, and by how much the private
click probability differs from the public one. These leave the mean click rate and the spread of items open: of the values that meet
them, those were taken whose lifts are near the reference figures. So agreement with those figures tests laws and measures, of which
there are many more than parameters; it does not confirm the worlds. Neither data set is here.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from tacit.evaluation.private_selection.selection_laws import Floats, Mask

AUCTIONS = 8000
BID_SPREAD = 0.9  # of log bids


@dataclass(frozen=True)
class World:
    """Auctions as padded rows of click probabilities and bids; private logits lie ``spread`` around public ones."""

    name: str
    public: Floats
    private: Floats
    bids: Floats
    mask: Mask
    spread: float
    truth: Floats | None = None  # where the private probability is itself a model's

    def __len__(self) -> int:
        return len(self.mask)

    @cached_property
    def sizes(self) -> Floats:
        return np.asarray(self.mask.sum(axis=1), dtype=np.float64)

    @property
    def public_scores(self) -> Floats:
        return self.bids * self.public

    @property
    def private_scores(self) -> Floats:
        return self.bids * self.private

    @property
    def apart(self) -> Floats:
        """|private - public| of every candidate."""
        return np.asarray(np.abs(self.private - self.public)[self.mask], dtype=np.float64)

    def mixed(self, alpha: float) -> "World":
        """The private probability moved towards the public one, equation 6 of the paper."""
        return replace(self, private=alpha * self.private + (1.0 - alpha) * self.public)

    def of(self, chosen: Mask) -> "World":
        """Only these auctions."""
        truth = None if self.truth is None else self.truth[chosen]
        return replace(
            self,
            public=self.public[chosen],
            private=self.private[chosen],
            bids=self.bids[chosen],
            mask=self.mask[chosen],
            truth=truth,
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """A world's parameters: log-normal numbers of candidates, logit-normal click probabilities, log-normal bids."""

    log_size: float
    size_spread: float
    most: int  # candidates in an auction
    rate: float  # mean public click probability
    item_spread: float  # of public logits
    user_spread: float  # of private logits around the public ones
    bid_spread: float = BID_SPREAD
    interested: float = 0.0  # share of users whom a candidate interests, drawn for each candidate by itself
    interest: float = 0.0  # what that adds to the private logit


# 59 % of sizes at most 3 and 6 % at least 10, which makes the mean 3.9; median |private - public| 0.026.
DISPLAY = Shape(1.0817, 0.7523, 60, 0.068, 0.48, 0.76)
# Never more than 15: the mean is 13.9; median |private - public| 0.009.
SEARCH = Shape(3.26, 0.75, 15, 0.063, 0.7, 0.305)
SHAPES = {"display": DISPLAY, "search": SEARCH}


def simulated(name: str, auctions: int = AUCTIONS, *, rng: np.random.Generator) -> World:
    """A world by its name. The public probability is the mean of the private one given all that is public."""
    return shaped(name, SHAPES[name], auctions, rng=rng)


def shaped(name: str, shape: Shape, auctions: int, *, rng: np.random.Generator) -> World:
    """A world of any parameters. With sparse interests ``shape.rate`` is that of users who are not interested."""
    sizes = candidates(shape, auctions, rng)
    mask = np.arange(sizes.max()) < sizes[:, None]
    logits = _centre(shape) + shape.item_spread * rng.normal(size=mask.shape)
    moved = logits + shape.user_spread * rng.normal(size=mask.shape)
    bids = np.exp(shape.bid_spread * rng.normal(size=mask.shape))
    public = expected(logits, shape.user_spread)
    if shape.interested:
        moved += shape.interest * (rng.random(mask.shape) < shape.interested)
        public += shape.interested * (expected(logits + shape.interest, shape.user_spread) - public)
    return World(name, public, sigmoid(moved), bids, mask, shape.user_spread)


def candidates(shape: Shape, auctions: int, rng: np.random.Generator) -> np.ndarray:
    """How many candidates each auction has."""
    drawn = np.rint(np.exp(rng.normal(shape.log_size, shape.size_spread, auctions)))
    return np.clip(drawn, 1, shape.most).astype(np.int64)


def expected(logits: Floats, spread: float) -> Floats:
    """The mean of a logit-normal probability."""
    nodes, weights = hermegauss(21)
    total = sum(
        weight * sigmoid(logits + spread * node) for node, weight in zip(nodes, weights / weights.sum(), strict=True)
    )
    return np.asarray(total, dtype=np.float64)


def sigmoid(logits: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)), dtype=np.float64)


def logit(probability: Floats) -> Floats:
    return np.asarray(np.log(probability) - np.log1p(-probability), dtype=np.float64)


def _centre(shape: Shape) -> float:
    """The middle of the logits at which the mean probability is ``shape.rate``."""
    spread = float(np.hypot(shape.item_spread, shape.user_spread))
    low, high = -12.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if float(expected(np.array([middle]), spread)[0]) < shape.rate:
            low = middle
        else:
            high = middle
    return low
