"""Prototypes by a tree: public planes, rows as whole numbers, and what is released."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms import FeatureBox
from tacit.mechanisms import tree_prototypes as planes
from tacit.mechanisms.inputs import RADIUS_STEPS as STEPS
from tacit.mechanisms.tree_prototypes import WholeRows, directions
from tests.contracts.mechanism import SECRET
from tests.unit.mechanisms.trees import BOX, tree

# --- public hyperplanes


def test_directions_are_whole_numbers_that_the_seed_alone_decides() -> None:
    drawn = directions(0, 12, 500)
    assert drawn.shape == (500, 12)
    assert (drawn == np.rint(drawn)).all()
    assert np.abs(drawn).max() <= 512
    assert abs(drawn.mean()) < 10  # four bytes from -128 to 127: mean -2, deviation 148
    assert 140 < drawn.std() < 156
    assert (directions(0, 12, 500) == drawn).all()
    assert (directions(1, 12, 500) != drawn).mean() > 0.9
    assert np.linalg.matrix_rank(drawn) == 12


def test_directions_stay_the_same_for_ever() -> None:
    assert directions(0, 2, 3).T.tolist() == [[-60.0, 44.0, -178.0], [49.0, 167.0, 9.0]]


# --- rows as whole numbers


def slow_row(box: FeatureBox, row: Any) -> list[int]:
    centre, low, high = np.array(box.centre), np.array(box.lower), np.array(box.upper)
    cells = []
    for value, at, least, most in zip(row, centre, low, high, strict=True):
        away = min(max(float(value), least), most) - at if math.isfinite(value) else 0.0
        cells.append(max(-(1 << 24), min(1 << 24, round(away * (STEPS / box.l2)))))
    squares = sum(cell * cell for cell in cells)
    if squares <= STEPS * STEPS:
        return cells
    norm = math.isqrt(squares - 1) + 1
    return [(1 if cell > 0 else -1) * (abs(cell) * STEPS // norm) for cell in cells]


@pytest.mark.parametrize(
    "box",
    [BOX, FeatureBox.cube(3, 0.0, 1.0, 0.3), FeatureBox((0.0, -9.0, 2.0), (1.0, 40.0, 2.5), 3.0, (0.25, 0.0, 2.5))],
    ids=["cube", "short radius", "centre"],
)
def test_a_row_is_cut_by_itself_in_whole_numbers(box: FeatureBox, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(300, 3)) * rng.choice([1e-7, 0.2, 1.0, 60.0, 1e300], size=(300, 1))
    rows[3], rows[4, 0], rows[5, 2] = math.nan, math.inf, -math.inf
    whole = box.bounded(rows)
    assert whole.tolist() == [slow_row(box, row) for row in rows]
    assert max(sum(cell * cell for cell in row) for row in whole.tolist()) <= STEPS * STEPS
    assert all((box.bounded(rows[[at]])[0] == whole[at]).all() for at in range(40))


def test_a_row_at_the_farthest_corner_has_the_whole_radius_and_none_has_more() -> None:
    whole = FeatureBox.cube(4, 0.0, 2.0).bounded(np.array([[0.0, 2.0, 0.0, 2.0]]))
    assert whole.tolist() == [[-STEPS // 2, STEPS // 2, -STEPS // 2, STEPS // 2]]
    short = FeatureBox.cube(2, -1.0, 1.0, 1.0).bounded(np.array([[1.0, 0.0], [1.0, 1.0], [9.0, 9.0]]))
    assert short.tolist() == [[STEPS, 0], [46340, 46340], [46340, 46340]]  # floor(2^16 / sqrt 2)


def test_rows_that_are_no_table_are_refused_without_being_shown() -> None:
    for odd in ([[1.0, 2.0]], [1.0, 2.0, 3.0], [[SECRET, 1.0, 2.0], [1.0]], np.zeros((2, 2, 3)), "abc"):
        with pytest.raises(InvalidInput) as refused:
            tree().release(odd)
        assert str(SECRET) not in str(refused.value)


@pytest.mark.parametrize("radius", [5e-324, 9e-291, 2e290, 1e308])
def test_a_radius_without_steps_is_refused(radius: float) -> None:
    with pytest.raises(InvalidParameter):
        FeatureBox.cube(3, 0.0, 1.0, radius)


def test_a_box_of_too_many_users_is_refused_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="fewer than"):
        BOX.bounded(np.broadcast_to(0.0, (1 << 28, 3)))
    monkeypatch.setattr("tacit.mechanisms.inputs.MOST_FEATURE_USERS", 4)
    assert BOX.bounded(np.zeros((3, 3))).shape == (3, 3)
    for rows in (np.zeros((4, 3)), [[0.0, 0.0, 0.0]] * 4):
        with pytest.raises(InvalidInput, match="fewer than"):
            BOX.bounded(rows)


def test_a_box_tells_nobody_of_a_cell_where_numpy_raises() -> None:
    rows = np.array([[5e-324, 1e308, -1e308], [math.nan, math.inf, 1e-310], [1e-320, 0.5, -0.5]])
    for box in (BOX, FeatureBox.cube(3, -1e308, 1e308, 1e290), FeatureBox.cube(3, -1.0, 1.0, 1e-290)):
        quiet = box.bounded(rows)
        with np.errstate(all="raise"):
            for form in (rows, rows.tolist(), rows.astype(np.longdouble)):
                assert (box.bounded(form) == quiet).all()


def test_objects_that_are_numbers_are_taken() -> None:
    assert (BOX.bounded([[1, 0, None]]) == BOX.bounded(np.array([[1.0, 0.0, math.nan]]))).all()
    assert BOX.bounded([[1, 0, 10**400]]).shape == (1, 3)
    # a text in one cell is one user's: the table is not refused for it
    assert (BOX.bounded([["x", 1, 0.5]]) == BOX.bounded(np.array([[math.nan, 1.0, 0.5]]))).all()
    table = np.array([[0.5, 0.0, -0.2], [0.0, 0.0, 1.0]])
    assert (BOX.bounded(sparse.csr_array(table)) == BOX.bounded(table)).all()


@pytest.mark.parametrize("dimension", [1, 7, 64])
def test_sides_and_nearest_centres_are_exact_for_each_row_alone(dimension: int, rng: np.random.Generator) -> None:
    box = FeatureBox.cube(dimension, -1.0, 1.0)
    rows = box.bounded(rng.normal(size=(203, dimension)))
    rows[5] = 0
    normal, centres = directions(3, 9, dimension), rng.integers(-STEPS, STEPS, size=(17, dimension)) // dimension
    centres[11] = centres[4]  # as near: the first one has it
    whole = WholeRows(rows)
    codes, near = whole.codes(normal), whole.nearest(centres)
    big, plain = rows.astype(object), normal.astype(np.int64).astype(object)
    assert codes.tolist() == [int("".join("1" if one >= 0 else "0" for one in row), 2) for row in big @ plain]
    far = [[sum((a - b) ** 2 for a, b in zip(row, c, strict=True)) for c in centres.astype(object)] for row in big]
    assert near.tolist() == [row.index(min(row)) for row in far]
    assert codes[5] == 2**9 - 1
    assert 11 not in near
    for some in ([0], [5, 9], [202], list(range(1, 203))):  # others beside a row change nothing
        part = WholeRows(rows[some])
        assert (part.codes(normal) == codes[some]).all()
        assert (part.nearest(centres) == near[some]).all()


@pytest.mark.parametrize("cells", [1, 40, 1 << 18])
def test_sparse_and_dense_rows_give_the_same_in_stretches_of_any_length(
    cells: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    rows = rng.integers(-STEPS, STEPS, size=(57, 8)) * (rng.random((57, 8)) < 0.4) // 8
    group, normal = rng.integers(5, size=57), directions(0, 6, 8)
    expected = np.stack([rows[group == one].sum(axis=0) for one in range(6)])  # the sixth is nobody's
    centres = rng.integers(-STEPS, STEPS, size=(4, 8))
    here = WholeRows(rows.astype(np.int32))
    codes, near = here.codes(normal), here.nearest(centres)
    monkeypatch.setattr(planes, "_CELLS", cells)
    for table in (rows.astype(np.int32), sparse.csr_array(rows)):
        whole = WholeRows(table)
        assert (whole.sums(group, 6) == expected).all()
        assert (whole.codes(normal) == codes).all()
        assert (whole.nearest(centres) == near).all()


def test_sums_beyond_what_single_precision_holds_are_exact() -> None:
    rows = np.full((5000, 1), STEPS - 1, dtype=np.int32)
    assert WholeRows(rows).sums(np.zeros(5000, dtype=np.int64), 1).tolist() == [[5000 * (STEPS - 1)]]
