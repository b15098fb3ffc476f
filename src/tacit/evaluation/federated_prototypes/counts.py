"""Counts that are made up, as in the paper's Section 5.3: how well rows are reconstructed from factors of prototypes.

Only reconstruction of what was trained with is measured, as published: it cannot show how well a model generalises.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import factored, kmeans, names, worlds
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.federated_prototypes.factored import How
from tacit.evaluation.federated_prototypes.measures import RMSE, Floats, Sampled, rmse
from tacit.evaluation.federated_prototypes.rows import Key, key_of
from tacit.evaluation.federated_prototypes.splits import table
from tacit.evaluation.result import Row, Setting
from tacit.evaluation.statistics import Estimate, mean
from tacit.guarantees import Guarantee
from tacit.mechanisms import GridPrototypes, ProfileBounds, Prototypes

USERS = {Effort.QUICK: 300, Effort.DEFAULT: 1000, Effort.FULL: 10000}  # of an entity
RANKS = {Effort.QUICK: (10,), Effort.DEFAULT: (10, 50), Effort.FULL: (10, 20, 50, 80)}
KS = {Effort.QUICK: (10, 50), Effort.DEFAULT: (10, 50, 150), Effort.FULL: (10, 50, 150, 300)}
EPSILONS = {
    Effort.QUICK: (0.01, 10.0),
    Effort.DEFAULT: (0.01, 1.0, 10.0, 50.0),
    Effort.FULL: (0.01, 0.1, 0.5, 1.0, 10.0, 50.0),
}
SAMPLE = 2000  # users whose rows are reconstructed
EPOCHS = 20
MOST, EACH = 20.0, 500  # bound of a count, items that count of a user
LOSS, AHEAD = "k-means loss", "RMSE less that of random factors"
JOINED = (1, 2, 5, 10)  # entities, for convergence
AFTER = (1, 2, 5, 10, 20)  # epochs


class Found(NamedTuple):
    rows: list[Row]
    guarantees: dict[str, Guarantee]
    influences: dict[Key, Floats]  # of each user of the sample on a figure


class Counts(NamedTuple):
    rows: sparse.csr_array
    parts: list[NDArray[np.int64]]  # users of each entity
    sample: NDArray[np.int64]

    @property
    def sampled(self) -> sparse.csr_array:
        return self.rows[self.sample]


def run(effort: Effort, *, seed: int) -> Found:
    ratings = worlds.counts(USERS[effort], rng=rng_of(seed, names.SYNTHETIC))
    codes = np.zeros(ratings.n_users, dtype=np.int64) if ratings.entities is None else ratings.entities.codes
    sample = np.sort(rng_of(seed, names.SYNTHETIC, "sample").permutation(ratings.n_users)[:SAMPLE])
    world = Counts(table(ratings), [np.flatnonzero(codes == one) for one in range(worlds.ENTITIES)], sample)
    found = Found([], {}, {})
    base: Setting = {"world": names.SYNTHETIC, "users": USERS[effort]}
    random = None
    for method, setting, errors in _reconstructed(world, effort, seed, found.guarantees):
        one = _root(errors)
        random = random or one  # random factors of the lowest rank come first
        row = Row.of(method, RMSE, one, **base, **setting)
        found.rows.extend([row, Row(method, {**base, **setting}, AHEAD, one.value - random.value)])
        if isinstance(one, Sampled):
            found.influences[key_of(row)] = one.influence
    found.rows.extend(_losses(world, effort, seed, base))
    found.rows.extend(_convergence(world, seed, base))
    return found


def _root(errors: Floats) -> Estimate:
    return rmse(np.sqrt(errors), np.arange(errors.size))


def _error(rows: sparse.csr_array, users: Floats, items: Floats) -> Floats:
    return np.asarray(((rows.toarray() - users @ items.T) ** 2).mean(axis=1))


def _reconstructed(
    world: Counts, effort: Effort, seed: int, promised: dict[str, Guarantee]
) -> Iterator[tuple[str, Setting, Floats]]:
    exact = {
        (method, k): _exact(world, method, k, seed) for k in KS[effort] for method in (names.K_MEANS, names.K_RANDOM)
    }
    private = {}
    for k in KS[effort]:
        for epsilon in EPSILONS[effort]:
            private[k, epsilon], promise = grid_of(world, USERS[effort], k, epsilon, seed)
            promised[f"{names.GRID}, {names.SYNTHETIC}, k={k}, epsilon={epsilon:g}"] = promise
    for rank in RANKS[effort]:
        how = How(rank, "sum", dense=True, epochs=EPOCHS)
        rng = rng_of(seed, names.SYNTHETIC, "factors", rank)
        sampled = world.sampled

        def shared(items: Floats, how: How = how, sampled: sparse.csr_array = sampled) -> Floats:
            return _error(sampled, how.users(sampled, items), items)

        yield names.RANDOM_V, {"rank": rank}, shared(rng.random((world.rows.shape[1], rank)))
        users, items = how.factors(world.rows, rng)
        yield names.CENTRAL, {"rank": rank}, _error(sampled, users[world.sample], items)
        yield names.INDIVIDUAL, {"rank": rank}, _own(world, how, rng)
        for (method, k), tables in exact.items():
            yield method, {"rank": rank, "k": k}, shared(factored.from_exact(tables, how, rng))
        for (k, epsilon), released in private.items():
            items = how.of_prototypes(released, by_size=True)
            yield names.GRID, {"rank": rank, "k": k, "epsilon": epsilon}, shared(items)


def _own(world: Counts, how: How, rng: np.random.Generator) -> Floats:
    found = np.full(world.rows.shape[0], np.nan)
    chosen = np.zeros(world.rows.shape[0], dtype=np.bool_)
    chosen[world.sample] = True
    for part in world.parts:
        users, items = how.factors(world.rows[part], rng)
        mine = chosen[part]
        found[part[mine]] = _error(world.rows[part[mine]], users[mine], items)
    return found[world.sample]


def _exact(world: Counts, method: str, k: int, seed: int) -> list[Floats]:
    form = factored.k_random if method == names.K_RANDOM else factored.zero_filled
    rng = rng_of(seed, names.SYNTHETIC, method, k)
    return [form(world.rows[part], k, rng) for part in world.parts]


def grid_of(world: Counts, users: int, k: int, epsilon: float, seed: int) -> tuple[list[Prototypes], Guarantee]:
    items = world.rows.shape[1]
    mechanism = GridPrototypes(
        ProfileBounds(items, min(EACH, items), MOST), k, epsilon, users, seed=factored.SERVER_SEED
    )
    released = [
        mechanism.release(world.rows[part], noise_of(seed, names.SYNTHETIC, k, epsilon, place)).value
        for place, part in enumerate(world.parts)
    ]
    return released, mechanism.guarantee


def _losses(world: Counts, effort: Effort, seed: int, base: Setting) -> Iterator[Row]:
    """The mean squared distance of the first entity's users to their nearest prototype (the paper's Figures 3 and 4)."""
    part = world.rows[world.parts[0]]
    for k in KS[effort]:
        of = kmeans.clusters(part, k, rng=rng_of(seed, names.SYNTHETIC, names.K_MEANS, k))
        yield Row.of(names.K_MEANS, LOSS, mean(distances(part, kmeans.means(part, of, k))), **base, k=k)
        for epsilon in EPSILONS[effort]:
            only = world._replace(parts=world.parts[:1])
            released, _ = grid_of(only, USERS[effort], k, epsilon, seed)
            yield Row.of(names.GRID, LOSS, mean(distances(part, released[0].filled())), **base, k=k, epsilon=epsilon)


def distances(rows: sparse.csr_array, centres: Floats) -> Floats:
    """Of every row to its nearest centre, squared."""
    norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    apart = norms[:, None] - 2.0 * (rows @ centres.T) + (centres**2).sum(axis=1)[None, :]
    return np.asarray(np.maximum(apart.min(axis=1), 0.0))


def _convergence(world: Counts, seed: int, base: Setting) -> Iterator[Row]:
    """Factors of the prototypes of some entities, after some epochs (Figure 5)."""
    tables = _exact(world, names.K_MEANS, 50, seed)
    sampled = world.sampled
    for joined in JOINED:
        for epochs in AFTER:
            how = How(10, "sum", dense=True, epochs=epochs)
            items = factored.from_exact(tables[:joined], how, rng_of(seed, names.SYNTHETIC, "convergence"))
            errors = _error(sampled, how.users(sampled, items), items)
            yield Row.of(names.K_MEANS, RMSE, _root(errors), **base, entities=joined, epochs=epochs)
