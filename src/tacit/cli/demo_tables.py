"""The tables of ``tacit demo``: one for each system, the audit, and the closing comparison."""

from typing import TYPE_CHECKING, Any

from rich import box
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Skipped
from tacit.evaluation.report.words import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tacit.audit import AuditReport
    from tacit.data import Ratings
    from tacit.evaluation.demonstration.demonstration import Way
    from tacit.guarantees import Guarantee


_INDENT = 3
NEXT = (
    ("tacit advise", "answer some questions, and see which system fits you"),
    ("tacit serve", "a page on this machine: rate some films, see what leaves"),
    ("tacit report", "every figure and claim of the papers, measured here"),
)


def print_data(console: "Console", ratings: "Ratings") -> None:
    size = f"{ratings.n_users:,} users, {ratings.n_items:,} items, {len(ratings):,} ratings"
    source = f" ({ratings.provenance.source})" if ratings.provenance.source else ""
    console.print(Text.assemble(("The data  ", "bold"), f"{ratings.name}: {size}{source}"))
    console.print(
        Text("Noise comes from the operating system and differs in every run; the users that are asked do not.", "dim")
    )


def print_demonstration(console: "Console", place: int, shown: Demonstration | Skipped) -> None:
    """Prints the conversation, the comparison of methods and the verdict; for a skipped system, the reason."""
    if isinstance(shown, Skipped):
        console.print(Text.assemble((f"\n{place}. {shown.system}", "bold"), f"  Not shown: {shown.reason}"))
        return
    console.print(Text.assemble((f"\n{place}. {shown.system}", "bold"), f"  {shown.sentence}"))
    talk = Table.grid(padding=(0, 2))
    talk.add_column(style="bold cyan", no_wrap=True)
    talk.add_column(overflow="fold")
    closing = (
        ("what left", shown.left), ("what stayed", shown.stayed), ("promised", shown.promised),
        ("the ledger", shown.statement),
    )  # fmt: skip
    for what, text in (*shown.said, *closing):
        talk.add_row(what, Text(text))
    console.print(indented(talk))
    console.print(indented(_ways(shown)))
    console.print(indented(Text(shown.verdict, "italic")))


def print_audit(console: "Console", report: "AuditReport") -> None:
    """Prints one line for claims and one for twins, with the names of those that fail."""
    names = dict.fromkeys(finding.name for finding in report.mechanisms)
    failing = dict.fromkeys(finding.name for finding in report.mechanisms if not finding.holds)
    escaped = [f"{twin.name} of {twin.of}" for twin in report.twins if not twin.caught]
    held = f"all {len(report.mechanisms)} claims hold" if not failing else f"CLAIMS FAIL: {', '.join(failing)}"
    caught = "all caught" if not escaped else f"ESCAPED: {', '.join(escaped)}"
    console.print(
        Text.assemble(
            ("\nThe audit", "bold"), "  An audit can refute a claim but never proves it; the proofs are in docs/proofs."
        )
    )
    lines = (f"{len(names)} mechanisms: {held}", f"{len(report.twins)} broken twins: {caught}")
    for line, fine in zip(lines, (not failing, not escaped), strict=True):
        console.print(indented(Text(line, "green" if fine else "bold red")))


def print_next(console: "Console", out: str | None, unwritten: str) -> None:
    if unwritten:
        console.print(Text(f"No page was written: {unwritten}"), soft_wrap=True)
    elif out is not None:
        console.print(Text.assemble((out, "bold"), " is written: open it in a browser."), soft_wrap=True)
    console.print("Next:")
    for command, what in NEXT:
        console.print(Text.assemble(("  " + command.ljust(14), "cyan"), what))


def told(shown: Demonstration, way: "Way", metric: str | None = None) -> str:
    """A figure with its error, as printed; empty if the method has none."""
    name = metric or shown.metric
    figure = way.figures.get(name)
    if figure is None:
        return ""
    sign = "+" if name == GAIN and figure.value >= 0.0 else ""
    return sign + interval(figure.value, figure.stderr, shown.unit if name in (shown.metric, GAIN) else "")


def _ways(shown: Demonstration) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    metrics = dict.fromkeys(metric for way in shown.ways for metric in way.figures)
    table.add_column("method", no_wrap=True)
    distance = f" per {shown.guarantee.protects.distance}" if shown.guarantee.per_distance else ""
    table.add_column(f"epsilon{distance}", justify="right", no_wrap=True)
    for metric in metrics:
        table.add_column(metric, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for way in shown.ways:
        figures = (told(shown, way, metric) for metric in metrics)
        weight = "bold" if way is shown.private else "" if way in (shown.plain, shown.nothing) else "dim"
        table.add_row(way.method, f"{way.epsilon:.3g}", *figures, Text(way.remark), style=weight)
    return table


def indented(what: Any, by: int = _INDENT) -> Padding:
    return Padding(what, (0, 0, 0, by))


_FIGURE = 10  # characters of a figure, its error or its method
_ROOM = 110  # characters of a terminal that has room for the column "what left"
_COLUMNS = ("system", "guarantee", "private", "not private", "learns nothing")


def print_closing(console: "Console", found: "Sequence[Demonstration | Skipped]") -> None:
    """Prints one row for each system: the guarantee, and the private figure between both bounds.

    Under each figure stands its method; ↑ more is better, ↓ less is better. On a narrow terminal, what left stands
    under the row.
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
    """Prints rows with fixed column widths, because a full line stands between two rows."""
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
    """The system with its metric, the guarantee and what it protects, three figures with errors and methods, and what
    left."""
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
    """Non-empty lines, one under the other; all but the first are faint."""
    return Text.assemble(first, *((f"\n{text}", "dim") for text in rest if text))
