"""Which of a user's ratings count: one of each item, all finite, and where users are capped, so many of each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import whole
from tacit.errors import InvalidInput

MIXED, RANGE = 2654435761, 1 << 32  # odd, so that no two items below 2^32 mix to the same number


def checked(ratings: Any) -> sparse.csr_array:
    """Users x items in floats, items ascending in every row; zeros that are there are ratings and stay."""
    if not sparse.issparse(ratings) or ratings.ndim != 2:
        raise InvalidInput("ratings must be a sparse table of users x items, such as scipy.sparse.csr_array.")
    rows = sparse.csr_array(ratings, dtype=np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sort_indices()
        same_row = np.diff(np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))) == 0
        if np.any(same_row & (np.diff(rows.indices) == 0)):
            raise InvalidInput("a user rated an item twice. Keep one rating of each item, such as the latest.")
    if not np.isfinite(rows.data).all():
        raise InvalidInput("a rating is not a finite number. Drop such ratings or set them right first.")
    return rows


def capped(ratings: sparse.csr_array, most_each: int, times: NDArray[np.int64] | None = None) -> sparse.csr_array:
    """At most ``most_each`` ratings of every user: the latest, ties to the lower item; the others are as if never given.

    ``times`` are aligned with the ratings. Without times a fixed mixing of the item's code decides, (code * 2654435761) modulo
    2^32, lowest first: whoever applies the same rule elsewhere keeps the same ratings.
    """
    most_each = whole("most_each", most_each, least=1)
    if times is not None and np.shape(times) != ratings.data.shape:
        raise InvalidInput("times must have one entry for every rating, in the same order.")
    counts = np.diff(ratings.indptr)
    if counts.max(initial=0) <= most_each:
        return ratings
    users = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    keys = ratings.indices.astype(np.int64) * MIXED % RANGE if times is None else ~np.asarray(times, dtype=np.int64)
    # ~t = -t - 1, which an unknown time, the least of all int64, does not overflow: it counts as the earliest
    order = np.lexsort((ratings.indices, keys, users))  # users stay in their places, ratings are ranked within
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size) - np.repeat(ratings.indptr[:-1], counts)
    kept = rank < most_each
    starts = np.concatenate(([0], np.cumsum(np.minimum(counts, most_each))))
    return sparse.csr_array((ratings.data[kept], ratings.indices[kept], starts), shape=ratings.shape)
