"""Privacy against utility of every world of a system: the default with its interval, other modes, and both extremes."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.evaluation.curve import Curve, Line, Role
from tacit.evaluation.demonstration.demonstration import Demonstration, Kind, Way
from tacit.evaluation.pictures.lines import INTERVAL, drawn_as, finish, level, logarithmic_x
from tacit.evaluation.pictures.palette import GREY, INK, SERIES, Style
from tacit.evaluation.pictures.picture import Panel, Picture
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEFAULT = Style(SERIES[0], "o", "-")
PLAIN, NOTHING = Style(INK, "", "-"), Style(GREY, "", "--")
_OTHERS = tuple(Style(colour, marker, "-") for colour, marker in zip(SERIES[2:], ("s", "^", "D", "v"), strict=False))
_PUBLISHED = Style(SERIES[1], "X", ":")
_ROLES = {Role.DEFAULT: "tacit", Role.OTHER: "another private mode", Role.PUBLISHED: "as published"}
_KINDS = {
    Kind.PRIVATE: Style(SERIES[0], "o", "none"),
    Kind.PLAIN: Style(INK, "D", "none"),
    Kind.NOTHING: Style(GREY, "s", "none"),
}
_LONGEST, _LETTER, _GAP = (
    28,
    0.075,
    0.2,
)  # letters of a line of a name; inches of a wide one in 8 points, and beside a name
_BAND = 0.18  # how dense the interval of the default is


def overview(curves: Sequence[Curve]) -> Picture:
    """One panel for each system: its first world."""
    first = {curve.system: curve for curve in reversed(curves)}
    order = dict.fromkeys(curve.system for curve in curves)
    panels = tuple(panel(first[system], f"{system}: {first[system].world}", named=False) for system in order)
    return Picture("overview", "Privacy against utility: the first world of each system", panels)


def worlds(curves: Sequence[Curve]) -> Picture:
    """One panel for each world of one system."""
    return Picture("curves", "Privacy against utility", tuple(panel(curve, curve.world) for curve in curves))


def panel(curve: Curve, title: str, *, named: bool = True) -> Panel:
    """Utility over epsilon, which grows to the right: more is told there. ``named``: lines by their methods, not by their roles."""

    def drawn(result: Result, axes: "Axes") -> int:
        others = iter(_OTHERS)
        for line in curve.lines:
            style = {Role.DEFAULT: DEFAULT, Role.PUBLISHED: _PUBLISHED}.get(line.role) or next(others)
            _line(axes, line, style, _label(line) if named else _ROLES[line.role])
        level(axes, curve.plain.value, curve.plain.stderr, PLAIN, label="not private")
        level(axes, curve.nothing.value, curve.nothing.stderr, NOTHING, label="learns nothing")
        finish(axes, curve.measured_in, f"{curve.metric} ({curve.better} is better)", title)
        logarithmic_x(axes)
        return len(curve.lines)

    return drawn


def compared(shown: Demonstration) -> Picture:
    """Every way of a demonstration on one scale: private ones, those that promise nothing, and what learns nothing."""

    def drawn(result: Result, axes: "Axes") -> int:
        ways = list(reversed(shown.ways))
        for place, way in enumerate(ways):
            found, style = way.figures[shown.metric], _KINDS[way.kind]
            axes.errorbar(
                [found.value], [place], xerr=[INTERVAL * (found.stderr or 0.0)], label=str(way.kind), **drawn_as(style)
            )
        axes.set_yticks(range(len(ways)), [_named(way) for way in ways])  # beside the axes, where no interval reaches
        axes.set_ylim(-0.5, len(ways) - 0.5)
        finish(axes, f"{shown.metric} ({shown.better} is better)", "")
        return len(ways)

    longest = max(len(line) for way in shown.ways for line in _named(way).split("\n"))
    return Picture("compared", f"{shown.metric}, {shown.unit}", (drawn,), left=_GAP + _LETTER * longest)


def _named(way: Way) -> str:
    """In lines that leave room for the picture."""
    name = way.method if way.kind is not Kind.PRIVATE else f"{way.method}, {way.epsilon:.3g}"
    return textwrap.fill(name, _LONGEST)


def _label(line: Line) -> str:
    return line.method if line.role is Role.OTHER else f"{_ROLES[line.role]}: {line.method}"


def _line(axes: "Axes", line: Line, style: Style, label: str) -> None:
    x, y = [point.epsilon for point in line.points], [point.value for point in line.points]
    half = [INTERVAL * (point.stderr or 0.0) for point in line.points]
    axes.errorbar(x, y, yerr=half, label=label, **drawn_as(style))
    if line.role is Role.DEFAULT:
        low, high = ([value + sign * width for value, width in zip(y, half, strict=True)] for sign in (-1.0, 1.0))
        axes.fill_between(x, low, high, color=style.colour.light, alpha=_BAND, linewidth=0)
