"""Visits to the page: a real browser, a profile of its own for each visit, and all that left it."""

import re
import shutil
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, BrowserType, Error, Playwright

from tests.browser.recorder import Recorder, Sent
from tests.browser.screen import Screen

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_NOWHERE = "http://127.0.0.1:9"  # refused
# A browser speaks for itself too: for updates, accounts, and what forms there are on a page. None of that is the page's doing.
_NOT_ITSELF = [
    "--disable-background-networking",
    "--disable-component-update",
    f"--component-updater=url-source={_NOWHERE}",
    "--disable-sync",
    f"--gaia-url={_NOWHERE}",
    "--disable-features=AutofillServerCommunication,HttpsUpgrades,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints",
]
_WORDS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", *_NOT_ITSELF]


def executable() -> str:
    """The system's Chromium: the tests bring no browser of their own."""
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    if found is None:
        raise AssertionError("The browser tests need Chromium, and there is none: install the package chromium.")
    return found


def launched(playwright: Playwright) -> Browser:
    """Outside of visits it reaches nothing."""
    return playwright.chromium.launch(executable_path=executable(), args=_WORDS, proxy={"server": _NOWHERE})


class Visit:
    """One person's browser. Its ``recorder`` has every byte that left it."""

    def __init__(self, context: BrowserContext, recorder: Recorder, address: str) -> None:
        self.context, self.recorder, self.address = context, recorder, address
        self.seen: Counter[tuple[str, str, bytes]] = Counter()  # requests, as the browser tells of them
        self.complaints: list[str] = []
        self.expected: list[str] = []  # patterns of complaints that belong to the test
        self._closed, self._before_end = False, 0
        self._untold: list[Sent] = []
        context.set_default_timeout(10_000)
        context.on("close", self._note_end)
        context.on("request", lambda one: self.seen.update([(one.method, one.url, one.post_data_buffer or b"")]))
        context.on("console", lambda one: one.type == "error" and self.complaints.append(one.text))
        context.on("weberror", lambda one: self.complaints.append(str(one.error)))

    def _note_end(self, _: BrowserContext) -> None:
        self._closed = True

    def open(self, tab: str = "") -> Screen:
        """The page in a new tab of the browser, ready to be used."""
        screen = Screen(self.context.new_page(), self)
        screen.page.goto(f"{self.address}/{tab and '#'}{tab}")
        return screen.ready()

    @property
    def sent(self) -> list[Sent]:
        return list(self.recorder.sent)

    def posted(self, path: str) -> list[bytes]:
        """The bodies that left to this path, in order."""
        return [one.body for one in self.sent if (one.method, one.path) == ("POST", path)]

    def close(self) -> None:
        """Closes the browser; what lies on the disk stays."""
        if self._closed:
            return
        self._before_end = len(self.recorder.sent)
        for page in self.context.pages:
            page.evaluate("0")  # what the browser has told of until now has arrived when this is answered
        self.context.close()

    def kill(self, screen: Screen) -> None:
        """Closes one tab, whatever it is doing. What leaves at this very moment the browser may not come to tell of."""
        screen.page.evaluate("0")  # what it has told of until now has arrived
        before = len(self.recorder.sent)
        screen.page.close()
        time.sleep(0.2)  # what had left is here
        self._untold += self.recorder.sent[before:]

    def crash(self) -> None:
        """The browser dies at once, all processes of it. For profiles on the disk."""
        with suppress(Error):  # there is nobody left to answer
            self.context.new_cdp_session(self.context.pages[0]).send("Browser.crash")
        self._closed = True

    def end(self) -> None:
        """Closes the profile. What holds of every visit: nothing left but to the server, nothing left unseen, no complaint."""
        self.close()
        told = [one for one in self.sent[: self._before_end] if not any(one is other for other in self._untold)]
        left = Counter((one.method, one.url, one.body) for one in told)
        for what, found in {
            "it left for somebody else": [one.head[0] for one in self.sent if one.foreign],
            "it left and is no request": self.recorder.strange,
            "it left without the browser's telling": [*(left - self.seen)],
            "the browser complains": [
                one for one in self.complaints if not any(re.search(some, one) for some in self.expected)
            ],
        }.items():
            assert not found, f"{what}: {found}"


def lasting(kind: BrowserType, folder: Path, recorder: Recorder, **options: Any) -> BrowserContext:
    """A profile on the disk, which outlasts the browser."""
    return kind.launch_persistent_context(
        folder, executable_path=executable(), args=_WORDS, proxy=through(recorder), **options
    )


def through(recorder: Recorder) -> Any:
    """The setting by which a browser reaches everything through the recorder, this machine too."""
    return {"server": recorder.address, "bypass": "<-loopback>"}
