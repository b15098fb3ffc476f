"""Broken on purpose, never use: noisy sums whose sensitivity is not what they divide by."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import ONE_USER_REPLACED, Guarantee, Release
from tacit.mechanisms import GaussianSum, GridVector, LaplaceSum
from tacit.mechanisms.inputs import STEPS
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, unprotected
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.integers import GridNoise


@dataclass(frozen=True, slots=True)
class ClippedAfterSum:
    """Cuts the sum to the bound, not each user's row: one user may still turn it from one side to the other."""

    name: ClassVar[str] = "clipped-after-the-sum"
    real: LaplaceSum

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        total = _finite(rows).sum(axis=0)
        total = total / max(1.0, float(np.abs(total).sum()) / self.real.bound)
        steps = np.trunc(total / self.real.bound * STEPS).astype(np.int64)
        noisy = self.noise_law.add(steps, noise)
        return unprotected(GridVector(noisy, Fraction(self.real.bound) / STEPS), no_promise(self.guarantee), noise)


@dataclass(frozen=True, slots=True)
class ClippedPerCoordinate:
    """Cuts every coordinate to the bound of the whole row: the row's L2 norm may then be sqrt(dimension) times as large."""

    name: ClassVar[str] = "clipped-per-coordinate"
    real: GaussianSum

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        share = np.clip(_finite(rows) / self.real.bound, -1.0, 1.0)
        total = np.trunc(share * STEPS).astype(np.int64).sum(axis=0)
        noisy = self.noise_law.add(total, noise)
        return unprotected(GridVector(noisy, Fraction(self.real.bound) / STEPS), no_promise(self.guarantee), noise)


@dataclass(frozen=True, slots=True)
class PricedAsAdded:
    """Claims to hide that a row was replaced, with the noise that hides a row added: half the sensitivity."""

    name: ClassVar[str] = "replaced-at-the-price-of-added"
    real: GaussianSum  # for add/remove

    @property
    def guarantee(self) -> Guarantee:
        return replace(self.real.guarantee, protects=ONE_USER_REPLACED)

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        return unprotected(self.real.release(rows, noise).value, no_promise(self.guarantee), noise)


@dataclass(frozen=True, slots=True)
class LocalSensitivity:
    """The cosine of two columns plus Laplace noise scaled to how far *this* table's cosine moves when one user leaves.

    Two Laplace laws of different scale have an unbounded ratio; and the scale itself tells of the table.
    """

    name: ClassVar[str] = "local-sensitivity-as-scale"
    real: LaplaceSum
    least: float = 0.02  # without a least scale a table that no leaving user moves would be released as it is

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    def law(self, rows: ArrayLike) -> tuple[float, float]:
        """Centre and scale of the noisy cosine."""
        table = _finite(rows)
        here = _cosine(table)
        local = max((abs(here - _cosine(np.delete(table, user, axis=0))) for user in range(len(table))), default=0.0)
        return here, max(local, self.least) / self.real.epsilon

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        centre, scale = self.law(rows)
        noisy = round(centre * STEPS) + integers.sample_discrete_laplace(Fraction(scale) * STEPS, 1, noise)
        return unprotected(GridVector(noisy, Fraction(1, STEPS)), no_promise(self.guarantee), noise)


def _cosine(table: NDArray[np.float64]) -> float:
    first, second = table[:, 0], table[:, 1]
    norms = float(np.sqrt(np.sum(first * first) * np.sum(second * second)))
    return float(np.sum(first * second)) / norms if norms > 0.0 else 0.0


def _finite(rows: ArrayLike) -> NDArray[np.float64]:
    table = np.nan_to_num(np.asarray(rows, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(table, -1e100, 1e100)  # so that sums stay finite
