"""Where panels, legend and words stand in a picture, in inches. By hand: the automatic layout takes a second for each."""

import textwrap
from typing import TYPE_CHECKING, Any

from tacit.evaluation.pictures.lines import GIVEN, LEVEL, LEVEL_INTERVAL
from tacit.evaluation.pictures.palette import GRID, TEXT
from tacit.evaluation.pictures.picture import LEFT, Picture
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTE = "Error bars: 95 % intervals, 1.96 standard errors each way."
_WIDE = {1: 6.4, 2: 5.0}  # of a panel with its labels, by how many stand in a row
_NARROW, _HIGH, _ALONE_HIGH = 3.6, 2.25, 3.0
_RIGHT, _ABOVE, _BELOW = 0.24, 0.34, 0.52
_LINE, _LETTER, _HANDLE = 0.152, 0.06, 0.6  # of a legend in 8 points
_TITLE, _TITLE_LETTER = 0.24, 0.086  # in 11 points

RC: dict[str, Any] = {
    "axes.axisbelow": True, "axes.edgecolor": TEXT.light, "axes.facecolor": "none", "axes.formatter.useoffset": False,
    "axes.grid": True, "axes.labelcolor": TEXT.light, "axes.labelsize": 8.5, "axes.linewidth": 0.8,
    "axes.spines.right": False, "axes.spines.top": False, "axes.titlelocation": "left", "axes.titlesize": 9,
    "errorbar.capsize": 2, "figure.facecolor": "none", "font.size": 9, "grid.color": GRID.light, "grid.linewidth": 0.8,
    "legend.fontsize": 8, "legend.frameon": False, "lines.linewidth": 1.4, "lines.markersize": 4.5,
    "savefig.facecolor": "auto", "svg.fonttype": "none", "svg.hashsalt": "tacit", "text.color": TEXT.light,
    "text.parse_math": False,
    "text.usetex": False, "xtick.color": TEXT.light, "xtick.labelsize": 8, "ytick.color": TEXT.light, "ytick.labelsize": 8,
}  # fmt: skip


def drawn(result: Result, picture: Picture, *, titled: bool) -> "Figure | None":
    """The picture with those panels that have lines, under its title if ``titled``; None if no panel has any."""
    from matplotlib.figure import Figure

    figure = Figure()
    panels = []
    for place, panel in enumerate(picture.panels):
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), label=str(place))
        if panel(result, axes):
            panels.append(axes)
        else:
            axes.remove()
    if not panels:
        return None
    across = min(len(panels), picture.across)
    down = -(-len(panels) // across)
    wide = _WIDE.get(across, _NARROW)
    high = _ALONE_HIGH if across == 1 else _HIGH
    width = wide * across
    named = _legend(panels)
    columns = max(1, int((width - LEFT) // (_HANDLE + _LETTER * max(map(len, named), default=0))))
    legend = _LINE * -(-len(named) // columns) + 0.1
    note = 0.22 if any(map(_has_errors, panels)) else 0.04
    title = textwrap.wrap(picture.title, int((width - 0.2) / _TITLE_LETTER)) if titled else []
    cell = _ABOVE + high + _BELOW
    height = _TITLE * len(title) + cell * down + legend + note
    figure.set_size_inches(width, height)
    for place, axes in enumerate(panels):
        row, column = divmod(place, across)
        bottom = height - _TITLE * len(title) - cell * row - _ABOVE - high
        axes.set_position(
            (
                (wide * column + picture.left) / width,
                bottom / height,
                (wide - picture.left - _RIGHT) / width,
                high / height,
            )
        )
    if named:
        figure.legend(
            named.values(), named.keys(), loc="lower left", bbox_to_anchor=(LEFT / width, note / height), ncols=columns,
            borderaxespad=0.0, borderpad=0.2, labelspacing=0.35, columnspacing=1.2, handlelength=2.6,
        )  # fmt: skip
    if note > 0.1:
        figure.text((LEFT + 0.02) / width, 0.07 / height, NOTE, fontsize=7.5, verticalalignment="bottom")
    if title:
        figure.text(0.1 / width, 1.0 - 0.06 / height, "\n".join(title), fontsize=11, verticalalignment="top")
    return figure


def _legend(panels: "list[Axes]") -> "dict[str, Any]":
    """One entry for each name, whichever panels have it: lines, then levels, then crosses, whose colour says nothing there."""
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    kinds: dict[str, int] = {}
    for label, handle in found.items():
        kinds[label] = (
            1 if isinstance(handle, Line2D) and handle.get_gid() == LEVEL else 2 if label in GIVEN.values() else 0
        )
        if kinds[label] == 2:
            found[label] = Line2D(
                [], [], linestyle="none", marker="x", markersize=6, markeredgewidth=1.4, color=TEXT.light
            )
    return {label: found[label] for label in sorted(found, key=kinds.__getitem__)}


def _has_errors(axes: "Axes") -> bool:
    from matplotlib.container import ErrorbarContainer

    bars = any(isinstance(one, ErrorbarContainer) and (one.has_yerr or one.has_xerr) for one in axes.containers)
    return bars or any(one.get_gid() == LEVEL_INTERVAL for one in axes.lines)
