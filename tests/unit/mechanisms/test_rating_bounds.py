"""Ratings as whole steps: against a slow reading of the same rules, and each row by itself whatever company it keeps."""

import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms import RatingBounds, ReplayedNoise
from tacit.mechanisms.rating_rows import (
    CLIP,
    COARSE,
    MOST_ITEMS,
    MOST_MASKED,
    WIDEST,
    cut_rows,
    few_each,
    rated_cells,
    row_sums,
)
from tests.contracts.mechanism import ALARM, SECRET, chi_square

OWN, FIXED = RatingBounds(1.0, 5.0), RatingBounds(1.0, 5.0, centre=4.0)


def slow_row(cells: list[tuple[int, float]], bounds: RatingBounds) -> dict[int, int]:
    """One user's centred, clipped steps, in Python's whole numbers."""
    added: dict[int, int] = defaultdict(int)
    most = WIDEST * bounds.clip
    for item, value in cells:
        if math.isfinite(value):
            added[item] += round(max(-most, min(most, value)) / bounds.clip * CLIP)
    low, high = (round(Fraction(end) / Fraction(bounds.clip) * CLIP) for end in (bounds.low, bounds.high))
    cut = {item: max(low, min(high, steps)) for item, steps in added.items()}
    if bounds.centre is None:
        centre = math.floor(Fraction(sum(cut.values()), max(1, len(cut))) + Fraction(1, 2))
    else:
        centre = round(Fraction(bounds.centre) / Fraction(bounds.clip) * CLIP)
    return {item: max(-CLIP, min(CLIP, steps - centre)) for item, steps in cut.items()}


def slow_cut(row: dict[int, int], bound: int, mask: int = 0, coarse: int = 1) -> tuple[dict[int, int], int]:
    square = sum(cell * cell for cell in row.values()) + mask * mask * len(row)
    norm = math.isqrt(square - 1) + 1 if square else 0
    divisor = max(norm, coarse * bound)
    return {i: (1 if c > 0 else -1) * (abs(c) * bound // divisor) for i, c in row.items()}, mask * bound // divisor


def odd_cells(rng: np.random.Generator, users: int, items: int) -> list[list[tuple[int, float]]]:
    """Ratings out of range, between steps, 0, no numbers at all, cells named up to three times, in no order."""
    odd = [0.0, -0.0, 1.0, 5.0, 3.0, 4.7, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 2.0 + 2.0**-17]
    return [
        [
            (int(rng.integers(items)), float(rng.choice(odd) if rng.random() < 0.3 else rng.uniform(0, 6)))
            for _ in range(rng.integers(0, 2 * items))
        ]
        for _ in range(users)
    ]


def as_csr(users: list[list[tuple[int, float]]], items: int) -> sparse.csr_array:
    starts = np.cumsum([0, *map(len, users)])
    cells = [cell for user in users for cell in user]
    table = sparse.csr_array((len(users), items))
    table.data = np.array([value for _, value in cells])
    table.indices = np.array([item for item, _ in cells], dtype=np.int32)
    table.indptr = starts.astype(np.int32)
    return table


def stored(table: sparse.csr_array, user: int) -> dict[int, int]:
    here = slice(table.indptr[user], table.indptr[user + 1])
    return dict(zip(table.indices[here].tolist(), table.data[here].tolist(), strict=True))


@pytest.mark.parametrize(
    "bounds",
    [
        OWN,
        FIXED,
        RatingBounds(-10.0, 10.0, clip=3.3),
        RatingBounds(0.0, 1.0, centre=0.25, clip=0.7),
        RatingBounds(0, 4e-9, clip=1e-9),
    ],
    ids=str,
)
def test_rows_become_what_the_slow_reading_says(bounds: RatingBounds, rng: np.random.Generator) -> None:
    users = odd_cells(rng, 60, 7)
    table = bounds.centred(as_csr(users, 7), 7)
    assert table.dtype == np.int64
    for user, cells in enumerate(users):
        assert stored(table, user) == slow_row(cells, bounds)
    assert np.abs(table.data).max() == CLIP or bounds.clip >= 1.0


def test_a_rating_further_from_its_centre_than_the_clip_counts_as_the_clip() -> None:
    """Where products are paid for by the clip, a single rating of twice that would cost up to 16 times as much."""
    row = np.array([[5.0, 4.0, 3.0, 2.0, 1.0]])
    lowest, highest = (RatingBounds(1.0, 5.0, centre=end).centred(row, 5).toarray()[0] for end in (1.0, 5.0))
    assert lowest.tolist() == [CLIP, CLIP, CLIP, CLIP // 2, 0]
    assert highest.tolist() == [0, -CLIP // 2, -CLIP, -CLIP, -CLIP]
    alone = OWN.centred(np.array([[5.0, 1.0, 1.0, 1.0]]), 4).toarray()[0]  # 3 above her own mean
    assert alone.tolist() == [CLIP, -CLIP // 2, -CLIP // 2, -CLIP // 2]


def test_a_row_is_the_same_in_any_company(rng: np.random.Generator) -> None:
    """Bit for bit: alone, after unsorted rows, after rows with cells named twice, in another order."""
    users = odd_cells(rng, 40, 30)
    users[7] = [(3, 0.1), (3, 0.2), (3, 0.3), (3, 1e-17), *[(i, 1.1) for i in range(20)]]
    together = OWN.centred(as_csr(users, 30), 30)
    backwards = OWN.centred(as_csr(users[::-1], 30), 30)
    for user, cells in enumerate(users):
        alone = OWN.centred(as_csr([cells], 30), 30)
        assert stored(alone, 0) == stored(together, user) == stored(backwards, 39 - user)


def test_the_order_of_cells_within_a_row_does_not_matter(rng: np.random.Generator) -> None:
    cells = odd_cells(rng, 1, 20)[0] + [(4, 0.1), (4, 0.7), (4, 1.3)]
    shuffled = [cells[place] for place in rng.permutation(len(cells))]
    assert stored(OWN.centred(as_csr([cells], 20), 20), 0) == stored(OWN.centred(as_csr([shuffled], 20), 20), 0)


def test_all_kinds_of_tables_give_the_same_rows(rng: np.random.Generator) -> None:
    dense = np.where(rng.random((9, 6)) < 0.5, rng.uniform(0, 6, (9, 6)), math.nan)
    dense[2] = math.nan
    wanted = OWN.centred(dense, 6).toarray()
    rated = np.isfinite(dense)
    user, item = np.nonzero(rated)
    coo = sparse.coo_array((dense[rated], (user, item)), shape=dense.shape)
    for table in (coo, coo.tocsr(), coo.tocsc(), sparse.csr_matrix(coo), sparse.coo_matrix(coo)):
        np.testing.assert_array_equal(OWN.centred(table, 6).toarray(), wanted)
    twice = sparse.coo_array(
        (np.repeat(dense[rated] / 2, 2), (np.repeat(user, 2), np.repeat(item, 2))), shape=dense.shape
    )
    assert np.abs(OWN.centred(twice, 6).toarray() - wanted).max() <= 3  # halves are rounded by themselves


def test_what_is_stored_as_zero_is_a_rating_and_what_is_no_number_is_not() -> None:
    table = sparse.csr_array(np.array([[3.0, 3.0, 3.0, 1.0]]))
    table.data = np.array([0.0, math.nan, math.inf, 4.0])
    user, item, value, users = rated_cells(table, 4, RatingBounds(0.0, 5.0))
    assert (user.tolist(), item.tolist(), value.tolist(), users) == ([0, 0], [0, 3], [0, 2 * CLIP], 1)
    assert OWN.centred(np.array([[3.0, 3.0]]), 2).indices.tolist() == [0, 1]  # equal to the mean, and still rated


def test_the_callers_table_stays_as_it_is(rng: np.random.Generator) -> None:
    table = as_csr(odd_cells(rng, 5, 4), 4)
    before = [part.copy() for part in (table.data, table.indices, table.indptr)]
    OWN.centred(table, 4)
    for part, old in zip((table.data, table.indices, table.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_items_beyond_the_catalogue_are_passed_over() -> None:
    table = sparse.csr_array(np.array([[3.0, 4.0]]))
    table.indices = np.array([1, 7], dtype=np.int32)
    assert OWN.centred(table, 2).indices.tolist() == [1]
    table.indices = np.array([-1, 0], dtype=np.int32)
    assert OWN.centred(table, 2).indices.tolist() == [0]


# --- cutting


@pytest.mark.parametrize(
    ("bound", "mask", "coarse"), [(4 * CLIP // 2, CLIP // 4, 1), (1 << 14, 0, COARSE), (300, 0, 1), (5000, 1, 16)]
)
def test_no_row_is_longer_than_the_bound_and_hardly_shorter(
    bound: int, mask: int, coarse: int, rng: np.random.Generator
) -> None:
    users = [
        *odd_cells(rng, 50, 40),
        *([(item, value) for item in range(40)] for value in (5.0, 1.0)),
        [(0, 5.0), (1, 1.0)],
    ]
    table = OWN.centred(as_csr(users, 40), 40)
    cut, masks = cut_rows(table, bound, mask=mask, coarse=coarse)
    longest = 0
    for user in range(len(users)):
        wanted, marked = slow_cut(stored(table, user), bound, mask, coarse)
        assert (stored(cut, user), int(masks[user])) == (wanted, marked)
        square = sum(cell * cell for cell in wanted.values()) + len(wanted) * marked * marked
        assert square <= bound * bound
        longest = max(longest, square)
    assert longest > 0.97 * bound * bound  # rounding down costs little


def test_a_short_row_keeps_its_length() -> None:
    table = OWN.centred(np.array([[2.0, 4.0, math.nan]]), 3)
    cut, mask = cut_rows(table, 4 * CLIP, mask=CLIP // 4)
    assert (cut.toarray().tolist(), mask.tolist()) == ([[-CLIP // 2, CLIP // 2, 0]], [CLIP // 4])


def test_marks_are_counted_in_64_bits_whatever_the_table_has() -> None:
    """2^15 squared is 2^30: four of these are beyond 32 bits, in which scipy may keep where rows start."""
    table = OWN.centred(np.array([[1.0, 5.0] * 20]), 40)
    wanted, marked = slow_cut(stored(table, 0), CLIP, 1 << 15)
    table.indptr = table.indptr.astype(np.int32)
    cut, masks = cut_rows(table, CLIP, mask=1 << 15)
    assert (stored(cut, 0), masks.tolist()) == (wanted, [marked])


def test_the_longest_rows_of_the_largest_numbers_are_exact() -> None:
    """2^22 ratings at the ends of the widest scale, less their own mean; marks whose squares add up to 2^60."""
    low, high, most = -WIDEST * CLIP, WIDEST * CLIP, MOST_ITEMS
    bounds = RatingBounds(-float(WIDEST), float(WIDEST), clip=1.0)
    for lows in (1, most // 2):
        row = np.where(np.arange(most) < lows, bounds.low, bounds.high)[None, :]
        table = bounds.centred(row, most)
        mean = math.floor(Fraction(lows * low + (most - lows) * high, most) + Fraction(1, 2))
        ends = {0: max(-CLIP, low - mean), most - 1: min(CLIP, high - mean)}
        assert {place: int(table.data[place]) for place in ends} == ends
        mask = math.isqrt(MOST_MASKED // most)
        square = lows * ends[0] ** 2 + (most - lows) * ends[most - 1] ** 2 + most * mask * mask
        divisor = max(math.isqrt(square - 1) + 1, 1024 * CLIP)
        cut, masks = cut_rows(table, 1024 * CLIP, mask=mask)
        assert masks.tolist() == [mask * 1024 * CLIP // divisor]
        wanted = {place: (1 if y > 0 else -1) * (abs(y) * 1024 * CLIP // divisor) for place, y in ends.items()}
        assert {place: int(cut.data[place]) for place in ends} == wanted
        assert {int(cut.data.min()), int(cut.data.max())} == {min(wanted.values()), max(wanted.values())}


def test_sums_of_stretches_are_exact_where_all_of_them_wrap_around() -> None:
    values = np.full(9, (1 << 62) - 1, dtype=np.int64)
    assert row_sums(values, np.array([0, 1, 1, 2, 9])).tolist()[:3] == [(1 << 62) - 1, 0, (1 << 62) - 1]
    assert row_sums(np.zeros(0, dtype=np.int64), np.array([0, 0])).tolist() == [0]


# --- which ratings of a user count


def test_few_stay_of_each_user_and_all_of_those_with_few() -> None:
    user = np.repeat(np.arange(5), [3, 0, 7, 4, 50])
    stays = few_each(user, 4, 6, ReplayedNoise(1))
    assert np.bincount(user[stays], minlength=6).tolist() == [3, 0, 4, 4, 4, 0]
    assert (np.diff(stays) > 0).all()
    assert stays[:3].tolist() == [0, 1, 2]
    assert few_each(user, 50, 6, ReplayedNoise(1)).size == user.size


def test_every_subset_is_as_likely_as_any_other() -> None:
    user = np.repeat(np.arange(20_000), 4)
    stays = few_each(user, 2, 20_000, ReplayedNoise(2))
    pair = (stays % 4).reshape(-1, 2)
    counts = np.bincount(pair[:, 0] * 4 + pair[:, 1], minlength=16)
    assert chi_square(counts[[1, 2, 3, 6, 7, 11]], np.full(6, 1 / 6)) > ALARM
    assert counts.sum() == counts[[1, 2, 3, 6, 7, 11]].sum()


def test_a_user_is_centred_after_her_ratings_are_drawn() -> None:
    rows = np.array([[5.0, 1.0, 1.0, 1.0]])
    table = OWN.centred(rows, 4, most_items=1, noise=ReplayedNoise(0))
    assert table.data.tolist() == [0]  # one rating is its own mean


# --- what is refused


@pytest.mark.parametrize(
    "parameters",
    [
        {"low": 5.0, "high": 1.0},
        {"low": 1.0, "high": 1.0},
        {"low": math.nan, "high": 1.0},
        {"low": 1.0, "high": math.inf},
        {"low": 1.0, "high": 5.0, "clip": 0.0},
        {"low": 1.0, "high": 5.0, "clip": -1.0},
        {"low": 1.0, "high": 5.0, "centre": 6.0},
        {"low": 1.0, "high": 5.0, "centre": "4"},
        {"low": 1.0, "high": 5.0, "clip": 1e-5},
        {"low": 0.0, "high": 1e-300, "clip": 1e-300},
    ],
    ids=str,
)
def test_bounds_that_make_no_sense_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        RatingBounds(**parameters)


@pytest.mark.parametrize(
    "rows",
    [
        [[SECRET, 1.0]],
        np.array([SECRET, 1.0]),
        np.array([[SECRET, 1.0, 2.0]]),
        np.array([["SECRET", "x"]]),
        np.array([[object(), 1.0]]),
        np.array([[1j, 1.0]]),
        sparse.csr_array(np.array([[SECRET]])),
        sparse.csr_array(np.array([[1j, 2.0]])),
        np.array([[SECRET, 1.0]]).view(np.matrix),  # to make one by its name is a warning
        np.ma.masked_array([[SECRET, 1.0]], [[True, False]]),
        None,
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_other_kinds_and_shapes_are_refused_and_never_shown(rows: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        OWN.centred(rows, 2)
    assert "4242" not in str(refused.value)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("kind", ["bsr", "dia", "lil", "dok"])
def test_only_formats_that_store_each_cell_by_itself_are_taken(kind: str) -> None:
    """In a block that one user fills others' zeros are stored, and would be ratings because of her."""
    table = sparse.coo_array(np.array([[SECRET, 1.0], [0.0, 2.0]])).asformat(kind)
    with pytest.raises(InvalidInput, match=f"'{kind}'.* csr_array of the rated cells") as refused:
        OWN.centred(table, 2)
    assert "4242" not in str(refused.value)


def test_an_array_in_a_file_is_taken(tmp_path: Path) -> None:
    rows = np.array([[5.0, math.nan], [1.0, 4.0]])
    np.save(tmp_path / "rows.npy", rows)
    kept = np.load(tmp_path / "rows.npy", mmap_mode="r")
    np.testing.assert_array_equal(OWN.centred(kept, 2).toarray(), OWN.centred(rows, 2).toarray())


def test_too_many_users_are_refused_by_the_shape_alone() -> None:
    tall: Any = np.broadcast_to(np.float64(3.0), (1 << 30, 2))
    with pytest.raises(InvalidInput, match="fewer than"):
        OWN.centred(tall, 2)


def test_whole_and_narrow_kinds_are_read_as_the_numbers_they_are() -> None:
    whole: NDArray[np.int8] = np.array([[1, 5, 3]], dtype=np.int8)
    wanted = OWN.centred(whole.astype(np.float64), 3).toarray()
    for kind in (np.int8, np.uint16, np.int64, np.float16, np.float32, np.longdouble):
        np.testing.assert_array_equal(OWN.centred(whole.astype(kind), 3).toarray(), wanted)


def test_a_caller_who_has_numpy_raise_is_told_of_no_cell(rng: np.random.Generator) -> None:
    table = as_csr(odd_cells(rng, 50, 9), 9)
    quiet = OWN.centred(table, 9).toarray()
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(OWN.centred(table, 9).toarray(), quiet)
