"""Biased factors by alternating least squares: the baseline that sees both domains as one set of ratings.

`r = mean + user's offset + item's offset + p.q`: damped offsets first, then factors on what they leave, with a ridge in
proportion to the number of ratings (Zhou et al. 2008). Rank 10, ridge 0.1 and 10 rounds are Spark's defaults, damping 5 LensKit's.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.checks import finite, positive, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats
from tacit.models.cross_domain.alter_egos import Scale, checked_pairs, clipped, mean_of

_CELLS = 1 << 22  # of normal equations at a time: 32 MB


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares:
    """Offsets and factors of users and items. A user or item without a rating has 0s."""

    mean: float
    user_offsets: Floats
    item_offsets: Floats
    user_factors: Floats
    item_factors: Floats

    def __repr__(self) -> str:
        return f"LeastSquares({self.user_offsets.size:,} users, {self.item_offsets.size:,} items)"

    def predict(self, users: Any, items: Any, scale: Scale) -> Floats:
        """Predictions for pairs, clipped to ``scale``."""
        users, items = checked_pairs(users, items, self.user_offsets.size, self.item_offsets.size)
        taste = np.einsum("ij,ij->i", self.user_factors[users], self.item_factors[items])
        return clipped(self.mean + self.user_offsets[users] + self.item_offsets[items] + taste, scale)


def least_squares(
    ratings: Any,
    *,
    rank: int = 10,
    ridge: float = 0.1,
    damping: float = 5.0,
    rounds: int = 10,
    rng: np.random.Generator,
) -> LeastSquares:
    """Factors of users x items; of two domains, of their `linked.union`. ``rng`` draws where the items' factors start."""
    rank, rounds = whole("rank", rank, least=1), whole("rounds", rounds, least=1)
    ridge = positive("ridge", ridge)
    if finite("damping", damping) < 0.0:
        raise InvalidParameter("damping must be at least 0.")
    mean = mean_of(ratings)
    rows = np.repeat(np.arange(ratings.shape[0]), np.diff(ratings.indptr))
    left = ratings.data.astype(np.float64) - mean
    item_offsets = _damped(ratings.indices, left, ratings.shape[1], damping)
    left = left - item_offsets[ratings.indices]
    user_offsets = _damped(rows, left, ratings.shape[0], damping)
    left = left - user_offsets[rows]
    by_user = csr_array((left, ratings.indices, ratings.indptr), shape=ratings.shape)
    by_item = by_user.T.tocsr()
    item_factors = rng.normal(scale=0.1, size=(ratings.shape[1], rank))
    for _ in range(rounds):
        user_factors = _solved(by_user, item_factors, ridge)
        item_factors = _solved(by_item, user_factors, ridge)
    return LeastSquares(mean, user_offsets, item_offsets, user_factors, item_factors)


def _damped(groups: NDArray[Any], values: Floats, n: int, damping: float) -> Floats:
    bottom = np.bincount(groups, minlength=n) + damping
    sums = np.bincount(groups, weights=values, minlength=n)
    offsets: Floats = np.divide(sums, bottom, out=np.zeros(n), where=bottom > 0.0)
    return offsets


def _solved(wanted: Any, fixed: Floats, ridge: float) -> Floats:
    """Of each row: (sum of q q^T + ridge n I)^-1 sum of q r over its n ratings; 0 for an empty row."""
    rank = fixed.shape[1]
    squares = (fixed[:, :, None] * fixed[:, None, :]).reshape(-1, rank * rank)
    counts = np.diff(wanted.indptr)
    ones = csr_array((np.ones(wanted.nnz), wanted.indices, wanted.indptr), shape=wanted.shape)
    solved = np.empty((wanted.shape[0], rank))
    step = max(1, _CELLS // (rank * rank))
    for first in range(0, wanted.shape[0], step):
        part = slice(first, first + step)
        left = (ones[part] @ squares).reshape(-1, rank, rank)
        left += (ridge * np.maximum(counts[part], 1))[:, None, None] * np.eye(rank)
        solved[part] = np.linalg.solve(left, (wanted[part] @ fixed)[:, :, None])[:, :, 0]
    return solved
