"""A world where prototypes work: many users in few groups, few items. Contributors release, small receivers only receive."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import factored, kmeans, names
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.federated_prototypes.factored import How
from tacit.evaluation.federated_prototypes.measures import RMSE, Floats, Items, rmse
from tacit.evaluation.federated_prototypes.worlds import BOUND, PLANTED_ITEMS, PLANTED_RANK, Planted, planted
from tacit.evaluation.result import Row, Setting
from tacit.evaluation.statistics import Estimate
from tacit.guarantees import Guarantee
from tacit.mechanisms import GaussianKernel, GridPrototypes, ProfileBounds, TreePrototypes

USERS = {Effort.QUICK: (2000,), Effort.DEFAULT: (20000,), Effort.FULL: (20000, 2000)}
EPSILONS = {
    Effort.QUICK: (1.0, 10.0),
    Effort.DEFAULT: (0.1, 0.5, 1.0, 4.0, 10.0),
    Effort.FULL: (0.01, 0.1, 0.5, 1.0, 4.0, 10.0),
}
K = 20
RIDGE = 0.5
HOW = How(PLANTED_RANK, "sum", ridge=RIDGE)
_DENSE = How(PLANTED_RANK, "sum", ridge=RIDGE, dense=True)
_QUANTILE = 0.95
_EDGE = 2.0  # eigenvalues of pure noise end at so many deviations times the root of the number of items


class Found(NamedTuple):
    rows: list[Row]
    guarantees: dict[str, Guarantee]
    errors: dict[tuple[int, str, float | str], tuple[Floats, Items]]  # held-out errors and whose they are


def run(effort: Effort, *, seed: int) -> Found:
    found = Found([], {}, {})
    for users in USERS[effort]:
        world = planted(users, rng=rng_of(seed, names.PLANTED, users))
        for method, epsilon, errors, guarantee in _all(world, users, effort, seed):
            found.errors[users, method, epsilon] = errors
            setting: Setting = {"world": names.PLANTED, "users": users, "epsilon": epsilon}
            found.rows.append(Row.of(method, RMSE, rmse(*errors), **setting))
            if guarantee is not None:
                found.guarantees[f"{method}, {names.PLANTED}, users={users}, epsilon={epsilon:g}"] = guarantee
    return found


One = tuple[str, float | str, tuple[Floats, Items], Guarantee | None]


def _all(world: Planted, users: int, effort: Effort, seed: int) -> Iterator[One]:
    rng = rng_of(seed, names.PLANTED, "factors", users)
    yield (
        names.INDIVIDUAL,
        names.INF,
        _errors(world, [_own(world, place, rng) for place in range(len(world.receivers))]),
        None,
    )
    yield names.CONSTANT, names.INF, _by_factors(world, np.ones((PLANTED_ITEMS, 1))), None
    yield names.RANDOM_V, names.INF, _by_factors(world, rng.random((PLANTED_ITEMS, PLANTED_RANK))), None
    exact = [_centres(sparse.csr_array(rows), rng) for rows in world.contributors]
    yield names.K_MEANS, names.INF, _by_factors(world, _DENSE.factors(sparse.csr_array(np.vstack(exact)), rng)[1]), None
    some = np.vstack([rows[:4000] for rows in world.contributors])  # more rows do not change the factors
    yield names.CENTRAL, names.INF, _by_factors(world, _DENSE.factors(sparse.csr_array(some), rng)[1]), None
    box = ProfileBounds(PLANTED_ITEMS, PLANTED_ITEMS, BOUND)
    clipped = _clipped(world.contributors[0])
    for epsilon in EPSILONS[effort]:
        for method, bounds in ((names.GRID, box), (names.GRID_CLIPPED, clipped)):
            grid = GridPrototypes(bounds, K, epsilon, users, seed=factored.SERVER_SEED)
            released = [
                grid.release(rows, noise_of(seed, method, users, epsilon, place)).value
                for place, rows in enumerate(world.contributors)
            ]
            yield method, epsilon, _by_factors(world, _DENSE.of_prototypes(released, by_size=True)), grid.guarantee
        tree = TreePrototypes(clipped, K, epsilon, names.DELTA, seed=factored.SERVER_SEED)
        released = [
            tree.release(rows, noise_of(seed, names.TREE, users, epsilon, place)).value
            for place, rows in enumerate(world.contributors)
        ]
        yield names.TREE, epsilon, _by_factors(world, _DENSE.of_prototypes(released, by_size=True)), tree.guarantee
        kernel = GaussianKernel(PLANTED_ITEMS, epsilon, names.DELTA, bound=clipped.l2**2)
        total = sum(
            kernel.release(
                sparse.csr_array(rows), noise_of(seed, names.COVARIANCE, users, epsilon, place)
            ).value.to_floats()
            for place, rows in enumerate(world.contributors)
        )
        items = subspace(np.asarray(total), kernel.noise_laws[1].sd * np.sqrt(len(world.contributors)))
        signed = [_signed(world, place, items) for place in range(len(world.receivers))]
        yield names.COVARIANCE, epsilon, _errors(world, signed), kernel.guarantee


def _clipped(rows: Floats) -> ProfileBounds:
    """Norms at the 95 % quantile of one entity's data, TREATED as public, which favours the clipped lines."""
    sums, lengths = rows.sum(axis=1), np.sqrt((rows**2).sum(axis=1))
    return ProfileBounds(
        PLANTED_ITEMS, PLANTED_ITEMS, BOUND, float(np.quantile(sums, _QUANTILE)), float(np.quantile(lengths, _QUANTILE))
    )


def subspace(gram: Floats, sd: float) -> Floats:
    """Eigenvectors times sqrt(items), at most 8: those whose eigenvalue is above the edge of the noise, but one at least."""
    values, vectors = np.linalg.eigh(gram)
    order = np.argsort(-values)[:PLANTED_RANK]
    kept = order[values[order] > _EDGE * sd * np.sqrt(len(gram))]
    return np.asarray(vectors[:, kept if kept.size else order[:1]] * np.sqrt(len(gram)))


def _centres(rows: sparse.csr_array, rng: np.random.Generator) -> Floats:
    return kmeans.means(rows, kmeans.clusters(rows, K, rng=rng, steps=15), K)


def _cells(world: Planted, place: int) -> sparse.csr_array:
    """What a receiver may train with; a count of 0 that is seen is known to be 0."""
    users, items = np.nonzero(world.seen[place])
    rows = world.receivers[place]
    return sparse.csr_array((rows[users, items], (users, items)), shape=rows.shape)


def _own(world: Planted, place: int, rng: np.random.Generator) -> Floats:
    users, items = HOW.factors(_cells(world, place), rng)
    return users @ items.T


def _by_factors(world: Planted, items: Floats) -> tuple[Floats, Items]:
    return _errors(world, [HOW.users(_cells(world, place), items) @ items.T for place in range(len(world.receivers))])


def _signed(world: Planted, place: int, items: Floats) -> Floats:
    """Plain ridge regression of each user's seen cells on signed factors."""
    seen, rows = world.seen[place], world.receivers[place]
    found = np.empty_like(rows)
    for user in range(len(rows)):
        mine = items[seen[user]]
        gram = mine.T @ mine + RIDGE * np.eye(items.shape[1])
        found[user] = items @ np.linalg.solve(gram, mine.T @ rows[user][seen[user]])
    return found


def _errors(world: Planted, predicted: Sequence[Floats]) -> tuple[Floats, Items]:
    errors, users = [], []
    for place, (rows, seen, guess) in enumerate(zip(world.receivers, world.seen, predicted, strict=True)):
        who, _ = np.nonzero(~seen)
        errors.append((np.clip(guess, 0.0, BOUND) - rows)[~seen])
        users.append(place * len(rows) + who)
    return np.concatenate(errors), np.concatenate(users)


def estimate(found: Found, users: int, method: str, epsilon: float | str) -> Estimate:
    return rmse(*found.errors[users, method, epsilon])
