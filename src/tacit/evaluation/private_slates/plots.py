"""Privacy against popularity, coverage and diversity, with error bars; epsilon against the catalogue. Needs the extra `report`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.evaluation.multi_selection.plots import require_matplotlib
from tacit.evaluation.private_slates import growth, names
from tacit.evaluation.private_slates.measures import COVERAGE, DISTANCE, GENRES, METRICS, NOVELTY, POPULARITY
from tacit.evaluation.private_slates.reference import PREFIX
from tacit.evaluation.private_slates.signal import SLOTS
from tacit.evaluation.private_slates.stability import SCORE
from tacit.evaluation.private_slates.tries import INF
from tacit.evaluation.result import Result, Row

Axes = Any
Panel = Callable[[Result, Axes], int]  # draws on axes, says how many lines it drew

COLOURS = {
    names.NATURAL: "#1f77b4", names.PUBLISHED: "#aec7e8", names.TEMPERED: "#d62728", names.SEARCHED: "#ff9896",
    names.GUMBEL: "#ff7f0e", names.TWO_STAGE: "#2ca02c", names.SPARSE: "#9467bd", names.LAPLACE: "#8c564b",
    names.KERNEL_GREEDY: "#17becf", names.KERNEL_K_DPP: "#9edae5", growth.TIGHT: "#1f77b4", growth.BASIC: "#7f7f7f",
}  # fmt: skip
LEVELS = {names.UNIFORM: ":", names.K_DPP: "-.", names.GREEDY: "--", names.TOP: "-"}
MARKERS = {names.UNIFORM: "s", names.K_DPP: "D", names.GREEDY: "^", names.TOP: "*"}
PRIVATE = tuple(name for name in COLOURS if name not in (growth.TIGHT, growth.BASIC))


def draw(result: Result, folder: Path) -> list[Path]:
    """A PNG file for each figure that the result has rows for."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = []
    for name, (title, panels) in _figures().items():
        inches = (4.4 * len(panels) + 2.6, 4.2)
        figure = Figure(figsize=inches)
        FigureCanvasAgg(figure)
        figure.subplots_adjust(
            left=0.7 / inches[0], right=1.0 - 2.7 / inches[0], bottom=0.13, top=0.85, wspace=0.27
        )  # by hand: the automatic layout takes a second for each figure
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        if not sum(panel(result, axis) for panel, axis in zip(panels, axes, strict=True)):
            continue
        named = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend(named.values(), named.keys(), loc="center right", fontsize=7)
        figure.suptitle(f"{title} ({result.data})", fontsize=11, x=0.01, horizontalalignment="left")
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110)
        drawn.append(path)
    return drawn


def _figures() -> dict[str, tuple[str, list[Panel]]]:
    both = (names.NATURAL, names.PUBLISHED)
    return {
        "privacy-utility": (
            "Privacy against utility; crosses: reference",
            [against_epsilon(one) for one in (POPULARITY, COVERAGE)],
        ),
        "privacy-diversity": (
            "Privacy against diversity; crosses: reference",
            [against_epsilon(one) for one in (GENRES, DISTANCE, NOVELTY)],
        ),
        "utility-diversity": (
            "Popularity against diversity, one point for each epsilon",
            [each_other(POPULARITY, one) for one in (GENRES, DISTANCE)],
        ),
        "epsilon-catalogue": (
            "The theorem and the paper's bound as the catalogue grows",
            [
                along(growth.COST, both, "items", logarithmic=True),
                along(growth.JITTER, both, "items", logarithmic=True),
                along(SLOTS, both, "epsilon"),
            ],
        ),
        "many-slates": (
            f"Many slates at epsilon {growth.EACH:g} each, delta {growth.DELTA:g}",
            [along(growth.TOGETHER, (growth.TIGHT, growth.BASIC), "slates", logarithmic=True)],
        ),
        "tempered-stability": (
            "Tempered slates up to the limit of floats",
            [along(SCORE, (names.TEMPERED,), "nats", flat=True)],
        ),
    }


def against_epsilon(metric: str) -> Panel:
    """Lines over epsilon with error bars; reference figures as crosses; slates without privacy, or without data, as levels."""

    def panel(result: Result, axes: Axes) -> int:
        count = sum(_line(result, axes, metric, method, "epsilon") for method in PRIVATE)
        for level, style in LEVELS.items():
            for row in result.select(metric, level):
                if row.setting.keys() == {"epsilon"}:
                    axes.axhline(row.value, color="grey", linewidth=1.0, linestyle=style, label=level)
        axes.set_xscale("log")
        return _finish(axes, "epsilon", metric, count)

    return panel


def each_other(first: str, second: str) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        count = 0
        for method in (*PRIVATE, *LEVELS):
            pairs = [
                (row, result.find(second, method, **row.setting)) for row in _rows(result, first, method, "epsilon")
            ]
            found = [(one, other) for one, other in pairs if other is not None]
            if found:
                axes.errorbar(
                    [one.value for one, _ in found], [other.value for _, other in found],
                    xerr=[one.stderr or 0.0 for one, _ in found], yerr=[other.stderr or 0.0 for _, other in found],
                    label=method, color=COLOURS.get(method, "grey"), marker=MARKERS.get(method, "o"),
                    markersize=4, capsize=2, linewidth=1.0,
                )  # fmt: skip
                count += 1
        return _finish(axes, first, second, count)

    return panel


def along(metric: str, methods: tuple[str, ...], name: str, *, logarithmic: bool = False, flat: bool = False) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        count = sum(_line(result, axes, metric, method, name) for method in methods)
        if not flat:
            axes.set_xscale("log")
        if logarithmic:
            axes.set_yscale("log")
        return _finish(axes, name, metric, count)

    return panel


def _line(result: Result, axes: Axes, metric: str, method: str, name: str) -> int:
    rows = [row for row in _rows(result, metric, method, name) if row.setting[name] != INF]
    if not rows:
        return 0
    colour = COLOURS.get(method)
    axes.errorbar(
        [row.setting[name] for row in rows], [row.value for row in rows], yerr=[row.stderr or 0.0 for row in rows],
        label=method, color=colour, marker="o", markersize=3, capsize=2,
    )  # fmt: skip
    given = _rows(result, metric, PREFIX + method, name)
    if given and metric in METRICS:
        axes.plot([row.setting[name] for row in given], [row.value for row in given], "x", color=colour)
    return 1


def _rows(result: Result, metric: str, method: str, name: str) -> list[Row]:
    found = [row for row in result.select(metric, method) if row.setting.keys() == {name}]
    return sorted(found, key=lambda row: float(row.setting[name]))


def _finish(axes: Axes, x: str, y: str, count: int) -> int:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    return count
