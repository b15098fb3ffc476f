"""Where a row stands, so that an error can name the place and never what stands there."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    path: str
    first_line: int | None = None  # the line of row 0; None where only rows are counted, as in Parquet
    rating_column: str = "rating"
    duplicates_hint: str = "Pass duplicates='latest' to keep the latest, 'mean' to average."

    def place(self, row: int) -> str:
        return f"row {row + 1}" if self.first_line is None else f"line {row + self.first_line}"

    def at(self, row: int, column: str | None = None) -> str:
        return f"{self.path}, {self.place(row)}" + (f", column {column!r}" if column is not None else "")
