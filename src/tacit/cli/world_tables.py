"""Figures of several worlds on the terminal, each beside its reference, and how many are within the reference's tolerance."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tacit.cli.claim_tables import print_claims
from tacit.evaluation.result import COUNT, Claim, Row

if TYPE_CHECKING:
    from rich.console import Console


def print_worlds(
    console: "Console",
    rows: Iterable[Row],
    prefix: str,
    figure: Callable[[float], str],
    of: Callable[[Row], str] = lambda _: "",
) -> None:
    """A table for each world and set of settings. ``prefix`` begins the names of references; ``of`` stands behind a value."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.metric == COUNT:  # how large a world is: in the JSON
            continue
        place = (str(row.setting.get("world", "")), *(name for name in row.setting if name != "world"))
        groups.setdefault(place, []).append(row)

    def cell(ours: Row | None, reference: Row | None) -> str:
        if ours is None:
            return ""
        error = f" ±{figure(ours.stderr)}" if ours.stderr is not None else ""
        return figure(ours.value) + of(ours) + error + (f" [dim]({figure(reference.value)})[/]" if reference else "")

    for (world, *settings), found in groups.items():
        if any(not row.method.startswith(prefix) for row in found):
            console.print(_table(world, settings, found, prefix, cell))


def print_near(console: "Console", claims: Sequence[Claim]) -> None:
    """How many figures are within the reference's tolerance, and those that are not; nothing where there is no reference."""
    if claims:
        outside = [one for one in claims if not one.holds]
        console.print(
            f"[bold]{len(claims) - len(outside)} of {len(claims)}[/] figures are within the reference's tolerance"
        )
        print_claims(console, "Outside the reference's tolerance", outside)


def _table(
    world: str,
    settings: Sequence[str],
    rows: Sequence[Row],
    prefix: str,
    cell: Callable[[Row | None, Row | None], str],
) -> Table:
    """One line for each method and setting, one column for each metric; the reference in brackets."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    cells = {(row.method, *(row.setting[name] for name in settings), row.metric): row for row in rows}
    table = Table(title=escape(world), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method")
    for name in (*settings, *metrics):
        table.add_column(name, justify="right")
    for key in dict.fromkeys(key[:-1] for key in cells if not str(key[0]).startswith(prefix)):
        figures = [cell(cells.get((*key, one)), cells.get((prefix + str(key[0]), *key[1:], one))) for one in metrics]
        table.add_row(escape(str(key[0])), *map(_setting, key[1:]), *figures)
    return table


def _setting(value: int | float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else escape(value)
