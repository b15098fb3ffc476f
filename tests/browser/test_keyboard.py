"""Everything without a mouse: the whole of multi-selection, the tabs, and a focus that can be seen wherever it is."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.screen import MULTI_SELECTION, Screen
from tests.browser.visiting import Visit

MOST_STOPS = 120
FOCUSED = """
() => {
    const at = document.activeElement;
    const seen = at.closest(".stars label") ?? at;  // the radio is invisible, its star is not
    const { outlineStyle, outlineWidth } = getComputedStyle(seen);
    const { testid } = at.dataset;
    const box = seen.getBoundingClientRect();
    return {
        what: testid ?? at.id ?? "",
        tag: at.tagName,
        text: at.textContent.trim().slice(0, 40),
        outline: outlineStyle === "none" ? 0 : parseFloat(outlineWidth),
        inside: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
    };
}
"""


def focused(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate(FOCUSED)
    return found


def tab_to(screen: Screen, what: str, key: str = "Tab") -> None:
    for _ in range(MOST_STOPS):
        screen.page.keyboard.press(key)
        if focused(screen)["what"] == what:
            return
    raise AssertionError(f"{what} is not reached by {key}")


def test_a_recommendation_by_keys_alone(visit: Visit) -> None:
    screen = visit.open()
    press = screen.page.keyboard.press
    for text, stars in (("toy story", 5), ("alien", 4), ("amelie", 2), ("godfather", 1)):
        tab_to(screen, "search", "Shift+Tab" if stars < 5 else "Tab")
        screen.page.keyboard.type(text)
        expect(screen["search"]).to_have_attribute("aria-expanded", "true")
        press("ArrowDown")
        press("ArrowUp")
        press("Enter")
        expect(screen["stars"].get_by_role("radio", name="1 star", exact=True)).to_be_focused()
        press("Space")
        for _ in range(stars - 1):
            press("ArrowRight")
    tab_to(screen, "suggestion")
    press("Enter")
    press("ArrowRight")
    expect(screen["rated-list"].locator("li")).to_have_count(5)
    expect(screen["rated-list"].get_by_role("button", name="5 stars for Toy Story (1995): change")).to_be_visible()

    tab_to(screen, "eta")
    press("ArrowRight")
    expect(screen["eta-shown"]).to_have_text("0.2")
    tab_to(screen, "ask")
    press("Enter")
    expect(screen["pick"]).to_be_visible()
    expect(screen["ask"]).to_be_focused()  # and not lost while the button was busy
    assert len(visit.posted(MULTI_SELECTION)) == 1
    screen.require_spent("5", charges=1)
    assert screen.picked in [title for title, _ in screen.slate]


def test_tabs_are_changed_by_arrows_and_their_panels_follow(visit: Visit) -> None:
    screen = visit.open()
    press = screen.page.keyboard.press
    tab_to(screen, "tab-recommend")
    for key, name in (
        ("ArrowRight", "choose"),
        ("ArrowRight", "slates"),
        ("ArrowRight", "recommend"),
        ("ArrowLeft", "slates"),
        ("Home", "recommend"),
        ("End", "slates"),
    ):
        press(key)
        expect(screen[f"tab-{name}"]).to_be_focused()
        expect(screen[f"tab-{name}"]).to_have_attribute("aria-selected", "true")
        expect(screen.page.get_by_role("tabpanel")).to_have_count(1)  # the others are hidden
        expect(screen.page.get_by_role("tabpanel")).to_have_id(name)
        assert screen.page.evaluate("location.hash") == f"#{name}"
    press("Shift+Tab")
    assert not focused(screen)["what"].startswith("tab-")  # the tabs are one stop


def test_the_focus_can_be_seen_at_every_stop_and_is_never_caught(visit: Visit) -> None:
    screen = visit.open()
    screen.rate("Alien (1979)", 4)
    screen.ask()
    screen.page.get_by_role("heading", level=1).click()  # from the top
    stops = []
    for _ in range(MOST_STOPS):
        screen.page.keyboard.press("Tab")
        stop = focused(screen)
        if stop["tag"] == "BODY":
            break
        stops.append(stop)
    assert stop["tag"] == "BODY"  # round once
    assert [one for one in stops if one["outline"] < 2 or not one["inside"]] == []
    reached = {one["what"] for one in stops}
    assert {"tab-recommend", "search", "suggestion", "remove", "forget", "eta", "ask", "bytes"} <= reached
