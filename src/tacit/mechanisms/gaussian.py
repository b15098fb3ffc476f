"""Gaussian noise on a grid for sums over users (L2-bounded rows). Proof: docs/proofs/gaussian-sum.md."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, member, positive, probability, whole
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, Guarantee, Loss, LossKind, Relation, Release
from tacit.guarantees.zcdp import rho_for
from tacit.mechanisms.drawn import released
from tacit.mechanisms.grid import STEPS, GridVector, bounded_row_sum
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_gaussian


@dataclass(frozen=True)
class GaussianSum:
    """The sum of users' rows, each cut to L2 norm ``bound``, plus discrete Gaussian noise: zCDP, stated as (epsilon, delta)."""

    name: ClassVar[str] = "gaussian-sum"
    dimension: int  # numbers in a row
    bound: float
    epsilon: float  # nats
    delta: float  # a probability
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            bound=positive("bound", self.bound),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            relation=member("relation", Relation, self.relation),
        )
        discrete_gaussian.require_drawable(self.variance_in_steps)

    @cached_property
    def rho(self) -> float:
        """The zCDP that (epsilon, delta) affords, rounded down."""
        return rho_for(self.epsilon, self.delta)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: (epsilon, delta) for one user's rows; composes by its zCDP."""
        protects = ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED
        return Guarantee(self.epsilon, protects, delta=self.delta, proof=self.name, loss=Loss(LossKind.ZCDP, self.rho))

    @cached_property
    def variance_in_steps(self) -> Fraction:
        """sensitivity^2 / (2 rho), in grid steps squared: the bound is 2^20 steps, twice that when a row is replaced."""
        sensitivity = STEPS * (1 if self.relation is Relation.ADD_REMOVE else 2)
        return Fraction(sensitivity * sensitivity) / (2 * Fraction(self.rho))

    def pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that one coordinate, whose true sum is ``total`` steps, is released as ``steps``."""
        return discrete_gaussian.pmf(np.asarray(steps) - total, self.variance_in_steps)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy sum over all users' rows."""
        total = bounded_row_sum(rows, self.dimension, self.bound, norm=2)
        noisy = total + discrete_gaussian.sample(self.variance_in_steps, self.dimension, noise)
        return released(GridVector(noisy, Fraction(self.bound) / STEPS), self.guarantee, noise)
