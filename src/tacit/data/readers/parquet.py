"""Typed columns from Parquet; rows are counted from 1, since a Parquet file has no lines."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.data.readers import times
from tacit.data.readers.table import EXPECTED, MAY_BE_MISSING, Kind, polars_types
from tacit.data.source import Source
from tacit.errors import InvalidData

if TYPE_CHECKING:
    import polars as pl


def columns(path: Path) -> list[str]:
    import polars as pl

    try:
        return list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError):
        pass
    raise InvalidData(f"{path} is not a Parquet file, or is cut off.")


def read(path: Path, kinds: Mapping[str, Kind]) -> tuple["pl.DataFrame", Source]:
    import polars as pl

    source, frame = Source(str(path)), None
    with suppress(pl.exceptions.PolarsError, OSError):
        frame = pl.read_parquet(path, columns=list(kinds))
    if frame is None:
        raise InvalidData(f"{path} is not a Parquet file, or is cut off.")
    return frame.select(_cast(frame[column], kind, source) for column, kind in kinds.items()), source


def _cast(column: "pl.Series", kind: Kind, source: Source) -> "pl.Series":
    if kind == "time":
        return times.from_typed(column, source)
    if not _fits(column.dtype, kind):
        found = column.dtype.base_type()  # the full type of an Enum lists its values
        raise InvalidData(f"{source.path}, column {column.name!r}: expected {EXPECTED[kind]}, found {found}.")
    typed = column.cast(polars_types()[kind], strict=False)
    if typed.null_count() and kind not in MAY_BE_MISSING:
        raise InvalidData(
            f"{source.at(typed.is_null().arg_max() or 0, column.name)}: expected {EXPECTED[kind]}, found none."
        )
    return typed


def _fits(found: "pl.DataType", kind: Kind) -> bool:
    import polars as pl

    if kind in ("number", "precise number"):
        return found.is_numeric()
    if kind in ("integer", "small integer", "integer or none"):
        return found.is_integer()
    return found in (pl.String, pl.Categorical, pl.Enum) or found.is_integer()
