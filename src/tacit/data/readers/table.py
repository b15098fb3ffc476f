"""Typed columns from CSV, TSV (also .gz, .zst) or Parquet, with errors that name file, line and column.

CSV cells that cannot be parsed become nulls, which are then counted: a good file takes one typed pass, and only a bad one is
read again. Errors of polars quote the cell, so they are neither passed on nor kept as a cause. Rows of Parquet files are
counted from 1, since they have no lines.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.data.assemble import RowSource
from tacit.data.ratings import MISSING_TIME
from tacit.errors import InvalidData, InvalidParameter, MissingColumn

if TYPE_CHECKING:
    import polars as pl

_EXPECTED_TIMES = "whole seconds since 1970 or a date like 2024-05-31T12:00:00"
Kind: TypeAlias = Literal[
    "integer", "small integer", "number", "precise number", "text", "time", "integer or none", "text or none"
]

_EXPECTED: Mapping[Kind, str] = {
    "integer": "a whole number",
    "small integer": "a whole number below 2,147,483,648",
    "number": "a number",
    "precise number": "a number",
    "text": "text",
    "time": _EXPECTED_TIMES,
    "integer or none": "a whole number or nothing",
    "text or none": "text or nothing",
}
_OPTIONAL: frozenset[Kind] = frozenset({"time", "integer or none", "text or none"})

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # how gzip and Zstandard files begin
_NEVER_IN_TEXT = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1a\x1b")
_NOT_TEXT = "{path} is not UTF-8 text, nor text compressed with gzip or Zstandard. Expected CSV, TSV or .parquet."


def is_parquet(path: Path) -> bool:
    """Whether a file is read as Parquet, by its suffix."""
    return path.suffix in {".parquet", ".pq"}


def read_columns(
    path: Path,
    kinds: Mapping[str, Kind],
    *,
    separator: str | None = None,
    names: Sequence[str] | None = None,
    hint: str = "",
) -> tuple["pl.DataFrame", RowSource]:
    """The columns of these kinds, checked for missing values. Pass ``names`` if the file has no header."""
    if not path.is_file():
        raise InvalidData(f"{path} does not exist or is not a file.")
    if is_parquet(path):
        _check_columns(path, _parquet_columns(path), kinds, hint=hint)
        return _read_parquet(path, kinds)
    if separator is None:
        separator = "\t" if {".tsv", ".tab"} & set(path.suffixes) else ","
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise InvalidParameter("separator must be one ASCII character, not a quotation mark or a line end.")
    polars_names = _header(path, separator, names)
    _check_columns(path, list(polars_names), kinds, separator, hint)
    if names is None:
        _check_repeats(path, separator, list(polars_names), kinds)
    source = RowSource(str(path), first_line=1 if names else 2)
    frame = _checked_rows(_read_csv(path, separator, names is None, kinds, polars_names), kinds, source)
    for column in [column for column, kind in kinds.items() if kind == "time" and frame[column].null_count()]:
        text = _read_csv(path, separator, names is None, {column: "text"}, polars_names)[column].head(frame.height)
        frame = frame.with_columns(_seconds_from_text(text, source).alias(column))
    return frame, source


def to_array(seconds: "pl.Series") -> NDArray[np.int64]:
    """A column of times as an array, with MISSING_TIME for null."""
    filled = seconds.fill_null(MISSING_TIME) if seconds.null_count() else seconds
    return filled.to_numpy()


def _polars_types() -> dict[Kind, "pl.DataType"]:
    import polars as pl

    return {
        "integer": pl.Int64(),
        "small integer": pl.Int32(),
        "number": pl.Float32(),
        "precise number": pl.Float64(),
        "text": pl.String(),
        "time": pl.Int64(),
        "integer or none": pl.Int64(),
        "text or none": pl.String(),
    }


def _check_columns(
    path: Path, columns: Sequence[str], kinds: Mapping[str, Kind], separator: str | None = None, hint: str = ""
) -> None:
    """Raises MissingColumn. It lists the columns only if one of them was wanted: without a header they are private cells."""
    missing = [column for column in kinds if column not in columns]
    if not missing:
        return
    wanted = ", ".join(map(repr, missing))
    if len(missing) < len(kinds):
        raise MissingColumn(f"{path} has no column {wanted}; it has {', '.join(map(repr, columns))}. {hint}".rstrip())
    if separator is not None and _is_binary(path):
        raise InvalidData(_NOT_TEXT.format(path=path))
    other = None if separator is None else _other_separator(columns, separator, kinds)
    if other is not None:
        hint = f"Its cells look separated by {other!r}: pass separator={other!r} (on the command line --separator)."
    count = f"{len(columns):,} columns" if len(columns) != 1 else "1 column"
    headless = "" if separator is None else " The file may lack a header line."
    raise MissingColumn(f"{path} has no column {wanted} among its {count}.{headless} {hint}".rstrip())


def _other_separator(columns: Sequence[str], separator: str, kinds: Mapping[str, Kind]) -> str | None:
    """The separator that the first line seems to use, if it is not ``separator``."""
    for other in (mark for mark in (";", "\t", "|", ",") if mark != separator):
        cells = {cell.strip(' "') for cell in separator.join(columns).split(other)}
        if cells & set(kinds) or (len(columns) == 1 and len(cells) > 1):
            return other
    return None


def _check_repeats(path: Path, separator: str, columns: Sequence[str], kinds: Mapping[str, Kind]) -> None:
    """Raises InvalidData for two columns of one wanted name. polars renames the second, so this reads the first line."""
    import polars as pl

    if not any("_duplicated_" in column for column in columns):
        return
    line = pl.read_csv(path, separator=separator, has_header=False, n_rows=1, infer_schema=False).row(0)
    for column in kinds:
        if line.count(column) > 1:
            raise InvalidData(f"{path} has {line.count(column)} columns {column!r}; rename all but one.")


def _header(path: Path, separator: str, names: Sequence[str] | None) -> dict[str, str]:
    """The columns of a file, each with the name that polars gives it."""
    import polars as pl

    has_header, empty = names is None, False
    try:
        columns = pl.read_csv(path, separator=separator, has_header=has_header, n_rows=1, infer_schema=False).columns
        return dict(zip(names or columns, columns, strict=False))
    except pl.exceptions.NoDataError:
        empty = True
    except (pl.exceptions.PolarsError, OSError):
        pass
    if empty:
        raise InvalidData(f"{path} is empty; expected {'a header and rows' if has_header else 'rows'}.")
    raise _explanation(path, separator, has_header)


def _read_csv(
    path: Path, separator: str, has_header: bool, kinds: Mapping[str, Kind], polars_names: Mapping[str, str]
) -> "pl.DataFrame":
    import polars as pl

    types = _polars_types()
    with suppress(pl.exceptions.PolarsError, OSError):
        frame = pl.read_csv(
            path,
            separator=separator,
            has_header=has_header,
            columns=[polars_names[column] for column in kinds],
            schema_overrides={polars_names[column]: types[kind] for column, kind in kinds.items()},
            ignore_errors=True,
        )
        return frame.select([pl.col(polars_names[column]).alias(column) for column in kinds])
    # Outside the handler, so that the error of polars, which quotes the cell, is not kept as a cause.
    raise _explanation(path, separator, has_header)


def _is_binary(path: Path) -> bool:
    """Whether the file is neither text nor compressed: it begins with bytes that text never contains."""
    with path.open("rb") as file:
        start = file.read(4096)
    return not start.startswith(_COMPRESSED) and any(byte in _NEVER_IN_TEXT for byte in start)


def _explanation(path: Path, separator: str, has_header: bool) -> InvalidData:
    """Why polars gave up: not text, damaged, a row with too many cells, a wrong encoding, or an open quotation mark."""
    import polars as pl

    if _is_binary(path):
        return InvalidData(_NOT_TEXT.format(path=path))
    lines = pl.Series(dtype=pl.String)
    with suppress(pl.exceptions.PolarsError, OSError):
        lines = pl.read_csv(
            path, separator="\x01", quote_char=None, has_header=False, infer_schema=False, encoding="utf8-lossy"
        ).to_series()
    if lines.is_empty():
        return InvalidData(f"{path} cannot be read: it may be compressed and damaged or cut off.")
    cells = lines.fill_null("").str.replace_all('"[^"]*"', "").str.count_matches(separator, literal=True)
    too_many = cells > cells.head(1)
    if too_many.any():
        first = "the header" if has_header else "the first line"
        return InvalidData(
            f"{path}, line {(too_many.arg_max() or 0) + 1}: more cells than {first} has ({cells[0] + 1})."
        )
    broken = lines.fill_null("").str.contains("\ufffd", literal=True)
    if broken.any():
        return InvalidData(f"{path}, line {(broken.arg_max() or 0) + 1}: not UTF-8 text. Save the file as UTF-8.")
    return InvalidData(f"{path} cannot be read as a table; look for a quotation mark that is never closed.")


def _checked_rows(frame: "pl.DataFrame", kinds: Mapping[str, Kind], source: RowSource) -> "pl.DataFrame":
    import polars as pl

    needed = [column for column, kind in kinds.items() if kind not in _OPTIONAL]
    for column in needed:
        if frame[column].dtype == pl.String and (frame[column] == "").any():
            frame = frame.with_columns(pl.col(column).replace("", None))  # "" in quotes counts as an empty cell
    if not any(frame[column].null_count() for column in needed):
        return frame
    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    height = frame.height - (empty.reverse().not_().arg_max() or 0) if not empty.all() else 0
    frame = frame.head(height)  # blank lines at the end are not rows
    gap = frame.select(pl.any_horizontal(pl.col(needed).is_null())).to_series()
    if height and gap.any():
        row = gap.arg_max() or 0
        column = next(column for column in needed if frame[column][row] is None)
        raise InvalidData(
            f"{source.at(row, column)}: expected {_EXPECTED[kinds[column]]}; the cell is empty or of another kind."
        )
    return frame


def _parquet_columns(path: Path) -> list[str]:
    import polars as pl

    try:
        return list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError):
        pass
    raise InvalidData(f"{path} is not a Parquet file, or is cut off.")


def _read_parquet(path: Path, kinds: Mapping[str, Kind]) -> tuple["pl.DataFrame", RowSource]:
    import polars as pl

    source, frame = RowSource(str(path)), None
    with suppress(pl.exceptions.PolarsError, OSError):
        frame = pl.read_parquet(path, columns=list(kinds))
    if frame is None:
        raise InvalidData(f"{path} is not a Parquet file, or is cut off.")
    return frame.select(_cast(frame[column], kind, source) for column, kind in kinds.items()), source


def _cast(column: "pl.Series", kind: Kind, source: RowSource) -> "pl.Series":
    if kind == "time":
        return _seconds_from_column(column, source)
    if not _fits(column.dtype, kind):
        dtype = column.dtype.base_type()  # the full type of an Enum lists its values
        raise InvalidData(f"{source.path}, column {column.name!r}: expected {_EXPECTED[kind]}, found {dtype}.")
    typed = column.cast(_polars_types()[kind], strict=False)
    if typed.null_count() and kind not in _OPTIONAL:
        where = source.at(typed.is_null().arg_max() or 0, column.name)
        raise InvalidData(f"{where}: expected {_EXPECTED[kind]}; the cell is empty or does not fit.")
    return typed


def _fits(dtype: "pl.DataType", kind: Kind) -> bool:
    import polars as pl

    if kind in ("number", "precise number"):
        return dtype.is_numeric()
    if kind in ("integer", "small integer", "integer or none"):
        return dtype.is_integer()
    return dtype in (pl.String, pl.Categorical, pl.Enum) or dtype.is_integer()


def _seconds_from_text(text: "pl.Series", source: RowSource) -> "pl.Series":
    """Seconds since 1970, or null for an empty cell. Raises InvalidData for a cell that is neither a number nor a date."""
    import polars as pl

    plain = text.str.strip_chars()
    seconds = plain.cast(pl.Int64, strict=False)
    if seconds.null_count() > text.null_count():
        # The time zone may be missing: such a time is UTC.
        utc = plain.str.replace(r"(Z|\+00:?00)$", "").str.replace(" ", "T")
        moments = [
            utc.str.to_datetime(form, time_unit="us", strict=False)
            for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
        ]
        moments.append(utc.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")))
        for moment in moments:
            seconds = seconds.fill_null(moment.dt.epoch("s"))
    invalid = seconds.is_null() & plain.is_not_null() & (plain != "")
    if invalid.any():
        raise InvalidData(f"{source.at(invalid.arg_max() or 0, text.name)}: expected {_EXPECTED_TIMES}, or nothing.")
    return seconds


def _seconds_from_column(column: "pl.Series", source: RowSource) -> "pl.Series":
    """Seconds since 1970 from a Parquet column of numbers, dates, date-times or text."""
    import polars as pl

    if column.dtype == pl.String:
        return _seconds_from_text(column, source)
    if column.dtype.is_temporal() and column.dtype not in (pl.Duration, pl.Time):
        return _without_loss(column, column.cast(pl.Datetime("us"), strict=False).dt.epoch("s"), source)
    if column.dtype.is_integer():
        return _without_loss(column, column.cast(pl.Int64, strict=False), source)
    dtype = column.dtype.base_type()  # the full type of an Enum lists its values
    raise InvalidData(f"{source.path}, column {column.name!r}: expected {_EXPECTED_TIMES}, found {dtype}.")


def _without_loss(column: "pl.Series", seconds: "pl.Series", source: RowSource) -> "pl.Series":
    lost = seconds.is_null() & column.is_not_null()
    if lost.any():
        raise InvalidData(f"{source.at(lost.arg_max() or 0, column.name)}: expected {_EXPECTED_TIMES}, or nothing.")
    return seconds
