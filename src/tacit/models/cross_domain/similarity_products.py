"""Three products of tables for all pairs of items, a block of rows at a time: sparse ones, or dense ones on BLAS."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.models.cross_domain.centred import Centred

_CELLS = 1 << 21  # of a block of rows: 16 MB in floats
_USERS = 1024  # made dense at a time
_PACK_BITS = 17
_PACK = 1 << _PACK_BITS  # M: three counts below it fit into the 53 bits of a float
_DENSE_GAIN = 150.0  # multiply-adds of dense products in the time of one step of sparse ones


class Block(NamedTuple):
    """Rows of items from ``begin`` on x all column items."""

    begin: int
    dots: NDArray[Any]  # z_i . z_j
    agreed: NDArray[Any]  # S
    together: NDArray[Any]  # how many rated both


def blocks(left: Centred, right: Centred, *, dense: bool) -> Iterator[Block]:
    """With e = +1 for a like and -1 for a dislike, e_i . e_j counts who agree less who differ: S is half its sum with all."""
    height = max(1, _CELLS // max(right.n_items, 1))
    if dense:
        yield from _dense(left, right, height)
        return
    products = _sparse(left, right)
    for begin in range(0, left.n_items, height):
        dots, surplus, together = (rows(begin, begin + height) for rows in products)
        yield Block(begin, dots, (together + surplus) / 2, together)


def _sparse(left: Centred, right: Centred) -> list[Any]:
    def product(one: Any, other: Any) -> Any:
        return lambda begin, end: (one[begin:end] @ other).toarray()

    others = _tables(right)
    return [product(one.T.tocsr(), other) for one, other in zip(_tables(left), others, strict=True)]


def _dense(left: Centred, right: Centred, height: int) -> Iterator[Block]:
    """Whole products: dense between the items of either side that are rated most, sparse for the rest.

    With 1 for a like and M for a dislike one product counts who both like, M times those who differ, and M^2 times who both
    dislike: three counts below M in one float, exactly, since M^3 < 2^53. Of more users so many at a time are counted.
    """
    rows, same = _most_rated(left), left is right
    columns = rows if same else _most_rated(right)
    dots = _product(left.table(left.values), right.table(right.values), rows, columns, same=same)
    agreed, together = (np.zeros(dots.shape, dtype=np.int32) for _ in range(2))
    for one, other in zip(_marks(left), _marks(right), strict=True):
        packed = _product(one, other, rows, columns, same=same)
        for begin in range(0, left.n_items, height):
            part = slice(begin, begin + height)
            whole = packed[part].astype(np.int64)
            alike = (whole & (_PACK - 1)) + (whole >> 2 * _PACK_BITS)
            agreed[part] += alike.astype(np.int32)
            together[part] += (alike + (whole >> _PACK_BITS & (_PACK - 1))).astype(np.int32)
    for begin in range(0, left.n_items, height):
        part = slice(begin, begin + height)
        yield Block(begin, dots[part], agreed[part], together[part])


def _marks(table: Centred) -> list[Any]:
    """1 for a like and M for a dislike, fewer than M users at a time."""
    marks = table.table(np.where(table.likes, 1.0, float(_PACK)))
    return [marks[first : first + _PACK - 1] for first in range(0, max(table.n_users, 1), _PACK - 1)]


def _product(one: Any, other: Any, rows: NDArray[Any], columns: NDArray[Any], *, same: bool) -> NDArray[Any]:
    total = np.zeros((one.shape[1], other.shape[1]))
    total[np.ix_(rows, columns)] = _between(one[:, rows], other[:, columns], same=same)
    _fill(total, one, other, rows, columns, same=same)
    return total


def _between(one: Any, other: Any, *, same: bool) -> NDArray[Any]:
    total = np.zeros((one.shape[1], other.shape[1]))
    for begin in range(0, one.shape[0], _USERS):
        rows = one[begin : begin + _USERS].toarray()
        total += rows.T @ (rows if same else other[begin : begin + _USERS].toarray())  # with itself: half the work
    return total


def _fill(total: NDArray[Any], one: Any, other: Any, rows: NDArray[Any], columns: NDArray[Any], *, same: bool) -> None:
    """The products of what is rated little, with everything."""
    little = np.setdiff1d(np.arange(total.shape[0]), rows)
    height = max(1, _CELLS // max(1, total.shape[1]))
    turned = one[:, little].T.tocsr()
    for begin in range(0, little.size, height):
        some = little[begin : begin + height]
        block = (turned[begin : begin + height] @ other).toarray()
        total[some] = block
        if same:
            total[:, some] = block.T
    if not same:
        little = np.setdiff1d(np.arange(total.shape[1]), columns)
        total[np.ix_(rows, little)] = (one[:, rows].T.tocsr() @ other[:, little]).toarray()


def _most_rated(table: Centred) -> NDArray[Any]:
    """So many items, ascending, that dense products of these and sparse ones of the others are fastest together."""
    order = np.argsort(-table.raters, kind="stable")
    place = np.empty(table.n_items, dtype=np.int64)
    place[order] = np.arange(table.n_items)
    user = np.repeat(np.arange(table.n_users), np.diff(table.starts))
    profile = np.diff(table.starts).astype(np.float64)

    def cost(size: int) -> float:
        inside = np.bincount(user[place[table.items] < size], minlength=table.n_users)
        return table.n_users * float(size) ** 2 + _DENSE_GAIN * float(profile @ profile - inside @ inside)

    sizes = np.unique(np.linspace(0, table.n_items, 17).astype(np.int64))
    return np.sort(order[: min(sizes.tolist(), key=cost)])


def _tables(table: Centred) -> tuple[Any, Any, Any]:
    """z, e and ones."""
    signs = np.where(table.likes, 1.0, -1.0)
    return table.table(table.values), table.table(signs), table.table(np.ones(signs.size))
