"""Splits of ratings into training and test rows. Both sides keep all users, items and codes.

Each row is on exactly one side. ``rng`` is a numpy Generator: experiment randomness, not privacy noise.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.checks import probability, whole
from tacit.data.ratings import MISSING_TIME, Ratings, generator
from tacit.errors import InvalidData


class Sizes(NamedTuple):
    """The number of ratings on each side of a split."""

    train: int
    test: int


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Ratings to train on, and held-out ratings of the same users and items to test on."""

    train: Ratings
    test: Ratings

    @property
    def sizes(self) -> Sizes:
        """The number of ratings on each side."""
        return Sizes(len(self.train), len(self.test))

    def __repr__(self) -> str:
        return f"Split({len(self.train):,} for training, {len(self.test):,} for testing)"


def holdout(ratings: Ratings, share: float = 0.2, *, rng: np.random.Generator) -> Split:
    """Holds out a random ``share`` of all rows, rounded to whole rows."""
    test = np.zeros(len(ratings), dtype=np.bool_)
    count = round(probability("share", share) * len(ratings))
    test[generator(rng).permutation(len(ratings))[:count]] = True
    return _split(ratings, test)


def crossfold(ratings: Ratings, folds: int = 5, *, rng: np.random.Generator) -> list[Split]:
    """``folds`` splits. Each row is a test row in exactly one of them, and fold sizes differ by at most one."""
    whole("folds", folds, least=2, most=max(2, len(ratings)))
    fold = generator(rng).permutation(len(ratings)) % folds
    return [_split(ratings, fold == number) for number in range(folds)]


def leave_out_per_user(ratings: Ratings, n: int = 1, *, keep: int = 1, rng: np.random.Generator) -> Split:
    """Holds out up to ``n`` random ratings of each user, and keeps at least ``keep`` of each for training."""
    whole("n", n, least=1)
    whole("keep", keep, least=0)
    held_out = np.clip(ratings.counts - keep, 0, n)
    order = np.lexsort((generator(rng).random(len(ratings)), ratings.users))  # shuffled within each user
    rank = np.empty(len(ratings), dtype=np.int64)
    rank[order] = np.arange(len(ratings)) - np.repeat(ratings.starts[:-1], ratings.counts)
    return _split(ratings, rank < np.repeat(held_out, ratings.counts))


def by_time(ratings: Ratings, share: float = 0.2) -> Split:
    """Holds out the latest ``share`` of all rows. All rows with the time of the border stay for training."""
    probability("share", share)
    if ratings.times is None:
        raise InvalidData(f"{ratings.name!r} has no times, so it cannot be split by time.")
    if np.any(ratings.times == MISSING_TIME):
        raise InvalidData(
            f"some times of {ratings.name!r} are missing, probably not at random. Select rows or users with complete times "
            "first: ratings.subset(ratings.times != tacit.data.MISSING_TIME)."
        )
    if not len(ratings):
        return _split(ratings, np.zeros(0, dtype=np.bool_))
    last_training = len(ratings) - round(share * len(ratings)) - 1
    edge = np.partition(ratings.times, max(0, last_training))[max(0, last_training)]
    return _split(ratings, ratings.times > edge)


def hold_out_users(ratings: Ratings, share: float = 0.2, *, rng: np.random.Generator) -> Split:
    """Holds out all rows of a random ``share`` of the users."""
    count = round(probability("share", share) * ratings.n_users)
    held_out = np.zeros(ratings.n_users, dtype=np.bool_)
    held_out[generator(rng).permutation(ratings.n_users)[:count]] = True
    return _split(ratings, np.repeat(held_out, ratings.counts))


def _split(ratings: Ratings, test: NDArray[np.bool_]) -> Split:
    return Split(ratings.subset(~test), ratings.subset(test))
