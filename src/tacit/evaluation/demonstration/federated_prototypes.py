"""Federated prototypes, shown: users dealt out to entities, two runs under secure aggregation, and what they are worth to the
entities' own users, beside two controls that hold no data."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data import Ratings, leave_out_per_user
from tacit.entity import Entity, Tuning
from tacit.entity.fit import BlendSettings
from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import (
    GAIN,
    Demonstration,
    Figure,
    Kind,
    Skipped,
    Status,
    Way,
    unheard,
)
from tacit.evaluation.federated_prototypes.measures import NDCG, ranks
from tacit.evaluation.statistics import difference, mean
from tacit.messages.federated_prototypes.replies import SharedModel
from tacit.models.moments import Blend, SharedMoments, constant, data_free, item_ridge
from tacit.systems.federated_prototypes import simulate

SYSTEM = "federated-prototypes"
ENTITIES, EPSILONS = 16, (1.0, 4.0)
FEWEST_USERS = 10  # of an entity; with less data there are fewer entities
CELLS, KEPT = 5, 3  # held out of each user; what she trains with at least
RIDGE, ALPHA = 1.0, 0.1  # public constants for entities of tens of users, found on MovieLens 1M
INDIVIDUAL, FEDERATED, CONTROLS, CENTRAL = "individual", "federated", ("data-free", "constant"), "one place"
_FEWEST_ENTITIES = 3  # of two, each would know the other's sum
SEED = 12  # of who is where and what is held out; of the gates; of a control


class _World(NamedTuple):
    rows: dict[str, sparse.csr_array]
    held: dict[str, sparse.csr_array]
    catalogue: list[Any]
    users: int  # the public order of magnitude of an entity's users


def demonstrate(ratings: Ratings, *, status: Status = unheard) -> Demonstration | Skipped:
    """Two runs from end to end, each with its own ledgers, and how the entities' recommendations turn out."""
    world = _dealt_out(ratings)
    if world is None:
        needed = f"{_FEWEST_ENTITIES} entities of {FEWEST_USERS} users, some with {KEPT + 1} ratings or more"
        return Skipped(SYSTEM, f"it needs {needed}.")
    models: dict[float, SharedModel] = {}
    scores: dict[float, dict[str, NDArray[np.float64]]] = {}
    guarantees = []
    for epsilon in EPSILONS:
        status(f"{len(world.rows)} entities and a coordinator talk, at epsilon {epsilon:g}")
        with simulate(world.rows, world.catalogue, epsilon=epsilon, users=world.users) as run:
            if run.model is None:
                return Skipped(SYSTEM, "the run ended without a model.")
            models[epsilon], scores[epsilon] = run.model, _scored(run.entities)
            guarantees.append(run.guarantee)
            manifest, sent = run.manifest, run.sent
            statement = str(next(iter(run.entities.values())).statement()).splitlines()[0]
    status("what it is worth to their users")
    ways = tuple(_ways(world, models, scores))
    asked = int(sum((np.diff(held.indptr) > 0).sum() for held in world.held.values()))
    said = (
        ("the entities", f"{len(world.rows)} of about {world.users} users each, dealt out at random; items are only marked"),
        ("the runs", f"one at epsilon {' and one at '.join(f'{epsilon:g}' for epsilon in models)}, each with ledgers of its own"),
        ("the stages", " > ".join((*manifest.stages, "model"))),
        ("the coordinator", f"sees two sums, no share of them; {manifest.fewest} entities must be left, {manifest.honest} honest"),
        ("who is asked", f"{asked:,} users, of whom {CELLS} items at most are held out"),
    )  # fmt: skip
    released = {
        "entities": len(world.rows), "stages": list(manifest.stages), "sent": dict(sent),
        "guarantees": [guarantee.to_json() for guarantee in guarantees],
    }  # fmt: skip
    by_name = {way.method: way for way in ways}  # of the federated ones the last epsilon
    last = f"in the run at epsilon {EPSILONS[-1]:g}"
    return Demonstration(
        SYSTEM, "Entities learn from each other, and nobody sees whose rows they were.", said, guarantees[-1],
        f"masked shares of two noisy sums, {max(sent.values()):,} bytes from each entity {last}",
        "every row, the fitted recommenders, and what they predict", f"at each entity, {last}: {statement}", NDCG,
        "mean over users", Better.HIGHER, ways, by_name[FEDERATED], by_name[CENTRAL], by_name[INDIVIDUAL],
        verdict(ways, asked), released,
    )  # fmt: skip


def verdict(ways: Iterable[Way], users: int) -> str:
    """What the table says, in words, whatever it says: two standard errors are asked for."""
    ways = list(ways)
    best = max((way for way in ways if way.method == FEDERATED), key=lambda way: way.gain.value)
    controls = [way.gain.value for way in ways if way.method in CONTROLS]
    if not best.gain.is_shown:
        return f"With {users:,} users in all, nothing is gained here that could be told from chance."
    if best.gain.value <= max(controls, default=0.0):
        return "What is gained here a control gains as well: the release told nothing."
    silent = [f"{way.epsilon:g}" for way in ways if way.method == FEDERATED and not way.gain.is_shown]
    more = f"; at epsilon {' and '.join(silent)} there are too few users for the noise" if silent else ""
    return f"Entities gain {best.gain.value:.3f} at epsilon {best.epsilon:g}, more than by either control{more}."


def _dealt_out(ratings: Ratings) -> _World | None:
    count = min(ENTITIES, ratings.n_users // FEWEST_USERS)
    if count < _FEWEST_ENTITIES:
        return None
    rng = np.random.default_rng(SEED)
    split = leave_out_per_user(ratings, CELLS, keep=KEPT, rng=rng)
    train, test = sparse.csr_array(split.train.csr()), sparse.csr_array(split.test.csr())
    if not test.nnz:
        return None
    of = rng.permutation(ratings.n_users) % count
    names = [f"entity-{place + 1:02}" for place in range(count)]
    return _World(
        {name: sparse.csr_array(train[of == place]) for place, name in enumerate(names)},
        {name: sparse.csr_array(test[of == place]) for place, name in enumerate(names)},
        ratings.catalogue.ids.tolist(),
        ratings.n_users // count,
    )


def _scored(entities: Mapping[str, Entity]) -> dict[str, NDArray[np.float64]]:
    """By each entity for itself, the gate included."""
    rng, tuning = np.random.default_rng(SEED + 1), Tuning(blend=BlendSettings(ridge=RIDGE, alpha=ALPHA))
    return {name: one.fit(tuning=tuning, rng=rng).scores() for name, one in entities.items()}


def _ways(
    world: _World, models: dict[float, SharedModel], scores: dict[float, dict[str, NDArray[np.float64]]]
) -> Iterator[Way]:
    bases = {name: item_ridge(rows, RIDGE) for name, rows in world.rows.items()}

    def blended(shared: SharedMoments) -> NDArray[np.float64]:
        """Without a gate, which would hide what a control does."""
        blends = {name: Blend(base, shared.head, shared.pseudo_rows) for name, base in bases.items()}
        return _found(world, {name: blend.scores(ALPHA) for name, blend in blends.items()})

    own = _found(world, {name: base.scores() for name, base in bases.items()})
    for epsilon, model in models.items():
        told = "no information in it: own rows only"
        if model.moments is not None and model.informed:
            told = f"with the release, {model.moments.head.size} items in its head"
        yield _way(FEDERATED, Kind.PRIVATE, epsilon, _found(world, scores[epsilon]), own, told)
    last = next(reversed(models.values())).moments
    if last is not None and last.informative:
        nobody = data_free(last, np.random.default_rng(SEED + 2))
        yield _way(CONTROLS[0], Kind.NOTHING, 0.0, blended(nobody), own, "control: the same noise, nobody's data")
        # it keeps which items are in the head, and that was released
        yield _way(
            CONTROLS[1],
            Kind.PRIVATE,
            next(reversed(models)),
            blended(constant(last)),
            own,
            "control: the head, all items alike",
        )
    yield _way(INDIVIDUAL, Kind.NOTHING, 0.0, own, own, "each entity by its own rows")
    rows = sparse.csr_array(sparse.vstack(list(world.rows.values())))
    held = sparse.csr_array(sparse.vstack(list(world.held.values())))
    central = ranks(item_ridge(rows, RIDGE).scores(), rows, held).ndcg
    yield _way(CENTRAL, Kind.PLAIN, float("inf"), central, own, "all rows in one place")


def _found(world: _World, scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """NDCG of 20 items, user by user; NaN where nothing is held out."""
    return np.concatenate([ranks(found, world.rows[name], world.held[name]).ndcg for name, found in scores.items()])


def _way(
    method: str, kind: Kind, epsilon: float, found: NDArray[np.float64], own: NDArray[np.float64], remark: str
) -> Way:
    asked = np.isfinite(own)
    figures = {NDCG: Figure.of(mean(found[asked]))}
    if method != INDIVIDUAL:
        figures[GAIN] = Figure.of(difference(found[asked], own[asked]))
    return Way(method, kind, epsilon, figures, remark)
