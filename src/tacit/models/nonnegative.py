"""Non-negative factors of a table, P ~ U V^T with U, V >= 0; cells that are not there are unknown, or zeros.

Alternating exact-coordinate least squares: users given items, then items given users. Every coordinate goes to its exact optimum
given the others, so the objective cannot rise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, member, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.nonnegative_table import HalfStep, Regulariser, Table, table

Floats = NDArray[np.float64]

RIDGE = {Regulariser.WEIGHTED: 0.05, Regulariser.SUM: 0.1, Regulariser.LITERAL: 0.1}
MASKED_EPOCHS, DENSE_EPOCHS = 10, 60
SWEEPS, FIT_SWEEPS = 3, 30


@dataclass(frozen=True, eq=False, repr=False)
class Factors:
    """Users x rank, items x rank, and the objective after every epoch. Whoever may see the table may see them."""

    users: Floats
    items: Floats
    objectives: Floats


def factorise(
    values: ArrayLike | Any,
    rank: int,
    *,
    regulariser: Regulariser | str = Regulariser.WEIGHTED,
    ridge: float | None = None,
    epochs: int | None = None,
    rng: np.random.Generator,
    row_weights: ArrayLike | None = None,
    start: Floats | None = None,
    zeros_observed: bool | None = None,
    sweeps: int = SWEEPS,
    compiled: bool | None = None,
    parallel: bool = False,
) -> Factors:
    """Factors of least squared errors and penalties. A row of weight w counts as w equal rows.

    A sparse table's missing cells are unknown, a dense table's zeros are observed. By default ridge is 0.05 (weighted) or 0.1, and
    there are 10 epochs (60 where zeros are observed). A row or column without a cell gets zeros: nothing is known of it. ``start``:
    items' factors to begin with, in place of drawn ones; users are fitted to them first.
    """
    rank, sweeps = whole("rank", rank, least=1), whole("sweeps", sweeps, least=1)
    kind = member("regulariser", Regulariser, regulariser)
    strength = _ridge(kind, ridge)
    cells = table(values, zeros_observed=zeros_observed)
    epochs = whole("epochs", (DENSE_EPOCHS if cells.full else MASKED_EPOCHS) if epochs is None else epochs, least=1)
    weights = _weights(row_weights, cells.shape[0])
    row_ridges, column_ridges = _ridges(cells, kind, strength, weights)
    how: dict[str, Any] = {"full": cells.full, "sweeps": sweeps, "compiled": compiled, "parallel": parallel}
    to_users = HalfStep(cells.by_row, row_ridges, **how)
    if start is None:
        users, items = _start(cells, rank, rng)
    else:
        items = checked_items(start)
        if items.shape != (cells.shape[1], rank):
            raise InvalidInput(f"start must be a table of {cells.shape[1]} items x {rank}.")
        users = np.zeros((cells.shape[0], rank))
        HalfStep(cells.by_row, row_ridges, **how | {"sweeps": FIT_SWEEPS})(users, items)
    to_items = HalfStep(cells.by_column, column_ridges, weights=weights, **how)
    objectives = np.empty(epochs)
    for epoch in range(epochs):
        to_users(users, items)
        penalty = (row_ridges if weights is None else row_ridges * weights) @ (users * users).sum(axis=1)
        objectives[epoch] = to_items(items, users) + penalty
    return Factors(users, items, objectives)


def fit_users(
    rows: ArrayLike | Any,
    items: Floats,
    ridge: float | None = None,
    *,
    regulariser: Regulariser | str = Regulariser.WEIGHTED,
    sweeps: int = FIT_SWEEPS,
    zeros_observed: bool | None = None,
    compiled: bool | None = None,
    parallel: bool = False,
) -> Floats:
    """The factors of users, given the items': each user's own non-negative least squares, whoever else is there."""
    sweeps, kind = whole("sweeps", sweeps, least=1), member("regulariser", Regulariser, regulariser)
    cells, items = table(rows, zeros_observed=zeros_observed), checked_items(items)
    _same_items(cells, items)
    ridges = _ridges(cells, kind, _ridge(kind, ridge), None)[0]
    step = HalfStep(cells.by_row, ridges, full=cells.full, sweeps=sweeps, compiled=compiled, parallel=parallel)
    users = np.zeros((cells.shape[0], items.shape[1]))
    step(users, items)
    return users


def adapt(
    rows: ArrayLike | Any,
    items: Floats,
    pull: float,
    *,
    ridge: float | None = None,
    regulariser: Regulariser | str = Regulariser.WEIGHTED,
    epochs: int = MASKED_EPOCHS,
    sweeps: int = SWEEPS,
    zeros_observed: bool | None = None,
    compiled: bool | None = None,
    parallel: bool = False,
) -> Factors:
    """Factors of one's own rows that stay near given ``items``: pull * |V - items|^2 takes the place of the items' penalty."""
    epochs, sweeps = whole("epochs", epochs, least=1), whole("sweeps", sweeps, least=1)
    kind, pull = member("regulariser", Regulariser, regulariser), finite("pull", pull)
    if pull <= 0.0:
        raise InvalidParameter(f"pull must be above 0, not {pull}. Without one, `factorise` fits the rows alone.")
    cells, anchor = table(rows, zeros_observed=zeros_observed), checked_items(items)
    _same_items(cells, anchor)
    ridges = _ridges(cells, kind, _ridge(kind, ridge), None)[0]
    how: dict[str, Any] = {"full": cells.full, "sweeps": sweeps, "compiled": compiled, "parallel": parallel}
    to_users = HalfStep(cells.by_row, ridges, **how)
    to_items = HalfStep(cells.by_column, np.zeros(cells.shape[1]), **how)
    users, own = np.zeros((cells.shape[0], anchor.shape[1])), anchor.copy()
    objectives = np.empty(epochs)
    for epoch in range(epochs):
        to_users(users, own)
        objectives[epoch] = to_items(own, users, anchor, pull) + ridges @ (users * users).sum(axis=1)
    return Factors(users, own, objectives)


def checked_items(items: ArrayLike) -> Floats:
    """The items' factors as an array of their own, if they are finite and not negative."""
    factors = np.array(items, dtype=np.float64)
    if factors.ndim != 2 or not factors.shape[1] or not np.isfinite(factors).all() or (factors < 0.0).any():
        raise InvalidInput("the items' factors must be a table of items x rank, finite and not negative.")
    return factors


def _same_items(cells: Table, items: Floats) -> None:
    if cells.shape[1] != len(items):
        raise InvalidInput(f"rows of {len(items)} items are expected, one for each row of the items' factors.")


def _ridge(kind: Regulariser, ridge: float | None) -> float:
    strength = finite("ridge", RIDGE[kind] if ridge is None else ridge)
    if strength < 0.0:
        raise InvalidParameter(f"ridge must be at least 0, not {strength}.")
    return strength


def _weights(given: ArrayLike | None, rows: int) -> Floats | None:
    if given is None:
        return None
    weights = np.array(given, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all() or (weights < 0.0).any():
        raise InvalidInput(f"row_weights must be {rows} finite numbers, none below 0.")
    return weights


def _ridges(cells: Table, kind: Regulariser, ridge: float, weights: Floats | None) -> tuple[Floats, Floats]:
    """The penalty of every row and of every column. A row of weight w pays w times its own."""
    n, m = cells.shape
    ones = np.ones(n) if weights is None else weights
    if cells.full:
        by_row, by_column = np.full(n, float(m)), np.full(m, ones.sum())
    else:
        by_row = np.diff(cells.by_row.indptr).astype(np.float64)
        places = np.repeat(np.arange(n), np.diff(cells.by_row.indptr))
        by_column = np.bincount(cells.by_row.indices, weights=ones[places], minlength=m)
    if kind is Regulariser.WEIGHTED:
        return ridge * by_row, ridge * by_column
    total = float(by_row @ ones) if kind is Regulariser.LITERAL else 1.0
    return np.full(n, ridge * total), np.full(m, ridge * total)


def _start(cells: Table, rank: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Factors around the root of mean / rank, so that products are about the mean; apart, so that they can part ways."""
    n, m = cells.shape
    known = n * m if cells.full else cells.by_row.nnz
    mean = max(float(cells.by_row.sum()) / known, 0.0) if known else 0.0
    scale = np.sqrt(mean / rank)
    return scale * (0.5 + rng.random((n, rank))), scale * (0.5 + rng.random((m, rank)))
