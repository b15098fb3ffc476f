"""A table to be factorised, by rows and by columns, and its two half steps."""

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput
from tacit.models import nonnegative_plain

Floats = NDArray[np.float64]

_SPARSE_BELOW = (
    0.2  # share of cells that are not 0: below, products of matrices are cheaper by the cells that are there
)


class Regulariser(StrEnum):
    """What is added to the sum of squared errors for a user's factors u; for an item's, likewise."""

    WEIGHTED = "weighted"  # ridge * (cells of the user) * |u|^2
    SUM = "sum"  # ridge * |u|^2
    LITERAL = (
        "literal"  # ridge * (cells of the table) * |u|^2: errors are averaged, penalties are not, as Eq 2 is printed
    )


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Cells of users x items. With ``full`` the cells that are not stored are zeros, otherwise they are unknown."""

    by_row: Any  # a csr_array; or an array where all cells are known and most are not 0
    by_column: Any
    full: bool

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.by_row.shape[0]), int(self.by_row.shape[1])


def table(values: ArrayLike | Any, *, zeros_observed: bool | None = None) -> Table:
    """What a sparse table does not store is unknown, a stored 0 is known; in a dense one all is. ``zeros_observed`` overrules."""
    held = sparse.issparse(values)
    full = not held if zeros_observed is None else zeros_observed
    rows: Any = sparse.csr_array(values, dtype=np.float64) if held else np.array(values, dtype=np.float64)
    if rows.ndim != 2:
        raise InvalidInput("a table of users x items is expected.")
    stored: Floats = rows.data if held else rows
    if not np.isfinite(stored).all():
        raise InvalidInput("a cell is not finite. Leave cells that are not known out of a sparse table.")
    if full and not held and np.count_nonzero(stored) >= _SPARSE_BELOW * stored.size:
        return Table(rows, np.ascontiguousarray(rows.T), full=True)
    if not held:
        rows = sparse.csr_array(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()  # not the caller's
        rows.sum_duplicates()
    return Table(rows, rows.T.tocsr(), full)


def chosen(compiled: bool | None = None) -> ModuleType:
    """Compiled steps if numba is there, unless told otherwise."""
    if compiled is None:
        compiled = find_spec("numba") is not None
    if not compiled:
        return nonnegative_plain
    from tacit.models import nonnegative_compiled

    return nonnegative_compiled


class HalfStep:
    """One side of a table moves towards its least squares while the other stands still.

    ``weights`` belong to the side that stands still: a row of weight w counts as w equal rows.
    """

    def __init__(
        self, cells: Any, ridges: Floats, *, full: bool, weights: Floats | None = None, sweeps: int,
        compiled: bool | None = None, parallel: bool = False,
    ) -> None:  # fmt: skip
        self._full, self._ridges, self._sweeps = full, ridges, sweeps
        self._root = None if weights is None else np.sqrt(weights)
        self._cells = cells if self._root is None else _scaled(cells, self._root)
        loops = chosen(compiled)
        self._shared = loops.shared_step
        self._masked = getattr(loops, "masked_step_parallel", loops.masked_step) if parallel else loops.masked_step
        stored = self._cells.data if sparse.issparse(self._cells) else self._cells
        self._squares = float(np.vdot(stored, stored)) if full else 0.0

    def __call__(self, moving: Floats, still: Floats, anchor: Floats | None = None, pull: float = 0.0) -> float:
        """Moves ``moving`` in place; the objective, without the penalty of the side that stands still."""
        other = still if self._root is None else still * self._root[:, None]
        own = self._ridges
        if self._full:
            products, gram = np.ascontiguousarray(self._cells @ other), other.T @ other
            aims = products if anchor is None else products + pull * anchor
            self._shared(aims, gram, moving, own + pull, self._sweeps)
            loss = self._squares - 2.0 * np.vdot(products, moving) + np.vdot(gram, moving.T @ moving)
        else:
            held = self._cells
            aim = np.empty((0, moving.shape[1])) if anchor is None else anchor
            loss = self._masked(held.indptr, held.indices, held.data, other, moving, own, aim, pull, self._sweeps).sum()
        penalty = own @ (moving * moving).sum(axis=1)
        if anchor is not None:
            penalty += pull * ((moving - anchor) ** 2).sum()
        return float(max(loss, 0.0) + penalty)


def _scaled(cells: Any, root: Floats) -> Any:
    """Squared errors of column i weigh root_i^2 once its values, and the factors that meet them, are multiplied by root_i."""
    if not sparse.issparse(cells):
        return cells * root
    return sparse.csr_array((cells.data * root[cells.indices], cells.indices, cells.indptr), shape=cells.shape)
