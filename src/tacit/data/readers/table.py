"""Typed columns from CSV, TSV (also .gz, .zst) or Parquet, with errors that name file, line and column.

Cells are parsed leniently and the nulls counted: one pass over a good file, a second look only at a bad one. Errors of
polars are not passed on, nor kept as a cause, since they quote the cell.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from tacit.data.readers import times
from tacit.data.source import Source
from tacit.errors import InvalidData, InvalidParameter, MissingColumn

if TYPE_CHECKING:
    import polars as pl

Kind: TypeAlias = Literal[
    "integer", "small integer", "number", "precise number", "text", "time", "integer or none", "text or none"
]

EXPECTED: Mapping[Kind, str] = {
    "integer": "a whole number",
    "small integer": "a whole number below 2,147,483,648",
    "number": "a number",
    "precise number": "a number",
    "text": "text",
    "time": times.EXPECTED,
    "integer or none": "a whole number or nothing",
    "text or none": "text or nothing",
}
MAY_BE_MISSING: frozenset[Kind] = frozenset({"time", "integer or none", "text or none"})

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # how gzip and Zstandard files begin
_NEVER_IN_TEXT = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1a\x1b")
_NO_TEXT = "{path} is not UTF-8 text, nor text compressed with gzip or Zstandard. Expected CSV, TSV or .parquet."


def is_parquet(path: Path) -> bool:
    return path.suffix in {".parquet", ".pq"}


def read_columns(
    path: Path,
    kinds: Mapping[str, Kind],
    *,
    separator: str | None = None,
    names: Sequence[str] | None = None,
    hint: str = "",
) -> tuple["pl.DataFrame", Source]:
    """The wanted columns, without nulls where none may be. ``names``: the file has no header, this is what it would say."""
    if not path.is_file():
        raise InvalidData(f"{path} is not there, or is not a file.")
    if is_parquet(path):
        from tacit.data.readers import parquet

        _check_columns(path, parquet.columns(path), kinds, hint=hint)
        return parquet.read(path, kinds)
    separator = _separator(path) if separator is None else separator
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise InvalidParameter("separator must be one ASCII character, not a quotation mark or a line end.")
    inside = _header(path, separator, names)
    _check_columns(path, list(inside), kinds, separator, hint)
    if names is None:
        _check_repeats(path, separator, list(inside), kinds)
    source = Source(str(path), first_line=1 if names else 2)
    frame = _without_gaps(_read_csv(path, separator, names is None, kinds, inside), kinds, source)
    for column in [column for column, kind in kinds.items() if kind == "time" and frame[column].null_count()]:
        text = _read_csv(path, separator, names is None, {column: "text"}, inside)[column].head(frame.height)
        frame = frame.with_columns(times.from_text(text, source).alias(column))
    return frame, source


def polars_types() -> dict[Kind, "pl.DataType"]:
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


def _separator(path: Path) -> str:
    return "\t" if {".tsv", ".tab"} & set(path.suffixes) else ","


def _check_columns(
    path: Path, found: Sequence[str], kinds: Mapping[str, Kind], separator: str | None = None, hint: str = ""
) -> None:
    """The columns found are listed only if one of them was wanted: without a header they are somebody's ratings."""
    missing = [column for column in kinds if column not in found]
    if not missing:
        return
    wanted = ", ".join(map(repr, missing))
    if len(missing) < len(kinds):
        raise MissingColumn(f"{path} has no column {wanted}; it has {', '.join(map(repr, found))}. {hint}".rstrip())
    if separator is not None and _is_binary(path):
        raise InvalidData(_NO_TEXT.format(path=path))
    other = None if separator is None else _other_separator(found, separator, kinds)
    if other is not None:
        hint = f"It looks separated by {other!r}: pass separator={other!r} (on the command line --separator)."
    count = f"{len(found):,} columns" if len(found) != 1 else "1 column"
    headless = "" if separator is None else " The file may lack a header line."
    raise MissingColumn(f"{path} has no column {wanted} among its {count}.{headless} {hint}".rstrip())


def _other_separator(found: Sequence[str], separator: str, kinds: Mapping[str, Kind]) -> str | None:
    """What the cells of the first line are separated by, if it is not ``separator``."""
    for other in (one for one in (";", "\t", "|", ",") if one != separator):
        cells = {cell.strip(' "') for cell in separator.join(found).split(other)}
        if cells & set(kinds) or (len(found) == 1 and len(cells) > 1):
            return other
    return None


def _check_repeats(path: Path, separator: str, found: Sequence[str], kinds: Mapping[str, Kind]) -> None:
    """Refuse two columns of one wanted name. polars gives the second a new name, so the first line tells."""
    import polars as pl

    if not any("_duplicated_" in column for column in found):
        return
    line = pl.read_csv(path, separator=separator, has_header=False, n_rows=1, infer_schema=False).row(0)
    for column in kinds:
        if line.count(column) > 1:
            raise InvalidData(f"{path} has {line.count(column)} columns {column!r}; rename all but one.")


def _header(path: Path, separator: str, names: Sequence[str] | None) -> dict[str, str]:
    """The columns of a file, each with the name that polars has for it."""
    import polars as pl

    has_header, empty = names is None, False
    try:
        found = pl.read_csv(path, separator=separator, has_header=has_header, n_rows=1, infer_schema=False).columns
        return dict(zip(names or found, found, strict=False))
    except pl.exceptions.NoDataError:
        empty = True
    except (pl.exceptions.PolarsError, OSError):
        pass
    if empty:
        raise InvalidData(f"{path} is empty; {'a header and rows were' if has_header else 'rows were'} expected.")
    raise _explanation(path, separator, has_header)


def _read_csv(
    path: Path, separator: str, has_header: bool, kinds: Mapping[str, Kind], inside: Mapping[str, str]
) -> "pl.DataFrame":
    import polars as pl

    types = polars_types()
    with suppress(pl.exceptions.PolarsError, OSError):
        frame = pl.read_csv(
            path,
            separator=separator,
            has_header=has_header,
            columns=[inside[column] for column in kinds],
            schema_overrides={inside[column]: types[kind] for column, kind in kinds.items()},
            ignore_errors=True,
        )
        return frame.select([pl.col(inside[column]).alias(column) for column in kinds])
    # Explained here, outside the handler: the error of polars, which quotes the cell, is not kept as a cause.
    raise _explanation(path, separator, has_header)


def _is_binary(path: Path) -> bool:
    """Whether the file is neither text nor compressed: it begins with bytes that no text has."""
    with path.open("rb") as file:
        start = file.read(4096)
    return not start.startswith(_COMPRESSED) and any(byte in _NEVER_IN_TEXT for byte in start)


def _explanation(path: Path, separator: str, has_header: bool) -> InvalidData:
    """Why polars gave up: no text, damage, a row with too many cells, a broken encoding, or a quotation mark left open."""
    import polars as pl

    if _is_binary(path):
        return InvalidData(_NO_TEXT.format(path=path))
    lines = pl.Series(dtype=pl.String)
    with suppress(pl.exceptions.PolarsError, OSError):
        lines = pl.read_csv(
            path, separator="\x01", quote_char=None, has_header=False, infer_schema=False, encoding="utf8-lossy"
        ).to_series()
    if lines.is_empty():
        return InvalidData(f"{path} cannot be read: if it is compressed, it is damaged or cut off.")
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
    return InvalidData(f"{path} cannot be read as a table; look for a quotation mark that is opened and not closed.")


def _without_gaps(frame: "pl.DataFrame", kinds: Mapping[str, Kind], source: Source) -> "pl.DataFrame":
    import polars as pl

    needed = [column for column, kind in kinds.items() if kind not in MAY_BE_MISSING]
    for column in needed:
        if frame[column].dtype == pl.String and (frame[column] == "").any():
            frame = frame.with_columns(pl.col(column).replace("", None))  # "" in quotes is as empty as no cell at all
    if not any(frame[column].null_count() for column in needed):
        return frame
    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    height = frame.height - (empty.reverse().not_().arg_max() or 0) if not empty.all() else 0
    frame = frame.head(height)  # blank lines at the end are no rows
    gap = frame.select(pl.any_horizontal(pl.col(needed).is_null())).to_series()
    if height and gap.any():
        row = gap.arg_max() or 0
        column = next(column for column in needed if frame[column][row] is None)
        raise InvalidData(
            f"{source.at(row, column)}: expected {EXPECTED[kinds[column]]}, found none or something else."
        )
    return frame
