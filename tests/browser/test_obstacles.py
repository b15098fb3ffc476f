"""Where the ledger cannot be kept, or the page cannot be trusted, nothing private is read or sent, and the page says what to do."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visiting
from tests.browser.recorder import INSECURE
from tests.browser.screen import MULTI_SELECTION
from tests.browser.visiting import Visit

CONTROLS = ("search", "eta", "ask", "consent", "show")
RATINGS = {"Alien (1979)": 5}


def require_stopped(visit: Visit, page: Page, says: str) -> None:
    """The page says why, nothing can be clicked, and what left is the same for everybody."""
    expect(page.get_by_test_id("trouble")).to_contain_text(says)
    for name in CONTROLS:
        expect(page.get_by_test_id(name)).to_be_disabled()
    assert {one.method for one in visit.sent} == {"GET"}
    assert {one.path for one in visit.sent if not one.path.startswith("/web/")} <= {"/", "/v1/model", "/v1/catalogue"}


def test_a_browser_that_blocks_storage_is_told_why_nothing_works(visiting: Visiting, tmp_path: Path) -> None:
    settings = tmp_path / "profile" / "Default" / "Preferences"
    settings.parent.mkdir(parents=True)
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}  # "block all cookies": all storage too
    settings.write_text(json.dumps(blocked))
    visit = visiting(folder=tmp_path / "profile")
    page = visit.context.new_page()
    page.goto(visit.address)
    require_stopped(visit, page, "This browser does not let the page store anything.")


WITHOUT = {
    "there is none": "delete globalThis.indexedDB",
    "it cannot be opened": "indexedDB.open = () => { throw new DOMException('', 'UnknownError'); }",
}


@pytest.mark.parametrize("why", WITHOUT)
def test_a_browser_without_a_database_is_told_why_nothing_works(visit: Visit, why: str) -> None:
    visit.context.add_init_script(WITHOUT[why])
    page = visit.context.new_page()
    page.goto(visit.address)
    require_stopped(visit, page, "This browser does not let the page store anything.")


def test_an_address_that_is_not_secure_is_refused(visit: Visit) -> None:
    visit.expected.append("Cross-Origin-Opener-Policy header has been ignored")  # for the same reason
    page = visit.context.new_page()
    page.goto(visit.address.replace("127.0.0.1", INSECURE))
    require_stopped(visit, page, "This address is not a secure one.")
    assert not [one for one in visit.sent if one.path.startswith("/v1/")]


def test_a_browser_without_secure_noise_sends_nothing(visit: Visit) -> None:
    visit.context.add_init_script("crypto.getRandomValues = () => { throw new Error('no entropy'); }")
    screen = visit.open().rate_all(RATINGS)
    screen["ask"].click()
    expect(screen["problem"]).to_contain_text("The browser gives no secure random numbers.")
    assert visit.posted(MULTI_SELECTION) == []


FULL = """
    for (const name of ["add", "put"]) {
        const usual = IDBObjectStore.prototype[name];
        IDBObjectStore.prototype[name] = function (...given) {
            if (globalThis.full) throw new DOMException("", "QuotaExceededError");
            return usual.apply(this, given);
        };
    }
"""


def test_a_disk_that_is_full_stops_before_anything_leaves(visit: Visit) -> None:
    visit.context.add_init_script(FULL)
    screen = visit.open().rate_all(RATINGS)
    screen.page.evaluate("full = true")
    screen["ask"].click()
    expect(screen["results"].get_by_test_id("problem")).to_contain_text("Nothing leaves without being charged first.")
    assert visit.posted(MULTI_SELECTION) == []
    screen.page.evaluate("full = false")
    screen["problem"].get_by_role("button", name="Try again").click()
    expect(screen["pick"]).to_be_visible()
    screen.require_spent("10", charges=1)


def test_the_switch_of_consent_shows_what_is_written_and_a_profile_is_wiped_in_any_case(visit: Visit) -> None:
    visit.context.add_init_script(FULL)
    screen = visit.open().rate_all(RATINGS).go("choose")
    screen.page.evaluate("full = true")
    screen["consent"].click()
    expect(screen["shown"].get_by_test_id("problem")).to_be_visible()
    expect(screen["consent"]).not_to_be_checked()
    screen.page.evaluate("full = false")
    screen.consent()
    screen.page.evaluate("full = true")
    screen["consent"].click()
    expect(screen["shown"].get_by_test_id("problem")).to_be_visible()
    expect(screen["consent"]).to_be_checked()
    assert screen.page.evaluate("JSON.stringify(localStorage)") == "{}"


def test_a_ledger_that_is_deleted_under_the_page_stops_it(visit: Visit) -> None:
    screen = visit.open().rate_all(RATINGS)
    first = screen.ask("0.1")
    browser = visit.context.new_cdp_session(screen.page)
    browser.send("Storage.clearDataForOrigin", {"origin": visit.address, "storageTypes": "all"})
    screen.choose_eta("0.2")
    screen["ask"].click()
    expect(screen["results"].get_by_test_id("problem")).to_contain_text("Load the page again")
    assert visit.posted(MULTI_SELECTION) == [first]
    screen.reload().require_spent("0", charges=0)  # who deletes the ledger has none: a device cannot know


def test_a_ledger_that_was_made_under_other_terms_is_not_opened(visit: Visit) -> None:
    page = visit.open().page
    page.evaluate(
        """async () => {
            const { Delegate } = await import("/web/delegate.js");
            await new Promise((done) => (indexedDB.deleteDatabase("tacit").onsuccess = done));
            (await Delegate.open({ budget: { epsilon: 1, per: "day" }, refresh: "day" })).close();
        }"""
    )
    page.reload()
    expect(page.get_by_test_id("problem")).to_contain_text("made under other terms")
    expect(page.get_by_test_id("ask")).to_be_disabled()
    page.get_by_role("button", name="Open a fresh ledger (demonstration)").click()
    expect(page.get_by_test_id("ask")).to_be_enabled()
    assert visit.posted(MULTI_SELECTION) == []
