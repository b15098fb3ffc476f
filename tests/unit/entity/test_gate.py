"""The gate: what it holds out, how it measures, which fit it keeps, and that its report does not leave."""

import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from tacit.entity.fit import (
    CONSTANT,
    DATA_FREE,
    NO_INFORMATION,
    FitKind,
    FitSettings,
    GateReport,
    Holdout,
    LocalFit,
    data_free_items,
    fit_local,
    gated_fit,
    hold_out_cells,
    mean_rank,
    root_mean_square,
)
from tacit.guarantees import Release
from tacit.mechanisms.inputs import ProfileBounds
from tacit.mechanisms.noise import Noise, ReplayedNoise
from tacit.mechanisms.sparse_recovery import Prototypes
from tacit.mechanisms.tree_prototypes import TreePrototypes
from tacit.models.nonnegative import Factorisation

STARS = FitSettings(value_bound=5.0)
CLICKS = FitSettings(value_bound=1.0, zeros_observed=True)


def world(users: int, share: float, seed: int, items: int = 60) -> tuple[sparse.csr_array, np.ndarray]:
    """Ratings of a table of rank 2, and its items' true factors."""
    rng = np.random.default_rng(seed)
    factors = np.random.default_rng(99).gamma(1.0, 1.0, (items, 2))
    truth = np.clip(rng.gamma(1.0, 1.0, (users, 2)) @ factors.T + 0.2, 0.0, 5.0)
    return sparse.csr_array(np.where(rng.random(truth.shape) < share, truth, 0.0)), factors


def noise_factors(seed: int, items: int = 60) -> np.ndarray:
    return np.random.default_rng(seed).random((items, 2))


def gated(table: sparse.csr_array, items: np.ndarray, settings: FitSettings = STARS, seed: int = 5) -> LocalFit:
    return gated_fit(table, items, noise_factors(50, items.shape[0]), settings, rng=np.random.default_rng(seed))


def test_a_tenth_is_held_out_and_nobody_loses_everything() -> None:
    table, _ = world(40, 0.3, 1)
    split = hold_out_cells(table, np.random.default_rng(3))
    assert split.size == -(-table.nnz // 10)
    again = split.train.tolil()
    for user, item, value in zip(split.users, split.items, split.values, strict=True):
        assert split.train[user, item] == 0.0
        again[user, item] = value
    assert np.array_equal(again.toarray(), table.toarray())
    assert split.train.nnz == table.nnz - split.size  # left out, not set to a known 0
    other = hold_out_cells(table, np.random.default_rng(4))
    assert not np.array_equal(other.items, split.items)
    lonely = sparse.csr_array(np.eye(30))
    assert hold_out_cells(lonely, np.random.default_rng(3)).size == 0
    pairs = sparse.csr_array(np.kron(np.eye(3), np.ones((1, 2))))
    split = hold_out_cells(pairs, np.random.default_rng(3))
    assert split.size == 1
    assert np.diff(split.train.indptr).min() == 1


def test_every_cell_may_be_held_out() -> None:
    table = sparse.csr_array(np.ones((2, 3)))
    seen = Counter()
    for seed in range(600):
        split = hold_out_cells(table, np.random.default_rng(seed))
        seen[(int(split.users[0]), int(split.items[0]))] += 1
    assert len(seen) == 6
    assert min(seen.values()) > 60  # 100 expected


def test_good_factors_are_used_by_a_small_entity_and_bad_ones_are_not() -> None:
    small, factors = world(15, 0.3, 2)
    fitted = gated(small, factors)
    assert fitted.kind in (FitKind.GLOBAL, FitKind.BLEND)
    assert fitted.report.informative
    assert fitted.report.flag is None
    large, _ = world(300, 0.5, 3)
    alone = gated(large, noise_factors(1))
    assert alone.kind is not FitKind.GLOBAL
    assert not alone.report.informative
    assert alone.report.flag == NO_INFORMATION


def test_the_best_on_held_out_cells_is_fitted_again_to_all_cells() -> None:
    for seed in range(6):
        table, factors = world(30, 0.3, seed)
        mixed = factors + 3.0 * seed * noise_factors(seed)
        fitted = gated(table, mixed, seed=seed)
        scores = fitted.report.scores
        assert set(scores) == {*map(str, FitKind), DATA_FREE, CONSTANT}
        assert scores[fitted.kind] == min(scores[kind] for kind in FitKind)
        assert fitted.report.chosen is fitted.kind
        split = hold_out_cells(table, np.random.default_rng(seed))
        assert fitted.report.cells == split.size
        for kind in (FitKind.GLOBAL, FitKind.BLEND):
            expected = fit_local(split.train, mixed, kind, STARS, rng=np.random.default_rng(0))
            assert scores[kind] == pytest.approx(root_mean_square(expected, split))
        control = fit_local(split.train, noise_factors(50), FitKind.GLOBAL, STARS, rng=np.random.default_rng(0))
        assert scores[DATA_FREE] == pytest.approx(root_mean_square(control, split))
        flat = fit_local(split.train, np.ones((60, 1)), FitKind.GLOBAL, STARS, rng=np.random.default_rng(0))
        assert scores[CONSTANT] == pytest.approx(root_mean_square(flat, split))
        if fitted.kind is not FitKind.LOCAL:
            whole = fit_local(table, mixed, fitted.kind, STARS, rng=np.random.default_rng(0))
            assert np.array_equal(fitted.users, whole.users)


def test_of_several_controls_the_best_counts() -> None:
    table, factors = world(30, 0.3, 2)
    poor, good = noise_factors(50), factors + 0.01
    each = [
        gated_fit(table, poor, one, STARS, rng=np.random.default_rng(5)).report.scores[DATA_FREE]
        for one in (poor, good)
    ]
    assert each[1] < each[0]
    both = gated_fit(table, poor, [poor, good], STARS, rng=np.random.default_rng(5)).report
    assert both.scores[DATA_FREE] == each[1]


def test_the_gate_does_not_choose_by_the_cells_it_trains_on() -> None:
    # Rank 8 fitted to a handful of cells reproduces them, and predicts badly: chosen by training error, local would win.
    table, factors = world(12, 0.25, 4)
    wide = np.hstack([factors, np.zeros((60, 6))])
    fitted = gated(table, wide)
    own = fit_local(table, wide, FitKind.LOCAL, STARS, rng=np.random.default_rng(0))
    users, items = table.tocoo().coords
    trained = {
        kind: np.square(
            fit_local(table, wide, kind, STARS, rng=np.random.default_rng(0)).at(users, items) - table.data
        ).mean()
        for kind in FitKind
    }
    assert min(trained, key=lambda kind: trained[kind]) is FitKind.LOCAL
    assert own.kind is FitKind.LOCAL
    assert fitted.kind is not FitKind.LOCAL


def test_without_cells_to_hold_out_the_shared_factors_are_used() -> None:
    for table in (sparse.csr_array((0, 60)), sparse.csr_array((4, 60)), sparse.csr_array(np.eye(5, 60))):
        for settings in (STARS, CLICKS):
            fitted = gated(table, noise_factors(1), settings)
            assert fitted.kind is FitKind.GLOBAL
            assert not fitted.report.informative
            assert np.isnan(fitted.report.scores["global"])


def test_a_tie_goes_to_the_entitys_own_fit() -> None:
    table = sparse.csr_array(np.full((6, 4), 3.0))
    blank = np.zeros((4, 1))
    fitted = gated_fit(table, blank, blank, FitSettings(value_bound=3.0, ridge=0.0), rng=np.random.default_rng(1))
    scores = fitted.report.scores
    assert scores[FitKind.GLOBAL] == scores[FitKind.BLEND] == pytest.approx(0.0, abs=1e-12)
    assert fitted.kind is min(FitKind, key=lambda kind: scores[kind])


def test_controls_that_do_as_well_flag_the_release() -> None:
    base = {"local": 1.0, "blend": 0.9, "global": 0.8, DATA_FREE: 0.85, CONSTANT: 0.9}
    assert GateReport("RMSE", base, FitKind.GLOBAL, 3).informative
    for name in (DATA_FREE, CONSTANT):
        for score in (0.8, 0.7):
            report = GateReport("RMSE", {**base, name: score}, FitKind.GLOBAL, 3)
            assert report.flag == NO_INFORMATION


def test_the_mean_rank_of_a_case_solved_by_hand() -> None:
    scores = np.array([0.9, 0.1, 0.5, 0.5])
    fit = LocalFit(FitKind.GLOBAL, np.ones((1, 1)), scores[:, None], np.zeros(1), 1.0)
    split = Holdout(sparse.csr_array((1, 4)), np.array([0, 0]), np.array([0, 2]), np.array([5.0, 3.0]))
    assert mean_rank(fit, split) == pytest.approx(0.1875)
    trained = sparse.csr_array(np.array([[1.0, 0.0, 0.0, 0.0]]))  # the best is no candidate: first with a tie, of three
    split = Holdout(trained, np.array([0]), np.array([2]), np.array([3.0]))
    assert mean_rank(fit, split) == pytest.approx(0.25)


def test_the_mean_rank_does_not_depend_on_how_many_are_scored_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table, factors = world(30, 0.3, 6)
    split = hold_out_cells(table, np.random.default_rng(1))
    fit = fit_local(
        split.train,
        factors,
        FitKind.GLOBAL,
        FitSettings(value_bound=5.0, zeros_observed=True),
        rng=np.random.default_rng(0),
    )
    whole = mean_rank(fit, split)
    monkeypatch.setattr("tacit.entity.fit._CELLS", 7 * 60)
    assert mean_rank(fit, split) == pytest.approx(whole)
    assert 0.0 < whole < 0.5


def test_clicks_are_gated_by_rank() -> None:
    table, factors = world(25, 0.4, 7)
    table.data[:] = (table.data > 1.0) * 1.0
    table.eliminate_zeros()
    fitted = gated(table, factors, CLICKS)
    assert fitted.report.measure == "mean percentile rank"
    assert fitted.report.scores[CONSTANT] == pytest.approx(0.5)  # all alike: all tie
    assert fitted.report.scores["global"] < 0.5


class Watched:
    """A mechanism of which it is kept what it was given."""

    def __init__(self) -> None:
        self.mechanism = TreePrototypes(ProfileBounds(6, 3, 5.0), 2, 1.0, 1e-6)
        self.shapes: list[tuple[int, int]] = []

    def release(self, rows: sparse.csr_array, noise: Noise) -> Release[Prototypes]:
        self.shapes.append(rows.shape)
        return self.mechanism.release(rows, noise)


def test_data_free_factors_come_from_as_many_releases_of_nobody() -> None:
    watched, how = Watched(), Factorisation(rank=2, seed=3)
    free = data_free_items(watched, 6, 3, how, noise=ReplayedNoise(1))
    assert watched.shapes == [(0, 6)] * 3
    assert free.shape == (6, 2)
    noise = ReplayedNoise(1)
    apart = [watched.mechanism.release(sparse.csr_array((0, 6)), noise).value for _ in range(3)]
    np.testing.assert_array_equal(free, how.of(apart))
    assert not np.array_equal(free, data_free_items(watched, 6, 3, how, noise=ReplayedNoise(2)))


class CutOff:
    """A mechanism whose noise went below 0 in some cells and was cut off there."""

    def __init__(self, instead: float) -> None:
        self.centres = np.array([[3.0, instead, 1.0], [instead] * 3, [2.0, 4.0, instead]])

    def release(self, rows: sparse.csr_array, noise: Noise) -> Release[Prototypes]:
        return SimpleNamespace(value=Prototypes(self.centres, np.array([5.0, 9.0, 2.0])))  # type: ignore[return-value]


def test_data_free_factors_treat_a_released_zero_as_shared_factors_do() -> None:
    ratings, counts = (Factorisation(rank=1, seed=3, zeros_observed=observed) for observed in (False, True))
    zeros = data_free_items(CutOff(0.0), 3, 2, ratings)
    np.testing.assert_array_equal(zeros, data_free_items(CutOff(np.nan), 3, 2, ratings))
    assert not np.allclose(zeros, data_free_items(CutOff(0.0), 3, 2, counts))


def planted(users: int, seed: int) -> np.ndarray:
    """Counts of users of six groups over 20 items."""
    groups = np.random.default_rng(1).gamma(0.5, 4.0, (6, 20))
    rng = np.random.default_rng(seed)
    return np.clip(rng.poisson(groups[rng.integers(6, size=users)]), 0, 20).astype(float)


def told(epsilon: float, runs: int) -> list[bool]:
    """Of several runs by a real mechanism: whether the gate of a small entity finds information in the release."""
    mechanism, how = TreePrototypes(ProfileBounds(20, 20, 20.0), 6, epsilon, 1e-6), Factorisation(rank=6, seed=3)
    found = []
    for run in range(runs):
        noise, rng = ReplayedNoise(run), np.random.default_rng(run)
        items = how.of([mechanism.release(planted(3000, 10 * run + entity), noise).value for entity in range(3)])
        free = [data_free_items(mechanism, 20, 3, how, noise=noise) for _ in range(5)]
        own = sparse.csr_array(np.where(rng.random((40, 20)) < 0.5, planted(40, 10 * run + 9) + 1e-9, 0.0))
        found.append(gated_fit(own, items, free, FitSettings(value_bound=20.0), rng=rng).report.informative)
    return found


def test_a_real_release_informs_at_a_large_epsilon() -> None:
    assert sum(told(8.0, 6)) == 6


def test_a_release_that_is_all_noise_is_flagged() -> None:
    # It beats five controls of the same noise once in six times at most: more than 4 of 8 has a chance below 1 in 200.
    assert sum(told(0.001, 8)) <= 4


def test_a_report_says_that_it_is_private() -> None:
    table, factors = world(15, 0.3, 2)
    report = gated(table, factors).report
    assert repr(report) == "GateReport(private: stays inside the entity)"
    assert str(report) == repr(report)
    assert "array" not in repr(hold_out_cells(table, np.random.default_rng(1)))
    with pytest.raises(TypeError):
        json.dumps(report)
