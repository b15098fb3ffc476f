"""Compiled loops give what plain numpy gives."""

from types import ModuleType

import numpy as np
import pytest

from tacit.models import loops
from tacit.models.loops import plain as loops_plain

pytest.importorskip("numba", reason="the extra `fast` is not installed")
compiled = loops.choose(True)


@pytest.fixture
def distances() -> np.ndarray:
    return (np.random.default_rng(0).random(5000) * 3).astype(np.float32)


def test_numba_is_used_where_it_is_installed() -> None:
    assert loops.choose() is compiled
    assert loops.choose(False) is loops_plain


def test_distances() -> None:
    rng = np.random.default_rng(1)
    table, signal = rng.random((400, 38)).astype(np.float32), rng.normal(size=38).astype(np.float32)
    exact = np.abs(table.astype(np.float64) - signal).sum(axis=1)
    assert compiled.l1_distances(signal, table) == pytest.approx(exact, rel=1e-5)
    assert loops_plain.l1_distances(signal, table) == pytest.approx(exact, rel=1e-5)


def test_draws_are_the_same_for_the_same_uniform_numbers(distances: np.ndarray) -> None:
    uniforms = np.concatenate([np.random.default_rng(2).random(2000), [0.0, 1.0 - 2.0**-53]])
    for eta in (0.01, 0.1, 1.0):
        running = compiled.running_weights(distances, eta)
        assert running == pytest.approx(loops_plain.running_weights(distances, eta), rel=1e-10)
        drawn = compiled.draw_rows(running, uniforms)
        assert (drawn == loops_plain.draw_rows(running, uniforms)).all()
        assert 0 <= drawn.min() <= drawn.max() < 5000


def test_draws_follow_their_weights() -> None:
    distances = np.array([0.1, 0.2, 0.2], dtype=np.float32)
    uniforms = (np.arange(100_000) + 0.5) / 100_000
    for work in (compiled, loops_plain):
        shares = np.bincount(work.draw_rows(work.running_weights(distances, 0.1), uniforms), minlength=3) / 100_000
        assert shares == pytest.approx([0.5761169, 0.2119416, 0.2119416], abs=2e-5)


@pytest.mark.parametrize("eta", [0.02, 0.1, 0.5])
def test_the_heaviest_rows_hold_the_share_and_no_lighter_row_is_among_them(distances: np.ndarray, eta: float) -> None:
    weights = np.exp(-(distances - distances.min()) / eta)
    rows, kept = compiled.heavy_rows(distances, eta, 0.99, 10_000, 0.0)
    assert kept == pytest.approx(weights[rows], rel=1e-4)
    assert kept.sum() >= 0.99 * weights.sum()
    assert kept.sum() <= 0.9905 * weights.sum() + weights.max()
    assert np.delete(distances, rows).min() >= distances[rows].max()
    plain_rows, plain_kept = loops_plain.heavy_rows(distances, eta, 0.99, 10_000, 0.0)
    assert rows.tolist() == plain_rows.tolist()
    assert kept == pytest.approx(plain_kept)


def test_equal_distances_are_all_as_heavy() -> None:
    same = np.zeros(50, dtype=np.float32)
    for work in (compiled, loops_plain):
        rows, kept = work.heavy_rows(same, 0.1, 0.99, 10_000, 0.0)
        assert rows.tolist() == list(range(50))
        assert kept.tolist() == [1.0] * 50


@pytest.mark.parametrize("work", [compiled, loops_plain], ids=["compiled", "plain"])
def test_of_too_many_rows_the_heavy_ones_stay_and_sums_are_unbiased(work: ModuleType) -> None:
    rng = np.random.default_rng(4)
    distances = (rng.random(300) * 0.3).astype(np.float32)
    distances[17] = 0.0
    weights = np.exp(-(distances.astype(np.float64)) / 0.05)
    values = rng.random(300)
    found = []
    for offset in (np.arange(400) + 0.5) / 400:
        rows, counts = work.heavy_rows(distances, 0.05, 0.999999, 40, float(offset))
        assert counts.sum() == 40
        assert (np.diff(rows) > 0).all()
        assert abs(counts[rows == 17].sum() - 40 * weights[17] / weights.sum()) < 1.0
        found.append(counts @ values[rows] / 40)
    assert np.mean(found) == pytest.approx(weights @ values / weights.sum(), abs=3e-4)


def test_weights_far_away_are_as_exact_as_those_near() -> None:
    gaps = np.concatenate([[0.0], np.geomspace(1e-6, 43.9, 3000), [44.5, 800.0]]).astype(np.float32)
    rows, weights = compiled.heavy_rows(gaps, 1.0, 1.0 - 1e-15, 10_000, 0.0)
    exact = np.exp(-gaps.astype(np.float64))[rows]
    assert weights == pytest.approx(exact, rel=1e-10)
    assert len(rows) > 2_500


def test_stacked_rows() -> None:
    rng = np.random.default_rng(6)
    features, table = rng.random((9, 4)).astype(np.float32), rng.integers(0, 65535, (9, 7)).astype(np.uint16)
    rows, weights, columns = np.array([1, 4, 8]), np.array([1.0, 2.0, 0.5]), np.array([6, 0], dtype=np.int32)
    out, plain = np.empty((3, 7)), np.empty((3, 7))
    compiled.stack_rows(features, table, np.float32(1e-4), rows, weights, columns, out)
    loops_plain.stack_rows(features, table, np.float32(1e-4), rows, weights, columns, plain)
    assert out == pytest.approx(plain, rel=1e-6)
    expected = np.concatenate([np.ones((3, 1)), features[rows], table[rows][:, columns] * 1e-4], axis=1)
    assert out.T @ out == pytest.approx((expected * weights[:, None]).T @ expected, rel=1e-5)


def test_top_lists_are_the_same_with_ties_and_without() -> None:
    rng = np.random.default_rng(3)
    from tacit.models.items import classes_of

    for tied in (False, True):
        classes = classes_of(rng.integers(0, 30, 300)[:, None])
        scores = rng.random((60, len(classes))) * 5
        scores = (np.round(scores) if tied else scores).astype(np.float32)
        for r in (1, 20, 300):
            arguments = (scores, classes.sizes, classes.starts, classes.members, r)
            (found, kept, lengths), (plain, plain_kept, plain_lengths) = (
                w.top_lists(*arguments) for w in (compiled, loops_plain)
            )
            assert lengths.tolist() == plain_lengths.tolist()
            inside = np.arange(found.shape[1]) < lengths[:, None]
            assert (found[inside] == plain[inside]).all()
            assert (kept[inside] == plain_kept[inside]).all()
            assert kept[inside].sum() == 60 * min(r, 300)
