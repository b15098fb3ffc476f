"""Means of deviations weighted by similarity, for many pairs of a user and an item at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.edges import goodness

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

_ENTRIES = 1 << 21  # looked at together: about 100 MB


class Similar(Enum):
    """Which similar items (or users) a prediction uses."""

    STATIC = "static"  # the k most similar of all, as far as they are rated
    RATED = "rated"  # the k most similar among those that are rated


@dataclass(frozen=True, eq=False)
class Entries:
    """Stored entries of some rows of a matrix, laid end to end: of which pair, and at which place they are stored."""

    pair: Whole
    place: Whole


def entries_of_rows(indptr: NDArray[Any], rows: NDArray[Any]) -> Iterator[tuple[slice, Entries]]:
    """All entries of the wanted rows, in runs of bounded length: the run of pairs, and their entries (pairs from 0)."""
    first = indptr[:-1][rows].astype(np.int64)
    counts = np.diff(indptr)[rows].astype(np.int64)
    running = np.concatenate([[0], np.cumsum(counts)])
    begin = 0
    while begin < counts.size:
        end = max(begin + 1, int(np.searchsorted(running, running[begin] + _ENTRIES, side="right")) - 1)
        count = counts[begin:end]
        shift = np.repeat(first[begin:end] - running[begin:end] + running[begin], count)
        yield slice(begin, end), Entries(np.repeat(np.arange(end - begin), count), np.arange(shift.size) + shift)
        begin = end


def k_best(group: NDArray[Any], other: NDArray[Any], similarity: Floats, k: int) -> NDArray[np.intp]:
    """Places of the k largest similarities of each group, ascending; ties go to the lower ``other``."""
    many = np.bincount(group)[group] > k if group.size else np.zeros(0, dtype=np.bool_)
    full = np.flatnonzero(many)
    order = full[np.lexsort((other[full], -goodness(similarity[full]), group[full]))]
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    rank = np.arange(order.size) - np.repeat(begins, np.diff(np.append(begins, order.size)))
    kept = ~many
    kept[order[rank < k]] = True
    return np.flatnonzero(kept)


def k_best_of_rows(similarity: Floats, k: int) -> Floats:
    """The table with all but the k largest of each row set to 0; ties go to the lower column. 0 is never among them."""
    if similarity.shape[1] <= k:
        return similarity
    good = goodness(similarity)
    good[similarity == 0.0] = -np.inf
    last = np.partition(good, -k, axis=1)[:, -k, None]
    above, equal = good > last, good == last
    room = k - above.sum(axis=1, keepdims=True)
    return np.where(above | (equal & (np.cumsum(equal, axis=1) <= room)), similarity, 0.0)


def weighted_mean(pair: Whole, similarity: Floats, deviation: Floats, pairs: int, shrink: float) -> Floats:
    """Of each pair: sum of similarity x deviation over (sum of |similarity| + shrink); 0 for an empty sum."""
    top = np.bincount(pair, weights=similarity * deviation, minlength=pairs)
    bottom = np.bincount(pair, weights=np.abs(similarity), minlength=pairs)
    mean: Floats = np.divide(top, bottom + shrink, out=np.zeros(pairs), where=bottom > 0.0)
    return mean


def checked_pairs(users: Any, items: Any, n_users: int, n_items: int) -> tuple[Whole, Whole]:
    """Codes of users and items, if they are of one length and all known."""
    wanted = []
    for name, codes, n in (("users", users, n_users), ("items", items, n_items)):
        codes = np.asarray(codes)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise InvalidParameter(f"{name} must be a list of whole numbers.")
        if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < n:
            raise InvalidParameter(f"{name} must be codes from 0 to {n - 1}.")
        wanted.append(codes.astype(np.int64))
    if wanted[0].shape != wanted[1].shape:
        raise InvalidParameter("users and items must be of one length: a prediction is wanted for each pair of them.")
    return wanted[0], wanted[1]
