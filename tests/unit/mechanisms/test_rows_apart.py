"""One user's odd cell: it changes no other user's row, refuses nobody, and is never shown."""

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput
from tacit.mechanisms import (
    BoundedCounts,
    ExponentialMechanism,
    FeatureBox,
    FeatureSlate,
    GramShare,
    NaturalSlate,
    PopularityShare,
    ProfileBounds,
    ProfileScores,
    ReplayedNoise,
    VectorLaplace,
    VoteTotals,
)
from tacit.mechanisms.inputs import bounded_rows, real_array, real_cell, real_table
from tacit.mechanisms.slates import whole_rows
from tacit.mechanisms.tempered_slate import capped_totals

SECRET = "SECRET"


class Stubborn:
    """Says that it is a number and is none."""

    def __float__(self) -> float:
        raise RuntimeError(SECRET)


ODD: list[Any] = [
    SECRET,
    b"x",
    "",
    "True",
    np.str_("x"),
    1j,
    np.complex128(2.0),
    None,
    math.nan,
    math.inf,
    10**400,
    -(10**400),
    Fraction(10**400, 3),
    np.timedelta64(1, "s"),
    np.timedelta64(7),
    np.datetime64("2020-01-01"),
    Decimal("sNaN"),
    [1.0],
    [],
    (1, 2),
    {"a": 1},
    np.array([1.0]),
    np.array([1.0, 2.0]),
    np.array(1j),
    np.ma.masked,
    Stubborn(),
    object(),
]
NUMBERS: list[Any] = [Decimal("0.5"), Fraction(1, 2), np.float16(0.5), np.longdouble("0.5"), np.array(0.5), "0.5"]

# rows of other users, each of a kind that a common type of the whole table would change
OTHERS: dict[str, list[list[Any]]] = {
    "booleans": [[True, False, True]] * 3,
    "numpy's booleans": [[np.True_, np.False_, np.True_]] * 3,
    "short floats": [[np.float32(0.1), np.float32(0.7), np.float32(0.0)]] * 3,
    "whole numbers": [[1, 0, 2**53 + 1], [0, 1, 2**62 + 1], [3, 2**64 + 4097, 0]],
    "floats": [[0.1, 1e-300, 0.3], [0.0, 5e-324, 1e300], [1.0, 0.25, 0.5]],
    "mixed": [[True, 1, 0.5], [np.float32(0.1), np.uint64(2**63 + 1025), np.int8(-1)], [0.1, False, np.float64(1.0)]],
}

IMAGES: dict[str, Callable[[Any], NDArray[Any]]] = {
    "table": lambda rows: real_table(rows, "rows", 3).toarray(),
    "profiles": lambda rows: ProfileBounds(3, 3, 1.0).bounded(rows, ReplayedNoise(0)).toarray(),
    "signed profiles": lambda rows: ProfileBounds(3, 3, 2.0, signed=True).bounded(rows, ReplayedNoise(0)).toarray(),
    "box": lambda rows: FeatureBox.cube(3, -1.0, 1.0).bounded(rows),
    "sum": lambda rows: bounded_rows(rows, 3, 1.0, norm=2).toarray(),
    "slates": lambda rows: whole_rows(rows, 3, 1.0).toarray(),
}
TOTALS: dict[str, Callable[[Any], NDArray[Any]]] = {
    "popularity": PopularityShare(3, 0.5, 1e-6).totals,
    "gram": GramShare(3, (0, 1, 2), 0.5, 1e-6).totals,
    "votes": VoteTotals().integers,
    "capped votes": lambda rows: capped_totals(rows, 3, 8, None),
}


@pytest.mark.parametrize("form", [list, tuple, np.array], ids=["list", "tuple", "array"])
@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_other_rows_stay_the_same_whatever_stands_in_one_row(others: Any, image: Any, form: Any) -> None:
    rows = [form(row) for row in others]
    alone = image(rows)
    for cell in [*ODD, *NUMBERS]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = image([*rows, [cell, 0, 0]])
        assert found.shape == (4, 3)
        assert found[:3].tolist() == alone.tolist()
        # and the cell's own row is what it would be by itself
        assert np.array_equal(found[3:], image([[cell, 0, 0]]), equal_nan=True)


def named_often(rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """40 numbers in 3 cells, far from each other in size: their sums are others in another order."""
    numbers = rng.choice([-1.0, 1.0], 40) * 10.0 ** rng.integers(-3, 17, 40)
    return np.sort(rng.integers(0, 3, 40)), numbers


def stacked(*rows: tuple[Any, Any]) -> sparse.csr_array:
    """Rows as they are, cells named twice and in no order."""
    table = sparse.csr_array((len(rows), 3))
    table.indptr = np.cumsum([0, *(len(items) for items, _ in rows)]).astype(np.int32)
    table.indices = np.concatenate([items for items, _ in rows]).astype(np.int32)
    table.data = np.concatenate([numbers for _, numbers in rows]).astype(np.float64)
    return table


SORTED, UNSORTED = ((0, 1), (1.0, 1.0)), ((1, 0), (1.0, 1.0))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
def test_cells_named_often_are_added_up_alike_in_any_company(image: Any, kind: str, rng: np.random.Generator) -> None:
    """scipy sorts all rows if one is not sorted, and equal cells end up in any order."""

    def table(*rows: Any) -> Any:
        stack = stacked(*rows)
        return stack if kind == "csr" else stack.tocoo() if kind == "coo" else sparse.csc_array(stack)

    for _ in range(20):
        mine = named_often(rng)
        alone = image(table(mine))[0].tolist()
        for company in ((SORTED,), (UNSORTED,), (UNSORTED, SORTED), (named_often(rng),)):
            assert image(table(mine, *company))[0].tolist() == alone


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
def test_zeros_that_others_bring_into_a_block_change_nothing(image: Any, rng: np.random.Generator) -> None:
    for _ in range(20):
        items, numbers = named_often(rng)
        found = []
        for more in (0, 1, 30):
            places = np.concatenate([items, np.zeros(more, dtype=np.int64)])
            blocks = np.zeros((places.size, 2, 1))
            blocks[: items.size, 0, 0], blocks[items.size :, 1, 0] = numbers, 1.0
            found.append(image(sparse.bsr_array((blocks, places, [0, places.size]), shape=(2, 3)))[0].tolist())
        assert found[0] == found[1] == found[2]


def test_numbers_of_a_cell_are_added_up_whatever_a_table_says_of_itself() -> None:
    table = stacked(((1, 1, 0), (0.25, 0.5, 2.0)))
    table.has_canonical_format = True  # it is not
    np.testing.assert_array_equal(real_table(table, "rows").toarray(), [[2.0, 0.75, 0.0]])
    assert table.nnz == 3
    empty = real_table(sparse.coo_array((2, 3)), "rows")
    assert (empty.shape, empty.nnz) == ((2, 3), 0)


@pytest.mark.parametrize("total", TOTALS.values(), ids=TOTALS)
@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_totals_of_others_stay_the_same(others: Any, total: Any) -> None:
    alone = total(others)
    for cell in ODD:
        if cell is not math.inf:  # which votes take as the most that counts
            assert total([*others, [cell, 0, 0]]).tolist() == alone.tolist()


def test_a_dash_among_booleans_takes_nobodys_popularity_away() -> None:
    rows: list[list[Any]] = [[True, False, True]] * 1000
    share = PopularityShare(3, 0.5, 1e-6)
    assert (share.totals(rows) - share.totals([*rows, ["-", 0, 0]])).tolist() == [0, 0, 0]
    assert share.totals(rows)[0] == 1000 * math.isqrt((1 << 40) // 2)


def test_a_cell_that_is_no_number_counts_as_none_and_a_number_of_any_kind_counts() -> None:
    for cell in ODD:
        assert not np.isfinite(real_table([[cell, 1.0]], "rows", 2).toarray()[0, 0])
    for cell in NUMBERS:
        assert real_table([[cell, 1.0]], "rows", 2).toarray().tolist() == [[0.5, 1.0]]
    whole = real_table([[2**53 + 1, 2**64 + 4097], [None, 0]], "rows", 2).toarray()
    assert whole[0].tolist() == [float(2**53 + 1), float(2**64 + 4097)]


@pytest.mark.parametrize("cell", ODD, ids=lambda cell: type(cell).__name__)
def test_arrays_of_objects_are_read_cell_by_cell_too(cell: Any) -> None:
    table = np.empty((3, 3), dtype=object)
    table[:2], table[2, 1:] = [[True, np.float32(0.1), 0.5]] * 2, 0
    table[2, 0] = cell
    for image in IMAGES.values():
        plain = image([[True, np.float32(0.1), 0.5]] * 2)
        assert image(table)[:2].tolist() == plain.tolist()


def test_a_box_puts_what_is_no_number_at_its_centre_and_shows_nothing() -> None:
    box = FeatureBox((0.0, 0.0), (1.0, 4.0), centre=(0.25, 1.0))
    table = np.array([[10**400, 0.2], [SECRET, 0.3]], dtype=object)
    expected = box.bounded(np.array([[math.nan, 0.2], [math.nan, 0.3]]))
    assert box.bounded(table).tolist() == expected.tolist()
    assert box.bounded(table.tolist()).tolist() == expected.tolist()
    assert expected[:, 0].tolist() == [0, 0]


@pytest.mark.parametrize(
    "refused",
    [
        lambda: real_array(np.array([[10**400, 0.2], [SECRET, 0.3]], dtype=object), "scores"),
        lambda: real_array([[10**400, 0.2], [SECRET, 0.3]], "scores"),
        lambda: real_array(np.array([Stubborn(), 10**400], dtype=object), "scores"),
        lambda: ExponentialMechanism(ProfileScores(0.0, 1.0), 1.0).release_many([[10**400, 0.2], [SECRET, 0.3]]),
        lambda: VectorLaplace(2, 1.0).release(np.array([10**400, SECRET], dtype=object)),
        lambda: real_table([[SECRET, 1.0], [1.0]], "rows"),
        lambda: real_table([SECRET, SECRET], "rows"),
        lambda: real_table(SECRET, "rows", 6),
        lambda: real_table([[1.0, 2.0], SECRET[:2]], "rows"),
        lambda: real_table([[1.0, 2.0], None], "rows"),
        lambda: real_table({SECRET: 1.0}, "rows"),
    ],
)
def test_what_is_refused_is_not_shown_and_not_kept_in_the_error(refused: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput) as error:
        refused()
    seen: BaseException | None = error.value
    while seen is not None:
        assert SECRET not in str(seen)
        seen = seen.__context__


class Overflowing(Stubborn):
    """Too large for a float, and for whoever asks in which direction."""

    def __float__(self) -> float:
        raise OverflowError(SECRET)

    def __gt__(self, other: object) -> bool:
        raise RuntimeError(SECRET)


class Warning_(Stubborn):
    def __float__(self) -> float:
        warnings.warn(SECRET, stacklevel=1)
        return 3.0


def test_what_a_cell_says_of_itself_is_not_heard() -> None:
    with pytest.raises(InvalidInput) as refused:
        real_array([Overflowing(), 1], "scores")
    assert SECRET not in str(refused.value)
    assert math.isnan(real_cell(Overflowing()))
    assert real_cell(Warning_()) == 3.0
    assert math.isnan(real_cell(np.ma.masked))


def test_wide_whole_numbers_are_infinite_in_an_array_of_scores() -> None:
    assert real_array([10**400, -(10**400), 1], "scores").tolist() == [math.inf, -math.inf, 1.0]
    assert math.isnan(real_array([None, 10**400], "scores")[0])


@pytest.mark.parametrize("kind", ["<U5", "S5", "complex128", "m8[s]", "M8[s]"])
def test_an_array_of_another_type_is_refused_for_its_type(kind: str) -> None:
    """Its program has chosen one type for all rows: nothing that was a number can be told from what was none."""
    for table in (np.zeros((2, 3), dtype=kind), np.zeros((0, 3), dtype=kind)):
        for image in IMAGES.values():
            with pytest.raises(InvalidInput):
                image(table)


def test_rows_of_other_lengths_are_refused_for_their_shape() -> None:
    for rows in ([[1.0, 2.0, 3.0], [1.0]], [[1.0, 2.0]], [1.0, 2.0, 3.0], [[]], np.zeros((2, 2, 3)), 7):
        with pytest.raises(InvalidInput):
            ProfileBounds(3, 3, 1.0).bounded(rows, ReplayedNoise(0))


def test_slates_and_counts_are_released_with_odd_cells_in_lists() -> None:
    rows = [[True, False, True], ["x", 1, 1j], [None, 10**400, [3]]]
    for mechanism in (NaturalSlate(3, 2, 50.0), FeatureSlate(np.eye(3), 2, 50.0), BoundedCounts(3, 1.0)):
        mechanism.release(rows, ReplayedNoise(1))


def test_wide_floats_become_infinite_or_0_also_where_numpy_raises() -> None:
    wide = np.array([[np.longdouble("1e400"), np.longdouble("1e-400")]])
    with np.errstate(all="raise"):
        for found in (
            real_array(wide, "scores"),
            real_array(wide.tolist(), "scores"),
            real_table(wide, "rows").toarray(),
            real_table(sparse.csr_array(wide), "rows").toarray(),
            real_table(wide.tolist(), "rows").toarray(),
        ):
            assert found.tolist() == [[math.inf, 0.0]]


@pytest.mark.parametrize("image", [*IMAGES.values(), *TOTALS.values()], ids=[*IMAGES, *TOTALS])
def test_no_cell_raises_where_a_caller_has_numpy_raise(image: Any) -> None:
    cells = [5e-324, 1e-310, 1e308, -1e308, 1e-160, math.nan, math.inf, 0.0, 1.0]
    table = np.array([cells[at : at + 3] for at in range(7)])
    quiet = image(table)
    wide = table.astype(np.longdouble) * np.longdouble("1e300")
    with np.errstate(all="raise"):
        assert image(table).tolist() == quiet.tolist() or np.isnan(quiet).any()
        image(table.tolist())
        image(wide)
        image(table.astype(object))
