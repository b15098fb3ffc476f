"""The similarity-based sensitivity of X-Map, as its technical report prints it (Theorem 2), and the true local one beside it.

With z the ratings less their user's mean, P = z_i . z_j, and primes for "without user x",

    SS_ij = max( max_x z_xi z_xj / (|z'_i| |z'_j|),  max_x ( P / (|z'_i| |z'_j|) - P / (|z_i| |z_j|) ) ),   x over co-raters.

It is a number of one database, and not even a bound of what that database's similarity can change by: see
docs/proofs/published-x-map.md. Nothing here is private, and nothing that is scaled by it is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput


class Similarities(NamedTuple):
    """Of some items (rows) with all items (columns): adjusted cosine, printed sensitivity, and how many rated both."""

    cosine: NDArray[np.float64]
    sensitivity: NDArray[np.float64]
    raters: NDArray[np.int64]


def centred(ratings: sparse.csr_array) -> sparse.csr_array:
    """Ratings less their user's mean; a rating that equals it stays, as a 0."""
    table = sparse.csr_array(ratings, dtype=np.float64, copy=True)
    counts = np.diff(table.indptr)
    sums = np.bincount(np.repeat(np.arange(counts.size), counts), weights=table.data, minlength=counts.size)
    table.data -= np.repeat(sums / np.maximum(counts, 1), counts)
    return table


@np.errstate(all="ignore")  # a norm without its only rater is 0
def similarities(z: sparse.csr_array, items: ArrayLike) -> Similarities:
    """Adjusted cosines and printed sensitivities of ``items`` with every item, from centred ratings (users x items).

    The sensitivity is as printed, so it may be negative. Where nobody rated both it is minus infinity. Where an item has no
    norm without x its similarity becomes 0, and the change |s| stands for both terms, which the report leaves undefined.
    """
    table, wanted = _checked(z), np.atleast_1d(np.asarray(items, dtype=np.int64))
    by_item, squares = table.tocsc(), _squares(table)
    shape = (wanted.size, table.shape[1])
    found = Similarities(np.zeros(shape), np.full(shape, -np.inf), np.zeros(shape, dtype=np.int64))
    for row, item in enumerate(wanted):
        part = slice(by_item.indptr[item], by_item.indptr[item + 1])
        if part.start < part.stop:
            raters, own = by_item.indices[part], by_item.data[part]
            _fill(found, row, sparse.csc_array(table[raters]), own, squares, int(item))
    return found


def printed_sensitivity(z: sparse.csr_array, first: int, second: int) -> float:
    """The similarity-based sensitivity of one pair, as printed."""
    return float(similarities(z, [first]).sensitivity[0, second])


def local_sensitivity(z: sparse.csr_array, first: int, second: int) -> float:
    """The most that one pair's adjusted cosine really changes when one of the users, any of them, is removed."""
    one, other = (_checked(z)[:, [item]].toarray().ravel() for item in (first, second))
    here = _cosine(one @ other, one @ one, other @ other)
    without = _cosine(one @ other - one * other, one @ one - one**2, other @ other - other**2)
    return float(np.abs(here - without).max(initial=0.0))


def _fill(
    found: Similarities,
    row: int,
    co: sparse.csc_array,
    own: NDArray[np.float64],
    squares: NDArray[np.float64],
    item: int,
) -> None:
    """One row of the result: ``co`` holds all ratings of the raters of the item, ``own`` their ratings of it."""
    counts = np.diff(co.indptr)
    columns = np.flatnonzero(counts)
    starts, column = co.indptr[:-1][columns], np.repeat(np.arange(counts.size), counts)
    mine = own[co.indices]
    product = mine * co.data
    dot = np.add.reduceat(product, starts)
    norms = np.sqrt(squares[item] * squares[columns])
    cosine = np.where(norms > 0.0, dot / norms, 0.0)
    # 1 / (|z'_i| |z'_j|) for every co-rater; rounding may leave a square slightly off 0
    inverse = 1.0 / np.sqrt(_rest(squares[item], mine) * _rest(squares[column], co.data))
    undefined = np.maximum.reduceat(np.isinf(inverse), starts)
    finite = np.where(np.isinf(inverse), 0.0, inverse)
    first = np.maximum.reduceat(np.where(np.isinf(inverse), -np.inf, product * finite), starts)
    largest = np.maximum.reduceat(np.where(np.isinf(inverse), -np.inf, inverse), starts)
    smallest = np.minimum.reduceat(inverse, starts)
    second = np.where(dot > 0.0, dot * largest, np.where(dot < 0.0, dot * smallest, 0.0)) - cosine
    second = np.where(np.isinf(largest), -np.inf, second)  # no co-rater leaves both norms above 0
    printed = np.maximum(np.maximum(first, second), np.where(undefined, np.abs(cosine), -np.inf))
    found.cosine[row, columns], found.sensitivity[row, columns] = cosine, printed
    found.raters[row, columns] = counts[columns]


def _rest(square: NDArray[np.float64] | float, value: NDArray[np.float64]) -> NDArray[np.float64]:
    rest = square - value**2
    return np.where(rest > 1e-12 * square, rest, 0.0)


def _cosine(dot: ArrayLike, one: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    squares = np.maximum(np.asarray(one, dtype=np.float64), 0.0) * np.maximum(np.asarray(other, dtype=np.float64), 0.0)
    cosine = np.asarray(dot, dtype=np.float64) / np.sqrt(np.maximum(squares, 1e-18))
    found: NDArray[np.float64] = np.where(squares > 1e-18, cosine, 0.0)
    return found


def _squares(table: sparse.csr_array) -> NDArray[np.float64]:
    return np.asarray(np.bincount(table.indices, weights=table.data**2, minlength=table.shape[1]), dtype=np.float64)


def _checked(z: sparse.csr_array) -> sparse.csr_array:
    if not sparse.issparse(z) or z.ndim != 2:
        raise InvalidInput("centred ratings are a sparse table, users x items.")
    return sparse.csr_array(z, dtype=np.float64)
