"""Prototypes of several entities as one table, each entity with a limited weight, and the items' factors of that table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import positive
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.nonnegative import factorise
from tacit.models.nonnegative_table import Regulariser

Floats = NDArray[np.float64]

_MOST_SIZE = 1e100  # beyond any population, and sums of it stay finite


class Released(Protocol):
    """What an entity released: centres (k x items, NaN where a number was not released) and their k noisy sizes."""

    @property
    def centres(self) -> Floats: ...

    @property
    def sizes(self) -> Floats: ...


class Stack(NamedTuple):
    """One row for each prototype that holds a number: its cells, its weight (1 on average), and whose it is."""

    cells: sparse.csr_array
    weights: Floats
    owners: NDArray[np.int64]


def stacked(released: Sequence[Released], *, zeros_observed: bool, most_weight: float | None = None) -> Stack:
    """One table of all that is known. Where zeros are not observed, no value is 0: a released 0 is noise cut off, and unknown.

    Rows weigh by their noisy sizes; all rows of one entity have at most ``most_weight`` of the total.

    By default that is 1 / (number of entities): every entity then weighs the same, whatever sizes it states.
    """
    if not released:
        raise InvalidInput("there are no prototypes to stack.")
    items = released[0].centres.shape[-1]
    for one in released:
        if one.centres.ndim != 2 or one.centres.shape != (len(one.sizes), items) or not np.isfinite(one.sizes).all():
            raise InvalidInput("all prototypes need one number for each item of one catalogue, and a finite size.")
    centres = np.vstack([one.centres for one in released])
    owners = np.repeat(np.arange(len(released)), [len(one.sizes) for one in released])
    known = known_cells(centres, zeros_observed=zeros_observed)
    told = np.asarray(known.any(axis=1))  # a row of which nothing is known is padding
    sizes: Floats = np.concatenate([one.sizes for one in released])
    sizes = np.where(told, np.clip(sizes, 0.0, _MOST_SIZE), 0.0)
    totals = np.array([sizes[owners == entity].sum() for entity in range(len(released))], dtype=np.float64)
    parts = weight_parts(totals, most_weight)
    weights = np.zeros(len(owners))
    for entity, part in enumerate(parts):
        own = owners == entity
        total = sizes[own].sum()
        # Sizes that noise made 0 or less say nothing: the entity's rows then weigh alike.
        weights[own] = part * (sizes[own] / total if total > 0.0 else told[own] / max(told[own].sum(), 1))
    weights *= told.sum() / weights.sum() if weights.sum() > 0.0 else 0.0
    rows, columns = np.nonzero(known[told])
    cells = sparse.csr_array((centres[told][rows, columns], (rows, columns)), shape=(int(told.sum()), items))
    return Stack(cells, weights[told], owners[told])


def known_cells(centres: Floats, *, zeros_observed: bool) -> NDArray[np.bool_]:
    """Which numbers say something: all that were released, without the zeros where no value can be 0."""
    told: NDArray[np.bool_] = ~np.isnan(centres)
    return told if zeros_observed else told & (centres != 0.0)


def weight_parts(sizes: Floats, most_weight: float | None = None) -> Floats:
    """Each entity's part of the total weight: by its size, cut at ``most_weight``; what is cut off goes to the others."""
    count = len(sizes)
    most = 1.0 / count if most_weight is None else positive("most_weight", most_weight)
    if most > 1.0:
        raise InvalidParameter("most_weight is a part of the total weight: above 0, at most 1.")
    most = max(most, 1.0 / count)  # fewer entities than were planned for cannot share out less than everything
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


@dataclass(frozen=True, kw_only=True)
class Factorisation:
    """How prototypes become items' factors. All of it is public; ``most_weight`` None is 1 / (number of entities).

    ``zeros_observed``: a user's missing cell is a 0, as in counts. Otherwise, as in ratings, it is unknown, and so is a released 0.
    """

    rank: int
    seed: int
    ridge: float | None = None
    regulariser: Regulariser | str = Regulariser.WEIGHTED
    zeros_observed: bool = False
    most_weight: float | None = None
    epochs: int | None = None

    def stack(self, released: Sequence[Released]) -> Stack:
        """The table that is factorised. The order of entities is part of the input: sort by name."""
        return stacked(released, zeros_observed=self.zeros_observed, most_weight=self.most_weight)

    def items(self, stack: Stack, *, start: Floats | None = None, epochs: int | None = None) -> Floats:
        """V (items x rank), the same for the same stack: ``seed`` decides the start, unless one is given.

        A cell that is not in the stack is unknown, or 0 where ``zeros_observed``. An item of which nothing is known gets zeros.
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

    def of(self, released: Sequence[Released]) -> Floats:
        """V of several entities' prototypes. Their order is part of the input: sort by name."""
        return self.items(self.stack(released))
