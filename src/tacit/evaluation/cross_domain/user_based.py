"""User-based prediction: what similar users think of an item, each measured from their own mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.checks import member, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats
from tacit.models.cross_domain.alter_egos import (
    Scale,
    SimilarItems,
    checked_pairs,
    clipped,
    column_means,
    k_best_of_rows,
    mean_of,
    row_means,
)
from tacit.models.cross_domain.edges import ROUNDING, centred_gaps

_CELLS = 1 << 22  # cosines held at a time: 32 MB an array


@dataclass(frozen=True, eq=False, repr=False)
class UserBased:
    """People, their tastes and their ratings of target items, made ready: `user_based` does it. ``repr`` shows sizes only."""

    tastes: Any  # people x items of the tastes: centred by row, of norm 1
    deviations: Any  # target items x people: ratings less the person's mean in the target
    means: Floats  # of the target items

    def __repr__(self) -> str:
        return f"UserBased({self.tastes.shape[0]:,} people, {self.means.size:,} items)"

    def predict(
        self,
        asked: Any,
        users: Any,
        items: Any,
        scale: Scale,
        *,
        k: int = 50,
        similar: str | SimilarItems = SimilarItems.RATED,
        people: NDArray[np.integer[Any]] | None = None,
    ) -> Floats:
        """`mean of the user + sum of t (r_B - mean of B) / sum of |t|` over k people B who rated the item, t their cosine.

        ``asked``: users x items, in the same items as the tastes. ``users`` are its rows. ``people``: for each of these rows the
        same user among the people (-1: not there), who is not asked about herself. Without a rating of her own a user is
        predicted the item's mean; without similar people, her own mean. Clipped to ``scale``, not rounded.
        """
        k, similar = whole("k", k, least=1), member("similar", SimilarItems, similar)
        if asked.shape[1] != self.tastes.shape[1]:
            raise InvalidParameter(f"the profiles must be over the same {self.tastes.shape[1]:,} items as the tastes.")
        users, items = checked_pairs(users, items, asked.shape[0], self.means.size)
        rated = np.diff(asked.indptr)[users] > 0
        base = np.where(rated, row_means(asked, 0.0)[users], self.means[items])
        found, directions = np.zeros(items.size), _directions(asked)
        distinct, place = np.unique(users, return_inverse=True)
        order = np.argsort(place, kind="stable")
        step = max(1, _CELLS // max(self.tastes.shape[0], 1))
        for first in range(0, distinct.size, step):
            block = distinct[first : first + step]
            cosines = (directions[block] @ self.tastes.T).toarray()
            cosines[np.abs(cosines) <= ROUNDING] = 0.0
            if people is not None:
                own = np.flatnonzero(people[block] >= 0)
                cosines[own, people[block][own]] = 0.0
            if similar is SimilarItems.STATIC:
                cosines = k_best_of_rows(cosines, k)
            ends = np.searchsorted(place[order], [first, first + step])
            pairs = order[ends[0] : ends[1]]
            found[pairs] = _offsets(self.deviations, cosines, place[pairs] - first, items[pairs], k)
        return clipped(base + found, scale)


def _offsets(deviations: Any, cosines: Floats, rows: NDArray[Any], items: NDArray[Any], k: int) -> Floats:
    """For each pair (row of ``cosines``, item): the weighted mean of how far the item's raters put it from their means."""
    offsets = np.zeros(items.size)
    order = np.argsort(items, kind="stable")
    for pairs in np.split(order, np.flatnonzero(np.diff(items[order])) + 1):
        part = slice(*deviations.indptr[items[pairs[0]] : items[pairs[0]] + 2])  # all that rated this item
        similarity = k_best_of_rows(cosines[rows[pairs]][:, deviations.indices[part]], k)
        bottom = np.abs(similarity).sum(axis=1)
        top = similarity @ deviations.data[part]
        offsets[pairs] = np.divide(top, bottom, out=np.zeros(pairs.size), where=bottom > 0.0)
    return offsets


def user_based(target: Any, tastes: Any = None) -> UserBased:
    """People's ratings of target items, made ready. ``tastes``: where their likeness is sought, by default in the same ratings."""
    tastes = target if tastes is None else tastes
    if tastes.shape[0] != target.shape[0]:
        raise InvalidParameter("tastes and target must be of the same people, one row for each.")
    deviations = csr_array((less_row_means(target), target.indices, target.indptr), shape=target.shape).T.tocsr()
    return UserBased(_directions(tastes), deviations, column_means(target, mean_of(target)))


def _directions(ratings: Any) -> Any:
    """Rows centred by their means, of norm 1 (0 for a row of equal ratings)."""
    counts = np.diff(ratings.indptr)
    rows = np.repeat(np.arange(counts.size), counts)
    centred = less_row_means(ratings)
    norms = np.sqrt(np.bincount(rows, weights=centred**2, minlength=counts.size))[rows]
    unit = np.divide(centred, norms, out=np.zeros(centred.size), where=norms > 0.0)
    return csr_array((unit, ratings.indices, ratings.indptr), shape=ratings.shape)


def less_row_means(ratings: Any) -> Floats:
    """Every rating less the mean of its row, and exactly 0 if they differ by rounding only: some users rate everything alike."""
    return centred_gaps(ratings.data, np.repeat(row_means(ratings, 0.0), np.diff(ratings.indptr)))
