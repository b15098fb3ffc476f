"""Numbers on a public grid. Noise added to floats is not private, whatever its law; noise added to grid steps is."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput
from tacit.mechanisms.arrays import real_table

STEPS = 1 << 20  # grid steps within a row's bound


@dataclass(frozen=True, slots=True, eq=False)
class GridVector:
    """``steps`` whole numbers, each worth ``step``."""

    steps: NDArray[np.int64]
    step: Fraction

    def to_floats(self) -> NDArray[np.float64]:
        """The released numbers in the units of the input."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


@np.errstate(all="ignore")  # a caller who has numpy raise must not be told of a tiny cell
def bounded_rows(
    rows: ArrayLike | sparse.csr_array, dimension: int, bound: float, norm: int, steps: int = STEPS
) -> sparse.csr_array:
    """All rows in whole grid steps of bound / ``steps``, after each row's L1 or L2 norm (``norm`` 1 or 2) is cut to ``bound``.

    Every row is rounded towards zero and cut by itself, in whole numbers: its image depends on that row alone, and its norm
    is at most ``steps`` exactly. A cell that is not a number counts as 0, because refusing it would be an answer about it.

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
    norms = total if norm == 1 else _root_up(total)
    over = norms[row] > steps
    # |cells| * steps / norm rounded down: the norm of the result is at most `steps`, with no float in the way
    size[over] = size[over] * steps // norms[row][over]
    return sparse.csr_array((np.sign(cells) * size, table.indices, table.indptr), shape=table.shape)


def bounded_row_sum(rows: ArrayLike | sparse.csr_array, dimension: int, bound: float, norm: int) -> NDArray[np.int64]:
    """The sum of all ``bounded_rows``, in grid steps of bound / 2^20."""
    table = bounded_rows(rows, dimension, bound, norm)
    return whole_sums(table.data, table.indices, dimension)


def whole_sums(values: NDArray[np.int64], place: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Sums of whole numbers by place; exact and in any order the same."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, place, values)
    return total


def _root_up(squares: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest whole numbers whose squares are not below ``squares``."""
    root = np.ceil(np.sqrt(squares.astype(np.float64))).astype(np.int64)
    root += root * root < squares
    root -= (root > 0) & ((root - 1) * (root - 1) >= squares)
    return root
