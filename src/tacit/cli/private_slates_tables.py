"""The evaluation of private slates on the terminal: every method beside reference figures, the bounds, diagnostics, claims."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tacit.cli.claim_tables import print_claims
from tacit.evaluation.private_slates import growth, paper
from tacit.evaluation.private_slates.measures import METRICS
from tacit.evaluation.private_slates.reference import NAME as REFERENCE
from tacit.evaluation.private_slates.reference import PREFIX
from tacit.evaluation.private_slates.tries import INF
from tacit.evaluation.result import Result, Row

if TYPE_CHECKING:
    from rich.console import Console

Key = tuple[str, tuple[tuple[str, int | float | str], ...]]
_TITLES = {
    ("epsilon",): "Slates (reference in brackets; epsilon inf: no privacy)",
    ("epsilon", "copies"): "Every user several times, a simulation",
    ("items",): "What the jitter costs, and what jitter epsilon 1 takes, as the catalogue grows",
    ("slates",): f"Many slates together, at delta {growth.DELTA:g}",
    ("nats",): "Tempered slates up to the limit of floats: sum of likes, as a share of the best slate",
    ("part", "eta", "k"): "Multi-selection: slates from a signal",
    ("part", "eta", "k", "alpha"): "Multi-selection: slates from a signal, by the determinant",
    (): "Small cases, all slates listed",
}


def print_result(console: "Console", result: Result) -> None:
    console.print(f"[bold]{result.system}[/] on [bold]{escape(result.data)}[/]; seed {result.seed}")
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in result.rows:
        groups.setdefault(tuple(row.setting), []).append(row)
    for settings, rows in groups.items():
        title = _TITLES.get(settings, f"By {', '.join(settings)}")
        for table in _tables(title, settings, rows):
            console.print(table)
    for title, by in (("The paper's claims", paper.NAME), ("Against reference figures", REFERENCE)):
        print_claims(console, title, [claim for claim in result.claims if claim.paper == by])
    further = [claim for claim in result.claims if claim.paper not in (paper.NAME, REFERENCE)]
    print_claims(console, "Beyond the paper", further)
    for note in result.notes:
        console.print(f"[dim]- {escape(note)}[/]")


def _tables(title: str, settings: tuple[str, ...], rows: list[Row]) -> Iterable[Table]:
    """One line for each method and setting, one column for each metric; slates' own metrics stand by themselves."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    own = [metric for metric in METRICS if metric in metrics]
    others = [metric for metric in metrics if metric not in own]
    for columns in (own, others):
        if columns:
            yield _table(title if columns is own or not own else f"{title}: diagnostics", settings, columns, rows)


def _table(title: str, settings: tuple[str, ...], columns: list[str], rows: list[Row]) -> Table:
    cells: dict[Key, dict[str, Row]] = {}
    given: dict[Key, dict[str, Row]] = {}
    for row in rows:
        if row.metric in columns:
            name = row.method.removeprefix(PREFIX)
            (given if name != row.method else cells).setdefault((name, tuple(row.setting.items())), {})[row.metric] = (
                row
            )
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method")
    for name in (*settings, *columns):
        table.add_column(name, justify="right")
    for key, found in cells.items():
        method, setting = key
        told = [_setting(value) for _, value in setting]
        figures = [_cell(found.get(metric), given.get(key, {}).get(metric)) for metric in columns]
        table.add_row(escape(method), *told, *figures)
    return table


def _cell(ours: Row | None, reference: Row | None) -> str:
    if ours is None:
        return ""
    error = f" ±{_figure(ours.stderr)}" if ours.stderr is not None else ""
    return _figure(ours.value) + error + (f" [dim]({_figure(reference.value)})[/]" if reference else "")


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10.0 else f"{value:.4g}"


def _setting(value: int | float | str) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else ("inf" if value == INF else escape(value))
