"""Broken on purpose, never use: prototypes with the faults of the published algorithm, or of careless repairs."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.mechanisms import GridPrototypes, LocalSwaps, PrivatePartition, TreePrototypes
from tacit.mechanisms.grid_prototypes import GridEpsilons
from tacit.mechanisms.partition import HALF_SIDE
from tacit.mechanisms.samplers import integers

Kept = tuple[tuple[int, ...], ...]  # the centres kept at each level of one dimension


@dataclass(frozen=True)
class _OneDimension:
    """A partition of a line, interval by interval, with something left out."""

    real: PrivatePartition

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def law(self, line: list[int]) -> dict[Kept, float]:
        """The probability of everything that can be kept."""
        law: dict[Kept, float] = {}

        def descend(seen: Kept, ends: list[tuple[int, int]], chance: float) -> None:
            if len(seen) == self.real.depth:
                law[seen] = law.get(seen, 0.0) + chance
                return
            halves = [half for low, high in ends for half in ((low, (low + high) // 2), ((low + high) // 2, high))]
            found = self.visited([(low, high, _within(low, high, line)) for low, high in halves])
            coins = self.real.kept(np.array([count for _, _, count in found], dtype=np.int64)).tolist()
            for heads in product((False, True), repeat=len(found)):
                likely = math.prod(p if head else 1.0 - p for head, p in zip(heads, coins, strict=True))
                kept = self.cut([child for child, head in zip(found, heads, strict=True) if head])
                ends = [(low, high) for low, high, _ in kept]
                descend((*seen, tuple((low + high) // 2 for low, high in ends)), ends, chance * likely)

        descend((), [(-HALF_SIDE, HALF_SIDE)], 1.0)
        return law

    def visited(self, children: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return children

    def cut(self, kept: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return kept[: self.real.cap]


@dataclass(frozen=True)
class OccupiedFirst(_OneDimension):
    """Cuts the list of cubes to the cap with the fullest ones first: which are cut tells where somebody is."""

    name: ClassVar[str] = "occupied-cubes-first"

    def cut(self, kept: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return sorted(sorted(kept, key=lambda child: (-child[2], child[0]))[: self.real.cap])


@dataclass(frozen=True)
class OccupiedOnly(_OneDimension):
    """Visits cubes with a point only, as the published program does: a cube that is kept has somebody in it."""

    name: ClassVar[str] = "occupied-cubes-only"

    def visited(self, children: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return [child for child in children if child[2]]


def _within(low: int, high: int, line: list[int]) -> int:
    return sum(low <= y < high or y == high == HALF_SIDE for y in line)


@dataclass(frozen=True)
class SwapsPaidOnce:
    """Every swap, and the last choice, spends the epsilon that is claimed for all of them together."""

    name: ClassVar[str] = "every-swap-spends-it-all"
    real: LocalSwaps

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, points: ArrayLike, candidates: ArrayLike) -> NDArray[np.float64]:
        every = replace(self.real, epsilon=self.real.epsilon * (self.real.swaps + 1))
        return every.pmf(points, candidates)


@dataclass(frozen=True)
class NoiseOnMeans:
    """The published recovery: noise 2 Lambda s / (epsilon n) on each of s means. Its scale tells the number of users, n.

    One more user whose row is the mean leaves the mean where it is; at the mean the density of each of s values grows by
    (n + 1) / n, and far from it without end.
    """

    name: ClassVar[str] = "noise-on-means"
    values: int  # s
    epsilon: float
    steps: int = 1 << 40  # in Lambda

    @property
    def guarantee(self) -> Guarantee:
        return pure(self.epsilon, ONE_USER)

    def log_pmf(self, away: int, users: int) -> float:
        """Of all values at so many steps from the mean."""
        scale = Fraction(2 * self.steps * self.values) / (Fraction(self.epsilon) * users)
        return self.values * math.log(float(integers.discrete_laplace_pmf(away, scale)))


@dataclass(frozen=True)
class PublishedShares:
    """The published budget: epsilon/6 for the candidates, epsilon/6 for the swaps, epsilon/3 for the last choice, and epsilon for
    the items and again for the values in every one of 2 log(1/delta) trials. Claimed is epsilon."""

    name: ClassVar[str] = "budget-as-published"
    epsilon: float
    trials: int

    @property
    def guarantee(self) -> Guarantee:
        return pure(self.epsilon, ONE_USER)

    @property
    def epsilons(self) -> GridEpsilons:
        each = self.epsilon / (6 * self.trials)
        return GridEpsilons(each, each, 0.0, self.epsilon, self.epsilon, self.epsilon / 3.0, self.trials)


@dataclass(frozen=True)
class SwapsBeyondTheirShare(GridPrototypes):
    """The swaps run at three times the epsilon that they have."""

    name: ClassVar[str] = "swaps-beyond-their-share"

    @cached_property
    def local_swaps(self) -> LocalSwaps:
        real = super().local_swaps
        return replace(real, epsilon=3.0 * real.epsilon)


@dataclass(frozen=True)
class ShortSums(TreePrototypes):
    """Noise for sums of rows of length R / sqrt 2, though rows are cut to R."""

    name: ClassVar[str] = "noise-for-shorter-rows"

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        counts, sums, *lloyd = super().variances
        return counts, sums / 2, *lloyd


@dataclass(frozen=True)
class LevelCounted(TreePrototypes):
    """The noise of counts is that of one level, though each level is counted."""

    name: ClassVar[str] = "one-level-paid-for"

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        counts, *rest = super().variances
        return counts / (self.depth + 1), *rest
