"""The page as a person uses it: types, clicks, reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import Locator, Page, expect

if TYPE_CHECKING:
    from tests.browser.visiting import Visit

STOPS = ("0.05", "0.1", "0.2", "0.3", "0.5", "1", "2")  # of the slider of eta
MULTI_SELECTION = "/v1/multi-selection"
OFFERS, IMPRESSIONS, COUNTS = (f"/v1/private-selection/{name}" for name in ("offers", "impressions", "counts"))


class Screen:
    """One tab of a browser with the page in it."""

    RATINGS = "tacit-page.ratings.tacit"  # where the page remembers those of the first person

    def __init__(self, page: Page, visit: Visit) -> None:
        self.page, self.visit = page, visit

    def __getitem__(self, name: str) -> Locator:
        return self.page.get_by_test_id(name)

    def ready(self) -> Screen:
        """Waits until all that a page fetches by itself is there."""
        expect(self["search"]).to_be_enabled()
        expect(self.page.locator("#suggestions-from")).not_to_be_empty()
        expect(self["model-version"]).to_be_attached()
        expect(self["spent"].first).to_be_attached()
        return self

    def reload(self) -> Screen:
        self.page.reload()
        return self.ready()

    # recommend

    def rate(self, title: str, stars: int) -> None:
        """Finds a film by its title and gives it stars."""
        self["search"].click()
        self.page.keyboard.insert_text(title)  # as who pastes it
        self["option"].get_by_text(title, exact=True).click()
        self._star(stars)

    def rate_suggested(self, place: int, stars: int) -> str:
        """Gives stars to a well-known film; returns its title."""
        title = self["suggestion"].nth(place).inner_text()
        self["suggestion"].nth(place).click()
        self._star(stars)
        return title

    def rate_all(self, ratings: dict[str, int]) -> Screen:
        for title, stars in ratings.items():
            self.rate(title, stars)
        return self

    def _star(self, stars: int) -> None:
        named = "1 star" if stars == 1 else f"{stars} stars"
        self["stars"].get_by_role("radio", name=named, exact=True).check()

    def remembered(self) -> list[list[float]]:
        """Items and stars, as this browser keeps them."""
        found: list[list[float]] = self.page.evaluate("key => JSON.parse(localStorage[key] ?? '[]')", self.RATINGS)
        return found

    def choose_eta(self, eta: str) -> None:
        self["eta"].focus()
        self.page.keyboard.press("Home")
        for _ in range(STOPS.index(eta)):
            self.page.keyboard.press("ArrowRight")
        expect(self["eta-shown"]).to_have_text(eta)

    def ask(self, eta: str | None = None) -> bytes:
        """Asks for a recommendation; returns the bytes that left."""
        if eta is not None:
            self.choose_eta(eta)
        with self.page.expect_response(f"**{MULTI_SELECTION}"):
            self["ask"].click()
        self.require_idle("ask")
        expect(self["status"]).to_contain_text("Picked here")
        return self.visit.posted(MULTI_SELECTION)[-1]

    @property
    def shown_bytes(self) -> bytes:
        """The bytes that left, as the page says."""
        lines = (self["bytes-hex"].text_content() or "").split("\n")
        return bytes.fromhex(" ".join(line[4:] for line in lines))

    def require_spent(self, spent: str, charges: int) -> None:
        """The ledger of signals says so."""
        ledger = self["ledger"]
        expect(ledger.get_by_test_id("spent")).to_have_text(spent)
        found = ledger.get_by_test_id("charges")
        if charges == 0:
            expect(found).to_have_count(0)
        else:
            expect(found.locator("li")).to_have_count(charges)

    @property
    def picked(self) -> str:
        return self["pick"].locator(".film").inner_text()

    @property
    def slate(self) -> list[tuple[str, float]]:
        """Titles and estimates."""
        return [
            (_own_text(item.locator(".title")), float(item.locator(".number").inner_text()))
            for item in self["slate-item"].all()
        ]

    def require_idle(self, name: str) -> None:
        """Waits until a button has done what it does."""
        expect(self[name]).to_have_attribute("aria-busy", "false")

    # choose

    def go(self, tab: str) -> Screen:
        self[f"tab-{tab}"].click()
        expect(self.page.locator(f"#{tab}")).to_be_visible()
        return self

    def consent(self) -> None:
        self["consent"].check()
        expect(self["show-status"]).to_have_text("Your profile may be used for the choice.")

    def show(self, outcome: str = "ok") -> str:
        """Has something shown and reported; returns its title."""
        before = len(self.visit.posted(OFFERS))
        self["show"].click()
        self.require_idle("show")
        expect(self["outcome"]).to_have_attribute("data-outcome", outcome)
        assert len(self.visit.posted(OFFERS)) == before + 1
        return self["shown-item"].locator(".film").inner_text()


def _own_text(element: Locator) -> str:
    """The text of an element without that of the tags in it."""
    return re.sub(r"\s*picked here$", "", element.inner_text()).strip()
