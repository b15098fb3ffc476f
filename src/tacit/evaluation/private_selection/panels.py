"""The panels of the figures: lines against epsilon, gamma or a size, from rows, with error bars, reference figures as crosses."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from tacit.evaluation.private_selection.reference import PREFIX
from tacit.evaluation.result import Result, Row

Axes = Any
Panel = Callable[[Result, Axes], int]  # draws on axes, says how many lines it drew

COLOURS = {
    "rr": "#1f77b4", "pf scaled": "#d62728", "pf clipped 0.5": "#98df8a", "pf clipped 1": "#2ca02c", "pf clipped 2": "#bcbd22",
    "pf clipped 8": "#8c564b", "gumbel scaled": "#ff7f0e", "gumbel clipped 1": "#17becf", "auto": "#000000",
    "auto, half the spread": "#7f7f7f", "auto, twice the spread": "#c7c7c7", "rr, tuned gamma": "#9467bd",
    "rr, tuned gamma or public": "#c5b0d5",
}  # fmt: skip


def lines(metric: str, methods: Iterable[str], along: str, title: str, **setting: int | float | str) -> Panel:
    """One line for each method, over the values of ``along``; its value at an infinite epsilon as a level."""

    def panel(result: Result, axes: Axes) -> int:
        count = 0
        scale = 100.0 if "lift" in metric else 1.0
        for method in methods:
            rows = _exactly(result, metric, method, along, setting)
            if not rows:
                continue
            colour = COLOURS.get(method)
            axes.errorbar(
                [row.setting[along] for row in rows], [scale * row.value for row in rows],
                yerr=[scale * (row.stderr or 0.0) for row in rows], label=method, color=colour, marker="o", markersize=3, capsize=2,
            )  # fmt: skip
            for row in result.select(metric, method, **setting, **{along: "inf"}):
                if len(row.setting) == len(setting) + 1:
                    axes.axhline(scale * row.value, color=colour, linestyle=":", linewidth=1.0)
            given = _exactly(result, metric, PREFIX + method, along, setting)
            if given:
                axes.plot(
                    [row.setting[along] for row in given], [scale * row.value for row in given], "x", color=colour,
                    label=f"{method} (reference)", alpha=0.8,
                )  # fmt: skip
            count += 1
        for level in ("greedy", "public"):
            for row in result.select(metric, level, **setting):
                if len(row.setting) == len(setting):
                    style = "-" if level == "greedy" else "--"
                    axes.axhline(row.value, color="grey", linewidth=1.0, linestyle=style, label=level)
        if "lift" in metric:
            axes.axhline(0.0, color="grey", linewidth=0.8)
        finish(axes, along, f"{metric}, %" if scale > 1 else metric, title)
        return count

    return panel


def shares(metric: str, groups: Iterable[tuple[str, str, dict[str, float]]], unit: str, title: str = "") -> Panel:
    """Cumulative shares: of each (label, method, setting) a step line over "at"."""

    def panel(result: Result, axes: Axes) -> int:
        count = 0
        for label, method, setting in groups:
            rows = _exactly(result, metric, method, "at", setting)
            if rows:
                axes.step([row.setting["at"] for row in rows], [row.value for row in rows], where="post", label=label)
                count += 1
        finish(axes, unit, "share up to here", title)
        axes.set_ylim(0.0, 1.02)
        return count

    return panel


def bars(metric: str, pay: str, worlds: Iterable[str], title: str) -> Panel:
    """A lift for each world and kind of prices; the reference's as a cross."""

    def panel(result: Result, axes: Axes) -> int:
        place, names = 0, []
        for world in worlds:
            for prices in ("server", "global mean"):
                setting = {"world": world, "prices": prices, "pay per": pay}
                row = result.find(metric, "greedy", **setting)
                if row is None:
                    continue
                axes.bar(
                    place, 100 * row.value, yerr=100 * (row.stderr or 0.0), capsize=3, label="here" if place == 0 else None,
                    color="#1f77b4" if prices == "server" else "#aec7e8",
                )  # fmt: skip
                given = result.find(metric, PREFIX + "greedy", **setting)
                if given is not None:
                    label = "reference" if place == 0 else None
                    axes.plot(place, 100 * given.value, "x", color="black", label=label)
                names.append(f"{world}\n{prices}")
                place += 1
        axes.axhline(0.0, color="grey", linewidth=0.8)
        finish(axes, "", f"{metric}, %", title)
        axes.set_xticks(range(place), labels=names, fontsize=7)
        return place

    return panel


def finish(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.25)


def _exactly(result: Result, metric: str, method: str, along: str, setting: dict[str, Any]) -> list[Row]:
    """Rows with this setting and a finite ``along``, and nothing else, in its order."""
    found = [
        row
        for row in result.select(metric, method, **setting)
        if len(row.setting) == len(setting) + 1
        and isinstance(row.setting.get(along), (int, float))
        and math.isfinite(float(row.setting[along]))
    ]
    return sorted(found, key=lambda row: float(row.setting[along]))
