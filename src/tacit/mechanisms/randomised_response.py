"""k-ary randomised response: the truth with probability e^epsilon / (e^epsilon + k - 1), else any other value, all alike.
Proof: docs/proofs/randomised-response.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, Neighbours, Relation, Release, pure
from tacit.guarantees.rounding import exp_bounds
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers.coins import bernoulli
from tacit.mechanisms.samplers.uniform import below, below_each

_BASE_BITS = 32
_LARGEST_EPSILON = 40.0  # beyond it a lie is told but once in 10^17: say openly that nothing is promised


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
                "randomised response hides which value it was, so it protects what is replaced, not what is added."
            )
        if self.epsilon > _LARGEST_EPSILON:
            raise InvalidParameter(
                f"epsilon of randomised response must be at most {_LARGEST_EPSILON:g}, not {self.epsilon!r}."
            )

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one answer promises: epsilon, in nats, for what ``protects`` says."""
        return pure(self.epsilon, self.protects, proof=self.name)

    @cached_property
    def true_weight(self) -> int:
        """E = 2^32 e^epsilon rounded down, every other value weighs 2^32: rounded down, the ratio stays below e^epsilon.

        Never below 2^32: the truth would then be the rarer report, and for a tiny epsilon that ratio is too large as well.
        """
        # 96 bits more: the bound is then the whole number itself, which a device in another language finds as well
        return max(exp_bounds(Fraction(self.epsilon), _BASE_BITS + 96)[0] >> 96, 1 << _BASE_BITS)

    @cached_property
    def truth(self) -> Fraction:
        """The probability of the true value."""
        return Fraction(self.true_weight, self.true_weight + ((self.k - 1) << _BASE_BITS))

    def pmf(self, value: int) -> NDArray[np.float64]:
        """The probability of every report, given the true value."""
        truth = self.truth
        law = np.full(self.k, float((1 - truth) / (self.k - 1)))
        law[self._value(value)] = float(truth)
        return law

    def release(self, value: int, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The reported value."""
        true = self._value(value)
        draw = below(self.true_weight + ((self.k - 1) << _BASE_BITS), noise)
        other = (draw - self.true_weight) >> _BASE_BITS
        return released(true if other < 0 else other + (other >= true), self.guarantee, noise)

    def release_many(self, values: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One report for each value; the guarantee is that of each value's user."""
        return released(self._report(self._values(values), noise), self.guarantee, noise)

    def _report(self, values: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        report = values.copy()
        lies = np.flatnonzero(~bernoulli(self.truth, values.size, noise))
        other = below_each(np.full(lies.size, self.k - 1, dtype=np.int64), noise)
        report[lies] = other + (other >= values[lies])  # the k - 1 values that are not the true one
        return report

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
