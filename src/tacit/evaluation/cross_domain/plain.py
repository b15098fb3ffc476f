"""Every method that promises nothing: averages, baselines that see both domains as one, and NX-Map in its forms."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.least_squares import least_squares
from tacit.evaluation.cross_domain.linked import linked
from tacit.evaluation.cross_domain.remote_user import remote_user
from tacit.evaluation.cross_domain.splits import Floats
from tacit.evaluation.cross_domain.user_based import user_based
from tacit.models.cross_domain.alter_egos import (
    AlterEgos,
    Scale,
    SimilarItems,
    checked_pairs,
    clipped,
    column_means,
    levels,
    mean_of,
    row_means,
    several_replacements,
)

K = 50
ALPHA = 0.03
SHRINK = 0.2
Method = Callable[[Known, np.random.Generator], Floats]


def global_mean(target: Any, items: Any, scale: Scale) -> Floats:
    """The mean of all ratings in the target domain, for every wanted item."""
    return clipped(np.full(np.asarray(items).size, mean_of(target)), scale)


def item_average(target: Any, items: Any, scale: Scale) -> Floats:
    """The mean rating of each wanted item, or the mean of all ratings if nobody rated it."""
    _, items = checked_pairs(np.zeros_like(items), items, 1, target.shape[1])
    return clipped(column_means(target, mean_of(target))[items], scale)


def user_and_item(target: Any, level: Floats, users: Any, items: Any, scale: Scale) -> Floats:
    """The mean rating of each wanted item, moved by how high the user rates (`levels`)."""
    users, items = checked_pairs(users, items, level.size, target.shape[1])
    return clipped(column_means(target, mean_of(target))[items] + level[users], scale)


def _own_mean(known: Known, rng: np.random.Generator) -> Floats:
    mean = row_means(known.source, sum(known.scale) / 2.0)
    return known.table(lambda users, items: mean[users])


def _global_mean(known: Known, rng: np.random.Generator) -> Floats:
    return known.table(lambda users, items: global_mean(known.target, items, known.scale))


def _item_average(known: Known, rng: np.random.Generator) -> Floats:
    return known.table(lambda users, items: item_average(known.target, items, known.scale))


def _user_mean(known: Known, rng: np.random.Generator) -> Floats:
    return known.table(lambda users, items: user_and_item(known.target, known.level, users, items, known.scale))


def _user_mean_source(known: Known, rng: np.random.Generator) -> Floats:
    return known.table(
        lambda users, items: user_and_item(known.target, known.level_in_source, users, items, known.scale)
    )


def _remote_user(known: Known, rng: np.random.Generator) -> Floats:
    asked = known.held.asked
    return known.table(
        lambda users, items: remote_user(known.all_source, known.target, asked[users], items, known.scale, k=K)
    )


def _linked(known: Known, *, shrink: float, user_base: bool) -> Floats:
    ready, asked = linked(known.all_source, known.target, known.shrink), known.held.asked
    level = levels(known.held.ratings, mean_of(known.target)) if user_base else None
    return known.table(
        lambda users, items: ready.predict(asked[users], items, known.scale, k=K, level=level, shrink=shrink)
    )


def _knn(known: Known, rng: np.random.Generator) -> Floats:
    return _linked(known, shrink=0.0, user_base=False)


def _knn_shrunk(known: Known, rng: np.random.Generator) -> Floats:
    return _linked(known, shrink=SHRINK, user_base=True)


def _als(known: Known, rng: np.random.Generator) -> Floats:
    fitted, asked, first = least_squares(known.held.ratings, rng=rng), known.held.asked, known.held.n_source
    return known.table(lambda users, items: fitted.predict(asked[users], items + first, known.scale))


def item_based_of(
    known: Known,
    egos: AlterEgos,
    *,
    k: int = K,
    similar: SimilarItems = SimilarItems.RATED,
    level: Floats | None = None,
    alpha: float = ALPHA,
    shrink: float = 0.0,
) -> Floats:
    return known.table(
        lambda users, items: known.items.predict(
            egos, users, items, known.scale, k=k, similar=similar, level=level, alpha=alpha, shrink=shrink
        )
    )


def user_based_of(known: Known, egos: AlterEgos, similar: SimilarItems = SimilarItems.STATIC) -> Floats:
    people = np.flatnonzero(np.diff(known.target.indptr) > 0)
    ready = user_based(known.target[people])
    return known.table(lambda users, items: ready.predict(egos.values, users, items, known.scale, k=K, similar=similar))


def _nx_published(known: Known, rng: np.random.Generator) -> Floats:
    return item_based_of(known, known.egos, similar=SimilarItems.STATIC)


def _nx(known: Known, rng: np.random.Generator) -> Floats:
    return item_based_of(known, known.egos, level=known.level)


def _nx_shrunk(known: Known, rng: np.random.Generator) -> Floats:
    return item_based_of(known, known.egos, level=known.level, shrink=SHRINK)


def _nx_source(known: Known, rng: np.random.Generator) -> Floats:
    return item_based_of(known, known.egos, level=known.level_in_source, shrink=SHRINK)


def _nx_ub(known: Known, rng: np.random.Generator) -> Floats:
    return user_based_of(known, known.egos)


def _nx_ub_rated(known: Known, rng: np.random.Generator) -> Floats:
    return user_based_of(known, known.egos, SimilarItems.RATED)


def nx_many(known: Known, count: int) -> Floats:
    """Several replacements of a source item, by X-SIM; ratings keep their distance from their item's mean."""
    source, target = mean_of(known.all_source), mean_of(known.target)
    centres = column_means(known.all_source, source), column_means(known.target, target)
    egos = known.egos_of(several_replacements(known.x, count), centres=centres)
    return item_based_of(known, egos, level=known.level)


METHODS: dict[str, Method] = {
    names.OWN_MEAN: _own_mean,
    names.GLOBAL_MEAN: _global_mean,
    names.ITEM_AVERAGE: _item_average,
    names.USER_MEAN: _user_mean,
    names.USER_MEAN_SOURCE: _user_mean_source,
    names.REMOTE_USER: _remote_user,
    names.KNN: _knn,
    names.KNN_SHRUNK: _knn_shrunk,
    names.ALS: _als,
    names.NX_PUBLISHED: _nx_published,
    names.NX: _nx,
    names.NX_SHRUNK: _nx_shrunk,
    names.NX_SOURCE: _nx_source,
    names.NX_UB: _nx_ub,
    names.NX_UB_RATED: _nx_ub_rated,
    names.NX_MANY[3]: lambda known, rng: nx_many(known, 3),
    names.NX_MANY[10]: lambda known, rng: nx_many(known, 10),
}


def plain(known: Known, *, rng: np.random.Generator, methods: tuple[str, ...] = ()) -> Iterator[tuple[str, Floats]]:
    """Predictions by each method (by default all of them), as tables of asked users x target items."""
    for name in methods or tuple(METHODS):
        yield name, METHODS[name](known, rng)
