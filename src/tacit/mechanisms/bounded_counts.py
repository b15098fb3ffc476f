"""Counts of reports at public places, of each user the first few, plus discrete Laplace noise.

Proof: docs/proofs/bounded-counts.md.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput
from tacit.guarantees import ONE_USER, Guarantee, Release, pure
from tacit.mechanisms.drawn import released
from tacit.mechanisms.grid import GridVector
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_laplace

User: TypeAlias = str | bytes | int

_TEXTS, _WHOLE = (str, bytes), (int, np.integer)
NOWHERE = -1  # the place of a report that counts nowhere; it is one of its user's reports all the same


@dataclass(frozen=True)
class BoundedCounts:
    """How many reports (user, place) name each of the places 0 to ``dimension`` - 1: pure epsilon-DP for one user.

    Of each user the first ``reports_each`` reports count, at whichever places; all places are released, named or not. A user is
    a text, bytes or a whole number, so that equal users are told to be equal.
    """

    name: ClassVar[str] = "bounded-counts"
    dimension: int  # numbers in a release
    epsilon: float  # nats
    reports_each: int = 1

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            epsilon=positive("epsilon", self.epsilon),
            reports_each=whole("reports_each", self.reports_each, least=1, most=10**6),
        )
        discrete_laplace.require_drawable(self.scale_in_steps)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon, in nats, for one user's rows, added or removed."""
        return pure(self.epsilon, ONE_USER, proof=self.name)

    @cached_property
    def scale_in_steps(self) -> Fraction:
        """L1 sensitivity over epsilon: a user's reports add ``reports_each`` in all, wherever they are. A step is one report."""
        return Fraction(self.reports_each) / Fraction(self.epsilon)

    @property
    def sd(self) -> float:
        """Of the noise on one count: sqrt(2 r) / (1 - r) with r = e^(-1/scale)."""
        rate = float(1 / self.scale_in_steps)
        return math.sqrt(2.0) * math.exp(-rate / 2.0) / -math.expm1(-rate)

    def pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that one count, which truly is ``total``, is released as ``steps``."""
        return discrete_laplace.pmf(np.asarray(steps) - total, self.scale_in_steps)

    def totals(self, reports: Iterable[tuple[User, int]]) -> NDArray[np.int64]:
        """The exact counts. Private.

        A report that is odd counts for nothing, because refusing it would be an answer about it: one without a user, whom no cap
        could bound, or one at a place that there is not, which is one of its user's reports all the same.
        """
        if not isinstance(reports, Iterable) or isinstance(reports, str | bytes | Mapping):
            raise InvalidInput("reports must be a list of pairs: a user and a place.")
        counts, used = np.zeros(self.dimension, dtype=np.int64), dict[User, int]()
        for report in reports:
            user, place = _told(report)
            if user is None:
                continue
            before = used.get(user, 0)
            used[user] = before + 1
            if before < self.reports_each and 0 <= place < self.dimension:
                counts[place] += 1
        return counts

    def release(self, reports: Iterable[tuple[User, int]], noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy count of every place. Negative ones are kept: cutting them off would raise every sum of small counts."""
        noisy = self.totals(reports) + discrete_laplace.sample(self.scale_in_steps, self.dimension, noise)
        return released(GridVector(noisy, Fraction(1)), self.guarantee, noise)


def _told(report: Any) -> tuple[User | None, int]:
    """Whose report it is and where. A NaN as user would be a new user every time, so only what equals itself is one."""
    try:
        user, place = report
    except (TypeError, ValueError):
        return None, NOWHERE
    if not isinstance(place, _WHOLE) or isinstance(place, bool):
        place = NOWHERE
    if isinstance(user, _TEXTS):
        return user, int(place)
    return int(user) if isinstance(user, _WHOLE) else None, int(place)
