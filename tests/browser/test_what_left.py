"""A profile never leaves, in any form, by any request: in a whole visit there are public paths and known messages, nothing else."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

import pytest
from playwright.sync_api import expect

from tacit.messages.multi_selection import Request
from tacit.messages.store import Store
from tests.browser.conftest import Visiting
from tests.browser.private_things import Private
from tests.browser.recorder import Sent
from tests.browser.screen import COUNTS, IMPRESSIONS, MULTI_SELECTION, OFFERS, Screen
from tests.browser.visiting import Visit
from tests.integration.service.serving import until

# Films with long ids that no offer has, and genres in elevenths, thirteenths, and so on: no chance finds them.
ONE = {
    "Inception (2010)": 5,
    "WALL·E (2008)": 4,
    "Toy Story 3 (2010)": 5,
    "Cowboys & Aliens (2011)": 2,
    "Monsters vs. Aliens (2009)": 1,
}
OTHER = {
    "Spirited Away (Sen to Chihiro no kamikakushi) (2001)": 2,
    "White Heat (1949)": 5,
    "Godfather: Part III, The (1990)": 3,
    "Alien Nation (1988)": 4,
    "Tokyo Godfathers (2003)": 4,
}
ALPHAS = ("0", "0.5", "1", "3", "10", "30")
CONSENTED = b'{"version":1,"context":"","consent":1}'


@dataclass(frozen=True)
class Visited:
    """A visit that is over, and how many of its requests belong to the loading of the page."""

    visit: Visit
    loading: int

    @property
    def sent(self) -> list[Sent]:
        return self.visit.sent


def whole_visit(visit: Visit, ratings: dict[str, int]) -> Visited:
    """Rates, asks, chooses, looks at slates."""
    screen = visit.open()
    loading = len(visit.sent)
    screen.rate_all(ratings)
    screen.ask("0.1")
    screen.go("choose").consent()
    screen.show()
    screen["report-again"].click()
    expect(screen["outcome"]).to_have_attribute("data-outcome", "duplicate")
    screen.go("slates")
    expect(screen["slates-plot"].locator("tbody tr")).to_have_count(2 * len(ALPHAS))
    return Visited(visit, loading)


@pytest.fixture(scope="module")
def one(visiting_once: Visiting) -> Visited:
    return whole_visit(visiting_once(), ONE)


@pytest.fixture(scope="module")
def other(visiting_once: Visiting) -> Visited:
    return whole_visit(visiting_once(), OTHER)


@pytest.fixture(scope="module")
def person(store: Store) -> Private:
    return Private(ONE, store)


def test_no_rated_film_and_no_feature_leaves_in_any_form(one: Visited, other: Visited, person: Private) -> None:
    assert len(one.visit.posted(MULTI_SELECTION)) == 1
    assert [found for sent in one.sent for found in person.found_in(sent.raw)] == []
    someone = Private(OTHER, person.store)
    assert [found for sent in other.sent for found in someone.found_in(sent.raw)] == []


def test_the_requests_of_a_visit_are_these_and_no_others(one: Visited) -> None:
    page = {f"/web/{file.name}" for file in (files("tacit.service") / "web").iterdir() if file.name != "index.html"}
    slates = {f"/v1/slates/counts-{epsilon}?k=10&alpha={alpha}" for epsilon in "14" for alpha in ALPHAS}
    public = {"/", "/v1/catalogue", "/v1/model", "/v1/slates", "/v1/slates/counts-4?k=30&alpha=30", COUNTS}
    scorer = {"/v1/private-selection/scorer?part=0"}
    assert {sent.path for sent in one.sent if sent.method == "GET"} == page | slates | public | scorer
    assert {sent.method for sent in one.sent} == {"GET", "POST"}  # no preflight, no other way
    assert all(sent.body == b"" for sent in one.sent if sent.method == "GET")
    posts = [sent.path for sent in one.sent if sent.method == "POST"]
    assert posts == [MULTI_SELECTION, OFFERS, IMPRESSIONS, IMPRESSIONS]


def test_every_body_is_one_of_the_known_messages_and_says_nothing_beside(one: Visited) -> None:
    [signal] = one.visit.posted(MULTI_SELECTION)
    assert Request.from_bytes(signal).to_bytes() == signal
    assert one.visit.posted(OFFERS) == [CONSENTED]
    [offer] = [json.loads(sent.answered) for sent in one.sent if sent.path == OFFERS]
    first, second = one.visit.posted(IMPRESSIONS)
    told = json.loads(first)
    assert first == second == json.dumps(told, separators=(",", ":")).encode()
    assert told == {"version": 1, "token": offer["token"], "items": told["items"]}
    assert len(told["items"]) == 1
    assert told["items"][0] in [candidate["item"] for candidate in offer["candidates"]]


def test_no_request_has_a_cookie_a_referrer_or_a_key(one: Visited) -> None:
    for sent in one.sent:
        assert not {"cookie", "referer", "authorization"} & set(sent.headers), sent.path
        assert sent.headers.get("origin", one.visit.address) == one.visit.address
    assert one.visit.context.cookies() == []


def test_two_profiles_with_the_same_clicks_send_the_same_but_for_noise_token_and_item(
    one: Visited, other: Visited
) -> None:
    # scripts are fetched side by side, in any order; what follows from clicks has one
    loaded = [sorted(_plain(some.sent[: some.loading])) for some in (one, other)]
    assert loaded[0] == loaded[1]
    clicked = [[*_plain(some.sent[some.loading :])] for some in (one, other)]
    assert clicked[0] == clicked[1]
    signals = [some.visit.posted(MULTI_SELECTION)[0] for some in (one, other)]
    assert signals[0] != signals[1]
    assert signals[0][:16] == signals[1][:16]


def _plain(requests: list[Sent]) -> Iterator[str]:
    """Requests without what may differ: the steps of a signal, a token, and the one item that is told exactly."""
    for sent in requests:
        text = sent.raw.decode("latin-1")
        if sent.path == MULTI_SELECTION:
            text = text[: len(sent.raw) - len(sent.body) + 16] + f"... {len(sent.body)} bytes"
        if sent.path == IMPRESSIONS:
            text = re.sub(r'"token":"[0-9a-f]{32}","items":\["[0-9]+"\]', '"token":T,"items":[I]', text)
            text = re.sub(r"Content-Length: [0-9]+", "Content-Length: L", text)
        yield text


# What a page that betrays its user might do. Every one of these must be seen, or the tests above would prove nothing.
BETRAYALS = {
    "a title in a query": "fetch('/v1/model?for=' + encodeURIComponent(title))",
    "a title in a body": "fetch('/v1/model', { method: 'POST', body: JSON.stringify({ title }) })",
    "a title in a header": "fetch('/v1/model', { headers: { 'X-For': btoa('for ' + unescape(encodeURIComponent(title))) } })",
    "an id in a path": "fetch('/v1/items/' + id)",
    "an id in a beacon": "navigator.sendBeacon('/v1/model', JSON.stringify([[id, 5]]))",
    "an id in a picture": "new Promise((done) => { const it = new Image(); it.onerror = done; it.src = '/web/' + id + '.png'; })",
    "a feature as text": "fetch('/v1/model?taste=' + feature.toFixed(3))",
    "features as floats": "fetch('/v1/model', { method: 'POST', body: new Float32Array(features) })",
    "features as doubles": "fetch('/v1/model', { method: 'POST', body: new Float64Array(features) })",
    "features without noise": "fetch('/v1/model', { method: 'POST', body: Int32Array.from(features, (one) => one * 2 ** 20) })",
}


@pytest.fixture(scope="module")
def betrayed(visiting_once: Visiting) -> Screen:
    visit = visiting_once()
    visit.expected.append("Failed to load resource")  # the server wants none of it
    return visit.open()


@pytest.mark.parametrize("how", BETRAYALS)
def test_a_page_that_betrays_its_user_is_caught(betrayed: Screen, person: Private, how: str) -> None:
    before = betrayed.visit.sent
    given = {
        "title": next(iter(ONE)),
        "id": person.ids[0],
        "feature": max(person.features),
        "features": person.features.tolist(),
    }
    betrayed.page.evaluate(f"async ({{ title, id, feature, features }}) => {{ await {BETRAYALS[how]}; }}", given)
    until(lambda: len(betrayed.visit.sent) > len(before), 5.0)  # a beacon is not waited for
    [sent] = betrayed.visit.sent[len(before) :]
    assert person.found_in(sent.raw) != []


NOTED = """
globalThis.inits = [];
const original = globalThis.fetch;
globalThis.fetch = (address, init) => { globalThis.inits.push(init ?? {}); return original(address, init); };
"""


def test_the_page_and_the_delegate_ask_without_cookie_referrer_cache_or_redirect(visit: Visit) -> None:
    visit.context.add_init_script(NOTED)
    screen = visit.open()
    screen.ask("0.1")
    screen.go("choose").show()
    screen["report-again"].click()
    bare = {"credentials": "omit", "referrerPolicy": "no-referrer", "cache": "no-store", "redirect": "error"}
    until(lambda: len(visit.posted(IMPRESSIONS)) == 2, 5.0)
    found = screen.page.evaluate("names => inits.map((init) => names.map((name) => init[name]))", list(bare))
    assert len(found) > 8
    assert [dict(zip(bare, one, strict=True)) for one in found] == [bare] * len(found)
