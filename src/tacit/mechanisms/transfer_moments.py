"""Noisy moments of centred ratings, from which taste is transferred between two domains: one release of two steps.

The first step releases a sum and a count for every item (docs/proofs/offset-sums.md). The second releases the sum of products for
every pair of a head of items (docs/proofs/pair-moments.md). Together: docs/proofs/transfer-moments.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.guarantees.arithmetic import sqrt_down
from tacit.mechanisms.inputs import whole_sums
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.rating_rows import (
    CLIP,
    COARSE,
    MOST_COLUMNS,
    MOST_ITEMS,
    MOST_MASKED,
    RatingBounds,
    Rows,
    as_matrix,
    checked_bounds,
    checked_length,
    cut_rows,
    gaussian_claim,
    product_sums,
    stretches,
    totals_of,
    triangle,
)
from tacit.mechanisms.samplers.integers import GridNoise


@dataclass(frozen=True, slots=True, eq=False)
class NoisyOffsets:
    """The sum of weighted, centred ratings of every item, then the sum of weights times ``mask`` of every item, in steps."""

    steps: NDArray[np.int64]
    step: Fraction
    mask: Fraction
    sd: float  # of the noise on a sum of ratings

    @property
    def values(self) -> NDArray[np.float64]:
        """d: for every item the noisy sum of weighted, centred ratings."""
        return np.asarray(self.steps[: self.steps.size // 2] * float(self.step), dtype=np.float64)

    @property
    def counts(self) -> NDArray[np.float64]:
        """n: for every item the noisy sum of its raters' weights. Noise may make it negative."""
        return np.asarray(self.steps[self.steps.size // 2 :] * float(self.step / self.mask), dtype=np.float64)

    @property
    def value_sd(self) -> float:
        """The standard deviation of the noise on a sum of ratings, in stars."""
        return self.sd

    @property
    def count_sd(self) -> float:
        """The standard deviation of the noise on a count of raters."""
        return self.sd / float(self.mask)


@dataclass(frozen=True)
class OffsetSums:
    """d = sum of w y and n = sum of w m over users, with Gaussian noise: y are the centred ratings, m marks the rated items.

    w <= 1 cuts a user's joint vector (y, ``mask`` m) to a norm of at most ``norm``, so that both sums are paid for together: the
    noise has a deviation of norm / mu on d and of norm / (mask mu) on n.
    """

    name: ClassVar[str] = "offset-sums"
    items: int
    bounds: RatingBounds
    mu: float
    delta: float  # a probability
    norm: float = 4.0
    mask: float = 0.5

    def __post_init__(self) -> None:
        keep(
            self,
            items=whole("items", self.items, least=1, most=MOST_ITEMS),
            bounds=checked_bounds(self.bounds),
            mu=positive("mu", self.mu),
            delta=probability("delta", self.delta),
            norm=checked_length("norm", self.norm, self.bounds),
            mask=checked_length("mask", self.mask, self.bounds),
        )
        if self.items * self.mask_in_steps**2 > MOST_MASKED:
            most = math.isqrt(MOST_MASKED // self.items) * self.bounds.step
            raise InvalidParameter(f"mask must be at most {float(most):.6g} for {self.items} items, not {self.mask!r}.")
        _ = self.noise_law

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon at this delta for one user's rows; composes by its mu (Gaussian privacy)."""
        return gaussian_claim(self.name, self.mu, self.delta)

    @property
    def length(self) -> int:
        """How many numbers a release has: a sum and a count for each item."""
        return 2 * self.items

    @cached_property
    def norm_in_steps(self) -> int:
        """The largest norm of a row, in grid steps."""
        return self.bounds.in_steps(self.norm)

    @cached_property
    def mask_in_steps(self) -> int:
        """What one rating adds to its item's count, in grid steps."""
        return self.bounds.in_steps(self.mask)

    @cached_property
    def noise_law(self) -> GridNoise:
        """The noise on every number: one user's numbers have squares of at most norm^2 in all."""
        return GridNoise.rounded_gaussian(self.norm_in_steps**2, mu=self.mu, step=self.bounds.step)

    def totals(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        """The exact sums in steps: of w y for every item, then of w ``mask`` m. The same in any order of users. Private."""
        total = np.zeros(self.length, dtype=np.int64)
        for part in stretches(rows, self.items):
            centred = self.bounds.centred(part, self.items)
            cut, mask = cut_rows(centred, self.norm_in_steps, mask=self.mask_in_steps)
            total[: self.items] += whole_sums(cut.data, cut.indices, self.items)
            total[self.items :] += whole_sums(np.repeat(mask, np.diff(cut.indptr)), cut.indices, self.items)
        return total

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NoisyOffsets]:
        """Two noisy numbers for every item, also for an item that nobody rated."""
        noisy, law = self.noise_law.add(totals_of(self, rows, noise), noise), self.noise_law
        return released(NoisyOffsets(noisy, law.step, self.mask_in_steps * law.step, law.sd), self.guarantee, noise)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyPairs:
    """The numbers above the diagonal of a symmetric matrix over ``head``, row by row, in steps."""

    steps: NDArray[np.int64]
    step: Fraction
    head: NDArray[np.int64]
    sd: float  # of the noise on every number

    def matrix(self) -> NDArray[np.float64]:
        """G, symmetric. The diagonal is not released, and is 0 here."""
        return as_matrix(self.steps * float(self.step), self.head.size, diagonal=False)


@dataclass(frozen=True)
class PairMoments:
    """The numbers off the diagonal of sum of z z^T, with Gaussian noise: z a user's centred ratings on ``head``, cut to ``norm``.

    Each pair of items is released once. The diagonal is not released, which makes the noise smaller.
    """

    name: ClassVar[str] = "pair-moments"
    items: int
    head: tuple[int, ...]
    bounds: RatingBounds
    mu: float
    delta: float  # a probability
    norm: float = 4.0

    def __post_init__(self) -> None:
        items = whole("items", self.items, least=2, most=MOST_ITEMS)
        keep(
            self,
            items=items,
            head=_checked_head(self.head, items),
            bounds=checked_bounds(self.bounds),
            mu=positive("mu", self.mu),
            delta=probability("delta", self.delta),
            norm=checked_length("norm", self.norm, self.bounds),
        )
        _ = self.noise_law

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon at this delta for one user's rows; composes by its mu (Gaussian privacy)."""
        return gaussian_claim(self.name, self.mu, self.delta)

    @property
    def length(self) -> int:
        """How many numbers a release has: one for each two items of the head."""
        return triangle(len(self.head), diagonal=False)

    @cached_property
    def norm_in_steps(self) -> int:
        """The largest norm of z, in steps of clip / 2^13."""
        return self.bounds.in_steps(self.norm) // COARSE

    @cached_property
    def noise_law(self) -> GridNoise:
        """The noise on every number; a step is the square of clip / 2^13.

        One user's squared numbers above the diagonal add up to (|z|^4 - sum z_i^4) / 2 <= (1 - 1 / K) |z|^4 / 2. |z|^2 is at most
        norm^2, and at most clip^2 for each of the K items of the head.
        """
        count = len(self.head)
        square = min(self.norm_in_steps**2, count * (CLIP // COARSE) ** 2)
        squared_sensitivity = Fraction(square * square * (count - 1), 2 * count)
        return GridNoise.rounded_gaussian(squared_sensitivity, mu=self.mu, step=(COARSE * self.bounds.step) ** 2)

    def totals(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        """The exact sums of z_i z_j for i < j in the order of the head, row by row, in steps. Private.

        A user's ratings are centred over all of them, and cut on the head only.
        """
        total = np.zeros(self.length, dtype=np.int64)
        head = np.array(self.head)
        for part in stretches(rows, self.items):
            on_head = self.bounds.centred(part, self.items)[:, head]
            cut, _ = cut_rows(on_head, self.norm_in_steps, coarse=COARSE)
            total += product_sums(cut, diagonal=False)
        return total

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NoisyPairs]:
        """One noisy number for every pair of items of the head, also for a pair that nobody rated."""
        noisy, law = self.noise_law.add(totals_of(self, rows, noise), noise), self.noise_law
        pairs = NoisyPairs(noisy, law.step, np.array(self.head, dtype=np.int64), law.sd)
        return released(pairs, self.guarantee, noise)


def _checked_head(head: Sequence[int], items: int) -> tuple[int, ...]:
    chosen = tuple(whole("an item of the head", item, least=0, most=items - 1) for item in head)
    if not 2 <= len(chosen) <= MOST_COLUMNS or len(set(chosen)) < len(chosen):
        raise InvalidParameter(f"head must contain 2 to {MOST_COLUMNS} different items.")
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTransfer:
    """Both steps of one release. Items from 0 to ``n_source`` - 1 are the source's, the rest the target's."""

    offsets: NoisyOffsets
    pairs: NoisyPairs | None  # None without a head
    n_source: int

    @property
    def head(self) -> NDArray[np.int64]:
        """The items of G, ascending."""
        return np.zeros(0, dtype=np.int64) if self.pairs is None else self.pairs.head

    def matrix(self) -> NDArray[np.float64]:
        """G on the head, with 0 on the diagonal."""
        return np.zeros((0, 0)) if self.pairs is None else self.pairs.matrix()

    @property
    def pair_sd(self) -> float:
        """The deviation of the noise on a number of G; 0 without a head."""
        return 0.0 if self.pairs is None else self.pairs.sd


@dataclass(frozen=True)
class TransferMoments:
    """``OffsetSums`` of all items; then ``PairMoments`` of the ``head_size`` items whose noisy counts are largest.

    ``mu`` is the Gaussian loss of both steps together; the first step gets ``offset_share`` of its square. Both centre ratings
    in the same way. Without a head (``head_size`` = 0) the first step gets all of it.
    """

    name: ClassVar[str] = "transfer-moments"
    items: int
    n_source: int
    bounds: RatingBounds
    mu: float
    delta: float  # a probability
    head_size: int
    offset_share: float = 0.2
    offset_norm: float = 4.0
    mask: float = 0.5
    pair_norm: float = 4.0

    def __post_init__(self) -> None:
        items = whole("items", self.items, least=2)
        keep(
            self,
            items=items,
            n_source=whole("n_source", self.n_source, least=1, most=items - 1),
            mu=positive("mu", self.mu),
            delta=probability("delta", self.delta),
            head_size=whole("head_size", self.head_size, least=0, most=MOST_COLUMNS),
            offset_share=probability("offset_share", self.offset_share),
        )
        if self.head_size == 1:
            raise InvalidParameter("head_size must be 0, for no pairs at all, or at least 2.")
        _ = self.offsets  # raises now what its parts would raise later
        if self.head_size:
            _ = self.pairs(range(min(items, self.head_size)))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What both sums together promise: epsilon at this delta for one user's rows in both domains."""
        return gaussian_claim(self.name, self.mu, self.delta)

    @cached_property
    def mus(self) -> tuple[float, float]:
        """The Gaussian losses of the two steps, rounded down: their squares add up to at most mu^2."""
        if not self.head_size:
            return self.mu, 0.0
        square = Fraction(self.mu) ** 2
        first = sqrt_down(Fraction(self.offset_share) * square)
        return first, sqrt_down(square - Fraction(first) ** 2)

    @cached_property
    def offsets(self) -> OffsetSums:
        """The first step."""
        return OffsetSums(self.items, self.bounds, self.mus[0], self.delta, norm=self.offset_norm, mask=self.mask)

    def pairs(self, head: "range | NDArray[np.int64]") -> PairMoments:
        """The second step, on a head that the first one chose."""
        chosen = tuple(int(item) for item in head)
        return PairMoments(self.items, chosen, self.bounds, self.mus[1], self.delta, norm=self.pair_norm)

    def head_of(self, offsets: NoisyOffsets) -> NDArray[np.int64]:
        """The items of largest noisy count, ascending; of equal counts the lower codes. It uses released numbers only."""
        counts = offsets.steps[self.items :]
        order = np.argsort(-counts, kind="stable")
        return np.sort(order[: self.head_size]).astype(np.int64)

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NoisyTransfer]:
        """Both steps, in order: one release under one guarantee."""
        offsets = self.offsets.release(rows, noise).value
        pairs = self.pairs(self.head_of(offsets)).release(rows, noise).value if self.head_size else None
        return released(NoisyTransfer(offsets, pairs, self.n_source), self.guarantee, noise)
