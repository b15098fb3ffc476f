"""Who is a look-alike and who is tried; users that lack a block are neither."""

import os
from dataclasses import replace

import numpy as np
import pytest

from tacit.data import Ratings, synthetic
from tacit.errors import InvalidParameter, UnknownName
from tacit.evaluation.multi_selection.population import MIX, population


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return synthetic(users=150, items=80, ratings_per_user=30, rng=np.random.default_rng(1))


def test_look_alikes_and_held_out_users_share_nobody_and_are_all(ratings: Ratings) -> None:
    people = population(ratings, rng=np.random.default_rng(2))
    both = np.concatenate([people.look_alikes, people.held_out])
    assert sorted(both) == list(range(people.ratings.n_users))
    assert len(people.look_alikes) == round(3402 / 7375 * people.ratings.n_users)
    assert len(population(ratings, most=20, rng=np.random.default_rng(2)).look_alikes) == 20
    assert set(people.ratings.users[people.rows_of(people.look_alikes)]) == set(people.look_alikes)


def test_every_user_has_20_ratings_likes_and_dislikes(ratings: Ratings) -> None:
    generous = ratings.values.copy()
    generous[ratings.rows_of(3)] = 5.0  # user 3 likes everything
    people = population(replace(ratings, values=generous), rng=np.random.default_rng(2))
    assert people.ratings.counts.min() >= 20
    assert np.allclose(people.features.reshape(len(people.features), 2, -1).sum(axis=2), 1.0)
    assert ratings.user_id(3) not in people.ratings.user_ids
    assert people.ratings.item_counts.min() > 0


def test_too_few_users_and_data_without_genres_are_refused(ratings: Ratings) -> None:
    with pytest.raises(InvalidParameter, match="too few"):
        population(ratings.select_users(np.arange(15)), rng=np.random.default_rng(1))
    bare = replace(ratings, catalogue=replace(ratings.catalogue, genres=None, vocabulary=()))
    with pytest.raises(InvalidParameter, match="genres"):
        population(bare, rng=np.random.default_rng(1))


def test_unknown_data_is_told() -> None:
    with pytest.raises(UnknownName):
        population("no-such-data", rng=np.random.default_rng(1))


@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="needs the folders of MovieLens in TACIT_DATA")
def test_the_mix_has_the_users_of_the_reference() -> None:
    people = population(MIX, rng=np.random.default_rng(1))
    assert (people.ratings.n_users, people.ratings.n_items) == (7375, 12825)
    assert (len(people.look_alikes), len(people.held_out)) == (3402, 3973)
