"""The ratings of two domains as one table: a row for each person, the source's items first."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import whole
from tacit.data.clock import MISSING_TIME
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import Ratings


def union(domains: TwoDomains, least: int = 1) -> tuple[sparse.csr_array, NDArray[np.int64] | None]:
    """One row for each person, the source's items first, and the times beside the values (None where there are none at all).

    Rows that bear one user id are one person's: they are merged, the latest rating of an item counts, or she would count twice.
    A value that is not finite is no rating. A person's ratings in a domain are left out where there are fewer than ``least``.
    """
    least = whole("least", least, least=1)
    parts, n_source = (domains.source, domains.target), domains.source.n_items
    values = np.concatenate([part.values for part in parts]).astype(np.float64)
    items = np.concatenate([parts[0].items.astype(np.int64), parts[1].items.astype(np.int64) + n_source])
    times = None if all(part.times is None for part in parts) else np.concatenate([_times(part) for part in parts])
    people, person = np.unique(domains.source.user_ids, return_inverse=True)
    owner = np.concatenate([person[part.users] for part in parts])
    order = _by_person(domains) if people.size == domains.n_users else _merged(owner, items, times)
    order = order[np.isfinite(values[order])]
    side = 2 * owner[order] + (items[order] >= n_source)
    order = order[(np.bincount(side, minlength=2 * people.size) >= least)[side]]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner[order], minlength=people.size))])
    shape = (people.size, n_source + domains.target.n_items)
    table = sparse.csr_array((values[order], items[order], starts), shape=shape)
    return table, None if times is None else times[order]


def _by_person(domains: TwoDomains) -> NDArray[np.int64]:
    """The rows of both domains by person and then by item, as each domain has them already, where nobody has two ids."""
    source, target = domains.source, domains.target
    ids = np.argsort(np.argsort(source.user_ids, kind="stable"), kind="stable")
    if (np.diff(ids) < 0).any():  # people in another order than that of their ids
        owner = np.concatenate([ids[source.users], ids[target.users]])
        return np.argsort(owner, kind="stable")
    places = [
        np.arange(len(source)) + np.repeat(target.starts[:-1].astype(np.int64), source.counts),
        np.arange(len(target)) + np.repeat(source.starts[1:].astype(np.int64), target.counts),
    ]
    order = np.empty(len(source) + len(target), dtype=np.int64)
    order[np.concatenate(places)] = np.arange(order.size)
    return order


def _merged(owner: NDArray[Any], items: NDArray[Any], times: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The rows by person and then by item, of one person's ratings of one item the latest; of equal times the last row."""
    keys: tuple[NDArray[Any], ...] = (items, owner) if times is None else (times, items, owner)
    order = np.lexsort(keys)  # stable
    last = np.ones(order.size, dtype=np.bool_)
    last[:-1] = (owner[order[1:]] != owner[order[:-1]]) | (items[order[1:]] != items[order[:-1]])
    return order[last]


def _times(ratings: Ratings) -> NDArray[np.int64]:
    return np.full(len(ratings), MISSING_TIME) if ratings.times is None else ratings.times
