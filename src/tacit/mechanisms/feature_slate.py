"""Feature slates: the k-DPP of sigma I + sum of c_u c_u^T with c_u = F z_u, F public, z_u a user's private vector of few numbers.

Proof: docs/proofs/feature-slate.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, member, positive
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, Guarantee, Loss, LossKind, Relation, Release, pure
from tacit.guarantees.rounding import sqrt_down
from tacit.guarantees.slate_bounds import sigma_for
from tacit.mechanisms.arrays import real_table
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.prepared import Prepared
from tacit.mechanisms.samplers.float_coins import FLOATS, NoiseCoins
from tacit.mechanisms.slate_rows import MOST_USERS, STEPS, whole_rows
from tacit.mechanisms.tempered_slate import MOST_OUTCOMES, kept
from tacit.models.dpp.kernels import checked_features, checked_size
from tacit.models.dpp.laws import k_dpp_law, subsets
from tacit.models.dpp.split import SplitSampler

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = ArrayLike | sparse.csr_array

_USERS = 1 << 14  # of a table that are looked at in one go
_MARGIN = 2.0**-40  # for the rounding of Q^T Q itself


@dataclass(frozen=True, eq=False)
class FeatureSlate:
    """Selects an unordered slate of ``k`` items; ``features`` (items x d) are public and were not trained on these users.

    Each contribution F z_u is cut to a squared L2 norm of ``bound`` and rounded to a grid in the span of F. Pure epsilon.
    """

    name: ClassVar[str] = "feature-slate"
    features: Floats = field(repr=False)
    k: int
    epsilon: float  # nats
    bound: float = 1.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            epsilon=positive("epsilon", self.epsilon),
            features=kept(checked_features(self.features)),
            bound=positive("bound", self.bound),
            relation=member("relation", Relation, self.relation),
        )
        keep(self, k=checked_size(self.k, self.items))
        sigma_for(self.epsilon, self.bound)  # refuses now what it would refuse at the first slate

    @property
    def items(self) -> int:
        """How many items there are to choose from."""
        return len(self.features)

    @cached_property
    def sigma(self) -> float:
        """The jitter, rounded up: bound / (e^epsilon - 1)."""
        return sigma_for(self.epsilon, self.bound)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one slate promises: epsilon, in nats, for one user's rows; 0 where the slate has all items."""
        protects = ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED
        if self.k == self.items:  # there is but one slate
            return pure(0.0, protects, proof=self.name)
        # replacing a user costs no more than adding one, but the range of the loss doubles
        reach = self.epsilon * (1 if self.relation is Relation.ADD_REMOVE else 2)
        return Guarantee(
            self.epsilon,
            protects,
            assumes=frozenset({FLOATS}),
            proof=self.name,
            loss=Loss(LossKind.BOUNDED_RANGE, reach) if math.isfinite(reach) else None,
        )

    def outcomes(self) -> list[tuple[int, ...]]:
        """All slates, in the order of ``pmf``."""
        if math.comb(self.items, self.k) > MOST_OUTCOMES:
            raise InvalidParameter("so many slates are not listed; take fewer items.")
        return subsets(self.items, self.k)

    def pmf(self, rows: Rows) -> Floats:
        """The probability of every slate; for few items."""
        self.outcomes()
        half = self.contributions(rows)
        return k_dpp_law(half @ half.T + self.sigma * np.eye(self.items), self.k)

    def prepare(self, rows: Rows) -> Prepared[NDArray[np.int64]]:
        """The set-up for these users, done once for any number of slates. Private."""
        sampler = SplitSampler(self.contributions(rows), self.sigma, self.k)
        return Prepared(
            self.items, self.k, self.guarantee, lambda count, noise: sampler.draw_many(count, NoiseCoins(noise))
        )

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One slate, items in ascending order. ``rows``: users x d; what is no number counts as 0."""
        return self.prepare(rows).release(noise)

    def contributions(self, rows: Rows) -> Floats:
        """B, items x rank, with B B^T = the sum of all cut contributions c_u c_u^T. Private."""
        basis, factor = _orthogonal(self.features)
        values, vectors = np.linalg.eigh(self._moments(rows, factor).astype(np.float64))
        unit = sqrt_down(Fraction(self.bound)) / STEPS
        return np.asarray(basis @ (vectors * (unit * np.sqrt(np.maximum(values, 0.0)))))

    def _moments(self, rows: Rows, factor: Floats) -> NDArray[np.int64]:
        """sum of b_u b_u^T, b_u the coordinates of F z_u in an orthonormal basis, cut to the bound in whole steps: exact.

        No number of it is beyond 2^32 times the number of users, which is below 2^30.
        """
        width = self.features.shape[1]
        table = real_table(rows, "rows", width)
        if table.shape[1] != width or table.shape[0] >= MOST_USERS:
            raise InvalidInput(f"expected rows of {width} numbers, one for each feature.")
        most, rank = sqrt_down(Fraction(self.bound)), len(factor)
        total = np.zeros((rank, rank), dtype=np.int64)
        for first in range(0, table.shape[0], _USERS):
            found = _coordinates(table[first : first + _USERS].toarray(), factor, most)
            whole = whole_rows(found, rank, self.bound)
            total += (whole.T @ whole).toarray()
        return total


def _orthogonal(features: Floats) -> tuple[Floats, Floats]:
    """Q and R with F = Q R up to rounding, where Q is orthonormal up to rounding and not longer: |Q b| <= |b|."""
    basis, factor = np.linalg.qr(features)
    excess = float(np.linalg.norm(basis.T @ basis - np.eye(len(factor)))) + _MARGIN
    return basis / math.sqrt(1.0 + excess), factor


@np.errstate(all="ignore")  # whether something overflows is private: no setting of a caller makes it an error
def _coordinates(rows: Floats, factor: Floats, most: float) -> Floats:
    """R z of every row, shortened to the norm ``most`` up to rounding, so that a row cut on the grid keeps its direction.

    Column by column: a row's image is the same to the last bit whoever else is in the table. In a matrix product it may not be.
    """
    rows = np.where(np.isfinite(rows), rows, 0.0)
    found = np.zeros((len(rows), len(factor)))
    for column in range(rows.shape[1]):
        found += rows[:, column, None] * factor[:, column]
    found[~np.isfinite(found)] = 0.0
    top = np.maximum(np.abs(found).max(axis=1, initial=0.0), most)
    scaled, squares = found / top[:, None], np.zeros(len(rows))  # by the largest cell first: no square overflows
    for column in range(len(factor)):
        squares += scaled[:, column] ** 2
    norm = np.sqrt(squares) * (top / most)  # in units of ``most``
    shortened: Floats = found / np.maximum(norm, 1.0)[:, None]
    return shortened
