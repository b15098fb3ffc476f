"""The loops over pairs of items in numpy, on blocks of matrix products.

`loops_compiled` does the same, compiled; tests compare them.

Every pair needs three products of tables, a block of rows at a time: z_i . z_j, and with e = +1 for a like and -1 for
a dislike, e_i . e_j and the count of common raters. They are sparse products, or dense ones on BLAS.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.models.arrays import Array
from tacit.models.cross_domain.edges import ROUNDING, By, CentredRatings, Edges, best_of_groups, goodness

_CELLS = 1 << 21  # in a block of rows: 16 MB of floats
_USERS = 1024  # in one dense table
_PACK_BITS = 17
_PACK = 1 << _PACK_BITS  # M: three counts below it fit into the 53 bits of a float
_DENSE_GAIN = 150.0  # multiply-adds of dense products in the time of one step of sparse ones


class Pairs(NamedTuple):
    """Pairs of a row item and a column item, ascending, with the similarity of each."""

    first: Array
    second: Array
    cosine: Array
    significance: Array
    share: Array


class Block(NamedTuple):
    """Products of the items from ``begin`` on with all column items."""

    begin: int
    dots: Array  # z_i . z_j
    agreed: Array  # S
    together: Array  # how many rated both


def all_edges(table: CentredRatings, shrink: int, *, dense: bool = False, threads: int = 1) -> Edges:
    """Every edge, each summed once for i < j, then mirrored."""
    parts = [_pairs(table, table, block, shrink, above=True) for block in blocks(table, table, dense=dense)]
    return _mirror(joined(parts), table.n_items)


def best_across(
    left: CentredRatings, right: CentredRatings, k: int, shrink: int, by: By, *, dense: bool = False, threads: int = 1
) -> tuple[Pairs, NDArray[np.bool_]]:
    """The k best edges of every left item to right items, and which right items have an edge at all.

    No item is on both sides.
    """
    touched = np.zeros(right.n_items, dtype=bool)
    parts = []
    for block in blocks(left, right, dense=dense):
        edges = _pairs(left, right, block, shrink)
        touched[edges.second] = True
        kept = best_of_groups(edges.first, goodness(edges.cosine, by), k)
        parts.append(Pairs(*(column[kept] for column in edges)))
    return joined(parts), touched


def joined(parts: list[Pairs]) -> Pairs:
    """The pairs of all parts, one part after the other."""
    codes, counts, floats = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), np.empty(0)
    return Pairs(*map(np.concatenate, zip(Pairs(codes, codes, floats, counts, floats), *parts, strict=True)))


def _pairs(left: CentredRatings, right: CentredRatings, block: Block, shrink: int, *, above: bool = False) -> Pairs:
    """The pairs of a block that count; an item is never paired with itself, and with ``above`` only with later ones."""
    rows = np.arange(block.begin, block.begin + len(block.dots))
    skipped = block.begin if above else 0  # no pair of this block is further left
    dots, agreed, both = (part[:, skipped:] for part in (block.dots, block.agreed, block.together))
    # in this order, which gives the same bits from either end
    raw = dots * (left.scale[rows, None] * right.scale[skipped:])
    kept = np.abs(raw) > ROUNDING
    kept &= agreed >= 1
    if above:
        kept &= np.arange(skipped, right.n_items) > rows[:, None]
    elif left is right:
        kept[np.arange(rows.size), rows] = False
    position = np.flatnonzero(kept)  # one index is faster to read than two
    row = np.repeat(np.arange(rows.size, dtype=np.int32), np.count_nonzero(kept, axis=1))
    first = row + np.int32(block.begin)
    second = (position - row.astype(np.int64) * raw.shape[1] + skipped).astype(np.int32)
    cosine = raw.ravel()[position]
    together, significance = (part.ravel()[position].astype(np.int64) for part in (both, agreed))
    if shrink:
        cosine *= np.minimum(together, shrink) / shrink
    either = left.raters[first] + right.raters[second] - together
    return Pairs(first, second, cosine, significance, significance / either)


def _mirror(upper: Pairs, n: int) -> Edges:
    """Both directions of every edge. In a row the earlier items come first, then the later ones, each ascending already."""
    later = np.bincount(upper.first, minlength=n)
    earlier = np.bincount(upper.second, minlength=n)
    starts = np.concatenate(([0], np.cumsum(earlier + later)))
    opened = np.concatenate(([0], np.cumsum(later)))[:-1]
    forth = np.arange(upper.first.size) + np.repeat(starts[:-1] + earlier - opened, later)
    edges = sparse.csr_array((np.arange(upper.first.size), upper.second, np.append(opened, upper.first.size)), (n, n))
    turned = sparse.csc_array(edges).data  # sorted by the later item, by counting
    before = np.concatenate(([0], np.cumsum(earlier)))[:-1]
    back = np.arange(upper.first.size) + np.repeat(starts[:-1] - before, earlier)

    def both(forward: Array, backward: Array) -> Array:
        out = np.empty(2 * forward.size, dtype=forward.dtype)
        out[forth] = forward
        out[back] = backward[turned]
        return out

    return Edges(
        starts.astype(np.int64), both(upper.second, upper.first), *(both(column, column) for column in upper[2:])
    )


def blocks(left: CentredRatings, right: CentredRatings, *, dense: bool) -> Iterator[Block]:
    """Blocks of products of left and right items.

    e_i . e_j is how many agree less how many differ, so S is half its sum with the number of common raters.
    """
    height = max(1, _CELLS // max(right.n_items, 1))
    if dense:
        yield from _dense(left, right, height)
        return
    products = _sparse(left, right)
    for begin in range(0, left.n_items, height):
        dots, surplus, together = (rows(begin, begin + height) for rows in products)
        yield Block(begin, dots, (together + surplus) / 2, together)


def _sparse(left: CentredRatings, right: CentredRatings) -> list[Any]:
    """Three functions of (begin, end), each giving rows of one product."""

    def product(rows: Any, columns: Any) -> Any:
        return lambda begin, end: (rows[begin:end] @ columns).toarray()

    others = _tables(right)
    return [product(rows.T.tocsr(), columns) for rows, columns in zip(_tables(left), others, strict=True)]


def _tables(table: CentredRatings) -> tuple[Any, Any, Any]:
    """The tables of z, e and ones."""
    signs = np.where(table.likes, 1.0, -1.0)
    return table.table(table.values), table.table(signs), table.table(np.ones(signs.size))


def _dense(left: CentredRatings, right: CentredRatings, height: int) -> Iterator[Block]:
    """Whole products: dense between the most rated items of either side, sparse for the rest.

    With 1 for a like and M for a dislike, one product counts users who both like, plus M times those who differ, plus
    M^2 times those who both dislike: three counts below M in one float, exactly, since M^3 < 2^53. More than M users
    are counted in parts.
    """
    rows, same = _most_rated(left), left is right
    columns = rows if same else _most_rated(right)
    dots = _product(left.table(left.values), right.table(right.values), rows, columns, same=same)
    agreed, together = (np.zeros(dots.shape, dtype=np.int32) for _ in range(2))
    for left_marks, right_marks in zip(_marks(left), _marks(right), strict=True):
        packed = _product(left_marks, right_marks, rows, columns, same=same)
        for begin in range(0, left.n_items, height):
            part = slice(begin, begin + height)
            whole = packed[part].astype(np.int64)
            alike = (whole & (_PACK - 1)) + (whole >> 2 * _PACK_BITS)
            agreed[part] += alike.astype(np.int32)
            together[part] += (alike + (whole >> _PACK_BITS & (_PACK - 1))).astype(np.int32)
    for begin in range(0, left.n_items, height):
        part = slice(begin, begin + height)
        yield Block(begin, dots[part], agreed[part], together[part])


def _marks(table: CentredRatings) -> list[Any]:
    """1 for a like and M for a dislike, in tables of fewer than M users."""
    marks = table.table(np.where(table.likes, 1.0, float(_PACK)))
    return [marks[first : first + _PACK - 1] for first in range(0, max(table.n_users, 1), _PACK - 1)]


def _product(left: Any, right: Any, rows: Array, columns: Array, *, same: bool) -> Array:
    """left^T @ right: dense between these rows and columns, sparse elsewhere."""
    total = np.zeros((left.shape[1], right.shape[1]))
    total[np.ix_(rows, columns)] = _between(left[:, rows], right[:, columns], same=same)
    _fill(total, left, right, rows, columns, same=same)
    return total


def _between(left: Any, right: Any, *, same: bool) -> Array:
    """left^T @ right in dense tables of some users at a time."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for begin in range(0, left.shape[0], _USERS):
        rows = left[begin : begin + _USERS].toarray()
        # BLAS halves the work of a product with itself
        total += rows.T @ (rows if same else right[begin : begin + _USERS].toarray())
    return total


def _fill(total: Array, left: Any, right: Any, rows: Array, columns: Array, *, same: bool) -> None:
    """Fills in the products of rarely rated items with all others."""
    rarely_rated = np.setdiff1d(np.arange(total.shape[0]), rows)
    height = max(1, _CELLS // max(1, total.shape[1]))
    turned = left[:, rarely_rated].T.tocsr()
    for begin in range(0, rarely_rated.size, height):
        part = rarely_rated[begin : begin + height]
        block = (turned[begin : begin + height] @ right).toarray()
        total[part] = block
        if same:
            total[:, part] = block.T
    if not same:
        rarely_rated = np.setdiff1d(np.arange(total.shape[1]), columns)
        total[np.ix_(rows, rarely_rated)] = (left[:, rows].T.tocsr() @ right[:, rarely_rated]).toarray()


def _most_rated(table: CentredRatings) -> Array:
    """The items, ascending, to multiply densely, so that dense and sparse products together are fastest."""
    order = np.argsort(-table.raters, kind="stable")
    rank = np.empty(table.n_items, dtype=np.int64)
    rank[order] = np.arange(table.n_items)
    user = np.repeat(np.arange(table.n_users), np.diff(table.starts))
    profile = np.diff(table.starts).astype(np.float64)

    def cost(size: int) -> float:
        inside = np.bincount(user[rank[table.items] < size], minlength=table.n_users)
        return table.n_users * float(size) ** 2 + _DENSE_GAIN * float(profile @ profile - inside @ inside)

    sizes = np.unique(np.linspace(0, table.n_items, 17).astype(np.int64))
    return np.sort(order[: min(sizes.tolist(), key=cost)])
