"""Offers and bills at the server, on a real ledger: what is offered, what is written, what consent changes."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import InvalidParameter, LedgerUnavailable
from tacit.ledger import Settlement
from tacit.messages.private_selection import Engagement, Impression, OfferRequest, Policy, Rule
from tacit.models.private_selection import Spread, choose
from tacit.server import Listings, PrivateSelection, ranked
from tests.releases import message_of
from tests.unit.server.shops import BIDS, CONSENT, ITEMS, PPM, PRICES, Clock, Shop, offered, stored_offers


def test_what_is_offered_is_billed_at_the_price_of_its_offer(shop: Shop) -> None:
    server = shop(policy="rr", gamma=1.0, reserve_micros=400_000)
    for item, price in PRICES.items():
        offer = offered(server)
        assert offer.items == ("b", "a", "c", "d")
        assert [one.public_score for one in offer.candidates] == [0.12, 0.1, 0.08, 0.05]
        assert [one.bid_micros for one in offer.candidates] == [1_500_000, 2_000_000, 4_000_000, 500_000]
        assert server.bill(message_of(Impression, offer.token, (item,))) is Settlement.OK
        assert server.bill(message_of(Impression, offer.token, (item,))) is Settlement.DUPLICATE
        assert server.ledger.item(item)[1:] == (1, price)
        assert server.bill(message_of(Impression, offer.token, ("b" if item != "b" else "a",))) is Settlement.CONFLICT
    assert server.statement(date(2024, 1, 1), date(2025, 1, 1)).micros == sum(PRICES.values())
    assert server.bill(message_of(Impression, "00" * 16, ("a",))) is Settlement.UNKNOWN


def test_the_offer_is_on_the_disk_before_it_is_returned(shop: Shop) -> None:
    server = shop(policy="rr", gamma=1.0, reserve_micros=400_000)
    offer = offered(server)
    ((content, expires),) = stored_offers(server)
    assert content == ["", 1, [["b", 100_000], ["a", 80_000], ["c", 50_000], ["d", 40_000]]]
    assert expires == offer.expires


def test_an_offer_that_cannot_be_written_is_not_made(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    server = shop()

    def full(*_: object) -> None:
        raise LedgerUnavailable("the disk is full.")

    monkeypatch.setattr(server.ledger, "offer_many", full)
    with pytest.raises(LedgerUnavailable):
        server.offer(CONSENT)


def test_a_price_changes_with_the_listing_but_not_for_offers_already_made(
    shop: Shop, tmp_path: Path, clock: Clock
) -> None:
    server = shop(policy="rr", gamma=1.0)
    offer = offered(server)
    later = PrivateSelection(Listings(ITEMS, [bid // 2 for bid in BIDS], PPM), server.ledger, explore=0.0, clock=clock)
    assert later.bill(message_of(Impression, offer.token, ("b",))) is Settlement.OK
    assert later.ledger.item("b").micros == 100_000


def test_every_token_is_another_one(shop: Shop) -> None:
    server = shop()
    tokens = {offered(server).token for _ in range(50)}
    assert len(tokens) == 50
    assert len(set("".join(tokens))) == 16


def test_auto_offers_the_m_that_the_public_prior_asks_for(shop: Shop) -> None:
    rng = np.random.default_rng(3)
    seen = set()
    for epsilon in (0.3, 1.0, 3.0, 8.0):
        bids, ppm = rng.integers(10**5, 10**6, 12), rng.integers(10**4, 10**5, 12)
        items = [f"item-{i}" for i in range(12)]
        server = shop(Listings(items, bids, ppm), epsilon=epsilon, spread=Spread(0.9))
        offer = offered(server)
        ranking = ranked(bids, ppm)
        order = list(ranking.order)
        expected = choose(np.array(ranking.scores) / 1e12, Spread(0.9), epsilon, bids=bids[order] / 1e6)
        assert offer.items == tuple(items[i] for i in order[: expected.m])
        if expected.m == 1:
            assert offer.policy == Policy(Rule.PUBLIC, 1)
        else:
            assert offer.policy == Policy(Rule.RR, expected.m, epsilon)
        assert offer.policy.cost == (epsilon if expected.m > 1 else 0.0)
        seen.add(expected.m)
    assert len(seen) > 2


def test_prices_do_not_depend_on_how_many_are_offered(shop: Shop) -> None:
    few = shop(Listings(ITEMS, BIDS, PPM), policy=Policy(Rule.RR, 2, 1.0), gamma=1.0, reserve_micros=400_000)
    offer = offered(few)
    assert offer.items == ("b", "a")
    server_prices = dict(stored_offers(few)[0][0][2])  # type: ignore[arg-type]
    assert server_prices == {"b": 100_000, "a": 80_000}  # a pays by c's score, which is not offered


def test_gamma_keeps_what_comes_close_to_the_best_exactly(shop: Shop) -> None:
    """Scores .12 .10 .08 .05: the usual 0.8 of rr keeps all."""
    assert offered(shop(policy="rr")).items == ("b", "a", "c", "d")
    listings = Listings(["x", "y", "z"], [10**6, 10**6, 10**6], [500_000, 150_000, 149_999])
    assert float(1.0 - 0.7) * 500_000 > 150_000  # in floats it would be cut off
    assert offered(shop(listings, policy="rr", gamma=0.7)).items == ("x", "y")
    usual = Listings(["x", "y", "z"], [10**6, 10**6, 10**6], [500_000, 100_000, 99_999])
    assert offered(shop(usual, policy="rr")).items == ("x", "y")
    assert offered(shop(usual, policy=Policy(Rule.PUBLIC, 3))).items == ("x", "y", "z")
    assert offered(shop(listings, policy="rr", gamma=1.0)).items == ("x", "y", "z")
    tiny = Listings(["x", "y", "z"], [11, 4, 3], [1, 1, 1])  # at least 3.3
    assert offered(shop(tiny, policy="rr", gamma=0.7)).items == ("x", "y")
    assert offered(shop(listings, policy="rr", gamma=0.0)).items == ("x",)
    assert offered(shop(listings, policy="rr", gamma=0.0)).policy.cost == 0.0


def test_without_consent_everything_is_the_same_but_the_policy(shop: Shop) -> None:
    server = shop(epsilon=3.0, spread=Spread(1.5))
    asked, not_asked = offered(server), offered(server, OfferRequest("", consent=False))
    assert asked.policy.rule is Rule.RR
    assert not_asked.policy == Policy(Rule.PUBLIC, asked.policy.m)
    assert not_asked.policy.cost == 0.0
    assert not_asked.candidates == asked.candidates
    assert replace(not_asked, policy=asked.policy, token=asked.token) == asked
    first, second = stored_offers(server)
    assert first == second
    assert offered(server, "").policy.rule is Rule.PUBLIC  # a context alone is no consent
    sizes = [len(json.dumps(one.to_json())) for one in (asked, not_asked)]
    assert abs(sizes[0] - sizes[1]) < 5


def test_a_share_of_offers_explores_all_that_is_eligible_and_says_so(shop: Shop) -> None:
    server = shop(policy=Policy(Rule.RR, 2, 1.0), gamma=0.5, explore=0.25)
    offers = [offered(server) for _ in range(200)]
    uniform = [offer for offer in offers if offer.policy.rule is Rule.UNIFORM]
    assert 30 < len(uniform) < 70  # 50 expected, sd 6
    for offer in uniform:
        assert offer.policy == Policy(Rule.UNIFORM, 4)
        assert offer.items == ("b", "a", "c", "d")  # m = k: neither gamma nor m cuts here
        assert offer.policy.cost == 0.0
    assert all(len(offer.items) == 2 for offer in offers if offer.policy.rule is not Rule.UNIFORM)


def test_what_is_explored_ends_with_the_publicly_best_hundred(shop: Shop, tmp_path: Path) -> None:
    many = Listings([f"i{i}" for i in range(300)], [10**6] * 300, [100_000 - i for i in range(300)])
    offer = offered(shop(many, policy="public", explore=1.0))
    assert offer.policy == Policy(Rule.UNIFORM, 100)
    assert offer.items == tuple(f"i{i}" for i in range(100))
    server = shop(many, explore=1.0, most_explored=7)
    offer = offered(server)
    assert offer.policy == Policy(Rule.UNIFORM, 7)
    ((content, _),) = stored_offers(server)
    assert [item for item, _ in content[2]] == [f"i{i}" for i in range(7)]  # type: ignore[attr-defined]
    server.bill(message_of(Impression, offer.token, ("i3",)))
    server.engage(message_of(Engagement, offer.token, 1, 1.0))
    assert [len(row.items) for row in server.exploration.rows] == [7]  # its propensity is 1/7
    assert len(offered(shop(many, explore=1.0, most_explored=10_000)).items) == 300


def test_whoever_wants_the_public_ranking_is_not_explored_unless_told_so(tmp_path: Path) -> None:
    listings = Listings(ITEMS, BIDS, PPM)
    for place, policy in enumerate(("public", Policy(Rule.PUBLIC, 3))):
        assert PrivateSelection(listings, tmp_path / f"{place}.db", policy=policy).explore == 0.0
        assert PrivateSelection(listings, tmp_path / f"{place}.db", policy=policy, explore=0.1).explore == 0.1


def test_whoever_does_not_consent_is_not_explored(shop: Shop) -> None:
    """No click of hers will be reported, so that there would be nothing to learn."""
    server = shop(explore=1.0)
    assert offered(server).policy.rule is Rule.UNIFORM
    assert offered(server, OfferRequest()).policy.rule is Rule.PUBLIC


def test_exploration_is_two_in_a_hundred_unless_told_otherwise(tmp_path: Path) -> None:
    listings = Listings(ITEMS, BIDS, PPM)
    assert PrivateSelection(listings, tmp_path / "a.db").explore == 0.02
    assert PrivateSelection(listings, tmp_path / "b.db", slots=2).explore == 0.0
    with pytest.raises(InvalidParameter, match="slots"):
        PrivateSelection(listings, tmp_path / "c.db", slots=2, explore=0.1)
