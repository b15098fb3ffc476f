"""Broken on purpose, never use: moments of ratings with noise that does not fit what one user moves, or that depends on her."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import NoisyTransfer, OffsetSums, PairMoments, RatingMoments, TransferMoments
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, unprotected
from tacit.mechanisms.rating_rows import COARSE, cut_rows
from tacit.mechanisms.samplers import integers


@dataclass(frozen=True)
class _Broken:
    """Sums of its own, with the noise of the real mechanism on every number."""

    real: Any

    @property
    def guarantee(self) -> Guarantee:
        claim: Guarantee = self.real.guarantee
        return claim

    def variances(self, rows: Any) -> list[Fraction]:
        return [self.real.noise_law.width] * self.totals(rows).size

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        total: NDArray[np.int64] = self.real.totals(rows, noise)
        return total

    def release(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> Release[Any]:
        drawn = np.concatenate(
            [integers.sample_rounded_gaussian(variance, 1, noise) for variance in self.variances(rows)]
        )
        value = SimpleNamespace(steps=self.totals(rows, noise) + drawn)
        return unprotected(value, no_promise(self.guarantee), noise)


@dataclass(frozen=True)
class KeptDiagonal(_Broken):
    """Releases the diagonal too, with the noise for what stands above it."""

    real: PairMoments
    name: ClassVar[str] = "diagonal-kept"

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        cut = _cut(self.real, rows)
        return np.concatenate([self.real.totals(rows), np.square(cut).sum(axis=0)])


@dataclass(frozen=True)
class RowsOfAnyNorm(_Broken):
    """Clips every rating and leaves the norm of a row as it is: a user with many ratings moves more than the noise hides."""

    real: PairMoments
    name: ClassVar[str] = "rows-of-any-norm"

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        centred = self.real.bounds.centred(rows, self.real.items).toarray()[:, self.real.head] // COARSE
        return np.asarray((centred.T @ centred)[np.triu_indices(len(self.real.head), 1)])


@dataclass(frozen=True)
class UncountedMask(_Broken):
    """Cuts the ratings to the norm and releases the counts beside them with the same noise, as if they were free."""

    real: OffsetSums
    name: ClassVar[str] = "mask-not-counted"

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        cut, _ = cut_rows(self.real.bounds.centred(rows, self.real.items), self.real.norm_in_steps)
        counts = np.bincount(cut.indices, minlength=self.real.items) * self.real.mask_in_steps
        return np.concatenate([cut.toarray().sum(axis=0), counts])


@dataclass(frozen=True)
class CommonMean(_Broken):
    """Centres everybody's ratings by the mean of all of them: who is added moves everybody else."""

    real: OffsetSums
    name: ClassVar[str] = "centred-by-all"

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        rated = np.isfinite(rows)
        table = np.clip(np.where(rated, rows, 0.0), self.real.bounds.low, self.real.bounds.high)
        mean = table[rated].mean() if rated.any() else 0.0
        clip = self.real.bounds.clip
        values = np.where(rated, np.clip(table - mean, -clip, clip), 0.0) / float(self.real.noise_law.step)
        norm = np.sqrt(np.square(values).sum(axis=1) + rated.sum(axis=1) * float(self.real.mask_in_steps) ** 2)
        weight = np.minimum(1.0, self.real.norm_in_steps / np.maximum(norm, 1.0))[:, None]
        parts = [np.trunc(values * weight), np.trunc(rated * weight * self.real.mask_in_steps)]
        return np.concatenate([part.sum(axis=0) for part in parts]).astype(np.int64)


@dataclass(frozen=True)
class _BrokenMoments(_Broken):
    real: RatingMoments

    @property
    def lengths(self) -> tuple[int, int, int, int]:
        items = self.real.items
        return items * (items + 1) // 2, items, items, 3

    def variances(self, rows: Any) -> list[Fraction]:
        return [v for v, n in zip(self.parts(rows), self.lengths, strict=True) for _ in range(n)]

    def parts(self, rows: Any) -> tuple[Fraction, ...]:
        return tuple(law.width for law in self.real.noise_laws)


@dataclass(frozen=True)
class AllRatings(_BrokenMoments):
    """Counts every rating of a user, with the noise for ``most_items`` of them."""

    name: ClassVar[str] = "all-ratings-count"

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        items = self.real.items
        whole = RatingMoments(items, self.real.n_source, self.real.bounds, 1.0, 0.5, items, self.real.norm)
        return whole.totals(rows)


@dataclass(frozen=True)
class NotClipped(_BrokenMoments):
    """Cuts a row to its norm and leaves each rating as it is: a single one may then be as long as the whole row."""

    name: ClassVar[str] = "ratings-not-clipped"

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        bounds = self.real.bounds
        wider = math.ceil((bounds.high - bounds.low) / bounds.clip)  # nothing is further from its centre
        wide = replace(self.real, bounds=replace(bounds, clip=wider * bounds.clip))
        # steps are so many times as long there, and those of products by the square
        return np.asarray(wide.totals(rows, noise) * np.repeat([wider**2, wider, 1, 1], self.lengths))


@dataclass(frozen=True)
class DiagonalForFree(_BrokenMoments):
    """The noise for products above the diagonal, norm^2 / sqrt 2, on the diagonal as well."""

    name: ClassVar[str] = "diagonal-for-free"

    def parts(self, rows: Any) -> tuple[Fraction, ...]:
        products, *others = (law.width for law in self.real.noise_laws)
        less = Fraction(self.real.norm_in_steps**4, 2) / self.real.squared_sensitivities[0]
        return products * less, *others


@dataclass(frozen=True)
class LocalScale(_BrokenMoments):
    """The noise for the longest of the rows that are there, not of those that might be."""

    name: ClassVar[str] = "local-scale"

    def parts(self, rows: Any) -> tuple[Fraction, ...]:
        longest = max((int(np.square(row).sum()) for row in _cut_all(self.real, rows)), default=1)
        share = Fraction(max(1, longest), self.real.norm_in_steps**2)
        return tuple(law.width * share for law in self.real.noise_laws)


@dataclass(frozen=True)
class HeadOfTrueCounts:
    """Takes pairs of the items that are truly rated most: the head tells what no noise hides."""

    real: TransferMoments
    name: ClassVar[str] = "head-of-true-counts"

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def offsets(self) -> OffsetSums:
        return self.real.offsets

    def pairs(self, head: Any) -> PairMoments:
        return self.real.pairs(head)

    def release(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> Release[NoisyTransfer]:
        offsets = self.real.offsets.release(rows, noise).value
        counts = self.real.offsets.totals(rows)[self.real.items :]
        head = np.sort(np.argsort(-counts, kind="stable")[: self.real.head_size])
        pairs = self.real.pairs(head).release(rows, noise).value
        return unprotected(NoisyTransfer(offsets, pairs, self.real.n_source), no_promise(self.guarantee), noise)


@dataclass(frozen=True)
class BudgetTwice:
    """Gives each of the two steps the whole of mu."""

    real: TransferMoments
    name: ClassVar[str] = "mu-for-each-step"

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    @property
    def offsets(self) -> OffsetSums:
        step, real = self.real.offsets, self.real
        return OffsetSums(real.items, real.bounds, real.mu, real.delta, norm=step.norm, mask=step.mask)

    def pairs(self, head: Any) -> PairMoments:
        real = self.real
        return PairMoments(real.items, tuple(map(int, head)), real.bounds, real.mu, real.delta, norm=real.pair_norm)

    def release(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> Release[NoisyTransfer]:
        offsets = self.offsets.release(rows, noise).value
        pairs = self.pairs(self.real.head_of(offsets)).release(rows, noise).value
        return unprotected(NoisyTransfer(offsets, pairs, self.real.n_source), no_promise(self.guarantee), noise)


def _cut(real: PairMoments, rows: Any) -> NDArray[np.int64]:
    on_head = real.bounds.centred(rows, real.items)[:, np.array(real.head)]
    return np.asarray(cut_rows(on_head, real.norm_in_steps, coarse=COARSE)[0].toarray())


def _cut_all(real: RatingMoments, rows: Any) -> NDArray[np.int64]:
    centred = real.bounds.centred(rows, real.items)
    return np.asarray(cut_rows(centred, real.norm_in_steps, coarse=COARSE)[0].toarray())
