"""Small old-style lists, line by line: ``::`` or ``|`` between the fields, Latin-1."""

from pathlib import Path

from tacit.errors import InvalidData

_MOST_DIGITS = 18  # fit 64 bits


def read_lines(path: Path, separator: str, fields: int, encoding: str = "latin-1") -> list[list[str]]:
    """The fields of each line; an error names the line that has another number of them."""
    if not path.is_file():
        raise InvalidData(f"{path} is not there, or is not a file.")
    rows = []
    try:
        text = path.read_text(encoding=encoding)
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")  # knows every byte
    for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
        row = line.rstrip("\r").split(separator)
        if len(row) != fields:
            raise InvalidData(
                f"{path}, line {number}: expected {fields} fields between {separator!r}, found {len(row)}."
            )
        rows.append(row)
    return rows


def whole_numbers(path: Path, rows: list[list[str]], field: int, column: str) -> list[int]:
    """One field of every line as whole numbers."""
    for number, row in enumerate(rows, start=1):
        if not row[field].isdecimal() or len(row[field]) > _MOST_DIGITS:
            raise InvalidData(f"{path}, line {number}, column {column!r}: expected a whole number.")
    return [int(row[field]) for row in rows]
