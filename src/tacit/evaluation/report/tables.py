"""Rows of a result as tables: a line for each method and setting, a column for each metric, the paper's figure within the cell."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tacit.evaluation.report.words import figure, interval, setting
from tacit.evaluation.result import COUNT, PAPER, REFERENCE, Row

BESIDE = {PAPER: "paper", REFERENCE: "reference"}
_WORLD = (
    "world",
    "data",
    "campaign",
    "scores",
    "prior",
    "part",
)  # settings that a table is about, rather than a column of it
_DRAWN_ONLY = ", cumulative"  # figures of shares: a picture has them


class Cell(NamedTuple):
    """A figure with its error, and what the paper or a reference has for the same."""

    text: str
    beside: str = ""


class Table(NamedTuple):
    title: str
    words: int  # how many columns are words, before the figures begin
    columns: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]


def beside_others(rows: Iterable[Row]) -> list[Table]:
    """Only figures that the paper or a reference gives as well."""
    return _tables(rows, lambda ours, others: ours is not None and bool(others))


def all_figures(rows: Iterable[Row]) -> list[Table]:
    return _tables(rows, lambda ours, others: ours is not None or bool(others))


def _tables(rows: Iterable[Row], wanted: Callable[[Row | None, Sequence[Row]], bool]) -> list[Table]:
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Row]] = {}
    for row in rows:
        if row.metric == COUNT or row.metric.endswith(_DRAWN_ONLY):
            continue
        about = tuple(f"{row.setting[name]}" for name in _WORLD if name in row.setting)
        names = tuple(sorted(name for name in row.setting if name not in _WORLD))
        groups.setdefault((about, names), []).append(row)
    made = (_table(", ".join(about), names, found, wanted) for (about, names), found in groups.items())
    return [table for table in made if table.lines]


def _table(
    title: str, names: tuple[str, ...], rows: Sequence[Row], wanted: Callable[[Row | None, Sequence[Row]], bool]
) -> Table:
    ours: dict[tuple[str, ...], dict[str, Row]] = {}
    others: dict[tuple[str, ...], dict[str, list[Row]]] = {}
    for row in rows:
        prefix = next((one for one in BESIDE if row.method.startswith(one)), "")
        place = (row.method.removeprefix(prefix), *(setting(row.setting[name]) for name in names))
        if prefix:
            others.setdefault(place, {}).setdefault(row.metric, []).append(row)
        else:
            ours.setdefault(place, {})[row.metric] = row
    cells = {
        (place, metric): (ours.get(place, {}).get(metric), others.get(place, {}).get(metric, []))
        for place in dict.fromkeys([*ours, *others])
        for metric in dict.fromkeys(row.metric for row in rows)
    }
    kept = {key: found for key, found in cells.items() if wanted(*found)}
    metrics = tuple(dict.fromkeys(metric for _, metric in kept))
    lines = tuple(
        (*map(Cell, place), *(_cell(*kept.get((place, metric), (None, []))) for metric in metrics))
        for place in dict.fromkeys(place for place, _ in kept)
    )
    return Table(title, 1 + len(names), ("method", *names, *metrics), lines)


def _cell(ours: Row | None, others: Sequence[Row]) -> Cell:
    text = "" if ours is None else interval(ours.value, ours.stderr)
    given = (f"{BESIDE[PAPER if row.is_papers else REFERENCE]} {figure(row.value)}" for row in others)
    return Cell(text, "; ".join(given))
