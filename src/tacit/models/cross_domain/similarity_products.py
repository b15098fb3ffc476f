"""Three products of tables for all pairs of items, a block of rows at a time: sparse ones, or dense ones on BLAS."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.models.cross_domain.centred import Centred

_CELLS = 1 << 21  # of a block of rows: 16 MB in floats
_USERS = 1024  # made dense at a time


class Block(NamedTuple):
    """Rows of items from ``begin`` on x all column items."""

    begin: int
    dots: NDArray[Any]  # z_i . z_j
    agreed: NDArray[Any]  # S
    together: NDArray[Any]  # how many rated both


def blocks(left: Centred, right: Centred, *, dense: bool) -> Iterator[Block]:
    """With e = +1 for a like and -1 for a dislike, e_i . e_j counts who agree less who differ: S is half its sum with all."""
    height = max(1, _CELLS // max(right.n_items, 1))
    products = _dense(left, right) if dense else _sparse(left, right)
    for begin in range(0, left.n_items, height):
        dots, surplus, together = (rows(begin, begin + height) for rows in products)
        yield Block(begin, dots, (together + surplus) / 2, together)


def _sparse(left: Centred, right: Centred) -> list[Any]:
    def product(one: Any, other: Any) -> Any:
        return lambda begin, end: (one[begin:end] @ other).toarray()

    others = _tables(right)
    return [product(one.T.tocsr(), other) for one, other in zip(_tables(left), others, strict=True)]


def _dense(left: Centred, right: Centred) -> list[Any]:
    """Whole products, summed over blocks of users. Counts are whole numbers below 2^24, which single precision holds exactly."""
    counts = np.float32 if left.n_users < 1 << 24 else np.float64
    kinds = (np.float64, counts, counts)
    sums = [np.zeros((left.n_items, right.n_items), dtype=kind) for kind in kinds]
    for begin in range(0, left.n_users, _USERS):
        for total, kind, one, other in zip(sums, kinds, _tables(left), _tables(right), strict=True):
            rows = one[begin : begin + _USERS].toarray().astype(kind)
            columns = rows if left is right else other[begin : begin + _USERS].toarray().astype(kind)
            total += rows.T @ columns
    return [lambda begin, end, total=total: total[begin:end] for total in sums]


def _tables(table: Centred) -> tuple[Any, Any, Any]:
    """z, e and ones."""
    signs = np.where(table.likes, 1.0, -1.0)
    return table.table(table.values), table.table(signs), table.table(np.ones(signs.size))
