"""Single similarities of items, answered only where enough was rated (propose, test, release). Proof:
docs/proofs/tested-similarity.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Release, approximate
from tacit.guarantees.rounding import down
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.smooth_similarity import STEPS, checked_pairs, pair_totals, whole_cosine

_USER = STEPS**2  # what one user adds to a squared norm at most


class AnswerLaw(NamedTuple):
    """Of one pair: the chance that it is answered, and the centre of what is then released, in grid steps."""

    answered: float
    centre: int


@dataclass(frozen=True)
class SimilarityAfterTest:
    """The adjusted cosines of public ``pairs`` of items whose smaller squared norm is, surely enough, at least ``needed``.

    ``needed`` is in full users: a norm of needed * bound^2. ``share`` of epsilon goes to the test. All pairs together cost
    (epsilon, delta). Rows are users x items: ratings less the user's own mean, cut to [-bound, bound].
    """

    name: ClassVar[str] = "tested-similarity"
    items: int
    pairs: tuple[tuple[int, int], ...]
    epsilon: float  # nats
    delta: float  # a probability
    needed: int
    share: float = 0.2
    bound: float = 2.0
    grid: int = 1 << 20

    def __post_init__(self) -> None:
        keep(
            self,
            items=whole("items", self.items, least=2),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            needed=whole("needed", self.needed, least=1, most=1 << 30),
            share=probability("share", self.share),
            bound=positive("bound", self.bound),
            grid=whole("grid", self.grid, least=1, most=1 << 30),
        )
        keep(self, pairs=checked_pairs(self.pairs, self.items))
        if min(self.test_epsilon, self.noise_epsilon, self._each_delta) <= 0.0:
            raise InvalidParameter("epsilon or delta is too small for so many pairs: raise it, or list fewer pairs.")
        for scale in (self.test_scale, self.scale):
            discrete_laplace.require_drawable(scale)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all pairs together promise, tests included: (epsilon, delta) for one user's rows, added or removed."""
        return approximate(self.epsilon, self.delta, ONE_USER, proof=self.name)

    @cached_property
    def test_epsilon(self) -> float:
        """Of one pair's test."""
        return down(Fraction(self.epsilon) * Fraction(self.share) / len(self.pairs))

    @cached_property
    def noise_epsilon(self) -> float:
        """Of one pair's noise: what the test leaves."""
        return down(Fraction(self.epsilon) / len(self.pairs) - Fraction(self.test_epsilon))

    @cached_property
    def _each_delta(self) -> float:
        return down(Fraction(self.delta) / len(self.pairs))

    @cached_property
    def test_scale(self) -> Fraction:
        """Of the noise on a squared norm, in its whole steps: one user moves it by at most 2^30."""
        return _USER / Fraction(self.test_epsilon)

    @cached_property
    def threshold(self) -> int:
        """What a noisy norm has to reach: a norm below what is needed does so with probability at most delta."""
        margin = float(self.test_scale) * math.log(1.0 / self._each_delta) * (1.0 + 1e-9)
        return self.needed * _USER + math.ceil(margin)

    @cached_property
    def scale(self) -> Fraction:
        """Of the noise on a similarity, in grid steps: 2 / needed of 1, and a step for rounding, over epsilon."""
        return (Fraction(2 * self.grid, self.needed) + 1) / Fraction(self.noise_epsilon)

    def laws(self, rows: ArrayLike | sparse.csr_array) -> list[AnswerLaw]:
        """What is released of every pair. Not private."""
        return [
            AnswerLaw(self._chance(min(one, other)), whole_cosine(dot, one, other, self.grid))
            for dot, one, other in pair_totals(rows, self.items, self.bound, self.pairs)
        ]

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.float64]]:
        """The noisy similarity of every pair, cut to [-1, 1]; NaN where the test was not passed."""
        totals = pair_totals(rows, self.items, self.bound, self.pairs)
        norms = np.array([min(one, other) for _, one, other in totals], dtype=np.int64)
        centres = np.array([whole_cosine(*total, self.grid) for total in totals], dtype=np.int64)
        passed = norms + discrete_laplace.sample(self.test_scale, norms.size, noise) >= self.threshold
        # drawn for every pair, so that how much is drawn does not tell how many passed
        noisy = np.clip(centres + discrete_laplace.sample(self.scale, norms.size, noise), -self.grid, self.grid)
        return released(np.where(passed, noisy / self.grid, np.nan), self.guarantee, noise)

    def _chance(self, norm: int) -> float:
        return float(discrete_laplace.survival(np.array(self.threshold - norm), self.test_scale))
