"""Broken on purpose, never use: moment shares whose noise does not fit what one user moves, or what an adversary knows."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import GramShare, GridVector, PopularityShare
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, unprotected
from tacit.mechanisms.samplers.integers import GridNoise
from tacit.models.moments import STEPS


@dataclass(frozen=True)
class _Summed:
    real: PopularityShare | GramShare

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def noise_law(self) -> GridNoise:
        return self.real.noise_law

    @property
    def items(self) -> int:
        return self.real.items

    @property
    def honest(self) -> int:
        return self.real.honest

    def totals(self, rows: ArrayLike) -> NDArray[np.int64]:
        return self.real.totals(rows)

    def release(self, rows: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        total = self.totals(rows)
        noisy = self.noise_law.add(total, noise)
        return unprotected(GridVector(noisy, Fraction(1, STEPS)), no_promise(self.guarantee), noise)


@dataclass(frozen=True)
class RowsOfAnyLength(_Summed):
    """Adds up the rows of 0 and 1 as they are: a user with four items moves the sum by 2, not by 1."""

    name: ClassVar[str] = "rows-of-any-length"

    def totals(self, rows: ArrayLike) -> NDArray[np.int64]:
        return np.asarray(_marked(rows).sum(axis=0) * STEPS)


@dataclass(frozen=True)
class NoiseSharedByAll(_Summed):
    """The noise is divided among all entities. One of them knows its own, and what is left is too little."""

    name: ClassVar[str] = "noise-shared-by-all"
    entities: int = 5

    @property
    def noise_law(self) -> GridNoise:
        alone = self.real.noise_law
        return replace(alone, width=alone.width * self.real.honest / self.entities)


@dataclass(frozen=True)
class WholeDiagonal(_Summed):
    """Sends G_ii where G_ii / sqrt 2 belongs, with the noise for the latter."""

    name: ClassVar[str] = "whole-diagonal"

    def totals(self, rows: ArrayLike) -> NDArray[np.int64]:
        total, head = super().totals(rows).copy(), _head(self.real)
        marked = _marked(rows)[:, head]
        total[: head.size] = (marked * (STEPS // np.maximum(marked.sum(axis=1, keepdims=True), 1))).sum(axis=0)
        return total


@dataclass(frozen=True)
class LongHead(_Summed):
    """Takes w as 0 and 1 on the head, without dividing by how many items of the head a user has."""

    name: ClassVar[str] = "long-rows-on-the-head"

    def totals(self, rows: ArrayLike) -> NDArray[np.int64]:
        marked = _marked(rows)[:, _head(self.real)]
        gram = marked.T @ marked * STEPS
        upper = np.triu_indices(len(gram), 1)
        return np.concatenate([np.trunc(np.diag(gram) / np.sqrt(2.0)).astype(np.int64), gram[upper]])


def _head(real: PopularityShare | GramShare) -> NDArray[np.int64]:
    return np.array(real.head if isinstance(real, GramShare) else range(real.items), dtype=np.int64)


def _marked(rows: ArrayLike) -> NDArray[np.int64]:
    table = np.asarray(rows, dtype=np.float64)
    return (np.isfinite(table) & (table > 0.0)).astype(np.int64)
