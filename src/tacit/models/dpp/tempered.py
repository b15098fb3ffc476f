"""Slates of a tempered kernel, greedy slates, and slates from released counts or kernels.

**Tempered.** P(Y) is proportional to e^{sum of w over Y} det (F F^T)_Y, for public features F and log weights w. With
w = theta s and many votes, the rows e^{w/2} F differ by many orders of magnitude, and popular items may be linearly
dependent. Everything then depends on directions that are tiny beside the largest, and the eigenvalues of the Gram
matrix lose them. So rows are sorted by size, QR with column pivoting keeps the error of each row small beside that
row, and one-sided Jacobi does the same for the columns of R^T. That reaches as far as float64 does: rounding gives
dependent popular items a false direction of relative size 2^-53 e^{nats/2}, and the law errs by about its square. At
40 nats that is 1e-15 to 1e-10; near 73 nats the law is lost. A limit must hold for every data set, so it is on theta
(high - low), which is public, and is checked before any record is read.

**Greedy** (Chen, Zhang and Zhou, 2018). k times the item that raises det L_Y most. It is deterministic, so it is not
private: use it for released or public data only. det L_{Y+i} is det L_Y times what is left of item i after projecting
on Y, and an incremental Cholesky factorisation keeps what is left of every item: O(n (d + k) k) for sigma I + B B^T.

**Released slates.** `from_counts` and `from_kernel` make any number of slates from one release, at no further cost.
"""

from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from tacit.checks import finite, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats, Ints
from tacit.models.dpp.laws import (
    Coins,
    checked_features,
    checked_kernel,
    checked_size,
    choose,
    log_table,
    rank_of,
    require_rank,
    weighted_rows,
)
from tacit.models.dpp.samplers import DenseSampler, Projections

_SWEEPS = 60  # at most; 6 to 12 are usual
_EPS = float(np.finfo(np.float64).eps)
MOST_NATS = 40.0  # theta (high - low)
_UNIT = 2.0**-53
_ERROR = 1e-9  # allowed in the law, for what a kernel has lost of its features
Kernel: TypeAlias = Floats | tuple[ArrayLike, float]  # L itself, or (B, sigma) for sigma I + B B^T
NOTHING_LEFT = 1e-12  # of an item's own L_ii: less is rounding
TIE = 1e-12  # gains (in logs) that differ by less count as equal
ALPHA = 3.0  # the weight of quality against diversity: an item of the best quality weighs e^3
_LEAST = 1e-3  # of the largest eigenvalue, added to the diagonal of a noisy kernel, so that every slate is possible


class TemperedSampler:
    """Draws slates of exactly ``k`` items. If the weights are private, so is everything except what is drawn.

    The setup is O(n d^2). A slate takes O(n k^2) by passes over the catalogue (``scan``; by default below 5,000
    items), else a time that does not grow with n. ``rank`` is the rank of the features if the caller knows it:
    public, and at least k.
    """

    def __init__(
        self,
        features: ArrayLike,
        log_weights: ArrayLike,
        k: int,
        *,
        rank: int | None = None,
        scan: bool | None = None,
    ) -> None:
        table = checked_features(features)
        weights = _checked_weights(log_weights, len(table))
        self.k = checked_size(k, len(table))
        rank = require_rank(table, self.k) if rank is None else whole("rank", rank, least=self.k, most=min(table.shape))
        if rank < table.shape[1]:
            table = along_axes(table, rank)
        rows, top = weighted_rows(table, weights)
        self._vectors, values = left_singular(rows, rank)
        with np.errstate(divide="ignore"):
            self._log_values = 2.0 * np.log(values)  # of the eigenvalues, without their common factor e^top
        self._table = log_table(self._log_values, self.k)
        self._projections = Projections(self._vectors, scan)
        self.log_normaliser = float(self._table[-1, -1]) + self.k * top

    def __repr__(self) -> str:
        return f"TemperedSampler({self._vectors.shape[1]:,} items, k = {self.k})"

    def draw(self, coins: Coins) -> Ints:
        """One slate, items ascending."""
        slate: Ints = self.draw_many(1, coins)[0]
        return slate

    def draw_many(self, count: int, coins: Coins) -> Ints:
        """``count`` independent slates, one in each row."""
        sizes = np.full(whole("count", count, least=0), self.k, dtype=np.int64)
        return np.sort(self._projections.draw(choose(self._table, sizes, coins), coins), axis=1)

    @cached_property
    def marginals(self) -> Floats:
        """The probability of each item to be in a slate; they sum to k."""
        marginals_of_items: Floats = self._direction_marginals() @ np.square(self._vectors)
        return marginals_of_items

    def _direction_marginals(self) -> Floats:
        """The probability of each eigenvector to be chosen.

        From the last one down, number i is the next of r still wanted with probability lambda_i e_{r-1}(the first i -
        1) / e_r(the first i).
        """
        wanted = np.zeros(self.k + 1)
        wanted[self.k] = 1.0
        marginals = np.zeros(len(self._log_values))
        for i in range(len(marginals), 0, -1):
            whole_sum = self._table[1:, i]
            # e_r of fewer than r values is 0, and r is then never wanted.
            above = np.where(whole_sum > -np.inf, whole_sum, np.inf)
            taken = wanted[1:] * np.minimum(np.exp(self._log_values[i - 1] + self._table[:-1, i - 1] - above), 1.0)
            marginals[i - 1] = taken.sum()
            wanted[1:] -= taken
            wanted[:-1] += taken
        return marginals


def greedy_map(kernel: Kernel, k: int, *, log_weights: ArrayLike | None = None, fill: bool = False) -> Ints:
    """At most ``k`` items in the order they were chosen; ties go to the lowest index.

    ``log_weights`` w stand for the kernel diag(e^{w/2}) L diag(e^{w/2}), which is never formed: an item's gain is w_i
    + log of what is left of it. With w = alpha q a large alpha chooses by quality alone, and alpha = 0 by diversity
    alone.

    If nothing is left of any item, every larger slate has determinant 0 and greedy cannot choose. The slate then
    ends, shorter than k. With ``fill`` the other items follow by their own weight and size, w_i + log L_ii, ties to
    the lowest index.
    """
    part = _RowKernel(*kernel) if isinstance(kernel, tuple) else _DenseKernel(kernel)
    size = part.diagonal
    k = checked_size(k, len(size))
    weights = np.zeros(len(size)) if log_weights is None else _checked_weights(log_weights, len(size))
    with np.errstate(divide="ignore"):
        own = weights + np.log(size)  # an item's value by itself
    left, factor = size.copy(), np.empty((k, len(size)))
    free, chosen = np.ones(len(size), dtype=np.bool_), list[int]()
    while len(chosen) < k:
        usable = free & (left > (0.0 if part.least > 0.0 else NOTHING_LEFT) * size)
        if not usable.any():
            break
        item = _first_best(weights, left, usable)
        done = len(chosen)
        # One more row of the Cholesky factor: (L_i - the part that earlier rows explain) / its own pivot.
        explained = factor[:done, item] @ factor[:done] if done else 0.0
        factor[done] = (part.column(item) - explained) / np.sqrt(left[item])
        left = np.maximum(left - factor[done] ** 2, part.least)
        free[item] = False
        chosen.append(item)
    if fill and len(chosen) < k:
        rest = np.flatnonzero(free)
        chosen += rest[np.argsort(-own[rest], kind="stable")][: k - len(chosen)].tolist()
    return np.array(chosen, dtype=np.int64)


@np.errstate(all="ignore")  # values tiny beside the best underflow to 0, whatever the caller has set
def from_counts(
    counts: Floats, features: Floats | None, k: int, *, alpha: float = ALPHA, coins: Coins | None = None
) -> Ints:
    """``k`` items of high quality and different features.

    They are chosen greedily, and come in the order of choice, or are drawn with ``coins``, and ascend. The kernel is
    diag(e^(alpha q/2)) F F^T diag(e^(alpha q/2)). Without features, quality alone decides.
    """
    if not 0.0 <= finite("alpha", alpha) <= MOST_NATS:
        raise InvalidParameter(f"alpha must lie from 0 to {MOST_NATS:g}, not {alpha!r}.")
    weights = alpha * quality(counts)
    table = np.ones((len(counts), 1)) if features is None else features
    if coins is None:
        return greedy_map((table, 0.0), k, log_weights=weights, fill=True)
    if features is None or k > rank_of(table):
        raise InvalidParameter(
            f"to draw {k} items, give features of rank {k} or more, or choose greedily without coins."
        )
    return TemperedSampler(table, weights, k).draw(coins)


@np.errstate(all="ignore")
def from_kernel(kernel: Floats, k: int, *, coins: Coins | None = None) -> Ints:
    """``k`` items of a noisy kernel: greedily, or drawn with ``coins``. Negative eigenvalues are noise and count as 0."""
    values, vectors = np.linalg.eigh(kernel)
    values = np.maximum(values, 0.0)
    top = float(values[-1])
    repaired = (vectors * values) @ vectors.T + (_LEAST * top if top > 0.0 else 1.0) * np.eye(len(kernel))
    repaired = (repaired + repaired.T) / 2.0
    return greedy_map(repaired, k, fill=True) if coins is None else DenseSampler(repaired, k).draw(coins)


def quality(counts: Floats) -> Floats:
    """Noisy counts as numbers from 0 to 1, the best item 1. If no count is above 0, all are 0."""
    above = np.maximum(counts, 0.0)
    top = float(above.max())
    return above / top if top > 0.0 else above


def features_of(kernel: ArrayLike) -> tuple[Floats, float]:
    """F with F F^T = the given kernel, and the number of nats up to which F may be tempered. Give features if you have them.

    A kernel in floats is off by 2^-53 of its largest eigenvalue. So F is off by 2^-53 times the condition number of
    the kernel on its range (for features it is the square root of that), and so is the false direction of dependent
    items. With e^nats times its square below 1e-9, a condition of 10^3 allows 39 nats, 10^6 allows 25. A kernel of
    full rank has no dependent items: up to a condition of 9 10^6 all 40 are allowed.
    """
    values, vectors = np.linalg.eigh(checked_kernel(kernel))
    real = values > len(values) * 2.0 * _UNIT * values[-1]
    if not real.any():
        raise InvalidParameter("a kernel must have an eigenvalue above 0; otherwise every slate has probability 0.")
    lost = _UNIT * float(values[-1] / values[real][0])
    nats = MOST_NATS if real.all() and lost <= _ERROR else min(MOST_NATS, float(np.log(_ERROR) - 2.0 * np.log(lost)))
    if not nats > 0.0:
        raise InvalidParameter(
            "the kernel has eigenvalues above 0 that cannot be told from rounding beside the largest. Give the features that it "
            "was made from, or drop these directions."
        )
    return vectors[:, real] * np.sqrt(values[real]), nats


def along_axes(features: Floats, rank: int) -> Floats:
    """Features along their ``rank`` largest singular directions, n x rank. What is left out does not depend on the weights.

    Pivoted QR of the weighted rows would leave out what is smallest *there*: which directions count would then depend
    on votes. A row that loses more than half of its length is rounding, and becomes 0.
    """
    axes = np.linalg.svd(np.linalg.qr(features, mode="r"), full_matrices=False)[2]
    projected: Floats = features @ axes[:rank].T
    size = np.abs(features).max(axis=1, keepdims=True)
    size[size == 0.0] = 1.0  # compare lengths at a scale where squares do not underflow
    lost = np.linalg.norm(projected / size, axis=1) < 0.5 * np.linalg.norm(features / size, axis=1)
    projected[lost] = 0.0
    return projected


def left_singular(rows: Floats, rank: int) -> tuple[Floats, Floats]:
    """The left singular vectors, one in a row, and singular values, descending, of a matrix of this rank with graded rows.

    Rows of R beyond the rank are left out.
    """
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    q, r, _ = qr(rows[order], mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
    rotation, values = one_sided_jacobi(r[:rank].T)
    vectors = np.empty((rank, len(rows)))
    vectors[:, order] = rotation.T @ q[:, :rank].T
    return vectors, values


def one_sided_jacobi(matrix: Floats) -> tuple[Floats, Floats]:
    """J and s, descending, such that the columns of matrix @ J are orthogonal with lengths s; J is orthogonal.

    Rotations turn columns until all are orthogonal; their lengths are then the singular values. A rotation mixes two
    columns only, and its error is relative to each of them. So small singular values of a matrix whose columns differ
    by many orders of magnitude have as many correct digits as large ones. Methods that reduce the whole matrix first
    lose everything 1e-16 below the largest.

    Two columns count as orthogonal if their cosine is below max(m, 8) 2^-52. Pairs that share no column are turned
    together, in rounds as in a tournament. Columns shorter than 1e-150 of the largest entry may count as 0.
    """
    rows, columns = matrix.shape
    top = float(np.abs(matrix).max(initial=0.0)) or 1.0
    # Row c holds column c and then row c of J^T: one rotation turns both.
    turned = np.concatenate([matrix.T / top, np.eye(columns)], axis=1)
    tolerance, rounds = max(rows, 8) * _EPS, _rounds(columns)
    for _ in range(_SWEEPS):
        if max(_turn(turned, rows, pairs, tolerance) for pairs in rounds) <= tolerance:
            break
    lengths = np.linalg.norm(turned[:, :rows], axis=1)
    order = np.argsort(-lengths, kind="stable")
    return turned[order, rows:].T, top * lengths[order]


def _turn(turned: Floats, rows: int, pairs: Ints, tolerance: float) -> float:
    """Makes each pair of columns orthogonal. Returns the largest cosine before."""
    both = turned[pairs]  # first or second x pairs x entries
    heads = both[:, :, :rows]
    squares = np.einsum("spi,spi->sp", heads, heads)
    product = np.einsum("pi,pi->p", heads[0], heads[1])
    a, b = np.sqrt(squares)
    # A column of zeros is orthogonal to all others.
    cosine = np.divide(product, a * b, out=np.zeros_like(product), where=(a > 0.0) & (b > 0.0))
    turning = np.abs(cosine) > tolerance
    if turning.any():
        if not turning.all():
            pairs, both, a, b = pairs[:, turning], both[:, turning], a[turning], b[turning]
        # tan of the angle: the smaller root of t^2 + 2 zeta t = 1, zeta = (b^2 - a^2) / 2ab cosine.
        with np.errstate(over="ignore"):  # an infinite zeta is no rotation
            zeta = (b / a - a / b) / (2.0 * cosine[turning])
        tangent = np.copysign(1.0, zeta) / (np.abs(zeta) + np.hypot(1.0, zeta))
        cos = 1.0 / np.hypot(1.0, tangent)
        cos, sin = cos[:, None], (cos * tangent)[:, None]
        turned[pairs[0]] = both[0] * cos - both[1] * sin
        turned[pairs[1]] = both[0] * sin + both[1] * cos
    return float(np.abs(cosine).max(initial=0.0))


def _rounds(columns: int) -> list[Ints]:
    """Every pair once, in rounds of disjoint pairs (2 x pairs): after each round, all but the first move up by one."""
    columns_in_order = list(range(columns)) + [-1] * (columns % 2)  # -1: the column that rests
    half, rounds = len(columns_in_order) // 2, []
    for _ in range(len(columns_in_order) - 1):
        pairs = [
            (min(p), max(p))
            for p in zip(columns_in_order[:half], reversed(columns_in_order[half:]), strict=True)
            if min(p) >= 0
        ]
        rounds.append(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
        columns_in_order = [columns_in_order[0], columns_in_order[-1], *columns_in_order[1:-1]]
    return rounds


class _DenseKernel:
    """A kernel that is written out."""

    least = 0.0

    def __init__(self, kernel: ArrayLike) -> None:
        self._kernel = checked_features(kernel)
        if self._kernel.shape[0] != self._kernel.shape[1]:
            raise InvalidParameter("a kernel must be square. For sigma I + B B^T, give (B, sigma).")
        self.diagonal = np.diagonal(self._kernel).copy()
        if (self.diagonal < 0.0).any():
            raise InvalidParameter("a kernel must be positive semidefinite, and this one has a diagonal entry below 0.")

    def column(self, item: int) -> Floats:
        column: Floats = self._kernel[item]
        return column


class _RowKernel:
    """sigma I + B B^T. It forms single columns only. What is left of an item is never below sigma."""

    def __init__(self, rows: ArrayLike, sigma: float) -> None:
        self._rows = checked_features(rows)
        self.least = finite("sigma", sigma)
        if self.least < 0.0:
            raise InvalidParameter(f"sigma must be at least 0, not {self.least:g}.")
        self.diagonal = np.einsum("ij,ij->i", self._rows, self._rows) + self.least

    def column(self, item: int) -> Floats:
        # Without sigma at the item itself, which is chosen and not looked at again.
        column: Floats = self._rows @ self._rows[item]
        return column


def _first_best(weights: Floats, left: Floats, usable: NDArray[np.bool_]) -> int:
    """The first usable item of the largest gain."""
    gains = np.full(len(left), -np.inf)
    gains[usable] = weights[usable] + np.log(left[usable])
    best = float(gains.max())
    return int(np.argmax(gains >= best - TIE * max(1.0, abs(best))))


def _checked_weights(log_weights: ArrayLike, items: int) -> Floats:
    weights = np.asarray(log_weights, dtype=np.float64)
    if weights.shape != (items,) or not np.isfinite(weights).all():
        raise InvalidParameter(f"log_weights must be {items} finite numbers, one for each item.")
    return weights
