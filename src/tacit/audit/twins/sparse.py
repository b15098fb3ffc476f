"""Broken on purpose, never use: sparse vector with one of its three safeguards left out."""

from fractions import Fraction
from itertools import product
from typing import ClassVar

from tacit.mechanisms import SparseVector


class NoThresholdNoise(SparseVector):
    """The threshold is used as it is: every miss is then paid for anew."""

    name: ClassVar[str] = "threshold-without-noise"

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, 1 << 12), super().scales[1]  # noise of scale 2^-12 steps is 0 but once in e^4096


class NotScaledByHits(SparseVector):
    """Every answer gets the noise of a single hit, however many hits are allowed."""

    name: ClassVar[str] = "noise-not-scaled-by-hits"

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        for_threshold, for_answers = super().scales
        return for_threshold, for_answers / self.hits


class NeverStops(SparseVector):
    """Goes on answering after the last hit that was paid for."""

    name: ClassVar[str] = "never-stops"

    def outcomes(self, queries: int) -> list[tuple[bool, ...]]:
        return list(product((False, True), repeat=queries))
