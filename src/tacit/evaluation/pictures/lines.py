"""What panels are drawn with: lines with 95 % intervals, levels, crosses for figures of others, steps, axes."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tacit.evaluation.pictures.palette import Style
from tacit.evaluation.result import PAPER, REFERENCE, Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Value = int | float | str
INTERVAL = 1.96  # standard errors each way: a 95 % interval of a normal law
GIVEN = {PAPER: "the paper's own", REFERENCE: "reference"}  # the legend of figures that others found
_APART = 0.1  # of an axis: the least distance of two labelled ticks


def rows_along(result: Result, metric: str, method: str, along: str, setting: Mapping[str, Value]) -> list[Row]:
    """The rows of a method with exactly this setting and one finite number more, by that number."""
    found = []
    for row in result.select(metric, method, **setting):
        place = row.setting.get(along)
        if len(row.setting) == len(setting) + 1 and isinstance(place, int | float) and math.isfinite(place):
            found.append(row)
    return sorted(found, key=lambda row: float(row.setting[along]))


def errors(rows: Sequence[Row], scale: float = 1.0) -> list[float] | None:
    """Half the width of each 95 % interval; None where no error is known."""
    if all(row.stderr is None for row in rows):
        return None
    return [INTERVAL * abs(scale) * (row.stderr or 0.0) for row in rows]


def line(axes: "Axes", rows: Sequence[Row], along: str, label: str, style: Style, *, scale: float = 1.0) -> int:
    """A line through the rows, over the number ``along``; how many were drawn, 0 or 1."""
    if not rows:
        return 0
    axes.errorbar(
        [float(row.setting[along]) for row in rows], [scale * row.value for row in rows], yerr=errors(rows, scale),
        label=label, **drawn_as(style),
    )  # fmt: skip
    return 1


def crosses(
    axes: "Axes", result: Result, metric: str, method: str, along: str, setting: Mapping[str, Value], style: Style,
    *, scale: float = 1.0,
) -> None:  # fmt: skip
    """What the paper, or a reference, gives for the same: crosses in the colour of the method."""
    for prefix in GIVEN:
        rows = rows_along(result, metric, prefix + method, along, setting)
        given(axes, prefix, [float(row.setting[along]) for row in rows], [scale * row.value for row in rows], style)


def given(axes: "Axes", prefix: str, x: Sequence[float], y: Sequence[float], style: Style) -> None:
    """Crosses, which are always figures of others."""
    if x:
        axes.plot(
            x, y, linestyle="none", marker="x", markersize=6, markeredgewidth=1.4, color=style.colour.light,
            label=GIVEN[prefix], zorder=3,
        )  # fmt: skip


def level(
    axes: "Axes", value: float, stderr: float | None, style: Style, *, label: str | None = None, scale: float = 1.0
) -> None:
    """A figure that does not depend on what is along the axis, with its 95 % interval as a band."""
    axes.axhline(
        scale * value, color=style.colour.light, linestyle=style.dash, linewidth=1.2, label=label or "_", zorder=1.5
    )
    if stderr:
        half = INTERVAL * abs(scale) * stderr
        axes.axhspan(scale * value - half, scale * value + half, color=style.colour.light, alpha=0.1, linewidth=0)


def steps(axes: "Axes", rows: Sequence[Row], label: str, style: Style) -> int:
    """Cumulative shares over "at"."""
    if not rows:
        return 0
    axes.step(
        [float(row.setting["at"]) for row in rows], [row.value for row in rows], where="post", label=label,
        color=style.colour.light, linestyle=style.dash, linewidth=1.6,
    )  # fmt: skip
    return 1


def drawn_as(style: Style) -> dict[str, Any]:
    return {"color": style.colour.light, "marker": style.marker, "linestyle": style.dash}


def finish(axes: "Axes", x: str, y: str, title: str = "") -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)


def logarithmic_x(axes: "Axes") -> None:
    """A logarithmic axis whose labels stand where there are figures, as far as they do not touch."""
    from matplotlib.container import ErrorbarContainer

    places = sorted(
        {
            float(place)
            for drawn in axes.containers
            if isinstance(drawn, ErrorbarContainer) and drawn.lines[0] is not None
            for place in drawn.lines[0].get_xdata()  # type: ignore[union-attr]  # of a plain line: numbers
        }
    )
    axes.set_xscale("log")
    axes.set_xticks([], minor=True)
    if not places:
        return
    width = math.log(places[-1] / places[0]) or 1.0
    kept: list[float] = []
    for place in places:
        if not kept or math.log(place / kept[-1]) >= _APART * width:
            kept.append(place)
    axes.set_xticks(kept, [f"{place:,g}" for place in kept])


def logarithmic_y(axes: "Axes") -> None:
    """A logarithmic axis with plain numbers at powers of ten, or at 1, 2 and 5 where it spans less than two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,), numticks=9))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
