"""Broken on purpose, never use: noisy similarities whose noise fits this database and not its neighbours."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.guarantees import Guarantee
from tacit.mechanisms import SimilarityAfterTest, SmoothSimilarity
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.smooth_similarity import STEPS, NoisyLaw, pair_totals
from tacit.mechanisms.tested_similarity import AnswerLaw


@dataclass(frozen=True)
class _Noisy:
    real: SmoothSimilarity

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def grid(self) -> int:
        return self.real.grid


@dataclass(frozen=True)
class NotSmoothed(_Noisy):
    """Noise scaled to 2 B^2 / N, how far this database can move at most. It is right, and differs between neighbours."""

    name: ClassVar[str] = "local-sensitivity-of-a-similarity"

    def laws(self, rows: ArrayLike) -> list[NoisyLaw]:
        real = self.real
        totals = pair_totals(rows, real.items, real.bound, real.pairs)
        reaches = [Fraction(2 * STEPS**2, max(STEPS**2, min(one, other))) for _, one, other in totals]
        centres = [law.centre for law in real.laws(rows)]
        return [
            NoisyLaw(centre, 2 * (real.grid * reach + 1) / Fraction(real.each_epsilon))
            for centre, reach in zip(centres, reaches, strict=True)
        ]


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
class _Tested:
    real: SimilarityAfterTest

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def grid(self) -> int:
        return self.real.grid

    @property
    def scale(self) -> Fraction:
        return self.real.scale


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


def _reaches(steps: int, scale: Fraction) -> float:
    return float(discrete_laplace.survival(np.array(steps), scale))
