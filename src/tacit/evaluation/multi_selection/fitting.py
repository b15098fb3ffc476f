"""The server's model and how well it knows ratings: trained on look-alikes' ratings only, tested on those of others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.multi_selection.paper import TRAINED_ON
from tacit.evaluation.multi_selection.population import Population
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import Estimate, mean
from tacit.guarantees import Release
from tacit.messages.store import Store
from tacit.models.items import Items
from tacit.models.scorers import Scorer

Progress = Callable[[int, int], None]
_TESTED = 100_000  # ratings that a test looks at


@dataclass(frozen=True, eq=False)
class Trained:
    """A store, and the ratings that its model saw."""

    store: Store
    rows: NDArray[np.int64]


def trained(
    people: Population,
    kind: str = "network",
    *,
    rows: int = TRAINED_ON,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Trained:
    """The published training: ``rows`` random ratings of the look-alikes, or all of them where there are fewer."""
    from tacit.curator.training import Rows, train_network

    ratings = people.ratings
    chosen = np.sort(rng.permutation(people.rows_of(people.look_alikes))[:rows])
    examples = Rows(ratings.users[chosen], ratings.items[chosen], ratings.values[chosen])
    told = None if progress is None else lambda done, total, _: progress(done, total)
    network = train_network(people.features, people.space.flags, examples, kind=kind, rng=rng, progress=told)
    return Trained(store_of(people, network), chosen)


def trained_privately(
    people: Population, *, epsilon: float, delta: float, rng: np.random.Generator, progress: Progress | None = None
) -> Trained:
    """The same network, fitted privately with one look-alike as the unit. Her features as a look-alike are another matter."""
    from tacit.curator.private_training import train_privately
    from tacit.curator.training import RowsByUser

    part = people.ratings.select_users(people.look_alikes)
    release = train_privately(
        people.features[people.look_alikes],
        people.space.flags,
        RowsByUser(part.starts, part.items, part.values),
        epsilon=epsilon,
        delta=delta,
        rng=rng,
        progress=progress,
    )
    return Trained(store_of(people, release), people.rows_of(people.look_alikes))


def store_of(people: Population, model: Scorer | Release[Scorer]) -> Store:
    catalogue = people.ratings.catalogue
    features = people.features[people.look_alikes]
    return Store.of(Items(catalogue.ids, catalogue.titles), people.space, model, features, name=people.name)


def error_rows(people: Population, fitted: Trained, method: str, *, rng: np.random.Generator) -> Iterator[Row]:
    """How far the model's ratings are from those given: by held-out users, and by look-alikes where it was not shown them.

    "Within half a star" is of the prediction rounded to half stars, as the paper's project counts it.
    """
    seen = np.isin(people.rows_of(people.look_alikes), fitted.rows, assume_unique=True)
    sides = {
        "held-out users": people.rows_of(people.held_out),
        "other ratings": people.rows_of(people.look_alikes)[~seen],
    }
    for name, rows in sides.items():
        if not rows.size:
            continue
        chosen = np.sort(rng.permutation(rows)[:_TESTED])
        users, values = people.ratings.users[chosen], people.ratings.values[chosen]
        told = predicted(fitted.store.scorer, people.features, users, people.ratings.items[chosen])
        squared = mean((told - values) ** 2, users)
        root = float(np.sqrt(squared.value))
        yield Row.of(method, "test rmse", Estimate(root, squared.stderr / (2.0 * root), squared.n), of=name)
        near = np.abs(np.rint(2.0 * told) / 2.0 - values) <= 0.5
        yield Row.of(method, "within half a star", mean(near.astype(np.float64), users), of=name)


def predicted(scorer: Scorer, features: NDArray[Any], users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float64]:
    """The model's rating of each (user, item); ``users`` must ascend."""
    told = np.empty(len(users))
    _, starts = np.unique(users, return_index=True)
    for first, last in zip(starts, [*starts[1:], len(users)], strict=True):
        told[first:last] = scorer.score(features[users[first]][None], items[first:last])[0]
    return told
