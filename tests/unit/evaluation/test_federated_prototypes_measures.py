"""Metrics by hand, splits, exact prototypes, and the statistics of items."""

import numpy as np
import pytest
from scipy import sparse

from tacit.data import synthetic_counts
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import factored, item_statistics, kmeans, names, residuals
from tacit.evaluation.federated_prototypes.factored import How
from tacit.evaluation.federated_prototypes.measures import (
    NDCG,
    RANK,
    RECALL,
    Ranks,
    Sampled,
    averaged,
    ranks,
    ratio,
    rmse,
)
from tacit.evaluation.federated_prototypes.splits import CELLS, KEPT, Held, every_user, paper_split, table
from tacit.evaluation.statistics import mean
from tacit.mechanisms import Prototypes


def rows(*values: list[float]) -> sparse.csr_array:
    return sparse.csr_array(np.array(values, dtype=np.float64))


NOTHING = rows([0.0] * 4)


def test_mean_rank_weighs_by_held_out_values_and_halves_ties() -> None:
    found = ranks(np.array([[0.9, 0.1, 0.5, 0.5]]), NOTHING, rows([5.0, 0.0, 3.0, 0.0]))
    assert found.estimates()[RANK].value == pytest.approx(0.1875)


def test_training_items_are_no_candidates() -> None:
    scores = np.array([[9.0, 8.0, 7.0, 1.0, 0.0]])
    found = ranks(scores, rows([1.0, 1.0, 0.0, 0.0, 0.0]), rows([0.0, 0.0, 0.0, 1.0, 0.0]))
    assert found.estimates()[RANK].value == pytest.approx(0.5)  # second of three


def test_recall_and_ndcg_look_at_the_first_twenty() -> None:
    items = 40
    scores = -np.arange(items, dtype=np.float64)[None, :]
    held = np.zeros((1, items))
    held[0, [0, 19, 20]] = 1.0
    found = ranks(scores, sparse.csr_array((1, items)), sparse.csr_array(held)).estimates()
    assert found[RECALL].value == pytest.approx(2 / 3)
    best = 1.0 + 1.0 / np.log2(3) + 1.0 / np.log2(4)
    assert found[NDCG].value == pytest.approx((1.0 + 1.0 / np.log2(21)) / best)


def test_a_user_without_held_out_items_does_not_count() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    found = ranks(scores, sparse.csr_array((2, 3)), rows([0.0, 0.0, 1.0], [0.0, 0.0, 0.0]))
    assert np.isnan(found.ndcg[1])
    assert found.estimates()[RANK].value == 1.0
    assert found.estimates()[NDCG].n == 1


def test_ranks_do_not_depend_on_how_many_users_are_compared_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    scores = np.round(rng.random((30, 12)), 1)
    train = sparse.csr_array((rng.random((30, 12)) < 0.3) * 1.0)
    test = sparse.csr_array(((rng.random((30, 12)) < 0.3) & (train.toarray() == 0)) * rng.integers(1, 6, (30, 12)))
    whole = ranks(scores, train, test)
    monkeypatch.setattr("tacit.evaluation.federated_prototypes.measures._CELLS", 1)
    for one, other in zip(whole, ranks(scores, train, test), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_averaging_is_over_draws_user_by_user() -> None:
    one, other = Ranks.empty(2), Ranks.empty(2)
    one.ndcg[:], other.ndcg[:] = [0.0, 1.0], [1.0, 1.0]
    assert averaged([one, other]).ndcg.tolist() == [0.5, 1.0]


def test_rmse_by_hand_and_its_error_is_over_users() -> None:
    errors, users = np.array([3.0, 4.0, 0.0, 0.0]), np.array([0, 0, 1, 1])
    found = rmse(errors, users)
    assert found.value == pytest.approx(2.5)
    squares = mean(errors**2, users)
    assert found.stderr == pytest.approx(squares.stderr / 5.0)
    assert found.n == 4


def test_influences_of_two_figures_of_the_same_users_give_the_error_of_their_difference() -> None:
    rng = np.random.default_rng(2)
    hard = rng.gamma(2.0, 1.0, 400)  # users differ far more than models do
    users = np.repeat(np.arange(400), 5)
    first = rng.normal(0, 1, 2000) * hard[users]
    one, other = rmse(first, users), rmse(first * 1.05, users)
    assert isinstance(one, Sampled)
    assert isinstance(other, Sampled)
    paired = mean(other.influence - one.influence).stderr
    assert mean(one.influence).stderr == pytest.approx(one.stderr)
    assert paired < 0.1 * np.hypot(one.stderr, other.stderr)


def test_ratio_of_nothing_is_unknown() -> None:
    assert np.isnan(ratio(np.zeros(0), np.zeros(0)).value)


def test_the_papers_split_holds_out_five_cells_of_a_fifth_of_the_users() -> None:
    world = synthetic_counts(users=200, items=40, entities=4, rng=np.random.default_rng(1))
    held = paper_split(world, rng=np.random.default_rng(2))
    assert held.reported.sum() == 40
    assert set(np.diff(held.test.indptr)[held.reported]) <= set(range(CELLS + 1))
    assert not np.diff(held.test.indptr)[~held.reported].any()
    assert (table(world) - held.train - held.test).nnz == 0
    assert held.train.multiply(held.test).nnz == 0
    assert held.train.has_sorted_indices


def test_every_users_cells_are_held_out_and_enough_remain() -> None:
    world = synthetic_counts(users=101, items=30, entities=4, rng=np.random.default_rng(1))
    held = every_user(world, rng=np.random.default_rng(2))
    assert set(held.train.data) == {1.0}
    left, out = np.diff(held.train.indptr), np.diff(held.test.indptr)
    assert np.array_equal(out, np.clip(left + out - KEPT, 0, CELLS))
    assert held.reported.sum() == 51
    assert held.count == 4
    valued = every_user(world, rng=np.random.default_rng(2), marks=False)
    assert np.array_equal(valued.train.indices, held.train.indices)
    assert valued.train.data.max() > 1.0


def test_k_means_finds_groups_that_are_far_apart() -> None:
    rng = np.random.default_rng(3)
    points = np.vstack([rng.random((20, 5)) + 10.0 * np.eye(5)[group] for group in range(3)])
    of = kmeans.clusters(sparse.csr_array(points), 3, rng=rng)
    assert len({tuple(np.unique(of[place : place + 20])) for place in (0, 20, 40)}) == 3
    assert all(np.unique(of[place : place + 20]).size == 1 for place in (0, 20, 40))


def test_both_means_of_a_cluster() -> None:
    table_ = rows([4.0, 0.0, 0.0], [2.0, 5.0, 0.0])
    of = np.array([0, 0])
    assert kmeans.means(table_, of, 1).tolist() == [[3.0, 2.5, 0.0]]
    raters = kmeans.raters_means(table_, of, 1)
    assert raters[0, :2].tolist() == [3.0, 5.0]
    assert np.isnan(raters[0, 2])


def test_fewer_users_than_prototypes_are_their_own_prototypes() -> None:
    table_ = rows([4.0, 0.0], [0.0, 5.0])
    rng = np.random.default_rng(1)
    for form in (factored.zero_filled, factored.over_raters, factored.k_random):
        found = np.nan_to_num(form(table_, 7, rng))
        assert sorted(map(tuple, found)) == [(0.0, 5.0), (4.0, 0.0)]


def test_items_of_which_nothing_is_known_are_predicted_by_the_users_mean_and_listed_last() -> None:
    held = Held(rows([4.0, 2.0, 0.0, 0.0]), rows([0.0, 0.0, 0.0, 5.0]), np.array([True]), np.array([0]), 1)
    tested = factored.Tested.of(held, 1.0, 5.0)
    found = tested.by_factors(np.array([[1.0]]), np.array([[4.0], [2.0], [1.0], [0.0]]))
    assert found["RMSE"].value == pytest.approx(2.0)  # 3 for 5
    assert found[RANK].value == 1.0


def test_predictions_are_cut_to_the_scale() -> None:
    held = Held(rows([4.0, 0.0]), rows([0.0, 5.0]), np.array([True]), np.array([0]), 1)
    assert factored.Tested.of(held, 1.0, 5.0).judged(np.array([[4.0, 99.0]]))["RMSE"].value == 0.0


def test_individual_models_see_only_their_own_rows() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(1, 6, (40, 6)).astype(np.float64)
    test = np.zeros_like(values)
    test[:, 5] = values[:, 5]
    train = values.copy()
    train[:, 5] = 0.0
    train[20:, 5] = values[20:, 5]  # nobody in the first entity trains with the last item
    entities = np.repeat([0, 1], 20)
    held = Held(
        sparse.csr_array(train), sparse.csr_array(test * (np.arange(40) < 20)[:, None]), np.arange(40) < 20, entities, 2
    )
    tested = factored.Tested.of(held, 1.0, 5.0)
    own = factored.individual(held, tested, How(2), np.random.default_rng(1))["RMSE"].value
    assert own == pytest.approx(tested.error(np.tile(tested.means[:, None], 6), tested.held).value)


def test_contributions_are_marks_and_centred_values() -> None:
    assert item_statistics.contributions(rows([5.0, 0.0], [0.0, 2.0])).toarray().tolist() == [
        [1.0, 0.0, 0.75, 0.0],
        [0.0, 1.0, 0.0, -0.75],
    ]


def test_noise_shrinks_item_means_towards_the_mean_of_all() -> None:
    noisy = np.array([100.0, 100.0, 50.0, -50.0])
    _, sure = item_statistics.shrunk(noisy, 1e-9)
    assert sure == pytest.approx([3.5 + 1.0, 3.5 - 1.0])
    _, unsure = item_statistics.shrunk(noisy, 1e12)
    assert unsure == pytest.approx([3.5, 3.5], abs=1e-3)
    counts, means = item_statistics.shrunk(np.array([-5.0, 0.0, 3.0, 9.0]), 1.0)
    assert counts.tolist() == [-5.0, 0.0]
    assert means.tolist() == [3.5, 3.5]


def test_a_prior_counts_as_so_many_ratings() -> None:
    found = item_statistics.local_means(rows([5.0, 0.0]), np.array([3.0, 4.0]), weight=3.0)
    assert found.tolist() == [3.5, 4.0]


def test_no_figure_of_items_depends_on_which_others_are_tried() -> None:
    """A quick run tries one epsilon of three: what both try has the same figures, residual factors too."""
    rng = np.random.default_rng(2)
    cells = rng.random((40, 30)) < 0.4
    train = sparse.csr_array(np.where(cells, rng.integers(1, 6, (40, 30)), 0.0))
    test = sparse.csr_array(np.where(~cells & (rng.random((40, 30)) < 0.1), 3.0, 0.0))
    held = Held(train, test, np.arange(40) % 2 == 0, np.arange(40) % 4 // 2, 2)
    quick, default = (
        [row for row, _ in item_statistics.rows(held, effort, 1)] for effort in (Effort.QUICK, Effort.DEFAULT)
    )
    assert len(quick) < len(default)
    assert all(row in default for row in quick)
    assert {names.PRIOR_RESIDUAL, names.PRIOR_RESIDUAL_ONCE, names.LOCAL_RESIDUAL} <= {row.method for row in quick}


def test_as_ratings_prototypes_of_zero_say_nothing_and_as_counts_they_do() -> None:
    centres = np.array([[4.0, 0.0, 2.0], [2.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    zeros = Prototypes(centres, np.ones(3))
    gaps = Prototypes(np.where(centres > 0.0, centres, np.nan), np.ones(3))
    ratings, counts = How(1), How(1, dense=True)
    assert np.array_equal(ratings.of_prototypes([zeros], by_size=True), ratings.of_prototypes([gaps], by_size=True))
    low, high = counts.of_prototypes([zeros], by_size=True), ratings.of_prototypes([zeros], by_size=True)
    assert not np.allclose(low / low[0], high / high[0])


def test_factors_of_residuals_are_ridge_regressions() -> None:
    rng = np.random.default_rng(4)
    cells = sparse.csr_array(rng.normal(size=(6, 8)) * (rng.random((6, 8)) < 0.6))
    others = rng.normal(size=(8, 3))
    found = residuals.regressed(cells, others, 0.1)
    for place in range(6):
        mine = others[cells[[place]].indices]
        penalty = 0.1 * (len(mine) + 4.0)
        wanted = np.linalg.solve(mine.T @ mine + penalty * np.eye(3), mine.T @ cells[[place]].data)
        assert found[place] == pytest.approx(wanted)
