"""Moments of ratings over two domains: whole sums, what one user moves in them, and two steps in one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.guarantees import rho_for
from tacit.guarantees.concentrated import mu_for
from tacit.mechanisms import SYSTEM_NOISE, OffsetSums, PairMoments, RatingMoments, ReplayedNoise, rating_rows
from tacit.mechanisms.rating_rows import CLIP, COARSE
from tests.unit.mechanisms.test_rating_bounds import as_csr, odd_cells
from tests.unit.mechanisms.transfer_tables import (
    DELTA,
    FIXED,
    ITEMS,
    MOMENTS,
    MU,
    OFFSETS,
    OWN,
    PAIRS,
    PARTS,
    TRANSFER,
    costs,
    few_odd_cells,
    hostile,
    slow_moments,
    slow_offsets,
    slow_pairs,
)

LARGEST_ENTRY = CLIP // COARSE  # of a row

# --- what is added up


def test_sums_are_those_of_the_slow_reading(rng: np.random.Generator) -> None:
    users = odd_cells(rng, 80, ITEMS)
    few = few_odd_cells(rng, 80)
    for mechanism in (OFFSETS, replace(OFFSETS, bounds=FIXED, norm=1.5, mask=1.7), replace(OFFSETS, norm=100.0)):
        assert mechanism.totals(as_csr(users, ITEMS)).tolist() == slow_offsets(users, mechanism)
    for pairs in (PAIRS, replace(PAIRS, bounds=FIXED, norm=1.3), replace(PAIRS, head=(2, 3))):
        assert pairs.totals(as_csr(users, ITEMS)).tolist() == slow_pairs(users, pairs)
    for moments in (MOMENTS, replace(MOMENTS, bounds=FIXED, norm=1.3, n_source=5)):
        assert moments.totals(as_csr(few, ITEMS)).tolist() == slow_moments(few, moments)


@pytest.mark.parametrize("mechanism", PARTS, ids=lambda m: f"{m.name} {m.bounds.centre}")
def test_sums_add_up_over_users_in_any_order(mechanism: Any, rng: np.random.Generator) -> None:
    users = few_odd_cells(rng, 30)
    whole = mechanism.totals(as_csr(users, ITEMS))
    np.testing.assert_array_equal(mechanism.totals(as_csr(users[::-1], ITEMS)), whole)
    parts = sum(mechanism.totals(as_csr(users[i : i + 7], ITEMS)) for i in range(0, 30, 7))
    np.testing.assert_array_equal(parts, whole)
    assert mechanism.totals(as_csr([], ITEMS)).tolist() == [0] * mechanism.length
    assert whole.shape == (mechanism.length,)


@pytest.mark.parametrize("mechanism", PARTS, ids=lambda m: f"{m.name} {m.bounds.centre}")
def test_stretches_of_a_long_table_give_the_same_sums(
    mechanism: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = few_odd_cells(rng, 40)
    table = as_csr(users, ITEMS)
    dense = np.where(rng.random((40, ITEMS)) < 0.5, 3.3, math.nan)
    dense[:, 0] = np.arange(40) / 10
    wanted = mechanism.totals(table), replace(mechanism, mu=MU).totals(dense, ReplayedNoise(0))
    monkeypatch.setattr(rating_rows, "_CELLS", 13)
    assert len(list(rating_rows.stretches(table, ITEMS))) > 5
    np.testing.assert_array_equal(mechanism.totals(table), wanted[0])
    if not isinstance(mechanism, RatingMoments):  # whose dense rows are drawn from
        np.testing.assert_array_equal(mechanism.totals(dense), wanted[1])


@pytest.mark.parametrize("diagonal", [True, False])
def test_dense_and_sparse_products_are_the_same_whole_numbers(
    diagonal: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = rng.integers(-LARGEST_ENTRY, LARGEST_ENTRY + 1, (500, 140)) * (rng.random((500, 140)) < 0.3)
    cells[:, 7] = LARGEST_ENTRY
    table = sparse.csr_array(cells)
    exact = (cells.T @ cells)[np.triu_indices(140, 0 if diagonal else 1)]
    monkeypatch.setattr(rating_rows, "_CELLS", 140 * 64)
    monkeypatch.setattr(rating_rows, "_USERS", 200)  # several sums of floats, added up as whole numbers
    np.testing.assert_array_equal(rating_rows.dense_sums(table, diagonal=diagonal), exact)
    np.testing.assert_array_equal(rating_rows.sparse_sums(table, diagonal=diagonal), exact)
    np.testing.assert_array_equal(rating_rows.product_sums(table, diagonal=diagonal), exact)
    matrix = rating_rows.as_matrix(exact.astype(np.float64), 140, diagonal=diagonal)
    np.testing.assert_array_equal(matrix, cells.T @ cells - (0 if diagonal else np.diag(np.diag(cells.T @ cells))))


def test_floats_hold_the_largest_sum_of_products() -> None:
    assert rating_rows._USERS * LARGEST_ENTRY**2 <= 1 << 53
    assert LARGEST_ENTRY == 1 << 13  # as the documentation of product_sums says


def test_sparse_products_are_taken_where_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rating_rows, "dense_sums", lambda rows, diagonal: "dense")
    monkeypatch.setattr(rating_rows, "sparse_sums", lambda rows, diagonal: "sparse")
    one_each = sparse.csr_array(np.eye(100, dtype=np.int64))
    assert rating_rows.product_sums(one_each, diagonal=True) == "sparse"
    assert rating_rows.product_sums(sparse.csr_array(np.ones((100, 100), dtype=np.int64)), diagonal=True) == "dense"


# --- what one user moves


@pytest.mark.parametrize("mechanism", PARTS, ids=lambda m: f"{m.name} {m.bounds.centre}")
@pytest.mark.parametrize("norm", [0.5, 2.0, 4.0, 40.0])
def test_no_user_costs_more_than_mu(mechanism: Any, norm: float, rng: np.random.Generator) -> None:
    narrowed = replace(mechanism, norm=norm)
    assert max(costs(narrowed, narrowed.totals(row[None, :], SYSTEM_NOISE)) for row in hostile(rng)[::2]) <= 1


def test_the_bounds_are_attained(rng: np.random.Generator) -> None:
    """But for rounding: less noise than this would be too little."""
    ends = np.array([[1.0, 5.0, 1.0, 5.0, 1.0, 5.0]])
    assert costs(OFFSETS, OFFSETS.totals(ends)) > 0.9999
    assert costs(replace(PAIRS, norm=2.0), replace(PAIRS, norm=2.0).totals(ends)) > 0.9995
    assert costs(PAIRS, PAIRS.totals(ends)) == 1  # four items at the clip: norm 4
    assert costs(replace(PAIRS, norm=40.0), replace(PAIRS, norm=40.0).totals(ends)) == 1  # no more than clip for each
    moments = replace(MOMENTS, bounds=FIXED)
    assert costs(moments, moments.totals(ends, ReplayedNoise(0))) == 1
    few = replace(moments, most_items=3, norm=40.0)
    assert costs(few, few.totals(ends, ReplayedNoise(0))) == 1
    # a norm below the clip: one item takes it all
    one = replace(moments, norm=1.0, most_items=1)
    assert costs(one, one.totals(ends, ReplayedNoise(0))) == 1


def test_known_lengths_of_one_users_products() -> None:
    """z = (2, 2, 2, 2): the upper triangle of z z^T, and what stands above the diagonal alone."""
    rows = np.array([[5.0, 5.0, 5.0, 5.0]])
    pairs = PairMoments(4, (0, 1, 2, 3), FIXED, 1.0, DELTA)
    off = math.sqrt(sum(int(x) ** 2 for x in pairs.totals(rows))) * float(pairs.noise_law.step)
    assert off == pytest.approx(9.797959, abs=1e-6)
    assert pairs.noise_law.sd == pytest.approx(9.797959, abs=1e-6)
    moments = RatingMoments(4, 2, FIXED, 1.0, DELTA, most_items=4, shares=(1.0, 1e-9, 1e-9, 1e-9))
    upper = math.sqrt(sum(int(x) ** 2 for x in moments.totals(rows)[:10])) * float(moments.step**2)
    assert upper == pytest.approx(12.649111, abs=1e-6)
    assert moments.sds[0] == pytest.approx(12.649111, abs=1e-6)


def test_deviations_are_those_of_the_formulas() -> None:
    many = tuple(range(1000))
    assert PairMoments(1000, many, OWN, 0.5, DELTA).noise_law.sd == pytest.approx(16.0 / math.sqrt(2.0) / 0.5, rel=1e-3)
    offsets = OffsetSums(9, OWN, 0.5, DELTA, norm=8.0, mask=0.25).release(as_csr([], 9)).value
    assert (offsets.value_sd, offsets.count_sd) == (pytest.approx(16.0), pytest.approx(64.0))
    moments = RatingMoments(1000, 500, OWN, 0.5, DELTA)
    wanted = [4.0 * math.sqrt(10.0), 4.0, math.sqrt(50.0), 1.0]
    for sd, length, share in zip(moments.sds, wanted, (0.75, 0.10, 0.13, 0.02), strict=True):
        assert sd == pytest.approx(length / (0.5 * math.sqrt(share)))


def test_known_losses_at_one_in_a_million() -> None:
    assert mu_for(1.0, 1e-6) == pytest.approx(0.236704, abs=1e-6)
    assert mu_for(8.0, 1e-6) == pytest.approx(1.531545, abs=1e-6)
    for epsilon, simple in ((1.0, 0.017469), (8.0, 0.909707)):
        assert rho_for(epsilon, 1e-6, "simple") == pytest.approx(simple, abs=5e-7)
        # the default allows more, and never as much as an exactly Gaussian loss, which is of mu^2 / 2
        assert 1.1 * simple < rho_for(epsilon, 1e-6) < mu_for(epsilon, 1e-6) ** 2 / 2.0
        assert replace(TRANSFER, mu=mu_for(epsilon, 1e-6)).guarantee.epsilon == pytest.approx(epsilon, rel=1e-9)
