"""What panels are drawn with: lines with 95 % intervals, levels, crosses for figures of others, steps, axes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.evaluation.pictures.palette import Style
from tacit.evaluation.result import PAPER, REFERENCE, Result, Row

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Value = int | float | str
INTERVAL = 1.96  # standard errors each way: a 95 % interval of a normal law
GIVEN = {PAPER: "the paper's own", REFERENCE: "reference"}  # the legend of figures that others found
LEVEL, LEVEL_INTERVAL = "level", "interval of a level"  # how the layout tells them from other lines
_APART, _LETTER = 0.03, 0.024  # of an axis: between two labels, and a letter of one


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


def line(
    axes: "Axes", rows: Sequence[Row], along: str, label: str, style: Style, *, scale: float = 1.0, aside: float = 0.0
) -> int:  # fmt: skip
    """A line through the rows, over the number ``along``, moved ``aside`` by points; how many were drawn, 0 or 1."""
    if not rows:
        return 0
    drawn = axes.errorbar(
        [float(row.setting[along]) for row in rows], [scale * row.value for row in rows], yerr=errors(rows, scale),
        label=label, **drawn_as(style),
    )  # fmt: skip
    _move(axes, aside, drawn.get_children())
    return 1


def asides(count: int) -> list[float]:
    """Points by which so many lines are moved apart, so that no bar hides another."""
    step = min(2.6, 14.0 / max(1, count))
    return [step * (place - (count - 1) / 2) for place in range(count)]


def _move(axes: "Axes", points: float, artists: "Iterable[Artist]") -> None:
    """After they are drawn: the limits of the axes are those of the figures, not of where they were moved to."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    if figure is not None:
        moved = axes.transData + ScaledTranslation(points / 72, 0.0, figure.dpi_scale_trans)
        for artist in artists:
            artist.set_transform(moved)


def crosses(
    axes: "Axes", result: Result, metric: str, method: str, along: str, setting: Mapping[str, Value], style: Style,
    *, scale: float = 1.0, aside: float = 0.0,
) -> None:  # fmt: skip
    """What the paper, or a reference, gives for the same: crosses in the colour of the method."""
    for prefix in GIVEN:
        rows = rows_along(result, metric, prefix + method, along, setting)
        x, y = [float(row.setting[along]) for row in rows], [scale * row.value for row in rows]
        given(axes, prefix, x, y, style, aside=aside)


def given(
    axes: "Axes", prefix: str, x: Sequence[float], y: Sequence[float], style: Style, *, aside: float = 0.0
) -> None:
    """Crosses, which are always figures of others."""
    if x:
        drawn = axes.plot(
            x, y, linestyle="none", marker="x", markersize=6, markeredgewidth=1.4, color=style.colour.light,
            label=GIVEN[prefix], zorder=3,
        )  # fmt: skip
        _move(axes, aside, drawn)


def level(
    axes: "Axes", value: float, stderr: float | None, style: Style, *, label: str | None = None, scale: float = 1.0
) -> None:
    """A figure that does not depend on what is along the axis; its 95 % interval stands at the right end."""
    axes.axhline(
        scale * value, color=style.colour.light, linestyle=style.dash, linewidth=1.2, label=label or "_", zorder=1.5, gid=LEVEL
    )  # fmt: skip
    if stderr:
        half = INTERVAL * abs(scale) * stderr
        place = 1.012 + 0.014 * sum(one.get_gid() == LEVEL_INTERVAL for one in axes.lines)
        axes.plot(
            [place, place], [scale * value - half, scale * value + half], transform=axes.get_yaxis_transform(), clip_on=False,
            color=style.colour.light, marker="_", markersize=4, gid=LEVEL_INTERVAL, scalex=False,
        )  # fmt: skip


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
    from matplotlib.ticker import MaxNLocator

    if axes.get_xscale() == "linear":
        places = _places(axes)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        if len(places) == 1:
            axes.set_xticks(places)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)


def logarithmic_x(axes: "Axes") -> None:
    """A logarithmic axis whose labels stand where there are figures, as far as they do not touch."""
    places = _places(axes)
    axes.set_xscale("log")
    axes.set_xticks([], minor=True)
    if not places:
        return
    if len(places) == 1:
        axes.set_xlim(places[0] / 3.0, places[0] * 3.0)
    width = math.log(places[-1] / places[0]) or 1.0
    kept: list[tuple[float, str]] = []
    for place in places:
        label = f"{place:,.0f}" if place >= 1000.0 and place.is_integer() else f"{place:.4g}"
        room = _APART + _LETTER * (len(label) + len(kept[-1][1])) / 2 if kept else 0.0
        if not kept or math.log(place / kept[-1][0]) >= room * width:
            kept.append((place, label))
    axes.set_xticks([place for place, _ in kept], [label for _, label in kept])


def _places(axes: "Axes") -> list[float]:
    """Where lines have figures, along the axis."""
    from matplotlib.container import ErrorbarContainer

    lines = [one.lines[0] for one in axes.containers if isinstance(one, ErrorbarContainer)]
    return sorted({float(x) for one in lines if one is not None for x in np.asarray(one.get_xdata(), dtype=float)})


def logarithmic_y(axes: "Axes") -> None:
    """A logarithmic axis with plain numbers at powers of ten, or at 1, 2 and 5 where it spans less than two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,), numticks=9))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
