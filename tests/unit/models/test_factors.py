"""The scorer by factors: its arithmetic, its classes, and what alternating least squares recover."""

import numpy as np
import pytest

from tacit.curator.fit import factorise
from tacit.data import STARS, from_arrays, synthetic
from tacit.data.ratings import Ratings
from tacit.errors import InvalidModel, InvalidParameter
from tacit.models.features import grouped_ridge
from tacit.models.scorers import FactorScorer, class_scores

FACTORS = np.array([[1.0, 0.0], [0.0, -2.0], [1.0, 0.0], [0.5, 0.5]], dtype=np.float32)
SCORER = FactorScorer(FACTORS, np.array([0.5, 0.0, 0.5, -1.0], dtype=np.float32), 3.0)


def test_a_score_is_mean_plus_offset_plus_product_on_the_scale() -> None:
    scores = SCORER.score(np.array([[1.0, 0.5], [-1.0, 1.0], [1.0, -1.0]]), np.arange(4))
    # 3 + 0.5 + 1; 3 - 1; the same as the first; 3 - 1 + 0.75 | 3 + 0.5 - 1; 3 - 2; ...; 3 - 1 + 0 | ...; 3 + 2
    assert scores.tolist() == [[4.5, 2.0, 4.5, 2.75], [2.5, 1.0, 2.5, 2.0], [4.5, 5.0, 4.5, 2.0]]


def test_scores_are_clipped_to_the_scale() -> None:
    scores = SCORER.score(np.array([[0.0, 9.0], [9.0, 0.0]]), np.array([1, 0]))
    assert scores.tolist() == [[0.0, 3.5], [3.0, 5.0]]


def test_items_are_alone_unless_all_their_numbers_are_equal() -> None:
    assert SCORER.classes.of.tolist() == [0, 1, 0, 2]
    apart = FactorScorer(FACTORS, np.array([0.5, 0.0, 0.25, -1.0]), 3.0)
    assert apart.classes.of.tolist() == [0, 1, 2, 3]


def test_equal_items_have_equal_scores_to_the_last_bit() -> None:
    rng = np.random.default_rng(4)
    factors, offsets = rng.normal(size=(203, 16)).astype(np.float32), rng.normal(size=203).astype(np.float32)
    factors[101:202], offsets[101:202] = factors[:101], offsets[:101]
    scorer = FactorScorer(factors, offsets, 3.5)
    features = rng.uniform(-1, 1, size=(7, 16))
    scores = scorer.score(features, np.arange(203))
    assert np.array_equal(scores[:, :101], scores[:, 101:202])
    assert np.array_equal(scores, class_scores(scorer, features)[:, scorer.classes.of])
    for user, item in rng.integers(0, (7, 203), (50, 2)).tolist():
        product = sum(float(x) * float(y) for x, y in zip(features[user], factors[item], strict=True))
        assert scores[user, item] == pytest.approx(min(5.0, max(0.0, 3.5 + offsets[item] + product)), abs=1e-5)


def test_bad_factors_are_refused() -> None:
    for factors, offsets in (
        (FACTORS[0], [1.0]),
        (FACTORS, [1.0] * 3),
        (FACTORS * np.nan, [1.0] * 4),
        (FACTORS, [np.inf] * 4),
    ):
        with pytest.raises(InvalidModel):
            FactorScorer(factors, np.array(offsets), 3.0)
    with pytest.raises(InvalidParameter):
        FactorScorer(FACTORS, np.zeros(4), np.nan)


def test_grouped_ridge_equals_one_regression_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    design, penalties = rng.normal(size=(20, 3)), np.array([0.1, 2.0, 0.7])
    counts = np.array([4, 0, 11, 1, 20])
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns, targets = rng.integers(0, 20, starts[-1]), rng.normal(size=starts[-1])
    expected = np.zeros((5, 3))
    for group in (0, 2, 3, 4):
        rows = design[columns[starts[group] : starts[group + 1]]]
        matrix = rows.T @ rows + np.sqrt(counts[group]) * np.diag(penalties)
        expected[group] = np.linalg.inv(matrix) @ rows.T @ targets[starts[group] : starts[group + 1]]
    np.testing.assert_allclose(grouped_ridge(starts, columns, targets, design, penalties), expected, atol=1e-12)
    monkeypatch.setattr("tacit.models.features._VALUES", 1)  # one group at a time
    np.testing.assert_allclose(grouped_ridge(starts, columns, targets, design, penalties), expected, atol=1e-12)


def checkerboard(users: int, items: int, *, seen: float, rng: np.random.Generator) -> tuple[Ratings, np.ndarray]:
    """Two crossed stripes: a table of rank 2 besides its mean, of which a share is seen."""
    u, i = np.meshgrid(np.arange(users), np.arange(items), indexing="ij")
    truth = 3.0 + np.where((u + i) % 2 == 0, 1.0, -1.0) + np.where((u // 2 + i // 2) % 2 == 0, 1.0, -1.0)
    mask = rng.random(truth.shape) < seen
    return from_arrays(u[mask], i[mask], truth[mask], scale=STARS), truth


def test_a_rank_2_checkerboard_is_recovered_where_nobody_rated() -> None:
    ratings, truth = checkerboard(60, 40, seen=0.5, rng=np.random.default_rng(1))
    calls: list[tuple[int, int]] = []
    weak = {"rounds": 30, "penalty": 0.02, "offset_penalty": 0.02}
    rng = np.random.default_rng(3)
    space, scorer = factorise(ratings, rank=2, rng=rng, progress=lambda *at: calls.append(at), **weak)
    features = space.of_many(ratings.starts, ratings.items, ratings.values)
    recovered = scorer.score(features, np.arange(40))
    assert np.abs(recovered - truth).max() < 0.15
    assert calls == [(done, 30) for done in range(1, 31)]
    space, scorer = factorise(ratings, rank=1, rng=rng, **weak)  # rank 1 cannot hold two stripes: the test can fail
    features = space.of_many(ratings.starts, ratings.items, ratings.values)
    assert np.abs(scorer.score(features, np.arange(40)) - truth).max() > 0.8


def test_factors_that_the_ratings_do_not_need_do_no_harm() -> None:
    ratings, truth = checkerboard(60, 40, seen=0.5, rng=np.random.default_rng(1))
    space, scorer = factorise(ratings, rank=12, rounds=30, rng=np.random.default_rng(3))  # ten too many
    features = space.of_many(ratings.starts, ratings.items, ratings.values)
    liked = scorer.score(features, np.arange(40)) > 3.0
    assert (liked == (truth > 3.0))[truth != 3.0].all()
    constant = from_arrays(*np.divmod(np.arange(200), 10), np.full(200, 4.0), scale=STARS)
    space, scorer = factorise(constant, rank=3, rng=np.random.default_rng(3))
    taste = space.of(np.arange(10), np.full(10, 4.0))
    np.testing.assert_allclose(scorer.score(taste[None], np.arange(10)), 4.0, atol=1e-3)


def test_without_taste_a_score_is_the_rating_of_the_average_user_and_not_of_the_average_row() -> None:
    users = np.repeat(np.arange(40), [40] * 4 + [5] * 36)  # four grim users gave 160 of the 340 ratings
    items = np.concatenate([*[np.arange(40)] * 4, *[(np.arange(5) * 8 + user) % 40 for user in range(36)]])
    ratings = from_arrays(users, items, np.where(users < 4, 1.0, 5.0), scale=STARS)
    space, _ = factorise(ratings, rank=1, penalty=5.0, offset_penalty=0.05, rng=np.random.default_rng(1))
    by_row, by_user = ratings.values.mean(), (4 * 1.0 + 36 * 5.0) / 40
    assert by_row < 3.2 < 4.4 < space.mean + space.offsets.mean() < by_user + 0.1


def test_most_users_lie_within_the_bounds_and_some_use_them() -> None:
    ratings = synthetic(users=400, items=200, rng=np.random.default_rng(5))
    space, _ = factorise(ratings, rank=4, rounds=5, rng=np.random.default_rng(6))
    raw = np.abs(space.unclipped(ratings.starts, ratings.items, ratings.values))
    inside = (raw <= 1.0).mean(axis=0)
    assert ((inside >= 0.985) & (inside < 1.0)).all()
    assert (raw.max(axis=0) < 10.0).all()


def test_axes_carry_nothing_in_common() -> None:
    ratings = synthetic(users=300, items=150, rng=np.random.default_rng(7))
    space, _ = factorise(ratings, rank=3, rounds=8, rng=np.random.default_rng(8))
    products = space.factors.astype(float).T @ space.factors
    strengths = np.sqrt(np.diag(products))
    angles = products / np.outer(strengths, strengths)
    assert np.abs(angles - np.eye(3)).max() < 1e-3


def test_equal_generators_give_equal_factors() -> None:
    ratings, _ = checkerboard(20, 12, seen=0.6, rng=np.random.default_rng(1))
    first, second = (factorise(ratings, rank=2, rounds=3, rng=np.random.default_rng(5)).scorer for _ in range(2))
    assert np.array_equal(first.factors, second.factors)


def test_more_factors_than_users_or_items_are_refused() -> None:
    ratings, _ = checkerboard(20, 12, seen=0.6, rng=np.random.default_rng(1))
    with pytest.raises(InvalidParameter, match="from 1 to 12"):
        factorise(ratings, rank=13, rng=np.random.default_rng(1))
