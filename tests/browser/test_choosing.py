"""Private selection by clicks: what is shown is told exactly and counted once, and nothing else is told."""

import json
from collections import Counter

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.recorder import Fate, Sent
from tests.browser.screen import COUNTS, IMPRESSIONS, OFFERS, Screen
from tests.browser.visiting import Visit
from tests.integration.service.serving import until

RATINGS = {"Alien (1979)": 5, "Amelie (Fabuleux destin d'Amélie Poulain, Le) (2001)": 2}
GONE = "Failed to load resource"  # what a browser says of a network that fails


def counted(api: httpx.Client) -> Counter[str]:
    """How often each item was shown, as the server says."""
    return Counter({one["item"]: one["impressions"] for one in api.get(COUNTS).raise_for_status().json()["items"]})


def told(visit: Visit) -> dict[str, object]:
    """The last report that left."""
    found: dict[str, object] = json.loads(visit.posted(IMPRESSIONS)[-1])
    return found


def offered(visit: Visit) -> dict[str, list[dict[str, str]]]:
    """The last offer that came."""
    found: dict[str, list[dict[str, str]]] = json.loads([one for one in visit.sent if one.path == OFFERS][-1].answered)
    return found


def on_the_way(fate: Fate, path: str = IMPRESSIONS):
    return lambda sent: fate if sent.path == path else Fate.ANSWERED


@pytest.fixture
def consenting(visit: Visit) -> Screen:
    screen = visit.open().rate_all(RATINGS).go("choose")
    screen.consent()
    return screen


def test_without_consent_the_publicly_best_is_shown_to_everybody(visiting: Visiting) -> None:
    shown = []
    for ratings in (RATINGS, {"Heat (1995)": 1}):
        visit = visiting()
        screen = visit.open().rate_all(ratings).go("choose")
        shown.append(screen.show())
        expect(screen["policy"]).to_contain_text("nothing private was read")
        assert visit.posted(OFFERS) == [b'{"version":1,"context":"","consent":0}']
        assert told(visit)["items"] == [offered(visit)["candidates"][0]["item"]]
        expect(screen["selection-ledger"].get_by_test_id("spent")).to_have_text("0")
    assert shown[0] == shown[1]


def test_with_consent_the_server_counts_what_was_shown_once_and_exactly(consenting: Screen, api: httpx.Client) -> None:
    visit = consenting.visit
    before = counted(api)
    shown = Counter()
    for charges in (1, 2, 3):
        consenting.show()
        report = told(visit)
        assert set(report) == {"version", "token", "items"}
        shown.update(report["items"])
        assert counted(api) - before == shown
        expect(consenting["selection-ledger"].get_by_test_id("spent")).to_have_text(str(charges))  # epsilon 1 each
    consenting["report-again"].click()
    expect(consenting["outcome"]).to_have_attribute("data-outcome", "duplicate")
    assert counted(api) - before == shown
    assert visit.posted(IMPRESSIONS)[-1] == visit.posted(IMPRESSIONS)[-2]
    total = sum(counted(api).values())
    expect(consenting["counts-total"]).to_have_text(f"{total} impression{'s'[: total > 1]}")


def test_a_report_that_does_not_arrive_waits_and_is_counted_once(consenting: Screen, api: httpx.Client) -> None:
    visit = consenting.visit
    visit.expected.append(GONE)
    before = counted(api)
    visit.recorder.fate = on_the_way(Fate.CUT)
    consenting.show(outcome="pending")
    assert counted(api) == before
    consenting["flush"].click()
    expect(consenting["show-status"]).to_have_text("1 report still waiting: the server does not answer.")

    visit.recorder.fate = on_the_way(Fate.ANSWERED)
    consenting["flush"].click()
    expect(consenting["show-status"]).to_have_text("All reports have arrived.")
    expect(consenting["outcome"]).to_have_attribute("data-outcome", "ok")
    expect(consenting["flush"]).to_be_hidden()
    assert counted(api) - before == Counter(told(visit)["items"])
    assert len(set(visit.posted(IMPRESSIONS))) == 1  # the same bytes each time


def test_a_report_whose_answer_is_lost_is_counted_once(consenting: Screen, api: httpx.Client) -> None:
    visit = consenting.visit
    visit.expected.append(GONE)
    before = counted(api)
    visit.recorder.fate = on_the_way(Fate.LOST)
    consenting.show(outcome="pending")
    assert counted(api) - before == Counter(told(visit)["items"])  # the server has it, the device cannot know
    visit.recorder.fate = on_the_way(Fate.ANSWERED)
    consenting["flush"].click()
    expect(consenting["outcome"]).to_have_attribute("data-outcome", "duplicate")
    assert counted(api) - before == Counter(told(visit)["items"])


@pytest.mark.parametrize("fate", [Fate.CUT, Fate.HELD])
def test_a_tab_that_is_killed_between_showing_and_answer_reports_exactly_once(
    consenting: Screen, api: httpx.Client, fate: Fate
) -> None:
    visit = consenting.visit
    visit.expected.append(GONE)
    before = counted(api)
    visit.recorder.fate = on_the_way(fate)
    consenting["show"].click()
    until(lambda: bool(_reports(visit)) and _reports(visit)[-1].over.is_set(), 10.0)
    visit.kill(consenting)

    visit.recorder.fate = on_the_way(Fate.ANSWERED)
    visit.open()  # whatever waits is sent by a page that opens
    until(lambda: len(_reports(visit)) == 2 and _reports(visit)[-1].over.is_set(), 10.0)
    assert json.loads(_reports(visit)[-1].answered)["outcome"] == ("ok" if fate is Fate.CUT else "duplicate")
    assert counted(api) - before == Counter(told(visit)["items"])
    assert len(set(visit.posted(IMPRESSIONS))) == 1
    visit.open("choose")
    assert len(_reports(visit)) == 2  # nothing waits any more


def test_an_offer_that_does_not_come_shows_and_charges_nothing(consenting: Screen) -> None:
    visit = consenting.visit
    visit.expected.append(GONE)
    visit.recorder.fate = on_the_way(Fate.CUT, OFFERS)
    consenting["show"].click()
    expect(consenting["shown"].get_by_test_id("problem")).to_contain_text("The server does not answer.")
    expect(consenting["selection-ledger"].get_by_test_id("spent")).to_have_text("0")
    assert visit.posted(IMPRESSIONS) == []


def test_withdrawing_consent_wipes_the_profile_and_reads_nothing_private(consenting: Screen) -> None:
    visit = consenting.visit
    consenting.show()
    consenting["consent"].uncheck()
    expect(consenting["show-status"]).to_have_text("Your profile is no longer used, and was wiped.")
    kept = consenting.page.evaluate("JSON.stringify(localStorage)")
    assert kept == "{}"
    consenting.show()
    assert json.loads(visit.posted(OFFERS)[-1])["consent"] == 0
    assert told(visit)["items"] == [offered(visit)["candidates"][0]["item"]]
    screen = consenting.reload().go("recommend")
    expect(screen["rated-list"].locator("li")).to_have_count(0)
    expect(screen["consent"]).not_to_be_checked()
    expect(screen.go("choose")["selection-ledger"].get_by_test_id("spent")).to_have_text("1")  # spent is spent


def test_beyond_a_days_budget_the_publicly_best_is_shown(consenting: Screen) -> None:
    visit = consenting.visit
    for _ in range(10):
        consenting.show()
    expect(consenting["selection-ledger"].get_by_test_id("left")).to_have_text("0")
    expect(consenting["selection-ledger"]).to_contain_text("in any 24 hours")
    expect(consenting["selection-ledger"]).to_contain_text("What was spent is back 24 hours after it was charged.")
    consenting.show()
    expect(consenting["policy"]).to_contain_text("over what is left today")
    assert told(visit)["items"] == [offered(visit)["candidates"][0]["item"]]
    assert json.loads(visit.posted(OFFERS)[-1])["consent"] == 1  # that the budget is spent is not told
    expect(consenting["selection-ledger"].get_by_test_id("spent")).to_have_text("10")


def _reports(visit: Visit) -> list[Sent]:
    return [one for one in visit.sent if one.path == IMPRESSIONS]
