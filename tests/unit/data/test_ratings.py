import pickle

import numpy as np
import pytest

from tacit.data import (
    MISSING_TIME,
    STARS,
    Catalogue,
    Entities,
    ItemId,
    Ratings,
    TwoDomains,
    UserId,
    from_arrays,
    mix,
)
from tacit.errors import InvalidData, InvalidParameter, UnknownName
from tests.unit.data.layouts import rows

SECRET = "mallory@example.org"


@pytest.fixture
def ratings() -> Ratings:
    return from_arrays(
        users=[SECRET, "bob", "bob", SECRET, "carol"],
        items=[30, 10, 20, 10, 20],
        ratings=[1, 2, 3, 4, 5],
        times=[9, 8, 7, 6, 5],
        scale=STARS,
        name="tiny",
    )


def test_rows_are_sorted_by_user_then_item_whatever_the_order_given(ratings):
    assert rows(ratings) == [
        ("bob", 10, 2.0, 8),
        ("bob", 20, 3.0, 7),
        ("carol", 20, 5.0, 5),
        (SECRET, 10, 4.0, 6),
        (SECRET, 30, 1.0, 9),
    ]
    assert ratings.users.tolist() == [0, 0, 1, 2, 2]
    assert (len(ratings), ratings.n_users, ratings.n_items) == (5, 3, 3)


def test_csr_is_the_same_memory_and_holds_the_ratings(ratings):
    matrix = ratings.csr()
    assert matrix.toarray().tolist() == [[2, 3, 0], [0, 5, 0], [4, 0, 1]]
    assert np.shares_memory(matrix.data, ratings.values)
    assert np.shares_memory(matrix.indices, ratings.items)
    assert (matrix @ np.ones(3)).tolist() == [5, 5, 5]


def test_repr_shows_sizes_and_no_content(ratings):
    assert repr(ratings) == "Ratings('tiny': 5 ratings, 3 users, 3 items)"
    pair = TwoDomains.by_items(ratings, np.array([True, False, False]))
    for shown in (repr(ratings), repr(pair), repr(ratings.catalogue), str(ratings), f"{ratings.__dict__['entities']}"):
        assert SECRET not in shown


def test_arrays_cannot_be_written_to(ratings):
    for array in (ratings.values, ratings.items, ratings.starts, ratings.times, ratings.users, ratings.user_ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(AttributeError):
        ratings.name = "other"


def test_the_callers_arrays_are_copied_not_taken():
    values = np.array([1.0, 2.0], dtype=np.float32)
    made = from_arrays([1, 2], [1, 1], values, scale=STARS)
    values[0] = 5
    assert made.values.tolist() == [1, 2]


def test_ids_and_codes_lead_to_each_other(ratings):
    for code in range(ratings.n_users):
        assert ratings.user_code(ratings.user_id(code)) == code
    for code in range(ratings.n_items):
        assert ratings.catalogue.code(ratings.catalogue.id(code)) == code
    assert ratings.catalogue.id(1) == 20
    assert type(ratings.catalogue.id(1)) is int


def test_an_unknown_user_is_refused_without_repeating_the_id(ratings):
    with pytest.raises(UnknownName) as caught:
        ratings.user_code(UserId("eve@example.org"))
    assert "eve" not in str(caught.value)
    with pytest.raises(UnknownName):
        ratings.catalogue.code(ItemId("10"))  # text is not the number


def test_a_users_rows_are_a_slice(ratings):
    rows_of_last = ratings.rows_of(ratings.user_code(UserId(SECRET)))
    assert ratings.values[rows_of_last].tolist() == [4, 1]
    with pytest.raises(InvalidParameter):
        ratings.rows_of(3)


def test_a_subset_keeps_all_codes(ratings):
    part = ratings.subset(ratings.values >= 4)
    assert rows(part) == [("carol", 20, 5.0, 5), (SECRET, 10, 4.0, 6)]
    assert (part.n_users, part.n_items, part.counts.tolist()) == (3, 3, [0, 1, 1])
    with pytest.raises(InvalidParameter):
        ratings.subset(np.array([0, 1]))


def test_selected_users_get_new_codes_and_keep_their_entity(ratings):
    kept = ratings.with_entities(Entities.from_labels("clinic", ["x", "y", "x"])).select_users(np.array([2, 1]))
    assert kept.user_ids.tolist() == ["carol", SECRET]
    assert rows(kept) == [("carol", 20, 5.0, 5), (SECRET, 10, 4.0, 6), (SECRET, 30, 1.0, 9)]
    assert [kept.entities.names[code] for code in kept.entities.codes] == ["y", "x"]


def test_compact_drops_idle_users_and_unrated_items(ratings):
    small = ratings.subset(ratings.values <= 3).compact(least=2)
    assert rows(small) == [("bob", 10, 2.0, 8), ("bob", 20, 3.0, 7)]
    assert (small.n_users, small.catalogue.ids.tolist()) == (1, [10, 20])


def test_each_entity_holds_its_own_users_over_shared_items(ratings):
    parts = dict(ratings.with_entities(Entities.from_labels("clinic", ["x", "y", "x"])).by_entity())
    assert {name: part.user_ids.tolist() for name, part in parts.items()} == {"x": ["bob", SECRET], "y": ["carol"]}
    assert all(part.n_items == 3 for part in parts.values())
    with pytest.raises(InvalidParameter, match="no entities"):
        next(ratings.by_entity())


def test_describe_counts_what_is_there(ratings):
    facts = ratings.describe().as_dict()
    assert (facts["ratings"], facts["users"], facts["rated_items"], facts["mean"]) == (5, 3, 3, 3.0)
    assert facts["density"] == pytest.approx(5 / 9)
    assert facts["first_time"] == "1970-01-01"


def test_ratings_survive_pickling(ratings):
    assert rows(pickle.loads(pickle.dumps(ratings))) == rows(ratings)


@pytest.mark.parametrize(
    "columns",
    [
        {"ratings": ["s3cret"]},
        {"ratings": [object()]},
        {"ratings": [[1], [1, 2]]},
        {"ratings": [1e300]},
        {"ratings": [None]},
        {"users": [None]},
        {"users": np.array(["s3cret", None], dtype=object)[1:]},
        {"users": [float("nan")]},
        {"users": [True]},
        {"users": [[1], [1, 2]]},
        {"users": np.array([True], dtype=object)},
        {"users": np.array([2**63 + 77], dtype=np.uint64)},
        {"items": [2**70 + 77]},
        {"items": [b"s3cret"]},
        {"times": [float("nan")]},
        {"times": np.array([np.nan])},
        {"times": [1e30]},
        {"times": [2**63 + 77]},
        {"times": [None]},
        {"times": ["s3cret"]},
        {"times": [1, 2]},
    ],
)
def test_columns_that_cannot_be_used_are_refused_without_showing_a_value(columns):
    with pytest.raises(InvalidData) as caught:
        from_arrays(**({"users": [1], "items": [2], "ratings": [3], "scale": STARS} | columns))
    message = str(caught.value)
    assert message.startswith("invalid-data: ")
    assert not any(secret in message for secret in ("s3cret", str(2**63 + 77), str(2**70 + 77), "e300", "e+300"))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_ids_in_a_column_of_objects_are_numbers_or_text():
    mixed = from_arrays(np.array([7, "a"], dtype=object), np.array([2, 1], dtype=object), [1, 2], scale=STARS)
    assert mixed.user_ids.tolist() == ["7", "a"]
    assert mixed.catalogue.ids.tolist() == [1, 2]
    large = from_arrays(np.array([2**63 - 1], dtype=np.uint64), [1], [1], scale=STARS)
    assert large.user_id(0) == 2**63 - 1


def test_dates_of_numpy_become_seconds():
    days = np.array(["1970-01-02", "NaT"], dtype="datetime64[ns]")
    assert from_arrays([1, 2], [1, 1], [1, 2], days, scale=STARS).times.tolist() == [86_400, MISSING_TIME]


@pytest.mark.parametrize("code", [-1, 3, 999, 1.0, "1", None, True])
def test_a_code_that_nobody_has_is_refused(ratings, code):
    for look in (ratings.user_id, ratings.rows_of, ratings.catalogue.id, ratings.catalogue.title):
        with pytest.raises(InvalidParameter, match="codes go from 0 to 2"):
            look(code)


@pytest.mark.parametrize("user", [None, 1, 2**70, float("nan"), ["bob"]])
def test_what_is_no_id_is_an_unknown_user(ratings, user):
    with pytest.raises(UnknownName):
        ratings.user_code(UserId(user))
    with pytest.raises(UnknownName):
        ratings.catalogue.code(ItemId(user))


@pytest.mark.parametrize("users", [np.array([0, 999]), np.array([-1]), [0, 1], np.array([0.0]), np.array([True]), None])
def test_users_that_are_not_there_cannot_be_selected(ratings, users):
    with pytest.raises(InvalidParameter, match="user code"):
        ratings.select_users(users)


def test_nobody_may_be_selected(ratings):
    assert ratings.select_users(np.zeros(0, dtype=np.int64)).n_users == 0


@pytest.mark.parametrize("mask", [[True] * 5, None, np.ones(5), np.ones(4, dtype=np.bool_)])
def test_a_subset_takes_an_array_of_flags_and_nothing_else(ratings, mask):
    with pytest.raises(InvalidParameter, match="array of 5 true-or-false values"):
        ratings.subset(mask)


def test_empty_ratings_are_a_value_like_any_other():
    assert len(from_arrays([], [], [], [], scale=STARS)) == 0
    empty = from_arrays(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), [], scale=STARS)
    assert (len(empty), empty.n_users, empty.csr().shape) == (0, 0, (0, 0))
    assert empty.describe().mean is None


@pytest.mark.parametrize(
    "changed",
    [
        {"items": np.array([1, 0], dtype=np.int32)},  # not sorted
        {"items": np.array([1, 1], dtype=np.int32)},  # twice
        {"items": np.array([0, 9], dtype=np.int32)},  # not in the catalogue
        {"starts": np.array([0, 1], dtype=np.int32)},  # does not reach the end
        {"values": np.array([1.0], dtype=np.float32)},
        {"values": np.array([1.0, 2.0])},  # not float32
    ],
)
def test_a_malformed_value_cannot_be_built(changed):
    right = {
        "starts": np.array([0, 2], dtype=np.int32),
        "items": np.array([0, 1], dtype=np.int32),
        "values": np.array([1.0, 2.0], dtype=np.float32),
        "times": None,
        "user_ids": np.array([1]),
        "catalogue": Catalogue(np.array([1, 2])),
        "scale": STARS,
    }
    assert len(Ratings(**right)) == 2
    with pytest.raises(InvalidData):
        Ratings(**(right | changed))


def test_two_domains_share_user_codes():
    films = from_arrays(["a", "b"], ["f1", "f1"], [1, 2], scale=STARS)
    books = from_arrays(["c", "b", "b"], ["b1", "b1", "b2"], [3, 4, 5], scale=STARS)
    pair = TwoDomains.align(films, books)
    assert pair.source.user_ids.tolist() == pair.target.user_ids.tolist() == ["a", "b", "c"]
    assert pair.shared.tolist() == [1]
    assert rows(pair.target) == [("b", "b1", 4.0, None), ("b", "b2", 5.0, None), ("c", "b1", 3.0, None)]
    assert pair.reversed().source is pair.target


def test_numeric_and_text_user_ids_meet_as_text():
    films = from_arrays([10, 9], ["f", "f"], [1, 2], scale=STARS)
    books = from_arrays(["9", "x"], ["b", "b"], [3, 4], scale=STARS)
    pair = TwoDomains.align(films, books)
    assert rows(pair.source) == [("10", "f", 1.0, None), ("9", "f", 2.0, None)]
    assert pair.shared.tolist() == [1]


def test_an_item_in_both_domains_is_refused():
    films = from_arrays(["a"], ["same"], [1], scale=STARS)
    with pytest.raises(InvalidData, match="in both domains"):
        TwoDomains.align(films, films)


def test_a_mix_keeps_people_apart_and_items_together():
    old = from_arrays([1, 2], [10, 20], [1, 5], scale=STARS, name="old")
    new = from_arrays([1], [20], [3], [50], scale=STARS, name="new")
    both = mix([old, new])
    assert both.user_ids.tolist() == ["new:1", "old:1", "old:2"]
    assert both.csr().toarray().tolist() == [[0, 3], [1, 0], [0, 5]]
    listed = mix([old, new], catalogue=new.catalogue, listed_only=True)
    assert listed.catalogue.ids.tolist() == [20]
    assert listed.csr().toarray().tolist() == [[3], [0], [5]]
