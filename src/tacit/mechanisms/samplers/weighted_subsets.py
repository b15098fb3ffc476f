"""k different items, Y with probability proportional to the product of their weights, drawn exactly in whole numbers."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers.uniform import below


class WeightedSubsets:
    """Subsets of ``k`` of the items whose weights are given, whole numbers above 0 of any size.

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
        return np.array([self._one(noise) for _ in range(count)], dtype=np.int64).reshape(count, len(self._sums) - 1)

    def _one(self, noise: Noise) -> list[int]:
        left, chosen = self._items, []
        for sums in reversed(self._sums[1:]):
            from_end = bisect_right(
                sums, below(sums[left], noise), 0, left
            )  # the smallest s with e_j(s) above the number
            chosen.append(self._items - from_end)
            left = from_end - 1
        return chosen
