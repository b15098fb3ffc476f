"""The similarities of all pairs of items of both domains: adjusted cosine, significance, and its share of all raters.

s_ij = sum over common raters of z_ui z_uj / (|z_i| |z_j|), z a rating less its user's mean over both domains and the norms over
all raters of an item; S_ij counts the common raters on whose side of both items' means the two ratings fall alike.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.models.cross_domain.centred import centred, checked_shrinking
from tacit.models.cross_domain.edges import Edges
from tacit.models.cross_domain.similarity_loops import Way, chosen

SHRINK = 50


def edges_of(
    ratings: Any,
    *,
    shrink: int = SHRINK,
    most_each: int | None = None,
    times: NDArray[np.int64] | None = None,
    way: Way | str = Way.AUTO,
    threads: int = 1,
) -> Edges:
    """Every edge between two items of ``ratings``, users x items.

    A cosine of fewer than ``shrink`` common raters is shrunk in proportion; 0 shrinks none. ``most_each`` caps the ratings of each
    user, as `capped` says. Memory grows with the number of edges: `streamed` holds the best alone.
    """
    shrink, threads = checked_shrinking(shrink), whole("threads", threads, least=1)
    table = centred(ratings, most_each, times)
    loops, dense = chosen(way, table)
    edges: Edges = loops.all_edges(table, shrink, dense=dense, threads=threads)
    return edges
