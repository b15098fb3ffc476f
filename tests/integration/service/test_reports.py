"""Reports of what was shown, over HTTP, on both databases: each is counted once, at its offer's price, or not at all."""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tacit.ledger import ImpressionLedger, Offered
from tacit.ledger.chain import SECOND
from tests.integration.service.conftest import PRICES, Running, Serve, listings_in
from tests.integration.service.talking import (
    COUNTS,
    IMPRESSIONS,
    counted,
    impression,
    in_ledger,
    offer_from,
    outcome_of,
    require_problem,
)

THREADS = 16
DAY = 86_400


@pytest.fixture
def client(counting: Running) -> Iterator[httpx.Client]:
    with counting.client() as client:
        yield client


def test_a_report_that_is_replayed_is_a_duplicate_and_counts_nothing(client: httpx.Client, counting: Running) -> None:
    offer = offer_from(client)
    before = counted(client, counting)
    outcomes = [outcome_of(client, offer.token, "74") for _ in range(5)]
    assert outcomes == ["ok"] + 4 * ["duplicate"]
    assert counted(client, counting) - before == {"74": 1}


def test_a_report_of_other_items_than_were_offered_or_reported_is_a_conflict(
    client: httpx.Client, counting: Running
) -> None:
    offer = offer_from(client)
    before = counted(client, counting)
    assert outcome_of(client, offer.token, "1") == "conflict"  # an item of the catalogue that was not offered
    assert outcome_of(client, offer.token, "31", "5") == "conflict"  # there is one slot
    assert counted(client, counting) == before
    assert outcome_of(client, offer.token, "31") == "ok"  # what was refused has not used the token up
    assert outcome_of(client, offer.token, "5") == "conflict"
    assert outcome_of(client, offer.token, "31") == "duplicate"
    assert counted(client, counting) - before == {"31": 1}


def test_a_token_that_was_never_offered_is_unknown(client: httpx.Client, counting: Running) -> None:
    before = counted(client, counting)
    assert outcome_of(client, os.urandom(16).hex(), "31") == "unknown"
    assert counted(client, counting) == before


def test_an_offer_without_consent_has_the_same_prices_and_costs_no_epsilon(
    client: httpx.Client, counting: Running
) -> None:
    consented, refused = offer_from(client, consent=1), offer_from(client, consent=0)
    assert consented.candidates == refused.candidates
    assert (refused.policy.rule.value, refused.policy.epsilon) == ("public", 0.0)
    assert consented.policy.epsilon == 1.0
    before = micros(client, counting)
    for offer in (consented, refused):
        assert outcome_of(client, offer.token, "12") == "ok"
    assert micros(client, counting) - before == {"12": 2 * PRICES["12"]}


def micros(client: httpx.Client, counting: Running) -> Counter[str]:
    found = client.get(COUNTS, headers=counting.operator).json()["items"]
    return Counter({one["item"]: int(one["micros"]) for one in found})


def test_the_same_report_from_many_threads_at_once_is_counted_once(client: httpx.Client, counting: Running) -> None:
    before = counted(client, counting)
    tokens = [offer_from(client).token for _ in range(6)]
    together = threading.Barrier(THREADS)

    def report(_: int) -> list[str]:
        with counting.client() as own:
            found = []
            for token in tokens:
                together.wait(30)
                found.append(outcome_of(own, token, "99"))
            return found

    with ThreadPoolExecutor(THREADS) as threads:
        outcomes = list(threads.map(report, range(THREADS)))
    for place in range(len(tokens)):
        assert Counter(one[place] for one in outcomes) == {"ok": 1, "duplicate": THREADS - 1}
    assert counted(client, counting) - before == {"99": len(tokens)}
    assert in_ledger(counting.database) == counted(client, counting)


def test_of_different_reports_for_one_token_at_once_one_is_counted_and_all_others_conflict(
    client: httpx.Client, counting: Running
) -> None:
    before = counted(client, counting)
    token = offer_from(client).token
    together = threading.Barrier(len(PRICES))

    def report(item: str) -> tuple[str, str]:
        with counting.client() as own:
            together.wait(30)
            return item, outcome_of(own, token, item)

    with ThreadPoolExecutor(len(PRICES)) as threads:
        outcomes = list(threads.map(report, PRICES))
    (winner,) = [item for item, outcome in outcomes if outcome == "ok"]
    assert Counter(outcome for _, outcome in outcomes) == {"ok": 1, "conflict": len(PRICES) - 1}
    assert counted(client, counting) - before == {winner: 1}


def test_reports_that_are_no_messages_are_refused_and_named_by_their_path(client: httpx.Client) -> None:
    token = offer_from(client).token
    for content, path in (
        (impression(token), "$.items"),
        (impression(token, "31", "31"), "once"),
        (impression("zz" + token[2:], "31"), "$.token"),
        ({**impression(token, "31"), "price": 0}, "no further members"),
        ({**impression(token, "31"), "version": 2}, "$.version"),
        ({**impression(token, "31"), "items": "31"}, "$.items"),
        ({**impression(token, "31"), "items": [31]}, "$.items"),
    ):
        answer = client.post(IMPRESSIONS, json=content)
        problem = require_problem(answer, 422, "invalid-message")
        assert path in problem["detail"]
        assert token not in answer.text
    assert outcome_of(client, token, "31") == "ok"


def test_a_report_more_than_a_day_after_its_offer_has_expired_is_too_late(
    serve: Serve, database: str, tmp_path: Path
) -> None:
    """No service waits that long: the offers were made by a ledger whose clock stood three days ago."""
    then = int(time.time()) - 3 * DAY
    late, in_time = os.urandom(16).hex(), os.urandom(16).hex()
    with ImpressionLedger.create(database, clock=lambda: then * SECOND) as past:
        past.offer(Offered(late, (("31", 5),), "", then + DAY))
        past.offer(Offered(in_time, (("31", 7),), "", then + 3 * DAY - 100))
    service = serve(database=database, listings=listings_in(tmp_path), policy="rr").start()
    with service.client() as client:
        assert outcome_of(client, late, "31") == "expired"
        assert outcome_of(client, in_time, "31") == "ok"  # expired, and reported within the day after
        assert outcome_of(client, late, "31") == "expired"
    service.stop()
    with ImpressionLedger.open(database) as ledger:
        total = ledger.item("31")
        assert (total.impressions, total.micros) == (1, 7)
