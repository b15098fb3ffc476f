"""Broken on purpose, never use: tempered slates with a number taken from the votes that has to be public."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit.twins.slates import clean
from tacit.guarantees import Guarantee
from tacit.mechanisms import TemperedSlate


@dataclass(frozen=True)
class _Tempered:
    real: TemperedSlate

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee


@dataclass(frozen=True)
class RangeFromVotes(_Tempered):
    """Takes the highest total for the end of the range and weighs votes so that the whole range is worth as many nats as ever."""

    name: ClassVar[str] = "range-from-the-votes"

    def pmf(self, votes: ArrayLike) -> NDArray[np.float64]:
        real = self.real
        seen = max(1.0, float(np.asarray(votes, dtype=np.float64).sum(axis=0).max(initial=0.0)))
        nats = real.theta * (real.high - real.low)
        return replace(real, high=real.low + seen, epsilon=nats / seen * real.votes_each).pmf(votes)


@dataclass(frozen=True)
class VotesEachFromVotes(_Tempered):
    """Takes the most votes of any user for the most that a user may have."""

    name: ClassVar[str] = "votes-each-from-the-votes"

    def pmf(self, votes: ArrayLike) -> NDArray[np.float64]:
        most = max(1, int(np.asarray(votes, dtype=np.float64).sum(axis=1).max(initial=0.0)))
        return replace(self.real, items_each=most).pmf(votes)


@dataclass(frozen=True)
class VotesNotCut(_Tempered):
    """Takes votes as they are: one of 7 counts seven times."""

    name: ClassVar[str] = "votes-not-cut"

    def pmf(self, votes: ArrayLike) -> NDArray[np.float64]:
        real = self.real
        totals = np.clip(clean(votes).sum(axis=0), real.low, real.high)
        weight = np.array([np.exp(real.theta * totals[list(slate)].sum()) for slate in real.outcomes()])
        return np.asarray(weight / weight.sum())  # of unrelated items
