"""Tables in Parquet: ratings with the columns user, item, value, time and domain; lists of items with item and domain.

The columns of a table are public, and checked before a row is read. Ids are whole numbers or text; ``time`` is in
seconds since 1970 or a timestamp, and may be missing. Values become float32, as everywhere in tacit: sums of them are
exact in any order.

Text is compared byte by byte: two ids that differ in case, in a space or in Unicode form are two ids. A column of users must
not have a collation that treats such ids as equal: one person would count twice.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    FractionalType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from tacit.checks import whole
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Scale
from tacit.errors import InvalidData, MissingColumn, RatingOutsideScale
from tacit.models.cross_domain.transfer import LEAST_RATINGS

SOURCE, TARGET = "source", "target"
LOOPBACK = "127.0.0.1"
_PLAIN = StringType()
_EXPECTED = {
    "user": "whole numbers or text",
    "item": "whole numbers or text",
    "value": "numbers",
    "time": "seconds since 1970, or timestamps",
    "domain": "text",
}


def read_table(session: SparkSession, path: str) -> DataFrame:
    """A Parquet table at any path or address that this Spark can reach."""
    try:
        return session.read.parquet(path)
    except AnalysisException:
        raise InvalidData(f"no Parquet table can be read at {path}.") from None


def write_table(frame: DataFrame, path: str) -> None:
    """Writes a table, and replaces an older one."""
    frame.write.mode("overwrite").parquet(path)


def ratings_table(frame: DataFrame, *, domain: bool = True) -> DataFrame:
    """The columns of ratings with their types, and no others. ``domain`` is not needed if a list of items has it."""
    columns = [_users(frame), _ids(frame, "item"), _values(frame), _times(frame)]
    return frame.select(*columns, *([_text(frame, "domain")] if domain else []))


def require_same_kind(column: str, first: DataFrame, second: DataFrame) -> None:
    """Raises InvalidData if ids are numbers in one table and text in the other: no row would match."""
    if first.schema[column].dataType != second.schema[column].dataType:
        raise InvalidData(
            f"the column {column!r} holds whole numbers in one table and text in the other. Use one kind in both."
        )


def _users(frame: DataFrame) -> Column:
    kind = _kind(frame, "user")
    if isinstance(kind, StringType) and kind != _PLAIN:
        raise InvalidData(
            f"the column 'user' has the collation {kind.collation}, which treats different texts as one user. Write each user in "
            "one way, such as lower(user), and cast the column to plain string."
        )
    return _ids(frame, "user")


def _ids(frame: DataFrame, name: str) -> Column:
    kind = _kind(frame, name)
    if isinstance(kind, IntegralType):
        return F.col(name).cast("long").alias(name)
    if isinstance(kind, StringType):
        return _plain(name)
    raise _wrong(name, kind)


def _plain(name: str) -> Column:
    """Text that is compared byte by byte, whatever the collation of the column."""
    return F.col(name).cast(_PLAIN).alias(name)


def _values(frame: DataFrame) -> Column:
    kind = _kind(frame, "value")
    if not isinstance(kind, NumericType | FractionalType | DecimalType):
        raise _wrong("value", kind)
    return F.col("value").cast("float").cast("double").alias("value")


def _times(frame: DataFrame) -> Column:
    if "time" not in frame.columns:
        return F.lit(None).cast(LongType()).alias("time")
    kind = _kind(frame, "time")
    if isinstance(kind, TimestampType | TimestampNTZType):
        return F.unix_seconds(F.col("time").cast("timestamp")).alias("time")
    if isinstance(kind, IntegralType):
        return F.col("time").cast("long").alias("time")
    raise _wrong("time", kind)


def _text(frame: DataFrame, name: str) -> Column:
    kind = _kind(frame, name)
    if not isinstance(kind, StringType):
        raise _wrong(name, kind)
    return _plain(name)


def _kind(frame: DataFrame, name: str) -> DataType:
    if name not in frame.columns:
        raise MissingColumn(f"there is no column {name!r}; the columns are {', '.join(frame.columns)}.")
    return frame.schema[name].dataType


def _wrong(name: str, kind: DataType) -> InvalidData:
    return InvalidData(f"the column {name!r} must hold {_EXPECTED[name]}, not {kind.simpleString()}.")


@dataclass(frozen=True, eq=False, repr=False)
class CodedItems:
    """The items of both domains with one code each: the source first, ascending by id, as on one machine.

    ``frame`` has item, domain and code; codes below ``n_source`` belong to the source.
    """

    frame: DataFrame
    n_source: int
    n_items: int

    def __repr__(self) -> str:
        return f"CodedItems({self.n_source} source, {self.n_items - self.n_source} target)"

    def catalogues(self) -> tuple[Catalogue, Catalogue]:
        """Both lists of items, on the driver. Use it for public lists only, not for items taken from ratings."""
        ids: dict[str, list[int | str]] = {SOURCE: [], TARGET: []}
        for row in self.frame.orderBy("code").collect():
            ids[row["domain"]].append(row["item"])
        return Catalogue(np.array(ids[SOURCE])), Catalogue(np.array(ids[TARGET]))


def coded(listed: DataFrame) -> CodedItems:
    """Codes the items of a list, which must be public if a private release uses it.

    Raises InvalidData on an item in both domains, an unknown domain or a missing id.
    """
    table = listed.select(_ids(listed, "item"), _text(listed, "domain")).distinct()
    _require_domains(table)
    by_id = Window.partitionBy("domain").orderBy("item")
    sizes = {row["domain"]: row["count"] for row in table.groupBy("domain").count().collect()}
    n_source = sizes.get(SOURCE, 0)
    first = F.when(F.col("domain") == TARGET, F.lit(n_source)).otherwise(F.lit(0))
    frame = table.withColumn("code", (F.row_number().over(by_id) - 1 + first).cast("int"))
    return CodedItems(frame, n_source, n_source + sizes.get(TARGET, 0))


def items_of(ratings: DataFrame) -> CodedItems:
    """All items that somebody rated. The list is private: do not use it for a release with a guarantee."""
    return coded(settled(ratings.select("item", "domain").distinct()))


def with_codes(ratings: DataFrame, items: CodedItems) -> DataFrame:
    """Ratings with the ``code`` of their item; ratings of unlisted items are left out."""
    require_same_kind("item", ratings, items.frame)
    return ratings.drop("domain").join(F.broadcast(items.frame), "item")


def _require_domains(table: DataFrame) -> None:
    known = F.coalesce(F.col("domain").isin(SOURCE, TARGET), F.lit(False))
    faults = table.agg(F.max(~known).alias("unknown"), F.max(F.col("item").isNull()).alias("nameless")).first()
    if faults is not None and faults["nameless"]:
        raise InvalidData("a row has no item.")
    if faults is not None and faults["unknown"]:
        raise InvalidData(f"a row has a domain that is neither {SOURCE!r} nor {TARGET!r}.")
    require_apart(table)


def require_apart(table: DataFrame) -> None:
    """Raises InvalidData if an item is in both domains."""
    domains = table.where(F.col("item").isNotNull()).select("item", "domain").distinct()
    if domains.groupBy("item").count().where("count > 1").limit(1).count():
        raise InvalidData("an item is in both domains; each must be in one.")


def cleaned(
    ratings: DataFrame, scale: Scale | None = None, *, least: int = LEAST_RATINGS, clip: bool = False
) -> DataFrame:
    """The latest rating of each user and item, for models without a guarantee. Wrong rows raise an error.

    ``scale`` is the range that ratings must have. ``clip`` moves others to its nearer end, and leaves out NaN. Users with
    fewer than ``least`` ratings in a domain do not count there. Rows of a distributed table have no order: of several ratings
    of one item with the same time, or without times, the highest counts.
    """
    least = whole("least", least, least=1)
    if clip and scale is None:
        raise InvalidData("clipping needs a scale: give scale=Scale(low, high), or --scale on the command line.")
    if not clip:
        _require(ratings, scale)
    require_apart(ratings)  # before rows are left out
    return enough(latest(within(ratings, scale) if scale is not None else numbers(ratings)), least)


def numbers(ratings: DataFrame) -> DataFrame:
    """Only rows with a user, an item and a finite value. Raises no error, which would reveal something about rows."""
    return ratings.where(F.col("user").isNotNull() & F.col("item").isNotNull() & _is_finite())


def within(ratings: DataFrame, scale: Scale) -> DataFrame:
    """The rows of `numbers`, with values outside the scale moved to its nearer end."""
    low, high = F.lit(float(scale.low)), F.lit(float(scale.high))
    return numbers(ratings).withColumn("value", F.least(F.greatest("value", low), high))


def latest(ratings: DataFrame) -> DataFrame:
    """The latest rating of each (user, item). A rating without a time is the earliest. Of equal times the highest rating
    counts."""
    newest = Window.partitionBy("user", "item").orderBy(F.col("time").desc_nulls_last(), F.col("value").desc())
    return ratings.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")


def enough(ratings: DataFrame, least: int = LEAST_RATINGS) -> DataFrame:
    """Leaves out a user's ratings in a domain with fewer than ``least`` of them; those in the other domain stay."""
    if least == 1:
        return ratings
    counted = ratings.withColumn("_count", F.count("*").over(Window.partitionBy("user", "domain")))
    return counted.where(F.col("_count") >= least).drop("_count")


def _is_finite() -> Column:
    value = F.col("value")  # only finite numbers are below infinity; in Spark NaN is above all others
    return value.isNotNull() & (F.abs(value) < F.lit(float("inf")))


def _require(ratings: DataFrame, scale: Scale | None) -> None:
    fits = _is_finite()
    if scale is not None:
        fits = fits & F.col("value").between(float(scale.low), float(scale.high))
    faults = ratings.agg(
        F.max(F.col("user").isNull()).alias("no_user"),
        F.max(F.col("item").isNull()).alias("no_item"),
        F.max(~F.coalesce(F.col("domain").isin(SOURCE, TARGET), F.lit(False))).alias("no_domain"),
        F.max(~F.coalesce(fits, F.lit(False))).alias("outside"),
    ).first()
    if faults is None or faults["outside"] is None:  # there are no rows
        return
    if faults["no_user"] or faults["no_item"]:
        raise InvalidData("a row has no user or no item.")
    if faults["no_domain"]:
        raise InvalidData(f"a row has a domain that is neither {SOURCE!r} nor {TARGET!r}.")
    if faults["outside"]:
        allowed = "a finite number" if scale is None else f"on the scale {scale}"
        raise RatingOutsideScale(
            f"a rating is not {allowed}; clip=True, or --clip on the command line, moves such ratings to the ends of the scale."
        )


def local_session(
    workers: int = 2,
    *,
    master: str | None = None,
    memory: str = "2g",
    partitions: int | None = None,
    checkpoints: Path | str | None = None,
    further: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session on this machine, for trials and tests, with ``workers`` threads or with a local cluster (``master``).

    Driver and workers listen on loopback only, and there is no web page. On a cluster, ``spark-submit`` creates the session.
    ``partitions`` is the number for each shuffle, by default two for each worker. ``checkpoints`` is a folder for
    intermediate results, which then survive the loss of a worker. They contain ratings: choose a folder where ratings may be.
    Without the folder they stay in memory.
    """
    workers = whole("workers", workers, least=1)
    settings = {
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.shuffle.partitions": str(partitions or 2 * workers),
        "spark.sql.session.timeZone": "UTC",
        "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
        **(further or {}),
    }
    builder = SparkSession.builder.master(master or f"local[{workers}]").appName("tacit")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _environment():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if checkpoints is not None:
        session.sparkContext.setCheckpointDir(str(checkpoints))
    return session


def settled(frame: DataFrame) -> DataFrame:
    """The same rows, computed now. This drops their query plan, which would otherwise outgrow the driver.

    The rows go to the session's folder for checkpoints. Without that folder they stay with the workers, and the loss of a
    worker ends the run.
    """
    has_folder = frame.sparkSession.sparkContext.getCheckpointDir() is not None
    return frame.checkpoint() if has_folder else frame.localCheckpoint()


@contextmanager
def _environment() -> Iterator[None]:
    """Sets the environment that Spark's processes inherit: addresses, and the Python that workers start. A local cluster
    reads these settings from the environment only."""
    inherited = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_LOCAL_HOSTNAME": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
    before = {name: os.environ.get(name) for name in inherited}
    os.environ.update(inherited)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
