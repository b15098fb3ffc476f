"""Trials with other look-alikes: the same users and signals for all, real ones as they are, public ones of nobody."""

from typing import Any

import numpy as np
import pytest

from tacit.curator import PrivateLookAlikes, genre_centre
from tacit.data import synthetic
from tacit.evaluation.effort import Effort
from tacit.evaluation.multi_selection import look_alikes
from tacit.evaluation.multi_selection.fitting import Trained, store_of
from tacit.evaluation.multi_selection.look_alikes import AGAINST, look_alike_rows, releases
from tacit.evaluation.multi_selection.plan import plan
from tacit.evaluation.multi_selection.population import Population, population
from tacit.evaluation.multi_selection.trials import bench, run
from tests.releases import changed
from tests.unit.evaluation.tiny_world import tiny_store, tiny_users
from tests.unit.server.small_store import random_network

TRIALS = 6


@pytest.fixture(scope="module")
def people() -> Population:
    world = synthetic(users=150, items=80, ratings_per_user=30, rng=np.random.default_rng(5))
    return population(world, rng=np.random.default_rng(2))


@pytest.fixture(scope="module")
def fitted(people: Population) -> Trained:
    scorer: Any = random_network(people.space.flags)
    return Trained(store_of(people, scorer), np.arange(0))


@pytest.fixture(scope="module")
def rows(people: Population, fitted: Trained) -> Any:
    return look_alike_rows(
        people, fitted, (0.5, 4.0), trials=TRIALS, seed=3, workers=1, progress=lambda what, done, total: None
    )


def test_every_kind_is_tried_at_the_same_settings(rows: Any) -> None:
    found, promised = rows
    cases: dict[Any, set[Any]] = {}
    for row in found:
        if row.metric in ("d_i", "d_f"):
            kind = (row.setting["look_alikes"], row.setting.get("epsilon"), row.setting.get("delta"))
            cases.setdefault(kind, set()).add((row.metric, row.method, row.setting.get("eta"), row.setting["k"]))
            assert row.n == TRIALS
    assert set(cases) == {("raw", None, None), ("public", None, None)} | {
        ("private", epsilon, delta) for epsilon in (0.5, 4.0) for delta in (0.0, 1e-6)
    }
    assert len({frozenset(one) for one in cases.values()}) == 1
    assert {eta for _, _, eta, _ in cases["raw", None, None]} == {0.05, 0.1, 0.2, None}
    against = [row for row in found if AGAINST in row.metric]
    assert {row.setting["epsilon"] for row in against} == {0.5, 4.0}
    assert {name: (one.epsilon, one.delta) for name, one in promised.items()} == {
        f"look-alikes, {how}, epsilon={epsilon:g}": (epsilon, delta)
        for how, delta in (("tree", 1e-6), ("grid", 0.0))
        for epsilon in (0.5, 4.0)
    }


def test_raw_figures_are_those_of_the_store_itself(people: Population, fitted: Trained, rows: Any) -> None:
    at = bench(fitted.store, people.features[people.held_out], TRIALS, seed=3)
    plain = run(at, look_alikes._tasks(TRIALS), 0, TRIALS)
    for case, values in plain.items():
        row = next(
            row for row in rows[0]
            if row.metric == case.measure and row.method == case.method
            and row.setting == {**case.setting(), "look_alikes": "raw"}
        )  # fmt: skip
        assert row.value == pytest.approx(float(values.mean()))


def test_releases_are_private_prototypes_and_equal_for_equal_seeds(people: Population) -> None:
    wish = PrivateLookAlikes(epsilon=50.0, count=200)
    first, again, other = (list(releases(people, wish, seed)) for seed in (1, 1, 2))
    assert len(first) == look_alikes.RELEASES
    assert all((one.rows == two.rows).all() for one, two in zip(first, again, strict=True))
    assert any(
        one.rows.shape != two.rows.shape or (one.rows != two.rows).any() for one, two in zip(first, other, strict=True)
    )
    real = {tuple(row) for row in people.features[people.look_alikes].astype(np.float32).tolist()}
    for one in first:
        assert not real & {tuple(row) for row in one.rows.tolist()}
        assert one.guarantee.promises_nothing  # the noise of trials is replayed
    sums = [one.sizes.sum() for one in first]
    assert len(set(sums)) == len(sums)


def test_a_store_with_released_look_alikes_weighs_them(people: Population, fitted: Trained) -> None:
    made = PrivateLookAlikes(epsilon=1.0, count=50).around(genre_centre(people.space), people.space)
    store = fitted.store.with_look_alikes(made)
    assert store.look_alike_sizes is not None
    assert len(store.look_alikes) == 50
    assert store.look_alikes_guarantee.epsilon == 0.0


def test_sizes_reach_the_trials() -> None:
    """All weight on one look-alike, or on another: other slates, other losses."""
    sized = [np.where(np.arange(60) == one, 1e6, 1e-6) for one in (7, 31)]
    task = look_alikes._tasks(6)[:1]
    one, other = (
        run(bench(changed(tiny_store(), look_alike_sizes=sizes), tiny_users(6), 6, seed=1), task, 0, 6)
        for sizes in sized
    )
    assert any((one[case] != other[case]).any() for case in one)


def test_default_and_full_runs_try_them() -> None:
    assert plan(Effort.DEFAULT).look_alike_epsilons == plan(Effort.FULL).look_alike_epsilons == (0.5, 1.0, 2.0, 4.0)
    assert plan(Effort.QUICK).look_alike_epsilons == ()
