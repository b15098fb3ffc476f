"""Broken on purpose, never use: selections on a device that take one step which the proof does not have."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins import no_promise
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import ClippedScores, Envelope, ExponentialMechanism, PermuteAndFlip, ScaledScores, TopResponse
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise


class HalfWidth(ClippedScores):
    """Takes the distance from the centre, half of the width, for the sensitivity."""

    @property
    def sensitivity(self) -> int:
        return self.steps // 2


@dataclass(frozen=True)
class NormalisedForOne:
    """Each of the d best gets what the one best would get, and the others what is left."""

    name: ClassVar[str] = "normalised-for-one-best"
    real: TopResponse

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        real = self.real
        best = float(TopResponse(real.m, 1, real.epsilon).pmf(np.arange(real.m)).max())
        is_best = real.pmf(raw) > 1.0 / real.m
        return np.where(is_best, best, (1.0 - real.d * best) / (real.m - real.d))


@dataclass(frozen=True)
class PrivateFilter:
    """Leaves out candidates whose score is not above 0 (seen before, blocked), and chooses well among the others."""

    name: ClassVar[str] = "private-filter"
    real: TopResponse

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        scores = np.asarray(raw, dtype=np.float64)
        kept = np.flatnonzero(scores > 0.0)
        if kept.size == 0:
            return self.real.pmf(scores)
        law = np.zeros(scores.size)
        law[kept] = TopResponse(kept.size, min(self.real.d, kept.size), self.real.epsilon).pmf(scores[kept])
        return law


@dataclass(frozen=True)
class FreshOnResend:
    """Draws again when a report has to be sent again. Outputs are both reports, one after the other."""

    name: ClassVar[str] = "fresh-choice-on-resend"
    real: TopResponse

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        law = self.real.pmf(raw)
        return np.outer(law, law).ravel()


@dataclass(frozen=True)
class PrivateAbstention:
    """Reports nothing where no score is above 0 ("nothing of interest"). The last output is silence."""

    name: ClassVar[str] = "private-abstention"
    real: TopResponse

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        silent = not (np.asarray(raw) > 0.0).any()
        return np.append(np.zeros(self.real.m), 1.0) if silent else np.append(self.real.pmf(raw), 0.0)


@dataclass(frozen=True)
class GreedyAlone:
    """States the right law and draws many decisions from it; a single one, which is what a device asks for, is the best."""

    name: ClassVar[str] = "greedy-alone"
    real: TopResponse

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        return self.real.pmf(raw)

    def release(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        return self.real.release(raw, noise).map(lambda _: int(np.argmax(raw))).under(no_promise(self.guarantee))

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        return self.real.release_many(raw, noise).under(no_promise(self.guarantee))


class FloorsFromScores(Envelope):
    """Takes the floor of a candidate that it likes from one that it does not."""

    name: ClassVar[str] = "floors-from-scores"

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        floors = [floor // 2 for floor in self.floors]
        floors[int(np.argmax(raw))] += sum(self.floors) - sum(floors)
        return Envelope(tuple(floors), self.epsilon).pmf(raw)


class EqualBoxes(PermuteAndFlip):
    """Solved for boxes that all lie at one place, used on boxes that do not."""

    @cached_property
    def rate(self) -> Fraction:
        boxes = cast(ClippedScores, self.scores)
        return PermuteAndFlip(ScaledScores(len(boxes.centres), boxes.steps), self.epsilon, calibrated=True).rate


class HighestBox(ExponentialMechanism):
    """Solved for the candidate whose box lies highest, which loses least."""

    @cached_property
    def rate(self) -> Fraction:
        boxes = cast(ClippedScores, self.scores)
        low, high = Fraction(self.epsilon) / 2, Fraction(4 * self.epsilon)
        gaps = np.array(boxes.lows) - max(boxes.lows)
        others = np.sort(gaps)[:-1] / boxes.steps
        for _ in range(60):
            middle = (low + high) / 2
            total = float(np.exp(float(middle) * others).sum())
            up = np.exp(float(middle))
            loss = np.log((1.0 + up * total) / (1.0 + total / up))
            low, high = (middle, high) if loss <= self.epsilon else (low, middle)
        return low / boxes.steps
