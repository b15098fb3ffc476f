"""Private scores of candidates, and how far neighbouring inputs can move them.

A mechanism never takes a sensitivity as an argument: it follows from the clipping done here. Scores become whole numbers of grid
steps, so that all later arithmetic is exact.

``ScaledScores`` and ``ClippedScores`` bring the scores of one profile into public boxes, one for each candidate. Another
profile may move every score anywhere in its box, up or down, so the sensitivity is the full width of the box. They never refuse
a private number, because an error could be seen.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, Neighbours, Relation
from tacit.guarantees.guarantee import one_user
from tacit.mechanisms.inputs import real_array, real_table, whole_sums

MOST_STEPS = 1 << 24  # 2^24 steps of 2^24 users still fit an int64
MOST_CANDIDATES = 10_000
FEW = 128  # up to this many candidates a single decision is faster in plain Python than in arrays
_BLOCK = 1 << 14  # scores at a time
_FARTHEST = 2.0**30  # widths of a centre from 0, at most: the edges of a box then keep 22 bits of its width
_LARGEST = sys.float_info.max
_EMPTY = "there are no candidates: at least one is needed."

Scores: TypeAlias = ArrayLike | sparse.csr_array


class ScoreSource(Protocol):
    """Turns private input into whole-number scores with a known sensitivity."""

    @property
    def protects(self) -> Neighbours:
        """What the scores are computed from, and which two inputs are neighbours."""

    @property
    def sensitivity(self) -> int:
        """The most, in grid steps, by which one score can differ between neighbours."""

    @property
    def monotone(self) -> bool:
        """Whether neighbours move all scores the same way (then one factor of 2 is not needed)."""

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The scores in grid steps, clipped; the last axis runs over the candidates."""


class ProfileScoreSource:
    """What a score source of one profile states: ``steps`` is the width of the range that each score is clipped to."""

    __slots__ = ()
    steps: int

    @property
    def protects(self) -> Neighbours:
        """What the scores protect: one whole profile, replaced by any other."""
        return ONE_PROFILE

    @property
    def sensitivity(self) -> int:
        """The most, in grid steps, by which one score can differ between neighbours: the whole range."""
        return self.steps

    @property
    def monotone(self) -> bool:
        """False: another profile may move some scores up and others down."""
        return False


@dataclass(frozen=True, slots=True)
class ProfileScores(ProfileScoreSource):
    """Scores computed from one profile, each clipped to the public range [low, high].

    Another profile may move every score anywhere in the range, up or down: the sensitivity is the full width, and the scores are
    not monotone. Input: one score per candidate, or decisions x candidates, with a row for each user.
    """

    low: float
    high: float
    steps: int = 1 << 20  # grid steps from low to high

    def __post_init__(self) -> None:
        keep(
            self,
            low=finite("low", self.low),
            high=finite("high", self.high),
            steps=whole("steps", self.steps, least=1, most=MOST_STEPS),
        )
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise InvalidParameter(f"scores need low < high and a finite range, not [{self.low!r}, {self.high!r}].")

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The scores in grid steps above ``low``, clipped; the last axis runs over the candidates."""
        scores = candidate_scores(raw)
        if not np.isfinite(scores).all():
            raise InvalidInput("every score must be a finite number: replace missing scores before you select.")
        scaled = np.minimum(np.maximum(scores, self.low), self.high)
        scaled -= self.low  # anchored at the lower edge
        scaled /= self.high - self.low  # at most 1: rounding keeps the order of x - low and high - low
        scaled *= self.steps
        return scaled.astype(np.int64)  # rounded down to 0 .. steps


@dataclass(frozen=True, slots=True)
class VoteTotals:
    """Totals of votes: one row of votes per user, each vote clipped to [0, most] and rounded down to the grid.

    One user moves each total by at most ``most``. A user who is added or removed moves all totals the same way: they are monotone.
    Input: users x candidates, dense or sparse. With 0/1 votes the defaults count exactly.
    """

    most: float = 1.0
    steps: int = 1  # grid steps of one whole vote
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            most=positive("most", self.most),
            steps=whole("steps", self.steps, least=1, most=MOST_STEPS),
            relation=member("relation", Relation, self.relation),
        )

    @property
    def protects(self) -> Neighbours:
        """One user's votes, added or removed, or replaced, as ``relation`` says."""
        return one_user(self.relation)

    @property
    def sensitivity(self) -> int:
        """The most, in grid steps, by which one user's vote can move a total."""
        return self.steps

    @property
    def monotone(self) -> bool:
        """Whether a user moves all totals the same way: True if users are added or removed."""
        return self.relation is Relation.ADD_REMOVE

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The total votes of each candidate in grid steps; a vote that is not a number counts as 0."""
        votes = real_table(raw, "votes")
        if votes.shape[1] == 0:
            raise InvalidInput(_EMPTY)
        # not an error, which would reveal that one user's row is odd
        share = np.clip(np.nan_to_num(votes.data, nan=0.0), 0.0, self.most) / self.most
        return whole_sums(np.floor(share * self.steps).astype(np.int64), votes.indices, votes.shape[1])


def one_decision(source: ScoreSource, raw: Scores) -> NDArray[np.int64]:
    """The whole-number scores of a single decision, as one row."""
    integers = source.integers(raw)
    if integers.ndim != 1:
        raise InvalidInput("release takes one row of scores; for several rows use release_many.")
    return integers[None, :]


def many_decisions(source: ScoreSource, raw: ArrayLike) -> Iterator[NDArray[np.int64]]:
    """The whole-number scores of many decisions, one row each, in blocks that fit a processor's second-level cache."""
    scores = candidate_scores(raw)
    if scores.ndim != 2 or source.protects != ONE_PROFILE:
        raise InvalidInput(
            "release_many takes decisions x candidates; for one decision, or a table of votes, use release."
        )
    rows = max(1, _BLOCK // scores.shape[1])
    for start in range(0, max(1, len(scores)), rows):
        yield source.integers(scores[start : start + rows])


def candidate_scores(raw: ArrayLike) -> NDArray[np.float64]:
    """Scores as floats; the last axis runs over the candidates. Raises InvalidInput for a wrong shape or type."""
    values = real_array(raw, "scores")
    if values.ndim not in (1, 2):
        raise InvalidInput("scores must have one axis (candidates) or two (decisions or users, then candidates).")
    if values.shape[-1] == 0:
        raise InvalidInput(_EMPTY)
    return values


class BoxedScores(ScoreSource, Protocol):
    """A source whose scores lie in public boxes of one width, on one grid."""

    @property
    def lows(self) -> tuple[int, ...]:
        """The lower edge of every candidate's box, in grid steps; the upper one is ``sensitivity`` steps above it."""

    def among(self, left: Sequence[int]) -> "BoxedScores":
        """The same source for some of the candidates, given by their indices."""


@dataclass(frozen=True)
class ScaledScores(ProfileScoreSource):
    """Scores of ``k`` candidates, scaled to (score - lowest) / (highest - lowest); all ones if all are equal.

    Lowest and highest are private, but the result always lies in [0, 1] for every candidate: that is the box. A score that is not
    a number counts as the lowest.
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
    def lows(self) -> tuple[int, ...]:
        """The least score of each candidate, in grid steps."""
        return (0,) * self.k

    def among(self, left: Sequence[int]) -> "ScaledScores":
        """The same boxes for these candidates only, given by their indices."""
        return ScaledScores(len(left), self.steps)

    @np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The scores in grid steps, each row scaled to its own least and largest score."""
        scores = scores_of(self.k, raw)
        np.clip(scores, -_LARGEST, _LARGEST, out=scores)  # NaN stays NaN
        scores *= 0.5  # halves: the difference of two finite scores may overflow
        low = np.fmin.reduce(scores, axis=-1, keepdims=True)  # ignores NaN
        width = np.fmax.reduce(scores, axis=-1, keepdims=True) - low
        flat = ~(width > 0.0)  # also if all are NaN
        scores -= low
        scores /= np.where(flat, 1.0, width)  # from 0 to 1, both attained: rounding keeps the order
        scores *= self.steps
        return np.where(flat, self.steps, np.fmax(scores, 0.0).astype(np.int64))


@dataclass(frozen=True)
class ClippedScores(ProfileScoreSource):
    """Scores clipped to boxes of full width ``width`` around public centres, on a common grid of width / steps.

    Every box starts at its lower edge, so that rounding down never leaves it. The edges themselves are rounded to the grid, which
    moves a box by at most half a step and depends on public numbers only. A score that is not a number counts as its centre.
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
            raise InvalidParameter(
                "centres must lie within 2^30 widths of 0, and the edges of their boxes must be finite."
            )
        low, _, span = self._edges
        if not (span > 0.0).all() or not np.isfinite(low).all():
            raise InvalidParameter(f"a width of {self.width!r} is too small for floats around these centres.")

    @cached_property
    def lows(self) -> tuple[int, ...]:
        """The least score of each candidate, in grid steps."""
        return tuple(self._lows.tolist())

    def among(self, left: Sequence[int]) -> "ClippedScores":
        """The same boxes for these candidates only, given by their indices."""
        return ClippedScores(tuple(self.centres[candidate] for candidate in left), self.width, self.steps)

    @np.errstate(all="ignore")
    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The scores in grid steps, clipped to their boxes."""
        scores = scores_of(len(self.centres), raw)
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


def _finite_centres(centres: tuple[float, ...]) -> tuple[float, ...]:
    """Centres as finite floats, with a short cut for plain floats: every offer makes boxes."""
    if all(type(centre) is float for centre in centres) and all(map(math.isfinite, centres)):
        return centres
    return tuple(finite("a centre", centre) for centre in centres)


def scores_of(k: int, raw: Scores) -> NDArray[np.float64]:
    """``candidate_scores`` of exactly ``k`` candidates."""
    scores = candidate_scores(raw)
    if scores.shape[-1] != k:
        raise InvalidInput(f"expected the scores of {k} candidates.")
    return scores
