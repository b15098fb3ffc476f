"""Several selections from the same private scores: Gumbel top-k, peeling and the sparse vector technique.

Gumbel top-k is the exponential mechanism k times without replacement, each time at epsilon / k. It has the law of adding one
Gumbel draw to every score and taking the k largest in order (docs/proofs/top-k.md). Peeling fills slots by single selections
without replacement, each at epsilon / slots. Each pick is public before the next one, so the candidates that are left, and
their boxes, may depend on it (docs/proofs/peeling.md). The sparse vector technique says which of many scores reach a public
threshold, up to a number of hits; scores below it cost nothing more (docs/proofs/sparse-vector.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import Guarantee, LossKind, Release, pure
from tacit.guarantees.arithmetic import down, up
from tacit.guarantees.guarantee import finite_loss
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.responses import TopResponse
from tacit.mechanisms.samplers.integers import (
    discrete_laplace_cdf,
    discrete_laplace_pmf,
    discrete_laplace_survival,
    require_drawable_discrete_laplace,
    sample_discrete_laplace,
)
from tacit.mechanisms.samplers.subsets import choose, choose_weighted
from tacit.mechanisms.scores import (
    FEW,
    ClippedScores,
    ScaledScores,
    Scores,
    ScoreSource,
    candidate_scores,
    many_decisions,
    one_decision,
)
from tacit.mechanisms.selection import (
    ExponentialMechanism,
    LaplaceNoisyMax,
    PermuteAndFlip,
    require_few_terms,
    selection_rate,
)

# how far the best item left may be behind before weights are computed again: they lose a bit per doubling
_REBASE = 8.0
_MOST_OUTCOMES = 1 << 20


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
        return Guarantee(self.epsilon, self.scores.protects, proof=self.name, loss=finite_loss(LossKind.ZCDP, rho))

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
                left[item] = 0.0  # summed again each time: subtracting would cancel
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
            item = choose_weighted(weights, lambda b=base: self._exact_few(b, left), noise)  # type: ignore[misc]
            picks.append(item)
            left[item], weights[item] = None, 0.0
        return np.array(picks, dtype=np.int64)

    def _exact_few(self, base: int, left: list[int | None]) -> list[Fraction | None]:
        return [None if score is None else (base - score) * self.rate for score in left]

    @np.errstate(all="ignore")  # Silence numpy: an error could reveal that an item is far behind
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


Rule: TypeAlias = TopResponse | ExponentialMechanism | PermuteAndFlip | LaplaceNoisyMax


@dataclass(frozen=True)
class Peeling:
    """Selects ``slots`` different candidates, in order, each by ``rule`` among those left. Its epsilon covers all picks."""

    name: ClassVar[str] = "peeling"
    rule: Rule
    slots: int

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule) or (
            not isinstance(self.rule, TopResponse) and not isinstance(self.rule.scores, ScaledScores | ClippedScores)
        ):
            raise InvalidParameter("`rule` must be TopResponse, or a selection from ScaledScores or ClippedScores.")
        keep(self, slots=whole("slots", self.slots, least=1, most=self.candidates))
        self._of(range(self.candidates))  # raises now what the first pick would raise

    @property
    def epsilon(self) -> float:
        """The epsilon of all picks together, in nats."""
        return self.rule.epsilon

    @property
    def candidates(self) -> int:
        """The number of candidates of the first pick."""
        return self.rule.m if isinstance(self.rule, TopResponse) else len(self.rule.scores.lows)  # type: ignore[attr-defined]

    @cached_property
    def guarantee(self) -> Guarantee:
        """Epsilon, of which every pick has the same share, also a pick of the only candidate left, which costs nothing; 0 if all
        picks cost nothing."""
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
            raise InvalidParameter("there are too many ordered selections to list: choose fewer slots or candidates.")
        laws: dict[tuple[int, ...], dict[int, float]] = {}  # of the next pick, by the candidates left
        probabilities = []
        for picks in self.outcomes():
            left, probability = tuple(range(self.candidates)), 1.0
            for item in picks:
                if left not in laws:
                    laws[left] = dict(zip(left, self._of(left).pmf(scores[list(left)]).tolist(), strict=True))
                probability *= laws[left][item]
                left = tuple(other for other in left if other != item)
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
            groups = _group_rows(np.sort(chosen[:, : pick + 1], axis=1))
        return released(chosen, self.guarantee, noise)

    def _of(self, left: Sequence[int]) -> Rule:
        """The rule among the candidates left, at the epsilon of one pick."""
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


def _group_rows(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The indices of equal rows, grouped."""
    if not len(rows):
        return []
    _, group = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)


@dataclass(frozen=True)
class SparseVector:
    """Answers for each score whether it reaches the threshold; stops after ``hits`` positive answers.

    ``threshold`` is public, in grid steps. The noise on the threshold is drawn once.
    """

    name: ClassVar[str] = "sparse-vector"
    scores: ScoreSource
    threshold: int
    epsilon: float  # nats
    hits: int = 1

    def __post_init__(self) -> None:
        keep(
            self,
            threshold=whole("threshold", self.threshold, least=-(1 << 53), most=1 << 53),
            epsilon=positive("epsilon", self.epsilon),
            hits=whole("hits", self.hits, least=1, most=1 << 30),
        )
        for scale in self.scales:
            require_drawable_discrete_laplace(scale)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all answers together promise: epsilon, in nats, for what the scores protect."""
        return pure(self.epsilon, self.scores.protects, proof=self.name)

    @cached_property
    def shares(self) -> tuple[Fraction, Fraction]:
        """What the threshold and the answers spend: 1 to (2 hits)^(2/3), the split of least error; monotone: hits^(2/3)."""
        whole_epsilon = Fraction(self.epsilon)
        weight = (self.hits * (1 if self.scores.monotone else 2)) ** (2.0 / 3.0)
        for_threshold = whole_epsilon / Fraction(1.0 + weight)
        return for_threshold, whole_epsilon - for_threshold

    @cached_property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The noise scales, in grid steps, of the threshold and of every answer."""
        for_threshold, for_answers = self.shares
        sensitivity = self.scores.sensitivity
        return sensitivity / for_threshold, self.hits * (1 if self.scores.monotone else 2) * sensitivity / for_answers

    def outcomes(self, candidates: int) -> list[tuple[bool, ...]]:
        """All transcripts, in the order of ``pmf``: they end with the last allowed hit, or with the last candidate."""
        transcripts = []
        for length in range(1, candidates + 1):
            for answers in product((False, True), repeat=length):
                stopped = sum(answers) == self.hits and answers[-1]
                if stopped or (length == candidates and sum(answers) < self.hits):
                    transcripts.append(answers)
        return transcripts

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every transcript: given the threshold's noise the answers are independent. For coarse grids."""
        integers = one_decision(self.scores, raw)[0]
        threshold_scale, answer_scale = self.scales
        reach = int(45 * threshold_scale) + 2
        require_few_terms(2 * reach * integers.size)
        shift = np.arange(-reach, reach + 1)
        weight = discrete_laplace_pmf(shift, threshold_scale)
        needed = self.threshold + shift[:, None] - integers  # the noise that lifts each score to the noisy threshold
        hit = discrete_laplace_survival(needed, answer_scale)
        miss = discrete_laplace_cdf(needed - 1, answer_scale)
        return np.array(
            [
                np.sum(
                    weight * np.prod([hit[:, i] if answer else miss[:, i] for i, answer in enumerate(answers)], axis=0)
                )
                for answers in self.outcomes(integers.size)
            ]
        )

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[tuple[bool, ...]]:
        """The transcript: an answer for every score up to the last allowed hit."""
        integers = one_decision(self.scores, raw)[0]
        threshold_scale, answer_scale = self.scales
        noisy_threshold = self.threshold + sample_discrete_laplace(threshold_scale, 1, noise)[0]
        answers = integers + sample_discrete_laplace(answer_scale, integers.size, noise) >= noisy_threshold
        stop = np.flatnonzero(np.cumsum(answers) == self.hits)
        shown = answers[: stop[0] + 1] if stop.size else answers
        return released(tuple(bool(answer) for answer in shown), self.guarantee, noise)
