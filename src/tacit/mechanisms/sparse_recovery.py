"""Sparse noisy means of clusters: a noisy size, a private choice of items, and noisy values of these items.

Noise is added to sums, at a public scale. Noise on means would have a scale divided by the number of users, and so publish that
number. Proof: docs/proofs/sparse-recovery.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput
from tacit.guarantees import ONE_USER, Guarantee, LossKind, Neighbours, Release
from tacit.guarantees.arithmetic import up
from tacit.guarantees.guarantee import finite_loss
from tacit.mechanisms.inputs import VALUE_STEPS as STEPS
from tacit.mechanisms.inputs import ProfileBounds
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.samplers.integers import (
    discrete_laplace_pmf,
    require_drawable_discrete_laplace,
    sample_discrete_laplace,
)
from tacit.mechanisms.scores import Scores
from tacit.mechanisms.top_k import GumbelTopK


@dataclass(frozen=True, slots=True, eq=False)
class Prototypes:
    """Centres of users with noisy sizes: what every prototype mechanism releases.

    ``centres`` is k x items in the units of the rows, with NaN for a number that was not released; ``sizes`` are k noisy numbers of
    users. Noise may make a size negative or fractional. The noise was added to whole numbers, which floats hold exactly.
    """

    centres: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @property
    def count(self) -> int:
        """The number of prototypes: k."""
        return len(self.sizes)

    def filled(self, value: float = 0.0) -> NDArray[np.float64]:
        """The centres with ``value`` instead of numbers that were not released."""
        return np.where(np.isnan(self.centres), value, self.centres)


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """Sums over users of bounded rows, in steps. A user moves each sum by at most 2^16, and all up unless rows are signed."""

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
    """A noisy size of each of ``k`` clusters, and noisy means of ``picked`` items chosen for their large sums: pure epsilon-DP.

    ``count``, ``select`` and ``values`` are the epsilons of the three steps. If all items are picked, nothing is selected, and
    ``select`` joins ``values``. ``least_users`` is a public lower bound of the number by which sums are divided.
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
        require_drawable_discrete_laplace(self.count_scale)
        require_drawable_discrete_laplace(self.value_scale)

    @property
    def selects(self) -> bool:
        """Whether fewer than all items are picked."""
        return self.picked < self.bounds.items

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of all three steps together, rounded up."""
        return up(Fraction(self.count) + Fraction(self.select) + Fraction(self.values))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all released rows promise: epsilon, in nats, for one user, who is in one cluster; composes by its zCDP."""
        # a user is in one cluster; picks are exponential mechanisms of range select/picked, the rest is pure
        spent = self._value_epsilon
        rho = Fraction(self.count) ** 2 / 2 + spent**2 / 2
        if self.selects:
            rho += Fraction(self.select) ** 2 / (8 * self.picked)
        return Guarantee(self.epsilon, ONE_USER, proof=self.name, loss=finite_loss(LossKind.ZCDP, up(rho)))

    @property
    def _value_epsilon(self) -> Fraction:
        return Fraction(self.values) + (0 if self.selects else Fraction(self.select))

    @cached_property
    def selection(self) -> GumbelTopK:
        """The choice of items in one cluster: ``picked`` exponential mechanisms on the column sums."""
        return GumbelTopK(ColumnSums(self.bounds.signed), self.picked, self.select)

    @cached_property
    def count_scale(self) -> Fraction:
        """The scale of the noise on a size: a user counts once."""
        return 1 / Fraction(self.count)

    @cached_property
    def value_scale(self) -> Fraction:
        """The scale of the noise on a sum, in steps: it covers the most that one user moves the picked sums, in L1."""
        return min(self.bounds.l1_steps, self.picked * STEPS) / self._value_epsilon

    def size_pmf(self, sizes: NDArray[np.int64] | int, users: int) -> NDArray[np.float64]:
        """The probability that the size of a cluster of ``users`` users is released as ``sizes``."""
        return discrete_laplace_pmf(np.asarray(sizes) - users, self.count_scale)

    def value_pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that a sum of ``total`` steps is released as ``steps``."""
        return discrete_laplace_pmf(np.asarray(steps) - total, self.value_scale)

    def release(
        self, rows: ArrayLike | sparse.csr_array, clusters: ArrayLike, noise: Noise = SYSTEM_NOISE
    ) -> Release[Prototypes]:
        """The prototypes. ``clusters`` gives the cluster of each row; it must follow from that row and public values only."""
        cluster = np.asarray(clusters)
        table = self.bounds.bounded(rows, noise)
        if cluster.shape != (table.shape[0],) or (cluster.size and cluster.dtype.kind not in "iu"):
            raise InvalidInput("clusters must be one whole number for each row.")
        return released(
            self.recover(table, np.clip(cluster, 0, self.k - 1).astype(np.int64), noise), self.guarantee, noise
        )

    @np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
    def recover(self, table: sparse.csr_array, clusters: NDArray[np.int64], noise: Noise) -> Prototypes:
        """The prototypes of rows that are already bounded, in steps. An empty cluster takes the same path as any other."""
        users = table.shape[0]
        member = sparse.csr_array((np.ones(users, dtype=np.int64), (clusters, np.arange(users))), shape=(self.k, users))
        sums = np.asarray((member @ table).toarray(), dtype=np.int64)
        sizes = np.bincount(clusters, minlength=self.k) + sample_discrete_laplace(self.count_scale, self.k, noise)
        items = np.tile(np.arange(self.bounds.items), (self.k, 1))
        if self.selects:
            items = np.array([self.selection.release(total, noise).value for total in sums])
        noisy = np.take_along_axis(sums, items, axis=1)
        noisy += sample_discrete_laplace(self.value_scale, noisy.size, noise).reshape(noisy.shape)
        means = noisy * float(self.bounds.step) / np.maximum(sizes, self.least_users)[:, None]
        lowest = -self.bounds.value_bound if self.bounds.signed else 0.0
        centres = np.full(sums.shape, np.nan)
        np.put_along_axis(centres, items, np.clip(means, lowest, self.bounds.value_bound), axis=1)
        return Prototypes(centres, sizes.astype(np.float64))
