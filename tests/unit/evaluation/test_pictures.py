"""Pictures as SVG for a page and as files: what they may hold, and what their bars mean."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from tacit.evaluation.pictures import palette
from tacit.evaluation.pictures.drawing import Drawn, draw_files, draw_svgs
from tacit.evaluation.pictures.layout import NOTE, RC, drawn
from tacit.evaluation.pictures.lines import LEVEL_INTERVAL, logarithmic_x, rows_along
from tacit.evaluation.pictures.panels import against, cumulative, each, levels, together
from tacit.evaluation.pictures.picture import Panel, Picture
from tacit.evaluation.result import PAPER, REFERENCE, Result, Row

SVG = "{http://www.w3.org/2000/svg}"
KNOWN = {"svg", "g", "path", "use", "defs", "text", "clipPath", "rect"}
STYLES = {"ours": palette.series(1), "theirs": palette.series(2, "--"), "open": palette.Style(palette.INK)}
LOSS = against("loss", "epsilon", {"ours": {}, "theirs": {}}, STYLES, log=True)
BESIDE = levels("loss", {"open": {}}, STYLES)
NOTHING = against("gain", "epsilon", {"ours": {}}, STYLES)


def rows() -> Iterator[Row]:
    for epsilon in (0.1, 1.0, 10.0):
        yield Row("ours", {"epsilon": epsilon}, "loss", 2.0 / (1.0 + epsilon), 0.05 * epsilon, 100)
        yield Row("theirs", {"epsilon": epsilon}, "loss", 3.0 / (1.0 + epsilon), None)
        yield Row("ours", {"epsilon": epsilon, "k": 7}, "loss", 1000.0, 0.1, 100)  # of another experiment
    yield Row(REFERENCE + "ours", {"epsilon": 1.0}, "loss", 1.1)
    yield Row(PAPER + "ours", {"epsilon": 10.0}, "loss", 0.4)
    yield Row("ours", {"epsilon": "inf"}, "loss", 0.01, 0.1, 100)
    yield Row("open", {}, "loss", 0.02, 0.01, 100)
    for at in range(4):
        yield Row("ours", {"at": at}, "shares", at / 3)


RESULT = Result("multi-selection", 'films & "books" <1>', tuple(rows()), (), {}, 1)
PICTURES = (
    Picture("first", "Loss & <more>", (together(LOSS, BESIDE), NOTHING)),
    Picture("second", "Shares", (cumulative("shares", {"here": ("ours", {})}, {"here": STYLES["ours"]}, x="at", y="share"),)),
    Picture("empty", "Nothing was tried", (NOTHING, BESIDE)),
    Picture("third", "Loss again", (LOSS, together(LOSS, BESIDE), LOSS, LOSS)),
)  # fmt: skip


@pytest.fixture(scope="module")
def svgs() -> list[Drawn]:
    return draw_svgs(RESULT, PICTURES)


def axes_of(panel: Panel) -> Axes:
    axes = Figure().add_subplot()
    panel(RESULT, axes)
    return axes


def intervals(axes: Axes) -> list[np.ndarray]:
    """Lower and upper end of the bars of each line."""
    found = []
    for one in axes.containers:
        if isinstance(one, ErrorbarContainer) and one.has_yerr:
            (bars,) = one.lines[2]
            found.append(np.array([segment[:, 1] for segment in bars.get_segments()]))
    return found


def test_a_picture_without_rows_is_left_out_and_so_is_a_panel(svgs: list[Drawn], tmp_path: Path) -> None:
    assert [one.name for one in svgs] == ["first", "second", "third"]  # levels alone are no picture
    files = draw_files(RESULT, PICTURES, tmp_path)
    assert [path.name for path in files] == ["first.png", "second.png", "third.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in files)
    figure = drawn(RESULT, PICTURES[0], titled=False)
    assert figure is not None
    assert len(figure.axes) == 1


def test_an_svg_is_one_element_that_says_what_it_is(svgs: list[Drawn]) -> None:
    for one in svgs:
        assert one.svg.startswith("<svg ")
        root = ElementTree.fromstring(one.svg)
        assert root.tag == f"{SVG}svg"
        assert (root.get("role"), root.get("aria-label"), root.get("width")) == ("img", one.title, "100%")
        assert re.fullmatch(r"0 0 \d+(\.\d+)? \d+(\.\d+)?", root.get("viewBox") or "")
        assert {node.tag.removeprefix(SVG) for node in root.iter()} <= KNOWN


def test_text_stays_text_in_the_colour_and_the_font_of_the_page(svgs: list[Drawn]) -> None:
    root = ElementTree.fromstring(svgs[0].svg)
    words = {node.text: node.get("style") or "" for node in root.iter(f"{SVG}text")}
    assert {"epsilon", "loss", "ours", "theirs", "open", "reference", "the paper's own", "0.1", NOTE} <= set(words)
    assert all("fill: currentColor" in style and "font-family" not in style for style in words.values())


def test_every_colour_is_a_variable_of_the_page(svgs: list[Drawn]) -> None:
    known = {f"var(--{one.name}, {one.light})" for one in palette.COLOURS}
    for one in svgs:
        found = re.findall(r"var\(--[^)]*\)", one.svg)
        assert {"var(--series-1, #0b72d9)", "var(--grid, #dfe2e0)"} <= set(found) <= known
        rest = re.sub(r"var\(--[^)]*\)", "", one.svg)
        assert not re.search(r"(?<!\()#[0-9a-fA-F]{3,8}\b(?!-)", re.sub(r'(href="|url\()#[^")]*', "", rest))
        assert not re.search(r"\b(black|white|rgb)\b", rest)
    markers = re.findall(r'<g[^>]* style="([^"]*)"><use', svgs[0].svg)
    assert any("fill: var(--series-1" in style for style in markers)


def test_nothing_leads_out_of_the_page_and_nothing_holds_for_all_of_it(svgs: list[Drawn]) -> None:
    for one in svgs:
        inner = one.svg.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
        assert not re.search(r"https?:|data:|file:|//|@import|<script|<style|<metadata|<!|<\?", inner)
        assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", inner))
        assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', inner))


def test_ids_are_found_where_they_are_named_and_no_two_pictures_share_one(svgs: list[Drawn]) -> None:
    ids = []
    for one in svgs:
        own = re.findall(r' id="([^"]*)"', one.svg)
        used = set(re.findall(r'(?:url\(|href=")#([^")]*)', one.svg))
        assert len(own) == len(set(own))
        assert set(own) == used
        assert all(name.startswith(f"{one.name}-") for name in own)
        ids.append(set(own))
    assert all(ids)
    assert all(not one & other for one, other in combinations(ids, 2))


def test_the_same_result_gives_the_same_bytes(svgs: list[Drawn]) -> None:
    assert draw_svgs(RESULT, PICTURES) == svgs


def test_numbers_are_short_and_no_group_is_idle(svgs: list[Drawn]) -> None:
    for one in svgs:
        assert not re.search(r"\d\.\d{3,}", one.svg)
        assert "<g>" not in one.svg
        assert len(one.svg) < 60_000


def test_error_bars_are_95_percent_intervals() -> None:
    (bars,) = intervals(axes_of(LOSS))  # the other line has no known error, and no bars
    epsilons = np.array([0.1, 1.0, 10.0])
    np.testing.assert_allclose(bars.mean(axis=1), 2.0 / (1.0 + epsilons))
    np.testing.assert_allclose(np.diff(bars, axis=1)[:, 0], 2 * 1.96 * 0.05 * epsilons)
    scaled = axes_of(against("loss", "epsilon", {"ours": {}}, STYLES, scale=100.0))
    np.testing.assert_allclose(intervals(scaled)[0], 100.0 * bars)
    (end,) = (one for one in axes_of(BESIDE).lines if one.get_gid() == LEVEL_INTERVAL)
    np.testing.assert_allclose(np.asarray(end.get_ydata(), dtype=float), [0.02 - 1.96 * 0.01, 0.02 + 1.96 * 0.01])


def test_a_picture_with_error_bars_says_what_they_are_and_one_without_does_not(svgs: list[Drawn]) -> None:
    assert [NOTE in one.svg for one in svgs] == [True, False, True]


def test_a_line_takes_rows_of_its_setting_only_in_order() -> None:
    assert [row.value for row in rows_along(RESULT, "loss", "ours", "epsilon", {})] == [2 / 1.1, 1.0, 2 / 11]
    assert {row.value for row in rows_along(RESULT, "loss", "ours", "epsilon", {"k": 7})} == {1000.0}


def test_crosses_are_what_others_found() -> None:
    crosses = [one for one in axes_of(LOSS).lines if one.get_marker() == "x"]
    found = {str(one.get_label()): (np.asarray(one.get_xdata())[0], np.asarray(one.get_ydata())[0]) for one in crosses}
    assert found == {"the paper's own": (10.0, 0.4), "reference": (1.0, 1.1)}


def test_lines_that_would_hide_each_other_are_moved_apart_but_not_their_axis() -> None:
    axes = axes_of(together(LOSS))
    first, second = (one.lines[0] for one in axes.containers if isinstance(one, ErrorbarContainer))
    assert first is not None
    assert second is not None
    where = [one.get_transform().transform((1.0, 1.0))[0] for one in (first, second)]
    assert 1.0 < where[1] - where[0] < 10.0
    assert axes.get_xlim()[0] > 0.05


def test_logarithmic_labels_stand_where_figures_are_and_do_not_touch() -> None:
    found = axes_of(LOSS)
    assert [label.get_text() for label in found.get_xticklabels()] == ["0.1", "1", "10"]
    axes = Figure().add_subplot()
    axes.errorbar([1000.0, 1010.0, 1_000_000.0], [1.0, 1.0, 1.0])
    logarithmic_x(axes)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1,000", "1,000,000"]
    alone = Figure().add_subplot()
    alone.errorbar([2.0], [1.0])
    logarithmic_x(alone)
    assert alone.get_xlim() == (2.0 / 3.0, 6.0)


def test_panels_and_legend_do_not_overlap() -> None:
    from matplotlib import style

    for picture in PICTURES:
        with style.context(["default", RC]):
            figure = drawn(RESULT, picture, titled=True)
            if figure is None:
                continue
            figure.canvas.draw()
            boxes = [axes.get_tightbbox() for axes in figure.axes] + [one.get_window_extent() for one in figure.legends]
        assert all(box is not None for box in boxes)
        for one, other in combinations([box for box in boxes if box is not None], 2):
            assert not one.overlaps(other)


def test_one_line_for_each_setting_is_in_the_order_of_the_ramp() -> None:
    panel = each("loss", "epsilon", "ours", {"any k": {}, "k = 7": {"k": 7}, "k = 9": {"k": 9}}, palette.ramp(3))
    axes = axes_of(panel)
    lines = [one.lines[0] for one in axes.containers if isinstance(one, ErrorbarContainer)]
    assert [line.get_color() for line in lines if line is not None] == [palette.RAMP[0].light, palette.RAMP[2].light]
