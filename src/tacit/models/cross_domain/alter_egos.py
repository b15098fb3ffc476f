"""Alter egos: profiles of the source domain rewritten into the target domain, item by item."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.checks import whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.edges import goodness
from tacit.models.cross_domain.weighted_sums import k_best
from tacit.models.cross_domain.x_sim import XSim

Whole = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

NONE = -1  # a source item without a replacement


@dataclass(frozen=True, eq=False, repr=False)
class AlterEgos:
    """Ratings of target items, users x items. Private as the profiles they come from: ``repr`` shows sizes only."""

    values: Any  # csr_array, float64, sorted by item; explicit zeros are ratings
    times: Whole | None = None  # of each stored value

    def __post_init__(self) -> None:
        if self.times is not None and self.times.shape != (self.values.nnz,):
            raise InvalidParameter("times must be one for each stored value, or None.")

    def __repr__(self) -> str:
        return f"AlterEgos({self.values.shape[0]:,} users, {self.values.nnz:,} ratings)"

    @property
    def n_items(self) -> int:
        return int(self.values.shape[1])


def replacements(x: XSim) -> Codes:
    """For each source item the target item of largest X-SIM, if that is above 0, else -1. Ties go to the lower item."""
    chosen = np.full(x.n_source, NONE, dtype=np.int32)
    rows, items, _ = _best(x, 1)
    chosen[rows] = items
    return chosen


def several_replacements(x: XSim, count: int) -> Any:
    """Source items x target items: the ``count`` target items of largest X-SIM above 0, with X-SIM as their weight."""
    count = whole("count", count, least=1)
    rows, items, values = _best(x, count)
    return csr_array((values, (rows, items)), shape=x.values.shape)


def _best(x: XSim, count: int) -> tuple[Whole, Codes, Floats]:
    rows = np.repeat(np.arange(x.n_source), np.diff(x.values.indptr))
    above = np.flatnonzero(goodness(x.values.data) > 0.0)  # a sum that cancels is 0, in whatever order it was taken
    rows, items, values = rows[above], x.values.indices[above].astype(np.int32), x.values.data[above]
    kept = k_best(rows, items, values, count)
    return rows[kept], items[kept], values[kept]


def alter_egos(
    source: Any,
    replacement: NDArray[np.integer[Any]] | Any,
    n_target: int | None = None,
    *,
    times: Whole | None = None,
    target: Any = None,
    target_times: Whole | None = None,
    centres: tuple[Floats, Floats] | None = None,
) -> AlterEgos:
    """The alter egos of the users in the rows of ``source`` (users x source items).

    ``replacement``: one target item for each source item (-1: none), with ``n_target`` the number of target items; or weights,
    source x target items, where a source item has several. Several source items with one image: the (weighted) mean of their
    ratings and the latest of their times. ``target``: the users' own ratings of target items, which win over images.
    ``centres``: means of the source items and of the target items; a rating then keeps its distance from its item's mean.
    """
    weights = _weights(replacement, source.shape[1], n_target)
    if target is not None and target.shape != (source.shape[0], weights.shape[1]):
        raise InvalidParameter(
            f"target must hold {source.shape[0]:,} users x {weights.shape[1]:,} items, not {target.shape}."
        )
    (users, items, values, seen), shape = _images(source, weights, times, centres), (source.shape[0], weights.shape[1])
    if target is not None:
        own_users = np.repeat(np.arange(shape[0]), np.diff(target.indptr))
        fresh = ~np.isin(users * shape[1] + items, own_users * shape[1] + target.indices)
        users, items = np.append(users[fresh], own_users), np.append(items[fresh], target.indices)
        values = np.append(values[fresh], target.data)
        if times is not None:
            own = np.full(target.nnz, np.iinfo(np.int64).min) if target_times is None else target_times
            seen = np.append(seen[fresh], own)
    order = np.lexsort((items, users))
    starts = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=shape[0]))])
    matrix = csr_array((values[order], items[order], starts), shape=shape)
    return AlterEgos(matrix, None if times is None else seen[order])


def _weights(replacement: Any, n_source: int, n_target: int | None) -> Any:
    if not isinstance(replacement, np.ndarray):
        if replacement.shape[0] != n_source:
            raise InvalidParameter(f"replacement must have one row for each of the {n_source:,} source items.")
        return csr_array(replacement)
    if n_target is None or replacement.shape != (n_source,):
        raise InvalidParameter(f"replacement must be {n_source:,} codes of target items, with n_target their number.")
    if replacement.size and not NONE <= int(replacement.min()) <= int(replacement.max()) < n_target:
        raise InvalidParameter(f"a replacement must be from 0 to {n_target - 1}, or -1 for none.")
    mapped = np.flatnonzero(replacement != NONE)
    return csr_array((np.ones(mapped.size), (mapped, replacement[mapped])), shape=(n_source, n_target))


def _images(source: Any, weights: Any, times: Whole | None, centres: tuple[Floats, Floats] | None) -> tuple[Any, ...]:
    """Users, target items, values and times of what all ratings become, each (user, item) once."""
    counts = np.diff(weights.indptr)[source.indices]
    rating = np.repeat(np.arange(source.nnz), counts)
    begin = weights.indptr[:-1][source.indices].astype(np.int64)
    entry = np.arange(rating.size) + np.repeat(begin - np.cumsum(counts) + counts, counts)
    users = np.repeat(np.arange(source.shape[0]), np.diff(source.indptr))[rating]
    items, weight = weights.indices[entry].astype(np.int64), weights.data[entry]
    values = source.data[rating].astype(np.float64)
    if centres is not None:
        values = values - centres[0][source.indices[rating]] + centres[1][items]
    pairs, place = np.unique(users * weights.shape[1] + items, return_inverse=True)
    means = np.bincount(place, weights=weight * values) / np.bincount(place, weights=weight)
    latest = np.full(pairs.size, np.iinfo(np.int64).min)
    if times is not None:
        np.maximum.at(latest, place, times[rating])
    return pairs // weights.shape[1], pairs % weights.shape[1], means, latest
