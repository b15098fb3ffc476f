"""What ``tacit demo`` prints: of each system the conversation, the ways compared, what they say; and the audit."""

from typing import TYPE_CHECKING, Any

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Skipped
from tacit.evaluation.report.words import interval

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.audit import AuditReport
    from tacit.data import Ratings
    from tacit.evaluation.demonstration.demonstration import Way

_INDENT = 3
NEXT = (
    ("tacit advise", "some questions, and which of the five fits you"),
    ("tacit serve", "a page on this machine: rate some films, see what leaves"),
    ("tacit report", "every figure and claim of the papers, measured here"),
)


def print_data(console: "Console", ratings: "Ratings") -> None:
    size = f"{ratings.n_users:,} users, {ratings.n_items:,} items, {len(ratings):,} ratings"
    source = f" ({ratings.provenance.source})" if ratings.provenance.source else ""
    console.print(Text.assemble(("The data  ", "bold"), f"{ratings.name}: {size}{source}"))
    console.print(Text("Noise is the operating system's, drawn anew in every run; who is asked is not.", "dim"))


def print_one(console: "Console", place: int, shown: Demonstration | Skipped) -> None:
    """The conversation, then the ways compared, then the verdict; of what is not shown the reason."""
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
    """One line for claims, one for twins; those that fail by name."""
    names = dict.fromkeys(finding.name for finding in report.mechanisms)
    failing = dict.fromkeys(finding.name for finding in report.mechanisms if not finding.holds)
    escaped = [f"{twin.name} of {twin.of}" for twin in report.twins if not twin.caught]
    held = f"all {len(report.mechanisms)} claims hold" if not failing else f"CLAIMS FAIL: {', '.join(failing)}"
    caught = "all caught" if not escaped else f"ESCAPED: {', '.join(escaped)}"
    console.print(
        Text.assemble(("\nThe audit", "bold"), "  An audit refutes and never proves; the proofs are in docs/proofs.")
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
    """A figure with its error, as it is printed; nothing where the way has none."""
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
