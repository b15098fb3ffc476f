"""Broken on purpose, never use: replacements and similar items as X-Map publishes them, claiming the epsilon it claims."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.mechanisms import PrivateReplacement
from tacit.mechanisms.x_map import PublishedReplacement, PublishedSimilarItems, printed_sensitivity, similarities


@dataclass(frozen=True)
class CandidatesFromRecords:
    """One draw among the candidates whose score is defined, or the ``kept`` largest of them."""

    real: PrivateReplacement
    kept: int | None = None

    @property
    def name(self) -> str:
        return "candidates-with-a-similarity" if self.kept is None else "candidates-of-the-largest-similarities"

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        row = np.asarray(raw, dtype=np.float64).ravel()
        known = np.flatnonzero(~np.isnan(row))
        table = sparse.csr_array((row[known], (np.zeros_like(known), known)), shape=(1, row.size))
        return np.asarray(PublishedReplacement(self.real.epsilon, self.kept).laws(table).toarray()[0])


@dataclass(frozen=True)
class SignedScores:
    """Scores from -1 to 1 at the rate of scores from 0 to 1."""

    name: ClassVar[str] = "signed-scores-at-half-their-range"
    real: PrivateReplacement

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        weight = np.exp(self.real.each / 2.0 * np.clip(np.asarray(raw, dtype=np.float64).ravel(), -1.0, 1.0))
        law: NDArray[np.float64] = weight / weight.sum()
        return law


@dataclass(frozen=True)
class RedrawnReplacement:
    """Draws again when the replacements are asked for again. Outputs are both tables."""

    name: ClassVar[str] = "redrawn-replacement"
    real: PrivateReplacement

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def pmf(self, raw: ArrayLike) -> NDArray[np.float64]:
        law = self.real.pmf(raw)
        return np.outer(law, law).ravel()


@dataclass(frozen=True)
class PrintedScale:
    """The similarity of two items plus Laplace noise of scale SS / (epsilon / 2), SS as the technical report prints it.

    Rows are ratings of the two items, already centred. ``generous``: of two neighbours both are given the scale of the larger
    one, as if it were public; otherwise each has its own.
    """

    name: str
    generous: bool = False
    epsilon: float = 0.8

    @property
    def guarantee(self) -> Guarantee:
        return pure(self.epsilon / 2.0, ONE_USER)

    def law(self, rows: ArrayLike) -> tuple[float, float]:
        """Centre and scale."""
        table = sparse.csr_array(np.asarray(rows, dtype=np.float64))
        printed = max(printed_sensitivity(table, 0, 1), 0.0)
        return float(similarities(table, [0]).cosine[0, 1]), printed / (self.epsilon / 2.0)

    def loss(self, larger: ArrayLike, smaller: ArrayLike) -> float:
        """The largest loss over all outputs, either way: unbounded where the scales differ."""
        (here, scale), (there, other) = self.law(larger), self.law(smaller)
        if scale == 0.0 or not (self.generous or math.isclose(scale, other, rel_tol=1e-9)):
            return 0.0 if here == there and scale == other else math.inf
        return abs(here - there) / scale

    def loss_at(self, output: float, larger: ArrayLike, smaller: ArrayLike) -> float:
        """The loss if ``output`` is released, each table at its own scale."""
        first, second = (
            -math.log(2.0 * scale) - abs(output - centre) / scale for centre, scale in map(self.law, (larger, smaller))
        )
        return abs(first - second)


@dataclass(frozen=True)
class PrintedRate:
    """The item most similar to item 0, drawn at a rate that is scaled to this very database (k = 1). Rows are centred."""

    name: ClassVar[str] = "rate-by-the-printed-sensitivity"
    epsilon: float = 0.8

    @property
    def guarantee(self) -> Guarantee:
        return pure(self.epsilon / 2.0, ONE_USER)

    def pmf(self, rows: ArrayLike) -> NDArray[np.float64]:
        found = similarities(sparse.csr_array(np.asarray(rows, dtype=np.float64)), [0])
        law = PublishedSimilarItems(1, self.epsilon).first(found.cosine[:, 1:], found.sensitivity[:, 1:])
        return np.asarray(law[0])
