"""Multi-selection at the server: from a signal to a slate of k items and a local model for the device's pick.

    server = MultiSelection(store)
    reply = server.answer(signal, k=5)       # validate, guess who sent the signal, choose a slate, fit a local model
    server.answer_bytes(request)             # the same on the wire

An answer depends only on the released signal, on public data and on the server's own random numbers. It is post-processing: you
can change it freely without touching what the device was promised.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, member, positive, probability, whole
from tacit.errors import InvalidModel, InvalidParameter, NoLookAlikes
from tacit.guarantees import Guarantee
from tacit.messages.multi_selection import MOST_K, Reply, Request, Signal
from tacit.messages.store import Store
from tacit.models import loops, multi_selection
from tacit.models.dpp.laws import RngCoins, rank_of
from tacit.models.dpp.tempered import MOST_NATS, TemperedSampler, greedy_map
from tacit.models.features import scaled_blocks
from tacit.models.multi_selection import (
    LinearMap,
    PrincipalComponents,
    capped_draws,
    gram_of,
    principal_components,
    ridge_from_gram,
    temperature,
)
from tacit.models.scorers import Progress, Scorer, checked_scores, class_scores, require_usable
from tacit.models.tables import Tables, build_tables, tables_version, tops_of


class Algorithm(StrEnum):
    """How a server turns a signal into a slate. `exact` and `dpp` are tacit's own; the others are published."""

    NOPOST = "nopost"  # the best items at the raw signal
    NOPOST_REALUSER = "nopost-realuser"  # the best items of the nearest look-alike
    IG_SIG = "ig-sig"  # ignores the signal: the baseline that every other algorithm has to beat
    AVG = "avg"
    AVG_REALUSER = "avg-realuser"
    SAT = "sat"
    SAT_REALUSER = "sat-realuser"
    EXACT = "exact"  # exact posterior weights instead of draws, and no cut at the r best items
    DPP = "dpp"  # the same weights; maximises a determinant: items that are good on average and unlike each other


class Posterior(StrEnum):
    """The distribution over who may have sent the signal."""

    NONE = "none"
    UNIFORM = "uniform"  # every look-alike alike; the signal is ignored
    REALUSER = "realuser"  # look-alikes, weighted by the likelihood of the signal
    CAP = "cap"  # the signal itself with fresh noise, clipped and scaled into the domain


class LocalModel(StrEnum):
    """The scorer that is sent with a slate so that the device can pick."""

    RIDGE = "ridge"  # a linear map by tempered ridge regression (the default)
    PCA = "pca"  # principal components, as published
    PCA_MAP = "pca-map"  # the same estimates as a smaller linear map
    NETWORK = "network"  # nothing is sent: the device holds the whole model
    NONE = "none"  # nothing is sent: the device takes the first item


POSTERIOR = {
    Algorithm.NOPOST: Posterior.NONE,
    Algorithm.NOPOST_REALUSER: Posterior.NONE,
    Algorithm.IG_SIG: Posterior.UNIFORM,
    Algorithm.AVG: Posterior.CAP,
    Algorithm.SAT: Posterior.CAP,
    Algorithm.AVG_REALUSER: Posterior.REALUSER,
    Algorithm.SAT_REALUSER: Posterior.REALUSER,
    Algorithm.EXACT: Posterior.REALUSER,
    Algorithm.DPP: Posterior.REALUSER,
}
AVERAGING = frozenset({Algorithm.AVG, Algorithm.AVG_REALUSER})  # utility of all items of the slate, not of the t best
BY_WEIGHTS = frozenset({Algorithm.EXACT, Algorithm.DPP})  # use the posterior's weights instead of draws
WITHOUT_LOOK_ALIKES = frozenset({Algorithm.NOPOST, Algorithm.AVG, Algorithm.SAT})


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """The public parameters of an answer."""

    algorithm: Algorithm = Algorithm.EXACT
    local_model: LocalModel = LocalModel.RIDGE
    draws: int = 25  # posterior draws for the slate (q1)
    model_draws: int = 1000  # posterior draws for the principal components (q2)
    r: int = 100  # only the r best items of each draw count
    components: int = 20  # number of principal components (p)
    coverage: float = 0.99  # share of the posterior's weight that `exact` and `dpp` use
    most_rows: int = 4096  # most look-alikes that `exact`, `dpp` and ridge use; beyond it they take an even sample
    strength: float = 0.01  # of the ridge penalty
    alpha: float = 3.0  # `dpp`: the weight of one unit of expected utility against diversity, in nats
    sampled: bool = False  # `dpp`: draw a different slate each time instead of taking the likeliest
    ignores_signal: bool = False  # weigh all look-alikes alike, for signals that carry no information

    def __post_init__(self) -> None:
        keep(
            self,
            algorithm=member("algorithm", Algorithm, self.algorithm),
            local_model=member("local_model", LocalModel, self.local_model),
            draws=whole("draws", self.draws, least=1),
            model_draws=whole("model_draws", self.model_draws, least=1),
            r=whole("r", self.r, least=1),
            components=whole("components", self.components, least=1, most=0xFFFF),
            coverage=probability("coverage", self.coverage),
            most_rows=whole("most_rows", self.most_rows, least=1),
            strength=positive("strength", self.strength),
            alpha=positive("alpha", self.alpha),
        )
        if self.local_model in (LocalModel.PCA, LocalModel.PCA_MAP) and self.posterior is Posterior.NONE:
            raise InvalidParameter(
                f"{self.algorithm} has no posterior to compute principal components from: choose ridge, network or none."
            )

    @property
    def posterior(self) -> Posterior:
        """The posterior that this algorithm uses."""
        return Posterior.UNIFORM if self.ignores_signal else POSTERIOR[self.algorithm]

    @property
    def needs_look_alikes(self) -> bool:
        """Whether the store must have look-alikes."""
        return self.algorithm not in WITHOUT_LOOK_ALIKES or self.local_model is LocalModel.RIDGE

    def without_signal(self) -> "AnswerSettings":
        """The settings for a signal without information: `exact` and `dpp` weigh all look-alikes alike, the others become
        `ig-sig`.
        """
        if self.algorithm in BY_WEIGHTS:
            return replace(self, ignores_signal=True)
        return replace(self, algorithm=Algorithm.IG_SIG)


class MultiSelection:
    """Answers signals from a store. Building it computes the tables of utilities that all answers share.

    Pass ``tables`` to reuse tables that were built or loaded before, and ``settings`` by name (see `AnswerSettings`). ``rng``
    draws from the posterior. It is experiment randomness: no privacy depends on it.
    """

    def __init__(
        self,
        store: Store,
        algorithm: Algorithm | str = Algorithm.EXACT,
        local_model: LocalModel | str = LocalModel.RIDGE,
        *,
        tables: Tables | None = None,
        rng: np.random.Generator | None = None,
        progress: Progress | None = None,
        compiled: bool | None = None,
        **settings: Any,
    ) -> None:
        if not hasattr(store, "scorer"):
            raise InvalidParameter("a server answers from a store: MultiSelection(tacit.fit(ratings)).")
        known = [field.name for field in fields(AnswerSettings) if field.name not in ("algorithm", "local_model")]
        if unknown := [name for name in settings if name not in known]:
            raise InvalidParameter(f"unknown setting {unknown[0]!r}; the settings are {', '.join(known)}.")
        self.settings = AnswerSettings(
            member("algorithm", Algorithm, algorithm), member("local_model", LocalModel, local_model), **settings
        )
        self.store = store
        self.rng = np.random.default_rng() if rng is None else rng
        self._work = loops.choose(compiled)
        require_usable(store.scorer, store.look_alikes)
        if self.settings.needs_look_alikes and not len(store.look_alikes):
            raise NoLookAlikes(
                f"{self.settings.algorithm} with {self.settings.local_model} needs look-alikes, and this store has none. "
                "Fit a store with look-alikes, or choose sat, avg or nopost with pca, network or none."
            )
        self.tables = tables
        if tables is None and len(store.look_alikes):
            self.tables = build_tables(
                store.scorer,
                store.look_alikes,
                r=self.settings.r,
                store_version=store.version,
                progress=progress,
                compiled=compiled,
            )
        elif tables is not None and tables.version != tables_version(
            store.version, min(self.settings.r, len(store.items))
        ):
            raise InvalidModel("these tables belong to another store or another r: build them again.")

    @property
    def guarantee(self) -> Guarantee:
        """What the people behind the store were promised. A device's own guarantee is in its signal."""
        return self.store.guarantee

    def __repr__(self) -> str:
        return f"MultiSelection({self.settings.algorithm}, {self.settings.local_model}; {self.store})"

    def answer(self, signal: Signal, k: int = 5, t: int = 1) -> Reply:
        """A slate of ``k`` items and a local model. The slate is chosen for a device that takes its ``t`` best items."""
        k, t = whole("k", k, least=1, most=MOST_K), whole("t", t, least=1, most=MOST_K)
        if t > k:
            raise InvalidParameter(f"a device cannot take {t} items from a slate of {k}: t must be at most k.")
        dimension = self.store.space.dimension
        Request(signal, k, t).require(dimension=dimension)
        guess = self.guess(signal)
        items = choose_slate(guess, k, t)
        return Reply.of(self.store.items.numbers[items], k, fit_local_model(guess, items), dimension)

    def answer_bytes(self, request: bytes) -> bytes:
        """The wire form: request bytes in, reply bytes out."""
        message = Request.from_bytes(request)
        return self.answer(message.signal, message.k, message.t).to_bytes()

    def guess(self, signal: Signal) -> "Guess":
        """The posterior of one signal. An empty signal gets the answer for an average user."""
        # Without look-alikes an empty signal stands for a user without ratings: all zeros, which is public too.
        empty = signal.empty and self.tables is not None
        settings = self.settings.without_signal() if empty else self.settings
        store, eta = self.store, float(signal.eta)
        inside, sizes = store.space.inside, store.look_alike_sizes
        return Guess(settings, store.scorer, self.tables, signal.values, eta, self._work, self.rng, inside, sizes)


@dataclass(frozen=True, eq=False)
class Guess:
    """The posterior of one signal: who may have sent it, and what they like. Everything is computed on demand."""

    settings: AnswerSettings
    scorer: Scorer
    tables: Tables | None
    signal: NDArray[np.float64]
    eta: float
    work: ModuleType
    rng: np.random.Generator
    inside: Callable[[NDArray[Any]], NDArray[np.float64]] = scaled_blocks  # moves features into their domain
    sizes: NDArray[np.float32] | None = None  # how many people each look-alike stands for; None: one each

    @property
    def look_alikes(self) -> Tables:
        """The tables of the look-alikes. Raises NoLookAlikes if the store has none."""
        if self.tables is None:
            raise NoLookAlikes("this store has no look-alikes.")
        return self.tables

    @cached_property
    def distances(self) -> NDArray[np.float32]:
        """L1 distances from the signal to every look-alike; all 0 if the signal is ignored."""
        if self.settings.posterior is Posterior.UNIFORM:
            return np.zeros(len(self.look_alikes), dtype=np.float32)
        # Beyond the outermost look-alike a coordinate adds the same to all distances: clipping it there changes no posterior,
        # and keeps single precision accurate for signals that lie far out.
        signal = np.clip(self.signal, *self.look_alikes.reach).astype(np.float32)
        distances: NDArray[np.float32] = self.work.l1_distances(signal, self.look_alikes.features)
        return distances

    def draws(self, count: int) -> NDArray[np.int64]:
        """Rows of look-alikes, drawn from the posterior with replacement."""
        if self.settings.posterior is Posterior.UNIFORM and self.sizes is None:
            return self.rng.integers(len(self.look_alikes), size=count)
        rows: NDArray[np.int64] = self.work.draw_rows(self._running_weights, self.rng.random(count))
        return rows

    @cached_property
    def _running_weights(self) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = self.work.running_weights(self._gaps(self.eta), self.eta)
        return sums

    def _gaps(self, eta: float) -> NDArray[np.float32]:
        """Gaps whose weights are exp(-gap/eta): size * exp(-d/eta) = exp(-(d - eta ln size)/eta)."""
        if self.sizes is None:
            return self.distances
        gaps: NDArray[np.float32] = (self.distances - eta * np.log(self.sizes, dtype=np.float64)).astype(np.float32)
        return gaps

    def weighted(self, eta: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The look-alikes that hold most of the weight, size * exp(-distance/eta), with their weights."""
        settings = self.settings
        rows, weights = self.work.heavy_rows(
            self._gaps(eta), eta, settings.coverage, settings.most_rows, float(self.rng.random())
        )
        return rows, weights

    def gram(
        self, rows: NDArray[np.int64], weights: NDArray[np.float64], classes: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """X'WX for rows [1, features, utilities of these classes] of look-alikes, in double precision."""
        tables = self.look_alikes
        stacked = np.empty((len(rows), 1 + tables.features.shape[1] + len(classes)))
        self.work.stack_rows(
            tables.features, tables.utilities, tables.scale, rows, weights, tables.column_of[classes], stacked
        )
        gram: NDArray[np.float64] = stacked.T @ stacked
        return gram

    def capped(self, count: int) -> NDArray[np.float64]:
        """Features drawn from the posterior `cap`."""
        return capped_draws(self.signal, self.eta, count, self.inside, rng=self.rng)


def choose_slate(guess: Guess, k: int, t: int) -> NDArray[np.int64]:
    """The codes of at most ``k`` items, in the order they were chosen. Fewer only if no further class of items is left."""
    settings = guess.settings
    if settings.posterior is Posterior.NONE:
        return _best_items(guess, k)
    if settings.algorithm is Algorithm.EXACT:
        rows, weights = guess.weighted(guess.eta)
        tables, classes = guess.look_alikes, guess.scorer.classes
        chosen = multi_selection.from_weights(guess.work, tables, rows, weights, classes, k, t)
        return multi_selection.filled(chosen, classes, k, lambda: _utility_sums(guess, rows, weights))
    if settings.algorithm is Algorithm.DPP:
        return _diverse_slate(guess, k)  # a determinant rates the slate as a whole, so t does not matter
    t = k if settings.algorithm in AVERAGING else t  # all k count: the modular utility
    return _slate_from_draws(guess, k, t)


def _best_items(guess: Guess, k: int) -> NDArray[np.int64]:
    """The k best items of the signal itself, or of its nearest look-alike (the first of several)."""
    features = guess.signal
    if guess.settings.algorithm is Algorithm.NOPOST_REALUSER:
        features = guess.look_alikes.features[int(np.argmin(guess.distances))].astype(np.float64)
    classes = guess.scorer.classes
    class_utilities = class_scores(guess.scorer, features[None])
    best, kept, _, _ = tops_of(guess.work, class_utilities, classes, min(k, classes.n_items))
    items = np.concatenate(
        [
            classes.members[classes.starts[code] : classes.starts[code] + count]
            for code, count in zip(best.tolist(), kept.tolist(), strict=True)
        ]
    ).astype(np.int64)
    return items[np.lexsort((items, -class_utilities[0][classes.of[items]]))]


def _slate_from_draws(guess: Guess, k: int, t: int) -> NDArray[np.int64]:
    """Greedy on posterior draws, each of which sees only its r best items."""
    settings, classes = guess.settings, guess.scorer.classes
    if settings.posterior is Posterior.CAP:
        scores = class_scores(guess.scorer, guess.capped(settings.draws))
        best, kept, exact, lengths = tops_of(guess.work, scores, classes, min(settings.r, classes.n_items))
        starts, rows = np.concatenate([[0], np.cumsum(lengths)]), np.arange(settings.draws)
        chosen = multi_selection.from_lists(guess.work, (starts, best, kept, exact), rows, classes, k, t)
        return multi_selection.filled(chosen, classes, k, lambda: scores.sum(axis=0, dtype=np.float64))
    tables, rows = guess.look_alikes, guess.draws(settings.draws)
    lists = (tables.starts, tables.listed, tables.kept, tables.exact)
    chosen = multi_selection.from_lists(guess.work, lists, rows, classes, k, t)
    return multi_selection.filled(chosen, classes, k, lambda: _utility_sums(guess, rows, np.ones(len(rows))))


def _utility_sums(guess: Guess, rows: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """The weighted utility of every class, summed over these look-alikes."""
    all_classes = np.arange(len(guess.scorer.classes))
    sums: NDArray[np.float64] = weights @ guess.look_alikes.utilities_of(np.asarray(rows), all_classes)
    return sums


OWN_SHARE = 0.1  # of an item's similarity is with itself alone, so that no item is a combination of others
VECTORS = ("flags", "factors", "vectors")  # the names that scorers give to the public vectors of their items


def _diverse_slate(guess: Guess, k: int) -> NDArray[np.int64]:
    """The slate of `dpp`: items that are good on average and unlike each other.

    P(Y) is proportional to e^{alpha sum of q over Y} det S_Y, where q is an item's expected utility under the posterior and S
    compares items by their public vectors (genres, factors). The greedy slate approximates the likeliest one. With ``sampled``
    the slate is drawn: a device then gets a different slate for each request although it sends the same signal for a whole
    slot. Drawn items are ordered by expected utility. Candidates are the classes among the r best of some look-alike, one item
    of each.
    """
    tables, classes, settings = guess.look_alikes, guess.scorer.classes, guess.settings
    candidates = tables.columns[: tables.candidates]
    rows, shares = guess.weighted(guess.eta)
    utilities = tables.utilities[rows, : tables.candidates]
    quality: NDArray[np.float64] = (shares / shares.sum()) @ utilities * np.float64(tables.scale)
    vectors = class_vectors(guess.scorer)[candidates]
    weights = settings.alpha * quality
    size = min(k, len(candidates))
    if settings.sampled:
        chosen = _draw_diverse(vectors, weights, size, guess.rng)
        chosen = chosen[np.argsort(-quality[chosen], kind="stable")]
    else:
        chosen = greedy_map((np.sqrt(1.0 - OWN_SHARE) * vectors, OWN_SHARE), size, log_weights=weights)
    items = classes.first[candidates[chosen]].astype(np.int64)
    return multi_selection.filled(items, classes, k, lambda: _utility_sums(guess, *guess.weighted(guess.eta)))


def class_vectors(scorer: Scorer) -> NDArray[np.float64]:
    """classes x d, rows of length 1 whose products are similarities. A row without any genre is all 0: similar to nothing."""
    tensors = scorer.tensors()
    name = next((name for name in VECTORS if name in tensors), None)
    if name is None:
        raise InvalidModel(
            f"dpp compares items by their public vectors, and this scorer ({scorer.kind}) stores none: choose exact."
        )
    vectors = np.asarray(tensors[name][scorer.classes.first], dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0.0)
    return unit


def _draw_diverse(
    vectors: NDArray[np.float64], weights: NDArray[np.float64], size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """One slate of the law without `OWN_SHARE`, at most as many items as the vectors have dimensions.

    Log weights more than 40 nats below the best are raised to 40 below.
    """
    rank = rank_of(vectors)
    if not rank:
        return np.zeros(0, dtype=np.int64)
    weights = np.maximum(weights, weights.max() - MOST_NATS)
    return TemperedSampler(vectors, weights, min(size, rank), rank=rank).draw(RngCoins(rng))


def fit_local_model(guess: Guess, items: NDArray[np.int64]) -> LinearMap | PrincipalComponents | LocalModel:
    """The local model for a slate; only its name if nothing is sent."""
    settings, kind = guess.settings, guess.settings.local_model
    if kind in (LocalModel.NETWORK, LocalModel.NONE):
        return kind
    classes = guess.scorer.classes.of[items]
    if kind is LocalModel.RIDGE:
        rows, weights = guess.weighted(temperature(guess.eta))
        return ridge_from_gram(guess.gram(rows, weights / weights.sum(), classes), len(items), settings.strength)
    model = principal_components(_posterior_gram(guess, classes), len(items), settings.components)
    return model.as_map() if kind is LocalModel.PCA_MAP else model


def _posterior_gram(guess: Guess, classes: NDArray[np.int32]) -> NDArray[np.float64]:
    """The Gram matrix of rows [1, features, utilities] over the posterior: from its weights for `exact` and `dpp`, else from
    draws.
    """
    settings = guess.settings
    if settings.posterior is Posterior.CAP:
        features = guess.capped(settings.model_draws)
        scores = guess.scorer.score(features, guess.scorer.classes.first[classes])
        return gram_of(features, checked_scores(scores, (len(features), len(classes))), np.ones(len(features)))
    if settings.algorithm in BY_WEIGHTS:
        rows, weights = guess.weighted(guess.eta)
    else:
        counts = np.bincount(guess.draws(settings.model_draws), minlength=len(guess.look_alikes))
        rows = np.flatnonzero(counts)
        weights = counts[rows].astype(np.float64)
    return guess.gram(rows, weights, classes)
