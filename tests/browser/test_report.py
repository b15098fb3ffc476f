"""The report in a real browser: it asks for nothing but itself, in light and dark, and on a small screen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tacit.audit import suite
from tacit.evaluation.report import Report, write_html
from tests.unit.evaluation.told import demonstration, result

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LINE = "getComputedStyle(document.querySelector('figure svg [style*=\"stroke: var(--series-1,\"]')).stroke"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("report") / "report.html"
    write_html(Report("A report", (demonstration(),), (result(),), suite.run(["randomised-response"])), place)
    return place.as_uri()


class Opened:
    """A page, what it asked for, and what it complained of."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.asked, self.complaints = page, [], []  # type: ignore[var-annotated]
        page.on("request", lambda one: self.asked.append(one.url))
        page.on("console", lambda one: self.complaints.append(one.text))
        page.on("pageerror", lambda one: self.complaints.append(str(one)))
        page.goto(address)


@pytest.fixture(params=["light", "dark"])
def opened(request: pytest.FixtureRequest, chromium: Browser, address: str) -> Iterator[Opened]:
    context = chromium.new_context(color_scheme=request.param, viewport={"width": 1200, "height": 900})
    yield Opened(context.new_page(), address)
    context.close()


def test_it_asks_for_itself_only_and_complains_of_nothing(opened: Opened, address: str) -> None:
    opened.page.wait_for_load_state("networkidle")
    assert opened.asked == [address]
    assert opened.complaints == []


def test_a_page_that_asked_for_more_would_be_stopped(opened: Opened, address: str) -> None:
    opened.page.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/pixel.png'}))")
    opened.page.wait_for_timeout(300)
    assert [one for one in opened.complaints if "Content Security Policy" in one]


def test_text_has_contrast(opened: Opened) -> None:
    found = opened.page.evaluate(CONTRAST)
    assert len(found) > 50
    assert [one for one in found if one["ratio"] < 4.5] == []


def test_the_button_turns_light_to_dark_and_back_lines_included(opened: Opened) -> None:
    def seen() -> tuple[str, str]:
        return opened.page.evaluate(BACKGROUND), opened.page.evaluate(LINE)

    first = seen()
    opened.page.click("#theme")
    second = seen()
    assert all(one != other for one, other in zip(first, second, strict=True))
    opened.page.click("#theme")
    assert seen() == first


def test_what_is_folded_opens(opened: Opened) -> None:
    summary = opened.page.locator("section > details:not([open]) > summary").first
    folded = summary.element_handle().evaluate_handle("one => one.parentElement")
    assert not folded.evaluate("one => one.open")
    summary.click()
    assert folded.evaluate("one => one.open")


def test_a_small_screen_scrolls_down_and_not_aside(chromium: Browser, address: str) -> None:
    context = chromium.new_context(viewport={"width": 380, "height": 800})
    page = context.new_page()
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    context.close()
