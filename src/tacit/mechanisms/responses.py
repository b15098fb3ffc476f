"""Selections whose probabilities stand at fixed ratios: randomised response, top response and the envelope.

Randomised response reports the true value with probability e^epsilon / (e^epsilon + k - 1), else any other value, all equally
likely (docs/proofs/randomised-response.md). Top response makes each of the d privately best of m candidates e^epsilon times as
likely as every other one; for d = 1 it is randomised response to the question which candidate is best. Only the order of the
scores counts, so they need no bounds (docs/proofs/top-response.md). An envelope keeps a public floor for every candidate and
raises the privately best to at most e^epsilon times their floor. Among all choices between floors q_i and e^epsilon q_i it has
the largest expected score; with the right floors it is the best rule at that epsilon (docs/proofs/envelope.md).
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
from tacit.guarantees import ONE_PROFILE, Guarantee, Neighbours, Relation, Release, pure
from tacit.guarantees.arithmetic import exp_bounds
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, bits, released, words64
from tacit.mechanisms.samplers.coins import below, below_each, bernoulli
from tacit.mechanisms.scores import candidate_scores, scores_of

BITS = 32  # weights are whole numbers of 2^-32
LARGEST_EPSILON = 40.0  # beyond it another value comes once in 10^17: say openly that nothing is promised
# probabilities of an envelope are whole numbers of 2^-64: a floor of 2^-32 times a weight of 2^-32
_WHOLE = 1 << (2 * BITS)
_LOWEST = -sys.float_info.max
_BLOCK = 1 << 16  # scores at a time


@dataclass(frozen=True)
class RandomisedResponse:
    """Reports one of ``k`` values."""

    name: ClassVar[str] = "randomised-response"
    k: int
    epsilon: float  # nats
    protects: Neighbours = ONE_PROFILE

    def __post_init__(self) -> None:
        keep(self, k=whole("k", self.k, least=2, most=1 << 20), epsilon=positive("epsilon", self.epsilon))
        if self.protects.relation is not Relation.REPLACE or self.protects.distance is not None:
            raise InvalidParameter(
                "randomised response hides which value it was: `protects` must be a unit that is replaced, without a distance."
            )
        _require_moderate(self.epsilon, "randomised response")

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one answer promises: epsilon, in nats, for what ``protects`` says."""
        return pure(self.epsilon, self.protects, proof=self.name)

    @cached_property
    def true_weight(self) -> int:
        """The weight of the true value, where every other value weighs 2^32."""
        return power_of_e_below(self.epsilon)

    @cached_property
    def truth(self) -> Fraction:
        """The probability of the true value."""
        return Fraction(self.true_weight, self.true_weight + ((self.k - 1) << BITS))

    def pmf(self, value: int) -> NDArray[np.float64]:
        """The probability of every report, given the true value."""
        truth = self.truth
        law = np.full(self.k, float((1 - truth) / (self.k - 1)))
        law[self._value(value)] = float(truth)
        return law

    def release(self, value: int, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The reported value."""
        true = self._value(value)
        draw = below(self.true_weight + ((self.k - 1) << BITS), noise)
        other = (draw - self.true_weight) >> BITS
        return released(true if other < 0 else other + (other >= true), self.guarantee, noise)

    def release_many(self, values: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One report for each value; the guarantee is that of each value's user."""
        true = self._values(values)
        report = true.copy()
        lies = np.flatnonzero(~bernoulli(self.truth, true.size, noise))
        other = below_each(np.full(lies.size, self.k - 1, dtype=np.int64), noise)
        report[lies] = other + (other >= true[lies])  # the k - 1 values that are not the true one
        return released(report, self.guarantee, noise)

    def _value(self, raw: int) -> int:
        if isinstance(raw, bool) or not isinstance(raw, (int, np.integer)):
            raise InvalidInput("the value must be a whole number.")
        if not 0 <= raw < self.k:
            raise InvalidInput(f"values must lie from 0 to {self.k - 1}.")
        return int(raw)

    def _values(self, raw: ArrayLike) -> NDArray[np.int64]:
        try:
            values = np.asarray(raw)
        except ValueError:
            raise InvalidInput("values must be whole numbers, one for each user.") from None
        if values.shape == (0,):
            return np.zeros(0, dtype=np.int64)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise InvalidInput("values must be whole numbers, one for each user.")
        if values.size and not (values.min() >= 0 and values.max() < self.k):
            raise InvalidInput(f"values must lie from 0 to {self.k - 1}.")
        return values.astype(np.int64)


@dataclass(frozen=True)
class TopResponse:
    """Selects one of ``m`` candidates by their private scores; of equal scores the first counts as better."""

    name: ClassVar[str] = "top-response"
    m: int
    d: int
    epsilon: float  # nats

    def __post_init__(self) -> None:
        keep(self, m=whole("m", self.m, least=1, most=1 << 20), epsilon=positive("epsilon", self.epsilon))
        keep(self, d=whole("d", self.d, least=1, most=self.m))
        _require_moderate(self.epsilon, "top response")

    @cached_property
    def guarantee(self) -> Guarantee:
        """With d = m the choice is uniform and costs nothing. With d = 1 law and proof are those of randomised response."""
        if self.d == self.m:
            return pure(0.0, ONE_PROFILE, proof=self.name)
        return pure(self.epsilon, ONE_PROFILE, proof="randomised-response" if self.d == 1 else self.name)

    @cached_property
    def best_weight(self) -> int:
        """The weight of each of the d best, where every other candidate weighs 2^32."""
        return 1 << BITS if self.d == self.m else power_of_e_below(self.epsilon)

    @cached_property
    def total_weight(self) -> int:
        """The weights of all candidates together: probabilities are shares of it."""
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
            raise InvalidInput("release takes one row of scores; for several rows use release_many.")
        draw = below(self.total_weight, noise)
        other = (draw - self.d * self.best_weight) >> BITS  # below 0: one of the best
        if self.d == 1:
            best = int(scores.argmax())  # the first of the largest
            return released(best if other < 0 else other + (other >= best), self.guarantee, noise)
        order = np.argsort(-scores, kind="stable")
        rank = draw // self.best_weight if other < 0 else self.d + other
        return released(int(order[rank]), self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        scores = candidate_scores(raw)
        if scores.ndim != 2 or scores.shape[1] != self.m:
            raise InvalidInput(f"release_many takes decisions x {self.m} candidates.")
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
        rank = below_each(bounds, noise)
        rank[others] += self.d
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.asarray(order[np.arange(len(scores)), rank], dtype=np.int64)


def _require_moderate(epsilon: float, mechanism: str) -> None:
    if epsilon > LARGEST_EPSILON:
        raise InvalidParameter(f"epsilon of {mechanism} must be at most {LARGEST_EPSILON:g}, not {epsilon!r}.")


@lru_cache(maxsize=1024)  # epsilon is public, and every decision asks for it
def power_of_e_below(epsilon: float) -> int:
    """2^32 e^epsilon rounded down, from a proved lower bound: its ratio to 2^32 never exceeds e^epsilon.

    It is at least 2^32: below that the truth would be the rarer report, and for a tiny epsilon that ratio is too large as well.
    """
    # with 96 bits more the bound is the whole number itself, which a device in another language finds as well
    return max(exp_bounds(Fraction(epsilon), BITS + 96)[0] >> 96, 1 << BITS)


@np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
def _ranked(raw: ArrayLike, m: int) -> NDArray[np.float64]:
    """Scores that can be ordered: a score that is not a number counts as the lowest."""
    scores = scores_of(m, raw)
    return np.fmax(scores, _LOWEST, out=scores)


@dataclass(frozen=True)
class Envelope:
    """Selects one candidate; ``floors`` are public least probabilities, in 2^-32. Of equal scores the first counts as better."""

    name: ClassVar[str] = "envelope"
    floors: tuple[int, ...]
    epsilon: float  # nats

    def __post_init__(self) -> None:
        floors = tuple(whole("a floor", floor, least=1, most=1 << BITS) for floor in self.floors)
        keep(self, floors=floors, epsilon=positive("epsilon", self.epsilon))
        whole("the number of floors", len(floors), least=1, most=10_000)
        _require_moderate(self.epsilon, "an envelope")
        if not sum(floors) <= 1 << BITS or sum(floors) * power_of_e_below(self.epsilon) < _WHOLE:
            raise InvalidParameter("floors must add up to at most 1, and e^epsilon times their sum must be at least 1.")

    @cached_property
    def guarantee(self) -> Guarantee:
        """Epsilon, in nats, for one profile; 0 for a single candidate, which is shown anyway."""
        return pure(self.epsilon if len(self.floors) > 1 else 0.0, ONE_PROFILE, proof=self.name)

    @cached_property
    def spare(self) -> int:
        """1 less the sum of the floors, in 2^-64: the mass that goes to the best."""
        return _WHOLE - (sum(self.floors) << BITS)

    @cached_property
    def raises(self) -> tuple[int, ...]:
        """How far each candidate may be raised above its floor, in 2^-64; at most ``spare``."""
        most = power_of_e_below(self.epsilon) - (1 << BITS)
        return tuple(min(floor * most, self.spare) for floor in self.floors)

    def weights(self, raw: ArrayLike) -> list[int]:
        """The probability of every candidate, as a whole number of 2^-64. They add up to exactly 1."""
        scores = _ranked(raw, len(self.floors))
        if scores.ndim != 1:
            raise InvalidInput("release takes one row of scores; for several rows use release_many.")
        weights, spare = [floor << BITS for floor in self.floors], self.spare
        for item in np.argsort(-scores, kind="stable").tolist():
            raised = min(self.raises[item], spare)
            weights[item] += raised
            spare -= raised
        return weights

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        """The probability of every candidate."""
        scores = _ranked(raw, len(self.floors))
        if scores.ndim == 2:
            return np.array([self.pmf(row) for row in scores]).reshape(scores.shape)
        return np.array([weight / _WHOLE for weight in self.weights(scores)])

    def release(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        weights = self.weights(raw)
        draw, item = bits(noise, 2 * BITS), 0
        while draw >= weights[item]:
            draw -= weights[item]
            item += 1
        return released(item, self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        scores = _ranked(raw, len(self.floors))
        if scores.ndim != 2:
            raise InvalidInput("release_many takes decisions x candidates; for one decision use release.")
        return released(self._choose(scores, noise), self.guarantee, noise)

    def _choose(self, scores: NDArray[np.float64], noise: Noise) -> NDArray[np.int64]:
        rows = np.arange(len(scores))
        chosen = np.zeros(len(scores), dtype=np.int64)
        if len(self.floors) == 1:  # its weight, 2^64, does not fit a word
            return chosen
        raises = np.array(self.raises, dtype=np.uint64)
        weights = np.tile(np.array([floor << BITS for floor in self.floors], dtype=np.uint64), (len(scores), 1))
        spare = np.full(len(scores), self.spare, dtype=np.uint64)
        for item in np.argsort(-scores, axis=1, kind="stable").T:
            raised = np.minimum(raises[item], spare)
            weights[rows, item] += raised
            spare -= raised
        draw = words64(noise, len(scores)).copy()
        waiting = np.ones(len(scores), dtype=np.bool_)
        for item in range(len(self.floors)):
            here = waiting & (draw < weights[:, item])
            chosen[here] = item
            waiting &= ~here
            draw[waiting] -= weights[waiting, item]
        return chosen
