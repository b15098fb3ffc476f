"""Sparse noisy means of clusters: a noisy size, a private choice of items, noisy values there.

Proof: docs/proofs/sparse-recovery.md. Noise is added to sums, at a public scale: noise on means would have a scale divided by the
number of users, and so publish that number.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Neighbours, Release
from tacit.guarantees.rounding import up
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.profile_bounds import STEPS, ProfileBounds
from tacit.mechanisms.prototypes import Prototypes
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.scores import Scores
from tacit.mechanisms.top_k import GumbelTopK


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """Sums over users of bounded rows, in steps. One more user moves each by at most 2^16, all upwards unless rows are signed."""

    signed: bool = False

    @property
    def protects(self) -> Neighbours:
        return ONE_USER

    @property
    def sensitivity(self) -> int:
        return STEPS

    @property
    def monotone(self) -> bool:
        return not self.signed

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        return np.asarray(raw, dtype=np.int64)


@dataclass(frozen=True)
class SparseRecovery:
    """Of each of ``k`` clusters a noisy size, and noisy means at ``picked`` items chosen for their large sums: pure epsilon-DP.

    ``count``, ``select`` and ``values`` are the epsilons of the three steps. Where all items are picked nothing is selected, and
    ``select`` joins ``values``. ``least_users`` is a public lower limit of the number that sums are divided by.
    """

    name: ClassVar[str] = "sparse-recovery"
    bounds: ProfileBounds
    k: int
    picked: int
    count: float
    select: float
    values: float
    least_users: float = 1.0

    def __post_init__(self) -> None:
        keep(
            self,
            k=whole("k", self.k, least=1, most=1 << 16),
            picked=whole("picked", self.picked, least=1, most=self.bounds.items),
            count=positive("count", self.count),
            select=positive("select", self.select),
            values=positive("values", self.values),
            least_users=positive("least_users", self.least_users),
        )
        discrete_laplace.require_drawable(self.count_scale)
        discrete_laplace.require_drawable(self.value_scale)

    @property
    def selects(self) -> bool:
        """Whether fewer than all items are picked."""
        return self.picked < self.bounds.items

    @cached_property
    def epsilon(self) -> float:
        """For all three steps together, rounded up."""
        return up(Fraction(self.count) + Fraction(self.select) + Fraction(self.values))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all released rows promise: epsilon, in nats, for one user, who is in one cluster; composes by its zCDP."""
        # a user is in one cluster; picks are exponential mechanisms of range select/picked, the rest is pure
        spent = self._value_epsilon
        rho = Fraction(self.count) ** 2 / 2 + spent**2 / 2
        if self.selects:
            rho += Fraction(self.select) ** 2 / (8 * self.picked)
        loss = Loss(LossKind.ZCDP, up(rho)) if math.isfinite(up(rho)) else None
        return Guarantee(self.epsilon, ONE_USER, proof=self.name, loss=loss)

    @property
    def _value_epsilon(self) -> Fraction:
        return Fraction(self.values) + (0 if self.selects else Fraction(self.select))

    @cached_property
    def selection(self) -> GumbelTopK:
        """The choice of items in one cluster: ``picked`` exponential mechanisms on the column sums."""
        return GumbelTopK(ColumnSums(self.bounds.signed), self.picked, self.select)

    @cached_property
    def count_scale(self) -> Fraction:
        """Of the noise on a size: a user counts once."""
        return 1 / Fraction(self.count)

    @cached_property
    def value_scale(self) -> Fraction:
        """Of the noise on a sum, in steps: the most by which one user moves the sums of the picked items, in L1."""
        return min(self.bounds.l1_steps, self.picked * STEPS) / self._value_epsilon

    def size_pmf(self, sizes: NDArray[np.int64] | int, users: int) -> NDArray[np.float64]:
        """The probability that a cluster of so many users is said to have ``sizes``."""
        return discrete_laplace.pmf(np.asarray(sizes) - users, self.count_scale)

    def value_pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that a sum of ``total`` steps is released as ``steps``."""
        return discrete_laplace.pmf(np.asarray(steps) - total, self.value_scale)

    def release(
        self, rows: ArrayLike | sparse.csr_array, clusters: ArrayLike, noise: Noise = SYSTEM_NOISE
    ) -> Release[Prototypes]:
        """The prototypes. ``clusters`` says where each row belongs, by a rule that reads that row and public things only."""
        place = np.asarray(clusters)
        table = self.bounds.bounded(rows, noise)
        if place.shape != (table.shape[0],) or (place.size and place.dtype.kind not in "iu"):
            raise InvalidInput("clusters must be one whole number for each row.")
        return released(
            self.recover(table, np.clip(place, 0, self.k - 1).astype(np.int64), noise), self.guarantee, noise
        )

    @np.errstate(all="ignore")  # sums are private, however small their quotients
    def recover(self, table: sparse.csr_array, clusters: NDArray[np.int64], noise: Noise) -> Prototypes:
        """The same of rows that are within bounds already, in steps. An empty cluster takes the same path as any other."""
        users = table.shape[0]
        member = sparse.csr_array((np.ones(users, dtype=np.int64), (clusters, np.arange(users))), shape=(self.k, users))
        sums = np.asarray((member @ table).toarray(), dtype=np.int64)
        sizes = np.bincount(clusters, minlength=self.k) + discrete_laplace.sample(self.count_scale, self.k, noise)
        items = np.tile(np.arange(self.bounds.items), (self.k, 1))
        if self.selects:
            items = np.array([self.selection.release(total, noise).value for total in sums])
        noisy = np.take_along_axis(sums, items, axis=1)
        noisy += discrete_laplace.sample(self.value_scale, noisy.size, noise).reshape(noisy.shape)
        means = noisy * float(self.bounds.step) / np.maximum(sizes, self.least_users)[:, None]
        lowest = -self.bounds.value_bound if self.bounds.signed else 0.0
        centres = np.full(sums.shape, np.nan)
        np.put_along_axis(centres, items, np.clip(means, lowest, self.bounds.value_bound), axis=1)
        return Prototypes(centres, sizes.astype(np.float64))
