"""A public and a private model of ratings, fitted on all but ten ratings of every user."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data import Ratings, available, leave_out_per_user, load_ratings
from tacit.data.readers.table import read_columns
from tacit.data.splits import Split
from tacit.models.features import grouped_ridge

Floats = NDArray[np.float64]

NAMES = ("ml-100k", "movielens-small")  # the first that is there
HELD_OUT = 10  # ratings of every user
SHRINKAGE = 5.0  # ratings of the average kind that every mean is given beside its own
RANK, PENALTY, ROUNDS = 8, 0.6, 15  # of the factors of taste; the penalty is times the root of the number of ratings


@dataclass(frozen=True, eq=False)
class Films:
    """Both models' ratings of all films, what they were fitted on, and what was held out."""

    split: Split
    public: Floats  # by film
    private: Floats  # user x film, within the scale

    def error(self, of: Floats) -> float:
        """The root mean squared error on held-out ratings; ``of`` is user x film."""
        test = self.split.test
        return float(np.sqrt(np.mean((of[test.users, test.items] - test.values) ** 2)))

    @property
    def public_error(self) -> float:
        return self.error(np.broadcast_to(self.public, self.private.shape))

    @property
    def private_error(self) -> float:
        return self.error(self.private)


def film_ratings() -> Ratings | None:
    """MovieLens 100K if ``TACIT_DATA`` has it, otherwise the films that come with a package; None if there are neither."""
    ready = {entry.name for entry in available() if entry.ready}
    return next((load_ratings(name) for name in NAMES if name in ready), None)


def film_split(ratings: Ratings, *, rng: np.random.Generator) -> Split:
    """Ten ratings of every user for testing: those that MovieLens 100K itself chose if they are there, otherwise random ones."""
    file = Path(os.environ.get("TACIT_DATA", "")) / ratings.name / "ua.test"
    if ratings.name != NAMES[0] or not file.is_file():
        return leave_out_per_user(ratings, HELD_OUT, keep=HELD_OUT, rng=rng)
    frame, _ = read_columns(
        file,
        {"user": "small integer", "item": "small integer"},
        separator="\t",
        names=("user", "item", "rating", "time"),
    )
    users = np.searchsorted(ratings.user_ids, frame["user"].to_numpy())
    items = np.searchsorted(ratings.catalogue.ids, frame["item"].to_numpy())
    pairs = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    test = np.isin(pairs, users.astype(np.int64) * ratings.n_items + items)
    return Split(ratings.subset(~test), ratings.subset(test))


def film_models(split: Split, *, rank: int = RANK, penalty: float = PENALTY, rng: np.random.Generator) -> Films:
    """Public: the shrunk mean of a film. Private: that, the user's generosity, and alternating least squares on what is left."""
    train = split.train
    users, items = train.users, train.items
    values = train.values.astype(np.float64)
    average = float(values.mean())
    public = average + _shrunk(values - average, items, train.n_items)
    left = values - public[items]
    generosity = _shrunk(left, users, train.n_users)
    left -= generosity[users]
    by_item = np.lexsort((users, items))
    item_starts = np.concatenate([[0], np.cumsum(train.item_counts)])
    factors = rng.normal(scale=0.1, size=(train.n_items, rank))
    penalties = np.full(rank, penalty)
    for _ in range(ROUNDS):
        tastes = grouped_ridge(train.starts, items, left, factors, penalties)
        factors = grouped_ridge(item_starts, users[by_item], left[by_item], tastes, penalties)
    private = np.clip(public + generosity[:, None] + tastes @ factors.T, train.scale.low, train.scale.high)
    return Films(split, public, private)


def _shrunk(values: Floats, groups: NDArray[np.int32], count: int) -> Floats:
    sums = np.bincount(groups, weights=values, minlength=count)
    return np.asarray(sums / (np.bincount(groups, minlength=count) + SHRINKAGE), dtype=np.float64)
