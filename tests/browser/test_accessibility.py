"""For whoever does not see the page, or sees it badly: names, headings, words for pictures, contrast; light and dark."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.screen import Screen
from tests.browser.visiting import Visit

LEAST_CONTRAST = 4.5
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
RATINGS = {"Alien (1979)": 5, "Amelie (Fabuleux destin d'Amélie Poulain, Le) (2001)": 2}
REFERENCES = """
() => {
    const all = (name) => Array.from(document.querySelectorAll(`[${name}]`), (one) => one.getAttribute(name).split(" ")).flat();
    const ids = all("id");
    const wanted = ["aria-labelledby", "aria-describedby", "aria-controls", "for"].flatMap(all);
    const twice = ids.filter((one, place) => ids.indexOf(one) !== place);
    return { twice, missing: wanted.filter((one) => !ids.includes(one)) };
}
"""


def full(visit: Visit) -> Screen:
    """The page with as much on it as there can be, also where it is folded."""
    screen = visit.open().rate_all(RATINGS)
    screen.ask()
    screen.ask("0.05")  # which does not fit any more
    screen.go("choose").consent()
    screen.show()
    screen.show()
    screen.go("slates")
    expect(screen["slates-plot"].locator("tbody tr")).to_have_count(12)
    screen.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    return screen


@pytest.fixture(scope="module", params=["light", "dark"])
def screen(request: pytest.FixtureRequest, visiting_once: Visiting) -> Screen:
    return full(visiting_once(color_scheme=request.param))


TABS = pytest.mark.parametrize("tab", ["recommend", "choose", "slates"])


def tree(screen: Screen) -> list[dict[str, Any]]:
    """What a screen reader is told."""
    session = screen.visit.context.new_cdp_session(screen.page)
    found: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [one for one in found if not one["ignored"]]


def is_focusable(node: dict[str, Any]) -> bool:
    return any(one["name"] == "focusable" and one["value"].get("value") for one in node.get("properties", ()))


def value_of(node: dict[str, Any], what: str) -> str:
    return str(node.get(what, {}).get("value", "")).strip()


@TABS
def test_whatever_can_be_used_has_a_name(screen: Screen, tab: str) -> None:
    screen.go(tab)
    nodes = [one for one in tree(screen) if is_focusable(one) and value_of(one, "role") not in ("RootWebArea", "main")]
    assert len(nodes) > 12
    assert [value_of(one, "role") for one in nodes if not value_of(one, "name")] == []


@TABS
def test_pictures_are_told_in_words_and_tables_follow_them(screen: Screen, tab: str) -> None:
    screen.go(tab)
    pictures = [one for one in tree(screen) if value_of(one, "role") in ("image", "img")]
    assert all(len(value_of(one, "name")) > 20 for one in pictures)
    assert len(pictures) == {"recommend": 2, "choose": 0, "slates": 1}[tab]


@TABS
def test_headings_go_down_one_level_at_a_time(screen: Screen, tab: str) -> None:
    screen.go(tab)
    levels = [
        int(one["value"]["value"])
        for node in tree(screen)
        if value_of(node, "role") == "heading"
        for one in node["properties"]
        if one["name"] == "level"
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@TABS
def test_text_has_contrast(screen: Screen, tab: str) -> None:
    screen.go(tab)
    found: list[dict[str, Any]] = screen.page.evaluate(CONTRAST)
    assert len(found) > 50
    assert [one for one in found if one["ratio"] < LEAST_CONTRAST] == []


def test_the_contrast_of_faint_text_would_be_seen(screen: Screen) -> None:
    before = screen.page.evaluate(CONTRAST)
    screen.page.evaluate("document.querySelector('h1').style.opacity = 0.4")
    after = screen.page.evaluate(CONTRAST)
    screen.page.evaluate("document.querySelector('h1').style.opacity = ''")
    assert len(after) == len(before)
    assert [one["text"] for one in after if one["ratio"] < LEAST_CONTRAST] == ["tacit"]


def test_the_language_is_named_and_no_reference_leads_nowhere(screen: Screen) -> None:
    assert screen.page.evaluate("document.documentElement.lang") == "en-GB"
    assert screen.page.title() == "tacit: recommendation without being told"
    assert screen.page.evaluate(REFERENCES) == {"twice": [], "missing": []}


def test_what_happens_is_said_aloud(screen: Screen) -> None:
    """Regions that a screen reader reads by itself when they change."""
    for name in ("status", "show-status", "slates-status", "outcome"):
        expect(screen[name]).to_have_attribute("role", "status")
        expect(screen[name]).not_to_be_empty()
    expect(screen["trouble"]).to_have_attribute("role", "alert")
