"""Factor models in the paper's split: factors of all rows, of each entity's, and of prototypes, all judged alike.

Errors are those of predictions cut to the scale; an item of which nothing is known is predicted by the user's mean. Lists are
ordered by the products themselves, where such an item stands last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from tacit.evaluation.federated_prototypes import kmeans
from tacit.evaluation.federated_prototypes.measures import RMSE, Floats, Items, Ranks, ranks, rmse
from tacit.evaluation.federated_prototypes.splits import Held
from tacit.evaluation.statistics import Estimate
from tacit.mechanisms import Prototypes
from tacit.models.nonnegative import Factorisation, factorise, fit_users
from tacit.server.federated_prototypes import shared_items

TRAIN = "train RMSE"
SERVER_SEED = 0  # public: where factorisations of prototypes start


@dataclass(frozen=True, slots=True)
class How:
    """How factors are found. ``dense``: cells that are not there are zeros, not unknown."""

    rank: int
    regulariser: str = "weighted"
    dense: bool = False
    ridge: float | None = None
    epochs: int | None = None

    def factors(self, rows: sparse.csr_array, rng: np.random.Generator) -> tuple[Floats, Floats]:
        found = factorise(
            rows, self.rank, regulariser=self.regulariser, ridge=self.ridge, zeros_observed=self.dense, epochs=self.epochs,
            rng=rng,
        )  # fmt: skip
        return found.users, found.items

    def users(self, rows: sparse.csr_array, items: Floats) -> Floats:
        return fit_users(rows, items, self.ridge, regulariser=self.regulariser, zeros_observed=self.dense)

    def of_prototypes(self, released: Sequence[Prototypes], *, by_size: bool) -> Floats:
        """The items' factors as the server finds them; ``by_size``: rows weigh by their noisy sizes, otherwise alike."""
        how = Factorisation(
            rank=self.rank, seed=SERVER_SEED, ridge=self.ridge, regulariser=self.regulariser, zeros_observed=self.dense,
            epochs=self.epochs,
        )  # fmt: skip
        alike = [one if by_size else replace(one, sizes=np.ones(one.count)) for one in released]
        return shared_items({f"{place:04d}": one for place, one in enumerate(alike)}, how)


@dataclass(frozen=True, eq=False, repr=False)
class Tested:
    """The users who are tested: their training rows, their held-out cells, whose they are, and the scale of values."""

    rows: sparse.csr_array
    held: sparse.csr_array
    entities: Items
    low: float
    high: float

    @classmethod
    def of(cls, held: Held, low: float, high: float) -> "Tested":
        users = np.flatnonzero(held.reported)
        return cls(held.train[users], held.test[users], held.entities[users], low, high)

    def judged(self, scores: Floats, known: Floats | None = None) -> dict[str, Estimate]:
        """Every metric of scores (tested users x items); ``known`` (likewise true) says where there is a prediction at all."""
        predicted = scores if known is None else np.where(known > 0.0, scores, self.means[:, None])
        found = {RMSE: self.error(predicted, self.held), TRAIN: self.error(predicted, self.rows)}
        return {**found, **self.ranked(scores).estimates()}

    def ranked(self, scores: Floats) -> Ranks:
        return ranks(scores, self.rows, self.held)

    def error(self, predicted: Floats, cells: sparse.csr_array) -> Estimate:
        users = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
        errors = np.clip(predicted[users, cells.indices], self.low, self.high) - cells.data
        return rmse(errors, users)

    def errors(self, predicted: Floats) -> tuple[Floats, Items]:
        """Squared errors of the held-out cells, and whose they are."""
        users = np.repeat(np.arange(self.held.shape[0]), np.diff(self.held.indptr))
        cells = np.clip(predicted[users, self.held.indices], self.low, self.high) - self.held.data
        return cells**2, users

    @property
    def means(self) -> Floats:
        """Of every tested user's training cells."""
        sums = np.asarray(self.rows.sum(axis=1)).ravel()
        return np.asarray(sums / np.maximum(np.diff(self.rows.indptr), 1))

    def by_factors(self, users: Floats, items: Floats) -> dict[str, Estimate]:
        known = np.broadcast_to(items.any(axis=1).astype(np.float64), (len(users), len(items)))
        return self.judged(users @ items.T, known)


def central(held: Held, tested: Tested, how: How, rng: np.random.Generator) -> dict[str, Estimate]:
    users, items = how.factors(held.train, rng)
    return tested.by_factors(users[held.reported], items)


def individual(held: Held, tested: Tested, how: How, rng: np.random.Generator) -> dict[str, Estimate]:
    scores, known = np.zeros(tested.rows.shape), np.zeros(tested.rows.shape)
    for entity in range(held.count):
        members = held.members(entity)
        if not members.size:
            continue
        users, items = how.factors(held.train[members], rng)
        mine = tested.entities == entity
        scores[mine] = users[held.reported[members]] @ items.T
        known[mine] = items.any(axis=1)
    return tested.judged(scores, known)


def shared(tested: Tested, how: How, items: Floats) -> dict[str, Estimate]:
    """With items' factors that everybody has: each user's own are found locally."""
    return tested.by_factors(how.users(tested.rows, items), items)


Exact = Callable[[sparse.csr_array, int, np.random.Generator], Floats]


def exact_prototypes(held: Held, k: int, how: Exact, rng: np.random.Generator) -> list[Floats]:
    """One table for each entity, NaN where nothing is known."""
    return [how(held.train[held.members(entity)], k, rng) for entity in range(held.count) if held.members(entity).size]


def zero_filled(rows: sparse.csr_array, k: int, rng: np.random.Generator) -> Floats:
    """Centres that count a missing cell as 0; a number that is 0 throughout is not known."""
    of = kmeans.clusters(rows, k, rng=rng)
    found = kmeans.means(rows, of, min(k, rows.shape[0]))
    return np.where(found > 0.0, found, np.nan)


def over_raters(rows: sparse.csr_array, k: int, rng: np.random.Generator) -> Floats:
    of = kmeans.clusters(rows, k, rng=rng)
    return kmeans.raters_means(rows, of, min(k, rows.shape[0]))


def k_random(rows: sparse.csr_array, k: int, rng: np.random.Generator) -> Floats:
    chosen = rng.choice(rows.shape[0], min(k, rows.shape[0]), replace=False)
    found = rows[np.sort(chosen)].toarray()
    return np.where(found > 0.0, found, np.nan)


def from_exact(tables: Sequence[Floats], how: How, rng: np.random.Generator) -> Floats:
    """The items' factors of exact prototypes, all rows with the same weight."""
    stacked = np.nan_to_num(np.vstack(tables))
    return how.factors(sparse.csr_array(stacked), rng)[1]
