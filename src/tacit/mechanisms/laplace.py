"""Laplace noise on a grid: for one feature vector (metric privacy in L1) and for sums over users (L1-bounded rows).
Proofs: docs/proofs/vector-laplace.md and docs/proofs/laplace-sum.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, Guarantee, Relation, Release, metric, pure
from tacit.guarantees.rounding import up
from tacit.mechanisms.arrays import real_array
from tacit.mechanisms.drawn import released
from tacit.mechanisms.grid import STEPS, GridVector, bounded_row_sum
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_laplace

_SATURATION = (1 << 31) - 1  # releases fit an int32 on the wire; cutting after the noise is free


@dataclass(frozen=True)
class VectorLaplace:
    """One vector of features in [low, high]^dimension plus discrete Laplace noise of ``scale`` on a grid of 2^-``grid_bits``.

    (1/scale)-metric privacy in L1: the loss between two vectors is at most (their L1 distance + rounding) / scale. A float scale
    is the binary number that it is; a ``Fraction`` says 1/10 exactly, for parties that have to agree on it.
    """

    name: ClassVar[str] = "vector-laplace"
    dimension: int
    scale: float | Fraction
    low: float = 0.0  # the least value of a feature: they are scores without a unit
    high: float = 1.0  # the largest, likewise a score
    grid_bits: int = 20

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            scale=_checked_scale(self.scale),
            low=finite("low", self.low),
            high=finite("high", self.high),
            grid_bits=whole("grid_bits", self.grid_bits, least=0, most=30),
        )
        if not self.low < self.high:
            raise InvalidParameter(f"features need low < high, not [{self.low!r}, {self.high!r}].")
        if max(abs(self.low), abs(self.high)) * 2.0**self.grid_bits > 1 << 30:
            raise InvalidParameter("low and high must lie within 2^30 grid steps; choose fewer grid_bits.")
        discrete_laplace.require_drawable(self.scale_in_steps)

    @property
    def step(self) -> Fraction:
        """The distance of two points of the grid, in the features' unit."""
        return Fraction(1, 1 << self.grid_bits)

    @cached_property
    def scale_in_steps(self) -> Fraction:
        """The scale of the noise on each coordinate, in grid steps."""
        return Fraction(self.scale) / self.step

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon, in nats, per unit of L1 distance between features, and what rounding
        adds to a distance.
        """
        # each coordinate is rounded by at most half a step on both sides: distances grow by at most one step per coordinate
        return metric(
            up(1 / Fraction(self.scale)), distance="L1", rounding=up(self.dimension * self.step), proof=self.name
        )

    def log_pmf(self, steps: NDArray[np.int64], features: ArrayLike) -> NDArray[np.float64]:
        """ln P(steps | features) before saturation, along the last axis."""
        noise = steps - self._steps(features)
        rate = float(1 / self.scale_in_steps)
        law: NDArray[np.float64] = np.sum(np.log(np.tanh(rate / 2.0)) - np.abs(noise) * rate, axis=-1)
        return law

    def release(self, features: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy features."""
        noisy = self._steps(features) + discrete_laplace.sample(self.scale_in_steps, self.dimension, noise)
        return released(GridVector(np.clip(noisy, -_SATURATION, _SATURATION), self.step), self.guarantee, noise)

    def _steps(self, features: ArrayLike) -> NDArray[np.int64]:
        values = real_array(features, "features")
        if values.shape != (self.dimension,):
            raise InvalidInput(f"expected {self.dimension} features in one row.")
        if not np.isfinite(values).all():
            raise InvalidInput("every feature must be a finite number.")
        # clipping moves no two vectors apart, so distances only shrink; 2^bits times a float is exact
        return np.rint(np.clip(values, self.low, self.high) * 2.0**self.grid_bits).astype(np.int64)


def _checked_scale(scale: float | Fraction) -> float | Fraction:
    """A fraction stays the fraction it is."""
    if not isinstance(scale, Fraction):
        return positive("scale", scale)
    if scale <= 0:
        raise InvalidParameter(f"scale must be a finite number above 0, not {scale}.")
    return scale


@dataclass(frozen=True)
class LaplaceSum:
    """The sum of users' rows, each cut to L1 norm ``bound``, plus discrete Laplace noise: pure epsilon-DP for one user."""

    name: ClassVar[str] = "laplace-sum"
    dimension: int  # numbers in a row
    bound: float
    epsilon: float  # nats
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            bound=positive("bound", self.bound),
            epsilon=positive("epsilon", self.epsilon),
            relation=member("relation", Relation, self.relation),
        )
        discrete_laplace.require_drawable(self.scale_in_steps)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon, in nats, for one user's rows."""
        return pure(
            self.epsilon, ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED, proof=self.name
        )

    @cached_property
    def scale_in_steps(self) -> Fraction:
        """L1 sensitivity over epsilon: the bound is 2^20 steps; replacing a row takes one out and puts one in."""
        return STEPS * (1 if self.relation is Relation.ADD_REMOVE else 2) / Fraction(self.epsilon)

    def pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that one coordinate, whose true sum is ``total`` steps, is released as ``steps``."""
        return discrete_laplace.pmf(np.asarray(steps) - total, self.scale_in_steps)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy sum over all users' rows."""
        total = bounded_row_sum(rows, self.dimension, self.bound, norm=1)
        noisy = total + discrete_laplace.sample(self.scale_in_steps, self.dimension, noise)
        return released(GridVector(noisy, Fraction(self.bound) / STEPS), self.guarantee, noise)
