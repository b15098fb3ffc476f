"""Multi-selection: a server's whole answer against cached numpy with the same tables, step by step, on one thread.

The baseline is what one would write in numpy once the model's scores are cached: scan in float64, `choice`, dense greedy, singular
values. It comes twice: on classes of items, as our tables have them, and on all 17,000 items, as one would write it first.
"""

from collections.abc import Callable
from itertools import cycle

import numpy as np

from benchmarks.timing import Row, compare
from tacit.models import loops
from tacit.models.items import Classes
from tacit.models.multi_selection import principal_components
from tacit.models.scorers import RatingNetwork, TwoTower, class_scores, shapes
from tacit.models.scorers import two_tower_shapes as tower_shapes
from tacit.models.tables import Tables, build_tables
from tacit.server.multi_selection import Algorithm, AnswerSettings, Guess, LocalModel, choose_slate, fit_local_model

_ITEMS, _CLASSES, GENRES = 17_000, 1_015, 19  # as in MovieLens 25M
_K, _DRAWS, _MODEL_DRAWS, _R, _COMPONENTS, _ETA = 5, 25, 1_000, 100, 20, 0.1
_TARGETS = {3_402: 15.0, 160_000: 6.0}


def run() -> list[Row]:
    rng = np.random.default_rng(2024)
    flags = flags_of(rng)
    rows = [*_eigensolver(rng), *_scoring(flags, rng)]
    for look_alikes, target in _TARGETS.items():
        rows += _answers(flags, look_alikes, target, rng)
    return rows


def _answers(flags: np.ndarray, count: int, target: float, rng: np.random.Generator) -> list[Row]:
    scorer = TwoTower(tastes(), flags)  # quick to tabulate; an answer reads nothing but tables
    features = np.concatenate([rng.dirichlet(np.full(GENRES, 0.6), count) for _ in range(2)], axis=1)
    tables = build_tables(scorer, features, r=_R)
    signals = [features[place] + rng.laplace(scale=_ETA, size=2 * GENRES) for place in rng.integers(count, size=16)]

    def answered(algorithm: Algorithm, model: LocalModel) -> Callable[[], object]:
        settings, turn = AnswerSettings(algorithm, model), cycle(signals)

        def answer() -> object:
            guess = Guess(settings, scorer, tables, next(turn), _ETA, loops.choose(), rng)
            items = choose_slate(guess, _K, 1)
            return items, fit_local_model(guess, items)

        return answer

    def selected(algorithm: Algorithm) -> Callable[[], object]:
        settings, turn = AnswerSettings(algorithm), cycle(signals)
        return lambda: choose_slate(Guess(settings, scorer, tables, next(turn), _ETA, loops.choose(), rng), _K, 1)

    published = answered(Algorithm.SAT_REALUSER, LocalModel.PCA)
    ours = answered(Algorithm.EXACT, LocalModel.RIDGE)
    by_class, by_item = (_cached_numpy(tables, scorer.classes, signals, rng, items=items) for items in (False, True))
    single, double = tables.features, tables.features.astype(np.float64)
    signal = signals[0]
    arithmetic = 2.0 * len(scorer.classes) * count
    listed = np.diff(tables.starts).mean()
    where = f"k={_K}, q1={_DRAWS}, q2={_MODEL_DRAWS}, {_ITEMS:,} items, {len(scorer.classes):,} classes, lists of {listed:.0f}"
    return [
        compare(f"answer-{count}", "cached numpy, on items", published, by_item, target=target,
                note=f"sat-realuser + PCA, {where}"),
        compare(f"answer-{count}", "cached numpy, on classes", published, by_class, target=None,
                note=f"the same against a stronger baseline, {where}"),
        compare(f"scan-{count}", "numpy in float64", lambda: loops.choose().l1_distances(signal.astype(np.float32), single),
                lambda: np.abs(double - signal).sum(axis=1), target=6, note="L1 distances to all look-alikes"),
        compare(f"exact-slate-{count}", "our sat-realuser slate", selected(Algorithm.EXACT), selected(Algorithm.SAT_REALUSER),
                target=None, note="the slate alone"),
        compare(f"exact-answer-{count}", "our sat-realuser + PCA", ours, published, target=1 / 3,
                note="exact + ridge against the published method, both ours: within 3 times"),
        Row(name=f"tables-{count}", peer="2 bytes for each class and look-alike", ours=tables.bytes, theirs=arithmetic,
            ratio=arithmetic / tables.bytes, target=1 / 1.2, note="bytes; within 1.2 times"),
    ]  # fmt: skip


def _cached_numpy(
    tables: Tables, classes: Classes, signals: list[np.ndarray], rng: np.random.Generator, *, items: bool
) -> Callable[[], object]:
    """sat-realuser + PCA in plain numpy on tables that are already there."""
    features = tables.features.astype(np.float64)
    utilities = tables.utilities  # the same table of all classes
    place = tables.column_of[classes.of] if items else tables.column_of
    turn = cycle(signals)

    def answer() -> object:
        signal = next(turn)
        distances = np.abs(features - signal).sum(axis=1)
        weights = np.exp(-(distances - distances.min()) / _ETA)
        weights /= weights.sum()
        rows = rng.choice(len(features), _DRAWS, p=weights)
        full = utilities[rows][:, place] * float(tables.scale)
        if items:  # cut to the r best items of each draw
            cut = -np.partition(-full, _R - 1, axis=1)[:, _R - 1 : _R]
            seen = np.where(full >= cut, full, 0.0)
        else:  # the cached lists say which classes are among them
            seen = np.zeros_like(full)
            for draw, row in enumerate(rows):
                top = tables.listed[tables.starts[row] : tables.starts[row + 1]]
                seen[draw, top] = full[draw, top]
        best = np.zeros(_DRAWS)
        chosen: list[int] = []
        for _ in range(_K):
            gain = np.maximum(seen - best[:, None], 0.0).sum(axis=0)
            gain[chosen] = -1.0
            chosen.append(int(np.argmax(gain)))
            best = np.maximum(best, seen[:, chosen[-1]])
        rows = rng.choice(len(features), _MODEL_DRAWS, p=weights)
        matrix = np.concatenate(
            [np.ones((_MODEL_DRAWS, 1)), features[rows], utilities[rows][:, place[chosen]] * float(tables.scale)],
            axis=1,
        )
        return chosen, np.linalg.svd(matrix, full_matrices=False)[2][:_COMPONENTS].T

    return answer


def _eigensolver(rng: np.random.Generator) -> list[Row]:
    matrix = rng.random((_MODEL_DRAWS, 1 + 2 * GENRES + _K))
    return [
        compare(
            "components",
            "numpy's singular values",
            lambda: principal_components(matrix.T @ matrix, _K, _COMPONENTS),
            lambda: np.linalg.svd(matrix, full_matrices=False)[2][:_COMPONENTS].T,
            target=3,
            note="principal components of 1,000 rows of 44, Gram matrix included",
        )
    ]


def _scoring(flags: np.ndarray, rng: np.random.Generator) -> list[Row]:
    network = RatingNetwork(_random(shapes(GENRES), rng), flags)
    user = rng.dirichlet(np.ones(2 * GENRES), 1)
    inputs = flags.astype(np.float32)

    def by_item() -> object:
        """Every item through the network, as it is written: no classes, no shares of the first layer."""
        repeated = np.repeat(user.astype(np.float32), _ITEMS, axis=0)
        parts = [repeated[:, :GENRES], repeated[:, GENRES:], inputs]
        towers = [network._tower(name, part) for name, part in zip(("liked", "disliked", "item"), parts, strict=True)]
        joined = np.concatenate(towers, axis=1) @ network.weights["trunk.0.weight"] + network.weights["trunk.0.bias"]
        return network._trunk(joined)

    return [
        compare("classes", "all items one by one", lambda: class_scores(network, user), by_item, target=10,
                note=f"the rating network for one user: {_CLASSES:,} classes against {_ITEMS:,} items"),
    ]  # fmt: skip


def flags_of(rng: np.random.Generator) -> np.ndarray:
    """17,000 items with 1,015 different sets of genres, a few of them common: the 100 best items then are about 30 classes."""
    sets = np.unique(rng.random((6_000, GENRES)) < 0.13, axis=0)
    sets = sets[rng.permutation(len(sets))[:_CLASSES]]
    common = np.minimum((rng.pareto(2.4, _ITEMS) * 3).astype(int), _CLASSES - 1)
    common[:_CLASSES] = np.arange(_CLASSES)
    return np.asarray(sets[common])


def tastes() -> dict[str, np.ndarray]:
    """Fixed, so that the lists are as long as those of a network trained on MovieLens: 25 to 30 classes on average."""
    weights = _random(tower_shapes(GENRES), np.random.default_rng(1))
    weights["user.0.weight"] *= 4.0  # people differ: about 500 classes are among somebody's best
    weights["item.1.weight"] *= 0.5
    return weights


def _random(named: dict[str, tuple[int, ...]], rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        name: rng.normal(scale=1.0 / np.sqrt(shape[0]), size=shape).astype(np.float32) for name, shape in named.items()
    }
