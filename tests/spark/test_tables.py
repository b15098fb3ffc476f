"""Tables: what is read, what is refused, which ratings count."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tacit.data.ratings import Scale
from tacit.engines.spark.similarities import capped
from tacit.engines.spark.tables import (
    cleaned,
    coded,
    enough,
    latest,
    numbers,
    ratings_table,
    read_table,
    with_codes,
    write_table,
)
from tacit.errors import InvalidData, MissingColumn, RatingOutsideScale, TacitError

STARS = Scale(1.0, 5.0)
COLUMNS = "user string, item string, value double, time long, domain string"
GOOD = [("ann", "a", 4.0, 1, "source"), ("ann", "x", 2.0, 2, "target"), ("bob", "a", 5.0, 1, "source")]


def frame(session: SparkSession, *rows: tuple[object, ...], columns: str = COLUMNS) -> DataFrame:
    return ratings_table(session.createDataFrame([*rows], columns))


def content(table: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in table.select("user", "item", "value").collect())


def test_what_is_written_is_read_again(session: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "ratings.parquet")
    for _ in range(2):  # the second time in place of the first
        write_table(frame(session, *GOOD, ("cy", "b", 3.0, None, "source")), place)
    found = ratings_table(read_table(session, place))
    assert sorted(tuple(row) for row in found.collect()) == [*GOOD, ("cy", "b", 3.0, None, "source")]


def test_what_is_no_table_is_refused_with_its_place(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "nowhere", tmp_path / "empty"):
        with pytest.raises(InvalidData, match=place.name):
            read_table(session, str(place))


def test_times_may_be_missing_or_timestamps(session: SparkSession) -> None:
    untimed = frame(session, ("ann", 1, 4.0, "source"), columns="user string, item int, value float, domain string")
    assert untimed.first()["time"] is None
    stamp = datetime(2026, 11, 1, tzinfo=UTC)
    table = session.createDataFrame(
        pa.table({"user": [7], "item": [1], "value": [4], "time": [stamp], "domain": ["source"]})
    )
    assert ratings_table(table).first()["time"] == int(stamp.timestamp())


@pytest.mark.parametrize(
    ("columns", "row", "expected"),
    [
        ("user string, value double, time long, domain string", ("ann", 1.0, 1, "source"), "item"),
        ("user string, item string, value string, time long, domain string", ("ann", "a", "4", 1, "source"), "value"),
        ("user double, item string, value double, time long, domain string", (0.5, "a", 4.0, 1, "source"), "user"),
        (
            "user string, item string, value double, time double, domain string",
            ("ann", "a", 4.0, 1.5, "source"),
            "time",
        ),
        ("user string, item string, value double, time long, domain int", ("ann", "a", 4.0, 1, 0), "domain"),
    ],
)
def test_a_table_of_another_shape_is_refused_before_its_rows_are_read(
    session: SparkSession, columns: str, row: tuple[object, ...], expected: str
) -> None:
    with pytest.raises(InvalidData, match=f"'{expected}'") as problem:
        frame(session, row, columns=columns)
    assert isinstance(problem.value, MissingColumn) == (expected == "item")


@pytest.mark.parametrize(
    "kind", ["double", "decimal(38,0)", "timestamp", "date", "boolean", "binary", "array<string>", "struct<id: string>"]
)
def test_ids_are_whole_numbers_or_text(session: SparkSession, kind: str) -> None:
    """Others have several forms of one id, such as 0.0 and -0.0, or are not told apart alike everywhere."""
    for column in ("user", "item"):
        kinds = {"user": "string", "item": "string", column: kind}
        listed = ", ".join(f"{name} {of}" for name, of in kinds.items())
        with pytest.raises(InvalidData, match=f"'{column}' must hold whole numbers or text"):
            ratings_table(session.createDataFrame([], f"{listed}, value double"), domain=False)


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UTF8_BINARY_RTRIM", "UNICODE", "UNICODE_CI_AI"])
def test_users_with_a_collation_are_refused(session: SparkSession, collation: str) -> None:
    """By it 'Bob' and 'bob' are one user; byte by byte they would be two, and she would count twice."""
    plain = session.createDataFrame([GOOD[0]], COLUMNS)
    collated = plain.withColumn("user", F.col("user").cast(StringType(collation)))
    with pytest.raises(InvalidData, match=f"collation {collation}.* cast the column to plain string"):
        ratings_table(collated)


def test_items_and_domains_are_compared_byte_by_byte(session: SparkSession, tmp_path: Path) -> None:
    rows = [("ann", "film", 4.0, "source"), ("ann", "Film", 2.0, "source"), ("ann", "x", 1.0, "target")]
    plain = session.createDataFrame(rows, "user string, item string, value double, domain string")
    collated = plain.withColumns({name: F.col(name).cast(StringType("UTF8_LCASE")) for name in ("item", "domain")})
    write_table(collated, str(tmp_path / "collated"))
    kept = read_table(session, str(tmp_path / "collated"))
    assert kept.schema["item"].dataType == StringType("UTF8_LCASE")  # a file keeps it
    assert content(latest(ratings_table(kept))) == sorted(row[:3] for row in rows)
    items = coded(kept)
    assert [part.ids.tolist() for part in items.catalogues()] == [["Film", "film"], ["x"]]
    assert with_codes(ratings_table(plain), items).count() == 3
    shouted = kept.withColumn("domain", F.upper("domain"))
    with pytest.raises(InvalidData, match="a domain that is neither"):
        coded(shouted)


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        (("secret", "a", math.nan, 1, "source"), RatingOutsideScale, "on the scale 1 to 5"),
        (("secret", "a", math.inf, 1, "source"), RatingOutsideScale, "on the scale"),
        (("secret", "a", None, 1, "source"), RatingOutsideScale, "on the scale"),
        (("secret", "a", 5.5, 1, "source"), RatingOutsideScale, "on the scale"),
        (("secret", "a", -777.25, 1, "source"), RatingOutsideScale, "on the scale"),
        ((None, "a", 4.0, 1, "source"), InvalidData, "no user"),
        (("secret", None, 4.0, 1, "source"), InvalidData, "no item"),
        (("secret", "a", 4.0, 1, "sauce"), InvalidData, "a domain that is neither"),
        (("secret", "a", 4.0, 1, None), InvalidData, "a domain that is neither"),
    ],
)
def test_a_bad_row_is_refused_and_not_quoted(
    session: SparkSession, row: tuple[object, ...], error: type[TacitError], words: str
) -> None:
    with pytest.raises(error, match=words) as problem:
        cleaned(frame(session, *GOOD, row), STARS, least=1)
    assert "secret" not in str(problem.value)
    assert "777" not in str(problem.value)


def test_bad_values_are_moved_or_left_out_where_that_is_asked_for(session: SparkSession) -> None:
    wild = [("cy", "a", 9.0, 1, "source"), ("cy", "x", math.nan, 1, "target"), ("di", "a", -math.inf, 1, "source")]
    table = frame(session, *GOOD, *wild)
    found = content(cleaned(table, STARS, least=1, clip=True))
    assert found == sorted([row[:3] for row in GOOD] + [("cy", "a", 5.0)])
    with pytest.raises(InvalidData, match="scale"):
        cleaned(table, clip=True)


def test_an_item_in_both_domains_is_refused(session: SparkSession) -> None:
    with pytest.raises(InvalidData, match="both domains"):
        coded(frame(session, *GOOD, ("bob", "x", 3.0, 5, "source")))
    for bad in ((None, "source"), ("z", "sauce"), ("z", None)):
        with pytest.raises(InvalidData):
            coded(session.createDataFrame([("a", "source"), bad], "item string, domain string"))


@pytest.mark.parametrize("clip", [False, True])
def test_an_item_in_both_domains_is_refused_also_where_too_few_rated_it(session: SparkSession, clip: bool) -> None:
    with pytest.raises(InvalidData, match="both domains"):
        cleaned(frame(session, *GOOD, ("bob", "x", 3.0, 5, "source")), Scale(1.0, 5.0), least=2, clip=clip)


def test_the_source_comes_first_and_ids_ascend(session: SparkSession) -> None:
    listed = [(10, "target"), (2, "target"), (30, "source"), (9, "source"), (9, "source")]
    items = coded(session.createDataFrame(listed, "item int, domain string"))
    found = {row["item"]: row["code"] for row in items.frame.collect()}
    assert (found, items.n_source, items.n_items) == ({9: 0, 30: 1, 2: 2, 10: 3}, 2, 4)
    source, target = items.catalogues()
    assert (source.ids.tolist(), target.ids.tolist()) == ([9, 30], [2, 10])


def test_numbers_and_texts_do_not_meet(session: SparkSession) -> None:
    items = coded(session.createDataFrame([(1, "source")], "item int, domain string"))
    with pytest.raises(InvalidData, match="whole numbers in one table and text"):
        with_codes(frame(session, *GOOD), items)


def test_the_latest_rating_counts_and_of_equal_times_the_highest(session: SparkSession) -> None:
    rows = [
        *[("ann", "a", value, time, "source") for value, time in ((5.0, 1), (2.0, 3), (4.0, 2))],
        *[("ann", "b", value, time, "source") for value, time in ((1.0, 7), (3.0, 7), (2.0, 7))],
        *[("bob", "a", value, time, "source") for value, time in ((1.0, None), (5.0, -9), (4.0, None))],
        *[("bob", "b", value, None, "source") for value in (1.0, 2.0)],
    ]
    expected = [("ann", "a", 2.0), ("ann", "b", 3.0), ("bob", "a", 5.0), ("bob", "b", 2.0)]
    assert content(latest(frame(session, *rows))) == expected
    assert content(latest(frame(session, *reversed(rows)).repartition(3))) == expected


def test_a_domain_with_too_few_ratings_of_a_user_is_left_out_alone(session: SparkSession) -> None:
    rows = [("ann", item, 3.0, 1, "source") for item in "abc"] + [("ann", item, 3.0, 1, "target") for item in "xy"]
    assert content(enough(frame(session, *rows), 3)) == [("ann", item, 3.0) for item in "abc"]
    assert content(enough(frame(session, *rows), 2)) == [("ann", item, 3.0) for item in "abcxy"]


def test_a_capped_user_loses_ratings_without_a_time_first(session: SparkSession) -> None:
    rows = [("ann", 1, 3.0, 5), ("ann", 2, 3.0, None), ("ann", 3, 3.0, -5), ("ann", 4, 3.0, 5), ("bob", 2, 1.0, None)]
    table = session.createDataFrame(rows, "user string, code int, value double, time long")
    kept = {(row["user"], row["code"]) for row in capped(table, 3).collect()}
    assert kept == {("ann", 1), ("ann", 4), ("ann", 3), ("bob", 2)}
    assert {row["code"] for row in capped(table, 1).where("user = 'ann'").collect()} == {1}  # of equal times the lower


def test_rows_that_say_nothing_are_passed_over_where_nothing_may_be_refused(session: SparkSession) -> None:
    useless = [(None, "a", 4.0, 1, "source"), ("cy", None, 4.0, 1, "source"), ("cy", "a", None, 1, "source")]
    useless += [("cy", "b", value, 1, "source") for value in (math.nan, math.inf, -math.inf, 1e300)]
    assert content(numbers(frame(session, *GOOD, *useless))) == sorted(row[:3] for row in GOOD)
