"""The colours of all pictures, for light and for dark pages, and the styles of lines made of them.

Series differ in lightness besides hue, so that they stay apart for eyes that do not tell red from green, the first six above all;
every one has a marker of its own besides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Dash: TypeAlias = str | tuple[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour by the name of its CSS variable. ``light`` is what is drawn and what a light page shows."""

    name: str
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class Style:
    """How a method is drawn, the same in all pictures of its system."""

    colour: Colour
    marker: str = "o"
    dash: Dash = "-"


LIGHT_PAGES, DARK_PAGES = ("#ffffff", "#f5f2ec"), ("#13181a", "#1b2224")  # what colours have to stand out from
TEXT = Colour("text", "#22292c", "#e9e6df")  # in SVG it is the page's own: currentColor
GRID = Colour("grid", "#dfe2e0", "#343e41")
INK = Colour(
    "ink", "#050505", "#ffffff"
)  # not private; not quite black, which matplotlib leaves out of SVG as the default
GREY = Colour("grey", "#6f7477", "#9aa0a3")  # learns nothing from the data it is to learn from
_SERIES = (
    ("#0b72d9", "#33b1fb"), ("#b03f00", "#e07b14"), ("#2b9270", "#42f5b2"), ("#6b1259", "#c86bb0"), ("#b5760a", "#f6c81e"),
    ("#5a2fd0", "#7d78ff"), ("#4f86b5", "#95dbf9"), ("#e5294f", "#fd747e"), ("#646d16", "#d3fb23"), ("#5c3020", "#a87a58"),
    ("#0d5c5a", "#44918d"), ("#c2388f", "#f5308f"),
)  # fmt: skip
_RAMP = (
    ("#1b9580", "#fde725"), ("#26828e", "#a0da39"), ("#31688e", "#4ac16d"), ("#3e4989", "#1fa187"), ("#482878", "#2b8a9b"),
    ("#440154", "#5a74b5"),
)  # fmt: skip
SERIES = tuple(Colour(f"series-{place}", *both) for place, both in enumerate(_SERIES, 1))
RAMP = tuple(Colour(f"ramp-{place}", *both) for place, both in enumerate(_RAMP, 1))
COLOURS = (*SERIES, *RAMP, INK, GREY, GRID)
_MARKERS = "os^DvP<*>phd"  # not x, which is for the figures of others


def series(place: int, dash: Dash = "-") -> Style:
    """Colour and marker number ``place``, counted from 1."""
    return Style(SERIES[place - 1], _MARKERS[place - 1], dash)


def ramp(count: int) -> list[Style]:
    """Styles for settings in an order, from faint to strong; more than six begin again with dashes."""
    if count > len(RAMP):
        return ramp(len(RAMP)) + [Style(one.colour, one.marker, "--") for one in ramp(count - len(RAMP))]
    step = (len(RAMP) - 1) / max(1, count - 1)
    return [Style(RAMP[round(place * step)], _MARKERS[place]) for place in range(count)]


def css() -> str:
    """The variables of the pictures for a page: by what the reader's system asks for, or by data-theme where it is set."""
    light, dark = (
        _variables((one.name, one.light) for one in COLOURS),
        _variables((one.name, one.dark) for one in COLOURS),
    )
    return (
        f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
        f"[data-theme=dark]{{{dark}}}\n[data-theme=light]{{{light}}}\n"
    )


def _variables(values: Iterable[tuple[str, str]]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in values)
