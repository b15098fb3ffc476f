"""Rows on the grid: every row cut by itself, in whole numbers, to a norm of at most 2^20 steps."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput
from tacit.mechanisms import FeatureSlate, GaussianKernel, GridVector, NaturalSlate, NaturalSubset, TemperedSlate
from tacit.mechanisms.inputs import STEPS, bounded_row_sum, bounded_rows, root_up


def image(row: list[float], bound: float, norm: int) -> list[int]:
    """One row by the slow way, in fractions: to the grid towards zero, then shrunk if it is too long."""
    cut = [Fraction(max(-bound, min(bound, x))) if math.isfinite(x) else Fraction(0) for x in row]
    steps = [math.trunc(x / Fraction(bound) * STEPS) for x in cut]
    if norm == 1:
        length = sum(abs(s) for s in steps)
    else:
        square = sum(s * s for s in steps)
        length = math.isqrt(square) + (math.isqrt(square) ** 2 < square)
    if length > STEPS:
        steps = [int(math.copysign(abs(s) * STEPS // length, s)) for s in steps]
    return steps


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("bound", [1.0, 0.25, 3.0])
def test_a_row_has_the_image_of_the_slow_way(norm: int, bound: float, rng: np.random.Generator) -> None:
    for _ in range(100):
        row = (np.round(rng.normal(size=5) * 64) / 64 * bound).tolist()  # exact in floats: no last bit decides
        assert bounded_row_sum([row], 5, bound, norm).tolist() == image(row, bound, norm)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_norm_of_an_image_is_at_most_the_bound_exactly(norm: int, rng: np.random.Generator) -> None:
    rows = [
        [1e308] * 7,
        [5e-324] * 7,
        [1.0, -1.0] * 3 + [1.0],
        [math.nan, math.inf, -math.inf, 1.0, 1.0, 0.0, -0.0],
        *(rng.normal(size=7) * 10.0 ** rng.integers(-6, 6) for _ in range(200)),
        *(np.full(7, 1.0 / 7**0.5) * (1 + 2.0**-52 * i) for i in range(5)),
    ]
    for row in rows:
        steps = [int(s) for s in bounded_row_sum([row], 7, 1.0, norm)]
        assert (sum(map(abs, steps)) if norm == 1 else sum(s * s for s in steps)) <= STEPS**norm


@pytest.mark.parametrize("steps", [1 << 16, STEPS])
def test_a_row_too_long_by_less_than_a_step_is_cut_as_well(steps: int) -> None:
    for more in (1, 2, math.isqrt(2 * steps)):  # (steps + 1)^2 is more than steps^2 + more^2 in all of them
        row = bounded_rows([[1.0, -more / steps]], 2, 1.0, 2, steps).toarray()[0].tolist()
        assert row == [steps * steps // (steps + 1), -(more * steps // (steps + 1))]
        assert sum(cell * cell for cell in row) <= steps * steps
    row = bounded_rows([[1.0, -1.0 / steps]], 2, 1.0, 1, steps).toarray()[0].tolist()
    assert row == [steps - 1, 0]
    full = bounded_rows([[0.6, -0.8]], 2, 1.0, 2, 5 * steps).toarray()[0].tolist()
    assert full == [3 * steps, -4 * steps]  # as long as the bound: not cut


@pytest.mark.parametrize("norm", [1, 2])
def test_a_row_within_the_bound_is_only_rounded_towards_zero(norm: int) -> None:
    assert bounded_row_sum([[0.5, -0.25, 0.0]], 3, 1.0, norm).tolist() == [STEPS // 2, -STEPS // 4, 0]
    small = 1.7 / STEPS
    assert bounded_row_sum([[small, -small, 0.9 / STEPS]], 3, 1.0, norm).tolist() == [1, -1, 0]
    assert bounded_row_sum([[1.0, 0.0, 0.0]], 3, 1.0, norm).tolist() == [STEPS, 0, 0]


@pytest.mark.parametrize("norm", [1, 2])
def test_a_further_row_adds_its_own_image_and_changes_nothing_else(norm: int, rng: np.random.Generator) -> None:
    table = rng.normal(size=(50, 6)) * 10.0 ** rng.integers(-5, 5, size=(50, 1))
    table[7, 2], table[9, 0] = math.nan, math.inf
    for cut in range(1, 50):
        difference = bounded_row_sum(table[: cut + 1], 6, 0.7, norm) - bounded_row_sum(table[:cut], 6, 0.7, norm)
        np.testing.assert_array_equal(difference, bounded_row_sum(table[cut : cut + 1], 6, 0.7, norm))


@pytest.mark.parametrize("norm", [1, 2])
def test_a_disorderly_row_does_not_change_the_image_of_an_orderly_one(norm: int) -> None:
    """Duplicates anywhere make the whole table canonical; the other rows must not notice."""
    orderly = sparse.csr_array(np.array([[0.1, 0.2, 0.7, 0.3]]))
    messy = sparse.csr_array((np.array([0.3, 0.1, 0.3, 0.0]), np.array([3, 1, 3, 0]), np.array([0, 4])), shape=(1, 4))
    both = sparse.csr_array(
        (
            np.concatenate([orderly.data, messy.data]),
            np.concatenate([orderly.indices, messy.indices]),
            np.array([0, 4, 8]),
        ),
        shape=(2, 4),
    )
    alone = [bounded_row_sum(table, 4, 1.0, norm) for table in (orderly, messy)]
    np.testing.assert_array_equal(bounded_row_sum(both, 4, 1.0, norm), alone[0] + alone[1])
    np.testing.assert_array_equal(alone[1], bounded_row_sum([[0.0, 0.1, 0.0, 0.6]], 4, 1.0, norm))


@pytest.mark.parametrize("norm", [1, 2])
def test_sparse_and_dense_rows_have_the_same_sum(norm: int, rng: np.random.Generator) -> None:
    dense = rng.normal(size=(30, 9)) * (rng.random((30, 9)) < 0.4)
    for table in (sparse.csr_array(dense), sparse.csc_array(dense), sparse.coo_array(dense), sparse.csr_matrix(dense)):
        np.testing.assert_array_equal(bounded_row_sum(table, 9, 0.8, norm), bounded_row_sum(dense, 9, 0.8, norm))


def test_the_callers_table_stays_as_it_is() -> None:
    table = sparse.csr_array((np.array([1.0, 5.0, 1.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    bounded_row_sum(table, 3, 1.0, 1)
    assert table.data.tolist() == [1.0, 5.0, 1.0]
    assert table.indices.tolist() == [2, 0, 2]
    dense = np.array([[9.0, math.nan, -9.0]])
    bounded_row_sum(dense, 3, 1.0, 2)
    np.testing.assert_array_equal(dense, [[9.0, math.nan, -9.0]])


def test_no_rows_sum_to_zero_and_whole_numbers_are_welcome() -> None:
    assert bounded_row_sum(np.zeros((0, 3)), 3, 1.0, 1).tolist() == [0, 0, 0]
    assert bounded_row_sum(np.array([[1, 0, 0]], dtype=np.int8), 3, 2.0, 1).tolist() == [STEPS // 2, 0, 0]
    assert bounded_row_sum(sparse.csr_array(np.array([[True, False]])), 2, 1.0, 1).tolist() == [STEPS, 0]


@pytest.mark.parametrize("bound", [5e-324, 1e-308, 1e308])
@pytest.mark.parametrize("norm", [1, 2])
def test_extreme_bounds_neither_overflow_nor_warn(bound: float, norm: int) -> None:
    assert bounded_row_sum([[bound, 0.0], [0.0, -1.7e308]], 2, bound, norm).tolist() == [STEPS, -STEPS]


def test_a_table_of_the_wrong_width_is_refused() -> None:
    for table in ([[1.0, 2.0]], sparse.csr_array((1, 2)), np.zeros((0, 4))):
        with pytest.raises(InvalidInput, match="rows of 3 numbers"):
            bounded_row_sum(table, 3, 1.0, 1)


def test_a_sparse_row_without_a_table_is_refused() -> None:
    with pytest.raises(InvalidInput):
        bounded_row_sum(sparse.coo_array(np.array([1.0, 2.0])), 2, 1.0, 1)


def test_roots_are_rounded_up_exactly_up_to_the_largest_row() -> None:
    roots = np.array([1, 2, 3, (1 << 20) - 1, 1 << 20, (1 << 26) + 1, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31])
    squares = (roots.astype(object) ** 2).tolist()
    for away in (-2, -1, 0, 1, 2):
        near = [s + away for s in squares if 0 <= s + away <= 1 << 62]
        exact = [math.isqrt(s) + (math.isqrt(s) ** 2 < s) for s in near]
        assert root_up(np.array(near, dtype=np.int64)).tolist() == exact
    assert root_up(np.array([0], dtype=np.int64)).tolist() == [0]


def test_the_longest_possible_row_fits() -> None:
    """2^22 coordinates at the bound: the sum of squares is 2^62."""
    steps = bounded_row_sum(np.ones((1, 1 << 22)), 1 << 22, 1.0, 2)
    assert set(steps.tolist()) == {STEPS >> 11}


def test_grid_vectors_turn_into_the_units_of_the_input() -> None:
    vector = GridVector(np.array([STEPS, -STEPS // 2, 0]), Fraction(3, STEPS))
    assert vector.to_floats().tolist() == [3.0, -1.5, 0.0]


ODD_CELLS = [5e-324, -5e-324, 1e-310, 2.3e-308, 1e-160, 1e160, 1e308, -1e308, math.nan, math.inf, -math.inf, -0.0]
FEATURES = np.array([[1.0, 0.5, 0, 0], [0, 1, 0.25, 0], [0, 0.1, 1, 0], [0.3, 0, 0, 1], [1, 1, 0, 1e-3]])
TAKERS: dict[str, Any] = {
    "exact": NaturalSlate(4, 2, 1.0, bound=4.0),
    "hybrid": NaturalSlate(4, 2, 1.0, bound=4.0, sampler="hybrid"),
    "split": NaturalSlate(4, 2, 1.0, bound=4.0, sampler="split"),
    "dense": NaturalSlate(4, 2, 1.0, bound=4.0, sampler="dense"),
    "subset": NaturalSubset(4, 1.0, bound=4.0),
    "kernel": GaussianKernel(4, 1.0, 1e-6, bound=4.0),
    "feature": FeatureSlate(FEATURES, 2, 1.0, bound=4.0),
    "tempered": TemperedSlate(FEATURES[:4], 2, 1.0, high=10.0),
    "tempered, few votes": TemperedSlate(FEATURES[:4], 2, 1.0, high=10.0, items_each=1, steps=1000),
}


@pytest.mark.parametrize("name", TAKERS)
def test_a_caller_who_has_numpy_raise_is_not_told_of_a_cell(name: str) -> None:
    tables = [[[cell] * 4] for cell in ODD_CELLS]
    tables += [[[cell, 1.0, 0.0, -1.0], [1e-5, cell, cell, 1.0]] for cell in ODD_CELLS]
    tables.append([[cell, other, 1.0, 0.0] for cell in ODD_CELLS for other in ODD_CELLS])
    with np.errstate(all="raise"):
        for table in tables:
            TAKERS[name].release(table)
            TAKERS[name].release(sparse.csr_array(np.array(table)))
