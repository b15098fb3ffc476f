"""Released numbers on a public grid, and the noise on them.

Noise added to floats is not private, whatever its law: the last bits of a sum tell what it was. Here every exact number is a whole
number of grid steps, the noise is a whole number too, and each of the three laws is drawn exactly (docs/proofs/exact-samplers.md).
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import integers


@dataclass(frozen=True, slots=True, eq=False)
class GridVector:
    """``steps`` whole numbers, each worth ``step``."""

    steps: NDArray[np.int64]
    step: Fraction

    def to_floats(self) -> NDArray[np.float64]:
        """The released numbers in the units of the input."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class GridMatrix:
    """A symmetric matrix of whole numbers, each worth ``step``."""

    steps: NDArray[np.int64]
    step: Fraction

    def to_floats(self) -> NDArray[np.float64]:
        """The released numbers in the units of the input. Noise may make eigenvalues negative."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


class NoiseKind(StrEnum):
    """Which law the noise has."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"
    ROUNDED_GAUSSIAN = "rounded Gaussian"  # a continuous Gaussian, rounded to whole steps: it has the same trade-off


_PMF = {
    NoiseKind.LAPLACE: integers.discrete_laplace_pmf,
    NoiseKind.GAUSSIAN: integers.discrete_gaussian_pmf,
    NoiseKind.ROUNDED_GAUSSIAN: integers.rounded_gaussian_pmf,
}
_SAMPLE = {
    NoiseKind.LAPLACE: integers.sample_discrete_laplace,
    NoiseKind.GAUSSIAN: integers.sample_discrete_gaussian,
    NoiseKind.ROUNDED_GAUSSIAN: integers.sample_rounded_gaussian,
}
_REQUIRE_DRAWABLE = {
    NoiseKind.LAPLACE: integers.require_drawable_discrete_laplace,
    NoiseKind.GAUSSIAN: integers.require_drawable_discrete_gaussian,
    NoiseKind.ROUNDED_GAUSSIAN: integers.require_drawable_rounded_gaussian,
}


@dataclass(frozen=True)
class GridNoise:
    """Independent noise on every number of a release: one law, in whole steps of ``step``.

    ``width`` is the scale of a Laplace law in steps, or the variance of a Gaussian one in squared steps. Raises InvalidParameter
    if such noise cannot be drawn, so that a mechanism fails when it is built and not when it is used.
    """

    kind: NoiseKind
    width: Fraction
    step: Fraction

    def __post_init__(self) -> None:
        _REQUIRE_DRAWABLE[self.kind](self.width)

    @classmethod
    def laplace(cls, scale: Fraction, step: Fraction) -> "GridNoise":
        """Discrete Laplace noise of ``scale`` steps: sensitivity / epsilon, with the L1 sensitivity in steps."""
        return cls(NoiseKind.LAPLACE, scale, step)

    @classmethod
    def gaussian(cls, squared_sensitivity: Fraction | int, *, rho: Fraction | float, step: Fraction) -> "GridNoise":
        """Discrete Gaussian noise that costs ``rho`` of zCDP: its variance is sensitivity^2 / (2 rho), L2, in squared steps."""
        return cls(NoiseKind.GAUSSIAN, Fraction(squared_sensitivity) / (2 * Fraction(rho)), step)

    @classmethod
    def rounded_gaussian(cls, squared_sensitivity: Fraction | int, *, mu: float, step: Fraction) -> "GridNoise":
        """Rounded Gaussian noise with a Gaussian loss of ``mu``: its variance is sensitivity^2 / mu^2, L2, in squared steps."""
        return cls(NoiseKind.ROUNDED_GAUSSIAN, Fraction(squared_sensitivity) / Fraction(mu) ** 2, step)

    @property
    def sd(self) -> float:
        """The standard deviation of the noise on one number, in the units of the input."""
        if self.kind is not NoiseKind.LAPLACE:
            return math.sqrt(self.width) * float(self.step)
        rate = float(1 / self.width)  # sqrt(2 r) / (1 - r) with r = e^-rate
        return math.sqrt(2.0) * math.exp(-rate / 2.0) / -math.expm1(-rate) * float(self.step)

    def pmf(self, steps: NDArray[np.int64] | int, total: int = 0) -> NDArray[np.float64]:
        """The probability that one number, which truly is ``total`` steps, is released as ``steps``."""
        return _PMF[self.kind](np.asarray(steps) - total, self.width)

    def sample(self, count: int, noise: Noise) -> NDArray[np.int64]:
        """``count`` independent draws, in steps."""
        return _SAMPLE[self.kind](self.width, count, noise)

    def add(self, totals: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        """``totals`` in steps, with noise on each."""
        return totals + self.sample(totals.size, noise).reshape(totals.shape)
