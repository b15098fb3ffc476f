"""Private moments: exact sums on Spark, noise on the driver, once."""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tacit.engines.spark.rows import SparkRows, tables
from tacit.engines.spark.tables import coded
from tacit.errors import InvalidData
from tacit.mechanisms.noise import ReplayedNoise
from tacit.mechanisms.rating_moments import RatingMoments
from tacit.mechanisms.rating_rows import RatingBounds, TotalsOnDemand
from tacit.mechanisms.transfer_moments import OffsetSums, PairMoments, TransferMoments
from tests.spark.world import layered

BOUNDS = RatingBounds(1.0, 5.0)
WORLD = layered(users=400)
TABLE, _ = WORLD.table()
ITEMS, SOURCE = WORLD.n_items, WORLD.n_source
OFFSETS = OffsetSums(ITEMS, BOUNDS, mu=0.5, delta=1e-6)


@pytest.fixture(scope="module")
def rows(session: SparkSession) -> Iterator[SparkRows]:
    made = SparkRows(WORLD.frame(session), coded(WORLD.listed(session))).ready()
    yield made
    made.forget()


@pytest.mark.parametrize(
    "step",
    [
        OFFSETS,
        PairMoments(ITEMS, tuple(range(0, ITEMS, 3)), BOUNDS, mu=0.5, delta=1e-6),
        RatingMoments(ITEMS, SOURCE, RatingBounds(1.0, 5.0, centre=3.0), mu=0.5, delta=1e-6),
    ],
    ids=lambda step: step.name,
)
def test_totals_are_exactly_those_of_one_machine(rows: SparkRows, step: Any) -> None:
    expected = step.totals(TABLE)
    assert np.abs(expected).sum() > 0
    assert np.array_equal(rows.totals(step), expected)


def test_a_release_has_the_same_noise_on_the_same_totals(rows: SparkRows) -> None:
    assert isinstance(rows, TotalsOnDemand)
    mechanism = TransferMoments(ITEMS, SOURCE, BOUNDS, mu=0.5, delta=1e-6, head_size=20)
    here, there = (mechanism.release(one, ReplayedNoise(7)).value for one in (TABLE, rows))
    assert np.array_equal(here.offsets.steps, there.offsets.steps)
    assert np.array_equal(here.head, there.head)
    assert np.array_equal(here.pairs.steps, there.pairs.steps)  # type: ignore[union-attr]


@dataclass(frozen=True)
class Fails:
    """Adds up as it should; but the first time that a partition is tried, everything it did is thrown away at the end."""

    step: OffsetSums
    notes: Path

    @property
    def length(self) -> int:
        return self.step.length

    def totals(self, rows: Any) -> NDArray[np.int64]:
        found = self.step.totals(rows)
        context = TaskContext.get()
        assert context is not None
        (self.notes / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        if context.attemptNumber() == 0:
            raise RuntimeError("lost")
        return found


def test_a_task_that_runs_twice_counts_once(rows: SparkRows, tmp_path: Path) -> None:
    assert np.array_equal(rows.totals(Fails(OFFSETS, tmp_path)), OFFSETS.totals(TABLE))
    tried = [name.split("-") for name in os.listdir(tmp_path)]
    assert {partition for partition, attempt in tried if attempt == "0"} == {
        partition for partition, attempt in tried if attempt == "1"
    }
    assert len(tried) >= 4


@dataclass(frozen=True)
class Seen:
    """Says of each table it is given how many users it has, and draws nothing."""

    length: int = 3

    def totals(self, rows: Any) -> NDArray[np.int64]:
        return np.array([rows.shape[0], rows.nnz, 1], dtype=np.int64)


def test_every_user_is_whole_and_in_one_place_among_many_partitions(session: SparkSession) -> None:
    session.conf.set("spark.sql.shuffle.partitions", "11")  # so many that sums are added up on the workers first
    try:
        many = SparkRows(WORLD.frame(session), coded(WORLD.listed(session)))
        users, ratings, parts = many.totals(Seen()).tolist()
        assert (users, ratings) == (TABLE.shape[0], TABLE.nnz)
        assert 8 < parts <= 11
        assert np.array_equal(many.totals(OFFSETS), OFFSETS.totals(TABLE))
    finally:
        session.conf.set("spark.sql.shuffle.partitions", "3")


def test_the_last_thing_before_users_are_added_up_is_that_each_is_put_into_one_partition(session: SparkSession) -> None:
    """Whatever the planner does before: where the number is stated it may neither split nor leave out this step."""
    frame = SparkRows(WORLD.frame(session), coded(WORLD.listed(session)), least=2)._frame  # not the one that is kept
    plan = frame._jdf.queryExecution().optimizedPlan().toString().splitlines()
    assert plan[0].startswith("Sort [user")
    assert re.fullmatch(r"\+- RepartitionByExpression \[user#\d+\], 3", plan[1])
    executed = frame._jdf.queryExecution().executedPlan().toString()
    last = next(line for line in executed.splitlines() if "Exchange" in line)
    assert "hashpartitioning(user" in last
    assert "REPARTITION_BY_NUM" in last


def test_no_row_is_refused_and_what_is_not_listed_does_not_count(session: SparkSession) -> None:
    listed = session.createDataFrame([("a", "source"), ("b", "source"), ("x", "target")], "item string, domain string")
    columns = "user string, item string, value double, time long"
    good = [("ann", "a", 4.0, 1), ("ann", "b", 2.0, 1), ("ann", "x", 5.0, 1), ("bob", "x", 1.0, 1)]
    odd: list[tuple[object, ...]] = [
        ("ann", "a", 1.0, 0),  # an earlier rating of the same item
        ("ann", "unlisted", 1.0, 1),
        ("ann", "b", float("nan"), 2),
        (None, "a", 4.0, 1),
        ("bob", None, 4.0, 1),
        ("bob", "a", None, 9),
        ("cy", "unlisted", 5.0, 1),
    ]
    step = OffsetSums(3, BOUNDS, mu=0.5, delta=1e-6)
    found = [SparkRows(session.createDataFrame(one, columns), coded(listed)) for one in (good, [*good, *odd])]
    nothing = SparkRows(session.createDataFrame(odd[3:], columns), coded(listed))
    first, second = (one.totals(step) for one in found)
    assert np.array_equal(first, second)
    assert first.any()
    assert not nothing.totals(step).any()
    few = SparkRows(session.createDataFrame([*good, *odd], columns), coded(listed), least=2)  # bob and ann's x are gone
    assert np.flatnonzero(few.totals(step)[3:]).tolist() == [0, 1]


# ids that differ in case, in a space, in their form of Unicode, in nothing but an end; and two that UTF-16 has the other way round
ALIKE = ["bob", "Bob", "bob ", "bob\0", "", "é", "e\u0301", "z", "\uffff", "\U00010000"]


def test_each_text_is_one_user_and_has_one_row(session: SparkSession) -> None:
    table = np.random.default_rng(3).integers(1, 6, (len(ALIKE), 64)).astype(np.float64)
    ratings = [(user, item, table[place, item].item()) for item in range(64) for place, user in enumerate(ALIKE)]
    listed = session.createDataFrame(
        [(item, "source" if item < 32 else "target") for item in range(64)], "item long, domain string"
    )
    step = OffsetSums(64, BOUNDS, mu=0.5, delta=1e-6)
    frame = session.createDataFrame(ratings, "user string, item long, value double").repartition(5)
    rows = SparkRows(frame, coded(listed))
    assert rows.totals(Seen()).tolist()[:2] == [len(ALIKE), table.size]
    assert np.array_equal(rows.totals(step), step.totals(table))
    alone = SparkRows(frame.where(F.col("user") == "Bob"), coded(listed)).totals(step)
    assert math.hypot(*alone.tolist()) <= step.norm_in_steps
    with pytest.raises(InvalidData, match="collation UTF8_LCASE"):
        SparkRows(frame.withColumn("user", F.col("user").cast(StringType("UTF8_LCASE"))), coded(listed))


@pytest.mark.parametrize(
    "users",
    [
        ["ann", "bob", "ann"],
        ["bob", "Bob", "bob"],
        ["bob", "bob", "ann"],
        ["ann", None],
        [None, "ann", "ann"],
        [1, 2, 1],
    ],
    ids=str,
)
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_a_worker_adds_up_nothing_where_a_user_might_come_twice(
    users: list[Any], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.engines.spark.rows._AT_ONCE", at_once)
    codes = pa.array(range(len(users)), pa.int32())
    whole = pa.table({"user": users, "code": codes, "value": [4.0] * len(users)})
    for size in (1, 2, 100):
        with pytest.raises(InvalidData, match="not in ascending order") as problem:
            list(tables(iter(whole.to_batches(max_chunksize=size)), 10))
        assert not any(str(user) in str(problem.value).split() for user in users)


def test_users_stay_whole_however_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.engines.spark.rows._AT_ONCE", 4)
    counts = [1, 9, 2, 3, 1, 1, 6]
    user = np.repeat(np.arange(len(counts)), counts)
    code = np.concatenate([np.arange(count) for count in counts])
    whole = pa.table({"user": [f"u{one}" for one in user], "code": code.astype(np.int32), "value": code + 1.0})
    for size in (1, 2, 3, 5, 100):
        found = list(tables(iter(whole.to_batches(max_chunksize=size)), 10))
        assert [int(count) for part in found for count in np.diff(part.indptr)] == counts
        assert np.array_equal(np.concatenate([part.data for part in found]), code + 1.0)
        assert size == 100 or len(found) > 1
    assert list(tables(iter([]), 10)) == []


def test_its_form_tells_nothing_of_rows(rows: SparkRows) -> None:
    assert repr(rows) == f"SparkRows({ITEMS} items)"
