"""Ledgers that the delegate of version 0.1.0 kept in a browser: today's goes on in them as that one did; the page opens them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visiting import Visit
from tests.unit.first_edition import recorded

GO_ON = (Path(__file__).parent / "first_edition.js").read_text(encoding="utf-8")
KEPT = recorded("indexeddb.json")
EMPTY = '<link rel="icon" href="data:,">'  # without it a browser asks for an icon
EVENING = datetime(2026, 11, 5, 18, tzinfo=UTC)  # of the day of the last charges


@pytest.fixture
def page(visit: Visit) -> Page:
    """A tab at the server's origin in which nothing has opened a database yet."""
    page = visit.context.new_page()
    empty = f"{visit.address}/empty"
    page.route(empty, lambda route: route.fulfill(body=EMPTY, content_type="text/html"))
    page.goto(empty)
    return page


def go_on(page: Page, sessions: list[Any]) -> list[list[Any]]:
    """Puts all databases back, plays the sessions in them, and returns the answers to each step."""
    answers: list[list[Any]] = json.loads(page.evaluate(GO_ON, {"fixture": json.dumps(KEPT), "sessions": sessions}))
    return answers


@pytest.mark.parametrize("scene", KEPT["scenes"])
def test_the_delegate_answers_as_version_0_1_0_did(page: Page, scene: str) -> None:
    sessions = KEPT["scenes"][scene]
    for session, answers in zip(sessions, go_on(page, sessions), strict=True):
        for step, answer in zip(session["steps"], answers, strict=True):
            assert answer == step["answer"], f"{step['do']} at {step['at']}, {session['opened']}"


def test_the_page_opens_the_ledger_and_charges_to_what_was_spent(page: Page, visit: Visit) -> None:
    before, _, after, *_ = statements("what does not fit is refused, what fits adds up")
    go_on(page, [])
    visit.context.clock.set_fixed_time(EVENING)
    screen = visit.open()
    screen.require_spent(before["spent"], charges=before["charges"])
    expect(screen["consent"]).to_be_checked()
    screen.ask("0.1")  # 10 do not fit
    expect(screen["fallback"]).to_have_attribute("data-from", "nothing")  # this server's films are others
    screen.require_spent(before["spent"], charges=before["charges"])
    screen.ask("1")
    screen.require_spent(after["spent"], charges=after["charges"])


def statements(scene: str) -> list[Any]:
    """What version 0.1.0 said about the budget of signals, in order."""
    steps = KEPT["scenes"][scene][0]["steps"]
    return [step["answer"]["said"] for step in steps if step["do"] == "statement"]
