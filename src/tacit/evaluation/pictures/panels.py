"""Panels that all systems share: methods against a number, levels beside them, cumulative shares."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tacit.evaluation.pictures.lines import (
    Value,
    asides,
    crosses,
    finish,
    level,
    line,
    logarithmic_x,
    logarithmic_y,
    rows_along,
    steps,
)
from tacit.evaluation.pictures.palette import Style
from tacit.evaluation.pictures.picture import Panel
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Settings = Mapping[str, Mapping[str, Value]]  # of each method, what its rows have besides the number along the axis


def against(
    metric: str, along: str, methods: Settings, styles: Mapping[str, Style], *, title: str = "", x: str = "", y: str = "",
    log: bool = False, log_y: bool = False, scale: float = 1.0, from_zero: bool = False,
) -> Panel:  # fmt: skip
    """One line for each method over the number ``along``; what the paper or a reference gives as crosses."""

    def panel(result: Result, axes: "Axes") -> int:
        count = 0
        tried = [one for one, setting in methods.items() if rows_along(result, metric, one, along, setting)]
        places = dict(zip(tried, asides(len(tried)), strict=True))
        for method, setting in methods.items():
            rows, aside = rows_along(result, metric, method, along, setting), places.get(method, 0.0)
            count += line(axes, rows, along, method, styles[method], scale=scale, aside=aside)
            crosses(axes, result, metric, method, along, setting, styles[method], scale=scale, aside=aside)
        if log:
            logarithmic_x(axes)
        if log_y and count:
            logarithmic_y(axes)
        if from_zero:
            axes.set_ylim(bottom=0.0)
        finish(axes, x or along, y or metric, title)
        return count

    return panel


def each(
    metric: str, along: str, method: str, settings: Mapping[str, Mapping[str, Value]], styles: Sequence[Style], *,
    title: str = "", x: str = "", y: str = "", log: bool = False,
) -> Panel:  # fmt: skip
    """One line for each named setting of one method."""

    def panel(result: Result, axes: "Axes") -> int:
        count = 0
        for (label, setting), style, aside in zip(settings.items(), styles, asides(len(settings)), strict=True):
            rows = rows_along(result, metric, method, along, setting)
            count += line(axes, rows, along, label, style, aside=aside)
        if log:
            logarithmic_x(axes)
        finish(axes, x or along, y or metric, title)
        return count

    return panel


def levels(
    metric: str, methods: Settings, styles: Mapping[str, Style], *, labels: Mapping[str, str] | None = None, scale: float = 1.0
) -> Panel:  # fmt: skip
    """The one figure of each method as a level. By themselves levels are no picture: they do not count as lines."""

    def panel(result: Result, axes: "Axes") -> int:
        for method, setting in methods.items():
            row = result.find(metric, method, **setting)
            if row is not None:
                name = (labels or {}).get(method, method)
                level(axes, row.value, row.stderr, styles[method], label=name, scale=scale)
        return 0

    return panel


def cumulative(
    metric: str, groups: Mapping[str, tuple[str, Mapping[str, Value]]], styles: Mapping[str, Style], *, x: str, y: str
) -> Panel:
    """Cumulative shares of each group: its label, its method and its setting."""

    def panel(result: Result, axes: "Axes") -> int:
        count = 0
        for label, (method, setting) in groups.items():
            count += steps(axes, rows_along(result, metric, method, "at", setting), label, styles[label])
        finish(axes, x, y)
        axes.set_ylim(0.0, 1.02)
        return count

    return panel


def together(*panels: Panel) -> Panel:
    """Several on the same axes; the last one names them."""

    def panel(result: Result, axes: "Axes") -> int:
        return sum(one(result, axes) for one in panels)

    return panel
