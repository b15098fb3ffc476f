"""Takes the pictures of the documentation, of a real server with real clicks. By hand, where the page has changed:

    pytest tests/browser/pictures.py

They go to docs/pictures, or to the folder that TACIT_PICTURES names. The server is what `tacit serve` gives whoever tries it.
What is drawn is drawn anew: no two pictures have the same noise.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.browser.recorder import Recorder
from tests.browser.screen import Screen
from tests.browser.visiting import Visit, through
from tests.integration.service.serving import Service

FOLDER = Path(os.environ.get("TACIT_PICTURES", Path(__file__).parents[2] / "docs" / "pictures"))
WIDE, PHONE = {"width": 1100, "height": 900}, {"width": 390, "height": 844}
MOST, COLOURS, EDGE = 250_000, 256, 14  # bytes of a picture, colours, pixels around it
RATINGS = {
    "Alien (1979)": 5,
    "Blade Runner (1982)": 5,
    "WALL·E (2008)": 4,
    "Spirited Away (Sen to Chihiro no kamikakushi) (2001)": 4,
    "Amelie (Fabuleux destin d'Amélie Poulain, Le) (2001)": 4,
    "Heat (1995)": 3,
    "Grease (1978)": 2,
    "Titanic (1997)": 1,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """As it is without any setting: it fits the embedded ratings first."""
    service = Service(tmp_path_factory.mktemp("demonstration")).start(seconds=300.0)
    yield service
    service.kill()


@pytest.fixture
def visitor(server: Service, chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Screen]:
    with Recorder(server.port) as recorder:
        options = {
            "viewport": WIDE,
            "reduced_motion": "reduce",
            "device_scale_factor": 1,
            **getattr(request, "param", {}),
        }
        visit = Visit(chromium.new_context(proxy=through(recorder), **options), recorder, server.address)
        yield visit.open().rate_all(RATINGS)
        visit.end()


def keep(screen: Screen, name: str, first: str, last: str) -> None:
    """The page from the top of one element to the bottom of another."""
    page = screen.page
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(0, 0)
    width = page.evaluate("innerWidth")
    page.set_viewport_size({"width": width, "height": page.evaluate("document.documentElement.scrollHeight")})
    top, bottom = (page.locator(one).bounding_box() for one in (first, last))
    assert top is not None
    assert bottom is not None
    end = bottom["y"] + bottom["height"] + EDGE
    start = max(0.0, top["y"] - EDGE)
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / name
    page.screenshot(path=file, clip={"x": 0, "y": start, "width": width, "height": end - start})
    with Image.open(file) as picture:  # a page has few colours: written as such it is a third of the size
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    assert file.stat().st_size < MOST, f"{name} has {file.stat().st_size:,} bytes"


def test_recommend(visitor: Screen) -> None:
    visitor.ask("0.1")
    keep(visitor, "page-recommend.png", "#said", "#results")


def test_choose(visitor: Screen) -> None:
    visitor.go("choose").consent()
    for _ in range(7):
        visitor.show()
    expect(visitor["policy"]).to_contain_text(
        "Chance decided"
    )  # now and then chance leaves a server nothing to choose from
    keep(visitor, "page-choose.png", ".tabs", ".card:has(#counts)")


def test_slates(visitor: Screen) -> None:
    visitor.go("slates")
    expect(visitor["slates-plot"].locator("tbody tr")).to_have_count(18)
    keep(visitor, "page-slates.png", ".tabs", ".card:has(#slates-plot)")


@pytest.mark.parametrize(
    "visitor", [{"viewport": PHONE, "color_scheme": "dark", "is_mobile": True, "has_touch": True}], indirect=True
)
def test_phone(visitor: Screen) -> None:
    visitor.ask("0.2")
    keep(visitor, "page-phone-dark.png", "#said", "#results .card.out")
