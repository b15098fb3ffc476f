"""Broken on purpose, never use: slates with a kernel, a jitter or an output that the theorems do not cover."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.mechanisms import FeatureSlate, NaturalSlate

Floats = NDArray[np.float64]
Slates = Sequence[tuple[int, ...]]


def law_of(kernel: Floats, slates: Slates) -> Floats:
    """Probabilities in proportion to the slates' minors; all the same where none is above 0."""
    weight = np.maximum([np.linalg.det(kernel[np.ix_(slate, slate)]) for slate in slates], 0.0)
    weight[weight < 1e-12 * max(float(weight.max()), 1e-300)] = 0.0  # what rounding leaves of a determinant of 0
    total = float(weight.sum())
    return weight / total if total > 0.0 else np.full(len(slates), 1.0 / len(slates))


def clean(rows: ArrayLike) -> Floats:
    """Numbers that are no numbers count as 0, as everywhere."""
    table = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    return np.clip(np.where(np.isfinite(table), table, 0.0), -1e60, 1e60)


def cut(rows: ArrayLike, bound: float) -> Floats:
    """Rows cut to a squared norm of ``bound``, in floats."""
    table = clean(rows)
    norm = np.sqrt((table * table).sum(axis=1, keepdims=True))
    return np.asarray(table * np.minimum(1.0, math.sqrt(bound) / np.maximum(norm, 1e-300)))


@dataclass(frozen=True)
class OverClaimed:
    """Draws from the kernel that it is given, and claims for a change of the kernel what does not bound it."""

    name: str
    k: int
    guarantee: Guarantee

    def pmf(self, kernel: Floats) -> Floats:
        return law_of(kernel, list(combinations(range(len(kernel)), self.k)))


FROBENIUS = (np.diag([1.0] + [2.0] * 9), np.diag([5.0] + [1.0] * 9))  # sigma = 1, a change of Frobenius norm 5
SPECTRAL = (np.diag([1.0] + [6.0] * 9), np.diag([6.0] + [1.0] * 9))  # sigma = 1, a change of spectral norm 5
LARGEST = (  # a hundred users of one item, and one with a record ten times as long
    np.repeat([[1.0, 0.0, 0.0]], 100, axis=0),
    np.vstack([np.repeat([[1.0, 0.0, 0.0]], 100, axis=0), [[0.0, 10.0, 0.0]]]),
)
FIVE_LIKES = (np.zeros((0, 7)), np.array([[1.0] * 5 + [0.0] * 2]))  # nobody, and one user who likes five of seven items
RANKS = (
    np.diag(np.sqrt([100.0, 99.5, 1.0])),
    np.vstack([np.diag(np.sqrt([100.0, 99.5, 1.0])), [[0.0, 1.0, 0.0]]]),
)  # cut to rank 1, either the first item stays or the second does


def over_claimed(name: str, size: float) -> OverClaimed:
    """For k = 1 and sigma = 1 both bounds say log(1 + size)."""
    return OverClaimed(name, 1, pure(math.log1p(size), ONE_USER))


@dataclass(frozen=True)
class Claiming:
    """Runs one mechanism and makes a claim that it does not keep, on the tables of the one it poses as."""

    name: str
    real: Any
    guarantee: Guarantee
    runs: Any

    def pmf(self, rows: ArrayLike) -> Floats:
        law: Floats = self.runs.pmf(rows)
        return law


@dataclass(frozen=True)
class _OfRecords:
    """Claims what the real one claims; draws from another kernel."""

    real: NaturalSlate

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def kernel(self, rows: ArrayLike) -> Floats:
        """The right one."""
        table = cut(rows, self.real.bound)
        return np.asarray(table.T @ table + self.real.sigma * np.eye(self.real.items))

    def pmf(self, rows: ArrayLike) -> Floats:
        return law_of(self.kernel(rows), self.real.outcomes())


@dataclass(frozen=True)
class NotCut(_OfRecords):
    """Takes records as they are."""

    name: ClassVar[str] = "not-cut"

    def kernel(self, rows: ArrayLike) -> Floats:
        table = np.clip(clean(rows), -1e3, 1e3)
        return np.asarray(table.T @ table + self.real.sigma * np.eye(self.real.items))


@dataclass(frozen=True)
class JitterFromRecords(_OfRecords):
    """Does not cut records; takes the largest of them for the bound."""

    name: ClassVar[str] = "jitter-from-the-records"

    def kernel(self, rows: ArrayLike) -> Floats:
        table = clean(rows)
        largest = float((table * table).sum(axis=1).max(initial=0.0)) or self.real.bound
        return np.asarray(table.T @ table + self.real.sigma / self.real.bound * largest * np.eye(self.real.items))


@dataclass(frozen=True)
class CutToRankOne(_OfRecords):
    """Keeps the largest eigenvalue of the sum of the records: which one it is may hang on one user."""

    name: ClassVar[str] = "cut-to-rank-one"

    def kernel(self, rows: ArrayLike) -> Floats:
        table = clean(rows)  # the records of many users, added up
        values, vectors = np.linalg.eigh(table.T @ table)
        kept = values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
        return np.asarray(kept + self.real.sigma * np.eye(self.real.items))


@dataclass(frozen=True)
class NormalisedCounts(_OfRecords):
    """Divides by the roots of the items' counts, so that every item somebody likes weighs 1."""

    name: ClassVar[str] = "normalised-counts"

    def kernel(self, rows: ArrayLike) -> Floats:
        table = cut(rows, self.real.bound)  # in vain: what is cut here is divided out below
        counts = table.T @ table
        scale = 1.0 / np.sqrt(np.maximum(np.diag(counts), 1e-300))
        return np.asarray(counts * scale[:, None] * scale + self.real.sigma * np.eye(self.real.items))


@dataclass(frozen=True)
class WithoutJitter(_OfRecords):
    """No sigma: a slate that nobody's record makes possible is impossible."""

    name: ClassVar[str] = "without-jitter"

    def kernel(self, rows: ArrayLike) -> Floats:
        table = cut(rows, self.real.bound)
        return np.asarray(table.T @ table)


@dataclass(frozen=True)
class SignalReleased(_OfRecords):
    """Releases, beside the slate, how many of its items come from the records, or which: an item in no record never does."""

    items_too: bool = False

    @property
    def name(self) -> str:
        return "signal-items-released" if self.items_too else "signal-count-released"

    def pmf(self, rows: ArrayLike) -> Floats:
        table = cut(rows, self.real.bound)
        signal = table.T @ table
        weights: dict[Any, float] = {}
        for slate in self.real.outcomes():
            for size in range(self.real.k + 1):
                for chosen in combinations(slate, size):
                    # det(sigma I + G)_Y is the sum over S within Y of sigma^(k - |S|) det G_S
                    weight = max(float(np.linalg.det(signal[np.ix_(chosen, chosen)])) if chosen else 1.0, 0.0)
                    shown = (slate, chosen if self.items_too else size)
                    weights[shown] = weights.get(shown, 0.0) + weight * self.real.sigma ** (self.real.k - size)
        found = np.array(list(weights.values()))
        return np.asarray(found / found.sum())


@dataclass(frozen=True)
class Redrawn:
    """Slates drawn again until a public rule likes them. Sound only if the jitter is made for it (``redrawn``)."""

    real: NaturalSlate
    allowed: Slates

    @property
    def name(self) -> str:
        return self.real.name if self.real.redrawn else "redrawn-for-nothing"

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, rows: ArrayLike) -> Floats:
        kept = [slate in self.allowed for slate in self.real.outcomes()]
        law = self.real.pmf(rows)[kept]
        return np.asarray(law / law.sum())


@dataclass(frozen=True)
class CutBeforeFeatures:
    """Cuts a user's own vector to the bound; the features then lengthen it."""

    name: ClassVar[str] = "cut-before-the-features"
    real: FeatureSlate

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, rows: ArrayLike) -> Floats:
        mapped = cut(rows, self.real.bound) @ self.real.features.T
        return law_of(mapped.T @ mapped + self.real.sigma * np.eye(self.real.items), self.real.outcomes())
