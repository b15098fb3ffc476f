"""Noisy sums of products of users' centred ratings, for every pair of a head of items. Proof: docs/proofs/pair-moments.md."""

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
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.offset_sums import checked_bounds, checked_length
from tacit.mechanisms.products import MOST_COLUMNS, as_matrix, product_sums, triangle
from tacit.mechanisms.rating_bounds import CLIP, COARSE, MOST_ITEMS, RatingBounds, cut_rows
from tacit.mechanisms.samplers import rounded_gaussian
from tacit.mechanisms.totals import Rows, gaussian_claim, stretches, totals_of


@dataclass(frozen=True, slots=True, eq=False)
class NoisyPairs:
    """The numbers above the diagonal of a symmetric matrix over ``head``, row by row, in steps."""

    steps: NDArray[np.int64]
    step: Fraction
    head: NDArray[np.int64]
    sd: float  # of the noise on every number

    def matrix(self) -> NDArray[np.float64]:
        """G, symmetric, with 0 on the diagonal, which is not released."""
        return as_matrix(self.steps * float(self.step), self.head.size, diagonal=False)


@dataclass(frozen=True)
class PairMoments:
    """The numbers off the diagonal of sum of z z^T, z the user's centred ratings on ``head`` cut to ``norm``, with Gaussian noise.

    Each pair of items is released once; the diagonal is not, which makes the noise smaller.
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
        rounded_gaussian.require_drawable(self.variance_in_steps)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon at this delta for one user's rows; composes by its mu (Gaussian privacy)."""
        return gaussian_claim(self.name, self.mu, self.delta)

    @property
    def step(self) -> Fraction:
        """What one step of the matrix is worth: the square of clip / 2^13."""
        return (COARSE * self.bounds.step) ** 2

    @property
    def length(self) -> int:
        """How many numbers a release has: one for each two items of the head."""
        return triangle(len(self.head), diagonal=False)

    @cached_property
    def norm_in_steps(self) -> int:
        """Of z, in steps of clip / 2^13."""
        return self.bounds.in_steps(self.norm) // COARSE

    @cached_property
    def squared_sensitivity(self) -> Fraction:
        """The most that one user's squared numbers above the diagonal add up to, in steps.

        (|z|^4 - sum z_i^4) / 2 <= (1 - 1 / K) |z|^4 / 2, |z|^2 at most norm^2, and at most clip^2 for each of K items.
        """
        count = len(self.head)
        square = min(self.norm_in_steps**2, count * (CLIP // COARSE) ** 2)
        return Fraction(square * square * (count - 1), 2 * count)

    @cached_property
    def variance_in_steps(self) -> Fraction:
        """The variance of the noise on each number, in squared grid steps."""
        return self.squared_sensitivity / Fraction(self.mu) ** 2

    @property
    def sd(self) -> float:
        """Of the noise on every number, in squared units of the ratings."""
        return math.sqrt(self.variance_in_steps) * float(self.step)

    def pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that one number, which truly is ``total`` steps, is released as ``steps``."""
        return rounded_gaussian.pmf(np.asarray(steps) - total, self.variance_in_steps)

    def totals(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        """The exact sums of z_i z_j for i < j in the order of the head, row by row, in steps. Private.

        A user is centred over all she rated, and cut on the head alone.
        """
        total = np.zeros(self.length, dtype=np.int64)
        head = np.array(self.head)
        for part in stretches(rows, self.items):
            on_head = self.bounds.centred(part, self.items)[:, head]
            cut, _ = cut_rows(on_head, self.norm_in_steps, coarse=COARSE)
            total += product_sums(cut, diagonal=False)
        return total

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NoisyPairs]:
        """One noisy number for every pair of items of the head, also for those nobody rated both."""
        noisy = totals_of(self, rows, noise)
        noisy += rounded_gaussian.sample(self.variance_in_steps, self.length, noise)
        value = NoisyPairs(noisy, self.step, np.array(self.head, dtype=np.int64), self.sd)
        return released(value, self.guarantee, noise)


def _checked_head(head: Sequence[int], items: int) -> tuple[int, ...]:
    chosen = tuple(whole("an item of the head", item, least=0, most=items - 1) for item in head)
    if not 2 <= len(chosen) <= MOST_COLUMNS or len(set(chosen)) < len(chosen):
        raise InvalidParameter(f"head must hold 2 to {MOST_COLUMNS} different items.")
    return chosen
