"""Gumbel top-k: the exponential mechanism k times without replacement (peeling), each time at epsilon / k.

The same law as adding one Gumbel draw to every score and taking the k largest in order. Proof: docs/proofs/top-k.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput
from tacit.guarantees import Guarantee, Loss, LossKind, Release
from tacit.guarantees.rounding import up
from tacit.mechanisms.drawn import released
from tacit.mechanisms.exponential import selection_rate
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers.choice import choose, choose_weighted
from tacit.mechanisms.scores import FEW, Scores, ScoreSource, many_decisions, one_decision

_REBASE = (
    8.0  # how far the best item left may fall behind before weights are formed anew: they lose a bit for each doubling
)


@dataclass(frozen=True)
class GumbelTopK:
    """Selects ``k`` different candidates, in order. ``epsilon`` is for all of them together."""

    name: ClassVar[str] = "top-k"
    scores: ScoreSource
    k: int
    epsilon: float  # nats

    def __post_init__(self) -> None:
        keep(self, k=whole("k", self.k, least=1), epsilon=positive("epsilon", self.epsilon))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all k picks together promise: epsilon, in nats, for what the scores protect; composes by its zCDP."""
        # k exponential mechanisms, each of range epsilon/k: zCDP k (epsilon/k)^2 / 8
        rho = up(Fraction(self.epsilon) ** 2 / (8 * self.k))
        loss = Loss(LossKind.ZCDP, rho) if math.isfinite(rho) else None
        return Guarantee(self.epsilon, self.scores.protects, proof=self.name, loss=loss)

    @cached_property
    def rate(self) -> Fraction:
        """The exponent of one grid step in each of the k picks."""
        return selection_rate(self.scores, self.epsilon) / self.k

    def outcomes(self, candidates: int) -> list[tuple[int, ...]]:
        """All ordered selections, in the order of ``pmf``."""
        return list(permutations(range(candidates), self.k))

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every ordered selection of one decision; for few candidates."""
        integers = one_decision(self.scores, raw)[0]
        self._check(integers.size)
        weight = np.exp((integers - integers.max()) * float(self.rate))
        law = []
        for picks in self.outcomes(integers.size):
            left, probability = weight.copy(), 1.0
            for item in picks:
                probability *= weight[item] / left.sum()
                left[item] = 0.0  # summed anew each time: subtracting would cancel
            law.append(probability)
        return np.array(law)

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """The indices of the chosen candidates, in the order of their choice."""
        row = one_decision(self.scores, raw)
        self._check(row.size)
        chosen = self._choose_few(row[0].tolist(), noise) if row.size <= FEW else self._choose(row, noise)[0]
        return released(chosen, self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """decisions x k choices; the guarantee is that of each row's user."""
        chosen = [self._choose(block, noise) for block in many_decisions(self.scores, raw)]
        return released(np.concatenate(chosen), self.guarantee, noise)

    def _choose_few(self, row: list[int], noise: Noise) -> NDArray[np.int64]:
        rate, base = float(self.rate), max(row)
        left: list[int | None] = list(row)
        weights = [math.exp((score - base) * rate) for score in row]
        picks = []
        for _ in range(self.k):
            best = max(score for score in left if score is not None)
            if (base - best) * rate > _REBASE:
                base = best
                weights = [0.0 if score is None else math.exp((score - base) * rate) for score in left]
            item = choose_weighted(weights, lambda b=base: self._exponents(b, left), noise)  # type: ignore[misc]
            picks.append(item)
            left[item], weights[item] = None, 0.0
        return np.array(picks, dtype=np.int64)

    def _exponents(self, base: int, left: list[int | None]) -> list[Fraction | None]:
        return [None if score is None else (base - score) * self.rate for score in left]

    @np.errstate(all="ignore")  # how far an item is behind is private: it may be too far for a float
    def _choose(self, integers: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        self._check(integers.shape[1])
        rows = np.arange(integers.shape[0])
        left = np.ones(integers.shape, dtype=np.bool_)
        chosen = np.empty((integers.shape[0], self.k), dtype=np.int64)
        for pick in range(self.k):
            best = np.where(left, integers, np.iinfo(np.int64).min).max(axis=1, keepdims=True)
            behind = best - integers  # only candidates that are left count
            exponents = np.where(left, behind * float(self.rate), np.inf)
            chosen[:, pick] = choose(exponents, lambda row, b=behind, keep=left: self._exact(b[row], keep[row]), noise)  # type: ignore[misc]
            left[rows, chosen[:, pick]] = False
        return chosen

    def _exact(self, behind: NDArray[np.int64], left: NDArray[np.bool_]) -> list[Fraction | None]:
        return [int(steps) * self.rate if kept else None for steps, kept in zip(behind, left, strict=True)]

    def _check(self, candidates: int) -> None:
        if candidates < self.k:
            raise InvalidInput(f"{self.k} picks need at least {self.k} candidates.")
