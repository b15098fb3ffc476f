"""Sparse vector: which of many scores reach a public threshold, up to a number of hits; scores below cost nothing more.
Proof: docs/proofs/sparse-vector.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release, pure
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.scores import Scores, ScoreSource, one_decision

_MOST_TERMS = 1 << 25


@dataclass(frozen=True)
class SparseVector:
    """Answers, score by score, whether it reaches the threshold; stops after ``hits`` positive answers.

    ``threshold`` is public and in grid steps. The noise on the threshold is drawn once and never refreshed.
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
            discrete_laplace.require_drawable(scale)

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
        found = []
        for length in range(1, candidates + 1):
            for answers in product((False, True), repeat=length):
                stopped = sum(answers) == self.hits and answers[-1]
                if stopped or (length == candidates and sum(answers) < self.hits):
                    found.append(answers)
        return found

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every transcript: given the threshold's noise the answers are independent. For coarse grids."""
        integers = one_decision(self.scores, raw)[0]
        threshold_scale, answer_scale = self.scales
        reach = int(45 * threshold_scale) + 2
        if 2 * reach * integers.size > _MOST_TERMS:
            raise InvalidParameter(
                "the law on so fine a grid has too many terms; take fewer steps (the sampler has no limit)."
            )
        shift = np.arange(-reach, reach + 1)
        weight = discrete_laplace.pmf(shift, threshold_scale)
        needed = self.threshold + shift[:, None] - integers  # the noise that lifts each score to the noisy threshold
        hit = discrete_laplace.survival(needed, answer_scale)
        miss = discrete_laplace.cdf(needed - 1, answer_scale)
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
        noisy_threshold = self.threshold + discrete_laplace.sample(threshold_scale, 1, noise)[0]
        answers = integers + discrete_laplace.sample(answer_scale, integers.size, noise) >= noisy_threshold
        stop = np.flatnonzero(np.cumsum(answers) == self.hits)
        shown = answers[: stop[0] + 1] if stop.size else answers
        return released(tuple(bool(answer) for answer in shown), self.guarantee, noise)
