"""How good predictions are: the error of ratings, and where held-out items stand in a user's list.

rank = (items strictly higher + half of those that tie) / (candidates - 1), over all items but the user's training items:
0 is best, .5 is chance. The mean rank weighs by the held-out values (the paper's Eq. 3); it is governed by the tail of the
catalogue and hides gains at the top, which recall and NDCG at 20 show.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.evaluation.statistics import Estimate, mean

Floats = NDArray[np.float64]
Items = NDArray[np.int64]

RMSE, RANK, RECALL, NDCG = "RMSE", "mean rank", "recall@20", "NDCG@20"
TOP = 20
_CELLS = 1 << 22  # compared at a time


class Ranks(NamedTuple):
    """One figure for each user; NaN where she has no held-out item."""

    weight: Floats  # sum of x
    ranked: Floats  # sum of x rank
    recall: Floats
    ndcg: Floats

    @classmethod
    def empty(cls, users: int) -> "Ranks":
        return cls(*(np.full(users, np.nan) for _ in range(4)))

    def put(self, users: NDArray[np.integer] | NDArray[np.bool_], found: "Ranks") -> None:
        for mine, theirs in zip(self, found, strict=True):
            mine[users] = theirs

    def of(self, users: NDArray[np.integer] | NDArray[np.bool_]) -> "Ranks":
        return Ranks(*(values[users] for values in self))

    def estimates(self) -> dict[str, Estimate]:
        held = np.isfinite(self.weight)
        return {
            RANK: ratio(self.ranked[held], self.weight[held]),
            RECALL: mean(self.recall[held]),
            NDCG: mean(self.ndcg[held]),
        }


def averaged(found: list[Ranks]) -> Ranks:
    """The mean over noise draws, user by user."""
    return Ranks(*(np.mean(columns, axis=0) for columns in zip(*found, strict=True)))


def ranks(scores: Floats, train: sparse.csr_array, test: sparse.csr_array) -> Ranks:
    """Where each user's held-out items stand by ``scores`` (users x items), among all items but those of ``train``."""
    users, items = scores.shape
    found = Ranks.empty(users)
    step = max(1, _CELLS // (items * max(1, int(np.diff(test.indptr).max(initial=1)))))
    for first in range(0, users, step):
        last = min(users, first + step)
        open_to = np.array(scores[first:last], dtype=np.float64)
        mine = train[first:last]
        open_to[np.repeat(np.arange(last - first), np.diff(mine.indptr)), mine.indices] = -np.inf
        candidates = items - np.diff(mine.indptr)
        held = test[first:last]
        for user in range(last - first):
            cells = slice(held.indptr[user], held.indptr[user + 1])
            if cells.start == cells.stop:
                continue
            row, wanted, value = open_to[user], held.indices[cells], held.data[cells]
            own = row[wanted][:, None]
            higher = np.count_nonzero(row > own, axis=1)
            tied = np.count_nonzero(row == own, axis=1) - 1
            _put(found, first + user, higher + 0.5 * tied, value, int(candidates[user]))
    return found


def _put(found: Ranks, user: int, places: Floats, values: Floats, candidates: int) -> None:
    hits = places < TOP
    best = float((1.0 / np.log2(np.arange(2, min(TOP, places.size) + 2))).sum())
    found.weight[user] = values.sum()
    found.ranked[user] = float(values @ places) / max(1, candidates - 1)
    found.recall[user] = hits.sum() / places.size
    found.ndcg[user] = float((hits / np.log2(places + 2.0)).sum()) / best


@dataclass(frozen=True, eq=False)
class Sampled(Estimate):
    """An estimate with what each user adds to it, to first order: two of the same users are compared user by user."""

    influence: Floats = field(repr=False, default_factory=lambda: np.zeros(0))


def ratio(above: Floats, below: Floats) -> Estimate:
    """sum above / sum below, one entry for each user; the error is of first order, over users."""
    users = above.size
    if not users or not float(below.sum()):
        return Estimate(math.nan, math.nan, users)
    value = float(above.sum() / below.sum())
    residual = (above - value * below) / float(below.mean())
    return Sampled(value, mean(residual).stderr, users, residual)


def rmse(errors: Floats, users: Items) -> Estimate:
    """The root of the mean squared error over cells, ``users`` saying whose cell each is; error over users."""
    sums: Floats = np.bincount(users, weights=errors**2).astype(np.float64)
    squares = ratio(sums, np.bincount(users).astype(np.float64))
    root = math.sqrt(squares.value)
    if not isinstance(squares, Sampled) or not root:
        return Estimate(root, math.nan, errors.size)
    return Sampled(root, squares.stderr / (2.0 * root), errors.size, squares.influence / (2.0 * root))
