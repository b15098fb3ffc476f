"""Tables in Parquet: ratings with the columns user, item, value, time and domain; lists of items with item and domain.

What a table has to look like is public, and refused before a row is read. Ids are whole numbers or texts; ``time`` is in seconds
since 1970 or a timestamp, and may be missing. Values become float32, as everywhere in tacit: sums of them are exact in any order.

Texts are compared byte by byte: two ids that differ in a letter's case, a space or a form of Unicode are two. A column of users
with a collation, by which such ids are one, is refused: whoever made it means one person by them, and as two she would count twice.
"""

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
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

from tacit.errors import InvalidData, MissingColumn

SOURCE, TARGET = "source", "target"
_PLAIN = StringType()
_EXPECTED = {
    "user": "whole numbers or text",
    "item": "whole numbers or text",
    "value": "numbers",
    "time": "seconds since 1970, or timestamps",
    "domain": "text",
}


def read_table(session: SparkSession, place: str) -> DataFrame:
    """A Parquet table at any place that this Spark can reach."""
    try:
        return session.read.parquet(place)
    except AnalysisException:
        raise InvalidData(f"no Parquet table can be read at {place}.") from None


def write_table(frame: DataFrame, place: str) -> None:
    """Writes a table, in place of what was there before."""
    frame.write.mode("overwrite").parquet(place)


def ratings_table(frame: DataFrame, *, domain: bool = True) -> DataFrame:
    """The columns of ratings in their types, and no others. Where a list of items says it, no ``domain`` is needed here."""
    columns = [_users(frame), _ids(frame, "item"), _values(frame), _times(frame)]
    return frame.select(*columns, *([_text(frame, "domain")] if domain else []))


def items_table(frame: DataFrame) -> DataFrame:
    """A list of items: item and domain. Public, in private modes."""
    return frame.select(_ids(frame, "item"), _text(frame, "domain"))


def require_same_kind(column: str, first: DataFrame, second: DataFrame) -> None:
    """Refuses ids that are numbers here and texts there: they would never meet."""
    if first.schema[column].dataType != second.schema[column].dataType:
        raise InvalidData(
            f"the column {column!r} holds whole numbers in one table and text in the other: write both alike."
        )


def _users(frame: DataFrame) -> Column:
    kind = _kind(frame, "user")
    if isinstance(kind, StringType) and kind != _PLAIN:
        raise InvalidData(
            f"the column 'user' has the collation {kind.collation}, by which different texts are one user: write each user as one "
            "text, such as lower(user), and cast the column to plain string."
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
    """Text that is compared byte by byte, whatever the column's collation."""
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
