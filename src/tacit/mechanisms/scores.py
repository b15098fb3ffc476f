"""Where scores come from, and therefore how far one neighbouring step can move them.

A mechanism never takes a sensitivity as an argument: it follows from the clipping done here. Scores become whole numbers of
grid steps, so that all later arithmetic is exact.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, ONE_USER, ONE_USER_REPLACED, Neighbours, Relation
from tacit.mechanisms.grid import whole_sums

_MOST_STEPS = 1 << 24  # 2^24 steps of 2^24 users still fit an int64
_BLOCK = 1 << 14  # scores at a time
_EMPTY = "the candidate set is empty; at least one candidate is needed."

Scores: TypeAlias = ArrayLike | sparse.csr_array


class ScoreSource(Protocol):
    """Turns private input into whole-number scores with a known sensitivity."""

    @property
    def protects(self) -> Neighbours: ...

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
    steps: int = 1 << 20

    def __post_init__(self) -> None:
        finite("low", self.low)
        finite("high", self.high)
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise InvalidParameter(f"scores need low < high and a finite range, not [{self.low!r}, {self.high!r}].")
        whole("steps", self.steps, least=1, most=_MOST_STEPS)

    @property
    def protects(self) -> Neighbours:
        return ONE_PROFILE

    @property
    def sensitivity(self) -> int:
        return self.steps

    @property
    def monotone(self) -> bool:
        return False

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        scores = _candidates(raw)
        if not np.isfinite(scores).all():
            raise InvalidInput("every score must be a finite number; replace missing scores before selecting.")
        scaled = np.minimum(np.maximum(scores, self.low), self.high)
        scaled -= self.low  # anchored at the lower edge
        scaled *= self.steps / (self.high - self.low)
        # rounded down to 0 .. steps: at most 2^24 steps, so that three roundings of a float cannot reach steps + 1
        return scaled.astype(np.int64)


@dataclass(frozen=True, slots=True)
class VoteTotals:
    """Totals of votes: one row of votes per user, each vote clipped to [0, most] and rounded down to the grid.

    One user moves each total by at most ``most``. Added or removed, she moves all of them the same way: monotone.
    Input: users x candidates, as an array or a sparse one. With 0/1 votes the defaults count exactly.
    """

    most: float = 1.0
    steps: int = 1
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        positive("most", self.most)
        whole("steps", self.steps, least=1, most=_MOST_STEPS)

    @property
    def protects(self) -> Neighbours:
        return ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED

    @property
    def sensitivity(self) -> int:
        return self.steps

    @property
    def monotone(self) -> bool:
        return self.relation is Relation.ADD_REMOVE

    def integers(self, raw: Scores) -> NDArray[np.int64]:
        votes = sparse.csr_array(raw if sparse.issparse(raw) else _table(raw))
        if votes.shape[1] == 0:
            raise InvalidInput(_EMPTY)
        if not votes.has_canonical_format:
            votes = votes.copy()  # the caller's table stays as it is
            votes.sum_duplicates()
        # a vote that is not a number counts as none: refusing the table would tell that one user's row is odd
        share = np.clip(np.nan_to_num(votes.data.astype(np.float64), nan=0.0), 0.0, self.most) / self.most
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
    scores = _candidates(raw)
    if scores.ndim != 2 or not isinstance(source, ProfileScores):
        raise InvalidInput(
            "many decisions take decisions x candidates; one decision, or a table of votes, goes to release."
        )
    rows = max(1, _BLOCK // scores.shape[1])
    for start in range(0, max(1, scores.shape[0]), rows):
        yield source.integers(scores[start : start + rows])


def _table(raw: ArrayLike) -> NDArray[np.float64]:
    votes = _candidates(raw)
    if votes.ndim != 2:
        raise InvalidInput("votes must be users x candidates, one row for each user.")
    return votes


def _candidates(raw: ArrayLike) -> NDArray[np.float64]:
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("scores must be an array of numbers.") from None
    if values.ndim not in (1, 2):
        raise InvalidInput("scores must have one axis (candidates) or two (decisions or users, then candidates).")
    if values.shape[-1] == 0:
        raise InvalidInput(_EMPTY)
    return values
