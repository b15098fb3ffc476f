"""How advice looks on a terminal: the answer first, then what it promises, what may be expected, why, and the words that run it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.evaluation.advice import Advice, Expectation


def print_advice(to: "Console", advice: "Advice", origin: str) -> None:
    """``origin`` says where the figures are from."""
    to.print(f"[bold]{escape(advice.headline)}[/bold]", highlight=False)
    _lines(to, "", [advice.why])
    if advice.guarantee is not None:
        same = advice.each == advice.guarantee
        _lines(
            to,
            "Promises",
            [f"{'' if same else 'in all: '}{advice.guarantee}", *([] if same else [f"each: {advice.each}"])],
        )
    if advice.expected is not None:
        _expected(to, advice.expected, origin)
    if advice.baseline:
        _lines(to, "Costs nobody anything", [advice.baseline])
    _lines(to, "Why so", advice.reasons)
    _lines(to, "Mind", advice.warnings)
    _lines(to, "Why not", [f"{system.value}: {line}." for system, line in advice.rejected.items()])
    for name, content in advice.files.items():
        _verbatim(to, f"{name}", content.splitlines())
    if advice.evaluate:
        _verbatim(to, "Try it on data", [advice.evaluate])
    _lines(to, "You need", [f"{name}: {holds}" for name, holds in advice.needs.items()])
    _verbatim(to, "Run it", advice.commands)
    _verbatim(to, "In Python", advice.python.splitlines())
    to.print(f"More: {advice.page}", highlight=False)


def _expected(to: "Console", found: "Expectation", origin: str) -> None:
    curve = found.curve
    table = Table(box=None, pad_edge=False)
    for name in ("", "method", "value", "stderr"):
        table.add_column(name, justify="left" if name in ("", "method") else "right")
    rows = [
        ("learns nothing", curve.nothing.method, curve.nothing.value, curve.nothing.stderr),
        (
            f"private, {curve.measured_in} = {found.private.epsilon:.3g}",
            found.method,
            found.private.value,
            found.private.stderr,
        ),
        ("not private", curve.plain.method, curve.plain.value, curve.plain.stderr),
    ]
    for row, method, value, error in rows:
        table.add_row(row, method, f"{value:.4g}", "" if error is None else f"{error:.2g}")
    _lines(to, "Expected", [f"{curve.metric}: {curve.unit}, {curve.better} is better"])
    to.print(Padding(table, (0, 0, 0, 2), expand=False), highlight=False)
    share = "" if found.share is None else f"{found.share:.0%} of the way from nothing to everything. "
    _lines(to, "", [f"{share}From {curve.world}; {origin}.", *found.notes])


def _lines(to: "Console", title: str, lines: Iterable[str]) -> None:
    """Sentences, wrapped; nothing where there are none."""
    found = list(lines)
    if found and title:
        to.print(f"\n[bold]{title}[/bold]", highlight=False)
    for line in found:
        to.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _verbatim(to: "Console", title: str, lines: Iterable[str]) -> None:
    """Words to copy: never wrapped."""
    found = list(lines)
    if found:
        to.print(f"\n[bold]{escape(title)}[/bold]", highlight=False)
    for line in found:
        to.print(Text(f"  {line}"), soft_wrap=True, highlight=False)
