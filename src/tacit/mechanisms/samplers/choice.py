"""One of k items, item i with probability proportional to e^(-x_i), decided exactly.

One uniform U per decision is compared with the running sums of the weights. In floats these carry an error of at most
``guard`` times the total; a U closer than that to a running sum is settled in unlimited precision.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees.rounding import exp_bounds
from tacit.mechanisms.noise import Noise, bits, words64
from tacit.mechanisms.samplers.coins import GUARD


@np.errstate(all="ignore")  # a caller who has numpy raise must not be told that some item is far behind
def choose(
    exponents: NDArray[np.float64],
    exact: Callable[[int], Sequence[Fraction | None]],
    noise: Noise,
    *,
    guard: float = GUARD,
) -> NDArray[np.int64]:
    """For every row of exponents (decisions x items, each >= 0, the smallest of a row 0) the chosen item.

    ``exact(row)`` gives the row's exponents as rationals; it is asked for only when floats cannot decide. An infinite exponent
    (weight 0) is allowed in ``exponents``; ``exact`` gives None for that item.
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
    """The same as ``choose`` for a single decision among few items, without the fixed cost of array calls."""
    return choose_weighted([math.exp(-exponent) for exponent in exponents], exact, noise, guard=guard)


def choose_weighted(
    weights: list[float], exact: Callable[[], Sequence[Fraction | None]], noise: Noise, *, guard: float = GUARD
) -> int:
    """One of few items, given e^-x in floats; an error of ``guard`` times the total in any running sum is allowed for."""
    running = list(accumulate(weights))
    word = int(words64(noise, 1)[0])
    target = (word >> 11) * 2.0**-53 * running[-1]
    margin = (guard + len(running) * 2.0**-51) * running[-1]
    last = len(running) - 1
    earliest = bisect_right(running, target - margin, 0, last)  # how many running sums but the last are at most that
    latest = bisect_right(running, target + margin, 0, last)
    return earliest if earliest == latest else _settle(exact(), word, noise)


def _settle(exponents: Sequence[Fraction | None], prefix: int, noise: Noise) -> int:
    """The item whose stretch of the running sums holds U, whose first 64 bits are ``prefix``."""
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
            if begins <= start and (
                end <= ends or item == last
            ):  # the last stretch ends with the total, which U never reaches
                return item
        prefix = (prefix << 64) | bits(noise, 64)
        known += 64


def _weight(exponent: Fraction | None, precision: int) -> tuple[int, int]:
    """An enclosure of 2^precision e^-x; of an item so far behind that it is below 1 the exponential is not needed."""
    if exponent is None:
        return 0, 0
    return (0, 1) if exponent >= precision else exp_bounds(-exponent, precision)
