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
    ("tacit advise", "answer some questions and see which system fits you"),
    ("tacit serve", "open a page on this machine: rate some films, see what leaves"),
    ("tacit report", "measure every figure and claim of the papers here"),
)


def print_data(console: "Console", ratings: "Ratings") -> None:
    size = f"{ratings.n_users:,} users, {ratings.n_items:,} items, {len(ratings):,} ratings"
    source = f" ({ratings.provenance.source})" if ratings.provenance.source else ""
    console.print(Text.assemble(("The data  ", "bold"), f"{ratings.name}: {size}{source}"))
    console.print(
        Text("The noise comes from the operating system and differs in every run. The users stay the same.", "dim")
    )


def print_demonstration(console: "Console", number: int, run: Demonstration | Skipped) -> None:
    """Prints the conversation, the comparison of methods and the verdict; for a skipped system, the reason."""
    if isinstance(run, Skipped):
        console.print(Text.assemble((f"\n{number}. {run.system}", "bold"), f"  Not shown: {run.reason}"))
        return
    console.print(Text.assemble((f"\n{number}. {run.system}", "bold"), f"  {run.sentence}"))
    conversation = Table.grid(padding=(0, 2))
    conversation.add_column(style="bold cyan", no_wrap=True)
    conversation.add_column(overflow="fold")
    closing = (
        ("what left", run.left), ("what stayed", run.stayed), ("promised", run.promised), ("the ledger", run.statement),
    )  # fmt: skip
    for label, text in (*run.said, *closing):
        conversation.add_row(label, Text(text))
    console.print(_indented(conversation))
    console.print(_indented(_methods_table(run)))
    console.print(_indented(Text(run.verdict, "italic")))


def print_audit(console: "Console", report: "AuditReport") -> None:
    """Prints one line for claims and one for twins, with the names of those that fail."""
    names = dict.fromkeys(finding.name for finding in report.mechanisms)
    failing = dict.fromkeys(finding.name for finding in report.mechanisms if not finding.holds)
    escaped = [f"{twin.name} of {twin.of}" for twin in report.twins if not twin.caught]
    claims = f"all {len(report.mechanisms)} claims hold" if not failing else f"CLAIMS FAIL: {', '.join(failing)}"
    twins = "all caught" if not escaped else f"ESCAPED: {', '.join(escaped)}"
    console.print(
        Text.assemble(
            ("\nThe audit", "bold"), "  An audit can refute a claim but never proves it; the proofs are in docs/proofs."
        )
    )
    lines = (f"{len(names)} mechanisms: {claims}", f"{len(report.twins)} broken twins: {twins}")
    for line, fine in zip(lines, (not failing, not escaped), strict=True):
        console.print(_indented(Text(line, "green" if fine else "bold red")))


def print_next(console: "Console", out: str | None, unwritten: str) -> None:
    """Prints where the page is, or why there is none (``unwritten``), and what to try next."""
    if unwritten:
        console.print(Text(f"No page was written: {unwritten}"), soft_wrap=True)
    elif out is not None:
        console.print(Text.assemble("Open ", (out, "bold"), " in a browser."), soft_wrap=True)
    console.print("Next:")
    for command, purpose in NEXT:
        console.print(Text.assemble(("  " + command.ljust(14), "cyan"), purpose))


def _figure_text(run: Demonstration, method: "Way", metric: str) -> str:
    """A figure with its error; empty if the method has no such figure."""
    figure = method.figures.get(metric)
    if figure is None:
        return ""
    sign = "+" if metric == GAIN and figure.value >= 0.0 else ""
    return sign + interval(figure.value, figure.stderr, run.unit if metric in (run.metric, GAIN) else "")


def _methods_table(run: Demonstration) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    metrics = dict.fromkeys(metric for method in run.ways for metric in method.figures)
    table.add_column("method", no_wrap=True)
    distance = f" per {run.guarantee.protects.distance}" if run.guarantee.per_distance else ""
    table.add_column(f"epsilon{distance}", justify="right", no_wrap=True)
    for metric in metrics:
        table.add_column(metric, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for method in run.ways:
        figures = (_figure_text(run, method, metric) for metric in metrics)
        weight = "bold" if method is run.private else "" if method in (run.plain, run.nothing) else "dim"
        table.add_row(method.method, f"{method.epsilon:.3g}", *figures, Text(method.remark), style=weight)
    return table


def _indented(content: Any) -> Padding:
    return Padding(content, (0, 0, 0, _INDENT))


_FIGURE = 10  # characters of a figure, its error or its method
_WIDE = 110  # characters of a terminal that has room for the column "what left"
_COLUMNS = ("system", "guarantee", "private", "not private", "learns nothing")


def print_closing(console: "Console", runs: "Sequence[Demonstration | Skipped]") -> None:
    """Prints one row for each system: the guarantee, and the private figure between both bounds.

    The method is below each figure; ↑ more is better, ↓ less is better. On a narrow terminal, what left is below the row.
    """
    console.print(Text("\nIn one table", "bold"))
    if console.width < _WIDE:
        _print_narrow(console, runs)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, leading=1)
    for name in _COLUMNS[:3]:
        table.add_column(name, no_wrap=True)
    for name in _COLUMNS[3:]:
        table.add_column(name, min_width=_FIGURE, max_width=_FIGURE)
    table.add_column("what left")
    for run in runs:
        if isinstance(run, Skipped):
            table.add_row(Text(run.system, "bold"), *[""] * 4, Text(f"not shown: {run.reason}", "dim"))
        else:
            table.add_row(*_closing_row(run))
    console.print(table)


def _print_narrow(console: "Console", runs: "Sequence[Demonstration | Skipped]") -> None:
    """Prints rows with fixed column widths, because a full line is printed between two rows."""
    heads = [Text(name.replace(" ", "\n"), "bold") for name in _COLUMNS]
    rows = {run.system: _closing_row(run)[:-1] for run in runs if isinstance(run, Demonstration)}
    columns = zip(heads, *rows.values(), strict=True)
    widths = [max(line.cell_len for cell in column for line in cell.split()) for column in columns]
    console.print(_row(heads, widths))
    console.print(Rule(style="dim", characters="─"))
    for run in runs:
        if isinstance(run, Skipped):
            console.print(Text.assemble((run.system, "bold"), f"  not shown: {run.reason}"))
        else:
            console.print(_row(rows[run.system], widths))
            console.print(_indented(Text.assemble(("what left  ", "dim"), run.left)))
        console.print()


def _closing_row(run: Demonstration) -> "tuple[Text, ...]":
    """The system with its metric, the guarantee and what it protects, three figures with errors and methods, and what
    left."""
    arrow, guarantee = "↑" if run.better is Better.HIGHER else "↓", run.guarantee
    return (
        _lines((run.system, "bold"), f"{run.metric} {arrow}"),
        _lines(
            (_epsilon(guarantee), ""),
            f"per {run.each}" if run.each else "",
            f"delta {guarantee.delta:.0e}" if guarantee.delta else "",
            str(guarantee.protects.unit),
        ),
        _figure(run, run.private, "bold"),
        _figure(run, run.plain),
        _figure(run, run.nothing),
        Text(run.left),
    )


def _row(cells: "Sequence[Text]", widths: "Sequence[int]") -> Table:
    row = Table.grid(padding=(0, 2, 0, 0))
    for width in widths:
        row.add_column(width=width, overflow="fold")
    row.add_row(*cells)
    return row


def _figure(run: Demonstration, method: "Way", style: str = "") -> Text:
    value, _, error = _figure_text(run, method, run.metric).partition(" ± ")
    return _lines((value, style), f"± {error}" if error else "", method.method)


def _epsilon(guarantee: "Guarantee") -> str:
    if guarantee.promises_nothing:
        return "none"
    return f"epsilon {guarantee.epsilon:.3g}" + (
        f" per {guarantee.protects.distance}" if guarantee.per_distance else ""
    )


def _lines(first: tuple[str, str], *rest: str) -> Text:
    """Non-empty lines, one under the other; all but the first are faint."""
    return Text.assemble(first, *((f"\n{text}", "dim") for text in rest if text))
