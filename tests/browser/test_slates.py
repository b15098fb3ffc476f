"""Slates: what the page shows is what the server computes from a release, and the three sliders do what they say."""

import json
import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.browser.visiting import Visit

ALPHAS = ("0", "0.5", "1", "3", "10", "30")
PERCENT = re.compile("([0-9]+)\u00a0%")


@pytest.fixture
def screen(visit: Visit) -> Screen:
    screen = visit.open("slates")
    expect(screen["slates-list"].locator("li")).to_have_count(10)
    return screen


def slate(api: httpx.Client, release: str, k: int, alpha: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/v1/slates/{release}?k={k}&alpha={alpha}").raise_for_status().json()
    return found


def set_slider(screen: Screen, name: str, place: int) -> None:
    """By the keyboard, from its least value on."""
    screen[name].focus()
    screen.page.keyboard.press("Home")
    for _ in range(place):
        screen.page.keyboard.press("ArrowRight")


def require_shown(screen: Screen, answer: dict[str, Any]) -> None:
    """Titles in their order, and both measures as whole percents."""
    expect(screen["slates-list"].locator("li")).to_have_text(answer["titles"])
    for name in ("diversity", "liking"):
        assert 0.0 <= answer[name] <= 1.0
    shown = [int(one.split("\u00a0")[0]) for one in screen["slates-measures"].locator("b").all_inner_texts()]
    assert shown == pytest.approx([100 * answer["diversity"], 100 * answer["liking"]], abs=0.51)


def test_epsilon_k_and_alpha_change_the_slate_and_its_measures(screen: Screen, api: httpx.Client) -> None:
    seen = [slate(api, "counts-4", 10, "3")]
    require_shown(screen, seen[-1])

    screen["slates-release"].get_by_role("radio", name="counts-1").check()
    seen.append(slate(api, "counts-1", 10, "3"))
    require_shown(screen, seen[-1])
    expect(screen["slates-means"]).to_contain_text("epsilon 1")

    set_slider(screen, "slates-k", 4)
    seen.append(slate(api, "counts-1", 7, "3"))  # from 3 on
    require_shown(screen, seen[-1])

    for place in (0, len(ALPHAS) - 1):
        set_slider(screen, "slates-alpha", place)
        seen.append(slate(api, "counts-1", 7, ALPHAS[place]))
        require_shown(screen, seen[-1])

    titles = [tuple(one["titles"]) for one in seen]
    assert len(set(titles)) == len(titles)  # each of them is another one
    assert seen[-2]["diversity"] > seen[-1]["diversity"]  # varied against popular
    assert {one.method for one in screen.visit.sent} == {"GET"}


def test_a_slate_can_be_drawn_by_chance_and_the_best_one_comes_back(screen: Screen, api: httpx.Client) -> None:
    drawn = []
    for _ in range(3):
        with screen.page.expect_response("**drawn=true"):
            screen["slates-drawn"].click()
        expect(screen["slates-status"]).to_contain_text("drawn by chance")
        drawn.append(json.loads([one for one in screen.visit.sent if one.path.endswith("&drawn=true")][-1].answered))
        require_shown(screen, drawn[-1])
    assert len({tuple(one["titles"]) for one in drawn}) > 1
    screen["slates-greedy"].click()
    require_shown(screen, slate(api, "counts-4", 10, "3"))


def test_the_plot_and_its_table_have_every_release_and_alpha(screen: Screen, api: httpx.Client) -> None:
    rows = screen["slates-plot"].locator("tbody tr")
    expect(rows).to_have_count(2 * len(ALPHAS))
    shown = {}
    for row in rows.all():
        release, alpha, *measures = row.inner_text().split("\t")
        shown[release.replace("chosen", "").strip(), alpha] = [int(PERCENT.search(one)[1]) for one in measures]  # type: ignore[index]
    for epsilon in (1, 4):
        for alpha in ALPHAS:
            answer = slate(api, f"counts-{epsilon}", 10, alpha)
            wanted = [100 * answer["diversity"], 100 * answer["liking"]]
            assert shown[f"epsilon {epsilon}", alpha] == pytest.approx(wanted, abs=1.0)  # "over 99" is short of 100


def test_whoever_looks_at_slates_alone_needs_no_delegate(visit: Visit) -> None:
    visit.context.add_init_script("indexedDB.open = () => { throw new DOMException('', 'UnknownError'); }")
    page = visit.context.new_page()
    page.goto(f"{visit.address}/#slates")
    expect(page.get_by_test_id("slates-list").locator("li")).to_have_count(10)
