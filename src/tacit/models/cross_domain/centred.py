"""Ratings as similarities read them: less the user's mean, liked or not by the item's mean, with every item's norm."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.cleaning import capped, checked
from tacit.models.cross_domain.edges import ROUNDING, Codes, Floats, Ints

_MOST_USERS = 1 << 26  # the compiled loop packs two counts of raters into the 53 bits of one float


@dataclass(frozen=True, eq=False, repr=False)
class Centred:
    """Users x items; ``starts``, ``items`` and ``values`` as in a CSR table. A value of 0 is a rating at the user's mean."""

    starts: Ints
    items: Codes
    values: Floats  # z, the rating less the mean of the user's whole profile
    likes: NDArray[np.bool_]  # at least the item's mean
    scale: Floats  # 1 / norm of the item's values over all its raters; 0 where that norm is 0
    raters: Ints  # of each item

    @property
    def n_items(self) -> int:
        return self.raters.size

    @property
    def n_users(self) -> int:
        return self.starts.size - 1

    def part(self, items: NDArray[Any]) -> "Centred":
        """The same ratings of some items, ascending; the items are counted anew from 0, and all users keep their places."""
        place = np.full(self.n_items, -1, dtype=np.int32)
        place[items] = np.arange(len(items), dtype=np.int32)
        codes = place[self.items]
        kept = codes >= 0
        starts = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))[self.starts]
        return Centred(starts, codes[kept], self.values[kept], self.likes[kept], self.scale[items], self.raters[items])

    def table(self, values: NDArray[Any]) -> sparse.csr_array:
        """``values`` of the ratings as a table of users x items."""
        return sparse.csr_array((values, self.items, self.starts), shape=(self.n_users, self.n_items))


def centred(ratings: Any, most_each: int | None = None, times: NDArray[np.int64] | None = None) -> Centred:
    """What similarities need of the ratings. With ``most_each``, of so many ratings of every user and no others."""
    rows = checked(ratings)
    if most_each is not None:
        rows = capped(rows, most_each, times)
    n_users, n_items = rows.shape
    if n_users >= _MOST_USERS:
        raise InvalidParameter(f"one machine counts raters of up to {_MOST_USERS - 1} users; take the Spark engine.")
    profile = np.diff(rows.indptr)
    raters = np.bincount(rows.indices, minlength=n_items).astype(np.int64)
    user_means = (rows @ np.ones(n_items)) / np.maximum(profile, 1)
    item_means = (rows.T @ np.ones(n_users)) / np.maximum(raters, 1)
    items = rows.indices.astype(np.int32, copy=False)
    values = _less(rows.data, np.repeat(user_means, profile))
    likes = _less(rows.data, item_means[items]) >= 0.0
    norms = np.sqrt(np.bincount(items, weights=values * values, minlength=n_items))
    scale = np.divide(1.0, norms, out=np.zeros(n_items), where=norms > 0.0)
    return Centred(rows.indptr.astype(np.int64), items, values, likes, scale, raters)


def checked_shrinking(shrink: int) -> int:
    """``shrink``, the number of common raters from which a cosine counts in full; 0: always."""
    return whole("shrink", shrink, least=0)


def _less(ratings: Floats, means: Floats) -> Floats:
    """ratings - means, and exactly 0 where they differ by rounding only: a constant rater's mean may be off by a last bit."""
    gaps: Floats = ratings - means
    gaps[np.abs(gaps) <= ROUNDING * (np.abs(ratings) + np.abs(means))] = 0.0
    return gaps
