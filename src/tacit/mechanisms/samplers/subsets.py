"""Items drawn exactly: one by its weight, several by the product of their weights, slates by a determinant.

``choose``: item i with probability proportional to e^(-x_i). One uniform U per decision is compared with the running sums of the
weights. In floats these have an error of at most ``guard`` times the total; a U closer than that to a running sum is settled in
unlimited precision.

``SlateSampler``: slates with P(Y) proportional to det L_Y for a kernel L = sigma I + A^T A of whole numbers (``WholeKernel``). L is
never formed, only its diagonal. A proposal Y has probability proportional to prod L_ii over Y: k items, item i with probability
L_ii / tr L each, thrown away if one repeats (or drawn as a subset at once, if that would happen too often: ``WeightedSubsets``). It
is kept with probability det L_Y / prod L_ii, at most 1 by Hadamard's inequality. Floats decide, or whole numbers if an error
within the proved margin could turn the decision. Proof: docs/proofs/exact-samplers.md.

How many proposals it takes depends on the records: many if most users like the same few items and nothing else. To bound the time,
a sampler hands over to another one after a public number of rejected proposals in a row. When that happens depends on how many
proposals were kept, not on which, so the slates follow the law of the sampler that drew them.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.guarantees.arithmetic import exp_bounds
from tacit.mechanisms.noise import Noise, bits, words64
from tacit.mechanisms.samplers.coins import GUARD, below, below_each, bernoulli, is_below, ratio_bounds


@np.errstate(all="ignore")  # Silence numpy: an error could reveal that an item is far behind
def choose(
    exponents: NDArray[np.float64],
    exact: Callable[[int], Sequence[Fraction | None]],
    noise: Noise,
    *,
    guard: float = GUARD,
) -> NDArray[np.int64]:
    """The chosen item for every row of exponents: decisions x items, each >= 0, the smallest of a row 0.

    ``exact(row)`` gives the row's exponents as fractions; it is called only if floats cannot decide. An exponent may be infinite
    (weight 0); ``exact`` then gives None for that item.
    """
    decisions, items = exponents.shape
    running = np.cumsum(np.exp(-exponents), axis=1)
    word = words64(noise, decisions)
    target = (word >> np.uint64(11)) * 2.0**-53 * running[:, -1]
    # each running sum adds at most `items` roundings of half a unit to the error of its terms
    margin = (guard + items * 2.0**-51) * running[:, -1]
    chosen = (running[:, :-1] <= (target - margin)[:, None]).sum(axis=1)
    latest = (running[:, :-1] <= (target + margin)[:, None]).sum(axis=1)  # where an error within the margin could lead
    for row in (chosen != latest).nonzero()[0]:
        chosen[row] = _settle(exact(int(row)), int(word[row]), noise)
    return np.asarray(chosen, dtype=np.int64)


def choose_one(
    exponents: list[float], exact: Callable[[], Sequence[Fraction | None]], noise: Noise, *, guard: float = GUARD
) -> int:
    """Like ``choose``, for a single decision among few items, without the fixed cost of array calls."""
    return choose_weighted([math.exp(-exponent) for exponent in exponents], exact, noise, guard=guard)


def choose_weighted(
    weights: list[float], exact: Callable[[], Sequence[Fraction | None]], noise: Noise, *, guard: float = GUARD
) -> int:
    """One of few items, given e^-x in floats; a running sum may be off by ``guard`` times the total."""
    running = list(accumulate(weights))
    word = int(words64(noise, 1)[0])
    target = (word >> 11) * 2.0**-53 * running[-1]
    margin = (guard + len(running) * 2.0**-51) * running[-1]
    last = len(running) - 1
    earliest = bisect_right(running, target - margin, 0, last)  # how many running sums but the last are at most that
    latest = bisect_right(running, target + margin, 0, last)
    return earliest if earliest == latest else _settle(exact(), word, noise)


def _settle(exponents: Sequence[Fraction | None], prefix: int, noise: Noise) -> int:
    """The item whose stretch of the running sums contains U; ``prefix`` is the first 64 bits of U."""
    known = 64
    last = max(item for item, x in enumerate(exponents) if x is not None)
    while True:
        precision = known + 64
        bounds = [_weight(x, precision) for x in exponents]
        low_total, high_total = sum(low for low, _ in bounds), sum(high for _, high in bounds)
        # U * total lies in [prefix * low_total, (prefix + 1) * high_total) / 2^known
        start, end = prefix * low_total, (prefix + 1) * high_total
        low_sum = high_sum = 0
        for item, (low, high) in enumerate(bounds):
            begins = high_sum << known  # the stretch of this item surely contains [begins, ends)
            low_sum, high_sum = low_sum + low, high_sum + high
            ends = low_sum << known
            # the last stretch ends with the total, which U never reaches
            if begins <= start and (end <= ends or item == last):
                return item
        prefix = (prefix << 64) | bits(noise, 64)
        known += 64


def _weight(exponent: Fraction | None, precision: int) -> tuple[int, int]:
    """An enclosure of 2^precision e^-x. It is (0, 1) for an item so far behind that it is below 1."""
    if exponent is None:
        return 0, 0
    return (0, 1) if exponent >= precision else exp_bounds(-exponent, precision)


class WeightedSubsets:
    """Subsets of ``k`` items, Y with probability proportional to the product of their weights: whole numbers above 0 of any size.

    e_j(t), the sum over all j-subsets of the last t items of their products, obeys e_j(t) = e_j(t-1) + w e_(j-1)(t-1), w the weight
    of the t-th item from the end. With j items still to be taken from the last t, the first of them is among the last s with
    probability e_j(s) / e_j(t): one whole number below e_j(t), looked up among the e_j, tells which one it is.
    """

    def __init__(self, weights: list[int], k: int) -> None:
        self._items = len(weights)
        self._sums = [[1] * (self._items + 1)]
        for _ in range(k):
            smaller, sums = self._sums[-1], [0]
            for weight, lower in zip(reversed(weights), smaller, strict=False):
                sums.append(sums[-1] + weight * lower)
            self._sums.append(sums)

    def sample(self, count: int, noise: Noise) -> NDArray[np.int64]:
        """``count`` independent subsets, each in ascending order."""
        return np.array([self._subset(noise) for _ in range(count)], dtype=np.int64).reshape(count, len(self._sums) - 1)

    def _subset(self, noise: Noise) -> list[int]:
        left, chosen = self._items, []
        for sums in reversed(self._sums[1:]):
            # the smallest s with e_j(s) above the number
            from_end = bisect_right(sums, below(sums[left], noise), 0, left)
            chosen.append(self._items - from_end)
            left = from_end - 1
        return chosen


_WHOLE_GRAM = 512  # items up to which all products of columns are formed once
_CELLS = 1 << 21  # entries of the table that a batch of proposals may gather
_PROPOSALS = 1 << 13
_FEW = 1 << 18  # cells up to which columns are written out: so small a dense product is faster than a sparse one


class WholeKernel:
    """sigma I + A^T A, A users x items in whole numbers with the squares of each row at most 2^32, sigma >= 1 of any size.

    With fewer than 2^30 users every sum of products of two columns is below 2^62, so int64 holds it exactly. sigma is a Python
    int and is added to these sums in floats or in Python ints only.
    """

    def __init__(self, rows: sparse.csr_array, sigma: int) -> None:
        columns = sparse.csc_array(rows)
        columns.sort_indices()
        self.users, self.items = columns.shape
        self.sigma = sigma
        self._start = columns.indptr.astype(np.int64)
        self._user = columns.indices.astype(np.int64)
        self._value = columns.data.astype(np.int64)
        self.running = np.concatenate([[0], np.cumsum(self._value * self._value)])[self._start]  # of the squares
        self.signal: NDArray[np.int64] = np.diff(self.running)  # the diagonal of A^T A
        self.root = np.sqrt(float(sigma) + self.signal.astype(np.float64))
        # |sum of a_ui a_uj| over any users is at most the larger L_ii (Cauchy and Schwarz): below 2^53 floats add it exactly
        self._exact_in_floats = int(self.signal.max(initial=0)) < 1 << 53
        self._lengths = float(np.diff(self._start) @ self.root**2) / float(np.sum(self.root**2))  # of a proposed column
        self._products = None
        if self.items <= _WHOLE_GRAM:
            self._products = np.asarray((columns.T @ columns).todense(), dtype=np.int64)

    @property
    def total(self) -> int:
        """The trace of A^T A."""
        return int(self.running[-1])

    @property
    def at_once(self) -> bool:
        """Whether all products of columns are stored."""
        return self._products is not None

    def batch(self, k: int) -> int:
        """How many proposals of k items to check together."""
        if self.at_once:
            return _PROPOSALS
        return int(min(max(_CELLS / (1.0 + k * self._lengths), 4), _PROPOSALS))

    def products(self, slates: NDArray[np.int64]) -> NDArray[np.int64]:
        """(A^T A)_Y for every slate: slates x k x k."""
        if self._products is not None:
            return np.asarray(self._products[slates[:, :, None], slates[:, None, :]])
        count, k = slates.shape
        first = self._start[slates.ravel()]
        length = self._start[slates.ravel() + 1] - first
        ends = np.concatenate([[0], np.cumsum(length)])
        cell = np.arange(ends[-1]) + np.repeat(first - ends[:-1], length)
        # one block of users for each slate, so that only the needed k x k blocks are formed
        user = self._user[cell] + self.users * np.repeat(np.arange(count), length.reshape(count, k).sum(axis=1))
        width = count * self.users
        if width * k <= _FEW and self._exact_in_floats:
            dense = np.zeros((width, k))
            dense[user, np.repeat(np.tile(np.arange(k), count), length)] = self._value[cell]
            dense = dense.reshape(count, self.users, k)
            return np.asarray(np.matmul(dense.transpose(0, 2, 1), dense).astype(np.int64))
        if width > 4 * user.size + 1024:
            known, user = np.unique(user, return_inverse=True)
            width = known.size
        table = sparse.csr_array((self._value[cell], user, ends), shape=(count * k, width))
        product = (table @ table.T.tocsr()).tocoo()
        result = np.zeros((count, k, k), dtype=np.int64)
        result[product.row // k, product.row % k, product.col % k] = product.data
        return result

    def minor(self, slate: NDArray[np.int64]) -> int:
        """det L_Y, exactly."""
        matrix = [[int(cell) for cell in row] for row in self.products(slate[None, :])[0]]
        for i, row in enumerate(matrix):
            row[i] += self.sigma
        return determinant(matrix)

    def hadamard(self, slate: NDArray[np.int64]) -> int:
        """The product of L_ii over the slate: at least det L_Y."""
        product = 1
        for item in slate:
            product *= self.sigma + int(self.signal[item])
        return product


def determinant(matrix: list[list[int]]) -> int:
    """The determinant of a positive definite matrix of whole numbers (Bareiss: every division leaves no remainder)."""
    rows = [list(row) for row in matrix]
    before = 1
    for j in range(len(rows) - 1):
        pivot = rows[j][j]  # a leading minor: above 0
        for i in range(j + 1, len(rows)):
            for m in range(j + 1, len(rows)):
                rows[i][m] = (rows[i][m] * pivot - rows[i][j] * rows[j][m]) // before
        before = pivot
    return rows[-1][-1]


Draw = Callable[[int, Noise], NDArray[np.int64]]  # draws that many slates

_REPEATS = 2.0  # beyond that more than 6 in 7 proposals would repeat an item
_TABLE = 1 << 20  # sums of products that may be kept, of some hundred bytes each
_LEAST = 16  # proposals at a time, at least


class SlateSampler:
    """Slates of ``k`` items with P(Y) = det L_Y / e_k(L).

    After ``most`` rejected proposals in a row ``instead`` draws the rest of a call; without it that never happens.
    """

    def __init__(self, kernel: WholeKernel, k: int, *, most: int = 0, instead: Draw | None = None) -> None:
        self._kernel, self._k = kernel, k
        self._give_up, self._instead = most, instead
        self._most = kernel.batch(k)
        share = kernel.root**2 / np.sum(kernel.root**2)
        repeats = k * (k - 1) / 2 * float(share @ share)  # expected pairs of equal items in a proposal
        self._propose: Draw = lambda count, noise: proposals(kernel, k, count, noise)
        self._least = _LEAST
        # both ways of proposing are exact: the choice changes the time only
        if repeats > _REPEATS and kernel.items * k <= _TABLE:
            self._propose = WeightedSubsets([kernel.sigma + int(square) for square in kernel.signal], k).sample
            self._least = 2

    def draw_many(self, count: int, noise: Noise) -> NDArray[np.int64]:
        """``count`` independent slates, each in ascending order."""
        slates = np.empty((count, self._k), dtype=np.int64)
        filled = proposals_made = checked = barren = 0
        while filled < count:
            # as many as the share kept so far suggests; at first two for each slate
            size = min(self._most, max(self._least, int(1.1 * (count - filled) * (proposals_made + 2) / (filled + 1))))
            if self._instead is not None and barren >= self._give_up:
                slates[filled:] = self._instead(count - filled, noise)
                break
            proposed = self._propose(size, noise)
            proposals_made, barren = proposals_made + size, barren + size
            while filled < count and len(proposed):
                # checking a proposal costs more than making it: check no more at a time than the share kept so far suggests
                now = len(proposed) if self._kernel.at_once else int((count - filled) * (checked + 1) / (filled + 1))
                kept = kept_of(self._kernel, proposed[:now], noise)[: count - filled]
                slates[filled : filled + len(kept)] = kept
                filled, checked, proposed = filled + len(kept), checked + now, proposed[now:]
                barren = 0 if len(kept) else barren
        return slates


def proposals(kernel: WholeKernel, k: int, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` times k independent items, item i with probability L_ii / tr L, ascending, without those that repeat an item."""
    jitter = kernel.items * kernel.sigma
    # L_ii / tr L is a mixture: uniform with the weight of the jitter, else in proportion to the signal
    uniform = bernoulli(Fraction(jitter, jitter + kernel.total), count * k, noise)
    chosen = np.empty(count * k, dtype=np.int64)
    chosen[uniform] = below_each(np.full(int(uniform.sum()), kernel.items), noise)
    ticket = below_each(np.full(count * k - int(uniform.sum()), kernel.total), noise)
    chosen[~uniform] = np.searchsorted(kernel.running, ticket, side="right") - 1
    slates = np.sort(chosen.reshape(count, k), axis=1)
    return slates[(np.diff(slates, axis=1) > 0).all(axis=1)]


def kept_of(kernel: WholeKernel, slates: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
    """The accepted proposals."""
    if not len(slates):
        return slates
    word = words64(noise, len(slates))
    low = (word >> np.uint64(11)) * 2.0**-53  # U lies in [low, low + 2^-53)
    share, known = shares(kernel, slates)
    slack = margin(slates.shape[1])
    heads = known & (low + 2.0**-53 <= share - slack)
    for i in (~heads & ~(known & (low >= share + slack))).nonzero()[0]:
        truth = Fraction(kernel.minor(slates[i]), kernel.hadamard(slates[i]))
        heads[i] = is_below(ratio_bounds(truth), noise, prefix=int(word[i]), known=64)
    return slates[heads]


@np.errstate(all="ignore")  # whether a share underflows depends on the records; an underflow is far within the margin
def shares(kernel: WholeKernel, slates: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """det L_Y / prod L_ii in floats, and whether it is within ``margin`` of the truth: if every computed pivot is above 0.

    It is the determinant of the correlations L_ij / sqrt(L_ii L_jj), by Cholesky's method, all slates at once.
    """
    k = slates.shape[1]
    root = kernel.root[slates]
    rest = kernel.products(slates) / (root[:, :, None] * root[:, None, :])
    rest = np.ascontiguousarray(rest.transpose(1, 2, 0))  # slates last: array speed in all steps
    rest[np.arange(k), np.arange(k)] = 1.0
    share = np.ones(len(slates))
    known = np.ones(len(slates), dtype=np.bool_)
    for j in range(k):
        pivot = rest[j, j]
        known &= pivot > 0.0
        share *= pivot
        factor = rest[j, j + 1 :] / np.sqrt(np.where(pivot > 0.0, pivot, 1.0))
        rest[j + 1 :, j + 1 :] -= factor[:, None] * factor[None, :]
    return share, known


def margin(k: int) -> float:
    """How far ``shares`` can be from the truth: twice the proved bound, to leave room for the rounding of the comparison."""
    return (k * k * (k + 10) + 4 * k) * 2.0**-52
