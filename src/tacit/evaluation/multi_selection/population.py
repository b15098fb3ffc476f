"""Who is asked: the users of a data set, some of them look-alikes that the server knows, the others held out for trials."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data import Ratings, load_ratings, mix
from tacit.errors import InvalidParameter
from tacit.models.features import GenreProfile

MIX = "movielens-mix"
_PARTS = ("ml-1m", "ml-latest-small", "ml-25m-first100k")
LEAST = 20  # ratings of a user
SHARE, MOST = 3402 / 7375, 3402  # look-alikes among all users, and at most
_FEWEST = 10  # users on each side


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """Users with at least 20 ratings, likes and dislikes among them; items that somebody rated."""

    name: str
    ratings: Ratings
    space: GenreProfile
    features: NDArray[np.float64]  # of every user of ``ratings``
    look_alikes: NDArray[np.int64]  # codes of users, ascending
    held_out: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Population({self.name!r}: {len(self.look_alikes):,} look-alikes, {len(self.held_out):,} held out)"

    def rows_of(self, users: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ratings of these users."""
        wanted = np.zeros(self.ratings.n_users, dtype=np.bool_)
        wanted[users] = True
        return np.flatnonzero(wanted[self.ratings.users])


def population(
    data: str | Path | Ratings, *, most: int | None = MOST, share: float = SHARE, rng: np.random.Generator
) -> Population:
    """A random ``share`` of the users (at most ``most``) as look-alikes, all others held out."""
    ratings = data if isinstance(data, Ratings) else loaded(data)
    if ratings.catalogue.genres is None:
        raise InvalidParameter(f"{ratings.name!r} has no genres, and these experiments describe users by genres.")
    ratings = ratings.compact(LEAST)
    ratings = ratings.select_users(_both_blocks(_space(ratings), ratings))
    space = _space(ratings)
    drawn = rng.permutation(ratings.n_users)
    count = round(share * ratings.n_users) if most is None else min(most, round(share * ratings.n_users))
    if min(count, ratings.n_users - count) < _FEWEST:
        raise InvalidParameter(
            f"{ratings.name!r} has {ratings.n_users} users with at least {LEAST} ratings, likes and dislikes among them: too few."
        )
    features = space.of_many(ratings.starts, ratings.items, ratings.values)
    return Population(ratings.name, ratings, space, features, np.sort(drawn[:count]), np.sort(drawn[count:]))


def loaded(data: str | Path) -> Ratings:
    """A data set by name or place; `movielens-mix` is MovieLens 1M, latest-small and the start of 25M, with the films of 25M."""
    if data != MIX:
        return load_ratings(data)
    parts = [load_ratings(name) for name in _PARTS]
    return mix(parts, catalogue=parts[-1].catalogue, listed_only=True, name=MIX)


def _space(ratings: Ratings) -> GenreProfile:
    flags: Any = ratings.catalogue.genres
    return GenreProfile(flags)


def _both_blocks(space: GenreProfile, ratings: Ratings) -> NDArray[np.bool_]:
    counts = space.counts(ratings.starts, ratings.items, ratings.values).reshape(ratings.n_users, 2, -1)
    both: NDArray[np.bool_] = np.all(np.any(counts > 0, axis=2), axis=1)
    return both
