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
from tacit.models.cross_domain.similarity_loops_plain import Pairs

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
    return _mirrored(loops.upper_edges(table, shrink, dense=dense, threads=threads), table.n_items)


def _mirrored(upper: Pairs, n: int) -> Edges:
    """Both directions of every edge: in a row the earlier items first, then the later ones, each ascending already."""
    later = np.bincount(upper.first, minlength=n)
    earlier = np.bincount(upper.second, minlength=n)
    starts = np.concatenate(([0], np.cumsum(earlier + later)))
    opened = np.concatenate(([0], np.cumsum(later)))[:-1]
    forth = np.arange(upper.first.size) + np.repeat(starts[:-1] + earlier - opened, later)
    turned = np.argsort(upper.second, kind="stable")
    before = np.concatenate(([0], np.cumsum(earlier)))[:-1]
    back = np.arange(upper.first.size) + np.repeat(starts[:-1] - before, earlier)

    def both(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        out = np.empty(2 * one.size, dtype=one.dtype)
        out[forth] = one
        out[back] = other[turned]
        return out

    return Edges(
        starts.astype(np.int64), both(upper.second, upper.first), *(both(column, column) for column in upper[2:])
    )
