"""Rows from whatever they come as: what a record holds is never refused, and what it cannot hold is left out."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from scipy import sparse

from tacit.entity.rows import PrivateRows
from tacit.errors import InvalidInput, InvalidParameter, TacitError

ITEMS = ["a", "b", "c"]
EXPECTED = [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]


def table(rows: Any, users: Any = None) -> list[list[float]]:
    found: list[list[float]] = PrivateRows(rows, ITEMS, users).table().toarray().tolist()
    return found


@pytest.mark.parametrize(
    "rows",
    [
        np.array(EXPECTED),
        sparse.csr_array(np.array(EXPECTED)),
        sparse.coo_array(np.array(EXPECTED)),
        {"ann": {"a": 1, "c": 2}, "bob": {"b": 3}},
        [("ann", "a", 1), ("bob", "b", 3), ("ann", "c", 2)],
        [["ann", "a", 1], ("bob", "b", 3), ("ann", "c", 2)],
        iter([("ann", "a", 1), ("bob", "b", 3), ("ann", "c", 2)]),
        lambda: np.array(EXPECTED),
        polars.DataFrame(EXPECTED, orient="row"),
    ],
    ids=["array", "csr", "coo", "mapping", "triples", "lists", "iterator", "function", "frame"],
)
def test_every_form_is_the_same_table(rows: Any) -> None:
    assert table(rows) == EXPECTED


def test_ratings_are_read_by_the_ids_of_their_items() -> None:
    from tacit.data import load

    ratings = load("synthetic")
    ids = ratings.catalogue.ids.tolist()
    shuffled = ids[::-1][:-1]  # another order, and one item fewer
    read = PrivateRows(ratings, shuffled).table()
    assert np.array_equal(read.toarray(), ratings.csr().toarray()[:, ::-1][:, :-1])


def test_unknown_items_are_left_out_silently() -> None:
    assert table({"ann": {"a": 1, "c": 2, "zzz": 5, None: 1, ("x",): 2}, "bob": {"b": 3}}) == EXPECTED
    assert table([("ann", "a", 1), ("ann", ["unhashable"], 1), ("bob", "b", 3), ("ann", "c", 2)]) == EXPECTED


def test_rows_of_one_user_are_added_up_before_anything_is_bounded() -> None:
    assert table([("ann", "a", 0.5), ("bob", "b", 3), ("ann", "c", 2), ("ann", "a", 0.5)]) == EXPECTED
    rows = [[1, 0, 0], [0, 3, 0], [0, 0, 2]]
    assert table(rows, users=["ann", "bob", "ann"]) == EXPECTED
    assert table(sparse.csr_array(rows), users=[7, 8, 7]) == EXPECTED
    assert PrivateRows(rows, ITEMS, ["ann", "bob", "ann"]).ids() == ["ann", "bob"]


def test_what_a_user_has_is_added_up_alike_in_any_company() -> None:
    """Floats in another order have another sum: the order is that of her own cells, whoever else there is."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        sizes = rng.choice([-1.0, 1.0], 40) * 10.0 ** rng.integers(-3, 17, 40)
        mine = [("ann", item, size) for item, size in zip(np.sort(rng.choice(ITEMS, 40)), sizes.tolist(), strict=True)]
        alone = table(mine)[0]
        for company in ([("bob", "a", 1), ("bob", "b", 1)], [("bob", "b", 1), ("bob", "a", 1)]):
            assert table(mine + company)[0] == alone
            assert table(company + mine)[1] == alone


def test_what_is_no_number_counts_as_nothing() -> None:
    odd = [
        ("ann", "a", 1),
        ("ann", "b", math.nan),
        ("ann", "c", 2),
        ("bob", "b", 3),
        ("bob", "a", "?"),
        ("bob", "c", None),
    ]
    assert table([*odd, ("bob", "c", math.inf), ("bob", "a", 10**400)]) == EXPECTED
    assert table(np.array([[1.0, np.nan, 2.0], [-np.inf, 3.0, np.inf]])) == EXPECTED
    assert table([[1, None, 2], ["x", 3, 0]], users=["ann", "bob"]) == EXPECTED
    assert table({"ann": {"a": 1, "c": 2}, "bob": {"b": 3}, "eve": 5, "joe": None}) != []  # a row that is none is empty


def test_one_odd_value_does_not_spoil_the_others_of_its_cell() -> None:
    assert table([("ann", "a", math.nan), ("ann", "a", 1), ("ann", "c", 2), ("bob", "b", 3)]) == EXPECTED


@pytest.mark.parametrize("rows", [[], {}, np.zeros((0, 3)), sparse.csr_array((0, 3)), ()])
def test_nobody_is_a_table_without_rows(rows: Any) -> None:
    assert PrivateRows(rows, ITEMS).table().shape == (0, 3)


MALFORMED = [
    ("w", "b"),
    ("w",),
    (),
    "abc",
    None,
    7,
    2.5,
    ("w", "a", 1, 1),
    {"w": 1},
    {"w", "a", 1},
    np.array([1, 2, 3]),
]


@pytest.mark.parametrize("odd", MALFORMED, ids=range(len(MALFORMED)))
@pytest.mark.parametrize("place", [0, 1, 3])
def test_one_malformed_cell_changes_nothing_about_the_others(odd: Any, place: int) -> None:
    cells: list[Any] = [("ann", "a", 1), ("bob", "b", 3), ("ann", "c", 2)]
    cells.insert(place, odd)
    assert table(cells) == EXPECTED


def test_cells_of_whole_numbers_are_no_table_whoever_is_among_them() -> None:
    """With three items cells have as many members as a row: users and items must not become ratings for it."""
    cells = [(7, 1, 5), (8, 3, 2)]
    expected = [[5.0, 0.0, 0.0], [0.0, 0.0, 2.0]]
    for more in ([], [[9, 0, 0]], [(9, 0)], ["x"]):
        rows = PrivateRows([*cells, *more], [1, 2, 3])
        assert rows.table().toarray().tolist()[:2] == expected
        assert rows.ids()[:2] == [7, 8]


@pytest.mark.parametrize("cells", [MALFORMED, [[1, 2], [1]], [[1, 2, 3, 4]]], ids=["all", "ragged", "wide"])
def test_cells_are_never_refused_not_even_all_of_them(cells: Any) -> None:
    assert PrivateRows(cells, ITEMS).table().shape == (0, 3)


def test_a_user_whose_id_cannot_be_looked_up_is_a_user() -> None:
    cells = [("ann", "a", 1), (["x"], "b", 3), ("ann", "c", 2), (["x"], "b", 0)]
    assert table(cells) == EXPECTED
    assert table([((1, user) if user == ["x"] else user, item, value) for user, item, value in cells]) == EXPECTED


SECRET = "SECRET"


class Refusing(float):
    """A number that does not say which."""

    def __float__(self) -> float:
        raise RuntimeError(SECRET)


class Warning_:
    def __float__(self) -> float:
        warnings.warn(SECRET, stacklevel=1)
        raise ArithmeticError(SECRET)


class Unhashed:
    def __hash__(self) -> int:
        raise RuntimeError(SECRET)


class Warned:
    """Hashed with a warning, and equal to nothing."""

    def __hash__(self) -> int:
        warnings.warn(SECRET, stacklevel=1)
        return 1


class Unequal:
    """With the hash of another id or item, and an error for whoever compares."""

    def __init__(self, other: object) -> None:
        self._hash = hash(other)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        raise RuntimeError(SECRET)


class Unseen(list[Any]):
    """A list that cannot be hashed, shown, counted or gone through."""

    def __repr__(self) -> str:
        raise RuntimeError(SECRET)

    def __len__(self) -> int:
        raise RuntimeError(SECRET)


class Closed(dict[Any, Any]):
    def items(self) -> Any:
        raise RuntimeError(SECRET)


NO_NUMBERS = [
    Refusing(2.0),
    Warning_(),
    np.complex128(2 + 1j),
    np.complex64(2.0),
    np.ma.masked,
    np.timedelta64(5),
    np.timedelta64(5, "s"),
    np.datetime64("2020"),
    np.array([5.0]),
    np.void(b"a"),
    Decimal("sNaN"),
    Fraction(10**400),
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_a_value_that_is_no_number_counts_as_nothing_whatever_it_does(value: Any) -> None:
    cells = [("ann", "a", 1), ("bob", "a", value), ("bob", "b", 3), ("ann", "c", 2)]
    assert table(cells) == EXPECTED
    assert table({"ann": {"a": 1, "c": 2}, "bob": {"b": 3, "a": value}}) == EXPECTED
    assert table([[1, 0, 2], [value, 3, 0]], users=["ann", "bob"]) == EXPECTED


NO_KEYS = [memoryview(bytearray(b"1")), Unhashed(), Unequal("a"), Unequal("ann"), Unseen()]


@pytest.mark.parametrize("key", [*NO_KEYS, Warned(), Decimal("sNaN")], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_an_item_that_cannot_be_looked_up_is_none(key: Any, place: int) -> None:
    cells = [("ann", "a", 1), ("bob", "b", 3), ("ann", "c", 2)]
    cells.insert(place, ("bob" if place else "ann", key, 1))
    assert table(cells) == EXPECTED


@pytest.mark.parametrize("key", NO_KEYS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_user_that_cannot_be_looked_up_takes_no_other_record_away(key: Any, place: int) -> None:
    cells = [("ann", "a", 1), ("bob", "b", 3), ("ann", "c", 2)]
    cells.insert(place, (key, "b", 4))
    found = PrivateRows(cells, ITEMS)
    names = [one if isinstance(one, str) else "odd" for one in found.ids()]
    rows = dict(zip(names, found.table().toarray().tolist(), strict=True))
    odd = rows.pop("odd", None)
    assert odd in (None, [0.0, 4.0, 0.0])
    assert rows == {"ann": EXPECTED[0], "bob": EXPECTED[1]}


@pytest.mark.parametrize("key", [memoryview(bytearray(b"1")), Unhashed(), Unseen()], ids=type)
def test_what_cannot_be_an_id_is_nobody(key: Any) -> None:
    cells = [("ann", "a", 1), (key, "b", 4), ("bob", "b", 3), ("ann", "c", 2)]
    assert table(cells) == EXPECTED
    rows = [[1, 0, 0], [0, 4, 0], [0, 3, 0], [0, 0, 2]]
    assert table(rows, users=["ann", key, "bob", "ann"]) == EXPECTED


def test_ids_that_are_equal_are_one_user_whatever_their_classes() -> None:
    """Or she would be bounded twice."""
    for one, other in (("ann", Named("ann")), (Named("ann"), "ann"), (7, Decimal(7)), (Decimal(7), 7)):
        assert table([(one, "a", 1), ("bob", "b", 3), (other, "c", 2)]) == EXPECTED


class Named(str):
    """As the members of an enumeration are."""


def test_records_that_do_not_let_themselves_be_read_are_left_out() -> None:
    assert table([("ann", "a", 1), Unseen([1, 2, 3]), ("bob", "b", 3), ("ann", "c", 2)]) == EXPECTED
    assert table({"ann": {"a": 1, "c": 2}, "eve": Closed(a=1), "bob": {"b": 3}}) == EXPECTED


@pytest.mark.parametrize("rows", ["rows.csv", b"rows", Path("rows.csv"), 5, None, object()])
def test_what_is_no_rows_at_all_is_refused(rows: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a table"):
        PrivateRows(rows, ITEMS).table()


@pytest.mark.parametrize("rows", [np.zeros((2, 4)), np.zeros(3), np.zeros((2, 2, 2))])
def test_a_table_of_another_shape_is_refused(rows: Any) -> None:
    with pytest.raises(InvalidInput):
        PrivateRows(rows, ITEMS).table()
    with pytest.raises(InvalidInput):
        PrivateRows([[1, 2], [1]], ITEMS, users=["ann", "bob"]).table()
    with pytest.raises(InvalidParameter):
        PrivateRows(np.zeros((2, 3)), ITEMS, users=["ann"]).table()


def test_nothing_is_read_before_it_is_needed_and_nothing_is_shown() -> None:
    asked = []
    rows = PrivateRows(lambda: asked.append(1) or np.array(EXPECTED), ITEMS)
    assert repr(rows) == "PrivateRows()"
    assert asked == []
    assert (rows.table() is rows.table(), len(asked)) == (True, 1)


def test_the_callers_table_stays_as_it_is() -> None:
    given = sparse.csr_array(np.array([[np.nan, 1.0, 0.0]]))
    PrivateRows(given, ITEMS).table()
    assert np.isnan(given.toarray()[0, 0])


def test_errors_quote_no_record() -> None:
    for rows in ([["secret", "x", "y", "z"]], [[1, 2], ["secret"]]):
        with pytest.raises(TacitError) as caught:
            PrivateRows(rows, ITEMS, users=["ann", "bob"][: len(rows)]).table()
        assert "secret" not in str(caught.value)
