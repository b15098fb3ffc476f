"""Who likes what, as a table that mechanisms take: one row for each person, one column for each item of a public list."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import several
from tacit.curator.fit import listed_items
from tacit.data.catalogue import Catalogue
from tacit.data.ids import ItemId
from tacit.data.ratings import Ratings
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.messages.private_slates_parts import checked_items
from tacit.models.dpp.kernels import rank_of
from tacit.models.features import unit_rows

Floats = NDArray[np.float64]

_LARGEST = 1e100  # of features; 1 / 1e100 is the least: squares, and sums of them over all users, are good floats


@dataclass(frozen=True, eq=False)
class Likes:
    """``rows`` are private; all the rest is public. ``like`` is the least rating that counts, ``assumed`` what has to be true for
    the list of items to be public."""

    catalogue: Catalogue
    features: Floats | None = field(repr=False)
    rows: sparse.csr_array = field(repr=False)
    like: float
    assumed: tuple[str, ...] = ()

    @classmethod
    def of(cls, ratings: Ratings, like: float, features: ArrayLike | None) -> "Likes":
        """Of the items that a list names: one that is known only because somebody rated it would tell so, and is left out."""
        if not ratings.scale.low <= like <= ratings.scale.high:
            raise InvalidParameter(
                f"like = {like:g} is not on the scale of these ratings, {ratings.scale}: "
                f"{'nothing' if like > ratings.scale.high else 'everything'} would be a like. Give a `like` on the scale."
            )
        kept, assumed = listed_items(ratings)
        if not kept.n_items:
            raise InvalidParameter(f"{ratings.name!r} has no items to make a slate of.")
        _require_ids(kept.catalogue)
        # of the items kept: how many more were rated is nobody's business
        table = None if features is None else _checked_features(features, kept.n_items)
        table = genre_features(kept.catalogue) if table is None else table
        return cls(kept.catalogue, table, rows_of(kept, like), like, assumed)

    @property
    def ids(self) -> NDArray[Any]:
        return self.catalogue.ids

    @cached_property
    def digest(self) -> str:
        """Of the list of items and of what a like is."""
        return sha256(json.dumps([self.like, self.ids.tolist()]).encode()).hexdigest()

    @cached_property
    def features_digest(self) -> str:
        """Of the public features."""
        table = np.zeros((0, 0)) if self.features is None else self.features
        return sha256(repr(table.shape).encode() + table.tobytes()).hexdigest()

    @cached_property
    def id_bytes(self) -> NDArray[np.int64]:
        """How long each id is in a message, with its comma, the shortest first."""
        return np.sort(np.array([len(json.dumps(one)) + 1 for one in self.ids.tolist()], dtype=np.int64))

    @cached_property
    def rank(self) -> int:
        """Of the public features; 0 where there are none."""
        return 0 if self.features is None else rank_of(self.features)

    def places(self, among: Sequence[ItemId] | None) -> NDArray[np.int64] | None:
        """The places of a public part of the items, ascending; None for all."""
        if among is None:
            return None
        places = np.unique([self.catalogue.code(item) for item in several("`among`", among)]).astype(np.int64)
        if not places.size:
            raise InvalidParameter("`among` must name at least one item.")
        return places

    def part(self, places: NDArray[np.int64]) -> "Likes":
        features = None if self.features is None else self.features[places]
        catalogue = self.catalogue.select(places.astype(np.int32))
        return Likes(catalogue, features, self.rows[:, places], self.like, self.assumed)

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
    """The genres of each item, as rows of length 1. Public."""
    return None if catalogue.genres is None else unit_rows(catalogue.genres)


def _checked_features(features: ArrayLike, items: int) -> Floats:
    table = _numbers(features)
    if table.ndim != 2 or len(table) != items or not table.shape[1] or not np.isfinite(table).all():
        raise InvalidParameter(
            f"features must be {items:,} rows of finite numbers, one for each listed item, in their order."
        )
    size = float(np.abs(table).max())
    if size > _LARGEST or 0.0 < size < 1.0 / _LARGEST:
        raise InvalidParameter(
            f"the largest of the features must lie from {1.0 / _LARGEST:g} to {_LARGEST:g}, or floats cannot multiply them: give "
            "them in another unit."
        )
    return table


def _require_ids(catalogue: Catalogue) -> None:
    """Refuses now what messages would refuse of a slate once it is drawn: that refusal would tell what was drawn."""
    try:
        checked_items(catalogue.ids.tolist(), most=len(catalogue))
    except InvalidMessage:
        raise InvalidParameter(
            "the ids of items must be whole numbers from -2^53 to 2^53, or texts of 1 to 200 characters, for messages to carry "
            "them: give the catalogue shorter ids."
        ) from None


def _numbers(values: ArrayLike) -> Floats:
    """``values`` as floats; an empty table, which no check lets pass, where they are none."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.zeros((0, 0))
