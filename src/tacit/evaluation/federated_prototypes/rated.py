"""MovieLens ratings in the paper's split: errors and ranks of factor models, with exact and with private prototypes."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tacit.data import Ratings
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import factored, names
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.federated_prototypes.factored import How, Tested
from tacit.evaluation.federated_prototypes.measures import Floats, Sampled
from tacit.evaluation.federated_prototypes.rows import Key, key_of
from tacit.evaluation.federated_prototypes.splits import Held, paper_split
from tacit.evaluation.result import Row, Setting
from tacit.evaluation.statistics import Estimate
from tacit.guarantees import Guarantee
from tacit.mechanisms import GridPrototypes, ProfileBounds, Prototypes, TreePrototypes

K = 50
STARS = (1.0, 5.0)
USERS = 500  # the public order of magnitude of an entity's users
RADIUS = 30.0  # of a row, for the tree
RANKS = {Effort.QUICK: (10,), Effort.DEFAULT: (10, 30, 50), Effort.FULL: (10, 30, 50)}
REGULARISERS = ("sum", "weighted")
GRID_EPSILONS = {
    Effort.QUICK: (1.0,),
    Effort.DEFAULT: (0.1, 1.0, 10.0),
    Effort.FULL: (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
}
FEW, MANY = 50, 165  # items that count of each user
TREE_EPSILONS = {Effort.QUICK: (1.0,), Effort.DEFAULT: (0.1, 1.0, 10.0), Effort.FULL: (0.01, 0.1, 1.0, 10.0)}
TREE_KS = (50, 5)
PAPER_EPSILON = 0.1  # of the paper's figures
IMPLICIT = "zero-filled"
_DENSE_EPOCHS = 30
_SIZED = {names.GRID: names.GRID_SIZED, names.TREE: names.TREE_SIZED}


class Found(NamedTuple):
    rows: list[Row]
    guarantees: dict[str, Guarantee]
    influences: dict[Key, Floats]  # of each tested user on a figure


def rated(ratings: Ratings, piece: str, effort: Effort, *, seed: int) -> Found:
    """The methods of one of `PIECES`, all in the same split."""
    held = paper_split(ratings, rng=rng_of(seed, "paper split", ratings.name))
    tested = Tested.of(held, *STARS)
    found = Found([], {}, {})
    for method, setting, figures, guarantee in PIECES[piece](held, tested, effort, seed):
        for metric, one in figures.items():
            row = Row.of(method, metric, one, world=names.ZIP1, **setting)
            found.rows.append(row)
            if isinstance(one, Sampled):
                found.influences[key_of(row)] = one.influence
        if guarantee is not None:
            kept = ("epsilon", "k", "items each")
            told = ", ".join(f"{name}={value}" for name, value in setting.items() if name in kept)
            found.guarantees[f"{method}, {names.ZIP1}, {told}"] = guarantee
    return found


One = tuple[str, Setting, dict[str, Estimate], Guarantee | None]


def _simple(held: Held, tested: Tested, effort: Effort, seed: int) -> Iterator[One]:
    """No factors: the user's mean, item means with a bias for each user, and what is most rated."""
    shape = tested.rows.shape
    none: Setting = {"split": "paper", "epsilon": names.INF}
    whole = float(held.train.data.mean())
    yield names.GLOBAL_MEAN, none, _errors(tested.judged(np.full(shape, whole))), None
    yield names.USER_MEAN, none, tested.judged(np.tile(tested.means[:, None], shape[1])), None
    counts = np.bincount(held.train.indices, minlength=held.items).astype(np.float64)
    sums = np.bincount(held.train.indices, weights=held.train.data - whole, minlength=held.items)
    means = whole + sums / (counts + 1.0)
    yield names.ITEM_MEANS, none, tested.judged(biased(tested.rows, np.tile(means, (shape[0], 1)))), None
    yield names.POPULARITY, none, _ranks(tested.judged(np.tile(counts, (shape[0], 1)))), None


def biased(rows: sparse.csr_array, means: Floats, *, shrink: float = 5.0) -> Floats:
    """Item means (users x items) moved by each user's bias: the sum of her residuals over their number and ``shrink``."""
    users = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    residual = np.bincount(users, weights=rows.data - means[users, rows.indices], minlength=rows.shape[0])
    return np.asarray(means + (residual / (np.diff(rows.indptr) + shrink))[:, None])


def _exact(held: Held, tested: Tested, how: How, seed: int, k: int) -> Iterator[One]:
    """Without privacy: all rows, each entity's rows, exact centres, and users as they are."""
    setting: Setting = {"rank": how.rank, "regulariser": IMPLICIT if how.dense else how.regulariser}
    told = _ranks if how.dense else dict
    rng = rng_of(seed, "factors", how.rank, how.regulariser, how.dense)
    yield names.CENTRAL, setting, told(factored.central(held, tested, how, rng)), None
    yield names.INDIVIDUAL, setting, told(factored.individual(held, tested, how, rng)), None
    forms = {
        names.K_MEANS: factored.zero_filled,
        names.K_RATERS: factored.over_raters,
        names.K_RANDOM: factored.k_random,
    }
    for method, form in forms.items():
        if how.dense and method == names.K_RATERS:
            continue  # it has no zeros to count
        tables = factored.exact_prototypes(held, k, form, rng_of(seed, "prototypes", method))
        items = factored.from_exact(tables, how, rng)
        yield method, setting, told(factored.shared(tested, how, items)), None


def _sums(held: Held, tested: Tested, effort: Effort, seed: int) -> Iterator[One]:
    for rank in RANKS[effort]:
        yield from _exact(held, tested, How(rank, "sum"), seed, K)


def _weighted(held: Held, tested: Tested, effort: Effort, seed: int) -> Iterator[One]:
    for rank in RANKS[effort]:
        yield from _exact(held, tested, How(rank, "weighted"), seed, K)


def _implicit(held: Held, tested: Tested, effort: Effort, seed: int) -> Iterator[One]:
    """Missing cells as zeros: who rated what, which is what ranks are about."""
    if effort is not Effort.QUICK:
        yield from _exact(held, tested, How(10, dense=True, epochs=_DENSE_EPOCHS), seed, K)


def grid_of(held: Held, items_each: int, epsilon: float, seed: int) -> tuple[list[Prototypes], Guarantee]:
    bounds = ProfileBounds(held.items, items_each, STARS[1])
    mechanism = GridPrototypes(bounds, K, epsilon, USERS, seed=factored.SERVER_SEED)
    return [
        mechanism.release(held.train[held.members(entity)], noise_of(seed, "grid", items_each, epsilon, entity)).value
        for entity in range(held.count)
    ], mechanism.guarantee


def _grid(held: Held, tested: Tested, effort: Effort, seed: int) -> Iterator[One]:
    for epsilon, each in _grid_settings(effort):
        released, guarantee = grid_of(held, each, epsilon, seed)
        for rank in RANKS[effort] if (epsilon, each) == (PAPER_EPSILON, MANY) else (10,):
            setting: Setting = {"epsilon": epsilon, "k": K, "items each": each}
            yield from _of(names.GRID, tested, released, guarantee, rank, setting)
    epsilon, each = 1.0, FEW
    mechanism = GridPrototypes(ProfileBounds(held.items, each, STARS[1]), K, epsilon, USERS, seed=factored.SERVER_SEED)
    nobody = sparse.csr_array((0, held.items))
    empty = [mechanism.release(nobody, noise_of(seed, "grid of nobody", entity)).value for entity in range(held.count)]
    yield from _of(names.NO_DATA, tested, empty, None, 10, {"epsilon": epsilon, "k": K, "items each": each}, "grid")
    how = How(10)
    yield names.CONSTANT, {"rank": 1}, factored.shared(tested, how, np.ones((held.items, 1))), None
    random = rng_of(seed, "random factors").random((held.items, 10))
    yield names.RANDOM_V, {"rank": 10}, factored.shared(tested, how, random), None


def _grid_settings(effort: Effort) -> Iterator[tuple[float, int]]:
    """Many items of each user take long to draw: by default at the paper's epsilon only."""
    for epsilon in GRID_EPSILONS[effort]:
        yield epsilon, FEW
        if effort is Effort.FULL or (effort is Effort.DEFAULT and epsilon == PAPER_EPSILON):
            yield epsilon, MANY


def _tree(held: Held, tested: Tested, effort: Effort, seed: int) -> Iterator[One]:
    bounds = ProfileBounds(held.items, held.items, STARS[1], l2_bound=RADIUS)
    nobody = sparse.csr_array((0, held.items))
    for epsilon in TREE_EPSILONS[effort]:
        for k in TREE_KS:
            mechanism = TreePrototypes(bounds, k, epsilon, names.DELTA, seed=factored.SERVER_SEED)
            released = [
                mechanism.release(held.train[held.members(entity)], noise_of(seed, "tree", k, epsilon, entity)).value
                for entity in range(held.count)
            ]
            yield from _of(names.TREE, tested, released, mechanism.guarantee, 10, {"epsilon": epsilon, "k": k})
            if k == TREE_KS[0]:
                empty = [
                    mechanism.release(nobody, noise_of(seed, "tree of nobody", epsilon, entity)).value
                    for entity in range(held.count)
                ]
                yield from _of(names.NO_DATA, tested, empty, None, 10, {"epsilon": epsilon, "k": k}, "tree")


def _of(
    method: str, tested: Tested, released: list[Prototypes], guarantee: Guarantee | None, rank: int, setting: Setting,
    of: str | None = None,
) -> Iterator[One]:  # fmt: skip
    """Private prototypes as ratings, numbers that are 0 or were not released being unknown; and as marks, where they are zeros."""
    how = How(rank)
    more: Setting = {**setting, **({"mechanism": of} if of else {}), "rank": rank}
    yield method, more, factored.shared(tested, how, how.of_prototypes(released, by_size=False)), guarantee
    if rank == 10 and of is None:
        yield _SIZED[method], more, factored.shared(tested, how, how.of_prototypes(released, by_size=True)), guarantee
    if rank == 10 and method == names.GRID:
        dense = How(rank, dense=True, epochs=_DENSE_EPOCHS)
        ranks = _ranks(factored.shared(tested, dense, dense.of_prototypes(released, by_size=False)))
        yield method, {**more, "regulariser": IMPLICIT}, ranks, guarantee


def _ranks(figures: dict[str, Estimate]) -> dict[str, Estimate]:
    return {metric: one for metric, one in figures.items() if "RMSE" not in metric}


def _errors(figures: dict[str, Estimate]) -> dict[str, Estimate]:
    return {metric: one for metric, one in figures.items() if "RMSE" in metric}


PIECES: dict[str, Callable[[Held, Tested, Effort, int], Iterator[One]]] = {
    "sum": _sums,
    "weighted": _weighted,
    "grid": _grid,
    "zeros": _implicit,
    "tree": _tree,
    "simple": _simple,
}
