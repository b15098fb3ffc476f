"""An entity's fit of its own users, with or without the shared model of a run. All of it stays inside the entity.

`fit_model` is the entry. A model of prototypes gives item factors: the gate tries the entity's own factors, the shared ones, and a
blend of both (`gated_fit`). A model of moments gives pseudo-rows and popularities, which are blended into an item-item ridge if the
gate lets them in (`fit_blend`). The gate compares on held-out cells, against controls that hold no data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive, whole
from tacit.entity.federated_prototypes import prototype_mechanism
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import Release
from tacit.mechanisms.inputs import real_table
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.messages.federated_prototypes.manifest import Manifest
from tacit.messages.federated_prototypes.replies import SharedModel
from tacit.models.moments import Blend, ItemRidge, SharedMoments, constant, data_free, item_ridge, unit_rows
from tacit.models.nonnegative import (
    MASKED_EPOCHS,
    Factorisation,
    Penalty,
    ReleasedPrototypes,
    adapt,
    checked_items,
    factorise,
    fit_users,
)

Floats = NDArray[np.float64]

PULL = 10.0  # as much as some thirty ratings of an item say about it
HELD_OUT = 0.1  # of an entity's cells
CONTROLS = 5  # noise-only control releases. Pure noise beats all five with probability 1/6.
DATA_FREE, CONSTANT = "data-free", "constant"
NO_INFORMATION = "no information at this budget"
LOCAL = 0.3  # weight of the entity's own popularity beside the shared one
TOP = 20  # items of a ranking that count
LEFT = 3  # items that a user keeps when some are held out
_CELLS = 1 << 22  # scores at a time


class FitKind(StrEnum):
    """Whose item factors a fit uses."""

    LOCAL = "local"  # the entity's own
    BLEND = "blend"  # its own, pulled towards the shared ones
    GLOBAL = "global"  # the shared ones


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Public constants of a fit by prototypes. Values lie from 0 to ``value_bound``; ``pull`` holds a blend near them."""

    value_bound: float
    ridge: float | None = None
    regulariser: Penalty | str = Penalty.WEIGHTED
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
    """Factors of an entity's users and items. All of it is private: no guarantee covers predictions shown outside."""

    kind: FitKind
    users: Floats
    items: Floats
    means: Floats  # of each user's known cells
    value_bound: float
    report: "GateReport | None" = None  # how the gate decided, if there was one

    def __repr__(self) -> str:
        return "LocalFit(private: stays inside the entity)"  # which kind won is private too

    def scores(self, users: slice = slice(None)) -> Floats:
        """A predicted value from 0 to ``value_bound`` for each of these users and each item."""
        blank_users, blank_items = self._blank
        scores = self.users[users] @ self.items.T
        scores[:, blank_items] = self.means[users, None]
        scores[blank_users[users]] = self.means[users][blank_users[users], None]
        return np.clip(scores, 0.0, self.value_bound)

    def at(self, users: NDArray[Any], items: NDArray[Any]) -> Floats:
        """The same for single cells, given by the rows of their users and the columns of their items."""
        blank_users, blank_items = self._blank
        scores = np.einsum("nc,nc->n", self.users[users], self.items[items])
        scores = np.where(blank_items[items] | blank_users[users], self.means[users], scores)
        return np.asarray(np.clip(scores, 0.0, self.value_bound))

    @property
    def _blank(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Users and items without factors: their prediction is the user's mean, never 0."""
        return np.asarray(~self.users.any(axis=1)), np.asarray(~self.items.any(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class GateReport:
    """Held-out errors, the lower the better: RMSE of ratings, or mean percentile rank if zeros are observed. Private."""

    measure: str
    scores: dict[str, float]  # of the three kinds and the two controls; NaN if nothing could be held out
    chosen: FitKind
    cells: int  # held out

    def __repr__(self) -> str:
        return "GateReport(private: stays inside the entity)"

    @property
    def informative(self) -> bool:
        """Whether the shared factors beat both controls: the same noise without data, and factors that are all alike."""
        return self.scores[FitKind.GLOBAL] < min(self.scores[DATA_FREE], self.scores[CONSTANT])

    @property
    def flag(self) -> str | None:
        """A remark for the entity if the shared factors show no use here. It does not mean that the release was poor."""
        return None if self.informative else NO_INFORMATION


@dataclass(frozen=True, slots=True)
class BlendSettings:
    """Public constants of a blend. Do not choose them from the entity's rows, unless the result stays inside."""

    ridge: float = 2.0
    alpha: float = 0.1
    gamma: float = 0.0
    users: int = 1  # of all entities, as declared: divides the shared popularity

    def __post_init__(self) -> None:
        alpha, gamma = finite("alpha", self.alpha), finite("gamma", self.gamma)
        if alpha < 0.0 or gamma < 0.0:
            raise InvalidParameter("alpha and gamma must be at least 0.")
        users = whole("users", self.users, least=1)
        keep(self, ridge=positive("ridge", self.ridge), alpha=alpha, gamma=gamma, users=users)


@dataclass(frozen=True, repr=False)
class BlendReport:
    """How the gate decided. Private: publishing any of it is a release, and needs a budget."""

    means: dict[str, float]  # held-out NDCG of "local", "blend" and the controls "data-free", "constant"
    difference: float  # blend less local, mean over users
    stderr: float
    compared: int  # users

    def __repr__(self) -> str:
        return "BlendReport(private)"

    @property
    def keeps_blend(self) -> bool:
        """True unless the difference is below minus one standard error. True if nothing can be compared."""
        return not self.difference < -self.stderr

    @property
    def informative(self) -> bool:
        """Whether the blend beats both controls: the same noise without data, and a constant."""
        return self.means["blend"] > max(self.means[DATA_FREE], self.means[CONSTANT])


@dataclass(frozen=True, eq=False, repr=False)
class BlendedFit:
    """Scores for the entity's users, or for other rows. ``report`` is None if there was nothing to blend in."""

    base: ItemRidge
    blend: Blend | None  # None: the gate kept the entity to its own rows
    settings: BlendSettings
    popularity: Floats = field(default_factory=lambda: np.zeros(0))  # added to every user's scores
    report: BlendReport | None = None

    def __repr__(self) -> str:
        return f"BlendedFit({self.base.items} items)"

    def scores(self, rows: Any = None, users: slice = slice(None)) -> Floats:
        """One number for each user and item, the higher the better: for the entity's own users, or for ``rows``."""
        if self.blend is None:
            return np.asarray(self.base.scores(rows, users) + self.popularity)
        return np.asarray(self.blend.scores(self.settings.alpha, rows, users) + self.popularity)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Public constants of the fit, from public data or the documentation. ``blend`` is for 'moments', ``fit`` for prototypes.

    Without a ``gate`` the shared model is used without a test on held-out cells, unless it declares itself uninformative.
    """

    blend: BlendSettings | None = None
    fit: FitSettings | None = None
    gate: bool = True


def fit_model(
    rows: sparse.csr_array,
    manifest: Manifest,
    model: SharedModel,
    tuning: Tuning,
    *,
    rng: np.random.Generator,
    noise: Noise,
) -> LocalFit | BlendedFit:
    """The entity's own fit with the shared model of a run, for every mechanism.

    ``rng`` picks held-out cells and starts; ``noise`` draws the gate's noise-only control releases.
    """
    if model.moments is not None:
        shared = model.moments if model.informed else None
        return fit_blend(rows, shared, _blend_settings(manifest, tuning), rng=rng, gate=tuning.gate)
    if model.factors is None or manifest.rank is None or manifest.value_bound is None:
        raise InvalidParameter("the model holds neither moments nor factors.")
    settings = tuning.fit or FitSettings(
        value_bound=manifest.value_bound,
        ridge=manifest.ridge,
        regulariser=str(manifest.regulariser),
        zeros_observed=bool(manifest.zeros_observed),
    )
    items = model.factors.astype(np.float64)
    if not tuning.gate:
        return fit_local(rows, items, FitKind.GLOBAL, settings, rng=rng)
    how = Factorisation(
        rank=manifest.rank,
        seed=manifest.seed,
        ridge=manifest.ridge,
        regulariser=str(manifest.regulariser),
        zeros_observed=bool(manifest.zeros_observed),
        most_weight=manifest.most_weight,
    )
    mechanism, entities = prototype_mechanism(manifest), max(1, model.contributors)
    controls = [data_free_items(mechanism, manifest.items, entities, how, noise=noise) for _ in range(CONTROLS)]
    return gated_fit(rows, items, controls, settings, rng=rng)


def _blend_settings(manifest: Manifest, tuning: Tuning) -> BlendSettings:
    """The measured defaults: little weight for a release at epsilon 1 or less, more above."""
    users = manifest.users * len(manifest.contributors)
    if tuning.blend is not None:
        return tuning.blend if tuning.blend.users > 1 else replace(tuning.blend, users=users)
    return BlendSettings(alpha=0.03 if manifest.epsilon <= 1.0 else 0.1, users=users)


# ---- Prototypes: factors of users and items, and the gate that chooses whose items to use.


def fit_local(rows: Any, items: Floats, kind: FitKind, settings: FitSettings, *, rng: np.random.Generator) -> LocalFit:
    """A fit of this kind to an entity's rows. ``items`` are the shared factors; ``rng`` draws the start of a local fit."""
    shared = checked_items(items)
    table = clean(rows, settings.value_bound, len(shared))
    if kind is FitKind.GLOBAL:
        users, fitted_items = fit_users(table, shared, **settings.fit), shared
    elif kind is FitKind.BLEND:
        fitted = adapt(table, shared, settings.pull, epochs=settings.epochs, **settings.fit)
        users, fitted_items = fitted.users, fitted.items
    else:
        fitted_items = factorise(table, shared.shape[1], epochs=settings.epochs, rng=rng, **settings.fit).items
        users = fit_users(table, fitted_items, **settings.fit)
    return LocalFit(kind, users, fitted_items, user_means(table, settings), settings.value_bound)


def gated_fit(
    rows: Any, items: Floats, data_free: Floats | Sequence[Floats], settings: FitSettings, *, rng: np.random.Generator
) -> LocalFit:
    """The kind of fit that does best on a tenth of the entity's cells, fitted again to all of them, with its report.

    ``items`` are the shared factors, ``data_free`` those of noise-only control releases (see `data_free_items`). If no cell can be
    held out, the shared factors are used. The best control counts, because pure noise beats all n controls of the same noise with
    probability 1 / (n + 1): one control alone would let it pass half the time.

    The winner, the held-out scores and the flag are functions of private rows: publishing any of them is a release, and needs a
    budget. The gate is a test on a small sample, so it cannot promise that nobody is harmed.
    """
    shared = checked_items(items)
    table = clean(rows, settings.value_bound, len(shared))
    split = hold_out_cells(table, rng)
    seed = rng.spawn(1)[0].bit_generator.state  # one start for the local fit before and after

    def fit(on: sparse.csr_array, factors: Floats, kind: FitKind) -> LocalFit:
        start = np.random.default_rng()
        start.bit_generator.state = seed
        return fit_local(on, factors, kind, settings, rng=start)

    fits = {str(kind): fit(split.train, shared, kind) for kind in FitKind}
    fits[CONSTANT] = fit(split.train, np.ones((len(shared), 1)), FitKind.GLOBAL)
    error = mean_rank if settings.zeros_observed else root_mean_square
    scores = {name: error(fitted, split) for name, fitted in fits.items()}
    controls = [data_free] if isinstance(data_free, np.ndarray) else data_free
    scores[DATA_FREE] = min(error(fit(split.train, control, FitKind.GLOBAL), split) for control in controls)
    # On a tie the entity's own factors win: they rely on nobody.
    chosen = min(FitKind, key=lambda kind: scores[kind]) if split.size else FitKind.GLOBAL
    measure = "mean percentile rank" if settings.zeros_observed else "RMSE"
    report = GateReport(measure, scores, chosen, split.size)
    return replace(fit(table, shared, chosen), report=report)


class PrototypeMechanism(Protocol):
    """What draws prototypes."""

    def release(self, rows: Any, noise: Noise = ...) -> Release[Any]: ...


def data_free_items(
    mechanism: PrototypeMechanism, items: int, entities: int, how: Factorisation, *, noise: Noise = SYSTEM_NOISE
) -> Floats:
    """Item factors from ``entities`` noise-only releases: the same noise, no data. They cost nothing."""
    no_rows = sparse.csr_array((0, whole("items", items, least=1)))
    released: list[ReleasedPrototypes] = [
        mechanism.release(no_rows, noise).value for _ in range(whole("entities", entities, least=1))
    ]
    return how.of(released)


@dataclass(frozen=True, eq=False, repr=False)
class Holdout:
    """What trains and what is held out. Private."""

    train: sparse.csr_array
    users: NDArray[np.int64]  # of the cells held out, ascending
    items: NDArray[np.int64]
    values: Floats

    @property
    def size(self) -> int:
        return len(self.values)


def hold_out_cells(table: sparse.csr_array, rng: np.random.Generator) -> Holdout:
    """Holds out a tenth of all cells, drawn by ``rng``, but never the last cell of a user."""
    users = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    keys = rng.random(table.nnz)
    last = np.full(table.shape[0], -1.0)
    np.maximum.at(last, users, keys)
    free = np.flatnonzero(keys < last[users])
    count = min(math.ceil(HELD_OUT * table.nnz), free.size)
    out = np.zeros(table.nnz, dtype=np.bool_)
    out[free[np.argsort(keys[free], kind="stable")[:count]]] = True
    train = _cells_of(table, ~out, table.data[~out])
    return Holdout(train, users[out], table.indices[out].astype(np.int64), table.data[out])


def root_mean_square(fit: LocalFit, split: Holdout) -> float:
    """The root mean square error of the held-out values; NaN if there are none."""
    if not split.size:
        return math.nan
    return math.sqrt(float(np.mean((fit.at(split.users, split.items) - split.values) ** 2)))


def mean_rank(fit: LocalFit, split: Holdout) -> float:
    """The rank of held-out items among all items that a user does not train with, weighed by value: 0 is best, .5 is chance.

    (items strictly higher + half of the ties) / (candidates - 1). NaN if nothing of weight is held out.
    """
    weighed, weight = 0.0, 0.0
    count, width = split.train.shape
    step = max(1, _CELLS // max(width, 1))
    for first in range(0, count, step):
        scores = fit.scores(slice(first, first + step))
        low, high = np.searchsorted(split.users, [first, first + len(scores)])
        for cell in range(low, high):
            user = int(split.users[cell])
            trained_items = split.train.indices[split.train.indptr[user] : split.train.indptr[user + 1]]
            candidates = np.delete(scores[user - first], trained_items)
            held_out_score = scores[user - first, split.items[cell]]
            above = (candidates > held_out_score).sum() + 0.5 * ((candidates == held_out_score).sum() - 1)
            weighed += split.values[cell] * above / max(len(candidates) - 1, 1)
            weight += split.values[cell]
    return weighed / weight if weight > 0.0 else math.nan


def clean(rows: Any, value_bound: float, items: int) -> sparse.csr_array:
    """The rows with repeated cells added up, cells without a finite number left out, and the others cut to the bounds."""
    table = sparse.csr_array(real_table(rows, "rows", items), dtype=np.float64, copy=True)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    table.sum_duplicates()
    known = np.isfinite(table.data)
    return _cells_of(table, known, np.clip(table.data[known], 0.0, value_bound))


def user_means(table: sparse.csr_array, settings: FitSettings) -> Floats:
    """The mean of each user's cells; of all cells for a user without any."""
    sums = np.asarray(table.sum(axis=1)).reshape(-1)
    if settings.zeros_observed:
        return np.asarray(sums / max(table.shape[1], 1))
    counts = np.diff(table.indptr)
    everybody = sums.sum() / max(counts.sum(), 1)
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), everybody))


# ---- Moments: the entity's rows, the shared pseudo-rows, and the gate that lets the latter in.


def fit_blend(
    rows: Any, shared: SharedMoments | None, settings: BlendSettings, *, rng: np.random.Generator, gate: bool = True
) -> BlendedFit:
    """The entity's fit: blended if the release is informative and the gate keeps the blend, otherwise of its own rows.

    Scores are those of the item-item ridge on the entity's rows and, for the items of the head, on the shared pseudo-rows at weight
    ``alpha``; plus gamma times (shared popularity per user + .3 of the entity's own). ``rng`` picks the cells that the gate holds
    out, and draws the noise of a control. Without a ``gate`` the blend is taken. All results stay inside the entity.
    """
    marks = _marks(rows, None if shared is None else shared.popularity.size)
    if shared is None or not shared.informative:
        return _local_fit(item_ridge(marks, settings.ridge), settings)
    report = gate_report(marks, shared, settings, rng=rng) if gate else None
    base = item_ridge(marks, settings.ridge)
    if report is not None and not report.keeps_blend:
        return _local_fit(base, settings, report)
    return _blend_fit(base, shared, settings, report)


def gate_report(rows: Any, shared: SharedMoments, settings: BlendSettings, *, rng: np.random.Generator) -> BlendReport:
    """Holds out a tenth of each user's items, and compares how local rows, the blend and the blend of two controls find them."""
    train, held = hold_out_rows(_marks(rows, shared.popularity.size), rng)
    base = item_ridge(train, settings.ridge)
    fits = {
        "local": _local_fit(base, settings),
        "blend": _blend_fit(base, shared, settings),
        DATA_FREE: _blend_fit(base, data_free(shared, rng), settings),
        CONSTANT: _blend_fit(base, constant(shared), settings),
    }
    gains = {name: held_out_gains(fit, train, held) for name, fit in fits.items()}
    has_held_out = np.diff(held.indptr) > 0
    difference = gains["blend"][has_held_out] - gains["local"][has_held_out]
    return BlendReport(
        {
            name: float(values[has_held_out].mean()) if has_held_out.any() else math.nan
            for name, values in gains.items()
        },
        float(difference.mean()) if difference.size else math.nan,
        float(difference.std(ddof=1) / math.sqrt(difference.size)) if difference.size > 1 else math.nan,
        difference.size,
    )


def hold_out_rows(rows: sparse.csr_array, rng: np.random.Generator) -> tuple[sparse.csr_array, sparse.csr_array]:
    """What trains and what is held out: a tenth of each user's items, at least one, and none if fewer than three would stay."""
    sizes = np.diff(rows.indptr)
    count = np.maximum(0, np.minimum(np.maximum(1, sizes // 10), sizes - LEFT))
    user = np.repeat(np.arange(rows.shape[0]), sizes)
    shuffled = np.lexsort((rng.random(rows.nnz), user))  # each user's cells in a random order
    position = np.empty(rows.nnz, dtype=np.int64)
    position[shuffled] = np.arange(rows.nnz) - rows.indptr[user]
    out = position < count[user]
    return _marked(rows, ~out), _marked(rows, out)


def held_out_gains(fit: BlendedFit, train: sparse.csr_array, held: sparse.csr_array) -> NDArray[np.float64]:
    """Each user's NDCG of 20 items among all that they do not train with; 0 for a user with nothing held out."""
    users, items = train.shape
    gains = np.zeros(users)
    step = max(1, _CELLS // items)
    for first in range(0, users, step):
        scores = fit.scores(users=slice(first, first + step))
        trained = train[first : first + step]
        scores[np.repeat(np.arange(len(scores)), np.diff(trained.indptr)), trained.indices] = -np.inf
        for user in range(len(scores)):
            held_out_items = held.indices[held.indptr[first + user] : held.indptr[first + user + 1]]
            if held_out_items.size:
                gains[first + user] = _gain(scores[user], held_out_items)
    return gains


def _gain(scores: Floats, held_out_items: NDArray[np.integer[Any]]) -> float:
    if np.isnan(scores).any():  # from a broadcast model out of all bounds; NaN would win every comparison
        return 0.0
    held_out_scores = scores[held_out_items][:, None]
    # half of the ties rank above: a lucky order of equal scores must not count
    ranks = (scores > held_out_scores).sum(axis=1) + 0.5 * ((scores == held_out_scores).sum(axis=1) - 1)
    best = (1.0 / np.log2(np.arange(min(TOP, held_out_items.size)) + 2.0)).sum()
    return float(((ranks < TOP) / np.log2(ranks + 2.0)).sum() / best)


def _local_fit(base: ItemRidge, settings: BlendSettings, report: BlendReport | None = None) -> BlendedFit:
    return BlendedFit(base, None, settings, settings.gamma * LOCAL * _own_popularity(base), report)


def _blend_fit(
    base: ItemRidge, shared: SharedMoments, settings: BlendSettings, report: BlendReport | None = None
) -> BlendedFit:
    everywhere = np.maximum(shared.popularity, 0.0) / settings.users
    popularity = settings.gamma * (everywhere + LOCAL * _own_popularity(base))
    return BlendedFit(base, Blend(base, shared.head, shared.pseudo_rows), settings, popularity, report)


def _own_popularity(base: ItemRidge) -> Floats:
    """The mean of the entity's unit rows, on the scale of the shared popularity per user."""
    return np.asarray(base.unit.sum(axis=0) / max(1, base.unit.shape[0])).reshape(-1)


def _marks(rows: Any, items: int | None) -> sparse.csr_array:
    unit, _ = unit_rows(rows)
    if items is not None and unit.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    return _marked(unit, np.ones(unit.nnz, dtype=np.bool_))


def _marked(rows: sparse.csr_array, kept: NDArray[np.bool_]) -> sparse.csr_array:
    return _cells_of(rows, kept, np.ones(int(kept.sum())))


def _cells_of(table: sparse.csr_array, kept: NDArray[np.bool_], values: Floats) -> sparse.csr_array:
    """A table of the ``kept`` stored cells only, with these values."""
    starts = np.concatenate([[0], np.cumsum(kept)])[table.indptr]
    return sparse.csr_array((values, table.indices[kept], starts), shape=table.shape)
