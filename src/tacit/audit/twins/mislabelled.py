"""Broken on purpose, never use: a sound mechanism under the label of another, cheaper one."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise


class _Selects(Protocol):
    @property
    def guarantee(self) -> Guarantee: ...

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]: ...

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]: ...


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """Runs one mechanism and claims the guarantee of another."""

    name: str
    runs: _Selects
    guarantee: Guarantee

    def pmf(self, raw: Any) -> NDArray[np.float64]:
        return self.runs.pmf(raw)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        return released(self.runs.release_many(raw, noise).value, no_promise(self.guarantee), noise)
