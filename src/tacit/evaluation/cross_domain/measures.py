"""Errors on hidden ratings, and lists: whether what a user turned out to like stands near the top of all target items."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.cross_domain.splits import Floats, Held, Ints
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import Estimate, mean

MAE, RMSE, NDCG, RECALL = "MAE", "RMSE", "NDCG@10", "recall@10"
AHEAD = "MAE less item average's"  # user by user: what a split has in common cancels out
K = 10
LIKED = 0.75  # of the way from the low to the high end of the scale: 4 of 5 stars
_DISCOUNT = 1.0 / np.log2(np.arange(2, K + 2))


class Scored(NamedTuple):
    """One entry for each hidden rating (``errors``, signed, and whose), and for each user with a liked one (lists)."""

    errors: Floats  # mean of |error| over noise draws
    squares: Floats
    users: Ints
    ndcg: Floats
    recall: Floats

    @property
    def mae(self) -> Estimate:
        return mean(self.errors, self.users)


def scored(held: Held, scores: Floats) -> Scored:
    """``scores``: asked users x target items, all hidden cells filled. An asked user has no target rating left, so every target
    item may be listed; users of whom all items were scored are."""
    rows, items = held.cells
    apart = np.clip(scores[rows, items], held.low, held.high) - held.hidden.data
    ndcg, recall = lists(scores, held)
    return Scored(np.abs(apart), apart**2, rows, ndcg, recall)


def lists(scores: Floats, held: Held) -> tuple[Floats, Floats]:
    """NDCG and recall of the ten best of all target items, for each user who likes a hidden one and has all items scored.

    Ties go to the lower item.
    """
    rows, items = held.cells
    liked = np.zeros(scores.shape, dtype=np.bool_)
    good = held.hidden.data >= held.low + LIKED * (held.high - held.low)
    liked[rows[good], items[good]] = True
    count = liked.sum(axis=1)
    some = (count > 0) & ~np.isnan(scores).any(axis=1)
    top = np.argsort(-scores[some], axis=1, kind="stable")[:, :K]
    hits = np.take_along_axis(liked[some], top, axis=1)
    best = np.cumsum(_DISCOUNT)[np.minimum(count[some], K) - 1]
    return hits @ _DISCOUNT[: top.shape[1]] / best, hits.sum(axis=1) / count[some]


def over_draws(found: Sequence[Scored]) -> Scored:
    """One split, several noise draws: what a user sees on average."""

    def averaged(place: int) -> Floats:
        average: Floats = np.mean([one[place] for one in found], axis=0)
        return average

    return Scored(averaged(0), averaged(1), found[0].users, averaged(3), averaged(4))


def over_splits(found: Sequence[Scored]) -> Scored:
    """Several splits or worlds, side by side: users of different splits count as different."""
    firsts = np.cumsum([0, *(int(one.users.max(initial=-1)) + 1 for one in found)])
    users = np.concatenate([one.users + first for one, first in zip(found, firsts, strict=False)])
    parts: list[NDArray[np.float64]] = [np.concatenate([one[place] for one in found]) for place in (0, 1, 3, 4)]
    return Scored(parts[0], parts[1], users, parts[2], parts[3])


def rows(method: str, one: Scored, **setting: int | float | str) -> list[Row]:
    square = mean(one.squares, one.users)
    root = math.sqrt(square.value)
    error = square.stderr / (2.0 * root) if root > 0.0 else 0.0
    figures = [(MAE, one.mae), (RMSE, Estimate(root, error, square.n))]
    if one.ndcg.size:
        figures += [(NDCG, mean(one.ndcg)), (RECALL, mean(one.recall))]
    return [Row.of(method, metric, figure, **setting) for metric, figure in figures]
