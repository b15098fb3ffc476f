"""Public bounds of one user's row, applied inside a mechanism: what a row may hold is cut before anything is computed of it.

Each row is cut by itself, in whole steps of value_bound / 2^16: its image depends on that row and on noise of its own, so that
neighbouring tables stay neighbours. No float is left after the first rounding.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms.arrays import real_table
from tacit.mechanisms.grid import whole_sums
from tacit.mechanisms.noise import Noise, words64

STEPS = 1 << 16  # in value_bound
MOST_ITEMS = 1 << 22  # a row's squares then add up to at most 2^54
MOST_USERS = 1 << 28  # sums over users of 2^34 squared steps each stay below 2^62
_CELLS = 1 << 22  # of the table at a time, zeros included
SMALLEST, LARGEST = 1e-290, 1e290  # of a bound: its steps, and sums of 2^28 rows, are then floats with all their digits


@dataclass(frozen=True)
class ProfileBounds:
    """A row of ``items`` numbers, at most ``items_each`` of them other than 0, each from 0 to ``value_bound`` (from minus that if
    ``signed``), with an L1 norm of at most ``l1_bound`` and, where a mechanism needs it, an L2 norm of at most ``l2_bound``.

    All of them are public constants, never computed from the data. Left out, a norm is bounded by what the others imply.
    """

    items: int
    items_each: int
    value_bound: float
    l1_bound: float | None = None
    l2_bound: float | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        items = whole("items", self.items, least=1, most=MOST_ITEMS)
        keep(
            self,
            items=items,
            items_each=whole("items_each", self.items_each, least=1, most=items),
            value_bound=positive("value_bound", self.value_bound),
            l1_bound=None if self.l1_bound is None else positive("l1_bound", self.l1_bound),
            l2_bound=None if self.l2_bound is None else positive("l2_bound", self.l2_bound),
        )
        if not SMALLEST <= self.value_bound <= LARGEST:
            raise InvalidParameter(
                f"value_bound must lie from {SMALLEST} to {LARGEST}: floats have no steps for others; use other units."
            )
        if not isinstance(self.signed, bool):
            raise InvalidParameter("signed must be True (values below 0 are kept) or False (they count as 0).")
        if self.l1_steps < 1 or self.l2_steps < 1:
            raise InvalidParameter(
                f"the bounds of a row's norms must be at least value_bound / {STEPS}: below that every row becomes 0."
            )

    @property
    def step(self) -> Fraction:
        """What one whole number of a bounded row is worth."""
        return Fraction(self.value_bound) / STEPS

    @cached_property
    def l1_steps(self) -> int:
        """The most that the sizes of a bounded row's numbers add up to, in steps."""
        most = self.items_each * STEPS
        return most if self.l1_bound is None else min(most, math.floor(Fraction(self.l1_bound) / self.step))

    @cached_property
    def l2_squared_steps(self) -> int:
        """The most that their squares add up to, in squared steps. |x|_2^2 <= |x|_inf |x|_1 holds anyway."""
        most = self.l1_steps * STEPS
        return most if self.l2_bound is None else min(most, math.floor((Fraction(self.l2_bound) / self.step) ** 2))

    @cached_property
    def l2_steps(self) -> int:
        """The L2 bound in steps, rounded down."""
        return math.isqrt(self.l2_squared_steps)

    @property
    def l1(self) -> float:
        """The L1 bound in force, in the units of the values."""
        return float(self.l1_steps * self.step)

    @property
    def l2(self) -> float:
        """The L2 bound in force, in the units of the values."""
        return math.sqrt(self.l2_squared_steps) * float(self.step)

    def bounded(self, rows: ArrayLike | sparse.csr_array, noise: Noise, *, l2: bool = False) -> sparse.csr_array:
        """The rows in whole steps within all bounds (the L2 bound if ``l2``). Private, as the rows are.

        Cells named twice are added up first; a cell that is no number counts as 0, because refusing it would be an answer about
        it. Of a row with more than ``items_each`` numbers other than 0 that many are kept, drawn by ``noise``.
        """
        parts = [self._bounded(table, noise, l2) for table in _tables(rows, self.items)]
        return sparse.csr_array(sparse.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]

    @np.errstate(all="ignore")  # a caller who has numpy raise must not be told of a tiny cell
    def _bounded(self, table: sparse.csr_array, noise: Noise, l2: bool) -> sparse.csr_array:
        share = np.where(np.isfinite(table.data), table.data, 0.0) / self.value_bound
        cells = np.trunc(np.clip(share, -1.0 if self.signed else 0.0, 1.0) * STEPS).astype(np.int64)
        row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        kept = np.flatnonzero(cells)
        kept = kept[_few_each(row[kept], table.indices[kept], self.items_each, table.shape, noise)]
        cells, row, item = cells[kept], row[kept], table.indices[kept]
        size = np.abs(cells)
        total = whole_sums(size, row, table.shape[0])
        over = total[row] > self.l1_steps
        size[over] = size[over] * self.l1_steps // total[row[over]]  # rounded down: their sum is at most l1_steps
        if l2:
            squares = whole_sums(size * size, row, table.shape[0])
            over = squares[row] > self.l2_squared_steps
            # times floor(sqrt bound) / ceil(norm), rounded down: the squares add up to at most the bound
            size[over] = size[over] * self.l2_steps // root_up(squares)[row[over]]
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=table.shape[0]))]).astype(np.int32)
        bounded = sparse.csr_array((np.sign(cells) * size, item.astype(np.int32), starts), shape=table.shape)
        bounded.eliminate_zeros()
        return bounded


def _tables(rows: Any, items: int) -> Iterator[sparse.csr_array]:
    """The rows as sparse tables, of a dense array a stretch of users at a time."""
    dense = isinstance(rows, np.ndarray) and rows.ndim == 2
    table = rows if dense else real_table(rows, "rows", items)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    if table.shape[0] >= MOST_USERS:  # by its shape, which the caller's program decides
        raise InvalidInput(f"a table must have fewer than {MOST_USERS} rows: whole numbers would overflow.")
    users = max(1, _CELLS // items)
    for first in range(0, max(1, table.shape[0]), users):
        part = table[first : first + users]
        yield real_table(part, "rows", items) if dense else part


def _few_each(
    row: NDArray[np.int64], item: NDArray[np.int32], most: int, shape: tuple[int, int], noise: Noise
) -> NDArray[np.intp]:
    """Which of the cells (their rows in ascending order) stay: all of a row, or ``most`` of them drawn by chance."""
    count = np.bincount(row, minlength=shape[0])
    crowded = np.flatnonzero((count > most)[row])
    if not crowded.size:
        return np.arange(row.size)
    # a word for each cell: its row, then at least 40 random bits, then its item, so that no two are equal. The smallest words of
    # each row stay, and a row's words are its own.
    above, below = np.uint64(64 - max(1, (shape[0] - 1).bit_length())), np.uint64((shape[1] - 1).bit_length())
    word = (words64(noise, crowded.size) >> (np.uint64(64) - above + below)) << below
    word |= (row[crowded].astype(np.uint64) << above) | item[crowded].astype(np.uint64)
    starts = np.concatenate([[0], np.cumsum(np.where(count > most, count, 0))[:-1]])  # of each row among the crowded
    last = np.sort(word)[np.minimum(starts + most - 1, crowded.size - 1)]  # the last word that stays
    stays = (count <= most)[row]
    stays[crowded] = word <= last[row[crowded]]
    return np.flatnonzero(stays)


def root_up(squares: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest whole numbers whose squares are not below ``squares``, which are below 2^62."""
    root = np.ceil(np.sqrt(squares.astype(np.float64))).astype(np.int64)
    root += root * root < squares
    root -= (root > 0) & ((root - 1) * (root - 1) >= squares)
    return root
