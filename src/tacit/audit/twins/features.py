"""Broken on purpose, never use: noisy features whose noise knows the features, or is known to others."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import GridVector, VectorLaplace
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, ReplayedNoise, unprotected, words64


@dataclass(frozen=True, slots=True)
class RedrawnUntilInside:
    """Redraws until every coordinate lies in the domain: the chance of having to redraw depends on the features."""

    name: ClassVar[str] = "redrawn-until-inside"
    real: VectorLaplace

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def log_pmf(self, steps: NDArray[np.int64], features: ArrayLike) -> NDArray[np.float64]:
        bits = self.real.grid_bits
        inside = np.arange(round(self.real.low * 2**bits), round(self.real.high * 2**bits) + 1)
        centre = np.rint(np.clip(np.asarray(features), self.real.low, self.real.high) * 2.0**bits)
        rate = float(1 / self.real.noise_law.width)
        weight = -np.abs(steps - centre) * rate
        total = np.log(np.exp(-np.abs(inside[:, None] - centre) * rate).sum(axis=0))
        outside = (steps < inside[0]) | (steps > inside[-1])
        law: NDArray[np.float64] = np.where(outside, -np.inf, weight - total).sum(axis=-1)
        return law


@dataclass(frozen=True, slots=True)
class FloatNoise:
    """Adds Laplace noise in floats: which doubles can come out depends on the features (Mironov 2012)."""

    name: ClassVar[str] = "noise-in-floats"
    real: VectorLaplace

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def release(self, features: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.float64]]:
        word = words64(noise, self.real.dimension)
        uniform = ((word >> np.uint64(12)) + 0.5) * 2.0**-52
        sign = np.where(word & np.uint64(1), 1.0, -1.0)
        noisy = np.asarray(features, dtype=np.float64) - sign * self.real.scale * np.log(uniform)
        return unprotected(noisy, no_promise(self.guarantee), noise)


@dataclass(frozen=True, slots=True)
class SeededNoise:
    """Draws its noise from a seed that others can guess, and still claims to protect: it always releases the same."""

    name: ClassVar[str] = "seeded-noise"
    real: VectorLaplace
    seed: int = 0

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def release(self, features: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        return unprotected(
            self.real.release(features, ReplayedNoise(self.seed)).value, no_promise(self.guarantee), noise
        )


@dataclass(frozen=True, slots=True)
class ClampedNoise:
    """Cuts the density of the noise at three scales: which outputs are possible at all then tells the features."""

    name: ClassVar[str] = "clamped-noise-density"
    real: VectorLaplace

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def log_pmf(self, steps: NDArray[np.int64], features: ArrayLike) -> NDArray[np.float64]:
        bits = self.real.grid_bits
        centre = np.rint(np.clip(np.asarray(features), self.real.low, self.real.high) * 2.0**bits)
        rate = float(1 / self.real.noise_law.width)
        most = math.floor(3.0 / rate)
        total = math.log(np.exp(-np.abs(np.arange(-most, most + 1)) * rate).sum())
        away = np.abs(steps - centre)
        law: NDArray[np.float64] = np.where(away > most, -np.inf, -away * rate - total).sum(axis=-1)
        return law


@dataclass(frozen=True, slots=True)
class FreshOnRetry:
    """Draws fresh noise when a message has to be sent again, and charges for one: both together lose twice as much."""

    name: ClassVar[str] = "fresh-noise-on-retry"
    real: VectorLaplace

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def log_pmf(self, steps: NDArray[np.int64], features: ArrayLike) -> NDArray[np.float64]:
        first, again = np.split(steps, 2, axis=-1)
        return self.real.log_pmf(first, features) + self.real.log_pmf(again, features)


def last_bit(value: float, bits: int = 53) -> int:
    """1 if a double within (-1/2, 1/2) is no multiple of 2^-bits, 0 if it is, 2 elsewhere: what betrays noise in floats."""
    if not abs(value) < 0.5:
        return 2
    return int(math.ldexp(value, bits) != math.floor(math.ldexp(value, bits)))
