"""The loops over pairs of items in numpy, on blocks of products. `similarity_loops_compiled` does the same, compiled."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.models.cross_domain.centred import Centred
from tacit.models.cross_domain.edges import ROUNDING, By, Edges, best_of_groups, goodness
from tacit.models.cross_domain.similarity_products import Block, blocks


class Pairs(NamedTuple):
    """Pairs of a row item and a column item, ascending, with what is known of each."""

    first: NDArray[Any]
    second: NDArray[Any]
    cosine: NDArray[Any]
    significance: NDArray[Any]
    share: NDArray[Any]


def all_edges(table: Centred, shrink: int, *, dense: bool = False, threads: int = 1) -> Edges:
    """Every edge, each summed once, i < j."""
    parts = [_pairs(table, table, block, shrink, above=True) for block in blocks(table, table, dense=dense)]
    return _mirrored(joined(parts), table.n_items)


def best(table: Centred, k: int, shrink: int, by: By, least: int, *, dense: bool = False) -> Pairs:
    """Of every item the k best others with a cosine other than 0 and a significance of at least ``least``."""
    return joined(
        [_pruned(_pairs(table, table, block, shrink, least), k, by) for block in blocks(table, table, dense=dense)]
    )


def best_across(
    left: Centred, right: Centred, k: int, shrink: int, by: By, *, dense: bool = False, threads: int = 1
) -> tuple[Pairs, NDArray[np.bool_]]:
    """Of every left item the k best edges to right items, and which right items have an edge at all. No item is on both sides."""
    touched = np.zeros(right.n_items, dtype=bool)
    found = []
    for block in blocks(left, right, dense=dense):
        edges = _pairs(left, right, block, shrink)
        touched[edges.second] = True
        found.append(_pruned(edges, k, by))
    return joined(found), touched


def joined(parts: list[Pairs]) -> Pairs:
    """Pairs of one part after the other."""
    codes, counts, floats = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), np.empty(0)
    return Pairs(*map(np.concatenate, zip(Pairs(codes, codes, floats, counts, floats), *parts, strict=True)))


def _pruned(pairs: Pairs, k: int, by: By) -> Pairs:
    kept = best_of_groups(pairs.first, goodness(pairs.cosine, by), k)
    return Pairs(*(column[kept] for column in pairs))


def _pairs(left: Centred, right: Centred, block: Block, shrink: int, least: int = 1, *, above: bool = False) -> Pairs:
    """The pairs of a block that count; an item is never paired with itself, and with ``above`` only with later ones."""
    rows = np.arange(block.begin, block.begin + len(block.dots))
    skipped = block.begin if above else 0  # no pair of this block is further left
    dots, agreed, both = (part[:, skipped:] for part in (block.dots, block.agreed, block.together))
    raw = dots * (left.scale[rows, None] * right.scale[skipped:])  # in this order: the same from either end
    kept = np.abs(raw) > ROUNDING
    kept &= agreed >= least
    if above:
        kept &= np.arange(skipped, right.n_items) > rows[:, None]
    elif left is right:
        kept[np.arange(rows.size), rows] = False
    place = np.flatnonzero(kept)  # one index is read faster than two
    row = np.repeat(np.arange(rows.size, dtype=np.int32), np.count_nonzero(kept, axis=1))
    first = row + np.int32(block.begin)
    second = (place - row.astype(np.int64) * raw.shape[1] + skipped).astype(np.int32)
    cosine = raw.ravel()[place]
    together, significance = (part.ravel()[place].astype(np.int64) for part in (both, agreed))
    if shrink:
        cosine *= np.minimum(together, shrink) / shrink
    either = left.raters[first] + right.raters[second] - together
    return Pairs(first, second, cosine, significance, significance / either)


def _mirrored(upper: Pairs, n: int) -> Edges:
    """Both directions of every edge: in a row the earlier items first, then the later ones, each ascending already."""
    later = np.bincount(upper.first, minlength=n)
    earlier = np.bincount(upper.second, minlength=n)
    starts = np.concatenate(([0], np.cumsum(earlier + later)))
    opened = np.concatenate(([0], np.cumsum(later)))[:-1]
    forth = np.arange(upper.first.size) + np.repeat(starts[:-1] + earlier - opened, later)
    edges = sparse.csr_array((np.arange(upper.first.size), upper.second, np.append(opened, upper.first.size)), (n, n))
    turned = sparse.csc_array(edges).data  # sorted by the later item, by counting
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
