"""Times as whole seconds since 1970, from numbers, dates or their text."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.data.clock import MISSING_TIME
from tacit.data.source import Source
from tacit.errors import InvalidData

if TYPE_CHECKING:
    import polars as pl

EXPECTED = "whole seconds since 1970 or a date like 2024-05-31T12:00:00"


def from_text(text: "pl.Series", source: Source) -> "pl.Series":
    """Seconds, or null where the cell is empty; an error where it holds anything but a number or a date."""
    import polars as pl

    plain = text.str.strip_chars()
    seconds = plain.cast(pl.Int64, strict=False)
    if seconds.null_count() > text.null_count():
        # a zone may stand behind the time or not; text without one is taken as UTC
        utc = plain.str.replace(r"(Z|\+00:?00)$", "").str.replace(" ", "T")
        moments = [
            utc.str.to_datetime(form, time_unit="us", strict=False)
            for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
        ]
        moments.append(utc.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")))
        for moment in moments:
            seconds = seconds.fill_null(moment.dt.epoch("s"))
    strange = seconds.is_null() & plain.is_not_null() & (plain != "")
    if strange.any():
        raise InvalidData(f"{source.at(strange.arg_max() or 0, text.name)}: expected {EXPECTED}, or nothing.")
    return seconds


def from_typed(column: "pl.Series", source: Source) -> "pl.Series":
    """Seconds from a Parquet column of numbers, dates, date-times or text."""
    import polars as pl

    if column.dtype == pl.String:
        return from_text(column, source)
    if column.dtype.is_temporal() and column.dtype not in (pl.Duration, pl.Time):
        return _checked(column, column.cast(pl.Datetime("us"), strict=False).dt.epoch("s"), source)
    if column.dtype.is_integer():
        return _checked(column, column.cast(pl.Int64, strict=False), source)
    found = column.dtype.base_type()  # the full type of an Enum lists its values
    raise InvalidData(f"{source.path}, column {column.name!r}: expected {EXPECTED}, found {found}.")


def _checked(column: "pl.Series", seconds: "pl.Series", source: Source) -> "pl.Series":
    lost = seconds.is_null() & column.is_not_null()
    if lost.any():
        raise InvalidData(f"{source.at(lost.arg_max() or 0, column.name)}: expected {EXPECTED}, or nothing.")
    return seconds


def to_array(seconds: "pl.Series") -> NDArray[np.int64]:
    """The column as an array, with MISSING_TIME for null."""
    filled = seconds.fill_null(MISSING_TIME) if seconds.null_count() else seconds
    return filled.to_numpy()
