"""Broken on purpose, never use: noisy kernels whose noise does not fit what one user moves."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.audit.twins.slates import clean
from tacit.guarantees import Guarantee, Relation, Release
from tacit.mechanisms import GaussianKernel, GridMatrix
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, unprotected
from tacit.mechanisms.samplers.integers import GridNoise
from tacit.mechanisms.slates import STEPS


@dataclass(frozen=True)
class _Noisy:
    real: GaussianKernel

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_laws(self) -> tuple[GridNoise, GridNoise]:
        return self.real.noise_laws

    def totals(self, rows: ArrayLike) -> NDArray[np.int64]:
        return self.real.totals(rows)

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridMatrix]:
        total, (on, off) = self.totals(rows), self.noise_laws
        items = len(total)
        upper = np.triu(off.sample(items * items, noise).reshape(items, items), 1)
        noisy = total + upper + upper.T + np.diag(on.sample(items, noise))
        return unprotected(GridMatrix(noisy, on.step), no_promise(self.guarantee), noise)


@dataclass(frozen=True)
class HalfTheNoiseOffTheDiagonal(_Noisy):
    """A quarter of the variance off the diagonal, where half is needed."""

    name: ClassVar[str] = "half-the-noise-off-the-diagonal"

    @property
    def noise_laws(self) -> tuple[GridNoise, GridNoise]:
        on, off = self.real.noise_laws
        return on, replace(off, width=on.width / 4)


@dataclass(frozen=True)
class NoiseForEachTriangle(_Noisy):
    """The cells (i, j) and (j, i) are released with noise of their own: whoever takes their mean has half of its variance."""

    name: ClassVar[str] = "noise-for-each-triangle"

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridMatrix]:
        total, (on, off) = self.totals(rows), self.noise_laws
        items = len(total)
        beside = off.sample(items * items, noise).reshape(items, items)
        beside[np.diag_indices(items)] = on.sample(items, noise)
        return unprotected(GridMatrix(total + beside, on.step), no_promise(self.guarantee), noise)


@dataclass(frozen=True)
class RowsNotCut(_Noisy):
    """Takes rows as they are."""

    name: ClassVar[str] = "rows-not-cut"

    def totals(self, rows: ArrayLike) -> NDArray[np.int64]:
        steps = np.trunc(np.clip(clean(rows), -100.0, 100.0) * STEPS).astype(np.int64)
        return np.asarray(steps.T @ steps)


@dataclass(frozen=True)
class SumReplacedAsAdded(_Noisy):
    """Claims to hide that a user is replaced, with the noise that hides her being added."""

    name: ClassVar[str] = "kernel-replaced-as-added"

    @property
    def noise_laws(self) -> tuple[GridNoise, GridNoise]:
        return replace(self.real, relation=Relation.ADD_REMOVE).noise_laws
