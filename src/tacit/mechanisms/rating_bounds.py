"""Public bounds of users' ratings, applied inside a mechanism: ratings become whole steps, are centred and clipped, row by row.

What becomes of a row depends on that row alone, bit for bit: after each cell is rounded by itself no float is left, and whole
numbers add up to the same sums in any order and in any company.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, words64
from tacit.mechanisms.profile_bounds import LARGEST, SMALLEST, root_up

CLIP = 1 << 17  # steps within ``clip``
MOST_USERS = 1 << 30  # a user moves a sum by at most 2^27 steps: it stays below 2^57
MOST_ITEMS = 1 << 22  # a row's squares then add up to at most 2^56
MOST_MASKED = 1 << 60  # squares of all marks of a row: with its ratings they stay below 2^61
WIDEST = 1 << 16  # low and high are at most so many clips from 0, so sums of a row's ratings stay below 2^56
COARSE = 16  # steps in one step of what is multiplied: 2^13 of these within ``clip``
_BY_CELL = ("csr", "csc", "coo")  # formats in which every cell is stored by itself


@dataclass(frozen=True)
class RatingBounds:
    """Ratings from ``low`` to ``high``, less ``centre`` (None: less the user's own mean), clipped to +-``clip``.

    All of them are public constants, never computed from the ratings.
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
            raise InvalidParameter(f"centre must lie from low to high, not {self.centre!r}; or None: each own mean.")
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
        """Users x items in whole steps; what a row stores is rated, also where it is 0. Private, as the rows are.

        Of a sparse table what is stored is rated, of a dense one every cell; a cell that is NaN or infinite is not, in either.
        Cells named twice are added up. Of a row with more than ``most_items`` ratings that many are drawn by ``noise``, before
        it is centred.
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


def rated_cells(
    rows: Any, items: int, bounds: RatingBounds
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """(user, item, value in steps) of every rating, in ascending order, each cell once; and the number of users."""
    user, item, raw, n_users = _cells(rows, items)
    value, is_rated = _whole(raw, bounds)
    is_rated &= (item >= 0) & (item < items)
    user, item, value = user[is_rated], item[is_rated], value[is_rated]
    place = user * items + item
    if (
        place[1:] <= place[:-1]
    ).any():  # not in order, or a cell named twice: a sum of whole numbers, in any order the same
        order = np.argsort(place, kind="stable")
        place, first = np.unique(place[order], return_index=True)
        value = np.add.reduceat(value[order], first)
        user, item = np.divmod(place, items)
    return user, item, value, n_users


def few_each(user: NDArray[np.int64], most: int, n_users: int, noise: Noise) -> NDArray[np.int64]:
    """Which of the cells (their users in ascending order) stay: all of a user's, or ``most`` of them drawn by chance."""
    count = np.bincount(user, minlength=n_users)
    crowded = np.flatnonzero((count > most)[user])
    if not crowded.size:
        return np.arange(user.size)
    order = np.lexsort((words64(noise, crowded.size), user[crowded]))  # each user's words are her own
    starts = np.concatenate([[0], np.cumsum(np.where(count > most, count, 0))[:-1]])
    rank = np.arange(crowded.size) - starts[user[crowded]]  # users are in the same places after sorting
    stays = (count <= most)[user]
    stays[crowded[order[rank < most]]] = True
    return np.flatnonzero(stays)


def row_sums(values: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of each stretch of whole numbers; 0 for an empty one. Exact: sums of all of them wrap around, differences do not."""
    upto = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(upto[starts[1:]] - upto[starts[:-1]], dtype=np.int64)


def cut_rows(table: sparse.csr_array, bound: int, *, mask: int = 0, coarse: int = 1) -> tuple[sparse.csr_array, Any]:
    """Each row times min(1, bound / norm), where the norm is that of (row, ``mask`` for every rating), rounded towards 0.

    Also each row's ``mask`` under the same factor. What comes out is in units of ``coarse`` steps, as ``bound`` is: its norm, with
    the masks, is at most ``bound`` exactly. A row's factor is bound / max(ceil(norm), coarse * bound) in whole numbers. The squares
    of a row and its masks must add up to less than 2^62.
    """
    starts = table.indptr.astype(np.int64)  # counts in 32 bits would overflow where they are multiplied
    count = np.diff(starts)
    norm = root_up(row_sums(table.data * table.data, starts) + mask * mask * count)
    divisor = np.maximum(norm, coarse * bound)
    size = np.abs(table.data) * bound // np.repeat(divisor, count)
    cut = sparse.csr_array((np.sign(table.data) * size, table.indices, table.indptr), shape=table.shape)
    return cut, mask * bound // divisor


def require_ratings(rows: Any, items: int) -> None:
    """Refuses a table by its kind and shape alone, which the caller's program decides.

    Where a table is stored in blocks, a block that one user fills holds zeros of others, who rated nothing there.
    """
    if sparse.issparse(rows) and rows.format not in _BY_CELL:
        raise InvalidInput(
            f"what a sparse table of format {rows.format!r} stores as 0 may be a rating or no rating: "
            "make a csr_array of the rated cells alone."
        )
    # matrices and masked arrays are arrays, too, and mean something else
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
    cells = rows.tocoo()  # as they are stored: nothing is added up here
    return cells.row.astype(np.int64), cells.col.astype(np.int64), cells.data, rows.shape[0]


@np.errstate(all="ignore")  # a caller who has numpy raise must not be told of a cell
def _whole(raw: NDArray[Any], bounds: RatingBounds) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    value = raw.astype(np.float64)
    is_rated = np.isfinite(value)
    most = WIDEST * bounds.clip
    steps = np.rint(np.clip(np.where(is_rated, value, 0.0), -most, most) / bounds.clip * CLIP)
    return steps.astype(np.int64), is_rated
