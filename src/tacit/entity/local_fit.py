"""An entity's fit of its own users: by the shared items' factors, near them, or by its own rows alone. It stays inside."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidInput
from tacit.mechanisms.arrays import real_table
from tacit.models.nonnegative import MASKED_EPOCHS, adapt, checked_items, factorise, fit_users
from tacit.models.nonnegative_table import Regulariser

Floats = NDArray[np.float64]

PULL = 10.0  # as much as some thirty ratings of an item say about it


class Kind(StrEnum):
    """Whose items' factors are used."""

    LOCAL = "local"  # the entity's own
    BLEND = "blend"  # its own, pulled towards the shared ones
    GLOBAL = "global"  # the shared ones


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Public constants of a local fit. Values lie from 0 to ``value_bound``; ``pull`` holds a blend near the shared factors."""

    value_bound: float
    ridge: float | None = None
    regulariser: Regulariser | str = Regulariser.WEIGHTED
    zeros_observed: bool = False
    pull: float = PULL
    epochs: int = MASKED_EPOCHS

    def __post_init__(self) -> None:
        keep(
            self,
            value_bound=positive("value_bound", self.value_bound),
            pull=positive("pull", self.pull),
            epochs=whole("epochs", self.epochs, least=1),
        )

    @property
    def fit(self) -> dict[str, Any]:
        return {"ridge": self.ridge, "regulariser": self.regulariser, "zeros_observed": self.zeros_observed}


@dataclass(frozen=True, eq=False, repr=False)
class LocalFit:
    """Factors of an entity's users and items. Private, all of it: predictions shown outside are not covered by any guarantee."""

    kind: Kind
    users: Floats
    items: Floats
    means: Floats  # of each user's known cells
    value_bound: float
    report: Any = field(default=None)  # a GateReport, where a gate decided

    def __repr__(self) -> str:
        return "LocalFit(private: stays inside the entity)"  # which kind won is private too

    def scores(self, users: slice = slice(None)) -> Floats:
        """A number from 0 to ``value_bound`` for each of these users and each item."""
        blank_users, blank_items = self._blank
        scores = self.users[users] @ self.items.T
        scores[:, blank_items] = self.means[users, None]
        scores[blank_users[users]] = self.means[users][blank_users[users], None]
        return np.clip(scores, 0.0, self.value_bound)

    def at(self, users: NDArray[Any], items: NDArray[Any]) -> Floats:
        """The same for single cells, given by the places of their users and items."""
        blank_users, blank_items = self._blank
        scores = np.einsum("nc,nc->n", self.users[users], self.items[items])
        scores = np.where(blank_items[items] | blank_users[users], self.means[users], scores)
        return np.asarray(np.clip(scores, 0.0, self.value_bound))

    @property
    def _blank(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Users and items of whom the factors say nothing: predicted by the user's mean, never by 0."""
        return np.asarray(~self.users.any(axis=1)), np.asarray(~self.items.any(axis=1))


def fit_local(
    rows: Any, items: Floats, kind: Kind, settings: FitSettings, *, rng: np.random.Generator, report: Any = None
) -> LocalFit:
    """The fit of one kind to an entity's rows; ``items`` are the shared factors. ``rng`` draws the start of a local fit."""
    shared = checked_items(items)
    table = clean(rows, settings.value_bound, len(shared))
    if kind is Kind.GLOBAL:
        users, own = fit_users(table, shared, **settings.fit), shared
    elif kind is Kind.BLEND:
        fitted = adapt(table, shared, settings.pull, epochs=settings.epochs, **settings.fit)
        users, own = fitted.users, fitted.items
    else:
        fitted = factorise(table, shared.shape[1], epochs=settings.epochs, rng=rng, **settings.fit)
        own = fitted.items
        users = fit_users(table, own, **settings.fit)
    return LocalFit(kind, users, own, user_means(table, settings), settings.value_bound, report)


def clean(rows: Any, value_bound: float, items: int) -> sparse.csr_array:
    """Rows with repeated cells added up, cells that are no number left out, the others cut to the bounds."""
    table = sparse.csr_array(real_table(rows, "rows", items), dtype=np.float64, copy=True)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    table.sum_duplicates()
    known = np.isfinite(table.data)
    starts = np.concatenate([[0], np.cumsum(known)])[table.indptr]
    values = np.clip(table.data[known], 0.0, value_bound)
    return sparse.csr_array((values, table.indices[known], starts), shape=table.shape)


def user_means(table: sparse.csr_array, settings: FitSettings) -> Floats:
    """Of each user's cells; where she has none, of the entity's."""
    sums = np.asarray(table.sum(axis=1)).reshape(-1)
    if settings.zeros_observed:
        return np.asarray(sums / max(table.shape[1], 1))
    counts = np.diff(table.indptr)
    everybody = sums.sum() / max(counts.sum(), 1)
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), everybody))
