"""Permute-and-flip: walk through the candidates in random order, take one with probability e^(-rate * (best - score)).

The same law as adding exponential noise and taking the largest, and never worse than the exponential mechanism at equal epsilon.
The walk's order and its coins are independent, so tossing all coins and taking one of the heads at random is the same thing.
Proof: docs/proofs/permute-and-flip.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive
from tacit.guarantees import Guarantee, Release, pure
from tacit.mechanisms.boxes import Boxed
from tacit.mechanisms.calibration import permute_and_flip_rate, require_boxes
from tacit.mechanisms.drawn import released
from tacit.mechanisms.exponential import selection_rate
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers.coins import exponential_coins, few_exponential_coins
from tacit.mechanisms.samplers.uniform import below, below_each
from tacit.mechanisms.scores import FEW, Scores, ScoreSource, many_decisions, one_decision


@dataclass(frozen=True)
class PermuteAndFlip:
    """Selects one candidate: noisy max with exponential noise.

    ``calibrated``: over public boxes, at the largest rate whose true loss is epsilon.
    """

    name: ClassVar[str] = "permute-and-flip"
    scores: ScoreSource
    epsilon: float  # nats
    calibrated: bool = False

    def __post_init__(self) -> None:
        keep(self, epsilon=positive("epsilon", self.epsilon))
        if self.calibrated:
            require_boxes(self.scores)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one selection promises: epsilon, in nats, for what the scores protect."""
        return pure(self.epsilon, self.scores.protects, proof=self.name)

    @cached_property
    def rate(self) -> Fraction:
        """The exponent of one grid step."""
        if self.calibrated:
            return permute_and_flip_rate(cast(Boxed, self.scores), self.epsilon)
        return selection_rate(self.scores, self.epsilon)

    @cached_property
    def _rate(self) -> float:
        return float(self.rate)

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every candidate: a_i * integral over t in [0,1] of the product of (1 - a_j t), j != i.

        The integrand is a polynomial of degree k - 1, for which Gauss-Legendre quadrature with k/2 + 1 nodes is exact.
        """
        integers = self.scores.integers(raw)
        flip = np.exp((integers - integers.max(axis=-1, keepdims=True)) * self._rate)
        nodes, weights = np.polynomial.legendre.leggauss(flip.shape[-1] // 2 + 1)
        probability = np.zeros_like(flip)
        for node, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
            survives = 1.0 - flip * node  # above 0: node < 1
            probability += weight * flip * np.prod(survives, axis=-1, keepdims=True) / survives
        return np.asarray(probability, dtype=np.float64)

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        row = one_decision(self.scores, raw)
        chosen = self._choose_one(row[0].tolist(), noise) if row.size <= FEW else int(self._choose(row, noise)[0])
        return released(chosen, self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        chosen = [self._choose(block, noise) for block in many_decisions(self.scores, raw)]
        return released(np.concatenate(chosen), self.guarantee, noise)

    def _choose_one(self, row: list[int], noise: Noise) -> int:
        best, rate = max(row), self._rate
        heads = few_exponential_coins(
            [(best - score) * rate for score in row], lambda i: (best - row[i]) * self.rate, noise
        )
        standing = [item for item, head in enumerate(heads) if head]
        return standing[below(len(standing), noise)]

    def _choose(self, integers: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        behind = integers.max(axis=1, keepdims=True) - integers
        heads = exponential_coins(behind * self._rate, lambda i: int(behind.flat[i]) * self.rate, noise)
        counts = heads.sum(axis=1)  # at least 1: the best candidate's coin is always heads
        place = np.cumsum(counts) - counts + below_each(counts, noise)  # of one of the row's heads among all heads
        return np.asarray(heads.nonzero()[1][place], dtype=np.int64)
