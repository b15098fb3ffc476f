"""Peeling: several slots, filled by single selections without replacement, each at epsilon / slots.

What was picked is public before the next pick is made, so the candidates that are left, and their boxes, may depend on it.
Proof: docs/proofs/peeling.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import Guarantee, Release, pure
from tacit.guarantees.rounding import down
from tacit.mechanisms.boxes import ClippedScores, ScaledScores
from tacit.mechanisms.drawn import released
from tacit.mechanisms.exponential import ExponentialMechanism
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.noisy_max import LaplaceNoisyMax
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.scores import candidate_scores
from tacit.mechanisms.top_response import TopResponse

Rule: TypeAlias = TopResponse | ExponentialMechanism | PermuteAndFlip | LaplaceNoisyMax
_MOST_OUTCOMES = 1 << 20


@dataclass(frozen=True)
class Peeling:
    """Selects ``slots`` different candidates, in order: each as ``rule`` would among those left. Its epsilon is for all of them."""

    name: ClassVar[str] = "peeling"
    rule: Rule
    slots: int

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule) or (
            not isinstance(self.rule, TopResponse) and not isinstance(self.rule.scores, ScaledScores | ClippedScores)
        ):
            raise InvalidParameter(
                "slots are filled by top response, or by a selection from scores that are scaled or clipped."
            )
        keep(self, slots=whole("slots", self.slots, least=1, most=self.candidates))
        self._of(range(self.candidates))  # refuses now what it would refuse at the first pick

    @property
    def epsilon(self) -> float:
        """Of all picks together."""
        return self.rule.epsilon

    @property
    def candidates(self) -> int:
        """How many candidates the first draw has."""
        return self.rule.m if isinstance(self.rule, TopResponse) else len(self.rule.scores.lows)  # type: ignore[attr-defined]

    @cached_property
    def guarantee(self) -> Guarantee:
        """Epsilon, of which every pick has the same share, also one that promises 0 (the only candidate left) and leaves its share
        unused; nothing where all of them promise 0."""
        free = all(self._of(range(self.candidates - pick)).guarantee.epsilon == 0.0 for pick in range(self.slots))
        return pure(0.0 if free else self.epsilon, self.rule.guarantee.protects, proof=self.name)

    @cached_property
    def each(self) -> float:
        """The epsilon of one pick, rounded down: together they do not exceed epsilon."""
        return down(Fraction(self.epsilon) / self.slots)

    def outcomes(self) -> list[tuple[int, ...]]:
        """All ordered selections, in the order of ``pmf``."""
        return list(permutations(range(self.candidates), self.slots))

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        """The probability of every ordered selection of one decision; for few candidates."""
        scores = self._scores(raw, 1)
        if np.prod([float(self.candidates - pick) for pick in range(self.slots)]) > _MOST_OUTCOMES:
            raise InvalidParameter("so many ordered selections are not listed; take fewer slots or candidates.")
        laws: dict[tuple[int, ...], dict[int, float]] = {}  # of the next pick, by who is left
        probabilities = []
        for picks in self.outcomes():
            left, probability = tuple(range(self.candidates)), 1.0
            for item in picks:
                if left not in laws:
                    laws[left] = dict(zip(left, self._of(left).pmf(scores[list(left)]).tolist(), strict=True))
                probability *= laws[left][item]
                left = tuple(one for one in left if one != item)
            probabilities.append(probability)
        return np.array(probabilities)

    def release(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """The indices of the chosen candidates, in the order of their choice."""
        scores = self._scores(raw, 1)
        left, picks = list(range(self.candidates)), []
        for _ in range(self.slots):
            picks.append(left.pop(self._of(left).release(scores[left], noise).value))
        return released(np.array(picks, dtype=np.int64), self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """decisions x slots choices; the guarantee is that of each row's user. Rows with the same candidates left go together."""
        scores = self._scores(raw, 2)
        chosen = np.empty((len(scores), self.slots), dtype=np.int64)
        groups = [np.arange(len(scores))] if len(scores) else []
        for pick in range(self.slots):
            for rows in groups:
                left = np.setdiff1d(np.arange(self.candidates), chosen[rows[0], :pick])
                drawn = self._of(left.tolist()).release_many(scores[np.ix_(rows, left)], noise).value
                chosen[rows, pick] = left[drawn]
            groups = _alike(np.sort(chosen[:, : pick + 1], axis=1))
        return released(chosen, self.guarantee, noise)

    def _of(self, left: Sequence[int]) -> Rule:
        """The rule among those who are left, at the epsilon of one pick."""
        if isinstance(self.rule, TopResponse):
            return TopResponse(len(left), min(self.rule.d, len(left)), self.each)
        return replace(self.rule, scores=self.rule.scores.among(left), epsilon=self.each)  # type: ignore[attr-defined]

    def _scores(self, raw: ArrayLike, axes: int) -> NDArray[np.float64]:
        scores = candidate_scores(raw)
        if scores.ndim != axes or scores.shape[-1] != self.candidates:
            raise InvalidInput(
                f"expected the scores of {self.candidates} candidates: one row for release, decisions x candidates for many."
            )
        return scores


def _alike(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The places of equal rows, together."""
    if not len(rows):
        return []
    _, group = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)
