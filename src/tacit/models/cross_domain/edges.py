"""The similarities of items as edges: adjusted cosine s, significance S, and S as a share of all who rated either item."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
By = Literal["signed", "absolute"]

ROUNDING = (
    1e-12  # a cosine no larger is a sum that cancels, but for its rounding: no edge, whatever order it was summed in
)
DIGITS = 12  # cosines that agree to so many decimals are equally good: the lower item then comes first


@dataclass(frozen=True, eq=False, repr=False)
class Edges:
    """Symmetric. Row i holds the edges of item i, ascending by the other item; an edge has s other than 0 and S above 0.

    ``items``, ``cosine``, ``significance`` and ``share`` are aligned; those of item i stand from starts[i] to starts[i + 1].
    """

    starts: Ints
    items: Codes
    cosine: Floats
    significance: Ints
    share: Floats

    def __repr__(self) -> str:
        return f"Edges({self.n_items} items, {self.items.size // 2} edges)"

    @property
    def n_items(self) -> int:
        """Items of both domains together."""
        return self.starts.size - 1

    @property
    def rows(self) -> Codes:
        """The item whose row an entry of ``items`` stands in."""
        return np.repeat(np.arange(self.n_items, dtype=np.int32), np.diff(self.starts))


def goodness(cosine: NDArray[Any], by: By = "signed") -> Floats:
    """What edges are ranked by, larger first; equal where two cosines differ by rounding only."""
    rounded: Floats = np.rint(np.asarray(cosine, dtype=np.float64) * 10.0**DIGITS)
    return np.abs(rounded) if by == "absolute" else rounded


def best_of_groups(first: NDArray[Any], good: Floats, k: int) -> NDArray[np.intp]:
    """Places of the k best entries of every ``first``, ascending. Entries stand by ``first``; the earlier wins a tie."""
    opens = np.flatnonzero(np.concatenate(([True], first[1:] != first[:-1]))) if first.size else np.empty(0, np.intp)
    counts = np.diff(np.append(opens, first.size))
    kept = np.ones(first.size, dtype=bool)
    for begin, count in zip(opens[counts > k].tolist(), counts[counts > k].tolist(), strict=True):
        own = good[begin : begin + count]
        last = np.partition(own, count - k)[count - k]  # of the k best
        kept[begin : begin + count] = own > last
        ties = np.flatnonzero(own == last)
        kept[begin + ties[: k - np.count_nonzero(own > last)]] = True
    return np.flatnonzero(kept)
