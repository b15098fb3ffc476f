"""Replacements as X-Map publishes them: over a list of candidates that the records themselves decide. They promise nothing.

For comparison only; ``PrivateReplacement`` is the same draw over a public list. What is wrong: docs/proofs/published-x-map.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput
from tacit.guarantees import ONE_USER, Guarantee, Release, nothing
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers.choice import choose

PAGE = "published-x-map"
CANDIDATES_FROM_RECORDS = (
    "the records decide which items may be drawn: "
    "without the one user who links two items the chance falls from above 0 to 0"
)
PAID_ONCE = "one epsilon is counted for the draws of all source items"
_GLOBAL_SENSITIVITY = 2.0  # the whole range of X-SIM, from -1 to 1
_BLOCK = 1 << 18  # scores at a time


@dataclass(frozen=True)
class PublishedReplacement:
    """One target item for every source item, by e^(epsilon X-SIM / (2 * 2)), among the items whose X-SIM is defined.

    ``kept`` limits them to so many with the largest |X-SIM|, as the authors' program does; None takes all of them.
    """

    name: ClassVar[str] = "published-replacement"
    epsilon: float = 0.3
    kept: int | None = 10

    def __post_init__(self) -> None:
        keep(self, epsilon=positive("epsilon", self.epsilon))
        if self.kept is not None:
            keep(self, kept=whole("kept", self.kept, least=1))

    @property
    def guarantee(self) -> Guarantee:
        return nothing(ONE_USER, CANDIDATES_FROM_RECORDS, proof=PAGE).assuming(PAID_ONCE)

    @property
    def rate(self) -> float:
        return self.epsilon / (2.0 * _GLOBAL_SENSITIVITY)

    def laws(self, values: sparse.csr_array) -> sparse.csr_array:
        """The probability of every target item, for every source item; a row without candidates stays empty."""
        table = self._candidates(values)
        counts = np.diff(table.indptr)
        rows = np.repeat(np.arange(counts.size), counts)
        best = np.full(counts.size, -np.inf)
        np.maximum.at(best, rows, table.data)
        table.data = np.exp((table.data - best[rows]) * self.rate)
        total = np.bincount(rows, weights=table.data, minlength=counts.size)
        table.data /= total[rows]
        return table

    def release(self, values: sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """A target item (a column) for every source item (a row); -1 where X-SIM is defined for none."""
        table = self._candidates(values)
        counts = np.diff(table.indptr)
        chosen = np.full(counts.size, -1, dtype=np.int64)
        drawn = np.flatnonzero(counts)
        size = max(1, _BLOCK // max(1, int(counts.max(initial=0))))
        for start in range(0, drawn.size, size):
            rows = drawn[start : start + size]
            places = self._draw(table, rows, noise)
            chosen[rows] = table.indices[table.indptr[rows] + places]
        return released(chosen, self.guarantee, noise)

    def _draw(self, table: sparse.csr_array, rows: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        """The place of the drawn candidate in each row."""
        starts, counts = table.indptr[rows], np.diff(table.indptr)[rows]
        place = np.arange(int(counts.max()))
        real = place < counts[:, None]
        scores = np.where(real, table.data[np.where(real, starts[:, None] + place, 0)], -np.inf)
        behind = (scores.max(axis=1, keepdims=True) - scores) * self.rate
        return choose(behind, lambda row: exactly(behind[row]), noise)

    def _candidates(self, values: sparse.csr_array) -> sparse.csr_array:
        if not sparse.issparse(values) or values.ndim != 2:
            raise InvalidInput("X-SIM is a sparse table, source items x target items; what is not stored is undefined.")
        table = sparse.csr_array(values, dtype=np.float64, copy=True)
        table.sum_duplicates()
        if self.kept is None:
            return table
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        order = np.lexsort((table.indices, -np.abs(table.data), rows))  # ties go to the lower item
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size) - table.indptr[rows[order]]
        left = rank < self.kept
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows[left], minlength=table.shape[0]))])
        return sparse.csr_array((table.data[left], table.indices[left], starts), shape=table.shape)


def exactly(exponents: NDArray[np.float64]) -> Sequence[Fraction | None]:
    """Exponents as the rationals they are; None for an infinite one."""
    return [Fraction(x) if np.isfinite(x) else None for x in exponents.tolist()]
