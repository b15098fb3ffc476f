import gzip
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


@pytest.mark.parametrize("text", [HEADER, HEADER.strip(), HEADER + "\n\n"])
def test_a_header_alone_is_refused_as_it_holds_no_ratings(tmp_path, text):
    with pytest.raises(InvalidData, match="holds no ratings"):
        read(tmp_path / "r.csv", text)


def test_a_parquet_file_without_rows_is_refused(tmp_path):
    path = tmp_path / "r.parquet"
    frame = pl.DataFrame({"who": ["a"], "what": ["x"], "stars": [1.0], "when": [1]})
    frame.head(0).write_parquet(path)
    with pytest.raises(InvalidData, match="holds no ratings"):
        read(path)


def test_a_file_without_header_is_refused_without_showing_its_first_line(tmp_path):
    with pytest.raises(MissingColumn) as caught:
        read(tmp_path / "r.csv", "alice@example.org,secretfilm,5,77\nbob,x,4,1\n")
    message = str(caught.value)
    assert "among its 4 columns. The file may lack a header line." in message
    assert not any(secret in message for secret in ("alice", "secretfilm", "'5'", "77"))


def test_another_separator_is_noticed(tmp_path):
    with pytest.raises(MissingColumn, match=r"among its 1 column\..*pass separator=';' .*--separator"):
        read(tmp_path / "r.csv", GOOD.replace(",", ";"))
    with pytest.raises(MissingColumn, match=r"pass separator=','"):
        read(tmp_path / "r.tsv", GOOD)
    with pytest.raises(MissingColumn, match=r"pass separator=';'") as caught:
        read(tmp_path / "r.csv", "s3cret;x;4,5;1\ns3cret;y;4,0;1\n".replace(",5", ".5").replace(",0", ".0"))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("separator", ["ä", "::", "", '"', "\n"])
def test_a_separator_that_is_not_one_ascii_character_is_refused(tmp_path, separator):
    with pytest.raises(InvalidParameter, match="one ASCII character"):
        read(tmp_path / "r.csv", GOOD, separator=separator)


def test_a_wanted_column_that_comes_twice_is_refused(tmp_path):
    with pytest.raises(InvalidData, match="has 2 columns 'stars'; rename all but one"):
        read(tmp_path / "r.csv", "who,what,stars,when,stars\nann,x,4,1,5\n")
    note = "who,note,what,stars,when,note\nann,a,x,4,1,b\n"
    assert len(read(tmp_path / "r.csv", note)) == 1  # a column that nobody reads may come twice
    named = "who,what,stars,when,stars_duplicated_0\nann,x,4,1,5\n"
    assert len(read(tmp_path / "r.csv", named)) == 1


def test_damaged_compression_and_random_bytes_are_called_what_they_are(tmp_path):
    packed = gzip.compress((HEADER + "".join(f"u{n},x,{n % 5 + 1},{n}\n" for n in range(5000))).encode())
    damaged = packed[:500] + bytes(200) + packed[700:]
    for content in (packed[: len(packed) // 2], packed[:12], damaged):
        with pytest.raises(InvalidData, match="damaged or cut off"):
            read(tmp_path / "r.csv.gz", content)
    rng = np.random.default_rng(1)
    for size in (60, 3000):
        for name in ("r.csv", "r.csv.gz"):
            with pytest.raises(InvalidData, match="is not UTF-8 text, nor text compressed"):
                read(tmp_path / name, b"\x00" + rng.bytes(size))


def test_an_infinite_rating_is_not_called_missing(tmp_path):
    with pytest.raises(InvalidData, match="not finite"):
        read(tmp_path / "r.csv", HEADER + "ann,x,inf,1\n")


def test_the_hint_about_duplicates_serves_the_command_line_too(tmp_path):
    with pytest.raises(DuplicateRatings, match=r"duplicates='latest' .*--duplicates latest\|mean"):
        read(tmp_path / "r.csv", HEADER + "ann,x,4,1\nann,x,5,1\n")


def test_the_type_of_a_parquet_column_is_named_without_its_values(tmp_path):
    path = tmp_path / "r.parquet"
    good = {"who": ["a"], "what": ["x"], "stars": [1.0], "when": [1]}
    for column in ("stars", "when"):
        secret = pl.Series(column, ["s3cret"], dtype=pl.Enum(["s3cret"]))
        pl.DataFrame(good).with_columns(secret).write_parquet(path)
        with pytest.raises(InvalidData, match=f"column '{column}'") as caught:
            read(path)
        assert "s3cret" not in str(caught.value)


def test_a_time_beyond_64_bits_names_its_row_and_not_its_value(tmp_path):
    path = tmp_path / "r.parquet"
    when = pl.Series([1, 2**63 + 77], dtype=pl.UInt64)
    pl.DataFrame({"who": ["a", "b"], "what": ["x", "x"], "stars": [1.0, 2.0], "when": when}).write_parquet(path)
    with pytest.raises(InvalidData, match="row 2, column 'when'") as caught:
        read(path)
    assert str(2**63 + 77) not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_file_that_is_not_there_and_one_column_for_two_roles(tmp_path):
    with pytest.raises(InvalidData, match="does not exist"):
        read(tmp_path / "none.csv")
    with pytest.raises(InvalidParameter, match="different columns"):
        read(tmp_path / "r.csv", GOOD, item="who")


def test_sparse_and_dense_ids_are_coded_alike(tmp_path):
    from tacit.data.catalogue import encode

    rng = np.random.default_rng(5)
    for top in (50, 2**62):
        raw = rng.integers(-top, top, 200)
        known = rng.integers(-top, top, 20)
        ids, codes = encode(raw, known)
        assert ids.tolist() == sorted(set(raw.tolist()) | set(known.tolist()))
        assert ids[codes].tolist() == raw.tolist()


def test_counting_gives_the_order_that_sorting_gives(monkeypatch):
    from tacit.data import assemble

    rng = np.random.default_rng(8)
    users, items = (rng.integers(0, n, 5000).astype(np.int32) for n in (40, 60))  # many pairs come twice
    sorted_order = assemble.stable_order(users, items, 40, 60)
    monkeypatch.setattr(assemble, "_MANY_ROWS", 0)
    assert np.array_equal(assemble.stable_order(users, items, 40, 60), sorted_order)
    assert np.array_equal(sorted_order, np.lexsort((np.arange(5000), items, users)))
