"""Many offers and many bills in one transaction: each is what it would be alone."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidMessage, LedgerUnavailable
from tacit.ledger import Settlement
from tacit.ledger.stores.sqlite import SqliteStore
from tacit.messages.private_selection import Engagement, Impression, Offer, OfferRequest, Rule
from tacit.server import Listings, PrivateSelection
from tests.releases import message_of

ITEMS, BIDS, PPM = ["a", "b", "c", "d"], [2_000_000, 1_500_000, 4_000_000, 500_000], [50_000, 80_000, 20_000, 100_000]
ASKED = [OfferRequest("", consent=bool(number % 2)) for number in range(40)]
NOW = 20_000 * 86_400 * 10**6
Shop = Callable[..., PrivateSelection]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    def make(**given: Any) -> PrivateSelection:
        usual = {"rng": np.random.default_rng(1), "clock": lambda: NOW, "explore": 0.3, "policy": "rr", "gamma": 1.0}
        target = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
        return PrivateSelection(Listings(ITEMS, BIDS, PPM), target, **{**usual, **given})  # type: ignore[arg-type]

    return make


def made(offers: list[Offer | None]) -> list[Offer]:
    found = [offer for offer in offers if offer is not None]
    assert len(found) == len(offers)
    return found


def without_tokens(offers: list[Offer]) -> list[Offer]:
    assert len({offer.token for offer in offers}) == len(offers)
    return [replace(offer, token="00" * 16) for offer in offers]


def written(shop: PrivateSelection) -> list[Any]:
    with sqlite3.connect(shop.ledger._store.path) as connection:  # type: ignore[attr-defined]
        rows = connection.execute("SELECT content, expires FROM offers").fetchall()
    return sorted((json.loads(content), expires) for content, expires in rows)


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one for each transaction that writes."""
    counted: list[int] = []
    real = SqliteStore.write

    def counting(self: SqliteStore, *given: Any, **more: Any) -> Any:
        counted.append(1)
        return real(self, *given, **more)

    monkeypatch.setattr(SqliteStore, "write", counting)
    return counted


def test_many_offers_are_those_that_would_be_made_one_by_one(shop: Shop) -> None:
    together, alone = shop(), shop()
    many, single = made(together.offer_many(ASKED)), made([alone.offer(one) for one in ASKED])
    assert without_tokens(many) == without_tokens(single)
    assert written(together) == written(alone)
    rules = {offer.policy.rule for offer in many}
    assert rules == {Rule.PUBLIC, Rule.RR, Rule.UNIFORM}  # with consent and without, explored and not


def test_texts_are_contexts_without_consent_and_no_fill_has_its_place(shop: Shop) -> None:
    server = shop(reserve_micros=10**9)
    assert server.offer_many(["", OfferRequest("", consent=True)]) == [None, None]
    assert written(server) == []
    (offer,) = made(shop().offer_many([""]))
    assert offer.policy.rule is Rule.PUBLIC
    assert shop().offer_many([]) == []


def test_all_of_them_are_one_transaction(shop: Shop, transactions: list[int]) -> None:
    server = shop()
    offers = made(server.offer_many(ASKED[:1]))  # the first one tidies up, too
    transactions.clear()
    offers += made(server.offer_many(ASKED))
    assert len(transactions) == 1
    transactions.clear()
    shown = [message_of(Impression, offer.token, offer.items[:1]) for offer in offers]
    assert server.bill_many(shown) == [Settlement.OK] * 41
    assert len(transactions) == 1


def test_many_bills_are_those_that_would_be_made_one_by_one(shop: Shop) -> None:
    together, alone = shop(explore=0.0), shop(explore=0.0)
    outcomes = []
    for server in (together, alone):
        one, two, three = made(server.offer_many(ASKED[:3]))
        shown = [
            (one.token, "a"),
            (one.token, "a"),
            (two.token, "b"),
            (two.token, "c"),
            ("00" * 16, "a"),
            (three.token, "nothing"),
        ]
        bills = [message_of(Impression, token, (item,)) for token, item in shown]
        outcomes.append(server.bill_many(bills) if server is together else [server.bill(bill) for bill in bills])
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:5] == [
        Settlement.OK, Settlement.DUPLICATE, Settlement.OK, Settlement.CONFLICT, Settlement.UNKNOWN,
    ]  # fmt: skip
    assert list(together.ledger.items()) == list(alone.ledger.items())


def test_what_was_explored_is_noted_offer_by_offer(shop: Shop) -> None:
    server = shop(explore=1.0, click_epsilon=2.0)
    seen: list[tuple[str, str]] = []
    for name in ("offered", "shown", "engaged"):
        real = getattr(server.exploration, name)
        setattr(
            server.exploration,
            name,
            lambda one, *more, name=name, real=real: (seen.append((name, one.token)), real(one, *more))[1],
        )
    offers = made(server.offer_many(ASKED))
    explored = [offer.token for offer, asked in zip(offers, ASKED, strict=True) if asked.consent]
    assert seen == [("offered", token) for token in explored]  # none of those who did not consent
    seen.clear()
    server.bill_many([message_of(Impression, offer.token, offer.items[:1]) for offer in offers[:4]])
    server.bill_many([message_of(Impression, offers[0].token, offers[0].items[:1])])  # again: counted once
    assert seen == [("shown", offer.token) for offer in offers[:4]]
    assert server.engage(message_of(Engagement, offers[1].token, 1, 2.0)) is Settlement.OK
    assert seen[-1] == ("engaged", offers[1].token)


def test_offers_that_cannot_be_written_are_not_made_and_not_noted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    server = shop(explore=1.0)

    def full(*_: object) -> None:
        raise LedgerUnavailable("the disk is full.")

    monkeypatch.setattr(server.ledger, "offer_many", full)
    monkeypatch.setattr(server.exploration, "offered", lambda *_: pytest.fail("it was noted"))
    with pytest.raises(LedgerUnavailable):
        server.offer_many(ASKED)


def test_one_that_is_no_message_is_refused_before_anything_is_written(shop: Shop) -> None:
    server = shop(contexts=["sport"])
    for wrong in (OfferRequest("news"), 7):
        with pytest.raises(InvalidMessage):
            server.offer_many([OfferRequest("sport"), wrong])  # type: ignore[list-item]
    assert written(server) == []
    with pytest.raises(InvalidMessage):
        server.bill_many([message_of(Impression, "00" * 16, ("a",)), ("00" * 16, "a")])  # type: ignore[list-item]
