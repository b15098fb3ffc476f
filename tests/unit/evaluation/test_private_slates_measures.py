"""Metrics of slates against slates worked out by hand; which users make slates and which are asked."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import tacit.data
from tacit.errors import InvalidParameter
from tacit.evaluation.private_slates import films as films_of
from tacit.evaluation.private_slates.films import Films, default_data, films
from tacit.evaluation.private_slates.measures import (
    COVERAGE,
    DISTANCE,
    GENRES,
    NOVELTY,
    POPULARITY,
    covered,
    measured,
    rows,
)

HAS_1M = (Path(os.environ.get("TACIT_DATA", "")) / "ml-1m" / "movies.dat").is_file()
needs_1m = pytest.mark.skipif(not HAS_1M, reason="needs ml-1m in the folder that TACIT_DATA names")

LIKES = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]  # 3 users, 4 films, liked by 3, 2, 1, 0
HELD_OUT = [[0, 0, 1, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
HALF = math.sqrt(0.5)


@pytest.fixture
def small() -> Films:
    genres = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [HALF, HALF]])
    return Films("small", sparse.csr_array(np.array(LIKES, float)), sparse.csr_array(np.array(HELD_OUT, float)), genres)


def test_metrics_by_hand(small: Films) -> None:
    found = measured(small, np.array([[0, 1], [0, 2], [2, 3]]))
    np.testing.assert_allclose(found[POPULARITY], [5 / 5, 4 / 5, 1 / 5])
    np.testing.assert_allclose(found[COVERAGE], [1 / 4, 3 / 4, 2 / 4])  # a user with two liked films counts once
    np.testing.assert_allclose(found[GENRES], [0.0, 1.0, 1.0 - HALF])
    # films 0 and 1 share two users of 3 and 2; 0 and 2 share one of 3 and 1; nobody likes film 3
    np.testing.assert_allclose(found[DISTANCE], [1 - 2 / math.sqrt(6), 1 - 1 / math.sqrt(3), 1.0])
    shares = np.log2(np.array([4, 3, 2, 1]) / 4)
    np.testing.assert_allclose(found[NOVELTY], [-shares[:2].mean(), -shares[[0, 2]].mean(), -shares[2:].mean()])


def test_three_films_are_compared_pair_by_pair(small: Films) -> None:
    found = measured(small, np.array([[0, 1, 2]]))
    np.testing.assert_allclose(found[GENRES], 1 - 1 / 3)
    np.testing.assert_allclose(found[DISTANCE], 1 - (2 / math.sqrt(6) + 1 / math.sqrt(3) + 0) / 3)


def test_coverage_asks_held_out_users_and_popularity_the_others(small: Films) -> None:
    assert covered(small, np.array([[2, 3]])).tolist() == [[True, True, False, False]]
    assert small.counts.tolist() == [3, 2, 1, 0]
    np.testing.assert_allclose(np.square(small.contributions.toarray()).sum(axis=1), 1.0)


def test_slates_of_one_release_are_not_counted_as_independent() -> None:
    values = {POPULARITY: np.repeat([0.0, 1.0], 50)}
    (alone,) = rows("m", {"epsilon": 1.0}, values)
    (grouped,) = rows("m", {"epsilon": 1.0}, values, np.repeat([0, 1], 50))
    assert (alone.value, alone.n) == (grouped.value, grouped.n) == (0.5, 100)
    assert alone.stderr == pytest.approx(0.5 / math.sqrt(99))
    assert grouped.stderr == pytest.approx(0.5)
    (one,) = rows("m", {}, {POPULARITY: np.array([0.3])})
    assert one.stderr is None


def test_users_are_divided_and_every_listed_film_stays() -> None:
    ratings = tacit.data.synthetic(users=100, items=60, rng=np.random.default_rng(5))
    found = films(ratings, rng=np.random.default_rng(1))
    assert (found.users, found.held_out.shape) == (80, (20, 60))
    assert found.likes.sum() + found.held_out.sum() == (ratings.values >= 4.0).sum()
    both = np.sort(np.concatenate([found.likes.toarray(), found.held_out.toarray()]), axis=0)
    everybody = (ratings.csr().toarray() >= 4.0).astype(float)
    np.testing.assert_array_equal(both, np.sort(everybody, axis=0))
    np.testing.assert_allclose(np.linalg.norm(found.genres, axis=1), 1.0)
    other = films(ratings, rng=np.random.default_rng(2))
    assert (other.likes != found.likes).nnz > 0


def test_data_that_cannot_serve_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match="too few users"):
        films(tacit.data.synthetic(users=30, items=20, rng=np.random.default_rng(5)), rng=np.random.default_rng(1))
    bare = tacit.data.from_arrays([f"u{i}" for i in range(99)], ["a"] * 99, [5.0] * 99, scale=tacit.data.STARS)
    with pytest.raises(InvalidParameter, match="no genres"):
        films(bare, rng=np.random.default_rng(1))
    monkeypatch.setattr(films_of, "LARGEST", 1000)
    with pytest.raises(InvalidParameter, match="too large"):
        films(tacit.data.synthetic(users=60, items=60, rng=np.random.default_rng(5)), rng=np.random.default_rng(1))


def test_the_package_serves_where_the_folder_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)
    assert default_data() == "movielens-small"


@needs_1m
def test_movielens_1m_is_divided_as_in_the_reference() -> None:
    assert default_data() == "movielens-1m"
    found = films("movielens-1m", rng=np.random.default_rng([1, 61]))
    assert (found.name, found.users, found.held_out.shape, found.items) == ("movielens-1m", 4832, (1208, 3883), 3883)
    assert (found.counts == 0).any()  # films that nobody likes are in the catalogue all the same
    top = measured(found, np.argsort(-found.counts)[None, :10])
    assert top[POPULARITY][0] == 1.0
    assert top[COVERAGE][0] == pytest.approx(0.903, abs=0.02)
    assert top[GENRES][0] == pytest.approx(0.670, abs=0.01)
