"""Public bounds of dense rows: a box and a radius around its centre, applied inside a mechanism, row by row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, keep, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms.arrays import real_table
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.profile_bounds import LARGEST, SMALLEST

STEPS = 1 << 16  # in the radius
_WIDEST = 1 << 24  # steps of a cell before its row is cut: 2^14 squares of them stay below 2^62
MOST_NUMBERS = 1 << 14
MOST_USERS = 1 << 28
_CELLS = 1 << 16  # at a time: they stay within a processor's second-level cache


@dataclass(frozen=True)
class FeatureBox:
    """A row of numbers, number j from ``lower[j]`` to ``upper[j]``, and no further than ``l2_bound`` from ``centre``.

    All of them are public constants, never computed from the data. Left out, the centre is the middle of the box, and the radius
    reaches its farthest corner.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    l2_bound: float | None = None
    centre: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        lower, upper = _numbers("lower", self.lower), _numbers("upper", self.upper)
        if not 1 <= len(lower) == len(upper) <= MOST_NUMBERS:
            raise InvalidParameter(f"lower and upper must be of one length, from 1 to {MOST_NUMBERS} numbers.")
        if not all(low < high for low, high in zip(lower, upper, strict=True)):
            raise InvalidParameter("every number of lower must be below that of upper.")
        middle = tuple(low / 2.0 + high / 2.0 for low, high in zip(lower, upper, strict=True))
        centre = middle if self.centre is None else _numbers("centre", self.centre)
        if len(centre) != len(lower) or not all(
            low <= at <= high for low, at, high in zip(lower, centre, upper, strict=True)
        ):
            raise InvalidParameter("the centre must lie in the box, with as many numbers as lower and upper.")
        farthest = math.hypot(*(max(at - low, high - at) for low, at, high in zip(lower, centre, upper, strict=True)))
        bound = farthest if self.l2_bound is None else self.l2_bound
        keep(self, lower=lower, upper=upper, centre=centre, l2_bound=positive("l2_bound", bound))
        if not SMALLEST <= self.l2 <= LARGEST:
            raise InvalidParameter(
                f"the radius must lie from {SMALLEST} to {LARGEST}: floats have no steps for others; use other units."
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
        return float(self.l2_bound or 0.0)  # never None once it is built

    @property
    def step(self) -> Fraction:
        """What one whole number of a bounded row is worth."""
        return Fraction(self.l2) / STEPS

    @property
    def l2_steps(self) -> int:
        """The radius in steps."""
        return STEPS

    @property
    def l2_squared_steps(self) -> int:
        """The square of the longest row that is let through, in grid steps."""
        return STEPS * STEPS

    @cached_property
    def _sides(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        return np.array(self.lower), np.array(self.upper), np.array(self.centre)

    def bounded(self, rows: ArrayLike, noise: Noise | None = None, *, l2: bool = True) -> NDArray[np.int32]:
        """The rows, less the centre, in whole steps, each of an L2 norm of at most 2^16 steps exactly. Private, as the rows are.

        Every row is cut by itself: a cell that is no number stands at the centre, because refusing it would be an answer
        about it, and a row beyond the radius is shortened in whole numbers. ``noise`` is not needed, and the radius always holds.
        """
        table = self._table(rows)
        image = np.empty(table.shape, dtype=np.int32)
        part = max(1, _CELLS // self.items)
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
        if len(table) >= MOST_USERS:
            raise InvalidInput(f"a table must have fewer than {MOST_USERS} rows: whole numbers would overflow.")
        return table

    @np.errstate(all="ignore")  # a caller who has numpy raise must not be told of a tiny cell
    def _cut(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        # every operation works on one cell, rounded as IEEE 754 says: its value does not depend on what stands beside it
        lower, upper, centre = self._sides
        away = np.clip(rows.astype(np.float64), lower, upper) - centre
        away[~np.isfinite(rows)] = 0.0
        cells = np.clip(np.rint(away * (STEPS / self.l2)), -_WIDEST, _WIDEST).astype(np.int64)
        squares = np.einsum("ij,ij->i", cells, cells)
        over = np.flatnonzero(squares > STEPS * STEPS)
        # |cell| * 2^16 / norm, the norm rounded up and the result down: no float can leave the row too long
        norms = np.array([math.isqrt(square - 1) + 1 for square in squares[over].tolist()], dtype=np.int64)
        cells[over] = np.sign(cells[over]) * (np.abs(cells[over]) * STEPS // norms[:, None])
        return cells


def _numbers(name: str, values: Sequence[float]) -> tuple[float, ...]:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InvalidParameter(f"{name} must be a list of numbers.")
    return tuple(finite(name, value) for value in values)
