"""Replacements of source items by target items: private ones, and X-Map's published ones for comparison.

``PrivateReplacement`` draws one target item for every item of a public list of source items, from a public list of candidates, with
probability proportional to e^(epsilon_i score / 2) (docs/proofs/private-replacement.md).

``PublishedReplacement`` and ``PublishedSimilarItems`` follow the X-Map report, and promise nothing
(docs/proofs/published-x-map.md). Published replacements are drawn from candidates that the records themselves decide. Published
similar items are drawn by similarity (PNSA), with noise on their similarities (PNCF), both scaled to the similarity-based
sensitivity of Theorem 2. With z the ratings less their user's mean, P = z_i . z_j, and primes for "without user x", that
sensitivity is

    SS_ij = max( max_x z_xi z_xj / (|z'_i| |z'_j|),  max_x ( P / (|z'_i| |z'_j|) - P / (|z_i| |z_j|) ) ),   x over co-raters.

It is a number of one database, and not even a bound on how far that database's similarity can change. Nothing that is scaled by
it is private.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Release, nothing
from tacit.guarantees.arithmetic import down, sqrt_down, up
from tacit.guarantees.concentrated import rho_for
from tacit.mechanisms.inputs import real_array, real_table
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.subsets import choose
from tacit.mechanisms.scores import MOST_STEPS
from tacit.mechanisms.selection import gumbel_choice, softmax

Table: TypeAlias = ArrayLike | sparse.csr_array

PUBLIC_LISTS = "the list of source items and the list of candidates are public"
_BLOCK = 1 << 18  # scores at a time
_MOST_OUTCOMES = 1 << 18


@dataclass(frozen=True)
class PrivateReplacement:
    """Draws, for each of ``draws`` source items, one of ``candidates`` target items. ``epsilon`` is for all draws together.

    Scores are similarities, cut to [0, 1]; an undefined score counts as 0. With a ``delta`` the draws are added up as zCDP if that
    leaves more epsilon for each of them.
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
            raise InvalidParameter("epsilon is too small for so many draws: raise epsilon, or list fewer source items.")

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
        """The guarantee of all draws together. It is pure, without ``delta``, if the plain sum of the epsilons leaves more."""
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
        """The exponent of one grid step. The factor 2 stays: one user may raise the score of one candidate and lower another's."""
        return Fraction(self.each) / (2 * self.steps)

    def outcomes(self) -> list[tuple[int, ...]]:
        """All tables of replacements, in the order of ``pmf``."""
        if self.candidates**self.draws > _MOST_OUTCOMES:
            raise InvalidParameter(f"at most {_MOST_OUTCOMES} tables can be listed: choose fewer draws or candidates.")
        return list(product(range(self.candidates), repeat=self.draws))

    def laws(self, scores: Table) -> NDArray[np.float64]:
        """The probability of every candidate, for every source item: draws x candidates."""
        return np.concatenate([softmax(block, self.rate) for block in self._blocks(scores)])

    def pmf(self, scores: Table) -> NDArray[np.float64]:
        """The probability of every table of replacements; for few draws and candidates."""
        laws = self.laws(scores)
        return np.array([np.prod(laws[np.arange(self.draws), table]) for table in np.array(self.outcomes())])

    def release(self, scores: Table, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """The index of each source item's replacement in the list of candidates. Draw once, and keep it.

        ``scores`` is draws x candidates, dense or sparse. No score is refused: a score that is not a number counts as 0.
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
        # the width of [0, 1] is the sensitivity, however a score was computed
        table.data = np.floor(np.clip(np.nan_to_num(table.data, nan=0.0), 0.0, 1.0) * self.steps)
        rows = max(1, _BLOCK // self.candidates)
        for start in range(0, self.draws, rows):
            yield table[start : start + rows].toarray().astype(np.int64)


PAGE = "published-x-map"
CANDIDATES_FROM_RECORDS = (
    "the records decide which items may be drawn: "
    "without the one user who links two items the chance falls from above 0 to 0"
)
PAID_ONCE = "one epsilon is counted for the draws of all source items"
_GLOBAL_SENSITIVITY = 2.0  # the whole range of X-SIM, from -1 to 1


@dataclass(frozen=True)
class PublishedReplacement:
    """One target item for every source item, by e^(epsilon X-SIM / (2 * 2)), among the items whose X-SIM is defined.

    ``kept`` limits the candidates to that many with the largest |X-SIM|, as the authors' program does; None takes all.
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
        """The probability of every target item, for every source item. A row without candidates is empty."""
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
        """A target item (a column) for every source item (a row); -1 if X-SIM is defined for no target item."""
        table = self._candidates(values)
        counts = np.diff(table.indptr)
        chosen = np.full(counts.size, -1, dtype=np.int64)
        drawn = np.flatnonzero(counts)
        size = max(1, _BLOCK // max(1, int(counts.max(initial=0))))
        for start in range(0, drawn.size, size):
            rows = drawn[start : start + size]
            chosen[rows] = table.indices[table.indptr[rows] + self._draw(table, rows, noise)]
        return released(chosen, self.guarantee, noise)

    def _draw(self, table: sparse.csr_array, rows: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        """The position of the drawn candidate in each row."""
        starts, counts = table.indptr[rows], np.diff(table.indptr)[rows]
        position = np.arange(int(counts.max()))
        real = position < counts[:, None]
        scores = np.where(real, table.data[np.where(real, starts[:, None] + position, 0)], -np.inf)
        behind = (scores.max(axis=1, keepdims=True) - scores) * self.rate
        return choose(behind, lambda row: exactly(behind[row]), noise)

    def _candidates(self, values: sparse.csr_array) -> sparse.csr_array:
        if not sparse.issparse(values) or values.ndim != 2:
            raise InvalidInput(
                "X-SIM must be a sparse table, source items x target items; cells that are not stored are undefined."
            )
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
    """Exponents as exact fractions; None for an infinite one."""
    return [Fraction(x) if np.isfinite(x) else None for x in exponents.tolist()]


class Similarities(NamedTuple):
    """Adjusted cosines of some items (rows) with all items (columns), their printed sensitivities, and how many rated both."""

    cosine: NDArray[np.float64]
    sensitivity: NDArray[np.float64]
    raters: NDArray[np.int64]


def centred(ratings: sparse.csr_array) -> sparse.csr_array:
    """Ratings less their user's mean; a rating that equals it stays, as a 0."""
    table = sparse.csr_array(ratings, dtype=np.float64, copy=True)
    counts = np.diff(table.indptr)
    sums = np.bincount(np.repeat(np.arange(counts.size), counts), weights=table.data, minlength=counts.size)
    table.data -= np.repeat(sums / np.maximum(counts, 1), counts)
    return table


@np.errstate(all="ignore")  # a norm without its only rater is 0
def similarities(z: sparse.csr_array, items: ArrayLike) -> Similarities:
    """Adjusted cosines and printed sensitivities of ``items`` with every item, from centred ratings (users x items).

    The sensitivity is as printed, so it may be negative. If nobody rated both items it is minus infinity. If an item has no norm
    without x, its similarity becomes 0, and the change |s| replaces both terms, which the report leaves undefined.
    """
    table, wanted = _checked(z), np.atleast_1d(np.asarray(items, dtype=np.int64))
    by_item = table.tocsc()
    squares = np.bincount(table.indices, weights=table.data**2, minlength=table.shape[1]).astype(np.float64)
    shape = (wanted.size, table.shape[1])
    result = Similarities(np.zeros(shape), np.full(shape, -np.inf), np.zeros(shape, dtype=np.int64))
    for row, item in enumerate(wanted):
        part = slice(by_item.indptr[item], by_item.indptr[item + 1])
        if part.start < part.stop:
            raters, own = by_item.indices[part], by_item.data[part]
            _fill(result, row, sparse.csc_array(table[raters]), own, squares, int(item))
    return result


def printed_sensitivity(z: sparse.csr_array, first: int, second: int) -> float:
    """The similarity-based sensitivity of one pair, as printed."""
    return float(similarities(z, [first]).sensitivity[0, second])


def local_sensitivity(z: sparse.csr_array, first: int, second: int) -> float:
    """How far one pair's adjusted cosine really changes, at most, if any one user is removed."""
    left, right = (_checked(z)[:, [item]].toarray().ravel() for item in (first, second))
    here = _cosine(left @ right, left @ left, right @ right)
    without = _cosine(left @ right - left * right, left @ left - left**2, right @ right - right**2)
    return float(np.abs(here - without).max(initial=0.0))


def _fill(
    result: Similarities,
    row: int,
    co: sparse.csc_array,
    own: NDArray[np.float64],
    squares: NDArray[np.float64],
    item: int,
) -> None:
    """One row of the result: ``co`` holds all ratings of the raters of the item, ``own`` their ratings of it."""
    counts = np.diff(co.indptr)
    columns = np.flatnonzero(counts)
    starts, column = co.indptr[:-1][columns], np.repeat(np.arange(counts.size), counts)
    item_rating = own[co.indices]  # of the user who gave each rating of ``co``
    product = item_rating * co.data
    dot = np.add.reduceat(product, starts)
    norms = np.sqrt(squares[item] * squares[columns])
    cosine = np.where(norms > 0.0, dot / norms, 0.0)
    # 1 / (|z'_i| |z'_j|) for every co-rater; rounding may leave a square slightly off 0
    inverse = 1.0 / np.sqrt(_rest(squares[item], item_rating) * _rest(squares[column], co.data))
    undefined = np.maximum.reduceat(np.isinf(inverse), starts)
    finite = np.where(np.isinf(inverse), 0.0, inverse)
    first = np.maximum.reduceat(np.where(np.isinf(inverse), -np.inf, product * finite), starts)
    largest = np.maximum.reduceat(np.where(np.isinf(inverse), -np.inf, inverse), starts)
    smallest = np.minimum.reduceat(inverse, starts)
    second = np.where(dot > 0.0, dot * largest, np.where(dot < 0.0, dot * smallest, 0.0)) - cosine
    second = np.where(np.isinf(largest), -np.inf, second)  # no co-rater leaves both norms above 0
    printed = np.maximum(np.maximum(first, second), np.where(undefined, np.abs(cosine), -np.inf))
    result.cosine[row, columns], result.sensitivity[row, columns] = cosine, printed
    result.raters[row, columns] = counts[columns]


def _rest(square: NDArray[np.float64] | float, value: NDArray[np.float64]) -> NDArray[np.float64]:
    rest = square - value**2
    return np.where(rest > 1e-12 * square, rest, 0.0)


def _cosine(dot: ArrayLike, left: ArrayLike, right: ArrayLike) -> NDArray[np.float64]:
    squares = np.maximum(np.asarray(left, dtype=np.float64), 0.0) * np.maximum(np.asarray(right, dtype=np.float64), 0.0)
    cosine = np.asarray(dot, dtype=np.float64) / np.sqrt(np.maximum(squares, 1e-18))
    return np.asarray(np.where(squares > 1e-18, cosine, 0.0), dtype=np.float64)


def _checked(z: sparse.csr_array) -> sparse.csr_array:
    if not sparse.issparse(z) or z.ndim != 2:
        raise InvalidInput("centred ratings must be a sparse table, users x items.")
    return sparse.csr_array(z, dtype=np.float64)


REASONS = (
    "noise is scaled to what this database's similarities change by, and that scale differs from one database to its neighbour",
    "the similarity-based sensitivity is below what one user can change",
    "one epsilon is counted for k similarities of every item, all of which one user moves at once",
    "the k-th similarity, the truncation and the items' means are used without noise",
)
_STEPS = 1 << 20  # of noise of scale 1
_SIMILARITIES = 1 << 20  # at a time


class NoisySimilarItems(NamedTuple):
    """k other items of every item, in the order they were drawn and padded with -1, and their noisy similarities."""

    items: NDArray[np.int32]
    cosine: NDArray[np.float64]


@dataclass(frozen=True)
class PublishedSimilarItems:
    """PNSA and PNCF with ``epsilon`` / 2 each. ``rho`` is the probability with which the report's utility statements may fail.

    ``lowest`` is the least value of a similarity, for the cap of w: 0 as printed, -1 if similarities may be negative. A candidate's
    sensitivity is in the denominator of an exponent; below ``least`` it counts as ``least``, where the report divides by 0.
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
        """min(Sim_k, (4 k SS / epsilon) ln(k (|v| - k) / rho)), with |v| the number of candidates.

        It is 0 if Sim_k is below ``lowest``: a negative w would raise what is drawn above Sim_k.
        """
        spread = 4.0 * self.k * max(sensitivity, 0.0) / self.epsilon
        left = candidates - self.k
        return max(0.0, min(kth - self.lowest, spread * math.log(self.k * left / self.rho))) if left > 0 else 0.0

    def exponents(self, similarity: ArrayLike, sensitivity: ArrayLike) -> NDArray[np.float64]:
        """epsilon s^ / (4 k SS_ij) with s^ = max(s, Sim_k - w), for every row; minus infinity for an item that is no candidate."""
        near, reach = self._tables(similarity, sensitivity)
        cut = np.array([self._least_similarity(*rows) for rows in zip(near, reach, strict=True)])
        raised = np.where(np.isnan(near), -np.inf, np.maximum(near, cut[:, None]))
        return np.asarray(self.epsilon * raised / (4.0 * self.k * np.maximum(reach, self.least)), dtype=np.float64)

    def first(self, similarity: ArrayLike, sensitivity: ArrayLike) -> NDArray[np.float64]:
        """The law of the first draw of every row: for k = 1, the law of all that is drawn."""
        return softmax(self.exponents(similarity, sensitivity))

    def release(
        self, similarity: ArrayLike, sensitivity: ArrayLike, noise: Noise = SYSTEM_NOISE
    ) -> Release[NoisySimilarItems]:
        """k candidates of every row and their noisy similarities. NaN marks an item that is not a candidate."""
        near, reach = self._tables(similarity, sensitivity)
        rows = max(1, _SIMILARITIES // near.shape[1])
        parts = [self._draw_items(near[i : i + rows], reach[i : i + rows], noise) for i in range(0, len(near), rows)]
        items = np.concatenate(parts) if parts else np.empty((0, self.k), dtype=np.int64)
        column = np.maximum(items, 0)  # -1, no item, counts below
        scale = np.maximum(np.take_along_axis(reach, column, axis=1), 0.0) / (self.epsilon / 2.0)
        # Laplace noise of scale 1 on a grid, times the scale of each pair
        unit = integers.sample_discrete_laplace(Fraction(_STEPS), items.size, noise).reshape(items.shape) / _STEPS
        noisy = np.where(items < 0, 0.0, np.take_along_axis(near, column, axis=1) + scale * unit)
        return released(NoisySimilarItems(items.astype(np.int32), noisy), self.guarantee, noise)

    def _draw_items(self, near: NDArray[np.float64], reach: NDArray[np.float64], noise: Noise) -> NDArray[np.int64]:
        """k draws without replacement in every row, with the law of the k largest exponents after Gumbel noise."""
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

    def _least_similarity(self, near: NDArray[np.float64], reach: NDArray[np.float64]) -> float:
        """Sim_k - w of one row; minus infinity if there are at most k candidates."""
        known = ~np.isnan(near)
        candidates = int(known.sum())
        if candidates <= self.k:
            return -math.inf
        kth = float(np.partition(near[known], candidates - self.k)[candidates - self.k])
        return kth - self.w(kth, float(reach[known].max()), candidates)

    def _tables(self, similarity: ArrayLike, sensitivity: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        near, reach = real_array(similarity, "similarities"), real_array(sensitivity, "sensitivities")
        if near.ndim != 2 or near.shape != reach.shape or near.shape[1] == 0:
            raise InvalidInput("similarities and sensitivities must be tables of the same shape: items x candidates.")
        return near, np.maximum(np.nan_to_num(reach, nan=0.0, neginf=0.0), 0.0)


def published_similar_items(
    ratings: sparse.csr_array, mechanism: PublishedSimilarItems, items: ArrayLike, noise: Noise = SYSTEM_NOISE
) -> Release[NoisySimilarItems]:
    """Similar items of ``items`` from ratings (users x items of one domain). Candidates share a rater with the item."""
    z, wanted = centred(ratings), np.atleast_1d(np.asarray(items, dtype=np.int64))
    near = similarities(z, wanted)
    candidate = near.raters > 0
    candidate[np.arange(wanted.size), wanted] = False
    return mechanism.release(np.where(candidate, near.cosine, np.nan), near.sensitivity, noise)
