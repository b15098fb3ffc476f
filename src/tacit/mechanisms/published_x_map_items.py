"""Similar items as X-Map publishes them: k items drawn by similarity (PNSA), their similarities noised (PNCF), both scaled to
the similarity-based sensitivity. For comparison only: they promise nothing (docs/proofs/published-x-map.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive, probability, whole
from tacit.errors import InvalidInput
from tacit.guarantees import ONE_USER, Guarantee, Release, nothing
from tacit.mechanisms.arrays import real_array
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.published_x_map import PAGE, exactly
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.samplers.choice import choose
from tacit.mechanisms.similarity_sensitivity import centred, similarities

REASONS = (
    "noise is scaled to what this database's similarities change by, and that scale differs from one database to its neighbour",
    "the similarity-based sensitivity is below what one user can change",
    "one epsilon is counted for k similarities of every item, all of which one user moves at once",
    "the k-th similarity, the truncation and the items' means are used without noise",
)
_STEPS = 1 << 20  # of noise of scale 1
_BLOCK = 1 << 20  # similarities at a time


class NoisySimilarItems(NamedTuple):
    """For every item k others in the order they were drawn, padded with -1, and their noisy similarities."""

    items: NDArray[np.int32]
    cosine: NDArray[np.float64]


@dataclass(frozen=True)
class PublishedSimilarItems:
    """PNSA and PNCF with ``epsilon`` / 2 each. ``rho`` is the chance that the report's utility statements leave out.

    ``lowest`` is the least value of a similarity, for the cap of w: 0 as printed, -1 for one that may be negative. A candidate's
    sensitivity enters an exponent's denominator, where what lies below ``least`` is taken as that: the report divides by 0.
    """

    name: ClassVar[str] = "published-similar-items"
    k: int = 50
    epsilon: float = 0.8
    rho: float = 0.1
    lowest: float = 0.0
    least: float = 1e-3

    def __post_init__(self) -> None:
        keep(
            self,
            k=whole("k", self.k, least=1),
            epsilon=positive("epsilon", self.epsilon),
            rho=probability("rho", self.rho),
            lowest=finite("lowest", self.lowest),
            least=positive("least", self.least),
        )

    @property
    def guarantee(self) -> Guarantee:
        return nothing(ONE_USER, REASONS[0], proof=PAGE).assuming(*REASONS[1:])

    def w(self, kth: float, sensitivity: float, candidates: int) -> float:
        """min(Sim_k, (4 k SS / epsilon) ln(k (|v| - k) / rho)), with |v| the number of candidates; 0 where Sim_k is below
        ``lowest``: a negative w would raise what is drawn above Sim_k."""
        spread = 4.0 * self.k * max(sensitivity, 0.0) / self.epsilon
        left = candidates - self.k
        return max(0.0, min(kth - self.lowest, spread * math.log(self.k * left / self.rho))) if left > 0 else 0.0

    def exponents(self, similarity: ArrayLike, sensitivity: ArrayLike) -> NDArray[np.float64]:
        """epsilon s^ / (4 k SS_ij) with s^ = max(s, Sim_k - w), for every row; minus infinity for what is no candidate."""
        near, reach = self._tables(similarity, sensitivity)
        cut = np.array([self._cut(*rows) for rows in zip(near, reach, strict=True)])
        raised = np.where(np.isnan(near), -np.inf, np.maximum(near, cut[:, None]))
        found: NDArray[np.float64] = self.epsilon * raised / (4.0 * self.k * np.maximum(reach, self.least))
        return found

    def first(self, similarity: ArrayLike, sensitivity: ArrayLike) -> NDArray[np.float64]:
        """The law of the first draw of every row: for k = 1, the law of all that is drawn."""
        exponents = self.exponents(similarity, sensitivity)
        weight = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        law: NDArray[np.float64] = weight / weight.sum(axis=1, keepdims=True)
        return law

    def release(
        self, similarity: ArrayLike, sensitivity: ArrayLike, noise: Noise = SYSTEM_NOISE
    ) -> Release[NoisySimilarItems]:
        """For every row k of its candidates and their noisy similarities. A similarity of NaN marks what is no candidate."""
        near, reach = self._tables(similarity, sensitivity)
        rows = max(1, _BLOCK // near.shape[1])
        parts = [self._drawn(near[i : i + rows], reach[i : i + rows], noise) for i in range(0, len(near), rows)]
        items = np.concatenate(parts) if parts else np.empty((0, self.k), dtype=np.int64)
        place = np.maximum(items, 0)
        scale = np.maximum(np.take_along_axis(reach, place, axis=1), 0.0) / (self.epsilon / 2.0)
        # Laplace noise of scale 1 on a grid, times the scale: every pair has a scale of its own
        unit = discrete_laplace.sample(Fraction(_STEPS), items.size, noise).reshape(items.shape) / _STEPS
        noisy = np.where(items < 0, 0.0, np.take_along_axis(near, place, axis=1) + scale * unit)
        return released(NoisySimilarItems(items.astype(np.int32), noisy), self.guarantee, noise)

    def _drawn(self, near: NDArray[np.float64], reach: NDArray[np.float64], noise: Noise) -> NDArray[np.int64]:
        """k draws without replacement in every row; the same law as the k largest of exponents with Gumbel noise."""
        left = self.exponents(near, reach)
        chosen = np.full((len(left), self.k), -1, dtype=np.int64)
        for pick in range(min(self.k, left.shape[1])):
            rows = np.flatnonzero(np.isfinite(left).any(axis=1))
            if rows.size == 0:
                break
            behind = left[rows].max(axis=1, keepdims=True) - left[rows]
            picked = choose(behind, lambda row, b=behind: exactly(b[row]), noise)  # type: ignore[misc]
            chosen[rows, pick], left[rows, picked] = picked, -np.inf
        return chosen

    def _cut(self, near: NDArray[np.float64], reach: NDArray[np.float64]) -> float:
        """Sim_k - w of one row; below every similarity where there are no more than k candidates."""
        known = ~np.isnan(near)
        candidates = int(known.sum())
        if candidates <= self.k:
            return -math.inf
        kth = float(np.partition(near[known], candidates - self.k)[candidates - self.k])
        return kth - self.w(kth, float(reach[known].max()), candidates)

    def _tables(self, similarity: ArrayLike, sensitivity: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        near, reach = real_array(similarity, "similarities"), real_array(sensitivity, "sensitivities")
        if near.ndim != 2 or near.shape != reach.shape or near.shape[1] == 0:
            raise InvalidInput("similarities and sensitivities are tables of one shape: items x candidates.")
        return near, np.maximum(np.nan_to_num(reach, nan=0.0, neginf=0.0), 0.0)


def published_similar_items(
    ratings: sparse.csr_array, mechanism: PublishedSimilarItems, items: ArrayLike, noise: Noise = SYSTEM_NOISE
) -> Release[NoisySimilarItems]:
    """Similar items of ``items`` from ratings (users x items of one domain); candidates are the others rated by a common user."""
    z, wanted = centred(ratings), np.atleast_1d(np.asarray(items, dtype=np.int64))
    found = similarities(z, wanted)
    candidate = found.raters > 0
    candidate[np.arange(wanted.size), wanted] = False
    return mechanism.release(np.where(candidate, found.cosine, np.nan), found.sensitivity, noise)
