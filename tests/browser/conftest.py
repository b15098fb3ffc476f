"""A real server on real films, a real browser, and visits to the page of which every byte is kept."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tacit.messages.store import Store
from tacit.service.versions import STORE, current
from tests.browser import published
from tests.browser.recorder import Recorder
from tests.browser.visiting import Visit, lasting, launched, through
from tests.integration.service.serving import Service

expect.set_options(timeout=10_000)  # milliseconds: other work may go on beside the tests


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    words = [sys.executable, published.__file__, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "models"


@pytest.fixture(scope="session")
def store(models: Path) -> Store:
    """What is served, as Python reads it."""
    return Store.load(current(models).folder / STORE)


@pytest.fixture(scope="session")
def server(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all tests: they look at what changed while they ran. Offers always leave a choice to the device."""
    service = Service(tmp_path_factory.mktemp("server"), models=models, open_counts=True, policy="rr", offered=12)
    service.start()
    yield service
    service.kill()


@pytest.fixture(scope="session")
def api(server: Service) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright) as browser:
        yield browser


Visiting = Callable[..., Visit]


@contextmanager
def _visits(request: pytest.FixtureRequest) -> Iterator[Visiting]:
    server: Service = request.getfixturevalue("server")
    made: list[Visit] = []
    with ExitStack() as stack:

        def make(folder: Path | None = None, **options: Any) -> Visit:
            recorder = stack.enter_context(Recorder(server.port))
            options = {"reduced_motion": "reduce", **options}  # nobody has to wait for a page that glides
            if folder is None:
                browser: Browser = request.getfixturevalue("chromium")
                context = browser.new_context(proxy=through(recorder), **options)
            else:
                driver: Playwright = request.getfixturevalue("playwright")
                context = lasting(driver.chromium, folder, recorder, **options)
            made.append(Visit(context, recorder, server.address))
            return made[-1]

        yield make
        for visit in made:
            visit.end()


@pytest.fixture
def visiting(request: pytest.FixtureRequest) -> Iterator[Visiting]:
    """Makes visits by different people. With ``folder`` the profile lies there, and is found again by the next visit."""
    with _visits(request) as make:
        yield make


@pytest.fixture(scope="module")
def visiting_once(request: pytest.FixtureRequest) -> Iterator[Visiting]:
    """The same, for visits that several tests look at afterwards."""
    with _visits(request) as make:
        yield make


@pytest.fixture
def visit(visiting: Visiting) -> Visit:
    return visiting()
