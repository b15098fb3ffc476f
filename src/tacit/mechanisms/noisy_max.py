"""Noisy max with Laplace noise: add discrete Laplace noise to every score on the grid and name the largest (ties: the first).
Proof: docs/proofs/noisy-max.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release, pure
from tacit.mechanisms.drawn import released
from tacit.mechanisms.exponential import selection_rate
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.scores import Scores, ScoreSource, many_decisions, one_decision

_MOST_TERMS = 1 << 25


@dataclass(frozen=True)
class LaplaceNoisyMax:
    """Selects one candidate. Permute-and-flip selects better at the same epsilon; this one is here to be compared with."""

    name: ClassVar[str] = "noisy-max"
    scores: ScoreSource
    epsilon: float  # nats

    def __post_init__(self) -> None:
        keep(self, epsilon=positive("epsilon", self.epsilon))
        discrete_laplace.require_drawable(self.scale)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one selection promises: epsilon, in nats, for what the scores protect."""
        return pure(self.epsilon, self.scores.protects, proof=self.name)

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise in grid steps: twice the sensitivity over epsilon, once if all scores move the same way."""
        return 1 / selection_rate(self.scores, self.epsilon)

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every candidate: a sum over the winner's noisy score. For coarse grids; refuses very fine ones."""
        integers = self.scores.integers(raw)
        if integers.ndim == 2:
            return np.stack([self._law(row) for row in integers])
        return self._law(integers)

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        return released(int(self._choose(one_decision(self.scores, raw), noise)[0]), self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        chosen = [self._choose(block, noise) for block in many_decisions(self.scores, raw)]
        return released(np.concatenate(chosen), self.guarantee, noise)

    def _choose(self, integers: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        noisy = integers + discrete_laplace.sample(self.scale, integers.size, noise).reshape(integers.shape)
        chosen: NDArray[np.int64] = np.argmax(
            noisy, axis=1
        )  # the first of the largest: a fixed rule, as the proof needs
        return chosen

    def _law(self, row: NDArray[np.int64]) -> NDArray[np.float64]:
        scale = self.scale
        reach = int(45 * scale) + 2  # beyond it less than e^-45 of the noise
        first, last = int(row.min()) - reach, int(row.max()) + reach
        if (last - first) * row.size > _MOST_TERMS:
            raise InvalidParameter(
                "the law on so fine a grid has too many terms; take fewer steps (the sampler has no limit)."
            )
        value = np.arange(first, last + 1)[:, None]
        at_most = discrete_laplace.cdf(value - row, scale)  # candidate j's noisy score <= value
        less = discrete_laplace.cdf(value - row - 1, scale)
        law = np.empty(row.size)
        for i in range(row.size):
            # earlier candidates must be strictly less, later ones may tie
            others = np.concatenate([less[:, :i], at_most[:, i + 1 :]], axis=1).prod(axis=1)
            law[i] = np.sum(discrete_laplace.pmf(value[:, 0] - row[i], scale) * others)
        return law
