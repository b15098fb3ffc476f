"""Top response: of m candidates the d privately best are each e^epsilon times as likely as every other one.

For d = 1 it is randomised response to the question which candidate is the best. Only the order of the scores counts, so they
need no bounds. Proof: docs/proofs/top-response.md.
"""

import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, Release, pure
from tacit.guarantees.rounding import exp_bounds
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers.coins import bernoulli
from tacit.mechanisms.samplers.uniform import below, below_each
from tacit.mechanisms.scores import candidate_scores

BITS = 32
LARGEST_EPSILON = 40.0  # beyond it another item comes but once in 10^17: say openly that nothing is promised
_LOWEST = -sys.float_info.max
_BLOCK = 1 << 16  # scores at a time


@dataclass(frozen=True)
class TopResponse:
    """Selects one of ``m`` candidates, given a private score of each; of equal scores the first is the better one."""

    name: ClassVar[str] = "top-response"
    m: int
    d: int
    epsilon: float  # nats

    def __post_init__(self) -> None:
        keep(self, m=whole("m", self.m, least=1, most=1 << 20), epsilon=positive("epsilon", self.epsilon))
        keep(self, d=whole("d", self.d, least=1, most=self.m))
        if self.epsilon > LARGEST_EPSILON:
            raise InvalidParameter(
                f"epsilon of top response must be at most {LARGEST_EPSILON:g}, not {self.epsilon!r}."
            )

    @cached_property
    def guarantee(self) -> Guarantee:
        """With d = m the choice is uniform and costs nothing. With d = 1 the proof, like the law, is randomised response's."""
        if self.d == self.m:
            return pure(0.0, ONE_PROFILE, proof=self.name)
        return pure(self.epsilon, ONE_PROFILE, proof="randomised-response" if self.d == 1 else self.name)

    @cached_property
    def best_weight(self) -> int:
        """The weight of each of the d best, where every other candidate weighs 2^32."""
        return 1 << BITS if self.d == self.m else power_of_e_below(self.epsilon)

    @cached_property
    def total_weight(self) -> int:
        """The weights of all candidates together, in units of 2^-BITS: probabilities are shares of it."""
        return self.d * self.best_weight + ((self.m - self.d) << BITS)

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        """The probability of every candidate."""
        scores = _ranked(raw, self.m)
        best = np.argsort(-scores, axis=-1, kind="stable")[..., : self.d]
        law = np.full(scores.shape, float(Fraction(1 << BITS, self.total_weight)))
        np.put_along_axis(law, best, float(Fraction(self.best_weight, self.total_weight)), axis=-1)
        return law

    def release(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        scores = _ranked(raw, self.m)
        if scores.ndim != 1:
            raise InvalidInput("one decision takes one row of scores; for several rows use release_many.")
        draw = below(self.total_weight, noise)
        other = (draw - self.d * self.best_weight) >> BITS  # below 0: one of the best
        if self.d == 1:
            best = int(scores.argmax())  # the first of the largest
            return released(best if other < 0 else other + (other >= best), self.guarantee, noise)
        order = np.argsort(-scores, kind="stable")
        place = draw // self.best_weight if other < 0 else self.d + other
        return released(int(order[place]), self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        scores = candidate_scores(raw)
        if scores.ndim != 2 or scores.shape[1] != self.m:
            raise InvalidInput(f"many decisions take decisions x {self.m} candidates.")
        rows = max(1, _BLOCK // self.m)
        chosen = [self._choose(scores[start : start + rows], noise) for start in range(0, max(1, len(scores)), rows)]
        return released(np.concatenate(chosen), self.guarantee, noise)

    @np.errstate(all="ignore")
    def _choose(self, scores: NDArray[np.float64], noise: Noise) -> NDArray[np.int64]:
        np.fmax(scores, _LOWEST, out=scores)
        among_best = Fraction(self.d * self.best_weight, self.total_weight)
        others = np.flatnonzero(~bernoulli(among_best, len(scores), noise))
        if self.d == 1:
            chosen = scores.argmax(axis=1)
            other = below_each(np.full(others.size, self.m - 1, dtype=np.int64), noise)
            chosen[others] = other + (other >= chosen[others])
            return np.asarray(chosen, dtype=np.int64)
        bounds = np.full(len(scores), self.d, dtype=np.int64)
        bounds[others] = self.m - self.d
        place = below_each(bounds, noise)
        place[others] += self.d
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.asarray(order[np.arange(len(scores)), place], dtype=np.int64)


@lru_cache(maxsize=1024)  # epsilon is public, and asked for at every decision
def power_of_e_below(epsilon: float) -> int:
    """2^32 e^epsilon rounded down, from a proved lower bound: the ratio to 2^32 never exceeds e^epsilon. At least 2^32."""
    # 96 bits more: the bound is then the whole number itself, which a device in another language finds as well
    return max(exp_bounds(Fraction(epsilon), BITS + 96)[0] >> 96, 1 << BITS)


@np.errstate(all="ignore")  # what is private raises nothing, whatever a caller has set
def _ranked(raw: ArrayLike, m: int) -> NDArray[np.float64]:
    """Scores that can be put in order: what is no number counts as the lowest."""
    scores = candidate_scores(raw)
    if scores.shape[-1] != m:
        raise InvalidInput(f"expected the scores of {m} candidates.")
    return np.fmax(scores, _LOWEST, out=scores)
