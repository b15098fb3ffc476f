"""The rows of all users on a cluster. A mechanism gets only exact sums of them (`TotalsOnDemand`).

Workers run the mechanism's own code, in whole numbers, on the users of their partitions. The total does not depend on
how the users are spread. No worker draws noise: the driver draws it once and adds it to the total. All rows of a user
are in one partition: users are partitioned, sorted and compared byte by byte, and a worker checks that they ascend. The
sums of a partition are one row of the result. If a worker is lost or a task runs twice, the row counts once, and comes from
a single run.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame
from scipy import sparse

from tacit.engines.spark.tables import CodedItems, enough, latest, numbers, ratings_table, with_codes
from tacit.errors import InvalidData
from tacit.mechanisms.rating_rows import SumStep

_AT_ONCE = 1 << 20  # ratings in one table, or a few more: users are not split
_GROUPS = 8  # sums that come to the driver, at most
_SUMS = "part int, total binary"

Totals = NDArray[np.int64]


class SparkRows:
    """The latest rating of each user and listed item, from users with at least ``least`` ratings in a domain.

    Unusable rows are left out. No error depends on a row.
    """

    def __init__(self, ratings: DataFrame, items: CodedItems, least: int = 1) -> None:
        self._items = items.n_items
        usable = with_codes(numbers(ratings_table(ratings, domain=False)), items)
        self._parts = int(ratings.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
        # The first repartition saves a shuffle for each window. Only the last one guarantees that users are not split.
        kept = enough(latest(usable.repartition(self._parts, "user")), least)
        split = kept.select("user", "code", "value").repartition(self._parts, "user")
        self._frame = split.sortWithinPartitions("user", "code")

    def __repr__(self) -> str:
        return f"SparkRows({self._items} items)"

    def ready(self) -> "SparkRows":
        """Reads and sorts everything now, so that a table that cannot be read fails before anything is charged."""
        self._frame = self._frame.persist()
        self._frame.count()
        return self

    def forget(self) -> None:
        """Frees the memory that ``ready`` uses."""
        self._frame.unpersist()

    def totals(self, step: SumStep, /) -> Totals:
        """The exact totals of ``step`` over all rows."""
        items = self._items

        def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _one_row(step.totals(table) for table in tables(batches, items))

        sums = self._frame.mapInArrow(add_up, _SUMS)
        if self._parts > _GROUPS:
            sums = sums.repartition(_GROUPS, "part").mapInArrow(_merge, _SUMS)
        total = np.zeros(step.length, dtype=np.int64)
        for row in sums.select("total").collect():
            total += np.frombuffer(row["total"], dtype=np.int64)
        return total


def tables(batches: Iterator[pa.RecordBatch], items: int) -> Iterator[sparse.csr_array]:
    """Tables of users x items, from batches of (user, code, value) sorted by user and code. No user is split.

    Raises InvalidData unless users ascend: a user might otherwise appear twice, with two rows. They ascend unless Spark
    sorts by another order than that of bytes.
    """
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= _AT_ONCE:
            whole = pa.Table.from_batches(waiting).combine_chunks()
            last = int(_starts(whole)[-1])  # the last user's rows may go on in the next batch
            if last:
                yield _table(whole.slice(0, last), items)
            waiting = whole.slice(last).to_batches()
    if rest := sum(part.num_rows for part in waiting):
        yield _table(pa.Table.from_batches(waiting).combine_chunks().slice(0, rest), items)


def _starts(rows: pa.Table) -> Totals:
    """Where each user's rows begin. Raises an error that shows no id if users do not ascend."""
    import pyarrow.compute as pc

    user = rows.column("user")
    before, after = user.slice(0, len(user) - 1), user.slice(1)
    if user.null_count or pc.any(pc.less(after, before)).as_py():
        raise InvalidData(
            "the users of a partition are not in ascending order, so a user might have two rows. Nothing was summed."
        )
    return np.concatenate([[0], np.flatnonzero(np.asarray(pc.not_equal(after, before))) + 1]).astype(np.int64)


def _table(rows: pa.Table, items: int) -> sparse.csr_array:
    starts = np.append(_starts(rows), rows.num_rows)
    values, codes = (rows.column(name).to_numpy() for name in ("value", "code"))
    return sparse.csr_array((values, codes, starts), shape=(starts.size - 1, items))


def _merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _one_row(
        np.frombuffer(total.as_py(), dtype=np.int64) for batch in batches for total in batch.column("total")
    )


def _one_row(parts: Iterator[Totals]) -> Iterator[pa.RecordBatch]:
    """The sum of all parts as one row. Without parts there is no row."""
    total: Any = None
    for part in parts:
        total = part.copy() if total is None else total + part
    if total is not None:
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        row = [pa.array([partition], pa.int32()), pa.array([total.tobytes()], pa.binary())]
        yield pa.RecordBatch.from_arrays(row, ["part", "total"])
