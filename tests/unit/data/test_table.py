from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tacit.data import MISSING_TIME, STARS, Ratings, Scale, read_table
from tacit.errors import DuplicateRatings, InvalidData, InvalidParameter, MissingColumn, RatingOutsideScale, TacitError
from tests.unit.data.layouts import rows

HEADER = "who,what,stars,when\n"
GOOD = HEADER + "ann,x,4,100\nann,y,2,110\nbob,x,1,90\n"


def read(path: Path, text: str | bytes | None = None, **options: object) -> Ratings:
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    columns = {"user": "who", "item": "what", "rating": "stars", "time": "when", "scale": STARS}
    return read_table(path, **(columns | options))


def test_columns_are_mapped_by_name(tmp_path):
    ratings = read(tmp_path / "reviews.csv", GOOD)
    assert rows(ratings) == [("ann", "x", 4.0, 100), ("ann", "y", 2.0, 110), ("bob", "x", 1.0, 90)]
    assert ratings.name == "reviews"
    assert read(tmp_path / "reviews.csv", time=None).times is None


def test_other_columns_are_left_alone(tmp_path):
    text = "note,stars,what,who,when\n\"a, b\",4,x,ann,100\n'',2,y,ann,110\n"
    assert rows(read(tmp_path / "r.csv", text)) == [("ann", "x", 4.0, 100), ("ann", "y", 2.0, 110)]


def test_tabs_and_other_separators(tmp_path):
    assert len(read(tmp_path / "r.tsv", GOOD.replace(",", "\t"))) == 3
    assert len(read(tmp_path / "r.txt", GOOD.replace(",", ";"), separator=";")) == 3


def test_ids_that_are_all_whole_numbers_become_numbers_in_numeric_order(tmp_path):
    ratings = read(tmp_path / "r.csv", HEADER + "10,7,1,\n9,7,2,\n-3,7,3,\n")
    assert ratings.user_ids.tolist() == [-3, 9, 10]
    assert ratings.values.tolist() == [3, 2, 1]


def test_ids_with_leading_zeros_stay_text(tmp_path):
    ratings = read(tmp_path / "r.csv", HEADER + "1,007,1,\n2,7,2,\n")
    assert ratings.catalogue.ids.tolist() == ["007", "7"]
    assert ratings.user_ids.tolist() == [1, 2]


def test_a_late_text_id_makes_the_whole_column_text(tmp_path):
    lines = "".join(f"{user},x,3,\n" for user in range(500)) + "zoe,x,3,\n"
    ratings = read(tmp_path / "r.csv", HEADER + lines)
    assert (ratings.n_users, ratings.user_ids.dtype.kind) == (501, "U")


def test_parquet_is_read_with_its_own_types(tmp_path):
    path = tmp_path / "r.parquet"
    moment = pl.Series([1_000_000, None]).cast(pl.Datetime("us"))
    pl.DataFrame({"who": [5, 6], "what": ["a", "b"], "stars": [1.0, 5.0], "when": moment}).write_parquet(path)
    assert rows(read(path)) == [(5, "a", 1.0, 1), (6, "b", 5.0, MISSING_TIME)]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("86400", 86_400),
        ("1970-01-02", 86_400),
        ("1970-01-02T00:00:01", 86_401),
        ("1970-01-02 00:00:01.5", 86_401),
        ("1970-01-02T00:00:01Z", 86_401),
        ("1970-01-02 00:00:01+00:00", 86_401),
        ("", MISSING_TIME),
    ],
)
def test_times_are_numbers_dates_or_missing(tmp_path, written, seconds):
    assert read(tmp_path / "r.csv", HEADER + f"ann,x,4,{written}\nbob,x,4,5\n").times.tolist() == [seconds, 5]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("latest", [("ann", "x", 5.0, 300), ("bob", "x", 2.0, 7)]),
        ("mean", [("ann", "x", 3.0, 300), ("bob", "x", 1.5, 7)]),
    ],
)
def test_duplicates_follow_the_policy(tmp_path, policy, kept):
    text = HEADER + "ann,x,3,100\nbob,x,1,7\nann,x,5,300\nann,x,1,200\nbob,x,2,7\n"
    ratings = read(tmp_path / "r.csv", text, duplicates=policy)
    assert rows(ratings) == kept
    assert ratings.scale == (STARS if policy == "latest" else Scale(1, 5))


def test_without_times_the_last_row_wins(tmp_path):
    text = HEADER + "ann,x,3,\nann,x,5,\nann,x,1,\n"
    assert read(tmp_path / "r.csv", text, duplicates="latest").values.tolist() == [1]
    assert read(tmp_path / "r.csv", text, duplicates="latest", time=None).values.tolist() == [1]


def test_a_missing_time_never_beats_a_known_one(tmp_path):
    text = HEADER + "ann,x,3,50\nann,x,5,\n"
    assert read(tmp_path / "r.csv", text, duplicates="latest").values.tolist() == [3]


def test_an_unknown_policy_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="error, latest, mean"):
        read(tmp_path / "r.csv", GOOD, duplicates="first")


SECRETS = ("s3cret", "77")

BAD = {
    "a missing column": (
        "who,item,stars,when\ns3cret,x,4,1\n",
        MissingColumn,
        ["'what'", "'who', 'item', 'stars', 'when'", "item="],
    ),
    "a rating outside the scale": (
        HEADER + "ann,x,4,1\ns3cret,x,77,1\n",
        RatingOutsideScale,
        ["line 3", "'stars'", "1 to 5 in steps of 1"],
    ),
    "a rating between the steps": (HEADER + "s3cret,x,4.5,1\n", RatingOutsideScale, ["line 2", "'stars'"]),
    "duplicates": (
        HEADER + "s3cret,x,4,1\nann,x,4,1\ns3cret,x,3,2\n",
        DuplicateRatings,
        ["line 4", "line 2", "latest"],
    ),
    "text for a rating": (HEADER + "ann,x,4,1\nann,y,s3cret,1\n", InvalidData, ["line 3", "'stars'", "a number"]),
    "NaN for a rating": (HEADER + "s3cret,x,NaN,1\n", InvalidData, ["line 2", "'stars'"]),
    "infinity for a rating": (HEADER + "s3cret,x,inf,1\n", InvalidData, ["line 2", "'stars'"]),
    "no rating": (HEADER + "s3cret,x,,1\n", InvalidData, ["line 2", "'stars'", "a number"]),
    "no user": (HEADER + "ann,x,4,1\n,s3cret,4,1\n", InvalidData, ["line 3", "'who'"]),
    "an empty user in quotes": (HEADER + 'ann,x,4,1\n"",s3cret,4,1\n', InvalidData, ["line 3", "'who'"]),
    "a blank line in the middle": (HEADER + "ann,x,4,1\n\ns3cret,x,4,1\n", InvalidData, ["line 3", "'who'"]),
    "a short line": (HEADER + "ann,x,4,1\ns3cret,x\n", InvalidData, ["line 3", "'stars'"]),
    "a long line": (
        HEADER + "ann,x,4,1\ns3cret,x,4,1,5\n",
        InvalidData,
        ["line 3", "more cells than the header has (4)"],
    ),
    "text for a time": (
        HEADER + "ann,x,4,1\nbob,x,4,s3cret\n",
        InvalidData,
        ["line 3", "'when'", "seconds since 1970"],
    ),
    "bytes that are no text": (HEADER.encode() + b"s3cret\xe9,x,4,1\n", InvalidData, ["line 2", "UTF-8"]),
    "an open quote": (HEADER + 'ann,x,4,1\n"s3cret,x,4,1\n', InvalidData, ["quotation mark"]),
    "nothing": ("", InvalidData, ["empty"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_the_place_and_shows_no_private_value(tmp_path, case):
    text, kind, expected = BAD[case]
    with pytest.raises(TacitError) as caught:
        read(tmp_path / "r.csv", text)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message.startswith(f"{kind.code}: {tmp_path / 'r.csv'}")
    assert all(part in message for part in expected), message
    # Neither in the message nor in an error it came from: a traceback would print both.
    error: BaseException | None = caught.value
    while error is not None:
        assert not any(secret in str(error) for secret in SECRETS), str(error)
        error = error.__cause__ or error.__context__


def test_bad_cells_of_a_parquet_file_name_the_row(tmp_path):
    path = tmp_path / "r.parquet"
    good = {"who": ["a", "b"], "what": ["x", "y"], "stars": [1.0, 2.0], "when": [1, 2]}
    for column, values, expected in [
        ("stars", [1.0, 9.0], "row 2, column 'stars'"),
        ("stars", [1.0, None], "row 2, column 'stars'"),
        ("stars", ["1", "2"], "column 'stars': expected a number, found String"),
        ("who", ["a", None], "row 2, column 'who'"),
        ("when", [1.5, 2.5], "column 'when': expected whole seconds"),
    ]:
        pl.DataFrame(good | {column: values}, strict=False).write_parquet(path)
        with pytest.raises(InvalidData) as caught:
            read(path)
        assert expected in str(caught.value)
    path.write_bytes(b"PAR1 no PAR1")
    with pytest.raises(InvalidData, match="not a Parquet file"):
        read(path)


def test_a_header_alone_is_an_empty_set_of_ratings(tmp_path):
    assert len(read(tmp_path / "r.csv", HEADER)) == 0


def test_a_file_that_is_not_there_and_one_column_for_two_roles(tmp_path):
    with pytest.raises(InvalidData, match="is not there"):
        read(tmp_path / "none.csv")
    with pytest.raises(InvalidParameter, match="different columns"):
        read(tmp_path / "r.csv", GOOD, item="who")


def test_sparse_and_dense_ids_are_coded_alike(tmp_path):
    from tacit.data.ids import encode

    rng = np.random.default_rng(5)
    for top in (50, 2**62):
        raw = rng.integers(-top, top, 200)
        known = rng.integers(-top, top, 20)
        ids, codes = encode(raw, known)
        assert ids.tolist() == sorted(set(raw.tolist()) | set(known.tolist()))
        assert ids[codes].tolist() == raw.tolist()


def test_counting_gives_the_order_that_sorting_gives(monkeypatch):
    from tacit.data import order

    rng = np.random.default_rng(8)
    users, items = (rng.integers(0, n, 5000).astype(np.int32) for n in (40, 60))  # many pairs come twice
    sorted_order = order.stable_order(users, items, 40, 60)
    monkeypatch.setattr(order, "_LARGE", 0)
    assert np.array_equal(order.stable_order(users, items, 40, 60), sorted_order)
    assert np.array_equal(sorted_order, np.lexsort((np.arange(5000), items, users)))
