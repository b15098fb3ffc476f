"""Envelope: every candidate keeps a public floor, and the privately best are raised to at most e^epsilon times theirs.

Among all choices whose probabilities lie between q_i and e^epsilon q_i it has the largest expected score; with the right
floors it is the best rule there is at that epsilon. Proof: docs/proofs/envelope.md.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, Release, pure
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, bits, words64
from tacit.mechanisms.scores import candidate_scores
from tacit.mechanisms.top_response import BITS, LARGEST_EPSILON, power_of_e_below

_WHOLE = 1 << (2 * BITS)  # probabilities are whole numbers of 2^-64: a floor of 2^-32 times a weight of 2^-32
_LOWEST = -sys.float_info.max


@dataclass(frozen=True)
class Envelope:
    """Selects one candidate; ``floors`` are its public least probabilities, in 2^-32. Of equal scores the first is the better."""

    name: ClassVar[str] = "envelope"
    floors: tuple[int, ...]
    epsilon: float  # nats

    def __post_init__(self) -> None:
        floors = tuple(whole("a floor", floor, least=1, most=1 << BITS) for floor in self.floors)
        keep(self, floors=floors, epsilon=positive("epsilon", self.epsilon))
        whole("the number of floors", len(floors), least=1, most=10_000)
        if self.epsilon > LARGEST_EPSILON:
            raise InvalidParameter(f"epsilon of an envelope must be at most {LARGEST_EPSILON:g}, not {self.epsilon!r}.")
        if not sum(floors) <= 1 << BITS or sum(floors) * power_of_e_below(self.epsilon) < _WHOLE:
            raise InvalidParameter("floors must add up to at most 1, and e^epsilon times as much to at least 1.")

    @cached_property
    def guarantee(self) -> Guarantee:
        """A single candidate is shown whatever its score: that costs nothing."""
        return pure(self.epsilon if len(self.floors) > 1 else 0.0, ONE_PROFILE, proof=self.name)

    @cached_property
    def spare(self) -> int:
        """What the floors leave of 1, in 2^-64: the mass that goes to the best."""
        return _WHOLE - (sum(self.floors) << BITS)

    @cached_property
    def raises(self) -> tuple[int, ...]:
        """How far each candidate may be raised above its floor, in 2^-64; no more than there is."""
        most = power_of_e_below(self.epsilon) - (1 << BITS)
        return tuple(min(floor * most, self.spare) for floor in self.floors)

    def weights(self, raw: ArrayLike) -> list[int]:
        """The probability of every candidate, a whole number of 2^-64; together exactly 1."""
        scores = self._ranked(raw)
        if scores.ndim != 1:
            raise InvalidInput("one decision takes one row of scores; for several rows use release_many.")
        weights, spare = [floor << BITS for floor in self.floors], self.spare
        for item in np.argsort(-scores, kind="stable").tolist():
            given = min(self.raises[item], spare)
            weights[item] += given
            spare -= given
        return weights

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        """The probability of every candidate."""
        scores = self._ranked(raw)
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
        scores = self._ranked(raw)
        if scores.ndim != 2:
            raise InvalidInput("many decisions take decisions x candidates; one decision goes to release.")
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
            given = np.minimum(raises[item], spare)
            weights[rows, item] += given
            spare -= given
        draw = words64(noise, len(scores)).copy()
        waiting = np.ones(len(scores), dtype=np.bool_)
        for item in range(len(self.floors)):
            here = waiting & (draw < weights[:, item])
            chosen[here] = item
            waiting &= ~here
            draw[waiting] -= weights[waiting, item]
        return chosen

    @np.errstate(all="ignore")  # what is private raises nothing, whatever a caller has set
    def _ranked(self, raw: ArrayLike) -> NDArray[np.float64]:
        scores = candidate_scores(raw)
        if scores.shape[-1] != len(self.floors):
            raise InvalidInput(f"expected the scores of {len(self.floors)} candidates.")
        return np.fmax(scores, _LOWEST, out=scores)  # what is no number counts as the lowest
