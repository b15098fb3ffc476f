"""Fitting a store: who becomes a look-alike, which items it holds, what is trained on, and what is promised."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit.curator.private_training
import tacit.curator.training
from tacit.curator import PrivateTraining, fit
from tacit.curator.private_training import PUBLIC
from tacit.data import COUNTS, HALF_STARS, STARS, Catalogue, Ratings, from_arrays, synthetic
from tacit.errors import InvalidModel, InvalidParameter, NoLookAlikes
from tacit.guarantees import ONE_USER, Release, approximate, pure
from tacit.messages.store import REAL_USERS, LookAlikes, Store
from tacit.models.features import GenreProfile
from tacit.models.scorers import RatingNetwork, class_scores, shapes
from tests.releases import release_of

WORLD = synthetic(users=120, items=60, ratings_per_user=25, rng=np.random.default_rng(3))


# what private training promises here: not what it was asked for, so that only its own word can end up in a store
TOLD = approximate(1.2345, 3e-7, ONE_USER, proof="sampled-gaussian").assuming("told by the training")


def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def untrained(flags: Any) -> RatingNetwork:
    weights = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes(flags.shape[1]).items()}
    return RatingNetwork(weights, np.asarray(flags))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What training was asked for, in place of training."""
    asked: list[dict[str, Any]] = []

    def train_network(features: Any, flags: Any, rows: Any, **settings: Any) -> RatingNetwork:
        asked.append({"features": features, "flags": flags, "rows": rows, **settings})
        return untrained(flags)

    def train_privately(features: Any, flags: Any, rows: Any, **settings: Any) -> Release[RatingNetwork]:
        asked.append({"features": features, "flags": flags, "rows": rows, **settings})
        return release_of(untrained(flags), TOLD)

    monkeypatch.setattr(tacit.curator.training, "train_network", train_network)
    monkeypatch.setattr(tacit.curator.private_training, "train_privately", train_privately, raising=False)
    return asked


def catalogued(ratings: Ratings) -> Ratings:
    """The same ratings beside 5 items that nobody rated."""
    old = ratings.catalogue
    ids = np.concatenate([old.ids, np.arange(5) + int(old.ids[-1]) + 1])
    genres = np.concatenate([old.genres, old.genres[:5]])
    return Ratings(
        ratings.starts, ratings.items, ratings.values, None, ratings.user_ids,
        Catalogue(ids, tuple(f"item {i}" for i in ids), genres, old.vocabulary), ratings.scale,
    )  # fmt: skip


@pytest.mark.parametrize("model", ["network", "two-tower", "factors"])
def test_a_fitted_store_tells_good_from_bad_and_survives_storage(model: Any) -> None:
    steps: list[tuple[int, int]] = []
    store = fit(
        WORLD,
        model=model,
        least=10,
        epochs=20,
        rank=4,
        rng=rng(),
        progress=lambda done, total: steps.append((done, total)),
    )
    users = store.space.of_many(WORLD.starts, WORLD.items, WORLD.values)
    scores = store.scorer.score(users, np.arange(len(store.items)))[WORLD.users, WORLD.items]
    assert np.corrcoef(scores, WORLD.values)[0, 1] > 0.3
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]
    again = Store.from_bytes(store.to_bytes())
    assert again.version == store.version
    assert np.array_equal(class_scores(again.scorer, again.look_alikes), class_scores(store.scorer, store.look_alikes))


@pytest.mark.parametrize("model", ["two-tower", "factors"])
def test_equal_generators_give_equal_stores(model: Any) -> None:
    first, second = (fit(WORLD, model=model, rows=500, epochs=1, rng=rng()) for _ in range(2))
    assert first.version == second.version
    assert fit(WORLD, model=model, rows=500, epochs=1, rng=np.random.default_rng(9)).version != first.version


class TestLookAlikes:
    def test_by_default_users_with_enough_ratings_with_likes_and_dislikes(self, trained: list[Any]) -> None:
        flags = np.eye(3, dtype=np.bool_)
        #     user:  0 has both   1 too few   2 likes only   3 dislikes only   4 has both
        users = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
        items = [0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2]
        stars = [5, 1, 4, 5, 1, 5, 4, 4, 1, 2, 3, 1, 5, 1]
        catalogue = Catalogue(np.arange(3), None, flags, ("a", "b", "c"))
        ratings = replace(from_arrays(users, items, stars, scale=STARS), catalogue=catalogue)
        store = fit(ratings, least=3, rng=rng())
        expected = [[0.5, 0, 0.5, 0, 1, 0], [0, 1, 0, 0.5, 0, 0.5]]
        np.testing.assert_allclose(store.look_alikes, expected, atol=1e-7)
        assert len(fit(ratings, least=2, rng=rng()).look_alikes) == 3
        with pytest.raises(NoLookAlikes, match="lower `least`"):
            fit(ratings, rng=rng())

    def test_a_mask_names_users_of_the_ratings_that_were_given(self, trained: list[Any]) -> None:
        emptied = WORLD.subset(WORLD.users >= 2)  # users 0 and 1 keep their codes and lose their ratings
        mask = np.zeros(WORLD.n_users, dtype=np.bool_)
        mask[[1, 2, 7]] = True
        store = fit(emptied, look_alikes=mask, rng=rng())
        space = GenreProfile(WORLD.catalogue.genres)
        expected = [space.of(WORLD.items[WORLD.rows_of(user)], WORLD.values[WORLD.rows_of(user)]) for user in (2, 7)]
        np.testing.assert_allclose(store.look_alikes, expected, atol=1e-7)

    def test_features_may_be_given_and_promise_nothing_unless_a_mechanism_released_them(
        self, trained: list[Any]
    ) -> None:
        made_up = np.full((2, 38), 1 / 19)
        store = fit(WORLD, look_alikes=made_up, rng=rng())
        np.testing.assert_allclose(store.look_alikes, made_up, atol=1e-7)
        assert store.look_alikes_guarantee == REAL_USERS
        promise = pure(1.0, ONE_USER)
        released = LookAlikes.from_release(release_of((made_up, np.ones(2)), promise))
        assert fit(WORLD, look_alikes=released, rng=rng()).look_alikes_guarantee == promise
        assert len(fit(WORLD, look_alikes=np.zeros((0, 38)), rng=rng()).look_alikes) == 0
        with pytest.raises(InvalidModel, match="clip"):
            fit(WORLD, look_alikes=made_up - 0.1, rng=rng())

    @pytest.mark.parametrize(
        "bad", [np.ones(3, dtype=np.bool_), np.ones(38), np.full((2, 37), 0.1), [[0.1] * 38], "all"]
    )
    def test_anything_else_is_refused(self, bad: Any) -> None:
        with pytest.raises(InvalidParameter, match="120 true-or-false values"):
            fit(WORLD, look_alikes=bad, rng=rng())


class TestItems:
    def test_only_rated_items_are_held(self, trained: list[Any]) -> None:
        ratings = catalogued(WORLD.compact())
        store = fit(ratings, rng=rng())
        assert store.items.ids.tolist() == ratings.catalogue.ids[:-5].tolist()
        assert store.items.titles == ratings.catalogue.titles[:-5]  # type: ignore[index]

    def test_text_ids_travel_as_codes(self) -> None:
        users, items = np.divmod(np.arange(400), 20)
        ids = np.array([f"isbn-{code:02}" for code in range(20)])
        books = from_arrays(users, ids[items], 1.0 + (users + items) % 5, scale=STARS)
        store = fit(books, model="factors", rank=3, rng=rng())
        assert store.items.code("isbn-07") == 7
        assert store.items.numbers.tolist() == list(range(20))
        assert Store.from_bytes(store.to_bytes()).items.ids.tolist() == ids.tolist()


class TestTraining:
    def test_it_sees_all_ratings_and_the_features_of_their_users(self, trained: list[dict[str, Any]]) -> None:
        fit(WORLD, epochs=7, rng=rng())
        (asked,) = trained
        rated = WORLD.compact()
        assert (asked["kind"], asked["epochs"], asked["flags"].shape) == ("network", 7, rated.catalogue.genres.shape)
        assert np.array_equal(asked["rows"].users, rated.users)
        assert np.array_equal(asked["rows"].items, rated.items)
        assert np.array_equal(asked["rows"].values, rated.values)
        expected = GenreProfile(rated.catalogue.genres).of_many(rated.starts, rated.items, rated.values)
        np.testing.assert_allclose(asked["features"], expected, atol=1e-7)

    def test_rows_are_a_random_part_and_features_stay_whole(self, trained: list[dict[str, Any]]) -> None:
        fit(WORLD, model="two-tower", rows=100, rng=rng())
        fit(WORLD, rows=100, rng=np.random.default_rng(99))
        fit(WORLD, rows=10**9, rng=rng())
        first, second, whole = trained
        assert (first["kind"], len(first["rows"].values), len(whole["rows"].values)) == ("two-tower", 100, len(WORLD))
        pairs = [set(zip(asked["rows"].users.tolist(), asked["rows"].items.tolist(), strict=True)) for asked in trained]
        assert len(pairs[0]) == 100
        assert pairs[0] < pairs[2]
        assert pairs[0] != pairs[1]
        assert np.array_equal(first["features"], whole["features"])
        assert np.array_equal(second["features"], whole["features"])

    def test_columns_are_handed_over_and_not_copied(self, trained: list[dict[str, Any]]) -> None:
        rated = WORLD.compact()
        assert rated.compact() is rated
        fit(rated, rng=rng())
        (asked,) = trained
        assert np.shares_memory(asked["rows"].items, rated.items)
        assert np.shares_memory(asked["rows"].values, rated.values)

    def test_features_are_the_same_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        space = GenreProfile(WORLD.catalogue.genres)
        whole = space.of_many(WORLD.starts, WORLD.items, WORLD.values)
        monkeypatch.setattr("tacit.models.features._USERS", 7)
        assert np.array_equal(space.of_many(WORLD.starts, WORLD.items, WORLD.values), whole)
        one = WORLD.rows_of(113)
        assert np.array_equal(space.of(WORLD.items[one], WORLD.values[one]), whole[113])

    def test_factors_see_only_the_rows_that_were_drawn(self) -> None:
        store = fit(WORLD, model="factors", rows=60, rank=2, rng=rng())
        taught = np.abs(store.scorer.factors).sum(axis=1) > 0.0  # type: ignore[attr-defined]
        assert 0 < taught.sum() <= 60
        assert len(store.items) == WORLD.compact().n_items


class TestPromises:
    def test_without_noise_nothing_is_promised_and_both_reasons_are_given(self, trained: list[Any]) -> None:
        store = fit(WORLD, rng=rng())
        assert store.model_guarantee.promises_nothing
        assert store.model_guarantee.protects == store.look_alikes_guarantee.protects == ONE_USER
        assert store.guarantee.assumes == {
            "the model was fitted without noise: its training ratings must be public or consented",
            "look-alikes are features of real users, taken as public",
        }

    def test_private_training_is_promised_and_the_look_alikes_are_not(self, trained: list[dict[str, Any]]) -> None:
        private = PrivateTraining(2.0, 1e-6, steps=30, clip=0.5)
        store = fit(WORLD, private=private, rng=rng())
        assert store.model_guarantee == TOLD
        assert store.guarantee.promises_nothing
        for nobody in (np.zeros((0, 38)), np.zeros(WORLD.n_users, dtype=np.bool_)):
            without = fit(WORLD, private=private, look_alikes=nobody, rng=rng())
            assert without.look_alikes_guarantee == pure(0.0, ONE_USER)
            assert (without.guarantee.epsilon, without.guarantee.delta) == (TOLD.epsilon, TOLD.delta)
            assert "told by the training" in without.guarantee.assumes
        assert fit(WORLD, private=private, look_alikes=np.zeros((1, 38)), rng=rng()).guarantee.promises_nothing
        settings = {name: trained[0][name] for name in trained[0] if name not in ("features", "flags", "rows", "rng")}
        assert settings == {
            "kind": "network",
            "epsilon": 2.0,
            "delta": 1e-6,
            "steps": 30,
            "clip": 0.5,
            "progress": None,
        }

    @pytest.mark.filterwarnings(
        "ignore:optax.global_norm is deprecated:DeprecationWarning"
    )  # jax-privacy still calls it
    def test_a_network_that_was_really_trained_privately_promises_what_was_asked_for(self) -> None:
        small = synthetic(users=40, items=20, ratings_per_user=10, rng=np.random.default_rng(2))
        private = PrivateTraining(8.0, 1e-5, steps=2, rate=0.25)
        first, second = (fit(small, model="two-tower", private=private, least=5, rng=rng()) for _ in range(2))
        promised = first.model_guarantee
        assert promised == approximate(8.0, 1e-5, ONE_USER, proof="sampled-gaussian").assuming(PUBLIC)
        assert first.version != second.version  # the noise is of the system, whatever the seed
        assert Store.from_bytes(first.to_bytes()).model_guarantee == promised

    def test_private_training_keeps_items_that_nobody_rated_and_all_rows(self, trained: list[dict[str, Any]]) -> None:
        ratings = catalogued(WORLD.compact())
        store = fit(ratings, private=PrivateTraining(2.0, 1e-6), rng=rng())
        assert store.items.ids.tolist() == ratings.catalogue.ids.tolist()
        rows = trained[0]["rows"]
        assert np.array_equal(rows.starts, ratings.starts)
        assert np.array_equal(rows.items, ratings.items)

    def test_what_private_training_is_given_of_a_user_does_not_depend_on_another(self, trained: list[Any]) -> None:
        left = np.delete(np.arange(WORLD.n_users), 17)
        for ratings in (WORLD, WORLD.select_users(left)):
            fit(ratings, private=PrivateTraining(2.0, 1e-6), rng=rng())
        everyone, without = trained
        assert np.array_equal(everyone["features"][left], without["features"])
        assert np.array_equal(everyone["flags"], without["flags"])
        starts, items, values = everyone["rows"]
        kept = np.delete(np.arange(len(items)), np.arange(starts[17], starts[18]))
        assert np.array_equal(np.delete(np.diff(starts), 17), np.diff(without["rows"].starts))
        assert np.array_equal(items[kept], without["rows"].items)
        assert np.array_equal(values[kept], without["rows"].values)
        told = [
            {name: asked[name] for name in asked if name not in ("features", "flags", "rows", "rng")}
            for asked in trained
        ]
        assert told[0] == told[1]
        assert trained[0]["rng"].bit_generator.state == trained[1]["rng"].bit_generator.state

    def test_a_random_part_of_the_rows_would_void_the_promise_and_is_refused(self, trained: list[Any]) -> None:
        for wrong, reason in (({"rows": 100}, "draws users"), ({"model": "factors"}, "fitted without noise")):
            with pytest.raises(InvalidParameter, match=reason):
                fit(WORLD, private=PrivateTraining(2.0, 1e-6), rng=rng(), **wrong)  # type: ignore[arg-type]


def without_genres() -> Ratings:
    users, items = np.divmod(np.arange(400), 20)
    return from_arrays(users, items, 1.0 + (users * items) % 5, scale=STARS, name="plain")


WRONG: dict[str, tuple[Callable[[], Store], str]] = {
    "no genres": (lambda: fit(without_genres(), rng=rng()), "'factors', or data with genres: movielens-small"),
    "a scale without end": (
        lambda: fit(from_arrays([1, 2], [1, 2], [1, 9], scale=COUNTS), rng=rng()), "scale within 0 to 5"
    ),
    "no ratings": (lambda: fit(WORLD.subset(WORLD.users < 0), rng=rng()), "no ratings"),
    "another model": (lambda: fit(WORLD, model="forest", rng=rng()), "network, two-tower, factors"),  # type: ignore[arg-type]
    "a seed": (lambda: fit(WORLD, rng=7), "numpy Generator"),  # type: ignore[arg-type]
    "a number for private": (
        lambda: fit(WORLD, private=4, rng=rng()), r"PrivateTraining\(epsilon=\.\.\., delta=\.\.\.\)"  # type: ignore[arg-type]
    ),
    "no rows": (lambda: fit(WORLD, rows=0, rng=rng()), "rows must be"),
    "least of 0": (lambda: fit(WORLD, least=0, rng=rng()), "least must be"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "told"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_call_is_told_what_is_allowed(call: Callable[[], Store], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        call()


def test_half_stars_and_a_default_generator_will_do() -> None:
    assert WORLD.scale == HALF_STARS
    one, other = (fit(WORLD, model="factors", rank=2, name="made up") for _ in range(2))
    assert one.version == other.version
    assert one.name == "made up"


def test_it_is_offered_at_the_top() -> None:
    assert tacit.fit is fit  # type: ignore[attr-defined]
    assert tacit.curator.fit is fit
