"""The evaluation of private selection on the terminal: lifts beside reference figures, facts beside the paper's, and claims."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tacit.cli.claim_tables import print_claims
from tacit.evaluation.private_selection import paper
from tacit.evaluation.private_selection.reference import NAME as REFERENCE
from tacit.evaluation.private_selection.reference import PREFIX
from tacit.evaluation.result import PAPER, Result, Row

if TYPE_CHECKING:
    from rich.console import Console

_SWEEP, _AUTO = {"world", "epsilon"}, {"world", "epsilon", "score"}
_DRAWN = ("cumulative", "single auction", "spread over sets")  # only in figures
_WORLD = ("world", "setting")
_FEW = 5  # columns that leave room for an error in each


def print_result(console: "Console", result: Result) -> None:
    console.print(f"[bold]{result.system}[/] on [bold]{escape(result.data)}[/]; seed {result.seed}")
    left = [row for row in result.rows if not any(part in row.metric for part in _DRAWN)]

    def take(wanted: Callable[[Row], bool]) -> list[Row]:
        nonlocal left
        found = [row for row in left if wanted(row)]
        left = [row for row in left if not wanted(row)]
        return found

    for table in _tables(take):
        if table is not None:
            console.print(table)
    for metric in dict.fromkeys(row.metric for row in left):
        rows = [row for row in left if row.metric == metric]
        along = "epsilon" if any("epsilon" in row.setting for row in rows) else ""
        table = _pivot(metric, rows, along)
        if table is not None:
            console.print(table)
    for title, by in (("The paper's claims", paper.NAME), ("Against reference figures", REFERENCE)):
        print_claims(console, title, [claim for claim in result.claims if claim.paper == by])
    print_claims(
        console, "Beyond the paper", [one for one in result.claims if one.paper not in (paper.NAME, REFERENCE)]
    )
    for note in result.notes:
        console.print(f"[dim]- {escape(note)}[/]")


def _tables(take: Callable[[Callable[[Row], bool]], list[Row]]) -> Iterable[Table | None]:
    yield _facts(take(lambda row: not row.setting.keys() - {"alpha"} and row.setting.get("alpha", 1.0) == 1.0))
    scanned = take(lambda row: "pay per" in row.setting and "setting" in row.setting)
    yield _pivot("Server prices in other settings: lift over prices from private scores, %", scanned, "pay per")
    yield _pivot(
        "Prices that know less: lift over prices from private scores, % (selection is greedy)",
        take(lambda row: "pay per" in row.setting),
        "pay per",
    )
    for metric in ("CTR", "surplus", "revenue", "value"):
        yield _pivot(
            f"{metric} lift over the public choice, %, score bid x click probability",
            take(lambda row, wanted=f"{metric} lift": row.metric == wanted and row.setting.keys() == _SWEEP),  # type: ignore[misc]
            "epsilon",
        )
    yield _pivot(
        "rr with a cutoff gamma: CTR lift over the public choice, %",
        take(lambda row: row.metric == "CTR lift" and "gamma" in row.setting),
        "gamma",
    )
    take(lambda row: "gamma" in row.setting)  # the other metrics are in the figures
    yield _pivot("Best gamma, by", take(lambda row: row.metric == "best gamma" and "by" in row.setting), "by")
    take(lambda row: "lift" in row.metric and "candidates" in row.setting)
    yield _pivot(
        "Clipped noisy max is ahead of rr up to epsilon, by candidates",
        take(lambda row: row.metric == "clipped is ahead up to epsilon"),
        "candidates",
    )
    yield _pivot(
        "Exact calibration: CTR lift over the public choice, %", take(lambda row: "rate" in row.setting), "epsilon"
    )
    for score, metric in (("click", "CTR lift"), ("value", "value lift")):
        yield _pivot(
            f"Beyond the paper: {metric} over the public choice, %, score: {score}",
            take(lambda row, m=metric, s=score: row.metric == m and row.setting.get("score") == s),  # type: ignore[misc]
            "epsilon",
        )
    take(lambda row: "lift" in row.metric and row.setting.keys() == _AUTO)


def _facts(rows: list[Row]) -> Table | None:
    """Numbers of worlds that hang on no setting, the paper's beside them."""
    if not rows:
        return None
    worlds = list(dict.fromkeys(row.method.removeprefix(PAPER) for row in rows))
    table = Table(title="The worlds", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("what")
    for world in worlds:
        table.add_column(world, justify="right")
    for metric in dict.fromkeys(row.metric for row in rows):
        cells = []
        for world in worlds:
            ours = next((row for row in rows if (row.method, row.metric) == (world, metric)), None)
            papers = next((row for row in rows if (row.method, row.metric) == (PAPER + world, metric)), None)
            told = "" if ours is None else f"{ours.value:.4g}"
            cells.append(told + (f" [dim](paper {papers.value:.4g})[/]" if papers else ""))
        table.add_row(metric, *cells)
    return table


def _pivot(title: str, rows: list[Row], along: str) -> Table | None:
    """One line for each method and setting, one column for each value of ``along`` (and each metric, if there are several)."""
    if not rows:
        return None
    several = len({row.metric for row in rows}) > 1

    def column(row: Row) -> tuple[str, str]:
        return (row.metric if several else "", str(row.setting.get(along, "")))

    columns = sorted({column(row) for row in rows}, key=lambda one: (_order(one[1]), one[0]))
    errors = [row.stderr for row in rows if row.stderr is not None]
    wide = len(columns) > _FEW and bool(errors)
    if wide:
        title += f"; standard errors up to {_error(rows[0].metric, max(errors))}"
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    for metric, at in columns:
        value = f"{float(at):g}" if _is_number(at) else at
        table.add_column(escape(" ".join(part for part in (metric, value) if part)) or "value", justify="right")
    lines: dict[tuple[str, str], dict[tuple[str, str], Row]] = {}
    for row in rows:
        others = ", ".join(_said(name, value) for name, value in row.setting.items() if name != along)
        lines.setdefault((others, row.method), {})[column(row)] = row
    for others, method in sorted(lines, key=lambda line: _place(line, list(lines))):
        cells = [_cell(lines[others, method].get(at), with_error=not wide) for at in columns]
        named = escape(f"{method}{': ' if others else ''}{others}")
        if method.startswith((PREFIX, PAPER)):
            named, cells = f"[dim]  {named}[/]", [f"[dim]{cell}[/]" for cell in cells]
        table.add_row(named, *cells)
    return table


def _place(line: tuple[str, str], lines: list[tuple[str, str]]) -> tuple[int, int]:
    """A reference or the paper's line stands behind the line that it is of."""
    others, method = line
    bare = method.removeprefix(PREFIX).removeprefix(PAPER)
    ours = (others, bare)
    return (lines.index(ours) if ours in lines else len(lines), int(bare != method))


def _said(name: str, value: int | float | str) -> str:
    return str(value) if name in _WORLD else f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _cell(row: Row | None, *, with_error: bool) -> str:
    if row is None:
        return ""
    value = f"{100 * row.value:+.1f}" if _in_percent(row.metric) else f"{row.value:.4g}"
    return value + (f" ±{_error(row.metric, row.stderr)}" if with_error and row.stderr is not None else "")


def _error(metric: str, stderr: float) -> str:
    return f"{100 * stderr:.1f}" if _in_percent(metric) else f"{stderr:.2g}"


def _in_percent(metric: str) -> bool:
    return "lift" in metric or "bias" in metric


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _order(text: str) -> tuple[float, str]:
    return (float(text), "") if _is_number(text) else (float("inf"), text)
