"""Private input: arrays of floats, rows in whole grid steps, and public bounds that a mechanism applies to each row.

Input is refused for its shape or type only, which the caller's program decides, and an error never shows a value. Every row is cut
independently, in whole numbers: its image depends on that row and on noise of its own, so neighbouring tables stay neighbours.
After the first rounding no float is left.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms.noise import Noise, words64

# numpy turns cells of these types into floats of the same value in any table; cells of other types are read one by one
PLAIN_NUMBERS = frozenset(
    {bool, int, float, np.bool_, np.float16, np.float32, np.float64}
    | {np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
)


@np.errstate(all="ignore")  # a wider float may be infinite, or 0, as a float64
def real_array(raw: ArrayLike, name: str) -> NDArray[np.float64]:
    """``raw`` as float64. Complex numbers, strings and ragged lists raise InvalidInput; too large numbers become infinite."""
    values = _array(raw)
    if values is not None and values.dtype.kind in "biuf":
        return np.array(values, dtype=np.float64)  # a copy
    if values is not None and values.dtype.kind == "O":
        cells = [_real_or_infinite(cell) for cell in values.flat]
        if None not in cells:
            return np.array(cells, dtype=np.float64).reshape(values.shape)
    raise InvalidInput(f"{name} must be an array of real numbers.")


@np.errstate(all="ignore")
def real_table(raw: Any, name: str, columns: int | None = None) -> sparse.csr_array:
    """``raw``, dense or sparse, as a sparse float64 table in which every cell occurs once. The caller's table is not changed.

    Raises InvalidInput for a wrong shape or type: an array of strings or complex numbers, or rows of different lengths. A single
    cell of a list, or of an array of objects, that is not a number becomes NaN: an error would reveal something about one user.
    Such cells are read one by one, because numpy would look for a type that fits all of them, and one string would turn other
    users' numbers into strings. An empty list is a table of ``columns`` without users.
    """
    if sparse.issparse(raw):
        if raw.ndim != 2 or raw.dtype.kind not in "biuf":
            raise InvalidInput(f"{name} must be a table of real numbers: one row for each user.")
        if raw.format == "csr":
            table = sparse.csr_array(raw).astype(np.float64)  # a copy
            if table.has_canonical_format:
                return table
        cells = raw.tocoo()  # as they are stored
        stored = np.flatnonzero(cells.data != 0) if raw.format == "bsr" else slice(None)  # a block also stores zeros
        return sum_cells(cells.row[stored], cells.col[stored], cells.data[stored].astype(np.float64), raw.shape)
    if not hasattr(raw, "__array__"):
        return sparse.csr_array(_from_lists(raw, name, columns))
    dense = np.asarray(raw)
    if dense.shape == (0,) and columns is not None:
        dense = np.zeros((0, columns))
    if dense.ndim != 2:
        raise InvalidInput(f"{name} must be a table: one row for each user.")
    if dense.dtype.kind == "O":
        dense = np.array([[real_cell(cell) for cell in row] for row in dense], dtype=np.float64).reshape(dense.shape)
    return sparse.csr_array(real_array(dense, name))


def sum_cells(row: NDArray[Any], column: NDArray[Any], value: NDArray[Any], shape: tuple[int, int]) -> sparse.csr_array:
    """A sparse table in which every cell occurs once; numbers of the same cell are added up in the given order.

    scipy adds them up in an order that depends on other rows: if one row is not sorted it sorts all of them, equal cells in any
    order. A sum of floats would then depend on those rows.
    """
    table = sparse.coo_array((value, (row, column)), shape=shape).tocsr()
    if table.nnz == value.size:  # no cell occurs twice
        return table
    order = np.lexsort((column, row))  # equal cells stay in order
    row, column, value = row[order], column[order], value[order]
    first = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(column) != 0)))
    table.data = np.add.reduceat(value, first)  # the same cells in the same order
    return table


def _from_lists(raw: Any, name: str, columns: int | None) -> NDArray[np.float64]:
    users = _cells(raw)
    if users is not None and not users and columns is not None:
        return np.zeros((0, columns))
    rows = [cells for cells in map(_cells, users or []) if cells is not None]
    if not users or len(rows) < len(users) or len({len(row) for row in rows}) > 1:
        raise InvalidInput(f"{name} must be a table: one row for each user, all of one length.")
    try:
        if not all(PLAIN_NUMBERS.issuperset(map(type, row)) for row in rows):
            raise OverflowError
        dense = np.array(rows, dtype=np.float64)
    except OverflowError:  # a whole number beyond floats, or a cell of another type
        dense = np.array([[real_cell(cell) for cell in row] for row in rows], dtype=np.float64)
    return dense.reshape(len(rows), len(rows[0]))


def _cells(row: Any) -> list[Any] | None:
    """The elements of a list or an array; None for anything else."""
    try:
        if isinstance(row, str | bytes | bytearray | memoryview):
            return None
        return list(row) if isinstance(row, Sequence) or (hasattr(row, "__array__") and np.ndim(row) > 0) else None
    except Exception:  # any error: its text may contain private input
        return None


def _array(raw: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(raw)
    except Exception:  # any error: its text may contain private input
        return None


def _real_or_infinite(cell: Any) -> float | None:
    """The number in a cell, infinite if it is beyond floats; NaN for None, and None for anything that is not a number."""
    try:
        try:
            return math.nan if cell is None else _number(cell)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf
    except Exception:
        return None


def real_cell(cell: Any) -> float:
    """The number in one cell; NaN for anything else. It never raises and never warns."""
    try:
        return _number(cell)
    except Exception:  # an object in the cell may raise anything
        return math.nan


def _number(cell: Any) -> float:
    if type(cell) in PLAIN_NUMBERS:
        return float(cell)
    if isinstance(cell, np.ndarray) and cell.ndim == 0:
        cell = cell[()]
    # float() takes arrays of one number, durations and, with a warning, complex numbers
    if isinstance(cell, np.ndarray) or (isinstance(cell, np.generic) and cell.dtype.kind not in "biufUS"):
        raise TypeError
    with warnings.catch_warnings():  # a warning would reveal something about the cell
        warnings.simplefilter("ignore")
        return float(cell)


STEPS = 1 << 20  # grid steps within a row's bound


@np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
def bounded_rows(
    rows: ArrayLike | sparse.csr_array, dimension: int, bound: float, norm: int, steps: int = STEPS
) -> sparse.csr_array:
    """All rows in whole grid steps of bound / ``steps``, after each row's L1 or L2 norm (``norm`` 1 or 2) is cut to ``bound``.

    Every row is rounded towards zero and cut independently, in whole numbers: its image depends on that row alone, and its norm
    is at most ``steps`` exactly. A cell that is not a number counts as 0: an error would reveal it.

    Nothing overflows: with at most 2^22 columns and 2^20 steps the squares of a row add up to at most 2^62.
    """
    table = real_table(rows, "rows", dimension)
    if table.shape[1] != dimension:
        raise InvalidInput(f"expected rows of {dimension} numbers.")
    value = np.clip(np.nan_to_num(table.data, nan=0.0, posinf=0.0, neginf=0.0), -bound, bound)
    cells = np.clip(np.trunc(value / bound * steps), -steps, steps).astype(np.int64)
    size = np.abs(cells)
    row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    total = whole_sums(size if norm == 1 else size * size, row, table.shape[0])
    norms = total if norm == 1 else root_up(total)
    over = norms[row] > steps
    # |cells| * steps / norm rounded down: the norm of the result is at most `steps`, with no float in the way
    size[over] = size[over] * steps // norms[row][over]
    return sparse.csr_array((np.sign(cells) * size, table.indices, table.indptr), shape=table.shape)


def bounded_row_sum(rows: ArrayLike | sparse.csr_array, dimension: int, bound: float, norm: int) -> NDArray[np.int64]:
    """The sum of all ``bounded_rows``, in grid steps of bound / 2^20."""
    table = bounded_rows(rows, dimension, bound, norm)
    return whole_sums(table.data, table.indices, dimension)


def whole_sums(values: NDArray[np.int64], index: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Sums of whole numbers by index: exact, and the same in any order."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, values)
    return total


def root_up(squares: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest whole numbers whose squares are not below ``squares``, which are below 2^62."""
    root = np.ceil(np.sqrt(squares.astype(np.float64))).astype(np.int64)
    root += root * root < squares
    root -= (root > 0) & ((root - 1) * (root - 1) >= squares)
    return root


VALUE_STEPS = 1 << 16  # in value_bound
MOST_ITEMS = 1 << 22  # a row's squares then add up to at most 2^54
MOST_USERS = 1 << 28  # sums over users of 2^34 squared steps each stay below 2^62
_CELLS = 1 << 22  # of the table at a time, zeros included
SMALLEST, LARGEST = 1e-290, 1e290  # of a bound: its steps, and sums of 2^28 rows, are then floats with all their digits


@dataclass(frozen=True)
class ProfileBounds:
    """A row of ``items`` numbers, at most ``items_each`` of them other than 0, each from 0 to ``value_bound`` (from minus that if
    ``signed``), with an L1 norm of at most ``l1_bound`` and, if a mechanism needs it, an L2 norm of at most ``l2_bound``.

    All bounds are public constants: never compute them from the data. A norm that you leave out is bounded by the others.
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
                f"value_bound must lie from {SMALLEST} to {LARGEST}, or floats cannot hold its steps: use other units."
            )
        if not isinstance(self.signed, bool):
            raise InvalidParameter("signed must be True (negative values stay) or False (negative values count as 0).")
        if self.l1_steps < 1 or self.l2_steps < 1:
            raise InvalidParameter(
                f"l1_bound and l2_bound must be at least value_bound / {VALUE_STEPS}: below that every row becomes 0."
            )

    @property
    def step(self) -> Fraction:
        """What one whole number of a bounded row is worth."""
        return Fraction(self.value_bound) / VALUE_STEPS

    @cached_property
    def l1_steps(self) -> int:
        """The most that the sizes of a bounded row's numbers add up to, in steps."""
        most = self.items_each * VALUE_STEPS
        return most if self.l1_bound is None else min(most, math.floor(Fraction(self.l1_bound) / self.step))

    @cached_property
    def l2_squared_steps(self) -> int:
        """The most that their squares add up to, in squared steps. |x|_2^2 <= |x|_inf |x|_1 holds anyway."""
        most = self.l1_steps * VALUE_STEPS
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

        Numbers of the same cell are added up first. A cell that is not a number counts as 0: an error would reveal it. If a
        row has more than ``items_each`` numbers other than 0, ``noise`` draws which of them stay.
        """
        parts = [self._bounded(table, noise, l2) for table in _tables(rows, self.items)]
        return sparse.csr_array(sparse.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]

    @np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
    def _bounded(self, table: sparse.csr_array, noise: Noise, l2: bool) -> sparse.csr_array:
        share = np.where(np.isfinite(table.data), table.data, 0.0) / self.value_bound
        cells = np.trunc(np.clip(share, -1.0 if self.signed else 0.0, 1.0) * VALUE_STEPS).astype(np.int64)
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
    """The rows as sparse tables; a dense array a stretch of users at a time."""
    dense = isinstance(rows, np.ndarray) and rows.ndim == 2
    table = rows if dense else real_table(rows, "rows", items)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    if table.shape[0] >= MOST_USERS:  # the shape is the caller's, not private
        raise InvalidInput(f"a table must have fewer than {MOST_USERS} rows: whole numbers would overflow.")
    users = max(1, _CELLS // items)
    for first in range(0, max(1, table.shape[0]), users):
        part = table[first : first + users]
        yield real_table(part, "rows", items) if dense else part


def _few_each(
    row: NDArray[np.int64], item: NDArray[np.int32], most: int, shape: tuple[int, int], noise: Noise
) -> NDArray[np.intp]:
    """Which cells stay: all of a row, or ``most`` of them, drawn at random. The rows must be in ascending order."""
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


RADIUS_STEPS = 1 << 16  # in the radius
_WIDEST = 1 << 24  # steps of a cell before its row is cut: 2^14 squares of them stay below 2^62
MOST_NUMBERS = 1 << 14
MOST_FEATURE_USERS = 1 << 28
_FEATURE_CELLS = 1 << 16  # at a time: they stay within a processor's second-level cache


@dataclass(frozen=True)
class FeatureBox:
    """A row of numbers, number j from ``lower[j]`` to ``upper[j]``, and no further than ``l2_bound`` from ``centre``.

    All bounds are public constants: never compute them from the data. Without a ``centre`` it is the middle of the box; without an
    ``l2_bound`` the radius reaches the farthest corner.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    l2_bound: float | None = None
    centre: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        lower, upper = _numbers("lower", self.lower), _numbers("upper", self.upper)
        if not 1 <= len(lower) == len(upper) <= MOST_NUMBERS:
            raise InvalidParameter(f"lower and upper must have the same length, from 1 to {MOST_NUMBERS} numbers.")
        if not all(low < high for low, high in zip(lower, upper, strict=True)):
            raise InvalidParameter("every number of lower must be below the number of upper at the same position.")
        middle = tuple(low / 2.0 + high / 2.0 for low, high in zip(lower, upper, strict=True))
        centre = middle if self.centre is None else _numbers("centre", self.centre)
        if len(centre) != len(lower) or not all(
            low <= at <= high for low, at, high in zip(lower, centre, upper, strict=True)
        ):
            raise InvalidParameter("centre must lie in the box and have as many numbers as lower and upper.")
        farthest = math.hypot(*(max(at - low, high - at) for low, at, high in zip(lower, centre, upper, strict=True)))
        bound = farthest if self.l2_bound is None else self.l2_bound
        keep(self, lower=lower, upper=upper, centre=centre, l2_bound=positive("l2_bound", bound))
        if not SMALLEST <= self.l2 <= LARGEST:
            raise InvalidParameter(
                f"the radius must lie from {SMALLEST} to {LARGEST}, or floats cannot hold its steps: use other units."
            )

    @classmethod
    def cube(
        cls, dimension: int, lower: float = 0.0, upper: float = 1.0, l2_bound: float | None = None
    ) -> "FeatureBox":
        """The box with the same two ends in each of ``dimension`` numbers."""
        sides = whole("dimension", dimension, least=1, most=MOST_NUMBERS)
        return cls((lower,) * sides, (upper,) * sides, l2_bound)

    @property
    def items(self) -> int:
        """How many numbers a row has."""
        return len(self.lower)

    @property
    def l2(self) -> float:
        """The radius in the units of the rows."""
        return float(self.l2_bound or 0.0)  # __post_init__ sets it

    @property
    def step(self) -> Fraction:
        """What one whole number of a bounded row is worth."""
        return Fraction(self.l2) / RADIUS_STEPS

    @property
    def l2_steps(self) -> int:
        """The radius in steps."""
        return RADIUS_STEPS

    @property
    def l2_squared_steps(self) -> int:
        """The square of the largest norm of a row, in squared steps."""
        return RADIUS_STEPS * RADIUS_STEPS

    @cached_property
    def _sides(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        return np.array(self.lower), np.array(self.upper), np.array(self.centre)

    def bounded(self, rows: ArrayLike, noise: Noise | None = None, *, l2: bool = True) -> NDArray[np.int32]:
        """The rows less the centre, in whole steps, each with an L2 norm of at most 2^16 steps, exactly. Private, as the rows are.

        Every row is cut independently. A cell that is not a number counts as the centre: an error would reveal it. A row beyond
        the radius is shortened in whole numbers. ``noise`` is not used, and the radius always holds.
        """
        table = self._table(rows)
        image = np.empty(table.shape, dtype=np.int32)
        part = max(1, _FEATURE_CELLS // self.items)
        for first in range(0, len(table), part):
            image[first : first + part] = self._cut(table[first : first + part])
        return image

    def within(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Released points, in steps from the centre, in the units of the rows and inside the box."""
        lower, upper, centre = self._sides
        return np.clip(centre + steps * float(self.step), lower, upper)

    def _table(self, rows: ArrayLike) -> NDArray[Any]:
        numbers = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "biuf"
        table: NDArray[Any] = rows if numbers else real_table(rows, "rows", self.items).toarray()  # type: ignore[assignment]
        if table.ndim != 2 or table.shape[1] != self.items:
            raise InvalidInput(f"expected a table with rows of {self.items} numbers, one row for each user.")
        if len(table) >= MOST_FEATURE_USERS:
            raise InvalidInput(f"a table must have fewer than {MOST_FEATURE_USERS} rows: whole numbers would overflow.")
        return table

    @np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
    def _cut(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        # every operation works on one cell and rounds as IEEE 754 says: other cells cannot change its value
        lower, upper, centre = self._sides
        away = np.clip(rows.astype(np.float64), lower, upper) - centre
        away[~np.isfinite(rows)] = 0.0
        cells = np.clip(np.rint(away * (RADIUS_STEPS / self.l2)), -_WIDEST, _WIDEST).astype(np.int64)
        squares = np.einsum("ij,ij->i", cells, cells)
        over = np.flatnonzero(squares > RADIUS_STEPS * RADIUS_STEPS)
        # |cell| * 2^16 / norm, the norm rounded up and the result down: no float can leave the row too long
        norms = np.array([math.isqrt(square - 1) + 1 for square in squares[over].tolist()], dtype=np.int64)
        cells[over] = np.sign(cells[over]) * (np.abs(cells[over]) * RADIUS_STEPS // norms[:, None])
        return cells


def _numbers(name: str, values: Sequence[float]) -> tuple[float, ...]:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InvalidParameter(f"{name} must be a list of numbers.")
    return tuple(finite(name, value) for value in values)
