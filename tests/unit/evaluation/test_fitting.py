"""The model sees look-alikes only, and is tested on what it did not see."""

from functools import cached_property
from typing import Any

import numpy as np
import pytest

import tacit.curator.private_training
import tacit.curator.training
from tacit.data import synthetic
from tacit.evaluation.multi_selection.fitting import (
    Trained,
    error_rows,
    predicted,
    store_of,
    trained,
    trained_privately,
)
from tacit.evaluation.multi_selection.population import Population, population
from tacit.guarantees import ONE_USER, Release, approximate
from tacit.models.items import Classes, classes_of
from tests.releases import release_of
from tests.unit.server.small_store import random_network


@pytest.fixture(scope="module")
def people() -> Population:
    return population(
        synthetic(users=80, items=50, ratings_per_user=30, rng=np.random.default_rng(1)), rng=np.random.default_rng(2)
    )


class Constant:
    """Every rating is 3.7."""

    kind = "constant"

    def __init__(self, flags: np.ndarray) -> None:
        self.flags, self.dimension = flags, 2 * flags.shape[1]

    @cached_property
    def classes(self) -> Classes:
        return classes_of(self.flags)

    def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.full((len(features), len(items)), 3.7, dtype=np.float32)

    def tensors(self) -> dict[str, np.ndarray]:
        return {}


def test_training_sees_so_many_ratings_of_look_alikes_and_no_others(people: Population) -> None:
    fitted = trained(people, rows=200, rng=np.random.default_rng(3))
    assert len(fitted.rows) == 200
    assert set(people.ratings.users[fitted.rows]) <= set(people.look_alikes)
    assert np.allclose(fitted.store.look_alikes, people.features[people.look_alikes], atol=1e-6)
    assert fitted.store.model_guarantee.promises_nothing
    everything = people.rows_of(people.look_alikes)
    told: list[tuple[int, int]] = []
    whole = trained(people, "two-tower", rng=np.random.default_rng(3), progress=lambda *done: told.append(done))
    assert np.array_equal(whole.rows, everything)
    assert told[-1] == (10 * len(everything), 10 * len(everything))
    assert whole.store.scorer.kind == "two-tower/1"


def test_errors_are_those_of_each_rating(people: Population) -> None:
    some = people.rows_of(people.look_alikes)[:100]
    fitted = Trained(store_of(people, Constant(people.space.flags)), some)
    found = {
        (row.metric, row.setting["of"]): row for row in error_rows(people, fitted, "x", rng=np.random.default_rng(1))
    }
    for side, rows in (
        ("held-out users", people.rows_of(people.held_out)),
        ("other ratings", people.rows_of(people.look_alikes)[100:]),
    ):
        values = people.ratings.values[rows]
        assert found["test rmse", side].value == pytest.approx(np.sqrt(np.mean((values - 3.7) ** 2)), rel=1e-5)
        assert found["within half a star", side].value == pytest.approx(np.mean(np.abs(values - 3.5) <= 0.5))
        assert found["test rmse", side].n == len(rows)


def test_a_model_that_saw_all_of_them_is_tested_on_others_only(people: Population) -> None:
    fitted = Trained(store_of(people, Constant(people.space.flags)), people.rows_of(people.look_alikes))
    assert {row.setting["of"] for row in error_rows(people, fitted, "x", rng=np.random.default_rng(1))} == {
        "held-out users"
    }


def test_predictions_are_the_scorers(people: Population) -> None:
    scorer = random_network(people.space.flags)
    users, items = people.ratings.users[:300], people.ratings.items[:300]
    told = predicted(scorer, people.features, users, items)
    for place in (0, 17, 299):
        alone = scorer.score(people.features[users[place]][None], items[place : place + 1])[0, 0]
        assert told[place] == pytest.approx(alone, abs=1e-5)


def test_private_training_gets_the_look_alikes_and_its_guarantee_is_kept(
    people: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    promise = approximate(2.0, 1e-6, ONE_USER)
    seen: dict[str, Any] = {}

    def private(features: np.ndarray, flags: np.ndarray, rows: Any, **settings: Any) -> Release[object]:
        seen.update(features=features, rows=rows, **settings)
        return release_of(random_network(flags), promise)

    monkeypatch.setattr(tacit.curator.private_training, "train_privately", private)
    fitted = trained_privately(people, epsilon=2.0, delta=1e-6, rng=np.random.default_rng(1))
    assert fitted.store.model_guarantee == promise
    assert fitted.store.guarantee.promises_nothing  # the look-alikes themselves are real people
    assert np.array_equal(seen["features"], people.features[people.look_alikes])
    assert seen["rows"].n_users == len(people.look_alikes)
    first = people.look_alikes[0]
    mine = people.ratings.items[people.ratings.rows_of(first)]
    assert np.array_equal(seen["rows"].items[: seen["rows"].starts[1]], mine)
    assert (seen["epsilon"], seen["delta"]) == (2.0, 1e-6)
