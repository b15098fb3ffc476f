"""Broken on purpose, never use: noisy similarities whose noise fits this database and not its neighbours, or fewer pairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import SimilarityAfterTest, SmoothSimilarity
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.smooth_similarity import STEPS, NoisyLaw, pair_totals, whole_cosine
from tacit.mechanisms.tested_similarity import AnswerLaw
from tacit.models.cross_domain.smooth_sensitivity import smooth_steps


@dataclass(frozen=True)
class _Noisy:
    real: SmoothSimilarity

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def grid(self) -> int:
        return self.real.grid

    def scaled(self, rows: ArrayLike, reach: Callable[[int, int], float | Fraction]) -> list[NoisyLaw]:
        """The real centres, with noise for what ``reach`` says of both squared norms, in steps of the grid."""
        real = self.real
        totals = pair_totals(rows, real.items, real.bound, real.pairs)
        return [
            NoisyLaw(law.centre, 2 * Fraction(reach(one, other)) / Fraction(real.each_epsilon))
            for law, (_, one, other) in zip(real.laws(rows), totals, strict=True)
        ]


@dataclass(frozen=True)
class NotSmoothed(_Noisy):
    """Noise scaled to 2 B^2 / N, how far this database can move at most. It is right, and differs between neighbours."""

    name: ClassVar[str] = "local-sensitivity-of-a-similarity"

    def laws(self, rows: ArrayLike) -> list[NoisyLaw]:
        def reach(one: int, other: int) -> Fraction:
            return self.grid * Fraction(2 * STEPS**2, max(STEPS**2, min(one, other))) + 1

        return self.scaled(rows, reach)


@dataclass(frozen=True)
class SmoothedTwiceAsFast(_Noisy):
    """Discounts databases further away by e^(-2 beta) a step: the 2 of epsilon / (2 ln(2 / delta)) forgotten."""

    name: ClassVar[str] = "smoothed-twice-as-fast"

    def laws(self, rows: ArrayLike) -> list[NoisyLaw]:
        def reach(one: int, other: int) -> float:
            return self.grid * smooth_steps(min(one, other) / STEPS**2, 2.0 * self.real.beta) + 1.0

        return self.scaled(rows, reach)


@dataclass(frozen=True)
class RatingsNotCut(_Noisy):
    """Takes ratings as they are, with noise for ratings within the bound."""

    name: ClassVar[str] = "ratings-not-cut"

    def laws(self, rows: ArrayLike) -> list[NoisyLaw]:
        table: NDArray[np.float64] = np.nan_to_num(np.asarray(rows, dtype=np.float64), nan=0.0)
        wide = replace(self.real, bound=float(max(self.real.bound, np.abs(table).max(initial=0.0))))
        squares = (table**2).sum(axis=0) / self.real.bound**2
        scales = [self.real._scale(int(min(squares[i], squares[j]) * STEPS**2)) for i, j in self.real.pairs]
        return [NoisyLaw(law.centre, scale) for law, scale in zip(wide.laws(table), scales, strict=True)]


@dataclass(frozen=True)
class NoRoomForRounding(_Noisy):
    """Scales the noise to how far a cosine moves, and forgets the step that rounding adds to it."""

    name: ClassVar[str] = "no-room-for-rounding"

    def laws(self, rows: ArrayLike) -> list[NoisyLaw]:
        def reach(one: int, other: int) -> float:
            return self.grid * smooth_steps(min(one, other) / STEPS**2, self.real.beta)

        return self.scaled(rows, reach)


@dataclass(frozen=True)
class LargerNorm(_Noisy):
    """Scales the noise to the item that more users rated: one of the few who rated the other moves the cosine further."""

    name: ClassVar[str] = "larger-norm"

    def laws(self, rows: ArrayLike) -> list[NoisyLaw]:
        real = self.real
        totals = pair_totals(rows, real.items, real.bound, real.pairs)
        return [
            NoisyLaw(law.centre, real._scale(max(one, other)))
            for law, (_, one, other) in zip(real.laws(rows), totals, strict=True)
        ]


@dataclass(frozen=True)
class _Generous(_Noisy, ABC):
    """Runs what another mechanism runs, under the claim of the real one."""

    @property
    @abstractmethod
    def runs(self) -> SmoothSimilarity:
        """What is run in truth."""

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return self.real.pairs

    @property
    def growth(self) -> float:
        return self.runs.growth

    def laws(self, rows: ArrayLike) -> list[NoisyLaw]:
        return self.runs.laws(rows)


@dataclass(frozen=True)
class EpsilonForEachPair(_Generous):
    """Gives every pair the epsilon of all of them."""

    name: ClassVar[str] = "epsilon-for-each-pair"

    @property
    def runs(self) -> SmoothSimilarity:
        return replace(self.real, epsilon=self.real.epsilon * len(self.real.pairs))


@dataclass(frozen=True)
class DeltaForEachPair(_Generous):
    """Gives every pair the delta of all of them: scales of neighbours may then differ by more."""

    name: ClassVar[str] = "delta-for-each-pair"

    @property
    def runs(self) -> SmoothSimilarity:
        return replace(self.real, delta=self.real.delta * len(self.real.pairs))


@dataclass(frozen=True)
class _Tested:
    real: SimilarityAfterTest

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def grid(self) -> int:
        return self.real.grid

    @property
    def needed(self) -> int:
        return self.real.needed

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return self.real.pairs

    @property
    def scale(self) -> Fraction:
        return self.real.scale

    def laws(self, rows: ArrayLike) -> list[AnswerLaw]:
        return self.real.laws(rows)


@dataclass(frozen=True)
class NormWithoutNoise(_Tested):
    """Compares the norm itself with what is needed: whether a pair is answered tells of one user."""

    name: ClassVar[str] = "test-without-noise"

    def laws(self, rows: ArrayLike) -> list[AnswerLaw]:
        real = self.real
        totals = pair_totals(rows, real.items, real.bound, real.pairs)
        return [
            AnswerLaw(float(min(one, other) >= real.needed * STEPS**2), law.centre)
            for law, (_, one, other) in zip(real.laws(rows), totals, strict=True)
        ]


@dataclass(frozen=True)
class NormWithoutMargin(_Tested):
    """Takes what is needed as the threshold: a norm far below passes too often, and its similarity moves too far."""

    name: ClassVar[str] = "test-without-margin"

    def laws(self, rows: ArrayLike) -> list[AnswerLaw]:
        real = self.real
        totals = pair_totals(rows, real.items, real.bound, real.pairs)
        return [
            AnswerLaw(_reaches(real.needed * STEPS**2 - min(one, other), real.test_scale), law.centre)
            for law, (_, one, other) in zip(real.laws(rows), totals, strict=True)
        ]


@dataclass(frozen=True)
class NoiseSpendsItAll(_Tested):
    """Gives the noise all of epsilon, and the test its share once more."""

    name: ClassVar[str] = "noise-spends-it-all"

    @property
    def scale(self) -> Fraction:
        left, whole = Fraction(self.real.noise_epsilon), Fraction(self.real.epsilon) / len(self.real.pairs)
        return self.real.scale * left / whole


@dataclass(frozen=True)
class LargerNormTested(_Tested):
    """Tests the item that more users rated."""

    name: ClassVar[str] = "larger-norm-tested"

    def laws(self, rows: ArrayLike) -> list[AnswerLaw]:
        real = self.real
        totals = pair_totals(rows, real.items, real.bound, real.pairs)
        return [
            AnswerLaw(_reaches(real.threshold - max(one, other), real.test_scale), law.centre)
            for law, (_, one, other) in zip(real.laws(rows), totals, strict=True)
        ]


@dataclass(frozen=True)
class LargerNormReleased(SimilarityAfterTest):
    """States a sound law and tests the item that more users rated when it releases: seen from outside only."""

    name: ClassVar[str] = "larger-norm-released"

    def release(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.float64]]:
        totals = pair_totals(rows, self.items, self.bound, self.pairs)
        norms = np.array([max(one, other) for _, one, other in totals], dtype=np.int64)
        centres = np.array([whole_cosine(*total, self.grid) for total in totals], dtype=np.int64)
        passed = norms + discrete_laplace.sample(self.test_scale, norms.size, noise) >= self.threshold
        noisy = np.clip(centres + discrete_laplace.sample(self.scale, norms.size, noise), -self.grid, self.grid)
        return released(np.where(passed, noisy / self.grid, np.nan), no_promise(self.guarantee), noise)


@dataclass(frozen=True)
class _GenerousTest(_Tested, ABC):
    """Runs what another mechanism runs, under the claim of the real one."""

    @property
    @abstractmethod
    def runs(self) -> SimilarityAfterTest:
        """What is run in truth."""

    @property
    def scale(self) -> Fraction:
        return self.runs.scale

    def laws(self, rows: ArrayLike) -> list[AnswerLaw]:
        return self.runs.laws(rows)


@dataclass(frozen=True)
class EpsilonForEachTest(_GenerousTest):
    """Gives every pair the epsilon of all of them."""

    name: ClassVar[str] = "epsilon-for-each-test"

    @property
    def runs(self) -> SimilarityAfterTest:
        return replace(self.real, epsilon=self.real.epsilon * len(self.real.pairs))


@dataclass(frozen=True)
class DeltaForEachTest(_GenerousTest):
    """Gives every pair the delta of all of them: each passes too often, and one of many nearly always does."""

    name: ClassVar[str] = "delta-for-each-test"

    @property
    def runs(self) -> SimilarityAfterTest:
        return replace(self.real, delta=self.real.delta * len(self.real.pairs))


def _reaches(steps: int, scale: Fraction) -> float:
    return float(discrete_laplace.survival(np.array(steps), scale))
