"""Public bounds of a row: what comes out is within all of them, exactly, and depends on that row alone."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms import SYSTEM_NOISE, ReplayedNoise
from tacit.mechanisms.inputs import MOST_USERS, ProfileBounds
from tacit.mechanisms.inputs import VALUE_STEPS as STEPS
from tests.contracts.mechanism import ALARM, chi_square

ODD = [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-300, 0.3, 2.5, 1e300]


def slow(row: list[float], bounds: ProfileBounds, *, l2: bool) -> list[int]:
    """Python's own whole numbers, for rows with no more numbers than may stay."""
    lowest = -1.0 if bounds.signed else 0.0
    cells = [math.trunc(max(lowest, min(1.0, x / bounds.value_bound)) * STEPS) if math.isfinite(x) else 0 for x in row]
    most = min(bounds.items_each * STEPS, math.floor(Fraction(bounds.l1) / bounds.step))
    total = sum(map(abs, cells))
    if total > most:
        cells = [(1 if c > 0 else -1) * (abs(c) * most // total) for c in cells]
    squares = sum(c * c for c in cells)
    if l2 and squares > bounds.l2_squared_steps:
        root = math.isqrt(squares - 1) + 1
        cells = [(1 if c > 0 else -1) * (abs(c) * math.isqrt(bounds.l2_squared_steps) // root) for c in cells]
    return cells


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("l2", [False, True])
def test_rows_are_cut_as_in_pythons_whole_numbers(signed: bool, l2: bool) -> None:
    rows = np.random.default_rng(1).choice([*ODD, 0.1, 1.0, 1.9], size=(200, 6))
    bounds = ProfileBounds(6, 6, 2.0, l1_bound=4.0, l2_bound=2.2, signed=signed)
    found = bounds.bounded(rows, SYSTEM_NOISE, l2=l2)
    assert found.dtype == np.int64
    assert found.toarray().tolist() == [slow(row, bounds, l2=l2) for row in rows.tolist()]


@given(
    rows=st.lists(st.lists(st.floats(width=32), min_size=5, max_size=5), min_size=1, max_size=6),
    each=st.integers(1, 5),
    l1=st.floats(1e-3, 20.0),
    l2=st.floats(1e-3, 20.0),
    signed=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_no_bound_is_ever_exceeded(rows: Any, each: int, l1: float, l2: float, signed: bool) -> None:
    bounds = ProfileBounds(5, each, 1.5, l1_bound=l1, l2_bound=l2, signed=signed)
    table = bounds.bounded(np.array(rows), SYSTEM_NOISE, l2=True).toarray()
    size = np.abs(table)
    assert (table >= (-STEPS if signed else 0)).all()
    assert (size <= STEPS).all()
    assert ((table != 0).sum(axis=1) <= each).all()
    assert (size.sum(axis=1) <= math.floor(Fraction(l1) / bounds.step)).all()
    assert (size.sum(axis=1) <= bounds.l1_steps).all()
    assert ((size * size).sum(axis=1) <= math.floor((Fraction(l2) / bounds.step) ** 2)).all()


@pytest.mark.parametrize("most", [1e-290, 1e290])
def test_the_widest_and_the_finest_bounds_have_steps_that_are_floats(most: float) -> None:
    bounds = ProfileBounds(3, 3, most)
    assert float(bounds.step) * STEPS == pytest.approx(most, rel=1e-15)
    assert math.isfinite(bounds.l1)
    assert bounds.l2 > 0
    assert bounds.bounded([[most, most / 2, 0.0]], SYSTEM_NOISE).toarray().tolist() == [[STEPS, STEPS // 2, 0]]


def test_norms_left_out_are_bounded_by_what_the_others_imply() -> None:
    bounds = ProfileBounds(10, 4, 3.0)
    assert (bounds.l1, bounds.l2) == (12.0, 6.0)
    assert ProfileBounds(10, 4, 3.0, l1_bound=3.0).l2 == 3.0  # |x|_2^2 <= |x|_inf |x|_1
    assert ProfileBounds(10, 4, 3.0, l1_bound=100.0, l2_bound=100.0).l1 == 12.0
    assert bounds.step == Fraction(3, STEPS)


def test_a_crowded_row_keeps_so_many_of_its_items_each_equally_often() -> None:
    bounds = ProfileBounds(5, 2, 1.0)
    kept = bounds.bounded(np.tile([1.0, 1.0, 0.0, 1.0, 0.5], (30_000, 1)), ReplayedNoise(3))
    assert (np.diff(kept.indptr) == 2).all()
    dense = kept.toarray()
    pairs = [(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (3, 4)]
    counts = np.array([((dense[:, i] > 0) & (dense[:, j] > 0)).sum() for i, j in pairs])
    assert chi_square(counts, np.full(6, 1 / 6)) > ALARM


def test_other_users_rows_change_nothing_but_the_draw_of_what_stays() -> None:
    bounds = ProfileBounds(6, 6, 1.0, l1_bound=2.0, l2_bound=1.0)
    rows = np.random.default_rng(0).random((9, 6))
    alone = [bounds.bounded(row[None], SYSTEM_NOISE, l2=True).toarray()[0].tolist() for row in rows]
    assert bounds.bounded(rows, SYSTEM_NOISE, l2=True).toarray().tolist() == alone


def test_rows_that_are_not_crowded_draw_no_noise() -> None:
    class Refusing:
        caveat = None

        def draw(self, count: int) -> bytes:
            raise AssertionError

    assert ProfileBounds(3, 2, 1.0).bounded([[1.0, 1.0, 0.0]], Refusing()).nnz == 2


def test_cells_that_count_as_0_take_no_place_among_those_that_stay() -> None:
    row = [math.nan, -1.0, 1e-9, math.inf, 1.0, 0.5]
    for _ in range(10):
        assert ProfileBounds(6, 2, 1.0).bounded([row], SYSTEM_NOISE).toarray().tolist() == [
            [0, 0, 0, 0, STEPS, STEPS // 2]
        ]


def test_cells_named_twice_are_added_up_before_they_are_cut() -> None:
    table = sparse.coo_array((np.array([0.4, 0.4, 0.9]), ([0, 0, 0], [1, 1, 0])), shape=(1, 3))
    assert ProfileBounds(3, 2, 1.0).bounded(table, SYSTEM_NOISE).toarray().tolist() == [
        [math.trunc(0.9 * STEPS), math.trunc(0.8 * STEPS), 0]
    ]


def test_many_users_are_cut_in_stretches_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).random((101, 4))
    bounds = ProfileBounds(4, 4, 1.0, l1_bound=1.5)
    whole = bounds.bounded(rows, SYSTEM_NOISE).toarray()
    monkeypatch.setattr("tacit.mechanisms.inputs._CELLS", 40)
    for form in (rows, sparse.csr_array(rows), rows.tolist()):
        assert (bounds.bounded(form, SYSTEM_NOISE).toarray() == whole).all()
    few = ProfileBounds(4, 2, 1.0).bounded(rows, SYSTEM_NOISE)
    assert few.shape == (101, 4)
    assert (np.diff(few.indptr) == 2).all()


def test_what_stays_of_a_crowded_row_is_drawn_by_the_given_noise() -> None:
    """Anybody can repeat what a generator of a fixed seed draws."""
    bounds, row = ProfileBounds(12, 3, 1.0), np.ones((1, 12))

    def kept(seed: int) -> tuple[int, ...]:
        return tuple(bounds.bounded(row, ReplayedNoise(seed)).indices.tolist())

    drawn = [kept(seed) for seed in range(400)]
    assert drawn[:5] == [kept(seed) for seed in range(5)]
    assert len(set(drawn)) > 150  # of 220
    counts = np.bincount(np.array(drawn).ravel(), minlength=12)
    assert np.abs(counts - 100).max() < 6 * math.sqrt(400 * 0.25 * 0.75)


def test_the_words_of_the_noise_decide_which_cells_stay() -> None:
    class Words:
        caveat = None

        def draw(self, count: int) -> bytes:
            return (np.array([9, 1, 8, 0, 7], dtype=np.uint64) * np.uint64(1 << 60)).tobytes()[:count]

    kept = ProfileBounds(5, 2, 1.0).bounded(np.ones((1, 5)), Words())
    assert kept.indices.tolist() == [1, 3]


def test_a_table_of_too_many_users_is_refused_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.mechanisms.inputs.MOST_USERS", 4)
    bounds = ProfileBounds(2, 2, 1.0)
    for form in (np.ones, lambda shape: sparse.csr_array(np.ones(shape)), lambda shape: np.ones(shape).tolist()):
        assert bounds.bounded(form((3, 2)), SYSTEM_NOISE).shape == (3, 2)
        with pytest.raises(InvalidInput, match="fewer than"):
            bounds.bounded(form((4, 2)), SYSTEM_NOISE)


def test_so_many_users_as_are_taken_cannot_overflow() -> None:
    # 2^28 - 1 rows of 2^16 steps each, squared distances of 2^34
    assert (MOST_USERS - 1) * 4 * STEPS * STEPS < 1 << 62
    with pytest.raises(InvalidInput, match="fewer than"):
        ProfileBounds(1, 1, 1.0).bounded(np.broadcast_to(0.0, (1 << 28, 1)), SYSTEM_NOISE)


def test_a_caller_who_has_numpy_raise_is_told_of_no_cell() -> None:
    rows = np.array([[5e-324, 1e308, -1e308, 1e-310], [math.nan, math.inf, 1.0, 2.0]])
    for most in (1e-290, 1.0, 1e290):
        bounds = ProfileBounds(4, 4, most, signed=True)
        quiet = bounds.bounded(rows, SYSTEM_NOISE, l2=True).toarray()
        with np.errstate(all="raise"):
            for form in (rows, rows.tolist(), sparse.csr_array(rows), rows.astype(np.longdouble)):
                assert (bounds.bounded(form, SYSTEM_NOISE, l2=True).toarray() == quiet).all()


def test_no_user_at_all_is_a_table_too() -> None:
    bounds = ProfileBounds(4, 2, 1.0)
    assert bounds.bounded(np.zeros((0, 4)), SYSTEM_NOISE).shape == (0, 4)
    assert bounds.bounded([], SYSTEM_NOISE).shape == (0, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"items": 0},
        {"items_each": 0},
        {"items_each": 6},
        {"value_bound": 0.0},
        {"value_bound": math.inf},
        {"value_bound": 5e-324},
        {"value_bound": 9e-291},
        {"value_bound": 1e308},
        {"value_bound": 2e290},
        {"l1_bound": -1.0},
        {"l1_bound": math.nan},
        {"l2_bound": 0.0},
        {"l1_bound": 1e-9},
        {"signed": 1},
    ],
)
def test_bounds_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        ProfileBounds(**({"items": 5, "items_each": 2, "value_bound": 1.0} | wrong))


def test_a_table_of_another_shape_is_refused() -> None:
    for rows in (np.zeros((2, 3)), np.zeros(4), [[1.0], [1.0, 2.0]]):
        with pytest.raises(InvalidInput):
            ProfileBounds(4, 2, 1.0).bounded(rows, SYSTEM_NOISE)
