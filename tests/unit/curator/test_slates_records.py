"""Records: what is odd about one counts as nothing, and is never an error."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.curator import Route
from tacit.curator.private_slates.draw import genre_features, rows_of
from tacit.ledger import Budget
from tests.unit.curator.slates_world import FILMS, catalogue, curator, ratings


def test_a_rating_that_is_no_number_is_no_like() -> None:
    data = ratings(np.full((2, FILMS), 5))
    values = data.values.copy()
    values[3], values[4], values[5] = np.nan, np.inf, -np.inf
    rows = rows_of(replace(data, values=values), 4.0).toarray()
    assert rows[0].tolist() == [1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1]
    assert rows[1].tolist() == [1] * FILMS


def test_likes_start_at_the_stated_rating() -> None:
    rows = rows_of(ratings(np.array([[1, 2, 3, 4, 5]])), 4.0).toarray()
    assert rows.tolist() == [[0, 0, 0, 1, 1]]
    assert rows_of(ratings(np.array([[1, 2, 3, 4, 5]])), 2.0).toarray().tolist() == [[0, 1, 1, 1, 1]]


def test_rows_of_one_user_are_merged_before_they_are_cut() -> None:
    table = np.array([[5, 5, 0, 0], [0, 5, 5, 0], [0, 0, 0, 5]])
    rows = rows_of(ratings(table, user_ids=np.array([7, 7, 9])), 4.0).toarray()
    assert rows.tolist() == [[1, 1, 1, 0], [0, 0, 0, 1]]


def test_the_ratings_themselves_stay_as_they_were() -> None:
    data = ratings(np.full((3, FILMS), 5))
    rows = rows_of(data, 4.5)
    rows.data[:] = 0.0
    assert data.values.tolist() == [5.0] * 3 * FILMS


@pytest.mark.parametrize("route", [one for one in Route if one is not Route.PUBLISHED])
@pytest.mark.parametrize("users", [0, 1, 3])
def test_slates_are_made_from_no_users_and_from_users_without_a_like(tmp_path: Path, route: Route, users: int) -> None:
    data = ratings(np.full((users, FILMS), 1))
    options = {"threshold": 3, "candidates": 6} if route in (Route.TWO_STAGE, Route.SPARSE) else {}
    with curator(tmp_path, data, budget=Budget(epsilon=1) if route is not Route.KERNEL else _with_delta()) as holder:
        slate = holder.slate(4, 0.5, route=route, **options)
        assert len(slate) == 4 or route is Route.SUBSET


def test_an_item_that_nobody_likes_can_be_drawn(tmp_path: Path) -> None:
    table = np.full((20, FILMS), 5)
    table[:, -1] = 1
    with curator(tmp_path, ratings(table)) as holder:
        drawn = {item for _ in range(100) for item in holder.slate(6, 0.2, route="natural").items}
        assert drawn == set(range(1, FILMS + 1))


def test_features_are_genres_of_length_one() -> None:
    features = genre_features(catalogue())
    assert features is not None
    assert np.linalg.norm(features, axis=1) == pytest.approx(1.0)
    bare = replace(catalogue(), genres=np.zeros((FILMS, 6), dtype=np.bool_))
    flat = genre_features(bare)
    assert flat is not None
    assert not flat.any()
    assert genre_features(replace(catalogue(), genres=None, vocabulary=())) is None


def test_without_genres_similarity_is_private(tmp_path: Path) -> None:
    data = ratings(np.full((5, FILMS), 5))
    bare = replace(data, catalogue=replace(data.catalogue, genres=None, vocabulary=()))
    with curator(tmp_path, bare) as holder:
        assert holder.features is None
        assert holder.slate(3, 0.5).route == "natural"
        assert len(holder.slate(3, 0.5, route="counts")) == 3
        for route in ("tempered", "feature", "sparse"):
            with pytest.raises(ValueError, match="features"):
                holder.slate(3, 0.5, route=route, threshold=5)
        assert holder.statement().charges == 2


def _with_delta() -> object:
    return Budget(1.0, 1e-6)
