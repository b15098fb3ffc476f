"""The part of ``tacit demo`` that shows federated prototypes: users dealt out to entities, two runs under secure aggregation, and
what they are worth to the entities' own users, beside both controls."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from rich.console import Console
    from scipy import sparse

    from tacit.data import Ratings
    from tacit.entity import Entity
    from tacit.guarantees import Guarantee
    from tacit.messages.federated_prototypes_model import SharedModel

ENTITIES, EPSILONS = 16, (1.0, 4.0)
FEWEST_USERS = 10  # of an entity; with less data there are fewer entities
CELLS, KEPT = 5, 3  # held out of each user; what she trains with at least
RIDGE, ALPHA = 1.0, 0.1  # public constants for entities of tens of users, found on MovieLens 1M


class Way(NamedTuple):
    """Means over held-out users. An entity would not print them: they follow from its users' rows."""

    method: str
    epsilon: float
    recall: float
    ndcg: float
    gain: float  # in NDCG over the entity's own rows, user by user
    gain_error: float
    users: int
    remark: str


class Shown(NamedTuple):
    entities: int
    stages: tuple[str, ...]
    sent: dict[str, int]  # bytes of each entity in the last run
    statement: str
    guarantees: "list[Guarantee]"
    ways: list[Way]
    verdict: str


class _Figures(NamedTuple):
    """Of 20 items, user by user; NaN where nothing is held out."""

    recall: "NDArray[np.float64]"
    ndcg: "NDArray[np.float64]"


class _World(NamedTuple):
    rows: "dict[str, sparse.csr_array]"
    held: "dict[str, sparse.csr_array]"
    catalogue: list[Any]
    users: int  # the public order of magnitude of an entity's users


def show(ratings: "Ratings", console: "Console") -> Shown | None:
    """Two runs from end to end, each with its own ledgers, and how the entities' recommendations turn out. None for few users."""
    from rich.markup import escape

    from tacit.systems.federated_prototypes import federate

    world = _dealt_out(ratings)
    if world is None:
        return None
    models: dict[float, SharedModel] = {}
    scores: dict[float, dict[str, NDArray[np.float64]]] = {}
    guarantees = []
    with console.status("Entities and a coordinator talk ..."):
        for epsilon in EPSILONS:
            with federate(world.rows, world.catalogue, epsilon=epsilon, users=world.users) as run:
                if run.model is None:  # it ends with a model, or raises
                    return None
                models[epsilon], scores[epsilon] = run.model, _scored(run.entities)
                guarantees.append(run.guarantee)
                stages, sent = run.manifest.stages, run.sent
                fewest, honest = run.manifest.fewest, run.manifest.honest
                statement = str(next(iter(run.entities.values())).statement()).splitlines()[0]
        ways = list(_ways(world, models, scores))
    for what, text in (
        (
            "the entities",
            f"{len(world.rows)}, of about {world.users} users each, chosen at random; items are only marked",
        ),
        ("the stages", " > ".join((*stages, "model"))),
        ("the coordinator", f"sees two sums and no share of them; {fewest} must be left, {honest} of them honest"),
        ("an entity sends", f"{max(sent.values()):,} bytes; in its own ledger, {statement}"),
        ("the guarantee", str(guarantees[-1])),
    ):
        console.print(f"   [bold]{what:<20}[/bold] {escape(text)}", soft_wrap=True)
    return Shown(len(world.rows), stages, sent, statement, guarantees, ways, verdict(ways))


def verdict(ways: list[Way]) -> str:
    """What the table says, in words, whatever it says: two standard errors are asked for."""
    best = max((way for way in ways if way.method == "federated"), key=lambda way: way.gain)
    controls = [way.gain for way in ways if way.method in ("data-free", "constant")]
    if best.gain <= 2.0 * best.gain_error:
        return f"With {best.users:,} users in all, nothing is gained here that could be told from chance."
    if best.gain <= max(controls, default=0.0):
        return "What is gained here a control gains as well: the release told nothing."
    return (
        f"Entities gain at epsilon {best.epsilon:g}, and more than by either control, of which the second still knows which items "
        "are in the head. What counts is how many users there are for the noise: with few, a small epsilon gives nothing."
    )


def _dealt_out(ratings: "Ratings") -> _World | None:
    from scipy import sparse

    from tacit.data import leave_out_per_user

    count = min(ENTITIES, ratings.n_users // FEWEST_USERS)
    if count < 3:  # of two, each would know the other's sum
        return None
    rng = np.random.default_rng(12)
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


def _scored(entities: "Mapping[str, Entity]") -> "dict[str, NDArray[np.float64]]":
    """By each entity for itself, the gate included."""
    from tacit.entity import Tuning
    from tacit.entity.blend import BlendSettings

    rng, tuning = np.random.default_rng(13), Tuning(blend=BlendSettings(ridge=RIDGE, alpha=ALPHA))
    return {name: one.fit(tuning=tuning, rng=rng).scores() for name, one in entities.items()}


def _ways(
    world: _World, models: "dict[float, SharedModel]", scores: "dict[float, dict[str, NDArray[np.float64]]]"
) -> "Iterator[Way]":
    from scipy import sparse

    from tacit.models.item_ridge import Blend, item_ridge
    from tacit.models.moments import SharedMoments, constant, data_free

    bases = {name: item_ridge(rows, RIDGE) for name, rows in world.rows.items()}

    def blended(shared: SharedMoments) -> _Figures:
        """Without a gate, which would hide what a control does."""
        blends = {name: Blend(base, shared.head, shared.pseudo_rows) for name, base in bases.items()}
        return _found(world, {name: blend.scores(ALPHA) for name, blend in blends.items()})

    own = _found(world, {name: base.scores() for name, base in bases.items()})
    yield _way("individual", 0.0, own, own, "each entity by its own rows")
    for epsilon, model in models.items():
        told = "no information at this budget, says the release itself: all stay with their own rows"
        if model.moments is not None and model.informed:
            told = f"own rows and the release, {model.moments.head.size} items in its head; gated"
        yield _way("federated", epsilon, _found(world, scores[epsilon]), own, told)
    last = next(reversed(models.values())).moments
    if last is not None and last.informative:
        nobody = data_free(last, np.random.default_rng(14))
        yield _way("data-free", 0.0, blended(nobody), own, "control: the same noise, nobody's data")
        yield _way("constant", 0.0, blended(constant(last)), own, "control: all items alike")
    rows = sparse.csr_array(sparse.vstack(list(world.rows.values())))
    held = sparse.csr_array(sparse.vstack(list(world.held.values())))
    central = _measured(item_ridge(rows, RIDGE).scores(), rows, held)
    yield _way("not private", float("inf"), central, own, "all rows in one place")


def _found(world: _World, scores: "Mapping[str, NDArray[np.float64]]") -> _Figures:
    parts = [_measured(found, world.rows[name], world.held[name]) for name, found in scores.items()]
    return _Figures(*(np.concatenate(figures) for figures in zip(*parts, strict=True)))


def _measured(scores: "NDArray[np.float64]", rows: Any, held: Any) -> _Figures:
    from tacit.evaluation.federated_prototypes.measures import ranks

    found = ranks(scores, rows, held)
    return _Figures(found.recall, found.ndcg)


def _way(method: str, epsilon: float, found: _Figures, own: _Figures, remark: str) -> Way:
    from tacit.evaluation.statistics import mean

    asked = np.isfinite(own.ndcg)
    gain = mean((found.ndcg - own.ndcg)[asked])
    recall, ndcg = (float(values[asked].mean()) for values in found)
    return Way(method, epsilon, recall, ndcg, gain.value, gain.stderr, int(asked.sum()), remark)
