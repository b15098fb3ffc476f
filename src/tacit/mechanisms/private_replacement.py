"""Private replacement: for every item of a public list of source items one target item, drawn from a public list of candidates
with probability proportional to e^(epsilon_i score / 2). Proof: docs/proofs/private-replacement.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Release
from tacit.guarantees.rounding import down, sqrt_down, up
from tacit.guarantees.zcdp import rho_for
from tacit.mechanisms.arrays import real_table
from tacit.mechanisms.drawn import released
from tacit.mechanisms.exponential import gumbel_choice
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.scores import MOST_STEPS

Table: TypeAlias = ArrayLike | sparse.csr_array

PUBLIC_LISTS = "the list of source items and the list of candidates are public"
_BLOCK = 1 << 18  # scores at a time
_MOST_OUTCOMES = 1 << 18


@dataclass(frozen=True)
class PrivateReplacement:
    """Draws, for each of ``draws`` source items, one of ``candidates`` target items. ``epsilon`` is for all draws together.

    Scores are similarities, cut to [0, 1]; what is undefined counts as 0. With a ``delta`` the draws may be added up as zCDP,
    and are wherever that leaves more for each of them.
    """

    name: ClassVar[str] = "private-replacement"
    candidates: int
    draws: int
    epsilon: float  # nats
    delta: float = 0.0  # a probability
    steps: int = 1 << 20  # grid steps of the whole range of scores

    def __post_init__(self) -> None:
        keep(
            self,
            candidates=whole("candidates", self.candidates, least=1),
            draws=whole("draws", self.draws, least=1),
            epsilon=positive("epsilon", self.epsilon),
            steps=whole("steps", self.steps, least=1, most=MOST_STEPS),
        )
        if self.delta != 0.0 or isinstance(self.delta, bool):
            keep(self, delta=probability("delta", self.delta))
        keep(self, delta=float(self.delta))
        if self.each == 0.0:
            raise InvalidParameter("epsilon is too small for so many draws: raise it, or list fewer source items.")

    @cached_property
    def each(self) -> float:
        """The epsilon of one draw, rounded down: an equal share of epsilon, or of the rho that (epsilon, delta) affords."""
        return max(self._share, self._share_of_rho)

    @property
    def _share(self) -> float:
        return down(Fraction(self.epsilon) / self.draws)

    @cached_property
    def _share_of_rho(self) -> float:
        """sqrt(8 rho / draws): a draw of range epsilon_i is epsilon_i^2 / 8 zCDP. 0 without a delta."""
        if self.delta == 0.0:
            return 0.0
        return sqrt_down(8 * Fraction(rho_for(self.epsilon, self.delta)) / self.draws)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Of all draws together; pure where the plain sum of the epsilons is what pays, whatever delta was offered."""
        delta = self.delta if self._share_of_rho > self._share else 0.0
        if self.draws == 1 and delta == 0.0:
            loss = Loss(LossKind.BOUNDED_RANGE, self.epsilon)
        else:
            loss = Loss(LossKind.ZCDP, up(self.draws * Fraction(self.each) ** 2 / 8))
        return Guarantee(
            self.epsilon, ONE_USER, delta=delta, proof=self.name, loss=loss, assumes=frozenset({PUBLIC_LISTS})
        )

    @cached_property
    def rate(self) -> Fraction:
        """The exponent of one grid step. The 2 stays: one user may raise the score of one candidate and lower another's."""
        return Fraction(self.each) / (2 * self.steps)

    def outcomes(self) -> list[tuple[int, ...]]:
        """All tables of replacements, in the order of ``pmf``."""
        if self.candidates**self.draws > _MOST_OUTCOMES:
            raise InvalidParameter(f"only up to {_MOST_OUTCOMES} tables can be listed; this is for small cases.")
        return list(product(range(self.candidates), repeat=self.draws))

    def laws(self, scores: Table) -> NDArray[np.float64]:
        """The probability of every candidate, for every source item: draws x candidates."""
        return np.concatenate([_softmax(block, float(self.rate)) for block in self._blocks(scores)])

    def pmf(self, scores: Table) -> NDArray[np.float64]:
        """The probability of every table of replacements; for few draws and candidates."""
        laws = self.laws(scores)
        return np.array([np.prod(laws[np.arange(self.draws), table]) for table in np.array(self.outcomes())])

    def release(self, scores: Table, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """For every source item the place of its replacement in the list of candidates. Draw once and keep it.

        ``scores`` is draws x candidates, dense or sparse. Any score at all is taken: what is no number counts as 0.
        """
        chosen = np.concatenate([gumbel_choice(block, self.rate, noise) for block in self._blocks(scores)])
        return released(chosen, self.guarantee, noise)

    def _blocks(self, scores: Table) -> Iterator[NDArray[np.int64]]:
        """The scores in whole grid steps from 0 to ``steps``, some rows at a time."""
        table = real_table(scores, "scores", self.candidates)
        if table.shape != (self.draws, self.candidates):
            raise InvalidInput(
                f"expected {self.draws} x {self.candidates} scores: a row for each source item, a column for each candidate."
            )
        # the width of [0, 1] is the sensitivity, so nothing that a score was computed from, or how, can exceed it
        table.data = np.floor(np.clip(np.nan_to_num(table.data, nan=0.0), 0.0, 1.0) * self.steps)
        rows = max(1, _BLOCK // self.candidates)
        for start in range(0, self.draws, rows):
            yield table[start : start + rows].toarray().astype(np.int64)


def _softmax(integers: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    weight = np.exp((integers - integers.max(axis=1, keepdims=True)) * rate)
    law: NDArray[np.float64] = weight / weight.sum(axis=1, keepdims=True)
    return law
