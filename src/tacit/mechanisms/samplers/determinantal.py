"""Slates with P(Y) proportional to det L_Y for a kernel of whole numbers, drawn exactly. Proof: docs/proofs/exact-samplers.md.

L = sigma I + A^T A is never formed: only its diagonal is. A proposal Y has probability proportional to prod L_ii over Y: k items,
item i with probability L_ii / tr L each, thrown away where one repeats (or drawn as a subset at once, where that would happen too
often). It is kept with probability det L_Y / prod L_ii, at most 1 by Hadamard's inequality. The decision is taken in floats, and in
whole numbers where an error within the proved margin could turn it.

How many proposals it takes depends on the records: many where most users like the same few items and nothing else. A sampler that
must not take long hands over to another one after a public number of proposals in a row that were all rejected. When that happens
depends on how many were kept, not on which, so the slates follow the law of whichever sampler drew them.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Noise, words64
from tacit.mechanisms.samplers.coins import bernoulli
from tacit.mechanisms.samplers.decide import is_below, ratio_bounds
from tacit.mechanisms.samplers.uniform import below_each
from tacit.mechanisms.samplers.weighted_subsets import WeightedSubsets
from tacit.mechanisms.samplers.whole_kernel import WholeKernel

Draw = Callable[[int, Noise], NDArray[np.int64]]  # so many slates

_REPEATS = 2.0  # beyond that more than 6 in 7 proposals would repeat an item
_TABLE = 1 << 20  # sums of products that may be kept, of some hundred bytes each
_LEAST = 16  # proposals that are made together at least


class SlateSampler:
    """Slates of ``k`` items with P(Y) = det L_Y / e_k(L).

    ``instead`` draws what is left of a call once ``most`` proposals in a row were rejected; without it that never happens.
    """

    def __init__(self, kernel: WholeKernel, k: int, *, most: int = 0, instead: Draw | None = None) -> None:
        self._kernel, self._k = kernel, k
        self._give_up, self._instead = most, instead
        self._most = kernel.batch(k)
        share = kernel.root**2 / np.sum(kernel.root**2)
        repeats = k * (k - 1) / 2 * float(share @ share)  # expected pairs of equal items in a proposal
        self._subsets = None
        # either way of proposing is exact: which one it is decides nothing but the time
        if repeats > _REPEATS and kernel.items * k <= _TABLE:
            self._subsets = WeightedSubsets([kernel.sigma + int(square) for square in kernel.signal], k)

    def draw_many(self, count: int, noise: Noise) -> NDArray[np.int64]:
        """``count`` independent slates, each in ascending order."""
        slates = np.empty((count, self._k), dtype=np.int64)
        filled = made = seen = barren = 0
        least = _LEAST if self._subsets is None else 2
        while filled < count:
            # as many as it seems to take by those kept so far; at first two for each
            size = min(self._most, max(least, int(1.1 * (count - filled) * (made + 2) / (filled + 1))))
            if self._instead is not None and barren >= self._give_up:
                slates[filled:] = self._instead(count - filled, noise)
                break
            proposed = self._propose(size, noise)
            made, barren = made + size, barren + size
            while filled < count and len(proposed):
                # to look at a proposal costs more than to make it: no more at a time than it seems to take
                now = len(proposed) if self._kernel.at_once else int((count - filled) * (seen + 1) / (filled + 1))
                kept = kept_of(self._kernel, proposed[:now], noise)[: count - filled]
                slates[filled : filled + len(kept)] = kept
                filled, seen, proposed = filled + len(kept), seen + now, proposed[now:]
                barren = 0 if len(kept) else barren
        return slates

    def _propose(self, count: int, noise: Noise) -> NDArray[np.int64]:
        if self._subsets is not None:
            return self._subsets.sample(count, noise)
        return proposals(self._kernel, self._k, count, noise)


def proposals(kernel: WholeKernel, k: int, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` times k independent items, item i with probability L_ii / tr L, ascending, but for those that repeat an item."""
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
    """The proposals that are accepted."""
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


@np.errstate(all="ignore")  # whether a share underflows depends on the records; it is far within the margin
def shares(kernel: WholeKernel, slates: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """det L_Y / prod L_ii in floats, and where it is within ``margin`` of the truth: where every computed pivot is above 0.

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
    """How far ``shares`` can be from the truth: twice the proved bound, which leaves room for the roundings of the comparison."""
    return (k * k * (k + 10) + 4 * k) * 2.0**-52
