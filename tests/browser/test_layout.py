"""On a telephone as on a desk: nothing wider than the screen, nothing too small to hit, no motion for whoever wants none."""

from typing import Any, Literal

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.screen import Screen

RATINGS = {"Spirited Away (Sen to Chihiro no kamikakushi) (2001)": 5, "Alien (1979)": 2}
WIDE = """
() => {
    const most = document.documentElement.clientWidth;
    const scrolls = (one) => one && (["auto", "scroll"].includes(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
    const beyond = (one) => one.checkVisibility() && one.getBoundingClientRect().right > most + 1;
    const wide = Array.from(document.body.querySelectorAll("*")).filter((one) => beyond(one) && !scrolls(one.parentElement));
    return { page: document.documentElement.scrollWidth - most, wide: wide.map((one) => one.outerHTML.slice(0, 120)) };
}
"""
SMALL = """
() => Array.from(document.querySelectorAll("button, input")).flatMap((one) => {
    const target = one.closest("label") ?? one;
    const { width, height } = target.getBoundingClientRect();
    return one.checkVisibility() && (width < 24 || height < 24) ? [`${one.outerHTML.slice(0, 80)} ${width} x ${height}`] : [];
})
"""


@pytest.mark.parametrize("width", [390, 320])
def test_a_telephone_is_wide_enough(visiting: Visiting, width: int) -> None:
    screen = visiting(viewport={"width": width, "height": 780}, has_touch=True, is_mobile=True).open()
    screen.rate_all(RATINGS)
    screen.ask()
    for tab in ("recommend", "choose", "slates"):
        screen.go(tab)
        if tab == "choose":
            screen.consent()
            screen.show()
            expect(screen["count"].first).to_be_visible()
        if tab == "slates":
            expect(screen["slates-plot"].locator("tbody tr")).to_have_count(12)
        for folded in (True, False):
            screen.page.evaluate(
                f"document.querySelectorAll('details').forEach((one) => (one.open = {str(not folded).lower()}))"
            )
            assert screen.page.evaluate(WIDE) == {"page": 0, "wide": []}, (tab, folded)
        assert screen.page.evaluate(SMALL) == [], tab


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_motion_is_reduced_where_that_is_wished(visiting: Visiting, motion: Literal["reduce", "no-preference"]) -> None:
    visit = visiting(reduced_motion=motion)
    visit.context.add_init_script(
        """
        globalThis.scrolled = [];
        const usual = Element.prototype.scrollIntoView;
        Element.prototype.scrollIntoView = function (how) { scrolled.push(how?.behavior ?? "auto"); usual.call(this, how); };
        """
    )
    screen = visit.open()
    screen.ask()
    moves = _moving(screen)
    if motion == "reduce":
        assert moves == {"scrolled": ["auto"], "slow": []}
    else:
        assert moves["scrolled"] == ["smooth"]
        assert moves["slow"] != []


def _moving(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate(
        """() => {
            const slow = Array.from(document.querySelectorAll("*")).filter((one) => {
                const { transitionDuration, transitionProperty, animationName } = getComputedStyle(one);
                return (transitionProperty !== "none" && parseFloat(transitionDuration) > 0) || animationName !== "none";
            });
            return { scrolled, slow: slow.map((one) => one.className) };
        }"""
    )
    return found
