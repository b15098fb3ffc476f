"""Broken on purpose, never use: counts of reports that one user moves further than the noise was made for."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import BoundedCounts, GridVector
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, unprotected
from tacit.mechanisms.samplers.integers import GridNoise

_ALL = 10**6


@dataclass(frozen=True, slots=True)
class _Broken:
    """A twin differs from the real one in its totals, its scale, or its list of places."""

    name: ClassVar[str]
    real: BoundedCounts

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    def totals(self, reports: Any) -> NDArray[np.int64]:
        return self.real.totals(reports)

    def release(self, reports: Any, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        noisy = self.noise_law.add(self.totals(reports), noise)
        return unprotected(GridVector(noisy, Fraction(1)), no_promise(self.guarantee), noise)


@dataclass(frozen=True, slots=True)
class NoiseForOneReport(_Broken):
    """Counts c reports of each user, with noise that hides one."""

    name: ClassVar[str] = "noise-for-one-report"

    @property
    def noise_law(self) -> GridNoise:
        return GridNoise.laplace(1 / Fraction(self.real.epsilon), Fraction(1))


@dataclass(frozen=True, slots=True)
class CountedBeyondTheCap(_Broken):
    """Counts all reports of a user, with noise that hides c of them."""

    name: ClassVar[str] = "counted-beyond-the-cap"

    def totals(self, reports: Any) -> NDArray[np.int64]:
        return BoundedCounts(self.real.dimension, self.real.epsilon, _ALL).totals(reports)


@dataclass(frozen=True, slots=True)
class CappedAtEachPlace(_Broken):
    """Counts c reports of a user at every place, so that she may move as many counts as there are places."""

    name: ClassVar[str] = "capped-at-each-place"

    def totals(self, reports: Any) -> NDArray[np.int64]:
        kept = [[one for one in reports if one[1] == place] for place in range(self.real.dimension)]
        counts = np.zeros(self.real.dimension, dtype=np.int64)
        for own in kept:
            counts += self.real.totals(own)
        return counts


@dataclass(frozen=True, slots=True)
class OnlyClickedListed(_Broken):
    """Lists only the places that were named; one that is not listed is read as a count of 0, without noise."""

    name: ClassVar[str] = "only-clicked-listed"

    def release(self, reports: Any, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        noisy = self.real.release(reports, noise).value.steps
        listed = np.where(self.totals(reports) > 0, noisy, 0)
        return unprotected(GridVector(listed, Fraction(1)), no_promise(self.guarantee), noise)
