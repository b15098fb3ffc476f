"""Where scores come from, and therefore how far one neighbouring step can move them.

A mechanism never takes a sensitivity as an argument: it follows from the clipping done here. Scores become whole numbers of
grid steps, so that all later arithmetic is exact. Scores that are scaled, or clipped around public ones: boxes.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, ONE_USER, ONE_USER_REPLACED, Neighbours, Relation
from tacit.mechanisms.arrays import real_array, real_table
from tacit.mechanisms.grid import whole_sums

MOST_STEPS = 1 << 24  # 2^24 steps of 2^24 users still fit an int64
_BLOCK = 1 << 14  # scores at a time
_EMPTY = "the candidate set is empty; at least one candidate is needed."

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


@dataclass(frozen=True, slots=True)
class ProfileScores:
    """Scores computed from one profile, each clipped to the public range [low, high].

    Another profile may move every score anywhere in the range, up or down: sensitivity is the full width, not monotone.
    Input: one score per candidate, or decisions x candidates where each row is another user's.
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

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The scores in grid steps above ``low``, clipped; the last axis runs over the candidates."""
        scores = candidate_scores(raw)
        if not np.isfinite(scores).all():
            raise InvalidInput("every score must be a finite number; replace missing scores before selecting.")
        scaled = np.minimum(np.maximum(scores, self.low), self.high)
        scaled -= self.low  # anchored at the lower edge
        scaled /= self.high - self.low  # at most 1: rounding keeps the order of x - low and high - low
        scaled *= self.steps
        return scaled.astype(np.int64)  # rounded down to 0 .. steps


@dataclass(frozen=True, slots=True)
class VoteTotals:
    """Totals of votes: one row of votes per user, each vote clipped to [0, most] and rounded down to the grid.

    One user moves each total by at most ``most``. Added or removed, she moves all of them the same way: monotone.
    Input: users x candidates, as an array or a sparse one. With 0/1 votes the defaults count exactly.
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
        return ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED

    @property
    def sensitivity(self) -> int:
        """The most, in grid steps, by which one user's vote can move a total."""
        return self.steps

    @property
    def monotone(self) -> bool:
        """Whether a user moves all totals the same way: so where she is added or removed."""
        return self.relation is Relation.ADD_REMOVE

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        """The total votes of each candidate in grid steps; a vote that is no number counts as none."""
        votes = real_table(raw, "votes")
        if votes.shape[1] == 0:
            raise InvalidInput(_EMPTY)
        # a vote that is not a number counts as none: refusing the table would tell that one user's row is odd
        share = np.clip(np.nan_to_num(votes.data, nan=0.0), 0.0, self.most) / self.most
        return whole_sums(np.floor(share * self.steps).astype(np.int64), votes.indices, votes.shape[1])


FEW = 128  # up to so many candidates a single decision is faster in plain Python than in arrays


def one_decision(source: ScoreSource, raw: Scores) -> NDArray[np.int64]:
    """The whole-number scores of a single decision, as one row."""
    integers = source.integers(raw)
    if integers.ndim != 1:
        raise InvalidInput("one decision takes one row of scores; for several rows use release_many.")
    return integers[None, :]


def many_decisions(source: ScoreSource, raw: ArrayLike) -> Iterator[NDArray[np.int64]]:
    """The whole-number scores of many decisions, one row each, in blocks that fit a processor's second-level cache."""
    scores = candidate_scores(raw)
    if scores.ndim != 2 or source.protects != ONE_PROFILE:
        raise InvalidInput(
            "many decisions take decisions x candidates; one decision, or a table of votes, goes to release."
        )
    rows = max(1, _BLOCK // scores.shape[1])
    for start in range(0, max(1, len(scores)), rows):
        yield source.integers(scores[start : start + rows])


def candidate_scores(raw: ArrayLike) -> NDArray[np.float64]:
    """Scores as floats whose last axis runs over the candidates; what is refused is refused for its shape or kind."""
    values = real_array(raw, "scores")
    if values.ndim not in (1, 2):
        raise InvalidInput("scores must have one axis (candidates) or two (decisions or users, then candidates).")
    if values.shape[-1] == 0:
        raise InvalidInput(_EMPTY)
    return values
