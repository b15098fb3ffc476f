"""Broken on purpose, never use: a sound mechanism under the label of another, cheaper one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.distribution import off_by
from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.guarantees.concentrated import epsilon_of_rho
from tacit.mechanisms import GaussianKernel, GaussianSum, GramShare, PopularityShare, SampledGaussian, TreePrototypes
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, unprotected
from tacit.mechanisms.sampled_gaussian import epsilon_of_sampled


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """Runs one mechanism and claims the guarantee of another."""

    name: str
    runs: Any
    guarantee: Guarantee

    def pmf(self, raw: Any) -> NDArray[np.float64]:
        law: NDArray[np.float64] = self.runs.pmf(raw)
        return law

    def release(self, raw: Any, noise: Noise = SYSTEM_NOISE) -> Release[Any]:
        return unprotected(self.runs.release(raw, noise).value, no_promise(self.guarantee), noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        return unprotected(self.runs.release_many(raw, noise).value, no_promise(self.guarantee), noise)


def with_less_noise(real: Any, factor: float) -> Mislabelled:
    """Runs ``real`` with its noise divided by ``factor`` (for selection: its rate multiplied) and claims what it claims."""
    if isinstance(real, GaussianSum | GaussianKernel | TreePrototypes):  # rho goes with the square of the noise
        runs: Any = replace(real, epsilon=epsilon_of_rho(real.rho * factor**2, real.delta))
    elif isinstance(real, PopularityShare | GramShare):
        runs = replace(real, rho=real.rho * factor**2)
    elif hasattr(real, "mu"):
        runs = replace(real, mu=real.mu * factor)
    elif isinstance(real, SampledGaussian):
        less = real.noise_multiplier / factor
        runs = replace(real, epsilon=epsilon_of_sampled(less, real.rate, real.steps, real.delta))
    else:
        runs = off_by(real, factor)
    return Mislabelled(f"{real.name}-with-less-noise", runs, real.guarantee)
