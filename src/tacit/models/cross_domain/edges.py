"""Ratings as similarities read them, and the similarities of items as edges.

Ratings are checked, capped if asked, and centred by the user's mean over both domains. An edge joins two items with
an adjusted cosine s, a significance S, and S as a share of all who rated either item:

    s_ij = sum over common raters of z_ui z_uj / (|z_i| |z_j|)

with z a rating less its user's mean and the norms over all raters of an item. S_ij counts the common raters whose two
ratings lie on the same side of both items' means.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.arrays import Array, Codes, Floats, Ints

By: TypeAlias = Literal["signed", "absolute"]
ROUNDING = 1e-12  # a smaller cosine is a sum that cancels up to rounding: no edge
DIGITS = 12  # cosines that agree to so many decimals are ties, and the lower item comes first
MIXED, RANGE = 2654435761, 1 << 32  # an odd factor, so that items below 2^32 mix to different numbers
_MOST_USERS = 1 << 26  # the compiled loop packs two counts of raters into the 53 bits of a float


@dataclass(frozen=True, eq=False, repr=False)
class Edges:
    """The edges between items, in both directions.

    Row i has the edges of item i, ascending by the other item, with s not 0 and S above 0.

    ``items``, ``cosine``, ``significance`` and ``share`` are aligned; those of item i stand from starts[i] to
    starts[i + 1].
    """

    starts: Ints
    items: Codes
    cosine: Floats
    significance: Ints
    share: Floats

    def __repr__(self) -> str:
        return f"Edges({self.n_items} items, {self.items.size // 2} edges)"

    @property
    def n_items(self) -> int:
        """Items of both domains together."""
        return self.starts.size - 1

    @property
    def rows(self) -> Codes:
        """The item in whose row each entry of ``items`` stands."""
        return np.repeat(np.arange(self.n_items, dtype=np.int32), np.diff(self.starts))


@dataclass(frozen=True, eq=False, repr=False)
class CentredRatings:
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

    def part(self, items: Array) -> "CentredRatings":
        """The same ratings for some items, ascending, which get new codes from 0. All users keep their rows."""
        new_codes = np.full(self.n_items, -1, dtype=np.int32)
        new_codes[items] = np.arange(len(items), dtype=np.int32)
        codes = new_codes[self.items]
        kept = codes >= 0
        starts = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))[self.starts]
        return CentredRatings(
            starts, codes[kept], self.values[kept], self.likes[kept], self.scale[items], self.raters[items]
        )

    def table(self, values: Array) -> sparse.csr_array:
        """``values`` of the ratings as a table of users x items."""
        return sparse.csr_array((values, self.items, self.starts), shape=(self.n_users, self.n_items))


def centred(ratings: Any, most_each: int | None = None, times: Ints | None = None) -> CentredRatings:
    """The centred ratings for similarities, with at most ``most_each`` ratings of every user if that is given."""
    rows = checked_ratings(ratings)
    if most_each is not None:
        rows = capped(rows, most_each, times)
    n_users, n_items = rows.shape
    if n_users >= _MOST_USERS:
        raise InvalidParameter(f"one machine handles up to {_MOST_USERS - 1} users. For more, use the Spark engine.")
    profile = np.diff(rows.indptr)
    raters = np.bincount(rows.indices, minlength=n_items).astype(np.int64)
    user_means = (rows @ np.ones(n_items)) / np.maximum(profile, 1)
    item_means = (rows.T @ np.ones(n_users)) / np.maximum(raters, 1)
    items = rows.indices.astype(np.int32, copy=False)
    values = centred_gaps(rows.data, np.repeat(user_means, profile))
    likes = centred_gaps(rows.data, item_means[items]) >= 0.0
    norms = np.sqrt(np.bincount(items, weights=values * values, minlength=n_items))
    scale = np.divide(1.0, norms, out=np.zeros(n_items), where=norms > 0.0)
    return CentredRatings(rows.indptr.astype(np.int64), items, values, likes, scale, raters)


def checked_ratings(ratings: Any) -> sparse.csr_array:
    """Users x items in floats, items ascending in every row. Stored zeros are ratings and stay."""
    if not sparse.issparse(ratings) or ratings.ndim != 2:
        raise InvalidInput("ratings must be a sparse table of users x items, such as a scipy.sparse.csr_array.")
    rows = sparse.csr_array(ratings, dtype=np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sort_indices()
        same_row = np.diff(np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))) == 0
        if np.any(same_row & (np.diff(rows.indices) == 0)):
            raise InvalidInput("a user rated an item twice. Keep one rating for each item, such as the latest.")
    if not np.isfinite(rows.data).all():
        raise InvalidInput("every rating must be a finite number. Drop or correct the others first.")
    return rows


def capped(ratings: sparse.csr_array, most_each: int, times: Ints | None = None) -> sparse.csr_array:
    """At most ``most_each`` ratings of every user: the latest, ties to the lower item. The others count as never given.

    ``times`` are aligned with the ratings. Without times, a fixed mix of the item's code decides, (code * 2654435761)
    modulo 2^32, lowest first, so that anyone who applies the same rule keeps the same ratings.
    """
    most_each = whole("most_each", most_each, least=1)
    if times is not None and np.shape(times) != ratings.data.shape:
        raise InvalidInput("times must have one entry for every rating, in the same order.")
    counts = np.diff(ratings.indptr)
    if counts.max(initial=0) <= most_each:
        return ratings
    users = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    keys = ratings.indices.astype(np.int64) * MIXED % RANGE if times is None else ~np.asarray(times, dtype=np.int64)
    # ~t = -t - 1 does not overflow for an unknown time, the smallest int64, which counts as the earliest.
    order = np.lexsort((ratings.indices, keys, users))  # users stay in order, their ratings are ranked
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size) - np.repeat(ratings.indptr[:-1], counts)
    kept = rank < most_each
    starts = np.concatenate(([0], np.cumsum(np.minimum(counts, most_each))))
    return sparse.csr_array((ratings.data[kept], ratings.indices[kept], starts), shape=ratings.shape)


def goodness(cosine: Array, by: By = "signed") -> Floats:
    """The number that edges are ranked by, larger first. Cosines that differ by rounding only get equal numbers."""
    rounded: Floats = np.rint(np.asarray(cosine, dtype=np.float64) * 10.0**DIGITS)
    return np.abs(rounded) if by == "absolute" else rounded


def best_of_groups(first: Array, good: Floats, k: int) -> NDArray[np.intp]:
    """Positions of the k best entries of every ``first``, ascending. Entries are sorted by ``first``; ties go to the earlier."""
    opens = np.flatnonzero(np.concatenate(([True], first[1:] != first[:-1]))) if first.size else np.empty(0, np.intp)
    counts = np.diff(np.append(opens, first.size))
    kept = np.ones(first.size, dtype=bool)
    for begin, count in zip(opens[counts > k].tolist(), counts[counts > k].tolist(), strict=True):
        own = good[begin : begin + count]
        last = np.partition(own, count - k)[count - k]  # of the k best
        kept[begin : begin + count] = own > last
        ties = np.flatnonzero(own == last)
        kept[begin + ties[: k - np.count_nonzero(own > last)]] = True
    return np.flatnonzero(kept)


def checked_order(by: str) -> By:
    """``by``, if it is a known order of edges."""
    if by not in get_args(By):
        raise InvalidParameter("by must be 'signed' (most similar first) or 'absolute' (strongest first).")
    return by  # type: ignore[return-value]


def centred_gaps(ratings: Floats, means: Floats) -> Floats:
    """ratings - means, and exactly 0 if they differ by rounding only: the mean of equal ratings may be off by a last bit."""
    gaps: Floats = ratings - means
    gaps[np.abs(gaps) <= ROUNDING * (np.abs(ratings) + np.abs(means))] = 0.0
    return gaps
