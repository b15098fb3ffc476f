"""Who likes which film: most users to make slates from, the others to ask whether a slate has something for them.

A like is a rating of at least 4. The catalogue is every film that the data set lists, liked or not, and is public; so are genres.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data import Ratings, available, load_ratings
from tacit.errors import InvalidParameter

Floats = NDArray[np.float64]
Items = NDArray[np.int64]

LIKE = 4.0
SHARE = 0.8  # of the users make slates
NAMES = {"movielens-1m": "ml-1m", "movielens-100k": "ml-100k", "movielens-small": "movielens-small"}
LARGEST = 1 << 27  # users x films: tables of that many floats are written out
_FEWEST = 10  # users on each side


@dataclass(frozen=True, eq=False, repr=False)
class Films:
    """``likes`` and ``held_out``: users x films, 0 or 1. ``genres``: films x genres, rows of length 1."""

    name: str
    likes: sparse.csr_array
    held_out: sparse.csr_array
    genres: Floats
    listed: bool = True  # whether the catalogue holds films that nobody rated

    def __repr__(self) -> str:
        return f"Films({self.name!r}: {self.items:,} films, {self.users:,} users, {self.held_out.shape[0]:,} held out)"

    @property
    def items(self) -> int:
        return int(self.likes.shape[1])

    @property
    def users(self) -> int:
        return int(self.likes.shape[0])

    @cached_property
    def counts(self) -> Items:
        """How many of the users like each film. Exact, so not for release."""
        return np.bincount(self.likes.indices, minlength=self.items).astype(np.int64)

    @cached_property
    def by_film(self) -> sparse.csr_array:
        """Films x users."""
        return self.likes.T.tocsr()

    @cached_property
    def held_out_by_film(self) -> sparse.csr_array:
        return self.held_out.T.tocsr()

    @cached_property
    def contributions(self) -> sparse.csr_array:
        """c_u, the likes of a user over the root of their number: users x films. The kernel of co-likes is the sum of c c^T."""
        each = np.diff(self.likes.indptr)
        roots = np.repeat(1.0 / np.sqrt(np.maximum(each, 1)), each)
        return sparse.csr_array(
            (self.likes.data * roots, self.likes.indices, self.likes.indptr), shape=self.likes.shape
        )


def films(data: str | Path | Ratings, *, rng: np.random.Generator) -> Films:
    """A data set by one of `NAMES`, another name of `tacit.data`, or a folder; users are divided at random."""
    ratings = data if isinstance(data, Ratings) else load_ratings(NAMES.get(str(data), data))
    genres = ratings.catalogue.genres
    if genres is None:
        raise InvalidParameter(f"{ratings.name!r} lists no genres, which diversity is told by; MovieLens does.")
    used = round(SHARE * ratings.n_users)
    if min(used, ratings.n_users - used) < _FEWEST:
        raise InvalidParameter(f"{ratings.name!r} has too few users: at least {_FEWEST} are needed to be held out.")
    if used * ratings.n_items > LARGEST:
        raise InvalidParameter(
            f"{ratings.name!r} is too large to be compared by; MovieLens 1M is the largest that is tried."
        )
    mine = np.zeros(ratings.n_users, dtype=np.bool_)
    mine[rng.permutation(ratings.n_users)[:used]] = True
    liked = ratings.subset(ratings.values >= LIKE)
    flags = genres.astype(np.float64)
    name = next((name for name, known in NAMES.items() if known == ratings.name), ratings.name)
    return Films(
        name,
        _likes(liked.select_users(mine)),
        _likes(liked.select_users(~mine)),
        flags / np.maximum(np.linalg.norm(flags, axis=1, keepdims=True), 1.0),
        listed=ratings.catalogue.rated_only is None,
    )


def default_data() -> str:
    """MovieLens 1M if ``TACIT_DATA`` has it, otherwise the films that come with a package."""
    ready = {entry.name for entry in available() if entry.ready} if os.environ.get("TACIT_DATA") else set()
    return "movielens-1m" if NAMES["movielens-1m"] in ready else "movielens-small"


def _likes(ratings: Ratings) -> sparse.csr_array:
    ones = np.ones(len(ratings))
    return sparse.csr_array((ones, ratings.items, ratings.starts), shape=(ratings.n_users, ratings.n_items))
