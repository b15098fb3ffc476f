"""Totals of votes in which of each user at most a few count; which ones, her own record decides and nothing else."""

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidInput
from tacit.mechanisms.arrays import real_table
from tacit.mechanisms.grid import whole_sums
from tacit.mechanisms.scores import Scores


def capped_totals(rows: Scores, items: int, steps: int, items_each: int | None) -> NDArray[np.int64]:
    """For every item the sum of all users' votes in whole steps, each vote cut to [0, 1] and rounded down to 1 / ``steps``.

    Of each user the ``items_each`` largest votes count, or all of them. A vote that is not a finite number is none: refusing it
    would be an answer about it.
    """
    table = real_table(rows, "votes", items)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} votes, one for each item.")
    share = np.clip(np.where(np.isfinite(table.data), table.data, 0.0), 0.0, 1.0)
    vote = np.floor(share * steps).astype(np.int64)
    if items_each is not None:
        user = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        order = np.lexsort((_shuffled(table.indices, vote, user, table.shape[0]), -vote, user))
        rank = np.arange(len(order)) - table.indptr[user[order]]
        vote[order[rank >= items_each]] = 0
    return whole_sums(vote, table.indices, items)


def _shuffled(
    item: NDArray[np.int32], vote: NDArray[np.int64], user: NDArray[np.int64], users: int
) -> NDArray[np.uint64]:
    """In which order the equal votes of a user count: another one for every record, so that no item is always the first."""
    own = np.zeros(users, dtype=np.uint64)
    np.add.at(own, user, np.where(vote > 0, _mixed(item.astype(np.uint64)), np.uint64(0)))
    return _mixed(item.astype(np.uint64) ^ own[user])


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: no secret, only without a pattern."""
    words = (words + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
