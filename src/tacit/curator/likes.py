"""Who likes what, as a table that mechanisms take: one row for each person, one column for each item of a public list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.curator.fit import listed_items
from tacit.data.catalogue import Catalogue
from tacit.data.ids import ItemId
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.models.dpp.kernels import rank_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Likes:
    """``rows`` are private; all the rest is public. ``assumed`` is what has to be true for the list of items to be so."""

    catalogue: Catalogue
    features: Floats | None = field(repr=False)
    rows: sparse.csr_array = field(repr=False)
    assumed: tuple[str, ...] = ()

    @classmethod
    def of(cls, ratings: Ratings, like: float, features: ArrayLike | None) -> "Likes":
        """Of the items that a list names: one that is known only because somebody rated it would tell so, and is left out."""
        kept, assumed = listed_items(ratings)
        if not kept.n_items:
            raise InvalidParameter(f"{ratings.name!r} has no items to make a slate of.")
        # of the items kept: how many more were rated is nobody's business
        table = None if features is None else _checked_features(features, kept.n_items)
        return cls(
            kept.catalogue, genre_features(kept.catalogue) if table is None else table, rows_of(kept, like), assumed
        )

    @property
    def ids(self) -> NDArray[Any]:
        return self.catalogue.ids

    @cached_property
    def digest(self) -> str:
        """Of the list of items."""
        return sha256("\n".join(map(str, self.ids.tolist())).encode()).hexdigest()

    @cached_property
    def rank(self) -> int:
        """Of the public features; 0 where there are none."""
        return 0 if self.features is None else rank_of(self.features)

    def places(self, among: Sequence[ItemId] | None) -> NDArray[np.int64] | None:
        """The places of a public part of the items, ascending; None for all."""
        if among is None:
            return None
        places = np.unique([self.catalogue.code(item) for item in among]).astype(np.int64)
        if not places.size:
            raise InvalidParameter("`among` must name at least one item.")
        return places

    def part(self, places: NDArray[np.int64]) -> "Likes":
        features = None if self.features is None else self.features[places]
        return Likes(self.catalogue.select(places.astype(np.int32)), features, self.rows[:, places], self.assumed)

    def weights(self, request: Mapping[ItemId, float] | ArrayLike | None) -> Floats | None:
        """A request as one weight for each item, cut to [0, 1]. Items that it does not name weigh 0, as does what is no number."""
        if request is None:
            return None
        if isinstance(request, Mapping):
            table = np.zeros(len(self.ids))
            for item, weight in request.items():
                table[self.catalogue.code(item)] = weight if isinstance(weight, (int, float)) else 0.0
        else:
            table = _numbers(request)
        if table.shape != self.ids.shape:
            raise InvalidParameter(f"a request weighs items by numbers from 0 to 1: by item, or all {len(self.ids):,}.")
        return np.clip(np.nan_to_num(table, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)


def rows_of(ratings: Ratings, like: float) -> sparse.csr_array:
    """1 where a person's rating is at least ``like``, people x items. A rating that is not a number is no like.

    Rows that bear one user id are one person's: they are merged here, before anything is clipped, or she would count twice.
    """
    liked = np.asarray(ratings.values, dtype=np.float64) >= like  # False for NaN
    shape = (ratings.n_users, ratings.n_items)
    rows = sparse.csr_array((liked.astype(np.float64), ratings.items, ratings.starts), shape=shape, copy=True)
    rows.eliminate_zeros()
    people, person = np.unique(ratings.user_ids, return_inverse=True)
    if people.size < ratings.n_users:
        places = (person, np.arange(ratings.n_users))
        merge = sparse.csr_array((np.ones(ratings.n_users), places), shape=(people.size, ratings.n_users))
        rows = sparse.csr_array(merge @ rows)
        rows.data = np.minimum(rows.data, 1.0)
    return rows


def genre_features(catalogue: Catalogue) -> Floats | None:
    """The genres of each item, as rows of length 1: how many genres an item has shall not count as its quality. Public."""
    if catalogue.genres is None:
        return None
    flags = catalogue.genres.astype(np.float64)
    length = np.sqrt(flags.sum(axis=1, keepdims=True))
    return np.asarray(flags / np.where(length > 0.0, length, 1.0), dtype=np.float64)


def _checked_features(features: ArrayLike, items: int) -> Floats:
    table = _numbers(features)
    if table.ndim != 2 or len(table) != items or not table.shape[1] or not np.isfinite(table).all():
        raise InvalidParameter(
            f"features must be {items:,} rows of finite numbers, one for each listed item, in their order."
        )
    return table


def _numbers(values: ArrayLike) -> Floats:
    """``values`` as floats; an empty table, which no check lets pass, where they are none."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.zeros((0, 0))
