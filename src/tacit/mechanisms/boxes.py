"""Scores of one profile that are brought into public boxes, one for each candidate: scaled, or clipped around public scores.

Another profile may move every score anywhere in its box, up or down: the sensitivity is the full width, twice the distance
from the centre, and the scores are not monotone. No private number is refused, however odd: a refusal could be seen.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, Neighbours
from tacit.mechanisms.scores import MOST_STEPS, Scores, ScoreSource, candidate_scores

MOST_CANDIDATES = 10_000
_FARTHEST = 2.0**30  # centres at most so many widths from 0: the edges of a box keep 22 bits of its width
_LARGEST = sys.float_info.max


class Boxed(ScoreSource, Protocol):
    """A source whose scores lie in public boxes of one width, on one grid."""

    @property
    def lows(self) -> tuple[int, ...]:
        """The lower edge of every candidate's box, in grid steps; the upper one is ``sensitivity`` steps above it."""

    def among(self, left: Sequence[int]) -> "Boxed":
        """The same source for some of the candidates, given by their places."""


@dataclass(frozen=True)
class ScaledScores:
    """Scores of ``k`` candidates, scaled to (score - lowest) / (highest - lowest); all ones where all are equal.

    Lowest and highest are private, yet whatever they are the result lies in [0, 1] for every candidate: that is the box.
    A score that is no number counts as the lowest.
    """

    k: int
    steps: int = 1 << 20  # grid steps from the least score to the largest

    def __post_init__(self) -> None:
        keep(
            self,
            k=whole("k", self.k, least=1, most=MOST_CANDIDATES),
            steps=whole("steps", self.steps, least=1, most=MOST_STEPS),
        )

    @property
    def protects(self) -> Neighbours:
        """What the scores protect: one whole profile, replaced by any other."""
        return ONE_PROFILE

    @property
    def sensitivity(self) -> int:
        """The most, in grid steps, by which one score can differ between neighbours: the whole box."""
        return self.steps

    @property
    def monotone(self) -> bool:
        """False: another profile may move some scores up and others down."""
        return False

    @property
    def lows(self) -> tuple[int, ...]:
        """The least score of each candidate, in grid steps."""
        return (0,) * self.k

    def among(self, left: Sequence[int]) -> "ScaledScores":
        """The same box for these candidates alone, by their places."""
        return ScaledScores(len(left), self.steps)

    @np.errstate(all="ignore")  # whether something underflows is private: no setting of a caller makes it an error
    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The scores in grid steps, each row scaled to its own least and largest; what is no number counts as the least."""
        scores = _for(self.k, raw)
        np.clip(scores, -_LARGEST, _LARGEST, out=scores)  # what is no number stays so
        scores *= 0.5  # halves: the difference of two finite scores may overflow
        low = np.fmin.reduce(scores, axis=-1, keepdims=True)  # of those that are numbers
        width = np.fmax.reduce(scores, axis=-1, keepdims=True) - low
        flat = ~(width > 0.0)  # also where none is a number
        scores -= low
        scores /= np.where(flat, 1.0, width)  # from 0 to 1, both attained: rounding keeps the order
        scores *= self.steps
        return np.where(flat, self.steps, np.fmax(scores, 0.0).astype(np.int64))


@dataclass(frozen=True)
class ClippedScores:
    """Scores clipped to boxes of full width ``width`` around public centres, on a common grid of width / steps.

    Every box is anchored at its lower edge, so that rounding down never leaves it; the edges themselves are rounded to the
    grid, which moves a box by at most half a step and depends on public numbers alone. A score that is no number counts as
    its centre.
    """

    centres: tuple[float, ...]
    width: float
    steps: int = 1 << 20

    def __post_init__(self) -> None:
        keep(
            self,
            centres=_finite_centres(tuple(self.centres)),
            width=positive("width", self.width),
            steps=whole("steps", self.steps, least=1, most=MOST_STEPS),
        )
        whole("the number of centres", len(self.centres), least=1, most=MOST_CANDIDATES)
        farthest = max(abs(centre) for centre in self.centres)
        if not farthest / _FARTHEST <= self.width or not math.isfinite(2.0 * farthest + self.width):
            raise InvalidParameter("centres must lie within 2^30 widths of 0, and the edges of their boxes be finite.")
        low, _, span = self._edges
        if not (span > 0.0).all() or not np.isfinite(low).all():
            raise InvalidParameter(f"a width of {self.width!r} is too small for floats around these centres.")

    @property
    def protects(self) -> Neighbours:
        """What the scores protect: one whole profile, replaced by any other."""
        return ONE_PROFILE

    @property
    def sensitivity(self) -> int:
        """The most, in grid steps, by which one score can differ between neighbours: the whole box."""
        return self.steps

    @property
    def monotone(self) -> bool:
        """False: another profile may move some scores up and others down."""
        return False

    @cached_property
    def lows(self) -> tuple[int, ...]:
        """The least score of each candidate, in grid steps."""
        return tuple(self._lows.tolist())

    def among(self, left: Sequence[int]) -> "ClippedScores":
        """The same box for these candidates alone, by their places."""
        return ClippedScores(tuple(self.centres[place] for place in left), self.width, self.steps)

    @np.errstate(all="ignore")
    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The scores in grid steps, clipped to their boxes; what is no number counts as its centre."""
        scores = _for(len(self.centres), raw)
        low, high, span = self._edges
        scores = np.where(np.isnan(scores), self._centres, scores)
        np.clip(scores, low, high, out=scores)
        scores -= low
        scores /= span  # from 0 to 1: rounding keeps the order of x - low and high - low
        scores *= self.steps
        return self._lows + scores.astype(np.int64)

    @cached_property
    def _centres(self) -> NDArray[np.float64]:
        return np.array(self.centres)

    @cached_property
    def _edges(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        low, high = self._centres - self.width / 2.0, self._centres + self.width / 2.0
        return low, high, high - low

    @cached_property
    def _lows(self) -> NDArray[np.int64]:
        # at most 2^31 widths of 2^24 steps: 2^55
        steps: NDArray[np.float64] = np.rint((self._centres - self._centres.min()) / self.width * self.steps)
        return steps.astype(np.int64)


def _finite_centres(given: tuple[float, ...]) -> tuple[float, ...]:
    """Centres as finite floats; the usual case, plain floats, at once: boxes are made for every offer."""
    if all(type(centre) is float for centre in given) and all(map(math.isfinite, given)):
        return given
    return tuple(finite("a centre", centre) for centre in given)


def _for(k: int, raw: Scores) -> NDArray[np.float64]:
    scores = candidate_scores(raw)
    if scores.shape[-1] != k:
        raise InvalidInput(f"expected the scores of {k} candidates.")
    return scores
