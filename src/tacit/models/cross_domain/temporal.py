"""Older ratings count less: weights by the rank of a rating's time, not by the time itself."""

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

MISSING = int(np.iinfo(np.int64).min)  # a time that is not known sorts before all others


def dense_ranks(groups: NDArray[np.integer], times: Whole) -> tuple[Whole, Whole]:
    """Of each rating the rank of its time in its group (1 the earliest, equal times one rank), and the group's last rank."""
    ranks, last = np.zeros((2, times.size), dtype=np.int64)
    if not times.size:
        return ranks, last
    order = np.lexsort((times, groups))
    group, time = groups[order], times[order]
    opens = np.concatenate([[True], group[1:] != group[:-1]])
    steps = np.cumsum(opens | np.concatenate([[True], time[1:] != time[:-1]]))
    begins = np.flatnonzero(opens)
    counts = np.diff(np.append(begins, times.size))
    ranks[order] = steps - np.repeat(steps[begins], counts) + 1
    last[order] = np.repeat(steps[begins + counts - 1] - steps[begins] + 1, counts)
    return ranks, last


def decay(groups: NDArray[np.integer], times: Whole | None, alpha: float) -> Floats | float:
    """exp(-alpha (now - t)) with t the dense rank of a time in its group and now = the last rank + 1.

    1 for all ratings of a group in which no time is known, and where there are no times at all: alpha has no effect there.
    """
    if times is None or alpha == 0.0:
        return 1.0
    ranks, last = dense_ranks(groups, times)
    known = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.bool_)
    known[groups[times != MISSING]] = True
    return np.where(known[groups], np.exp(-alpha * (last + 1 - ranks)), 1.0)
