"""The palette: every colour stands out from its page, and a method has one style in all pictures of its system."""

import re
from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from tacit.evaluation import registry
from tacit.evaluation.cross_domain import names as cross_names
from tacit.evaluation.pictures import palette, panels
from tacit.evaluation.pictures.palette import (
    COLOURS,
    DARK_PAGES,
    GREY,
    GRID,
    INK,
    LIGHT_PAGES,
    RAMP,
    SERIES,
    TEXT,
    Colour,
)
from tacit.evaluation.result import Result, Row

# What an eye without red or without green cones sees of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
EYES = {
    "all cones": np.eye(3),
    "no red cones": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green cones": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
}  # fmt: skip
THEMES = ("light", "dark")


def linear(hexadecimal: str) -> np.ndarray:
    value = np.array([int(hexadecimal[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""
    dark, light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def seen(hexadecimal: str, eye: str) -> np.ndarray:
    """In OKLab, where a distance is about what one sees."""
    cones = np.array(
        [[0.41222147, 0.53633254, 0.05144599], [0.2119035, 0.68069955, 0.10739696], [0.08830246, 0.28171884, 0.6299787]]
    )
    opponents = np.array(
        [
            [0.21045426, 0.79361779, -0.00407205],
            [1.9779985, -2.42859221, 0.45059371],
            [0.02590404, 0.78277177, -0.80867577],
        ]
    )
    return opponents @ np.cbrt(cones @ np.clip(EYES[eye] @ linear(hexadecimal), 0.0, 1.0))  # fmt: skip


def nearest(colours: tuple[Colour, ...], theme: str, eye: str) -> float:
    values = [seen(getattr(one, theme), eye) for one in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(values, 2))


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("colour", [*SERIES, *RAMP, INK, GREY], ids=lambda one: one.name)
def test_every_line_stands_out_from_both_pages(colour: Colour) -> None:
    assert all(contrast(colour.light, page) >= 3.0 for page in LIGHT_PAGES)
    assert all(contrast(colour.dark, page) >= 3.0 for page in DARK_PAGES)


def test_words_can_be_read_and_the_grid_stays_behind() -> None:
    for theme, pages in zip(THEMES, (LIGHT_PAGES, DARK_PAGES), strict=True):
        assert all(contrast(getattr(TEXT, theme), page) >= 7.0 for page in pages)
        assert all(contrast(getattr(GRID, theme), page) < 2.0 for page in pages)


@pytest.mark.parametrize("theme", THEMES)
def test_colours_can_be_told_apart(theme: str) -> None:
    assert len(SERIES) >= 10
    assert nearest((*SERIES, INK, GREY), theme, "all cones") > 0.09
    for eye in EYES:
        assert nearest(SERIES[:6], theme, eye) > 0.07, eye
        lightness = [seen(getattr(one, theme), eye)[0] for one in RAMP]
        steps = np.diff(lightness)
        assert (steps < 0.0).all(), eye  # an order that also grey paper keeps


def test_every_series_has_a_marker_of_its_own_and_none_is_the_cross() -> None:
    markers = [palette.series(place).marker for place in range(1, len(SERIES) + 1)]
    assert len(set(markers)) == len(SERIES)
    assert "x" not in markers


def test_a_ramp_of_any_length_has_no_style_twice() -> None:
    for count in (0, 1, 2, 6, 9):
        styles = palette.ramp(count)
        assert len(styles) == len(set(styles)) == count


def test_the_page_is_told_both_themes_and_the_reader_can_choose() -> None:
    blocks = re.findall(r"(?:^|\{)([^{}@\n]+)\{([^}]*)\}", palette.css(), flags=re.MULTILINE)
    assert [where for where, _ in blocks] == [":root", ":root", "[data-theme=dark]", "[data-theme=light]"]
    assert "@media (prefers-color-scheme: dark){:root{" in palette.css()
    values = [dict(part.split(":") for part in what.split(";")) for _, what in blocks]
    assert values[0] == values[3] == {f"--{one.name}": one.light for one in COLOURS}
    assert values[1] == values[2] == {f"--{one.name}": one.dark for one in COLOURS}
    assert len(values[0]) == len(set(values[0].values()))  # the drawn value tells which variable it is


def with_worlds(system: str) -> Result:
    """The rows that cross-domain finds its worlds by."""
    rows = [Row(cross_names.B3, {"world": "w", name: 1.0}, "MAE", 1.0) for name in ("epsilon", "k", "linked")]
    return Result(system, "data", tuple(rows), (), {}, 1)


@pytest.mark.parametrize("system", registry.SYSTEMS)
def test_no_two_methods_of_a_system_look_alike(system: str) -> None:
    styles = import_module(f"tacit.evaluation.{system.replace('-', '_')}.plots").STYLES
    assert len(set(styles.values())) == len(styles)


@pytest.mark.parametrize("system", registry.SYSTEMS)
def test_a_method_has_one_colour_and_in_one_picture_for_itself(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_tried(result: Result, metric: str, method: str, along: str, setting: Mapping[str, object]) -> list[Row]:
        found = [] if ":" in method else [1.0, 2.0]  # no figures of others
        return [Row(method, {along: place}, metric, 1.0, 0.1, 10) for place in found]

    monkeypatch.setattr(panels, "rows_along", all_tried)
    result, everywhere = with_worlds(system), defaultdict(set)
    lines = 0
    for picture in registry.pictures(system, result):
        within = defaultdict(set)
        for panel in picture.panels:
            axes = Figure().add_subplot()
            panel(result, axes)
            for one in axes.containers:
                if isinstance(one, ErrorbarContainer) and one.lines[0] is not None:
                    colour, label = to_hex(one.lines[0].get_color()), str(one.get_label())
                    within[colour].add(label)
                    everywhere[label].add(colour)
                    lines += 1
        assert all(len(labels) == 1 for labels in within.values()), (picture.name, within)
    assert lines > 5
    assert all(len(colours) == 1 for colours in everywhere.values())
    assert set().union(*everywhere.values()) <= {one.light for one in COLOURS}
