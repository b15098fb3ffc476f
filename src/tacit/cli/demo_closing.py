"""The table that closes ``tacit demo``: of each system what is promised, what that is worth beside both extremes, what left."""

from typing import TYPE_CHECKING

from rich import box
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tacit.cli.demo_tables import indented, told
from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import Demonstration, Skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tacit.evaluation.demonstration.demonstration import Way
    from tacit.guarantees import Guarantee

_FIGURE = 10  # characters of a figure, its error or its method; with more a usual terminal has no room for what left
_ROOM = 110  # characters of a terminal that has room for what left beside all else
_COLUMNS = ("system", "guarantee", "private", "not private", "learns nothing")


def print_closing(console: "Console", found: "Sequence[Demonstration | Skipped]") -> None:
    """One row for each system. Under each figure the method that gave it; ↑ more is better, ↓ less is better.

    Where a terminal has no room for another column, what left stands under the row.
    """
    console.print(Text("\nIn one table", "bold"))
    if console.width < _ROOM:
        _print_stacked(console, found)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, leading=1)
    for name in _COLUMNS[:3]:
        table.add_column(name, no_wrap=True)
    for name in _COLUMNS[3:]:
        table.add_column(name, min_width=_FIGURE, max_width=_FIGURE)
    table.add_column("what left")
    for one in found:
        if isinstance(one, Skipped):
            table.add_row(Text(one.system, "bold"), *[""] * 4, Text(f"not shown: {one.reason}", "dim"))
        else:
            table.add_row(*closing_row(one))
    console.print(table)


def _print_stacked(console: "Console", found: "Sequence[Demonstration | Skipped]") -> None:
    """Rows of one width each, so that columns stay under their names although a line goes right across below each row."""
    heads = [Text(name.replace(" ", "\n"), "bold") for name in _COLUMNS]
    rows = {one.system: closing_row(one)[:-1] for one in found if isinstance(one, Demonstration)}
    widths = [max(_width(cell) for cell in column) for column in zip(heads, *rows.values(), strict=True)]
    console.print(_row(heads, widths))
    console.print(Rule(style="dim", characters="─"))
    for one in found:
        if isinstance(one, Skipped):
            console.print(Text.assemble((one.system, "bold"), f"  not shown: {one.reason}"))
        else:
            console.print(_row(rows[one.system], widths))
            console.print(indented(Text.assemble(("what left  ", "dim"), one.left)))
        console.print()


def closing_row(one: Demonstration) -> "tuple[Text, ...]":
    """System with its metric, guarantee with what it protects, three figures with errors and methods, what left."""
    arrow = "↑" if one.better is Better.HIGHER else "↓"
    return (
        _lines((one.system, "bold"), f"{one.metric} {arrow}"),
        _lines(
            (_epsilon(one.guarantee), ""),
            f"per {one.each}" if one.each else "",
            _delta(one.guarantee),
            str(one.guarantee.protects.unit),
        ),
        _figure(one, one.private, "bold"),
        _figure(one, one.plain),
        _figure(one, one.nothing),
        Text(one.left),
    )


def _row(cells: "Sequence[Text]", widths: "Sequence[int]") -> Table:
    row = Table.grid(padding=(0, 2, 0, 0))
    for width in widths:
        row.add_column(width=width, overflow="fold")
    row.add_row(*cells)
    return row


def _width(cell: Text) -> int:
    return max(line.cell_len for line in cell.split())


def _figure(shown: Demonstration, way: "Way", style: str = "") -> Text:
    value, _, error = told(shown, way).partition(" ± ")
    return _lines((value, style), f"± {error}" if error else "", way.method)


def _epsilon(guarantee: "Guarantee") -> str:
    if guarantee.promises_nothing:
        return "none"
    return f"epsilon {guarantee.epsilon:.3g}" + (
        f" per {guarantee.protects.distance}" if guarantee.per_distance else ""
    )


def _delta(guarantee: "Guarantee") -> str:
    return f"delta {guarantee.delta:.0e}" if guarantee.delta else ""


def _lines(first: tuple[str, str], *rest: str) -> Text:
    """One under the other, those that are not empty; all but the first faint."""
    return Text.assemble(first, *((f"\n{text}", "dim") for text in rest if text))
