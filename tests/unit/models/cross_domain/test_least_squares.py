"""Alternating least squares: its equations, and a taste that it has to find."""

from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.evaluation.cross_domain import least_squares as module
from tacit.evaluation.cross_domain.least_squares import least_squares
from tests.unit.models.cross_domain.slow_paths import drawn_ratings, matrix, profiles_of

SCALE = (1.0, 5.0)


def test_offsets_are_damped_means_of_what_is_left() -> None:
    ratings = matrix([{0: 5.0, 1: 2.0}, {0: 4.0}, {}], 3)
    found = least_squares(ratings, damping=1.0, rng=np.random.default_rng(1))
    mean = 11 / 3
    items = [(5 - mean + 4 - mean) / 3, (2 - mean) / 2, 0.0]
    assert found.mean == pytest.approx(mean)
    assert found.item_offsets == pytest.approx(items)
    users = [(5 - mean - items[0] + 2 - mean - items[1]) / 3, (4 - mean - items[0]) / 2, 0.0]
    assert found.user_offsets == pytest.approx(users)
    assert not found.user_factors[2].any()
    assert not found.item_factors[2].any()


@pytest.mark.parametrize("cells", [1, 1 << 20])
def test_factors_of_items_solve_their_ridge_equations(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS", cells)
    ratings = drawn_ratings(np.random.default_rng(2), 20, 9, 0.5)
    found = least_squares(ratings, rank=3, ridge=0.07, rounds=2, rng=np.random.default_rng(1))
    people = profiles_of(ratings)
    for item in range(9):
        raters = [user for user in range(20) if item in people[user]]
        factors = found.user_factors[raters]
        left = np.array(
            [people[u][item] - found.mean - found.user_offsets[u] - found.item_offsets[item] for u in raters]
        )
        expected = np.linalg.solve(factors.T @ factors + 0.07 * len(raters) * np.eye(3), factors.T @ left)
        np.testing.assert_allclose(found.item_factors[item], expected, atol=1e-10)


def test_hidden_ratings_of_a_shared_taste_are_found() -> None:
    rng = np.random.default_rng(3)
    taste = np.outer(rng.choice([-1.0, 1.0], 80), rng.choice([-1.0, 1.0], 30))
    shown = rng.random(taste.shape) < 0.6
    ratings = matrix([{i: 3.0 + taste[u, i] for i in np.flatnonzero(shown[u])} for u in range(80)], 30)
    users, items = np.nonzero(~shown)
    found = least_squares(ratings, rank=2, ridge=0.02, rng=rng).predict(users, items, SCALE)
    errors = np.abs(found - 3.0 - taste[~shown])
    assert errors.mean() < 0.2  # by averages alone: 1


def test_the_same_rng_gives_the_same_factors_and_predictions_stay_inside_the_scale() -> None:
    ratings = drawn_ratings(np.random.default_rng(2), 20, 9, 0.5)
    one, same = (least_squares(ratings, rng=np.random.default_rng(4)) for _ in range(2))
    assert one.item_factors.tolist() == same.item_factors.tolist()
    users, items = (part.ravel() for part in np.meshgrid(np.arange(20), np.arange(9)))
    found = one.predict(users, items, (2.5, 3.5))
    assert found.min() == 2.5
    assert found.max() == 3.5
    assert repr(one) == "LeastSquares(20 users, 9 items)"


@pytest.mark.parametrize(
    "wrong", [{"rank": 0}, {"ridge": 0.0}, {"ridge": float("nan")}, {"damping": -1.0}, {"rounds": 0}]
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        least_squares(matrix([{0: 1.0}], 1), rng=np.random.default_rng(1), **wrong)
