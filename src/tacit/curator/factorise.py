"""Factors of items from ratings: alternating least squares, rating = mean + generosity + offset + taste . factors."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, whole
from tacit.data.draw import generator
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.models.factors import FactorScorer
from tacit.models.folded_taste import FoldedTaste
from tacit.models.grouped_ridge import grouped_ridge
from tacit.models.scorer import Progress

RANK = 16
ROUNDS = 15
PENALTY, OFFSET_PENALTY = 1.2, 0.6  # times the root of the number of ratings (tacit.models.grouped_ridge)
_INSIDE = 0.99  # of the users lie within the bounds, coordinate by coordinate
_LEAST_REACH = 1e-3  # of the widest axis: one that the ratings do not need must not be blown up to the same size

Floats = NDArray[np.float64]


class Factorised(NamedTuple):
    space: FoldedTaste
    scorer: FactorScorer


def factorise(
    ratings: Ratings,
    *,
    rank: int = RANK,
    rounds: int = ROUNDS,
    penalty: float = PENALTY,
    offset_penalty: float = OFFSET_PENALTY,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Factorised:
    """A scorer by factors and the feature space that goes with it. Both are fitted without noise: they protect nobody."""
    whole("rounds", rounds, least=1)
    if not len(ratings):
        raise InvalidParameter("there are no ratings to fit factors to.")
    whole("rank", rank, least=1, most=min(ratings.n_users, ratings.n_items))
    penalties = np.array([positive("offset_penalty", offset_penalty), *[positive("penalty", penalty)] * rank])
    by_item = ratings.csr().tocsc()
    mean = float(ratings.values.mean(dtype=np.float64))
    factors = generator(rng).normal(scale=0.1, size=(ratings.n_items, rank))
    offsets = np.zeros(ratings.n_items)
    for done in range(rounds):
        # Users given items, then items given users; each side's own offset is one more coordinate, against a column of ones.
        users = grouped_ridge(
            ratings.starts, ratings.items, ratings.values - mean - offsets[ratings.items], _with_one(factors), penalties
        )
        targets = by_item.data - mean - users[by_item.indices, 0]
        items = grouped_ridge(by_item.indptr, by_item.indices, targets, _with_one(users[:, 1:]), penalties)
        offsets, factors = items[:, 0], items[:, 1:]
        if progress is not None:
            progress(done + 1, rounds)
    mean += float(users[:, 0].mean())  # the average user's generosity, so that a score is her rating
    space = _scaled(ratings, _turned(users[:, 1:], factors), offsets, mean, penalties)
    return Factorised(space, FactorScorer(space.factors, space.offsets, space.mean))


def _with_one(table: Floats) -> Floats:
    return np.column_stack([np.ones(len(table)), table])


def _turned(tastes: Floats, factors: Floats) -> Floats:
    """The factors on the axes of the singular vectors of tastes . factors^T, the strongest first.

    Least squares leave the axes open; noise is drawn along each axis, so they should carry as little as possible in common.
    """
    left, right = np.linalg.qr(tastes).R, np.linalg.qr(factors).R
    _, strength, axes = np.linalg.svd(left @ right.T)
    back = np.linalg.pinv(right)
    turned: Floats = factors @ back @ axes.T * np.sqrt(strength)
    return turned


def _scaled(ratings: Ratings, factors: Floats, offsets: Floats, mean: float, penalties: Floats) -> FoldedTaste:
    """The space in which 99 of 100 users lie within [-1, 1] on each axis: what the tastes lose, the factors gain."""
    tastes = FoldedTaste(factors.astype(np.float32), offsets.astype(np.float32), mean, penalties.astype(np.float32))
    reach = np.quantile(np.abs(tastes.unclipped(ratings.starts, ratings.items, ratings.values)), _INSIDE, axis=0)
    reach = np.maximum(reach, _LEAST_REACH * reach.max()) if reach.max() > 0.0 else np.ones_like(reach)
    return FoldedTaste(
        (factors * reach).astype(np.float32),
        offsets.astype(np.float32),
        mean,
        np.concatenate([penalties[:1], penalties[1:] * reach**2]).astype(np.float32),  # p^2 = (reach t)^2
    )
