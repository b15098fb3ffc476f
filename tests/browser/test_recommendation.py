"""Multi-selection from the first film to the pick, by clicks; and what a device in Python makes of the same bytes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from playwright.sync_api import expect

from tacit.device.multi_selection import best, codes_of, estimator, mechanism_of, one_rating
from tacit.messages.multi_selection import Reply, Request
from tacit.messages.store import Store
from tacit.models.features import GenreProfile
from tests.browser.private_things import Private
from tests.browser.recorder import Fate
from tests.browser.screen import MULTI_SELECTION
from tests.browser.visiting import Visit

FOUND = {"Toy Story (1995)": 5, "Inception (2010)": 2, "Alien (1979)": 4}


def test_five_ratings_a_noise_level_and_a_click_give_a_pick_from_a_slate(visit: Visit, store: Store) -> None:
    screen = visit.open()
    screen.rate_all(FOUND)
    suggested = {screen.rate_suggested(place, stars): stars for place, stars in ((0, 3), (4, 5))}
    person = Private(FOUND | suggested, store)
    assert len(person.ratings) == 5
    expect(screen["rated-list"].locator("li")).to_have_count(5)
    assert not set(suggested) & set(screen["suggestion"].all_inner_texts())  # what is rated is suggested no more

    screen.require_spent("0", charges=0)
    left = screen.ask("0.2")

    assert len(left) == 168 == 16 + 4 * 38
    assert screen.shown_bytes == left  # what the page says left is what left
    expect(screen["byte-count"]).to_have_text("168 bytes")
    request = Request.from_bytes(left)
    assert (request.k, request.t, request.signal.eta) == (5, 1, Fraction(1, 5))
    assert not request.signal.simulated
    assert not request.signal.empty

    reply = answer_to(visit)
    codes = codes_of(reply, store.items)
    estimates = estimator(reply, codes, 38, None)(person.features)
    assert [title for title, _ in screen.slate] == [store.items.title(code) for code in codes]
    assert [shown for _, shown in screen.slate] == pytest.approx(estimates, abs=6e-4)  # three decimals
    assert screen.picked == store.items.title(codes[best(estimates, 1)[0]])

    screen.require_spent("5", charges=1)  # 1/eta
    expect(screen["ledger"].get_by_test_id("left")).to_have_text("15")


def test_a_rating_that_may_change_sides_is_read_out_and_counts_in_the_verdict(visit: Visit, store: Store) -> None:
    """Here one film more or less is weakly hidden, and a like that becomes a dislike is not."""
    assert isinstance(store.space, GenreProfile)
    sizes = store.space.flags.sum(axis=1)
    narrow, wide = np.flatnonzero(sizes == 1)[:2].tolist(), int(np.flatnonzero(sizes == 5)[0])
    codes, values = np.array([narrow[0], wide, narrow[1]]), np.array([5.0, 4.0, 1.0])
    screen = visit.open().rate_all(dict(zip(map(store.items.title, codes.tolist()), map(int, values), strict=True)))
    screen.choose_eta("1")
    one = one_rating(mechanism_of(store.space, Fraction(1)).guarantee, store.space, codes, values)
    assert one.removed is not None
    assert one.moved is not None
    assert max(one.added.epsilon, one.removed.epsilon) < 3.0 < one.moved.epsilon
    line = screen["reading"].locator("li", has_text="One film on the other side")
    expect(line).to_contain_text("not hidden")
    expect(line).to_contain_text(f"(epsilon {math.ceil(one.moved.epsilon * 100 - 1e-2) / 100:g})")
    expect(screen["reading"]).to_contain_text("Single ratings may show")


def test_the_dump_names_every_byte_that_left(visit: Visit) -> None:
    screen = visit.open()
    left = screen.ask()
    groups = screen["bytes"].locator("code").all_inner_texts()
    assert bytes.fromhex(" ".join(groups)) == left
    assert len(groups) == 7 + 38
    expect(screen["traffic-sum"]).to_contain_text("168 bytes sent")


def test_what_is_typed_is_searched_in_the_page_alone(visit: Visit) -> None:
    screen = visit.open()
    before = len(visit.sent)
    screen["search"].click()
    screen.page.keyboard.type("amelie")  # without the accent
    expect(screen["option"].first).to_contain_text("Amélie Poulain")
    screen.page.keyboard.press("Escape")
    expect(screen["found"]).to_be_hidden()
    screen["search"].fill("no such film at all")
    expect(screen["found"]).to_have_text("No title like that.")
    assert len(visit.sent) == before


def test_a_server_that_does_not_answer_gets_the_same_bytes_when_it_is_back(visit: Visit) -> None:
    visit.expected.append("Failed to load resource")
    screen = visit.open().rate_all(FOUND)
    visit.recorder.fate = lambda sent: Fate.LOST
    screen["ask"].click()
    expect(screen["problem"]).to_contain_text("The server does not answer.")
    screen.require_spent("10", charges=1)  # the server may well have it
    visit.recorder.fate = lambda sent: Fate.ANSWERED
    with screen.page.expect_response(f"**{MULTI_SELECTION}"):
        screen["problem"].get_by_role("button", name="Try again").click()
    expect(screen["pick"]).to_be_visible()
    screen.require_spent("10", charges=1)
    first, second = visit.posted(MULTI_SELECTION)
    assert first == second


def answer_to(visit: Visit) -> Reply:
    [answer] = [one.answered for one in visit.sent if one.path == MULTI_SELECTION]
    return Reply.from_bytes(answer)
