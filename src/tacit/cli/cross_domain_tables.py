"""The evaluation across domains on the terminal: each world's methods beside reference figures, and what they decide."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tacit.cli.claim_tables import print_claims
from tacit.evaluation.cross_domain import paper
from tacit.evaluation.cross_domain.reference import NAME as REFERENCE
from tacit.evaluation.cross_domain.reference import PREFIX
from tacit.evaluation.result import Result, Row

if TYPE_CHECKING:
    from rich.console import Console


def print_result(console: "Console", result: Result) -> None:
    console.print(f"[bold]{result.system}[/] on [bold]{escape(result.data)}[/]; seed {result.seed}")
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in result.rows:
        place = (str(row.setting.get("world", "")), *(name for name in row.setting if name != "world"))
        groups.setdefault(place, []).append(row)
    for (world, *settings), rows in groups.items():
        if any(not row.method.startswith(PREFIX) for row in rows):
            console.print(_table(world, settings, rows))
    print_claims(console, "The paper's claims", [one for one in result.claims if one.paper == paper.NAME])
    print_claims(
        console, "The paper's claims, unverified", [one for one in result.claims if one.paper == paper.UNVERIFIED]
    )
    print_claims(console, "Beyond the paper", [one for one in result.claims if one.paper == paper.OURS])
    near = [one for one in result.claims if one.paper == REFERENCE]
    if near:
        outside = [one for one in near if not one.holds]
        console.print(
            f"[bold]{len(near) - len(outside)} of {len(near)}[/] figures are within the reference's tolerance"
        )
        print_claims(console, "Outside the reference's tolerance", outside)
    for note in result.notes:
        console.print(f"[dim]- {escape(note)}[/]")


def _table(world: str, settings: Sequence[str], rows: Sequence[Row]) -> Table:
    """One line for each method and setting, one column for each metric; the reference in brackets."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    cells = {(row.method, *(row.setting[name] for name in settings), row.metric): row for row in rows}
    table = Table(title=escape(world), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method")
    for name in (*settings, *metrics):
        table.add_column(name, justify="right")
    for key in dict.fromkeys(key[:-1] for key in cells if not str(key[0]).startswith(PREFIX)):
        figures = [_cell(cells.get((*key, one)), cells.get((PREFIX + str(key[0]), *key[1:], one))) for one in metrics]
        table.add_row(escape(str(key[0])), *map(_setting, key[1:]), *figures)
    return table


def _cell(ours: Row | None, reference: Row | None) -> str:
    if ours is None:
        return ""
    error = f" ±{_figure(ours.stderr)}" if ours.stderr is not None else ""
    return _figure(ours.value) + error + (f" [dim]({_figure(reference.value)})[/]" if reference else "")


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10.0 else f"{value:.4g}"


def _setting(value: int | float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else escape(value)
