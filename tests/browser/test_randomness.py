"""The browser's cryptographic generator is the only source of chance: nothing else is asked, and all noise is made from it."""

from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.visiting import Visit

RATINGS = {"Alien (1979)": 5, "Amelie (Fabuleux destin d'Amélie Poulain, Le) (2001)": 2}
FORBIDDEN = """
    Math.random = () => { throw new Error("Math.random was asked"); };
    crypto.randomUUID = () => { throw new Error("randomUUID was asked"); };
"""
# A generator that anybody can repeat, in the place of the browser's: what is drawn from it protects nobody.
REPEATABLE = """
    let state = %d;
    crypto.getRandomValues = (bytes) => {
        for (let place = 0; place < bytes.length; place += 1) {
            state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
            bytes[place] = state >>> 11;
        }
        return bytes;
    };
"""


def test_everything_works_where_the_insecure_generator_is_out_of_order(visit: Visit) -> None:
    visit.context.add_init_script(FORBIDDEN)
    screen = visit.open().rate_all(RATINGS)
    screen.ask("0.1")
    screen.go("choose").consent()
    screen.show()
    screen.go("slates")
    screen["slates-drawn"].click()
    expect(screen["slates-status"]).to_contain_text("drawn by chance")
    screen.go("recommend").page.get_by_text("Be another person (demonstration)").click()
    screen["another-person"].click()
    screen.ask("0.1")


def test_a_signal_is_made_of_nothing_but_ratings_and_the_secure_generator(visiting: Visiting) -> None:
    def signal(seed: int | None) -> bytes:
        visit = visiting()
        if seed is not None:
            visit.context.add_init_script(REPEATABLE % seed)
        return visit.open().rate_all(RATINGS).ask("0.1")

    first = signal(7)
    assert signal(7) == first
    assert signal(8) != first
    assert signal(None) != first
