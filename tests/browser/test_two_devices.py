"""The device in the browser and the one in Python are one device: the same bytes and ratings give the same numbers."""

from fractions import Fraction
from typing import Any

import httpx
import numpy as np
import pytest

from tacit.device.multi_selection import best, codes_of, estimator
from tacit.messages.multi_selection import Reply, Request, Signal
from tacit.messages.store import Store
from tacit.models.multi_selection import PrincipalComponents
from tests.browser.conftest import Visiting
from tests.browser.screen import MULTI_SELECTION, Screen
from tests.releases import message_of

PEOPLE = 12
TO_READ = """
async ({ catalogue, replies, people }) => {
    const { Catalogue, Reply, Request, featuresOf, pick } = await import("/web/delegate.js");
    const space = Catalogue.fromJSON(catalogue);
    return people.map((ratings) => {
        const features = featuresOf(space, new Map(ratings));
        const read = (content) => pick(Reply.fromBytes(Uint8Array.from(content)), features, 3);
        return {
            features: Array.from(features),
            picks: replies.map(read).map(({ picked, estimates }) => ({ picked: picked.map(Number), estimates })),
        };
    });
}
"""


@pytest.fixture(scope="module")
def screen(visiting_once: Visiting) -> Screen:
    return visiting_once().open()


@pytest.fixture(scope="module")
def people(store: Store) -> list[list[tuple[int, float]]]:
    """Codes and ratings; the first person has none."""
    rng = np.random.default_rng(11)
    sizes = [0, 1, *rng.integers(2, 60, PEOPLE - 2).tolist()]
    found = []
    for size in sizes:
        codes = rng.choice(len(store.items), size, replace=False)
        found.append(list(zip(codes.tolist(), rng.integers(1, 6, size).astype(float).tolist(), strict=True)))
    return found


@pytest.fixture(scope="module")
def replies(api: httpx.Client, store: Store) -> list[bytes]:
    """From the server, for made-up signals; and in the other forms that a server may choose."""
    rng = np.random.default_rng(12)
    found = []
    for k in (1, 5, 20):
        signal = message_of(Signal, rng.integers(-(1 << 20), 1 << 20, 38), 20, Fraction(1, 10))
        sent = Request(signal, k).to_bytes()
        answer = api.post(MULTI_SELECTION, content=sent, headers={"Content-Type": "application/vnd.tacit"})
        found.append(answer.raise_for_status().content)
    served = Reply.from_bytes(found[-1])
    found.append(Reply.of(served.items, 20, served.model, 38, half=True).to_bytes())
    basis = PrincipalComponents(np.linalg.qr(rng.normal(size=(39 + 20, 12)))[0], 20)
    found.append(Reply.of(served.items, 20, basis, 38, components=15).to_bytes())
    found.append(Reply.of(served.items[:3], 5, "none", 38).to_bytes())
    return found


def test_features_picks_and_estimates_are_those_of_a_device_in_python(
    screen: Screen, api: httpx.Client, store: Store, people: list[list[tuple[int, float]]], replies: list[bytes]
) -> None:
    given = {
        "catalogue": api.get("/v1/catalogue").raise_for_status().json(),
        "replies": [list(one) for one in replies],
        "people": people,
    }
    found: list[dict[str, Any]] = screen.page.evaluate(TO_READ, given)
    for ratings, here in zip(people, found, strict=True):
        codes = np.array([code for code, _ in ratings], dtype=np.int64)
        features = store.space.of(codes, np.array([value for _, value in ratings]))
        assert here["features"] == features.tolist()  # to the last bit
        for content, read in zip(replies, here["picks"], strict=True):
            reply = Reply.from_bytes(content)
            estimates = estimator(reply, codes_of(reply, store.items), 38, None)(features)
            assert read["estimates"] == pytest.approx(estimates.tolist(), abs=1e-6)
            assert _alike(read["picked"], [reply.items[place] for place in best(estimates, 3)], reply, estimates)


def test_requests_are_read_and_written_alike(screen: Screen) -> None:
    rng = np.random.default_rng(13)
    sent = [
        Request(message_of(Signal, rng.integers(-(1 << 30), 1 << 30, 38), 20, Fraction(eta)), k, t).to_bytes()
        for eta, k, t in (("0.1", 5, 1), ("0.05", 255, 255), ("10", 1, 1))
    ]
    sent.append(Request(Signal.nothing(38, "0.2"), 5, 1).to_bytes())
    again = screen.page.evaluate(
        """async (all) => {
            const { Request } = await import("/web/delegate.js");
            return all.map((one) => Array.from(Request.fromBytes(Uint8Array.from(one)).toBytes()));
        }""",
        [list(one) for one in sent],
    )
    assert [bytes(one) for one in again] == sent


def _alike(picked: list[int], wanted: list[int], reply: Reply, estimates: np.ndarray[Any, Any]) -> bool:
    """The same items in the same order; but for estimates that differ in their last bits alone, where order is chance."""
    values = dict(zip(reply.items, estimates.tolist(), strict=True))
    return len(picked) == len(wanted) and all(
        one == other or abs(values[one] - values[other]) < 1e-12 for one, other in zip(picked, wanted, strict=True)
    )
