"""An entity's rows in a file: CSV or Parquet with the columns user, item and, if cells differ, value.

Of a CSV file the header is public, and decides the columns and what ends a line. Every other line is a record, and is read by
itself: no quote, comma or odd byte in it changes how another line is read, and none is refused, as an error would tell of it. So
ids hold no line ends, and different bytes stay different ids: an id that is no text is kept as its bytes, which equal no text.
"""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from tacit.errors import InvalidData
from tacit.messages.private_slates_parts import Item

Cell: TypeAlias = tuple[Any, Any, Any]
_BOM = b"\xef\xbb\xbf"
_MOST_COMMAS = 1 << 17  # in a line with quotes, which cannot be split in part: one with more is left out


def read_rows(file: Path, catalogue: Iterable[Item]) -> list[Cell]:
    """The cells of a file. What is odd is left out, an item that is not in the catalogue is None, and so is a missing value."""
    known = {str(item): item for item in catalogue}
    try:
        columns, lines = _parquet(file) if file.suffix == ".parquet" else _csv(file)
    except Exception:  # whatever the reader says may quote a record
        raise InvalidData(f"{file} cannot be read as a table.") from None
    if not {"user", "item"} <= set(columns):
        raise InvalidData(f"{file} must have the columns user and item, and may have value.")
    user, item = columns.index("user"), columns.index("item")
    value = columns.index("value") if "value" in columns else None
    found = list[Cell]()
    for line in lines:
        if line[user] is not None:
            one = None if line[item] is None else known.get(str(line[item]))
            found.append((_id(str(line[user])), one, 1.0 if value is None else line[value]))
    return found


def _id(text: str) -> str | bytes:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape")  # in a file it is written as Python shows it
    return text


def _parquet(file: Path) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
    import polars

    frame = polars.read_parquet(file)
    return frame.columns, frame.iter_rows()


def _csv(file: Path) -> tuple[list[str], Iterable[list[str | None]]]:
    content = file.read_bytes().removeprefix(_BOM)
    ends = [place for end in (b"\n", b"\r") if (place := content.find(end)) >= 0]
    first = min(ends, default=len(content))
    # The end of the header is that of all lines: a lone \r in a line of a file that ends its lines with \n ends nothing.
    end = b"\r" if content[first : first + 1] == b"\r" and content[first + 1 : first + 2] != b"\n" else b"\n"
    header, *lines = content.split(end)
    columns = [name.strip() for name in _fields(header) or ()]
    return columns, _filled(lines, len(columns))


def _filled(lines: Iterable[bytes], columns: int) -> Iterator[list[str | None]]:
    """Of each line as many fields as there are columns: those beyond are cut, those that are missing or empty are None."""
    for line in lines:
        fields = _fields(line, columns)
        if fields is not None:
            found: list[str | None] = [one or None for one in fields[:columns]]
            yield found + [None] * (columns - len(found))


def _fields(line: bytes, columns: int = -1) -> list[str] | None:
    """The fields of one line: so many, and perhaps more. None where a quote in it is not closed, or not at the ends of a field,
    and where a line with quotes holds a \\r, which some would read as a line's end, or far too many fields."""
    text = line.removesuffix(b"\r").decode(errors="surrogateescape")
    if '"' not in text:
        return text.split(",", columns)
    if "\r" in text or text.count(",") > _MOST_COMMAS:
        return None
    try:
        return next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration):
        return None
