"""Noisy sums and counts of users' centred ratings, item by item. Proof: docs/proofs/offset-sums.md."""

import math
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
from tacit.mechanisms.grid import whole_sums
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.rating_bounds import CLIP, MOST_ITEMS, MOST_MASKED, RatingBounds, cut_rows
from tacit.mechanisms.samplers import rounded_gaussian
from tacit.mechanisms.totals import Rows, gaussian_claim, stretches, totals_of

MOST_NORM = 1 << 10  # in clips: a number times the bound then stays below 2^44


@dataclass(frozen=True, slots=True, eq=False)
class NoisyOffsets:
    """For every item the sum of weighted, centred ratings, then for every item the sum of weights times ``mask``, in steps."""

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
        """n: for every item the noisy sum of its raters' weights. Noise may have made some negative."""
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
    """d = sum of w y and n = sum of w m over users, y the centred ratings and m the marks of what is rated, with Gaussian noise.

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
            most = math.isqrt(MOST_MASKED // self.items) * self.step
            raise InvalidParameter(f"mask must be at most {float(most):.6g} for {self.items} items, not {self.mask!r}.")
        rounded_gaussian.require_drawable(self.variance_in_steps)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon at this delta for one user's rows; composes by its mu (Gaussian privacy)."""
        return gaussian_claim(self.name, self.mu, self.delta)

    @property
    def step(self) -> Fraction:
        """The distance of two points of the grid, in stars."""
        return self.bounds.step

    @property
    def length(self) -> int:
        """How many numbers a release has: a sum and a count for each item."""
        return 2 * self.items

    @cached_property
    def norm_in_steps(self) -> int:
        """The longest row that is let through, in grid steps."""
        return self.bounds.in_steps(self.norm)

    @cached_property
    def mask_in_steps(self) -> int:
        """What one rating adds to its item's count, in grid steps."""
        return self.bounds.in_steps(self.mask)

    @cached_property
    def variance_in_steps(self) -> Fraction:
        """Of the noise on every number: one user's numbers have squares of at most norm^2 in all."""
        return Fraction(self.norm_in_steps) ** 2 / Fraction(self.mu) ** 2

    @property
    def sd(self) -> float:
        """Of the noise on d, in the units of the ratings; that on n is 1 / mask times as wide."""
        return math.sqrt(self.variance_in_steps) * float(self.step)

    def pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that one number, which truly is ``total`` steps, is released as ``steps``."""
        return rounded_gaussian.pmf(np.asarray(steps) - total, self.variance_in_steps)

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
        """Two noisy numbers for every item, also for those nobody rated."""
        noisy = totals_of(self, rows, noise) + rounded_gaussian.sample(self.variance_in_steps, self.length, noise)
        value = NoisyOffsets(noisy, self.step, self.mask_in_steps * self.step, self.sd)
        return released(value, self.guarantee, noise)


def checked_bounds(bounds: object) -> RatingBounds:
    if not isinstance(bounds, RatingBounds):
        raise InvalidParameter(
            "bounds must be RatingBounds: the scale of the ratings is public, never taken from them."
        )
    return bounds


def checked_length(name: str, value: float, bounds: RatingBounds) -> float:
    """The bound of a norm, or the weight of a mark: within what whole steps can hold."""
    length = positive(name, value)
    if not 1 << 7 <= Fraction(length) / bounds.step <= MOST_NORM * CLIP:
        raise InvalidParameter(
            f"{name} must lie from {bounds.clip / 1024} to {bounds.clip * MOST_NORM}, not {length!r}."
        )
    return length
