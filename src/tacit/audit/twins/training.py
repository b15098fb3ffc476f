"""Broken on purpose, never use: steps of private training that sum, sample or charge in a way their price does not cover."""

from dataclasses import dataclass
from itertools import combinations, product
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import GridVector, SampledGaussian
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, unprotected
from tacit.mechanisms.samplers.integers import GridNoise


@dataclass(frozen=True)
class _Twin:
    """Claims all that the real one claims."""

    name: ClassVar[str] = "twin"
    real: SampledGaussian

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    def renyi(self, order: int) -> float:
        return self.real.renyi(order)

    def total(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum over the sample, before noise."""
        return np.asarray(self.real.cut(rows).sum(axis=0))

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        table = np.asarray(rows, dtype=np.int64)
        total = self.total(table[self.real.sample(len(table), noise)])
        noisy = self.noise_law.add(total, noise)
        return unprotected(GridVector(noisy, self.real.noise_law.step), no_promise(self.guarantee), noise)


class ClippedAfterTheSum(_Twin):
    """Cuts the sum of the sample to the bound, not each user's row."""

    name: ClassVar[str] = "gradients-clipped-after-the-sum"

    def total(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        most = np.int64(1 << 40)  # so that sums fit
        return self.real.cut(np.clip(rows, -most, most).sum(axis=0, keepdims=True)).ravel()


class ClippedPerCoordinate(_Twin):
    """Cuts every coordinate to the bound of the whole row."""

    name: ClassVar[str] = "gradients-clipped-per-coordinate"

    def total(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(np.clip(rows, -self.real.bound_in_steps, self.real.bound_in_steps).sum(axis=0))


class BoundTakenOnTrust(_Twin):
    """Sums the rows as they come, because whoever computed them has surely clipped them."""

    name: ClassVar[str] = "bound-taken-on-trust"

    def total(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(rows.sum(axis=0))


class FixedBatch(_Twin):
    """Draws a batch of a fixed size and pays for coins of each user: who comes in pushes another one out."""

    name: ClassVar[str] = "fixed-batch-charged-as-coins"
    size: ClassVar[int] = 1

    def pmf(self, steps: ArrayLike, rows: ArrayLike) -> NDArray[np.float64]:
        table = self.real.cut(rows)
        outputs = np.asarray(steps, dtype=np.int64).reshape(-1, self.real.dimension)
        batches = list(combinations(range(len(table)), min(self.size, len(table))))
        laws = [self.noise_law.pmf(outputs - table[list(batch)].sum(axis=0)).prod(axis=1) for batch in batches]
        return np.asarray(np.mean(laws, axis=0))


@dataclass(frozen=True)
class TwoSteps:
    """Two steps of the real mechanism, their outputs side by side (one coordinate each): sound, to compare the twin with."""

    name: ClassVar[str] = SampledGaussian.name
    real: SampledGaussian

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    def renyi(self, order: int) -> float:
        return 2.0 * self.real.renyi(order)

    def pmf(self, steps: ArrayLike, rows: ArrayLike) -> NDArray[np.float64]:
        outputs = np.asarray(steps, dtype=np.int64).reshape(-1, 2)
        return self.real.pmf(outputs[:, 0], rows) * self.real.pmf(outputs[:, 1], rows)


class OneSampleForAllSteps(TwoSteps):
    """Draws the sample once and keeps it, but pays as if it were drawn anew: whoever is in it is in it every time."""

    name: ClassVar[str] = "one-sample-for-all-steps"

    def pmf(self, steps: ArrayLike, rows: ArrayLike) -> NDArray[np.float64]:
        table, rate = self.real.cut(rows), self.real.rate
        outputs = np.asarray(steps, dtype=np.int64).reshape(-1, 2)
        law = np.zeros(len(outputs))
        for sampled in product((False, True), repeat=len(table)):
            chance = float(rate ** sum(sampled) * (1 - rate) ** (len(table) - sum(sampled)))
            total = table[np.array(sampled, dtype=np.bool_)].sum(axis=0)  # of one coordinate: the same for both steps
            law += chance * self.real.noise_law.pmf(outputs - total).prod(axis=1)
        return law
