"""Gaussian noise on a kernel: the sum over users of the outer products of their rows, released once. Proof:
docs/proofs/gaussian-kernel.md.
"""

import math
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
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_gaussian
from tacit.mechanisms.slate_rows import SQUARE, whole_rows

MOST_ITEMS = 1 << 14  # the matrix then takes 2 GB
_CELLS = 1 << 20  # of the matrix at a time


@dataclass(frozen=True, slots=True, eq=False)
class GridMatrix:
    """A symmetric matrix of whole numbers, each worth ``step``."""

    steps: NDArray[np.int64]
    step: Fraction

    def to_floats(self) -> NDArray[np.float64]:
        """The released numbers in the units of the input. Noise may have made some eigenvalues negative."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


@dataclass(frozen=True)
class GaussianKernel:
    """sum of c c^T over users, each row cut to a squared L2 norm of ``bound``, plus symmetric discrete Gaussian noise.

    zCDP, stated as (epsilon, delta), for the whole matrix. Whatever is computed from it, any number of slates, costs no more.
    """

    name: ClassVar[str] = "gaussian-kernel"
    items: int
    epsilon: float  # nats
    delta: float  # a probability
    bound: float = 1.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            items=whole("items", self.items, least=1, most=MOST_ITEMS),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            bound=positive("bound", self.bound),
            relation=member("relation", Relation, self.relation),
        )
        for variance in self.variances_in_steps:
            discrete_gaussian.require_drawable(variance)

    @cached_property
    def rho(self) -> float:
        """The zCDP that (epsilon, delta) affords, rounded down."""
        return rho_for(self.epsilon, self.delta)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: (epsilon, delta) for one user's rows; composes by its zCDP."""
        protects = ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED
        return Guarantee(self.epsilon, protects, delta=self.delta, proof=self.name, loss=Loss(LossKind.ZCDP, self.rho))

    @property
    def step(self) -> Fraction:
        """What one step of the matrix is worth: rows are whole numbers of sqrt(bound) / 2^16."""
        return Fraction(self.bound) / SQUARE

    @cached_property
    def variances_in_steps(self) -> tuple[Fraction, Fraction]:
        """Of the noise on the diagonal, and off it, where each number stands twice in the matrix: half as much.

        Frobenius sensitivity^2 / (2 rho). |a a^T| = |a|^2 <= 2^32, and |a a^T - b b^T|^2 = |a|^4 + |b|^4 - 2 (a.b)^2.
        """
        squared = SQUARE**2 * (1 if self.relation is Relation.ADD_REMOVE else 2)
        diagonal = Fraction(squared) / (2 * Fraction(self.rho))
        return diagonal, diagonal / 2

    @property
    def sds(self) -> tuple[float, float]:
        """The deviation of the noise on the diagonal, and off it, in the units of the kernel."""
        on, off = self.variances_in_steps
        return math.sqrt(on) * float(self.step), math.sqrt(off) * float(self.step)

    def pmf(self, steps: NDArray[np.int64] | int, total: int, *, diagonal: bool) -> NDArray[np.float64]:
        """The probability that one number of the matrix, which truly is ``total`` steps, is released as ``steps``."""
        return discrete_gaussian.pmf(np.asarray(steps) - total, self.variances_in_steps[0 if diagonal else 1])

    def totals(self, rows: ArrayLike | sparse.csr_array) -> NDArray[np.int64]:
        """The exact matrix in steps. Private.

        No number of it is beyond 2^32 times the number of users, which is below 2^30: an int64 holds it, and the noise.
        """
        table = whole_rows(rows, self.items, self.bound)
        by_item = table.T.tocsr()
        total = np.empty((self.items, self.items), dtype=np.int64)
        for first, last in _blocks(self.items):
            upper = (by_item[first:last] @ table[:, first:]).toarray()
            total[first:last, first:] = upper
            total[first:, first:last] = upper.T
        return total

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridMatrix]:
        """The noisy matrix: symmetric, with fresh noise for every pair of items, also for those nobody has."""
        noisy = self.totals(rows)
        on, off = self.variances_in_steps
        noisy[np.diag_indices(self.items)] += discrete_gaussian.sample(on, self.items, noise)
        for first, last in _blocks(self.items):
            upper = noisy[first:last, first:]
            above = np.triu(np.ones(upper.shape, dtype=np.bool_), 1)
            upper[above] += discrete_gaussian.sample(off, int(above.sum()), noise)
            square = np.triu(upper[:, : last - first])
            noisy[first:last, first:last] = square + np.triu(square, 1).T
            noisy[last:, first:last] = upper[:, last - first :].T
        return released(GridMatrix(noisy, self.step), self.guarantee, noise)


def _blocks(items: int) -> list[tuple[int, int]]:
    """Stretches of rows, each of about so many cells."""
    rows = max(1, _CELLS // items)
    return [(first, min(items, first + rows)) for first in range(0, items, rows)]
