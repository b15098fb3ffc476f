"""Non-negative factors of a table, P ~ U V^T with U, V >= 0. Missing cells are unknown, or zeros.

The method is alternating exact-coordinate least squares: users given items, then items given users. Every coordinate
goes to its exact optimum given the others, so the objective cannot rise.

`factorise` fits both sides, `fit_users` fits users to given items, and `adapt` fits one's own rows near given items.
`Factorisation` stacks the prototypes of several entities into one table, each entity with a limited weight, and
factorises that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, member, positive, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models import loops
from tacit.models.arrays import Floats, Ints

_SPARSE_BELOW = 0.2  # share of cells other than 0: below it, sparse matrix products are cheaper
MASKED_EPOCHS, DENSE_EPOCHS = 10, 60
SWEEPS, FIT_SWEEPS = 3, 30
_MOST_SIZE = 1e100  # above any population, and its sums stay finite


class ReleasedPrototypes(Protocol):
    """An entity's released prototypes: centres (k x items, NaN if a number was not released) and k noisy sizes."""

    @property
    def centres(self) -> Floats: ...

    @property
    def sizes(self) -> Floats: ...


class Penalty(StrEnum):
    """The penalty on large factors, added to the sum of squared errors: for a user's factors u, and likewise for an item's."""

    WEIGHTED = "weighted"  # ridge * (cells of the user) * |u|^2
    SUM = "sum"  # ridge * |u|^2
    # As Eq 2 is printed: errors are averaged, penalties are not.
    LITERAL = "literal"  # ridge * (cells of the table) * |u|^2


RIDGE = {Penalty.WEIGHTED: 0.05, Penalty.SUM: 0.1, Penalty.LITERAL: 0.1}


@dataclass(frozen=True, eq=False, repr=False)
class Factors:
    """Factors of users (users x rank) and items (items x rank), and the objective after every epoch. As private as the table."""

    users: Floats
    items: Floats
    objectives: Floats


def factorise(
    values: ArrayLike | Any,
    rank: int,
    *,
    regulariser: Penalty | str = Penalty.WEIGHTED,
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
    """Factors with the least squared errors and penalties. A row of weight w counts as w equal rows.

    Missing cells of a sparse table are unknown, zeros of a dense table are observed. By default the ridge is 0.05
    (weighted) or 0.1, and there are 10 epochs, or 60 if zeros are observed. A row or column without a cell gets
    zeros, because nothing is known about it. ``start`` gives items' factors to begin with instead of drawn ones;
    users are fitted to them first.
    """
    rank, sweeps = whole("rank", rank, least=1), whole("sweeps", sweeps, least=1)
    kind = member("regulariser", Penalty, regulariser)
    strength = _ridge(kind, ridge)
    cells = cells_of(values, zeros_observed=zeros_observed)
    epochs = whole("epochs", (DENSE_EPOCHS if cells.full else MASKED_EPOCHS) if epochs is None else epochs, least=1)
    weights = _weights(row_weights, cells.shape[0])
    row_ridges, column_ridges = _ridges(cells, kind, strength, weights)
    options: dict[str, Any] = {"full": cells.full, "sweeps": sweeps, "compiled": compiled, "parallel": parallel}
    to_users = HalfStep(cells.by_row, row_ridges, **options)
    if start is None:
        users, items = _start(cells, rank, rng)
    else:
        items = checked_items(start)
        if items.shape != (cells.shape[1], rank):
            raise InvalidInput(f"start must be a table of {cells.shape[1]} items x {rank} factors.")
        users = np.zeros((cells.shape[0], rank))
        HalfStep(cells.by_row, row_ridges, **options | {"sweeps": FIT_SWEEPS})(users, items)
    to_items = HalfStep(cells.by_column, column_ridges, weights=weights, **options)
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
    regulariser: Penalty | str = Penalty.WEIGHTED,
    sweeps: int = FIT_SWEEPS,
    zeros_observed: bool | None = None,
    compiled: bool | None = None,
    parallel: bool = False,
) -> Floats:
    """The factors of users, given the items': each user's own non-negative least squares, independent of all other users."""
    sweeps, kind = whole("sweeps", sweeps, least=1), member("regulariser", Penalty, regulariser)
    cells, items = cells_of(rows, zeros_observed=zeros_observed), checked_items(items)
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
    regulariser: Penalty | str = Penalty.WEIGHTED,
    epochs: int = MASKED_EPOCHS,
    sweeps: int = SWEEPS,
    zeros_observed: bool | None = None,
    compiled: bool | None = None,
    parallel: bool = False,
) -> Factors:
    """Factors of one's own rows that stay near given ``items``: pull * |V - items|^2 replaces the penalty of the items."""
    epochs, sweeps = whole("epochs", epochs, least=1), whole("sweeps", sweeps, least=1)
    kind, pull = member("regulariser", Penalty, regulariser), finite("pull", pull)
    if pull <= 0.0:
        raise InvalidParameter(f"pull must be above 0, not {pull}. To fit the rows without a pull, use `factorise`.")
    cells, anchor = cells_of(rows, zeros_observed=zeros_observed), checked_items(items)
    _same_items(cells, anchor)
    ridges = _ridges(cells, kind, _ridge(kind, ridge), None)[0]
    options: dict[str, Any] = {"full": cells.full, "sweeps": sweeps, "compiled": compiled, "parallel": parallel}
    to_users = HalfStep(cells.by_row, ridges, **options)
    to_items = HalfStep(cells.by_column, np.zeros(cells.shape[1]), **options)
    users, own = np.zeros((cells.shape[0], anchor.shape[1])), anchor.copy()
    objectives = np.empty(epochs)
    for epoch in range(epochs):
        to_users(users, own)
        objectives[epoch] = to_items(own, users, anchor, pull) + ridges @ (users * users).sum(axis=1)
    return Factors(users, own, objectives)


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Cells of users x items. With ``full``, cells that are not stored are zeros; otherwise they are unknown."""

    by_row: Any  # a csr_array, or an array if all cells are known and most are not 0
    by_column: Any
    full: bool

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.by_row.shape[0]), int(self.by_row.shape[1])


def cells_of(values: ArrayLike | Any, *, zeros_observed: bool | None = None) -> Cells:
    """The cells of a table.

    A cell that a sparse table does not store is unknown, a stored 0 is known; a dense table knows all cells.

    ``zeros_observed`` overrides this.
    """
    is_sparse = sparse.issparse(values)
    full = not is_sparse if zeros_observed is None else zeros_observed
    rows: Any = sparse.csr_array(values, dtype=np.float64) if is_sparse else np.array(values, dtype=np.float64)
    if rows.ndim != 2:
        raise InvalidInput("values must be a table of users x items.")
    stored: Floats = rows.data if is_sparse else rows
    if not np.isfinite(stored).all():
        raise InvalidInput("every cell must be finite. To leave cells unknown, give a sparse table without them.")
    if full and not is_sparse and np.count_nonzero(stored) >= _SPARSE_BELOW * stored.size:
        return Cells(rows, np.ascontiguousarray(rows.T), full=True)
    if not is_sparse:
        rows = sparse.csr_array(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()  # leave the caller's table as it is
        rows.sum_duplicates()
    return Cells(rows, rows.T.tocsr(), full)


class HalfStep:
    """Moves one side of a table towards its least squares while the other stands still.

    ``weights`` belong to the side that stands still: a row of weight w counts as w equal rows.
    """

    def __init__(
        self, cells: Any, ridges: Floats, *, full: bool, weights: Floats | None = None, sweeps: int,
        compiled: bool | None = None, parallel: bool = False,
    ) -> None:  # fmt: skip
        self._full, self._ridges, self._sweeps = full, ridges, sweeps
        self._root = None if weights is None else np.sqrt(weights)
        self._cells = cells if self._root is None else _scale_columns(cells, self._root)
        steps = loops.choose(compiled)
        self._shared = steps.shared_step
        self._masked = getattr(steps, "masked_step_parallel", steps.masked_step) if parallel else steps.masked_step
        stored = self._cells.data if sparse.issparse(self._cells) else self._cells
        self._squares = float(np.vdot(stored, stored)) if full else 0.0

    def __call__(self, moving: Floats, still: Floats, anchor: Floats | None = None, pull: float = 0.0) -> float:
        """Moves ``moving`` in place. Returns the objective without the penalty of the side that stands still."""
        other = still if self._root is None else still * self._root[:, None]
        own = self._ridges
        if self._full:
            products, gram = np.ascontiguousarray(self._cells @ other), other.T @ other
            aims = products if anchor is None else products + pull * anchor
            self._shared(aims, gram, moving, own + pull, self._sweeps)
            loss = self._squares - 2.0 * np.vdot(products, moving) + np.vdot(gram, moving.T @ moving)
        else:
            cells = self._cells
            aim = np.empty((0, moving.shape[1])) if anchor is None else anchor
            loss = self._masked(
                cells.indptr, cells.indices, cells.data, other, moving, own, aim, pull, self._sweeps
            ).sum()
        penalty = own @ (moving * moving).sum(axis=1)
        if anchor is not None:
            penalty += pull * ((moving - anchor) ** 2).sum()
        return float(max(loss, 0.0) + penalty)


class Stack(NamedTuple):
    """One row for each prototype that holds a number: its cells, its weight (1 on average), and the entity it belongs to."""

    cells: sparse.csr_array
    weights: Floats
    owners: Ints


@dataclass(frozen=True, kw_only=True)
class Factorisation:
    """How prototypes become items' factors. All of it is public; ``most_weight`` None is 1 / (number of entities).

    With ``zeros_observed``, a user's missing cell is a 0, as in counts. Otherwise, as in ratings, it is unknown, and
    so is a released 0.
    """

    rank: int
    seed: int
    ridge: float | None = None
    regulariser: Penalty | str = Penalty.WEIGHTED
    zeros_observed: bool = False
    most_weight: float | None = None
    epochs: int | None = None

    def stack(self, released: Sequence[ReleasedPrototypes]) -> Stack:
        """The table to factorise. The order of entities is part of the input: sort them by name."""
        return stack_prototypes(released, zeros_observed=self.zeros_observed, most_weight=self.most_weight)

    def items(self, stack: Stack, *, start: Floats | None = None, epochs: int | None = None) -> Floats:
        """V (items x rank), the same for the same stack: ``seed`` decides the start, unless ``start`` is given.

        A cell that is not in the stack is unknown, or 0 with ``zeros_observed``. An item without known cells gets
        zeros.
        """
        full = self.zeros_observed or stack.cells.nnz == stack.cells.shape[0] * stack.cells.shape[1]
        return factorise(
            stack.cells,
            self.rank,
            regulariser=self.regulariser,
            ridge=self.ridge,
            epochs=self.epochs if epochs is None else epochs,
            rng=np.random.default_rng(self.seed),
            row_weights=stack.weights,
            start=start,
            zeros_observed=full,
        ).items

    def of(self, released: Sequence[ReleasedPrototypes]) -> Floats:
        """V of several entities' prototypes. Their order is part of the input: sort them by name."""
        return self.items(self.stack(released))


def stack_prototypes(
    released: Sequence[ReleasedPrototypes], *, zeros_observed: bool, most_weight: float | None = None
) -> Stack:
    """One table of all released prototypes. If zeros are not observed, a released 0 is cut-off noise and counts as unknown.

    Rows weigh by their noisy sizes. All rows of one entity together have at most ``most_weight`` of the total; by
    default 1 / (number of entities), so that every entity weighs the same whatever sizes it states.
    """
    if not released:
        raise InvalidInput("give the prototypes of at least one entity.")
    items = released[0].centres.shape[-1]
    for own in released:
        if own.centres.ndim != 2 or own.centres.shape != (len(own.sizes), items) or not np.isfinite(own.sizes).all():
            raise InvalidInput(
                "every prototype must have one number for each item of one catalogue, and a finite size."
            )
    centres = np.vstack([own.centres for own in released])
    owners = np.repeat(np.arange(len(released)), [len(own.sizes) for own in released])
    known = known_cells(centres, zeros_observed=zeros_observed)
    kept = np.asarray(known.any(axis=1))  # a row without known numbers is padding
    sizes: Floats = np.concatenate([own.sizes for own in released])
    sizes = np.where(kept, np.clip(sizes, 0.0, _MOST_SIZE), 0.0)
    totals = np.array([sizes[owners == entity].sum() for entity in range(len(released))], dtype=np.float64)
    parts = weight_parts(totals, most_weight)
    weights = np.zeros(len(owners))
    for entity, part in enumerate(parts):
        rows = owners == entity
        total = sizes[rows].sum()
        # If noise made all sizes 0 or less, they say nothing: the entity's rows then weigh the same.
        weights[rows] = part * (sizes[rows] / total if total > 0.0 else kept[rows] / max(kept[rows].sum(), 1))
    weights *= kept.sum() / weights.sum() if weights.sum() > 0.0 else 0.0
    entries = np.nonzero(known[kept])
    cells = sparse.csr_array((centres[kept][entries], entries), shape=(int(kept.sum()), items))
    return Stack(cells, weights[kept], owners[kept])


def weight_parts(sizes: Floats, most_weight: float | None = None) -> Floats:
    """Each entity's part of the total weight: by its size, cut at ``most_weight``. The rest goes to the other entities."""
    count = len(sizes)
    most = 1.0 / count if most_weight is None else positive("most_weight", most_weight)
    if most > 1.0:
        raise InvalidParameter("most_weight must be above 0 and at most 1: it is a part of the total weight.")
    most = max(most, 1.0 / count)  # fewer entities than planned still share all of the weight
    parts, cut = np.zeros(count), np.zeros(count, dtype=np.bool_)
    while True:
        left = max(1.0 - most * cut.sum(), 0.0)
        free = np.where(cut, 0.0, sizes)
        share = free / free.sum() if free.sum() > 0.0 else ~cut / max((~cut).sum(), 1)
        parts = np.where(cut, most, left * share)
        over = ~cut & (parts > most * (1.0 + 1e-12))
        if not over.any():
            return parts
        cut |= over


def known_cells(centres: Floats, *, zeros_observed: bool) -> NDArray[np.bool_]:
    """Which numbers are known: all that were released, except zeros if no value can be 0."""
    released: NDArray[np.bool_] = ~np.isnan(centres)
    return released if zeros_observed else released & (centres != 0.0)


def checked_items(items: ArrayLike) -> Floats:
    """A copy of the items' factors. Raises InvalidInput unless they are finite and not negative."""
    factors = np.array(items, dtype=np.float64)
    if factors.ndim != 2 or not factors.shape[1] or not np.isfinite(factors).all() or (factors < 0.0).any():
        raise InvalidInput("the items' factors must be a table of items x rank with finite numbers of at least 0.")
    return factors


def _scale_columns(cells: Any, root: Floats) -> Any:
    """Cells times root_i in column i. With the factors of column i also times root_i, its squared errors weigh root_i^2."""
    if not sparse.issparse(cells):
        return cells * root
    return sparse.csr_array((cells.data * root[cells.indices], cells.indices, cells.indptr), shape=cells.shape)


def _same_items(cells: Cells, items: Floats) -> None:
    if cells.shape[1] != len(items):
        raise InvalidInput(f"rows must have {len(items)} items, one for each row of the items' factors.")


def _ridge(kind: Penalty, ridge: float | None) -> float:
    strength = finite("ridge", RIDGE[kind] if ridge is None else ridge)
    if strength < 0.0:
        raise InvalidParameter(f"ridge must be at least 0, not {strength}.")
    return strength


def _weights(row_weights: ArrayLike | None, rows: int) -> Floats | None:
    if row_weights is None:
        return None
    weights = np.array(row_weights, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all() or (weights < 0.0).any():
        raise InvalidInput(f"row_weights must be {rows} finite numbers of at least 0.")
    return weights


def _ridges(cells: Cells, kind: Penalty, ridge: float, weights: Floats | None) -> tuple[Floats, Floats]:
    """The penalty of every row and of every column. A row of weight w pays w times its own."""
    n, m = cells.shape
    ones = np.ones(n) if weights is None else weights
    if cells.full:
        by_row, by_column = np.full(n, float(m)), np.full(m, ones.sum())
    else:
        by_row = np.diff(cells.by_row.indptr).astype(np.float64)
        row_of_cell = np.repeat(np.arange(n), np.diff(cells.by_row.indptr))
        by_column = np.bincount(cells.by_row.indices, weights=ones[row_of_cell], minlength=m)
    if kind is Penalty.WEIGHTED:
        return ridge * by_row, ridge * by_column
    total = float(by_row @ ones) if kind is Penalty.LITERAL else 1.0
    return np.full(n, ridge * total), np.full(m, ridge * total)


def _start(cells: Cells, rank: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Factors around the root of mean / rank, so products are near the mean.

    The factors differ from each other, since equal ones would never separate.
    """
    n, m = cells.shape
    known = n * m if cells.full else cells.by_row.nnz
    mean = max(float(cells.by_row.sum()) / known, 0.0) if known else 0.0
    scale = np.sqrt(mean / rank)
    return scale * (0.5 + rng.random((n, rank))), scale * (0.5 + rng.random((m, rank)))
