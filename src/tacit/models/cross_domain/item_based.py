"""Item-based prediction: what a profile says about an item, by how similar the item is to those of the profile.

`b_ui + sum of s_ij f_j (r_uj - b_uj) / (sum of |s_ij| f_j + shrink)` over similar items j of the profile, s the adjusted cosine,
f the weight of a rating's age, b a base: the item's mean, moved by how high the user rates where that is wanted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, member, whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.alter_egos import AlterEgos
from tacit.models.cross_domain.averages import Floats, Scale, clipped, column_means, mean_of
from tacit.models.cross_domain.centred import centred
from tacit.models.cross_domain.edges import ROUNDING
from tacit.models.cross_domain.temporal import decay
from tacit.models.cross_domain.weighted_sums import (
    Similar,
    checked_pairs,
    entries_of_rows,
    k_best,
    k_best_of_rows,
    weighted_mean,
)

_CELLS = 1 << 22  # cosines held at a time: 32 MB an array


@dataclass(frozen=True, eq=False, repr=False)
class ItemBased:
    """Ratings of one domain, made ready: `item_based` does it. ``repr`` shows sizes only."""

    means: Floats  # of each item
    directions: Any  # items x users: centred by the user's mean, of norm 1 (0 for an item that all rated at their mean)
    rated: Any  # items x users: 1 where rated
    significant: int  # co-raters from which a cosine counts fully; 0: always

    def __repr__(self) -> str:
        return f"ItemBased({self.n_items:,} items)"

    @property
    def n_items(self) -> int:
        """How many items the model knows."""
        return int(self.means.size)

    def cosines(self, items: NDArray[Any]) -> Floats:
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
        similar: str | Similar = Similar.RATED,
        level: Floats | None = None,
        alpha: float = 0.03,
        shrink: float = 0.0,
        signed: bool = True,
    ) -> Floats:
        """Predictions for pairs of a user (row of ``egos``) and an item, clipped to ``scale``, not rounded.

        ``level``: of each user, what is added to an item's mean (`averages.levels`); None: nothing, as published. Where not
        ``signed``, items of negative cosine say nothing. If no item of the profile is similar, the base alone is predicted.
        """
        k, similar = whole("k", k, least=1), member("similar", Similar, similar)
        if finite("alpha", alpha) < 0.0 or finite("shrink", shrink) < 0.0:
            raise InvalidParameter("alpha and shrink must be at least 0.")
        if egos.n_items != self.n_items:
            raise InvalidParameter(f"the profiles must be over the same {self.n_items:,} items, not {egos.n_items:,}.")
        users, items = checked_pairs(users, items, egos.values.shape[0], self.n_items)
        above = np.zeros(egos.values.shape[0]) if level is None else np.asarray(level, dtype=np.float64)
        if above.shape != (egos.values.shape[0],):
            raise InvalidParameter(f"level must be one number for each of the {egos.values.shape[0]:,} users.")
        base = self.means[items] + above[users]
        found = np.zeros(items.size)
        distinct, place = np.unique(items, return_inverse=True)
        order = np.argsort(place, kind="stable")
        step = max(1, _CELLS // max(self.n_items, 1))
        for first in range(0, distinct.size, step):
            cosines = self.cosines(distinct[first : first + step])
            if not signed:
                np.maximum(cosines, 0.0, out=cosines)
            if similar is Similar.STATIC:
                cosines = k_best_of_rows(cosines, k)
            ends = np.searchsorted(place[order], [first, first + step])
            pairs = order[ends[0] : ends[1]]
            rows = place[pairs] - first
            found[pairs] = _offsets(self.means, cosines, egos, rows, users[pairs], above, k, alpha, shrink)
        return clipped(base + found, scale)


def _offsets(
    means: Floats,
    cosines: Floats,
    egos: AlterEgos,
    rows: NDArray[Any],
    users: NDArray[Any],
    above: Floats,
    k: int,
    alpha: float,
    shrink: float,
) -> Floats:
    """For each pair (row of ``cosines``, user): the weighted mean of how far the user's ratings lie from their base."""
    offsets = np.zeros(users.size)
    for run, entries in entries_of_rows(egos.values.indptr, users):
        item = egos.values.indices[entries.place]
        similarity = cosines[rows[run][entries.pair], item]
        kept = np.flatnonzero(similarity)
        kept = kept[k_best(entries.pair[kept], item[kept], similarity[kept], k)]
        pair, place, item = entries.pair[kept], entries.place[kept], item[kept]
        deviation = egos.values.data[place] - means[item] - above[users[run]][pair]
        weight = decay(pair, None if egos.times is None else egos.times[place], alpha)
        offsets[run] = weighted_mean(pair, similarity[kept] * weight, deviation, run.stop - run.start, shrink)
    return offsets


def item_based(ratings: Any, significant: int = 50, *, otherwise: float = 0.0) -> ItemBased:
    """Users x items made ready for predictions. A cosine counts fully from ``significant`` co-raters on, below in proportion.

    ``otherwise`` is the mean of every item where there are no ratings at all.
    """
    significant, table = whole("significant", significant, least=0), centred(ratings)
    directions, rated = table.values * table.scale[table.items], np.ones(table.items.size)
    means = column_means(ratings, mean_of(ratings, otherwise))
    return ItemBased(means, table.table(directions).T.tocsr(), table.table(rated).T.tocsr(), significant)
