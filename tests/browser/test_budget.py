"""A budget that is spent is spent: other noise is another charge, what does not fit tells nothing, the next month is a new one."""

from datetime import UTC, datetime

from playwright.sync_api import expect

from tacit.messages.multi_selection import Request, Signal
from tests.browser.conftest import Visiting
from tests.browser.screen import Screen
from tests.browser.visiting import Visit

NOVEMBER, DECEMBER, JANUARY = (datetime(*day, tzinfo=UTC) for day in ((2026, 11, 20), (2026, 12, 2), (2027, 1, 31)))
LIKES_SPACE = {"Alien (1979)": 5, "WALL·E (2008)": 4}
LIKES_CRIME = {"Godfather, The (1972)": 5, "White Heat (1949)": 1, "Heat (1995)": 4}


def signal_of(left: bytes) -> Signal:
    return Request.from_bytes(left).signal


def test_another_noise_level_is_another_signal_and_another_charge(visit: Visit) -> None:
    screen = visit.open().rate_all(LIKES_SPACE)
    one, other = signal_of(screen.ask("0.1")), signal_of(screen.ask("0.2"))
    screen.require_spent("15", charges=2)
    assert one.eta != other.eta
    assert (one.steps != other.steps).any()
    assert signal_of(screen.ask("0.1")).to_bytes() == one.to_bytes()  # which is still the first one
    screen.require_spent("15", charges=2)


def test_beyond_the_budget_a_signal_leaves_that_is_the_same_for_everybody(visiting: Visiting) -> None:
    left = []
    for ratings in (LIKES_SPACE, LIKES_CRIME):
        screen = visiting().open().rate_all(ratings)
        paid = screen.ask("0.1")
        screen.choose_eta("0.05")
        expect(screen["next-charge"]).to_contain_text("does not fit any more")
        left.append(screen.ask())
        expect(screen["fallback"]).to_have_attribute("data-from", "nothing")
        screen.require_spent("10", charges=1)
        signal = signal_of(left[-1])
        assert signal.empty
        assert not signal.steps.any()
        assert len(left[-1]) == len(paid)  # no eavesdropper tells it from another by its size
        assert screen.picked in [title for title, _ in screen.slate]  # a pick there is nevertheless
    assert left[0] == left[1]


def test_whoever_forgets_everything_is_given_no_budget_back(visit: Visit) -> None:
    screen = visit.open().rate_all(LIKES_SPACE)
    first = screen.ask("0.05")
    screen["forget"].click()
    expect(screen["rated-list"].locator("li")).to_have_count(0)
    screen.reload()
    expect(screen["rated-list"].locator("li")).to_have_count(0)
    screen.require_spent("20", charges=1)
    assert screen.rate_all(LIKES_CRIME).ask("0.05") == first
    screen.ask("2")
    expect(screen["fallback"]).to_have_attribute("data-from", "nothing")


def test_the_next_month_has_a_new_signal_and_an_old_one_is_sent_where_the_new_is_not_paid(visit: Visit) -> None:
    visit.context.clock.set_fixed_time(NOVEMBER)
    screen = visit.open().rate_all(LIKES_SPACE)
    november = screen.ask("0.05")
    screen.require_spent("20", charges=1)

    _move_to(screen, DECEMBER)
    screen.require_spent("0", charges=0)
    fresh = screen.ask("0.1")
    screen.require_spent("10", charges=1)
    assert screen.ask("0.05") == november  # 20 do not fit beside 10: what was told once is told again
    expect(screen["fallback"]).to_have_attribute("data-from", "older")

    _move_to(screen, JANUARY)
    again = screen.ask("0.1")
    assert again != fresh
    assert len(again) == len(fresh)
    screen.require_spent("10", charges=1)


def test_a_clock_that_goes_back_gives_no_budget_back(visit: Visit) -> None:
    visit.context.clock.set_fixed_time(DECEMBER)
    screen = visit.open()
    screen.ask("0.05")
    _move_to(screen, NOVEMBER)
    screen.require_spent("20", charges=1)
    screen.ask("0.1")
    expect(screen["fallback"]).to_have_attribute("data-from", "nothing")


def _move_to(screen: Screen, when: datetime) -> None:
    screen.visit.context.clock.set_fixed_time(when)
    screen.reload()
