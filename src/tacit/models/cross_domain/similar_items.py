"""The items most similar to each item."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.models.cross_domain.centred import centred, checked_shrinking
from tacit.models.cross_domain.edges import By, Codes, Floats, Ints, goodness
from tacit.models.cross_domain.legs import checked_order
from tacit.models.cross_domain.similarities import SHRINK
from tacit.models.cross_domain.similarity_loops import Way, chosen


@dataclass(frozen=True, eq=False, repr=False)
class TopSimilar:
    """Items x k, the best first; where an item has fewer, ``items`` is -1 and the rest 0."""

    items: Codes
    cosine: Floats
    significance: Ints
    share: Floats

    def __repr__(self) -> str:
        return f"TopSimilar({self.items.shape[0]} items, {self.items.shape[1]} each)"


def top_similar(
    ratings: Any,
    k: int = 50,
    *,
    shrink: int = SHRINK,
    by: By = "signed",
    least_significance: int = 0,
    most_each: int | None = None,
    times: NDArray[np.int64] | None = None,
    way: Way | str = Way.AUTO,
) -> TopSimilar:
    """Of each item the k others of largest cosine, or of largest |cosine| where ``by`` is "absolute"; ties to the lower item.

    A cosine of 0 is no similarity. ``least_significance``: common raters who must at least agree, 1 for edges alone.
    """
    k, shrink, by = whole("k", k, least=1), checked_shrinking(shrink), checked_order(by)
    least = whole("least_significance", least_significance, least=0)
    table = centred(ratings, most_each, times)
    loops, dense = chosen(way, table)
    found = loops.best(table, k, shrink, by, least, dense=dense)
    order = np.lexsort((found.second, -goodness(found.cosine, by), found.first))
    held = np.bincount(found.first, minlength=table.n_items)
    row = found.first[order]
    rank = np.arange(row.size) - np.repeat(np.cumsum(held) - held, held)

    def filled(values: NDArray[Any], nothing: int) -> NDArray[Any]:
        out = np.full((table.n_items, k), nothing, dtype=values.dtype)
        out[row, rank] = values[order]
        return out

    return TopSimilar(filled(found.second, -1), *(filled(column, 0) for column in found[2:]))
