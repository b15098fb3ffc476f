"""Prints the result of an evaluation, in one layout for all systems: our figures beside published ones, claims, notes.

A table shows one world and one set of settings, with a line for each method. If there are more levels of privacy than
metrics, each metric gets its own table with a column for each epsilon (or eta). Otherwise each metric is a column.
"""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tacit.evaluation.result import COUNT, PAPER, REFERENCE, Claim, Result, Row

if TYPE_CHECKING:
    from rich.console import Console

Value = int | float | str
Settings = tuple[tuple[str, Value], ...]
Cells = dict[
    tuple[str, Settings], dict[tuple[str, Value], Row]
]  # method, settings; metric, level of privacy ("": none)
Differences = dict[tuple[str, str, Settings], Row]  # to a baseline: metric, method, settings

_PRIVACY = ("epsilon", "eta")
_MOST_METRICS = 5  # in one table
_LONGEST_NAME = 40  # of a method, on one line
_MOST_ERRORS = 6  # columns that leave room for an error in each cell
_DRAWS = 25  # of the signal, in the tables of multi-selection
_AGAINST = " against "  # "d_f against ig-sig": the paired difference to a baseline, which colours the cell of d_f
_ONLY_DRAWN = ("cumulative", "single auction", "spread over sets")  # only in figures and in the JSON
_ONLY_JSON = {COUNT, "kept", "items seen", "items of the head", "pseudo-rows", "entities that use it"}
_METRICS = {
    "d_i": "d_i: regret of the slate's best item, in stars (also of the pick, with the network on the device)",
    "d_f": "d_f: regret of the item that the local model picks, in stars",
}
_SETTINGS = {  # the subject of a table, by a setting that only its rows have
    "copies": "Every user several times, a simulation",
    "items": "The cost of the jitter, and the jitter that epsilon 1 needs, as the catalogue grows",
    "slates": "Many slates together",
    "nats": "Tempered slates up to the limit of floats: sum of likes, as a share of the best slate",
    "part": "Multi-selection: slates from a signal",
    "pay per": "Prices from less data: lift over prices from private scores (selection is greedy)",
    "gamma": "Randomised response with a cutoff gamma: lift over the public choice",
    "by": "Best gamma, by metric",
    "rate": "Exact calibration: lift over the public choice",
    "score": "Beyond the paper: lift over the public choice",
    "training_epsilon": "Private training, judged by the network without noise",
    "look_alikes": "Look-alikes: a private release has to beat public look-alikes, which belong to nobody",
}


def print_result(console: "Console", result: Result) -> None:
    """Prints the figures that are not left to plots and the JSON, then the claims and the notes."""
    sizes = ", ".join(
        f"{int(row.value):,} {row.setting['of']}" for row in result.select(COUNT) if len(row.setting) == 1
    )
    head = f"[bold]{result.system}[/] on [bold]{escape(result.data)}[/]"
    console.print(f"{head}{f': {sizes}' if sizes else ''}; seed {result.seed}")
    against = [row for row in result.rows if _AGAINST in row.metric]
    differences = {(row.metric.split(_AGAINST)[0], row.method, _settings_of(row)): row for row in against}
    for table in _tables(result.rows, differences):
        console.print(table)
    if any(row.method.startswith((PAPER, REFERENCE)) for row in result.rows):
        console.print("In brackets: the figure of the paper or of a reference.")
    for baseline in dict.fromkeys(row.metric.split(_AGAINST)[1] for row in against):
        console.print(
            f"[green]Green[/]: lower than {baseline} by at least 2 standard errors, paired by trial; [red]red[/]: higher. "
            f"{baseline} uses no data of the user, so a private method has to beat it."
        )
    _print_claims(console, result.claims)
    for note in result.notes:
        console.print(f"[dim]- {escape(note)}[/]")


def _tables(rows: Iterable[Row], differences: Differences) -> Iterator[Table]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in filter(_is_shown, rows):
        others = (name for name in row.setting if name not in (*_PRIVACY, "world"))
        groups.setdefault((str(row.setting.get("world", "")), *others), []).append(row)
    for (world, *settings), group in groups.items():
        metrics = list(dict.fromkeys(row.metric for row in group))
        privacy = next((name for name in _PRIVACY if any(name in row.setting for row in group)), "")
        levels = {row.setting[privacy] for row in group if privacy in row.setting}
        title = [world, next((_SETTINGS[name] for name in settings if name in _SETTINGS), "")]
        if len(levels) > len(metrics):
            for metric in metrics:
                selected = [row for row in group if row.metric == metric]
                columns = privacy if any(privacy in row.setting for row in selected) else ""
                yield from _table([*title, _METRICS.get(metric, metric)], selected, differences, columns)
            continue
        for is_private in (True, False):
            part = [row for row in group if is_private == (privacy in row.setting)]
            metrics = list(dict.fromkeys(row.metric for row in part))
            for first in range(0, len(metrics), _MOST_METRICS):
                selected = [row for row in part if row.metric in metrics[first : first + _MOST_METRICS]]
                yield from _table(title, selected, differences)


def _is_shown(row: Row) -> bool:
    """Whether to print a figure. Plots show distributions and sweeps, and the JSON holds everything."""
    if row.metric in _ONLY_JSON or _AGAINST in row.metric or any(part in row.metric for part in _ONLY_DRAWN):
        return False
    return row.metric not in _METRICS or row.setting.get("draws", _DRAWS) == _DRAWS


def _table(title: Sequence[str], rows: Sequence[Row], differences: Differences, privacy: str = "") -> Iterator[Table]:
    """A table of our own figures, if there are any: of several metrics, or of one metric at each level of privacy."""
    ours, published = Cells(), Cells()
    for row in rows:
        method = row.method.removeprefix(PAPER).removeprefix(REFERENCE)
        cells = (ours if method == row.method else published).setdefault((method, _settings_of(row, privacy)), {})
        cells[row.metric, row.setting.get(privacy, "")] = row
    if not ours:
        return
    columns = list(dict.fromkeys(column for cells in ours.values() for column in cells))
    if privacy:
        columns = sorted((column for column in columns if column[1] != ""), key=lambda column: _order(column[1]))
    names = list(dict.fromkeys(name for _, settings in ours for name, _ in settings))
    errors = [row.stderr for cells in ours.values() for row in cells.values() if row.stderr is not None]
    crowded = len(columns) > _MOST_ERRORS and bool(errors)
    heading = ": ".join(part for part in title if part) or "Figures"
    if crowded:
        heading += f"; standard errors up to {_figure(columns[0][0], max(errors))}"
    table = Table(title=escape(heading), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    for name in (*names, *(f"{privacy} {_setting(level)}" if privacy else metric for metric, level in columns)):
        table.add_column(escape(name), justify="right")
    for line, cells in ours.items():
        figures = []
        for metric, level in columns:
            figure = cells.get((metric, level), cells.get((metric, "")))  # without a level: the same at every level
            difference = None if figure is None else differences.get((metric, figure.method, _settings_of(figure)))
            figures.append(_cell(figure, published.get(line, {}).get((metric, level)), difference, not crowded))
        settings = dict(line[1])
        method = "\n".join(wrap(line[0], _LONGEST_NAME))
        table.add_row(escape(method), *(_setting(settings.get(name, "")) for name in names), *figures)
    yield table


def _settings_of(row: Row, without: str = "") -> Settings:
    return tuple((name, value) for name, value in row.setting.items() if name not in (without, "world"))


def _cell(row: Row | None, published: Row | None, difference: Row | None, with_error: bool) -> str:
    text = ""
    if row is not None:
        text = _figure(row.metric, row.value) + (f" of {row.n:,}" if row.metric == "entities harmed" else "")
        if with_error and row.stderr is not None:
            text += f" ±{_figure(row.metric, row.stderr)}"
    if difference is not None and difference.stderr is not None and abs(difference.value) > 2.0 * difference.stderr:
        text = f"[green]{text}[/]" if difference.value < 0.0 else f"[red]{text}[/]"
    return text + (f" [dim]({_figure(published.metric, published.value)})[/]" if published is not None else "")


def _figure(metric: str, value: float) -> str:
    if "lift" in metric or "bias" in metric:
        return f"{100.0 * value:.1f}%"
    if value == int(value) and abs(value) >= 1.0:
        return f"{int(value):,}"
    size = abs(value)
    return (
        f"{value:.2g}"
        if size < 0.001
        else f"{value:.4f}"
        if size < 1.0
        else f"{value:.3f}"
        if size < 100
        else f"{value:,.0f}"
    )


def _setting(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else escape(value)


def _order(value: Value) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), str(value)


def _print_claims(console: "Console", claims: Sequence[Claim]) -> None:
    """Prints a table of the paper's claims, one of our own claims, and one of the reference figures that ours miss."""
    for paper in dict.fromkeys(claim.paper for claim in claims):
        rows = [claim for claim in claims if claim.paper == paper]
        share = f"{sum(claim.holds for claim in rows)} of {len(rows)}"
        if paper == "reference figures":
            console.print(f"[bold]{share}[/] figures are within the reference's tolerance.")
            rows = [claim for claim in rows if not claim.holds]
            title = "Outside the reference's tolerance"
        elif paper.startswith("tacit"):
            title = f"Beyond the paper{paper.removeprefix('tacit')}: {share} hold"
        else:
            note = ", unverified" if "unverified" in paper else ""
            title = f"The paper's claims{note}: {share} hold"
        if not rows:
            continue
        table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD)
        table.add_column("holds", no_wrap=True)
        table.add_column("claim", ratio=2)
        table.add_column("evidence: figures ± standard errors", ratio=3)
        for claim in rows:
            table.add_row("[green]yes[/]" if claim.holds else "[red]no[/]", escape(claim.claim), escape(claim.evidence))
        console.print(table)
