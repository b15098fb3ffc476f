"""Users' ratings as rows of whole steps: public bounds, exact sums over users, and exact sums of products.

A mechanism turns ratings into whole steps, centres and clips them, row by row. The image of a row depends on that row alone,
bit for bit: each cell is rounded independently, and then no float is left. Whole numbers have the same sum in any order. Totals are
computed here, or elsewhere for tables that no single machine holds (``TotalsOnDemand``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind
from tacit.guarantees.concentrated import epsilon_of_gaussian
from tacit.mechanisms.inputs import LARGEST, SMALLEST, root_up
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, words64

CLIP = 1 << 17  # steps within ``clip``
MOST_USERS = 1 << 30  # a user moves a sum by at most 2^27 steps: it stays below 2^57
MOST_ITEMS = 1 << 22  # a row's squares then add up to at most 2^56
MOST_MASKED = 1 << 60  # squares of all marks of a row: with its ratings they stay below 2^61
MOST_NORM = 1 << 10  # in clips: a number times the bound then stays below 2^44
WIDEST = 1 << 16  # clips of low and high from 0, at most: sums of a row's ratings then stay below 2^56
COARSE = 16  # steps in one step of what is multiplied: 2^13 of these within ``clip``
_BY_CELL = ("csr", "csc", "coo")  # formats that store every cell separately


@dataclass(frozen=True)
class RatingBounds:
    """Ratings from ``low`` to ``high``, less ``centre`` (None: less the user's own mean), clipped to +-``clip``.

    All bounds are public constants: never compute them from the ratings.
    """

    low: float
    high: float
    centre: float | None = None
    clip: float = 2.0

    def __post_init__(self) -> None:
        keep(
            self,
            low=finite("low", self.low),
            high=finite("high", self.high),
            centre=None if self.centre is None else finite("centre", self.centre),
            clip=positive("clip", self.clip),
        )
        if not self.low < self.high:
            raise InvalidParameter(f"low must be below high, not {self.low!r} and {self.high!r}.")
        if self.centre is not None and not self.low <= self.centre <= self.high:
            raise InvalidParameter(
                f"centre must lie from low to high, not {self.centre!r}; None centres each user by their own mean."
            )
        if not SMALLEST <= self.clip <= LARGEST or max(abs(self.low), abs(self.high)) > WIDEST * self.clip:
            raise InvalidParameter(
                f"low and high must lie within {WIDEST} times clip from 0, and clip from {SMALLEST} to {LARGEST}."
            )

    @property
    def step(self) -> Fraction:
        """What one step is worth: clip / 2^17, so 2^-16 for a clip of 2."""
        return Fraction(self.clip) / CLIP

    @cached_property
    def scale(self) -> tuple[int, int]:
        """``low`` and ``high`` in steps."""
        return round(Fraction(self.low) / self.step), round(Fraction(self.high) / self.step)

    def in_steps(self, value: float) -> int:
        """A public length, such as the bound of a norm, in steps, rounded down."""
        return int(Fraction(value) / self.step)

    def centred(
        self,
        rows: ArrayLike | sparse.csr_array,
        items: int,
        *,
        most_items: int | None = None,
        noise: Noise = SYSTEM_NOISE,
    ) -> sparse.csr_array:
        """Users x items in whole steps; every stored cell is a rating, also a 0. Private, as the rows are.

        In a sparse table every stored cell is a rating, in a dense one every cell; a cell that is NaN or infinite never is. Numbers
        of the same cell are added up. If a row has more than ``most_items`` ratings, ``noise`` draws that many before the row is
        centred.
        """
        user, item, value, n_users = rated_cells(rows, items, self)
        if most_items is not None:
            stays = few_each(user, most_items, n_users, noise)
            user, item, value = user[stays], item[stays], value[stays]
        np.clip(value, *self.scale, out=value)
        count = np.bincount(user, minlength=n_users).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(count)])
        if self.centre is None:
            total = row_sums(value, starts)
            each = np.maximum(count, 1)
            value -= np.repeat((2 * total + each) // (2 * each), count)  # to the nearest step, halves up
        else:
            value -= round(Fraction(self.centre) / self.step)
        np.clip(value, -CLIP, CLIP, out=value)
        return sparse.csr_array((value, item, starts), shape=(n_users, items))


def checked_bounds(bounds: object) -> RatingBounds:
    """Returns ``bounds`` if they are RatingBounds."""
    if not isinstance(bounds, RatingBounds):
        raise InvalidParameter(
            "bounds must be RatingBounds: the scale of the ratings is public, and never computed from them."
        )
    return bounds


def checked_length(name: str, value: float, bounds: RatingBounds) -> float:
    """The bound of a norm, or the weight of a mark, within the range that whole steps can hold."""
    length = positive(name, value)
    if not 1 << 7 <= Fraction(length) / bounds.step <= MOST_NORM * CLIP:
        raise InvalidParameter(
            f"{name} must lie from {bounds.clip / 1024} to {bounds.clip * MOST_NORM}, not {length!r}."
        )
    return length


def rated_cells(
    rows: Any, items: int, bounds: RatingBounds
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """(user, item, value in steps) of every rating, in ascending order, each cell once; and the number of users."""
    user, item, raw, n_users = _cells(rows, items)
    value, is_rated = _whole(raw, bounds)
    is_rated &= (item >= 0) & (item < items)
    user, item, value = user[is_rated], item[is_rated], value[is_rated]
    cell = user * items + item
    if (
        cell[1:] <= cell[:-1]
    ).any():  # not in order, or a cell occurs twice: whole numbers have the same sum in any order
        order = np.argsort(cell, kind="stable")
        cell, first = np.unique(cell[order], return_index=True)
        value = np.add.reduceat(value[order], first)
        user, item = np.divmod(cell, items)
    return user, item, value, n_users


def few_each(user: NDArray[np.int64], most: int, n_users: int, noise: Noise) -> NDArray[np.int64]:
    """Which cells stay: all of a user's, or ``most`` of them, drawn at random. The users must be in ascending order."""
    count = np.bincount(user, minlength=n_users)
    crowded = np.flatnonzero((count > most)[user])
    if not crowded.size:
        return np.arange(user.size)
    order = np.lexsort((words64(noise, crowded.size), user[crowded]))  # each user has their own words
    starts = np.concatenate([[0], np.cumsum(np.where(count > most, count, 0))[:-1]])
    rank = np.arange(crowded.size) - starts[user[crowded]]  # sorting keeps the users in place
    stays = (count <= most)[user]
    stays[crowded[order[rank < most]]] = True
    return np.flatnonzero(stays)


def row_sums(values: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of each stretch of whole numbers, exactly; 0 for an empty one. Running sums may wrap around, differences do not."""
    upto = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(upto[starts[1:]] - upto[starts[:-1]], dtype=np.int64)


def cut_rows(table: sparse.csr_array, bound: int, *, mask: int = 0, coarse: int = 1) -> tuple[sparse.csr_array, Any]:
    """Each row times min(1, bound / norm), where the norm is that of (row, ``mask`` for every rating), rounded towards 0.

    Also each row's ``mask`` under the same factor. What comes out is in units of ``coarse`` steps, as ``bound`` is: its norm, with
    the masks, is at most ``bound`` exactly. A row's factor is bound / max(ceil(norm), coarse * bound) in whole numbers. The squares
    of a row and its masks must add up to less than 2^62.
    """
    starts = table.indptr.astype(np.int64)  # 32-bit counts would overflow when multiplied
    count = np.diff(starts)
    norm = root_up(row_sums(table.data * table.data, starts) + mask * mask * count)
    divisor = np.maximum(norm, coarse * bound)
    size = np.abs(table.data) * bound // np.repeat(divisor, count)
    cut = sparse.csr_array((np.sign(table.data) * size, table.indices, table.indptr), shape=table.shape)
    return cut, mask * bound // divisor


def require_ratings(rows: Any, items: int) -> None:
    """Raises InvalidInput for a table of the wrong type or shape, which the caller's program decides.

    Where a table is stored in blocks, a block that one user fills holds zeros of others, who rated nothing there.
    """
    if sparse.issparse(rows) and rows.format not in _BY_CELL:
        raise InvalidInput(
            f"what a sparse table of format {rows.format!r} stores as 0 may be a rating or no rating: "
            "make a csr_array of the rated cells alone."
        )
    # matrices and masked arrays are arrays too, but mean something else
    if not sparse.issparse(rows) and type(rows) not in (np.ndarray, np.memmap):
        raise InvalidInput("ratings must be a sparse table, or a plain array of numbers in which NaN is not rated.")
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise InvalidInput("ratings must be a table of real numbers: one row for each user.")
    if rows.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} ratings.")
    if rows.shape[0] >= MOST_USERS:
        raise InvalidInput(f"a table must have fewer than {MOST_USERS} rows: whole numbers would overflow.")


def _cells(rows: Any, items: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any], int]:
    require_ratings(rows, items)
    if not sparse.issparse(rows):
        user, item = np.divmod(np.arange(rows.size, dtype=np.int64), items)
        return user, item, rows.reshape(-1), rows.shape[0]
    if rows.format == "csr":
        user = np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))
        return user, rows.indices[: user.size].astype(np.int64), rows.data[: user.size], rows.shape[0]
    cells = rows.tocoo()  # as they are stored, without adding up
    return cells.row.astype(np.int64), cells.col.astype(np.int64), cells.data, rows.shape[0]


@np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
def _whole(raw: NDArray[Any], bounds: RatingBounds) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    value = raw.astype(np.float64)
    is_rated = np.isfinite(value)
    most = WIDEST * bounds.clip
    steps = np.rint(np.clip(np.where(is_rated, value, 0.0), -most, most) / bounds.clip * CLIP)
    return steps.astype(np.int64), is_rated


_CELLS = 1 << 22  # of a table at a time


class SumStep(Protocol):
    """A step that is a sum over users: the totals of a table are the sum of the totals of its parts."""

    @property
    def length(self) -> int:
        """How many whole numbers ``totals`` gives."""

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        """The exact sums in steps. Private."""


@runtime_checkable
class TotalsOnDemand(Protocol):
    """The rows of all users, of which a mechanism asks sums only.

    ``totals(of)`` must be the sum of ``of.totals`` over parts of the table that contain every user's whole row exactly once.
    """

    def totals(self, of: SumStep, /) -> NDArray[np.int64]:
        """The totals of all users' clipped rows, in grid steps."""


Rows: TypeAlias = "sparse.csr_array | NDArray[Any] | TotalsOnDemand"


def totals_of(step: SumStep, rows: Rows, noise: Noise) -> NDArray[np.int64]:
    """A copy of the exact sums of ``step``, computed from a table or given on demand."""
    if not isinstance(rows, TotalsOnDemand):
        return step.totals(rows, noise)
    total = np.array(rows.totals(step))
    if total.shape != (step.length,) or total.dtype != np.int64:
        raise InvalidInput(f"expected totals of {step.length} 64-bit whole numbers, one for each sum.")
    return total


def stretches(rows: Any, items: int) -> Iterator[Any]:
    """The table a stretch of users at a time, with whole rows. Raises InvalidInput unless it has ratings of ``items``."""
    require_ratings(rows, items)
    if sparse.issparse(rows) and rows.format == "csr" and rows.nnz > _CELLS:
        wanted = np.arange(_CELLS, rows.nnz, _CELLS)
        ends = np.unique(np.concatenate([[0], np.searchsorted(rows.indptr, wanted), [rows.shape[0]]]))
    elif isinstance(rows, np.ndarray) and rows.size > _CELLS:
        ends = np.append(np.arange(0, rows.shape[0], max(1, _CELLS // rows.shape[1])), rows.shape[0])
    else:
        yield rows
        return
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield rows[first:last]


def gaussian_claim(name: str, mu: float, delta: float) -> Guarantee:
    """What a Gaussian loss mu promises for one user, added or removed."""
    loss = Loss(LossKind.GAUSSIAN, mu)
    return Guarantee(epsilon_of_gaussian(mu, delta), ONE_USER, delta=delta, proof=name, loss=loss)


MOST_COLUMNS = 1 << 12  # the matrix of floats then takes 134 MB
_DENSE_CELLS = 1 << 20  # of a dense table at a time
_USERS = 1 << 26  # products of 2^26 each: their sums stay below 2^52, where every whole number is a float
_COLUMNS = 128  # of the matrix at a time
_DENSE_IS_FASTER = 80  # a product of two stored cells takes this many times as long as one of a dense table


def triangle(columns: int, *, diagonal: bool) -> int:
    """How many numbers the upper triangle has, with its diagonal or without."""
    return columns * (columns + 1) // 2 if diagonal else columns * (columns - 1) // 2


def product_sums(rows: sparse.csr_array, *, diagonal: bool) -> NDArray[np.int64]:
    """(sum of z_i z_j) for i <= j, or i < j, row by row. The numbers of ``rows`` are at most 2^13 in size.

    It uses dense products of floats if that is faster. They are exact, because every partial sum is a whole number below 2^52.
    """
    users, columns = rows.shape
    pairs = int(np.square(np.diff(rows.indptr).astype(np.int64)).sum())
    if pairs * _DENSE_IS_FASTER > users * columns * columns:
        return dense_sums(rows, diagonal=diagonal)
    return sparse_sums(rows, diagonal=diagonal)


def dense_sums(rows: sparse.csr_array, *, diagonal: bool) -> NDArray[np.int64]:
    """The upper triangle of rows^T rows, by dense products."""
    from scipy.linalg.blas import dsyrk

    users, columns = rows.shape
    vector = np.zeros(triangle(columns, diagonal=diagonal), dtype=np.int64)
    whole = sparse.csr_array((rows.data.astype(np.float64), rows.indices, rows.indptr), shape=rows.shape)
    at_once = max(1, _DENSE_CELLS // max(1, columns))
    for start in range(0, users, _USERS):
        total = np.zeros((columns, columns), order="F")
        for first in range(start, min(users, start + _USERS), at_once):
            part = whole[first : min(users, start + _USERS, first + at_once)].toarray()
            total = dsyrk(1.0, part.T, beta=1.0, c=total, overwrite_c=1, lower=1)
        filled = 0
        for column in range(columns):
            below = total[column + (0 if diagonal else 1) :, column]
            vector[filled : filled + below.size] += below.astype(np.int64)
            filled += below.size
    return vector


def sparse_sums(
    rows: sparse.csr_array, *, diagonal: bool, weighted: sparse.csr_array | None = None
) -> NDArray[np.int64]:
    """The upper triangle of rows^T ``weighted``, where ``weighted`` is ``rows`` with another weight for each user, or ``rows``."""
    columns, weighted = rows.shape[1], rows if weighted is None else weighted
    vector = np.zeros(triangle(columns, diagonal=diagonal), dtype=np.int64)
    by_column, filled = rows.T.tocsr(), 0
    for first in range(0, columns, _COLUMNS):
        block = (by_column[first : first + _COLUMNS] @ weighted[:, first:]).toarray()
        above = block[np.arange(columns - first)[None, :] >= np.arange(len(block))[:, None] + (0 if diagonal else 1)]
        vector[filled : filled + above.size] = above
        filled += above.size
    return vector


def as_matrix(vector: NDArray[np.floating[Any]], columns: int, *, diagonal: bool) -> NDArray[np.float64]:
    """The symmetric matrix whose upper triangle is ``vector``; with 0 on the diagonal if the vector has none."""
    matrix = np.zeros((columns, columns))
    matrix[np.triu_indices(columns, 0 if diagonal else 1)] = vector
    return matrix + np.triu(matrix, 1).T
