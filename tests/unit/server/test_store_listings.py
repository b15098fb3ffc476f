"""A store as something to offer from: what is best on average, and its model flattened to one row for each item."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter, NoLookAlikes, UnknownName
from tacit.server import Population, listings
from tacit.server.listings import best_items, quality_map
from tests.releases import changed
from tests.unit.server.small_store import random_features, small_store

STORE = small_store()
IDS = STORE.items.ids.tolist()


def test_a_quality_map_is_close_to_the_models_own_scores() -> None:
    wanted = IDS[:12]
    found = quality_map(STORE, wanted)
    scores = STORE.scorer.score(STORE.look_alikes, np.arange(12)).astype(np.float64)
    estimates = np.array([found.estimate(person) for person in STORE.look_alikes])
    assert estimates.mean(axis=0) == pytest.approx(scores.mean(axis=0), rel=1e-3)
    left = ((estimates - scores) ** 2).sum() / ((scores - scores.mean(axis=0)) ** 2).sum()
    assert left < 0.2  # of what differs between people a map explains most
    others = random_features(200, seed=12)
    expected = STORE.scorer.score(others.astype(np.float32), np.arange(12))
    guessed = np.array([found.estimate(one) for one in others])
    left = ((guessed - expected) ** 2).sum() / ((expected - scores.mean(axis=0)) ** 2).sum()
    assert left < 0.5  # also for people it was not fitted to


def test_its_rows_are_in_the_order_that_is_asked_for() -> None:
    one, other = quality_map(STORE, IDS[:5]), quality_map(STORE, IDS[4::-1])
    assert one.matrix == pytest.approx(other.matrix[::-1], abs=1e-9)
    assert one.matrix.shape == (5, 1 + STORE.space.dimension)


def test_the_best_items_are_best_on_average_and_of_those_alike_there_is_one() -> None:
    means = STORE.scorer.score(STORE.look_alikes, np.arange(60)).mean(axis=0)
    best = best_items(STORE, 60)
    classes = STORE.scorer.classes
    assert len(best) == len(classes) < 60
    values = [float(means[IDS.index(item)]) for item in best]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(float(means.max()))
    flags = {STORE.space.flags[IDS.index(item)].tobytes() for item in best}  # type: ignore[attr-defined]
    assert len(flags) == len(best)
    assert best_items(STORE, 3) == best[:3]


def test_of_very_many_people_some_are_asked_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "_PEOPLE", 20)
    people = listings._sample_people(STORE)
    assert np.array_equal(people, STORE.look_alikes[::4])


def test_a_store_without_people_knows_nothing_of_this() -> None:
    empty = small_store(look_alikes=0)
    for work in (lambda: best_items(empty, 3), lambda: quality_map(empty, IDS[:3])):
        with pytest.raises(NoLookAlikes):
            work()
    with pytest.raises(UnknownName):
        quality_map(STORE, [101])


def test_people_with_sizes_count_by_them() -> None:
    sizes = np.where(np.arange(80) < 40, 1.0, 1e-6).astype(np.float32)
    weighed = changed(STORE, look_alike_sizes=sizes)
    half = changed(STORE, look_alikes=STORE.look_alikes[:40])
    assert quality_map(weighed, IDS[:5]).matrix == pytest.approx(quality_map(half, IDS[:5]).matrix, abs=0.02)


def test_a_population_is_scaled_by_one_factor_or_by_one_for_each_item() -> None:
    quality = np.arange(1.0, 13.0).reshape(4, 3)
    people = Population(["a", "b", "c"], quality)
    table = people.tastes(["a", "b", "c"]).table
    assert people.times(0.5).tastes(["a", "b", "c"]).table == pytest.approx(table / 2.0)
    each = people.times(np.array([1.0, 10.0, 100.0]))
    assert each.tastes(["c", "a", "b"]).table == pytest.approx(table[[2, 0, 1]] * [[100.0], [1.0], [10.0]])
    for wrong in (np.array([1.0, 2.0]), np.array([]), np.ones((3, 1, 1)), 0.0, -1.0, np.nan, np.array([1.0, 0.0, 1.0])):
        with pytest.raises((InvalidParameter, TypeError)):
            people.times(wrong)
    assert people.tastes(["a", "b", "c"]).table == pytest.approx(table)  # and the first one is as it was
