"""Whole conversations of a device with a service over HTTP, on both databases: slates, offers, reports, exact counts."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pytest

import tacit
from tacit.messages.multi_selection import Reply, Request, Signal
from tacit.messages.private_selection import Offer
from tacit.messages.store import Store
from tests.integration.service.conftest import PRICES, Running
from tests.integration.service.talking import (
    BINARY,
    IMPRESSIONS,
    JSON,
    MULTI_SELECTION,
    OFFERS,
    counted,
    impression,
    in_ledger,
    offer_from,
    outcome_of,
    request_of,
    require_problem,
)
from tests.releases import message_of

SCORER = "/v1/private-selection/scorer"
LIKED = {1: 5.0, 2: 5.0, 3: 1.0, 7: 4.5, 11: 0.5}


@pytest.fixture
def client(counting: Running) -> Iterator[httpx.Client]:
    with counting.client() as client:
        yield client


@pytest.fixture
def device(tmp_path: Path, store: Store) -> Iterator[tacit.Device]:
    budget = tacit.Budget(epsilon=100, per="month")
    with tacit.Device(tmp_path / "me.db", store, budget=budget, scorer=store.scorer) as device:
        device.rate(LIKED)
        yield device


def test_a_slate_comes_in_both_forms_and_the_device_picks_the_same_from_both(
    client: httpx.Client, device: tacit.Device, store: Store
) -> None:
    request = device.request(k=8, t=2, eta="0.05")
    binary = client.post(MULTI_SELECTION, content=request.to_bytes(), headers={"Content-Type": BINARY})
    json = client.post(MULTI_SELECTION, json=request.to_json())
    assert (binary.status_code, binary.headers["content-type"]) == (200, BINARY)
    assert (json.status_code, json.headers["content-type"]) == (200, JSON)
    replies = [Reply.from_bytes(binary.content), Reply.from_json(json.json())]
    assert replies[0] == replies[1]
    assert len(replies[0].items) == 8
    picked = [device.pick(reply, t=2) for reply in replies]
    assert picked[0] == picked[1]
    assert len(set(picked[0])) == 2
    assert set(picked[0]) <= set(replies[0].items)


def test_the_form_of_the_answer_is_the_one_that_is_accepted(client: httpx.Client) -> None:
    request = request_of(1)
    as_json = client.post(MULTI_SELECTION, content=request.to_bytes(), headers={"Content-Type": BINARY, "Accept": JSON})
    as_bytes = client.post(MULTI_SELECTION, json=request.to_json(), headers={"Accept": f"{BINARY}, {JSON};q=0.5"})
    assert Reply.from_json(as_json.json()) == Reply.from_bytes(as_bytes.content)
    refused = client.post(MULTI_SELECTION, json=request.to_json(), headers={"Accept": "text/html"})
    require_problem(refused, 406, "not-acceptable")


def test_a_signal_that_tells_nothing_is_answered_and_a_simulated_one_refused(client: httpx.Client) -> None:
    nothing = Request(Signal.nothing(38, "0.1"), 4)
    answer = client.post(MULTI_SELECTION, json=nothing.to_json())
    assert len(Reply.from_json(answer.json()).items) == 4
    replayed = Request(message_of(Signal, np.ones(38, dtype=np.int32), 20, nothing.signal.eta, simulated=True), 4)
    refused = client.post(MULTI_SELECTION, json=replayed.to_json())
    assert "operating system" in require_problem(refused, 422, "invalid-message")["detail"]


def test_what_a_device_chose_and_showed_is_counted_exactly_and_stands_in_the_statement(
    client: httpx.Client, counting: Running, device: tacit.Device
) -> None:
    device.consent()
    before = counted(client, counting)
    shown = []
    for _ in range(7):
        offer = Offer.from_json(client.post(OFFERS, json=device.offer_request().to_json()).json())
        choice = device.choose(offer)
        assert choice is not None
        assert set(choice.items) <= set(offer.items)
        report = device.shown(choice)
        answer = client.post(IMPRESSIONS, json=report.to_json()).json()
        assert answer == {"outcome": "ok"}
        device.settled(report, answer["outcome"])
        shown += choice.items
    assert device.pending() == []
    after = counted(client, counting)
    assert after - before == {item: shown.count(item) for item in shown}
    assert in_ledger(counting.database) == after
    today = datetime.now(UTC).date().isoformat()
    days = {"first_day": "2020-01-01", "last_day": today}
    statement = client.get("/v1/statements", params=days, headers=counting.operator).json()
    assert {one["item"]: one["impressions"] for one in statement["items"]} == after
    assert statement["impressions"] == after.total()
    assert {one["item"]: int(one["micros"]) for one in statement["items"]} == {
        item: PRICES[item] * times for item, times in after.items()
    }
    assert int(statement["micros"]) == sum(PRICES[item] * times for item, times in after.items())


def test_the_map_of_quality_names_every_item_that_is_offered_and_gives_its_public_score_on_average(
    client: httpx.Client, store: Store
) -> None:
    """It comes in parts, of which a device fetches all, whatever it will choose."""
    first = client.get(SCORER)
    parts = int(first.headers["tacit-parts"])
    answers = [client.get(SCORER, params={"part": part}, headers={"Accept": BINARY}) for part in range(parts)]
    replies = [Reply.from_bytes(answer.content) for answer in answers]
    assert Reply.from_json(first.json()) == replies[0]
    offer = offer_from(client)
    assert {str(item) for reply in replies for item in reply.items} == set(offer.items) == set(PRICES)
    people = np.column_stack([np.ones(len(store.look_alikes)), store.look_alikes])
    for reply in replies:
        qualities = (people @ reply.numbers.T.astype(np.float64)).mean(axis=0)
        quality = dict(zip(map(str, reply.items), qualities.tolist(), strict=True))
        for one in offer.candidates:
            assert one.bid_micros / 1e6 * quality[one.item] == pytest.approx(one.public_score, rel=1e-3)
    require_problem(client.get(SCORER, params={"part": parts}), 404, "not-found")


def test_a_randomised_click_is_kept_once_and_only_for_what_was_counted(client: httpx.Client, counting: Running) -> None:
    offer = offer_from(client)
    bit = {"version": 1, "token": offer.token, "bit": 1, "epsilon": 1.0}

    def clicked(**other: object) -> str:
        answer = client.post("/v1/private-selection/engagements", json={**bit, **other})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["outcome"])

    assert clicked() == "unknown"  # nothing was shown yet
    assert outcome_of(client, offer.token, offer.items[0]) == "ok"
    assert clicked() == "ok"
    assert clicked() == "duplicate"
    assert clicked(bit=0) == "conflict"
    item = {"item": offer.items[0]}
    clicks = client.get("/v1/private-selection/clicks", params=item, headers=counting.operator).json()
    assert clicks["received"] >= 1
    again = offer_from(client)
    assert outcome_of(client, again.token, again.items[0]) == "ok"
    assert clicked(token=again.token, epsilon=3.0) == "conflict"  # flipped otherwise than the estimate takes it to be


def test_what_was_reported_is_told_in_the_same_words_as_in_the_ledger(client: httpx.Client, counting: Running) -> None:
    """Titles are those of the catalogue; money is text, for a reader that rounds numbers."""
    offer = offer_from(client)
    client.post(IMPRESSIONS, json=impression(offer.token, offer.items[1])).raise_for_status()
    found = client.get("/v1/private-selection/counts", headers=counting.operator).json()["items"]
    (one,) = [one for one in found if one["item"] == offer.items[1]]
    assert list(one) == ["item", "impressions", "micros", "title"]  # in this order, as ever
    assert one["title"] == f"Synthetic {offer.items[1]}"
    assert (type(one["impressions"]), one["micros"]) == (int, str(PRICES[one["item"]] * one["impressions"]))


def test_the_client_has_the_same_conversation_in_both_forms(
    client: httpx.Client, counting: Running, tmp_path: Path
) -> None:
    """Everything that crosses is made and read by the library: catalogue, signal, slate, scorer, offer, report."""
    before = counted(client, counting)
    shown: list[str] = []
    picked = []
    for form in ("binary", "json"):
        budget = tacit.Budget(epsilon=100, per="month")
        with tacit.Client(counting.service.address, tmp_path / f"{form}.db", form=form, budget=budget) as me:
            me.rate(LIKED)
            picked.append(me.recommend(k=6, t=2, eta="0.05"))
            me.consent()
            for _ in range(3):
                choice = me.choose()
                assert choice is not None
                assert me.shown(choice) == "ok"
                assert me.shown(choice) in ("ok", "duplicate")
                shown += choice.items
            assert me.flush() == 0
    assert [len(one) for one in picked] == [2, 2]
    assert counted(client, counting) - before == {item: shown.count(item) for item in shown}
