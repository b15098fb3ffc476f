"""Broken on purpose, never use: randomised response that leaves something untouched, or tells the truth too often."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees import ONE_PROFILE, Guarantee, pure
from tacit.mechanisms import RandomisedResponse


@dataclass(frozen=True, slots=True)
class BitVectorResponse:
    """``bits`` bits, each answered at epsilon / bits; ``flipped`` of them really are. All but the last: opendp/opendp#2708."""

    name: ClassVar[str] = "last-bit-never-flips"
    bits: int
    epsilon: float
    flipped: int

    @property
    def guarantee(self) -> Guarantee:
        return pure(self.epsilon, ONE_PROFILE)

    def pmf(self, value: int) -> NDArray[np.float64]:
        """The probability of every vector of bits, read as a number."""
        one_bit = RandomisedResponse(2, self.epsilon / self.bits)
        law = np.ones(1)
        for place in range(self.bits):
            bit = (value >> (self.bits - 1 - place)) & 1
            law = np.outer(law, one_bit.pmf(bit) if place < self.flipped else np.eye(2)[bit]).ravel()
        return law


@dataclass(frozen=True, slots=True)
class TotalTruth:
    """Takes the probability of a uniform redraw for that of a lie: the redraw may give the truth again (k values)."""

    name: ClassVar[str] = "redraw-taken-for-lie"
    k: int
    epsilon: float

    @property
    def guarantee(self) -> Guarantee:
        return pure(self.epsilon, ONE_PROFILE)

    def pmf(self, value: int) -> NDArray[np.float64]:
        lie = 1 - RandomisedResponse(self.k, self.epsilon).truth
        law = np.full(self.k, float(lie / self.k))
        law[value] = float(1 - lie + Fraction(lie, self.k))
        return law
