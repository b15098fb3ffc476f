"""Exponential mechanism: item i with probability proportional to e^(rate * score_i). Adding Gumbel noise and taking the largest
has the same law; here one exact draw does it. Proof: docs/proofs/exponential.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive
from tacit.guarantees import Guarantee, Loss, LossKind, Release
from tacit.guarantees.rounding import up
from tacit.mechanisms.boxes import Boxed
from tacit.mechanisms.calibration import exponential_rate, require_boxes
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers.choice import choose, choose_one
from tacit.mechanisms.scores import FEW, Scores, ScoreSource, many_decisions, one_decision


@dataclass(frozen=True)
class ExponentialMechanism:
    """Selects one candidate; its privacy loss has range epsilon, so it composes at epsilon^2/8 zCDP.

    ``calibrated``: over public boxes, at the largest rate whose true loss is epsilon. The range is then above epsilon.
    """

    name: ClassVar[str] = "exponential"
    scores: ScoreSource
    epsilon: float  # nats
    calibrated: bool = False

    def __post_init__(self) -> None:
        keep(self, epsilon=positive("epsilon", self.epsilon))
        if self.calibrated:
            require_boxes(self.scores)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one selection promises: epsilon, in nats, for what the scores protect; a bounded range composes by it."""
        # the losses of two outputs differ by at most 2 * rate * sensitivity; that is epsilon, unless calibrated
        reach = up(2 * self.rate * self.scores.sensitivity) if self.calibrated else self.epsilon
        return Guarantee(self.epsilon, self.scores.protects, proof=self.name, loss=Loss(LossKind.BOUNDED_RANGE, reach))

    @cached_property
    def rate(self) -> Fraction:
        """The exponent of one grid step: epsilon/sensitivity if all scores move the same way, else half of it."""
        if self.calibrated:
            return exponential_rate(cast(Boxed, self.scores), self.epsilon)
        return selection_rate(self.scores, self.epsilon)

    @cached_property
    def _rate(self) -> float:
        return float(self.rate)

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every candidate."""
        return _softmax(self.scores.integers(raw), self.rate)

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        row = one_decision(self.scores, raw)
        if row.size > FEW:
            return released(int(gumbel_choice(row, self.rate, noise)[0]), self.guarantee, noise)
        scores = row[0].tolist()
        best, rate = max(scores), self._rate
        exponents = [(best - score) * rate for score in scores]
        chosen = choose_one(exponents, lambda: [(best - score) * self.rate for score in scores], noise)
        return released(chosen, self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        chosen = [gumbel_choice(block, self.rate, noise) for block in many_decisions(self.scores, raw)]
        return released(np.concatenate(chosen), self.guarantee, noise)


def selection_rate(scores: ScoreSource, epsilon: float) -> Fraction:
    """The exponent per grid step that spends epsilon: 1/sensitivity of it for monotone scores, half of that otherwise."""
    return Fraction(epsilon) / (scores.sensitivity * (1 if scores.monotone else 2))


@np.errstate(all="ignore")  # how far an item is behind is private: it may be too far for a float
def gumbel_choice(integers: NDArray[np.int64], rate: Fraction, noise: Noise) -> NDArray[np.int64]:
    """For every row of whole-number scores an item, drawn exactly with probability proportional to e^(rate * score)."""
    behind = integers.max(axis=1, keepdims=True) - integers
    return choose(behind * float(rate), lambda row: [int(steps) * rate for steps in behind[row]], noise)


def _softmax(integers: NDArray[np.int64], rate: Fraction) -> NDArray[np.float64]:
    weight = np.exp((integers - integers.max(axis=-1, keepdims=True)) * float(rate))
    probability: NDArray[np.float64] = weight / weight.sum(axis=-1, keepdims=True)
    return probability
