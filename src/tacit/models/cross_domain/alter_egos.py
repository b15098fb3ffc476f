"""Alter egos: profiles of the source domain rewritten into the target domain, and predictions from them.

`replacements` chooses a target item for each source item, `alter_egos` rewrites profiles with it, and `item_based`
predicts ratings from a profile by how similar an item is to the items of the profile:

    b_ui + sum of s_ij f_j (r_uj - b_uj) / (sum of |s_ij| f_j + shrink)

over similar items j of the profile, with s the adjusted cosine, f the weight of a rating's age, and b a base: the
item's mean, moved by how high the user rates if you ask for that. Older ratings may count less: `decay` weighs them by
the rank of their time, not by the time itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.checks import finite, member, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Array, Codes, Floats, Ints
from tacit.models.cross_domain.edges import ROUNDING, centred, goodness
from tacit.models.cross_domain.x_sim import XSim

_ENTRIES = 1 << 21  # in memory at once: about 100 MB
NONE = -1  # a source item without a replacement
Scale: TypeAlias = tuple[float, float]  # the lowest and the highest rating
MISSING = int(np.iinfo(np.int64).min)  # an unknown time, which sorts before all others
_CELLS = 1 << 22  # cosines in memory at once: 32 MB an array


@dataclass(frozen=True, eq=False, repr=False)
class AlterEgos:
    """Ratings of target items, users x items. They are as private as the profiles they come from; ``repr`` shows sizes only."""

    values: Any  # csr_array, float64, sorted by item; explicit zeros are ratings
    times: Ints | None = None  # of each stored value

    def __post_init__(self) -> None:
        if self.times is not None and self.times.shape != (self.values.nnz,):
            raise InvalidParameter("times must be one time for each stored value, or None.")

    def __repr__(self) -> str:
        return f"AlterEgos({self.values.shape[0]:,} users, {self.values.nnz:,} ratings)"

    @property
    def n_items(self) -> int:
        """How many target items there are."""
        return int(self.values.shape[1])


def replacements(x: XSim) -> Codes:
    """The target item of largest X-SIM for each source item, or -1 if none is above 0. Ties go to the lower item."""
    chosen = np.full(x.n_source, NONE, dtype=np.int32)
    rows, items, _ = _best(x, 1)
    chosen[rows] = items
    return chosen


def several_replacements(x: XSim, count: int) -> Any:
    """Source items x target items: the ``count`` target items of largest X-SIM above 0, weighted by X-SIM."""
    count = whole("count", count, least=1)
    rows, items, values = _best(x, count)
    return csr_array((values, (rows, items)), shape=x.values.shape)


def _best(x: XSim, count: int) -> tuple[Ints, Codes, Floats]:
    """The ``count`` target items of largest X-SIM above 0 for each source item: source items, target items, X-SIM."""
    rows = np.repeat(np.arange(x.n_source), np.diff(x.values.indptr))
    # `goodness` rounds: a sum that cancels counts as 0
    above = np.flatnonzero(goodness(x.values.data) > 0.0)
    rows, items, values = rows[above], x.values.indices[above].astype(np.int32), x.values.data[above]
    kept = k_best(rows, items, values, count)
    return rows[kept], items[kept], values[kept]


def alter_egos(
    source: Any,
    replacement: NDArray[np.integer[Any]] | Any,
    n_target: int | None = None,
    *,
    times: Ints | None = None,
    target: Any = None,
    target_times: Ints | None = None,
    centres: tuple[Floats, Floats] | None = None,
) -> AlterEgos:
    """The alter egos of the users in the rows of ``source`` (users x source items).

    ``replacement`` is one target item for each source item (-1 for none), with ``n_target`` the number of target
    items; or weights, source x target items, if a source item has several. If several source items become one target
    item, it gets the (weighted) mean of their ratings and the latest of their times. ``target`` are the users' own
    ratings of target items, which take precedence. ``centres`` are the means of the source items and of the target
    items; a rating then keeps its distance from its item's mean.
    """
    weights = _weights(replacement, source.shape[1], n_target)
    shape = (source.shape[0], weights.shape[1])
    if target is not None and target.shape != shape:
        raise InvalidParameter(
            f"target must have {shape[0]:,} users x {shape[1]:,} items, not the shape {target.shape}."
        )
    users, items, values, ego_times = _images(source, weights, times, centres)
    if target is not None:
        own_users = np.repeat(np.arange(shape[0]), np.diff(target.indptr))
        fresh = ~np.isin(users * shape[1] + items, own_users * shape[1] + target.indices)
        users, items = np.append(users[fresh], own_users), np.append(items[fresh], target.indices)
        values = np.append(values[fresh], target.data)
        if times is not None:
            own = np.full(target.nnz, MISSING) if target_times is None else target_times
            ego_times = np.append(ego_times[fresh], own)
    order = np.lexsort((items, users))
    starts = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=shape[0]))])
    matrix = csr_array((values[order], items[order], starts), shape=shape)
    return AlterEgos(matrix, None if times is None else ego_times[order])


def _weights(replacement: Any, n_source: int, n_target: int | None) -> Any:
    """Source items x target items: the weight of each replacement."""
    if not isinstance(replacement, np.ndarray):
        if replacement.shape[0] != n_source:
            raise InvalidParameter(f"replacement must have one row for each of the {n_source:,} source items.")
        return csr_array(replacement)
    if n_target is None or replacement.shape != (n_source,):
        raise InvalidParameter(
            f"replacement must be {n_source:,} codes of target items; n_target must be the number of target items."
        )
    if replacement.size and not NONE <= int(replacement.min()) <= int(replacement.max()) < n_target:
        raise InvalidParameter(f"a replacement must be from 0 to {n_target - 1}, or -1 for none.")
    mapped = np.flatnonzero(replacement != NONE)
    return csr_array((np.ones(mapped.size), (mapped, replacement[mapped])), shape=(n_source, n_target))


def _images(source: Any, weights: Any, times: Ints | None, centres: tuple[Floats, Floats] | None) -> tuple[Any, ...]:
    """Users, target items, values and times of all rewritten ratings, each (user, item) once."""
    counts = np.diff(weights.indptr)[source.indices]
    rating = np.repeat(np.arange(source.nnz), counts)
    begin = weights.indptr[:-1][source.indices].astype(np.int64)
    entry = np.arange(rating.size) + np.repeat(begin - np.cumsum(counts) + counts, counts)
    users = np.repeat(np.arange(source.shape[0]), np.diff(source.indptr))[rating]
    items, weight = weights.indices[entry].astype(np.int64), weights.data[entry]
    values = source.data[rating].astype(np.float64)
    if centres is not None:
        values = values - centres[0][source.indices[rating]] + centres[1][items]
    pairs, index = np.unique(users * weights.shape[1] + items, return_inverse=True)
    means = np.bincount(index, weights=weight * values) / np.bincount(index, weights=weight)
    latest = np.full(pairs.size, MISSING)
    if times is not None:
        np.maximum.at(latest, index, times[rating])
    return pairs // weights.shape[1], pairs % weights.shape[1], means, latest


class SimilarItems(Enum):
    """Which similar items (or users) a prediction uses."""

    STATIC = "static"  # the k most similar of all, if they are rated
    RATED = "rated"  # the k most similar among the rated ones


@dataclass(frozen=True, eq=False, repr=False)
class ItemBased:
    """Ratings of one domain, prepared for predictions by `item_based`. ``repr`` shows sizes only."""

    means: Floats  # of each item
    # items x users: centred by the user's mean, of norm 1 (0 for an item that all users rated at their mean)
    directions: Any
    rated: Any  # items x users: 1 where rated
    significant: int  # common raters from which a cosine counts in full; 0: always

    def __repr__(self) -> str:
        return f"ItemBased({self.n_items:,} items)"

    @property
    def n_items(self) -> int:
        """How many items the model knows."""
        return int(self.means.size)

    def cosines(self, items: Array) -> Floats:
        """Adjusted cosines of the wanted items with all items; an item is not similar to itself."""
        similar: Floats = (self.directions[items] @ self.directions.T).toarray()
        if self.significant:
            together = (self.rated[items] @ self.rated.T).toarray()
            similar *= np.minimum(together, self.significant) / self.significant
        similar[np.abs(similar) <= ROUNDING] = 0.0
        similar[np.arange(len(items)), items] = 0.0
        return similar

    def predict(
        self,
        egos: AlterEgos,
        users: Any,
        items: Any,
        scale: Scale,
        *,
        k: int = 50,
        similar: str | SimilarItems = SimilarItems.RATED,
        level: Floats | None = None,
        alpha: float = 0.03,
        shrink: float = 0.0,
        signed: bool = True,
    ) -> Floats:
        """Predictions for pairs of a user (row of ``egos``) and an item, clipped to ``scale``, not rounded.

        ``level`` is added to an item's mean for each user (`levels`); by default nothing is added, as published.
        Unless ``signed``, items of negative cosine are ignored. If no item of the profile is similar, the prediction
        is the base alone. ``k`` is the number of similar items.
        """
        k, similar = whole("k", k, least=1), member("similar", SimilarItems, similar)
        if finite("alpha", alpha) < 0.0 or finite("shrink", shrink) < 0.0:
            raise InvalidParameter("alpha and shrink must be at least 0.")
        if egos.n_items != self.n_items:
            raise InvalidParameter(f"the profiles must be over the same {self.n_items:,} items, not {egos.n_items:,}.")
        users, items = checked_pairs(users, items, egos.values.shape[0], self.n_items)
        above = np.zeros(egos.values.shape[0]) if level is None else np.asarray(level, dtype=np.float64)
        if above.shape != (egos.values.shape[0],):
            raise InvalidParameter(f"level must be one number for each of the {egos.values.shape[0]:,} users.")
        base = self.means[items] + above[users]
        moved = np.zeros(items.size)
        distinct, position = np.unique(items, return_inverse=True)
        order = np.argsort(position, kind="stable")
        step = max(1, _CELLS // max(self.n_items, 1))
        for first in range(0, distinct.size, step):
            cosines = self.cosines(distinct[first : first + step])
            if not signed:
                np.maximum(cosines, 0.0, out=cosines)
            if similar is SimilarItems.STATIC:
                cosines = k_best_of_rows(cosines, k)
            ends = np.searchsorted(position[order], [first, first + step])
            pairs = order[ends[0] : ends[1]]
            rows = position[pairs] - first
            moved[pairs] = _deviations(self.means, cosines, egos, rows, users[pairs], above, k, alpha, shrink)
        return clipped(base + moved, scale)


def item_based(ratings: Any, significant: int = 50, *, otherwise: float = 0.0) -> ItemBased:
    """Prepares users x items for predictions.

    A cosine counts in full from ``significant`` common raters on, and in proportion below.

    ``otherwise`` is the mean of every item if there are no ratings at all.
    """
    significant, table = whole("significant", significant, least=0), centred(ratings)
    directions, rated = table.values * table.scale[table.items], np.ones(table.items.size)
    means = column_means(ratings, mean_of(ratings, otherwise))
    return ItemBased(means, table.table(directions).T.tocsr(), table.table(rated).T.tocsr(), significant)


def _deviations(
    means: Floats,
    cosines: Floats,
    egos: AlterEgos,
    rows: Array,
    users: Array,
    above: Floats,
    k: int,
    alpha: float,
    shrink: float,
) -> Floats:
    """For each pair (row of ``cosines``, user): the weighted mean of how far the user's ratings lie from their base."""
    offsets = np.zeros(users.size)
    for run, entries in entries_of_rows(egos.values.indptr, users):
        item = egos.values.indices[entries.position]
        similarity = cosines[rows[run][entries.pair], item]
        kept = np.flatnonzero(similarity)
        kept = kept[k_best(entries.pair[kept], item[kept], similarity[kept], k)]
        pair, position, item = entries.pair[kept], entries.position[kept], item[kept]
        deviation = egos.values.data[position] - means[item] - above[users[run]][pair]
        weight = decay(pair, None if egos.times is None else egos.times[position], alpha)
        offsets[run] = weighted_mean(pair, similarity[kept] * weight, deviation, run.stop - run.start, shrink)
    return offsets


@dataclass(frozen=True, eq=False)
class Entries:
    """Stored entries of some rows of a matrix, laid end to end: the pair each belongs to, and where it is stored."""

    pair: Ints
    position: Ints


def entries_of_rows(indptr: Array, rows: Array) -> Iterator[tuple[slice, Entries]]:
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


def k_best(group: Array, other: Array, similarity: Floats, k: int) -> NDArray[np.intp]:
    """Positions of the k largest similarities of each group, ascending; ties go to the lower ``other``."""
    many = np.bincount(group)[group] > k if group.size else np.zeros(0, dtype=np.bool_)
    full = np.flatnonzero(many)
    order = full[np.lexsort((other[full], -goodness(similarity[full]), group[full]))]
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    rank = np.arange(order.size) - np.repeat(begins, np.diff(np.append(begins, order.size)))
    kept = ~many
    kept[order[rank < k]] = True
    return np.flatnonzero(kept)


def k_best_of_rows(similarity: Floats, k: int) -> Floats:
    """The table with all but the k largest of each row set to 0; ties go to the lower column. A 0 is never kept."""
    if similarity.shape[1] <= k:
        return similarity
    good = goodness(similarity)
    good[similarity == 0.0] = -np.inf
    last = np.partition(good, -k, axis=1)[:, -k, None]
    above, equal = good > last, good == last
    room = k - above.sum(axis=1, keepdims=True)
    return np.where(above | (equal & (np.cumsum(equal, axis=1) <= room)), similarity, 0.0)


def weighted_mean(pair: Ints, similarity: Floats, deviation: Floats, pairs: int, shrink: float) -> Floats:
    """For each pair: sum of similarity x deviation over (sum of |similarity| + shrink); 0 for an empty sum."""
    top = np.bincount(pair, weights=similarity * deviation, minlength=pairs)
    bottom = np.bincount(pair, weights=np.abs(similarity), minlength=pairs)
    mean: Floats = np.divide(top, bottom + shrink, out=np.zeros(pairs), where=bottom > 0.0)
    return mean


def checked_pairs(users: Any, items: Any, n_users: int, n_items: int) -> tuple[Ints, Ints]:
    """Codes of users and items. Raises InvalidParameter unless they have one length and are all known."""
    checked = []
    for name, codes, n in (("users", users, n_users), ("items", items, n_items)):
        codes = np.asarray(codes)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise InvalidParameter(f"{name} must be a list of whole numbers.")
        if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < n:
            raise InvalidParameter(f"{name} must be codes from 0 to {n - 1}.")
        checked.append(codes.astype(np.int64))
    if checked[0].shape != checked[1].shape:
        raise InvalidParameter("users and items must have the same length: there is one prediction for each pair.")
    return checked[0], checked[1]


def decay(groups: NDArray[np.integer], times: Ints | None, alpha: float) -> Floats | float:
    """exp(-alpha (now - t)), with t the dense rank of a time in its group and now = the last rank + 1.

    It is 1 for all ratings of a group without known times, and if there are no times at all: alpha has no effect
    there.
    """
    if times is None or alpha == 0.0:
        return 1.0
    ranks, last = dense_ranks(groups, times)
    known = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.bool_)
    known[groups[times != MISSING]] = True
    return np.where(known[groups], np.exp(-alpha * (last + 1 - ranks)), 1.0)


def dense_ranks(groups: NDArray[np.integer], times: Ints) -> tuple[Ints, Ints]:
    """For each rating the rank of its time in its group (1 the earliest, equal times one rank), and the group's last rank."""
    ranks, last = np.zeros((2, times.size), dtype=np.int64)
    if not times.size:
        return ranks, last
    order = np.lexsort((times, groups))
    group, time = groups[order], times[order]
    opens = np.concatenate([[True], group[1:] != group[:-1]])
    steps = np.cumsum(opens | np.concatenate([[True], time[1:] != time[:-1]]))
    begins = np.flatnonzero(opens)
    counts = np.diff(np.append(begins, times.size))
    ranks[order] = steps - np.repeat(steps[begins], counts) + 1
    last[order] = np.repeat(steps[begins + counts - 1] - steps[begins] + 1, counts)
    return ranks, last


def mean_of(ratings: Any, otherwise: float = 0.0) -> float:
    """The mean of all stored ratings, or ``otherwise`` if there are none."""
    return float(np.mean(ratings.data, dtype=np.float64)) if ratings.nnz else otherwise


def row_means(ratings: Any, otherwise: float) -> Floats:
    """The mean of each row, or ``otherwise`` if it is empty. Rows are users; for items, give the transpose."""
    counts = np.diff(ratings.indptr)
    rows = np.repeat(np.arange(counts.size), counts)
    sums = np.bincount(rows, weights=ratings.data, minlength=counts.size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise)


def column_means(ratings: Any, otherwise: float) -> Floats:
    """The mean of each column, or ``otherwise`` if it is empty."""
    counts = np.bincount(ratings.indices, minlength=ratings.shape[1])
    sums = np.bincount(ratings.indices, weights=ratings.data, minlength=ratings.shape[1])
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise)


def clipped(predictions: Floats, scale: Scale) -> Floats:
    """Predictions clipped to the scale of ratings. They are not rounded to its steps, which would change the mean error."""
    inside: Floats = np.clip(predictions, *scale)
    return inside


def levels(ratings: Any, mean: float | None = None) -> Floats:
    """How far each user's ratings lie above ``mean``, in units of the scale; 0 for a user without ratings.

    By default it is the mean of these same ratings. It must be the mean of the domain that the ratings come from:
    people rate books higher than films, so someone who rates books like everyone else is not a generous rater of
    films.
    """
    mean = mean_of(ratings) if mean is None else mean
    return row_means(ratings, mean) - mean
