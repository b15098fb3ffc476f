"""The cost of honesty, and sweeps over overlap, k, the price of one draw and the number of users. Needs the extra `report`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.measures import MAE
from tacit.evaluation.cross_domain.reference import PLAIN, PREFIX
from tacit.evaluation.multi_selection.plots import require_matplotlib
from tacit.evaluation.result import Result, Row

Axes = Any
Panel = Callable[[Result, Axes], int]  # draws on axes, says how many lines it drew
Value = int | float | str

COLOURS = {
    names.OFFSETS: "#c7c7c7", names.B1: "#ff7f0e", names.B2: "#2ca02c", names.B2_CAREFUL: "#98df8a",
    names.B3_OFFSETS: "#9edae5", names.B3: "#1f77b4", names.B3_OWN: "#17becf", names.TABLE: "#d62728",
    names.NX: "#000000", names.NX_UB: "#7f7f7f", names.ITEM_AVERAGE: "#8c564b", names.REMOTE_USER: "#e377c2",
    names.KNN: "#9467bd", names.ALS: "#bcbd22", names.NX_PUBLISHED: "#aec7e8", names.PRS_TOP_RATED: "#ff9896",
    names.PRS_VALID_RATED: "#d62728", names.POSITIVE_RATED: "#1f77b4", names.NX_NOISY: "#c49c94",
    names.NX_NOISY_USER: "#2ca02c",
}  # fmt: skip
PRIVATE = (
    names.OFFSETS, names.B1, names.B2, names.B2_CAREFUL, names.B3_OFFSETS, names.B3, names.B3_OWN, names.TABLE
)  # fmt: skip
LEVELS = {
    names.NX_SOURCE: (0, (5, 1)),
    names.NX: "-",
    names.ITEM_AVERAGE: "--",
    names.PRS_TOP_NOISY: ":",
    names.PRS_VALID_NOISY: "-.",
}
_ACROSS = 3  # panels in a row
_LEVEL_COLOURS = {names.NX_SOURCE: "#000000", names.PRS_TOP_NOISY: "#d62728", names.PRS_VALID_NOISY: "#d62728"}


def draw(result: Result, folder: Path) -> list[Path]:
    """A PNG file for each figure that the result has rows for."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = []
    for name, (title, panels) in _figures(result).items():
        if not panels:
            continue
        across = min(len(panels), _ACROSS)
        down = -(-len(panels) // across)
        inches = (4.2 * across + 3.6, 3.9 * down + 0.6)
        figure = Figure(figsize=inches)
        FigureCanvasAgg(figure)
        figure.subplots_adjust(
            left=0.7 / inches[0],
            right=1.0 - 3.7 / inches[0],
            bottom=0.6 / inches[1],
            top=1.0 - 0.75 / inches[1],
            wspace=0.3,
            hspace=0.35,
        )  # by hand: the automatic layout takes a second for each figure
        axes = list(figure.subplots(down, across, squeeze=False).flat)
        for spare in axes[len(panels) :]:
            spare.set_axis_off()
        if not sum(panel(result, axis) for panel, axis in zip(panels, axes, strict=False)):
            continue
        named = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend(named.values(), named.keys(), loc="center right", fontsize=7)
        figure.suptitle(title, fontsize=11, x=0.01, horizontalalignment="left")
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110)
        drawn.append(path)
    return drawn


def _figures(result: Result) -> dict[str, tuple[str, list[Panel]]]:
    worlds = dict.fromkeys(
        str(row.setting["world"]) for row in result.rows if row.method in PRIVATE and row.method != names.TABLE
        and set(row.setting) == {"world", "epsilon"}
    )  # fmt: skip
    compared = (names.ITEM_AVERAGE, names.NX, names.NX_UB, names.REMOTE_USER, names.KNN, names.ALS)
    drawn = (names.PRS_TOP_RATED, names.PRS_VALID_RATED, names.POSITIVE_RATED)
    cut = dict.fromkeys(str(row.setting["world"]) for row in result.rows if "linked" in row.setting)
    by_k = dict.fromkeys(str(row.setting["world"]) for row in result.rows if set(row.setting) == {"world", "k"})
    return {
        "cost-of-honesty": (
            "The cost of honesty: MAE against epsilon of the whole system, delta 1e-6; crosses: reference",
            [honesty(world) for world in worlds],
        ),
        "overlap": (
            "Users in both domains; crosses: reference",
            [along("overlap", {key: {} for key in compared}, {"world": PLAIN}, log=True)],
        ),
        "links-cut": (
            "Of the users in both domains so many stay one",
            [along("linked", {key: {} for key in compared}, {"world": world}, log=True) for world in cut],
        ),
        "k": (
            "Similar items taken; crosses: reference",
            [along("k", {key: {} for key in (names.NX_PUBLISHED, names.NX)}, {"world": w}, log=True) for w in by_k],
        ),
        "draws": (
            "What one draw would have to cost (nothing here has a finite epsilon); crosses: reference",
            [
                along("epsilon a draw", {key: {"epsilon": names.INF} for key in drawn}, {"world": PLAIN}, log=True),
                along(
                    "epsilon of PNSA + PNCF",
                    {name: {"epsilon": names.INF} for name in (names.NX_NOISY, names.NX_NOISY_USER)},
                    {"world": PLAIN},
                    log=True,
                ),
            ],
        ),
        "users": (
            "The number of users, at epsilon 2",
            [
                along(
                    "users",
                    {name: {"epsilon": names.INF if name in LEVELS else 2.0} for name in
                     (names.ITEM_AVERAGE, names.NX, names.B2, names.B3_OFFSETS, names.B3)},
                    {"world": "synthetic, 200 + 200 items"},
                    log=True,
                )
            ],
        ),
    }  # fmt: skip


def rows_along(result: Result, method: str, name: str, setting: Mapping[str, Value]) -> list[tuple[float, Row]]:
    """The rows of a method with exactly this setting and one number more, by that number."""
    found = []
    for row in result.select(MAE, method):
        rest = {key: value for key, value in row.setting.items() if key != name}
        place = row.setting.get(name)
        if rest == dict(setting) and isinstance(place, int | float):
            found.append((float(place), row))
    return sorted(found, key=lambda one: one[0])


def along(
    name: str, methods: Mapping[str, Mapping[str, Value]], base: Mapping[str, Value], *, log: bool = False
) -> Panel:
    """One line for each method over ``name``; reference figures as crosses."""

    def panel(result: Result, axes: Axes) -> int:
        count = sum(_line(result, axes, method, name, {**base, **more}) for method, more in methods.items())
        if log and count:
            _logarithmic(
                axes,
                [x for method, more in methods.items() for x, _ in rows_along(result, method, name, {**base, **more})],
            )
        return _finish(axes, name, str(base["world"]), count)

    return panel


def honesty(world: str) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        count = sum(_line(result, axes, method, "epsilon", {"world": world}) for method in PRIVATE)
        for method, style in LEVELS.items():
            for row in result.select(MAE, method, world=world, epsilon=names.INF):
                if "k" in row.setting or row.setting.get("epsilon a draw", 0.3) != 0.3:
                    continue
                label = (
                    f"{method} (no privacy)"
                    if method in (names.NX, names.NX_SOURCE, names.ITEM_AVERAGE)
                    else f"{method} (epsilon = inf)"
                )
                colour = _LEVEL_COLOURS.get(method, "grey")
                axes.axhline(row.value, color=colour, linewidth=1.0, linestyle=style, label=label)
        _logarithmic(
            axes, [x for method in PRIVATE for x, _ in rows_along(result, method, "epsilon", {"world": world})]
        )
        return _finish(axes, "epsilon", world, count)

    return panel


def _line(result: Result, axes: Axes, method: str, name: str, setting: Mapping[str, Value]) -> int:
    found = rows_along(result, method, name, setting)
    given = rows_along(result, PREFIX + method, name, setting)
    colour = COLOURS.get(method)
    axes.plot([x for x, _ in given], [row.value for _, row in given], "x", color=colour)
    if not found:
        return 0
    axes.errorbar(
        [x for x, _ in found], [row.value for _, row in found], yerr=[row.stderr or 0.0 for _, row in found],
        label=method, marker="o", markersize=3, capsize=2, color=colour,
    )  # fmt: skip
    return 1


def _logarithmic(axes: Axes, places: list[float]) -> None:
    """Labels where there are figures, and nowhere else."""
    axes.set_xscale("log")
    axes.set_xticks([], minor=True)
    if places:
        axes.set_xticks(sorted(set(places)), [f"{x:g}" for x in sorted(set(places))], fontsize=7)


def _finish(axes: Axes, x: str, title: str, count: int) -> int:
    axes.set_xlabel(x)
    axes.set_ylabel(MAE)
    axes.set_title(title, fontsize=8)
    axes.grid(alpha=0.25)
    return count
