"""Which offers a server makes: contexts, qualities, slots, expiry; what it keeps of them, and what is refused."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import InvalidMessage, InvalidParameter, LedgerUnavailable, UnknownName
from tacit.ledger import ImpressionLedger, Settlement
from tacit.messages.private_selection import Bounding, Engagement, Impression, OfferRequest, Policy, Rule
from tacit.models.private_selection import Spread, choose
from tacit.server import Listings, PrivateSelection
from tests.releases import message_of
from tests.unit.server.shops import BIDS, CONSENT, DAY, ITEMS, PPM, PRICES, Clock, Shop, offered, stored_offers


@pytest.mark.parametrize(
    "listings", [Listings([], [], []), Listings(ITEMS, [1, 2, 3, 4], PPM)], ids=["empty", "all below the reserve"]
)
def test_nothing_to_offer_is_no_fill_and_nothing_is_written(shop: Shop, listings: Listings) -> None:
    server = shop(listings, reserve_micros=100, explore=1.0)
    assert server.offer(CONSENT) is None
    assert server.offer("") is None
    assert server.view() is None
    assert stored_offers(server) == []


def test_a_single_candidate_costs_nothing(shop: Shop) -> None:
    for policy in ("auto", "rr", "public", Policy(Rule.PF, 5, 1.0, bounding=Bounding.SCALED)):
        offer = offered(shop(Listings(["x"], [5], [10]), policy=policy))
        assert offer.policy == Policy(Rule.PUBLIC, 1)


def test_a_slate_is_an_auction_of_its_own(shop: Shop) -> None:
    server = shop(policy="rr", gamma=1.0, reserve_micros=400_000)
    offer = offered(server, among=["d", "a"])
    assert offer.items == ("a", "d")
    assert stored_offers(server)[0][0][2] == [["a", 50_000], ["d", 40_000]]
    assert server.offer(CONSENT, among=[]) is None
    with pytest.raises(UnknownName):
        server.offer(CONSENT, among=["a", "nothing"])
    for wrong in (["a", "a"], "ab", (item for item in "ab"), [["a"], ["b"]], [1, 2], {"a"}, 7):
        with pytest.raises(InvalidParameter):
            server.offer(CONSENT, among=wrong)


def test_probabilities_may_depend_on_the_context(shop: Shop) -> None:
    def ppm(context: str) -> list[int]:
        return PPM if context == "sport" else list(reversed(PPM))

    server = shop(Listings(ITEMS, BIDS, ppm), policy="rr", gamma=1.0, contexts=["sport", "news"])
    assert offered(server, OfferRequest("sport", True)).items == ("b", "a", "c", "d")
    assert offered(server, OfferRequest("news", True)).items == ("c", "a", "b", "d")
    assert [content[0] for content, _ in stored_offers(server)].count("sport") == 1
    with pytest.raises(InvalidMessage):
        server.offer(OfferRequest("something else", True))


def test_a_context_that_a_device_made_up_is_not_kept(shop: Shop) -> None:
    server = shop()
    offered(server, OfferRequest("user 4711 at home", True))
    assert stored_offers(server)[0][0][0] == ""


def test_a_wrong_row_of_probabilities_is_refused_when_it_comes(shop: Shop) -> None:
    for row in ([1, 2, 3], [1, 2, 3, 10**6 + 1], [1, 2, 3, -1], [0.5] * 4, None):
        server = shop(Listings(ITEMS, BIDS, lambda _, row=row: row), contexts=None)
        with pytest.raises(InvalidParameter):
            server.offer(CONSENT)
        assert stored_offers(server) == []


def test_recommendations_without_money_have_a_quality_and_no_price(shop: Shop) -> None:
    listings = Listings.free(["x", "y", "z"], [3.5, 4.25, -1.0])
    server = shop(listings, spread=Spread(0.8, "normal"), epsilon=4.0)
    offer = offered(server)
    assert offer.items[:2] == ("y", "x")
    assert offer.candidates[0].public_score == 4.25
    assert offer.candidates[0].bid_micros == 1_000_000
    assert server.bill(message_of(Impression, offer.token, ("y",))) is Settlement.OK
    assert server.ledger.item("y")[1:] == (1, 0)
    with pytest.raises(InvalidParameter, match="spread"):
        shop(listings)
    with pytest.raises(InvalidParameter, match="free"):
        shop(listings, spread=Spread(1.0, "normal"), price_rule="first_price")
    with pytest.raises(InvalidParameter, match="gamma"):
        shop(listings, spread=Spread(1.0, "normal"), gamma=0.5)
    assert offered(shop(Listings.free(["x", "y"], [1.0, 4.0]), policy="rr", gamma=0.5)).items == ("y",)


@pytest.mark.parametrize(
    "quality", [[1.0], [1.0, float("nan")], [1.0, float("inf")], [1.0, 1e16], ["a", "b"], [[1, 2]]]
)
def test_qualities_that_are_not_finite_are_refused(quality: list[object]) -> None:
    with pytest.raises(InvalidParameter):
        Listings.free(["x", "y"], quality)  # type: ignore[arg-type]


def test_several_slots_are_peeled_from_more_candidates_than_slots(shop: Shop) -> None:
    listings = Listings([f"i{i}" for i in range(8)], [10**6] * 8, [100_000 - 9_000 * i for i in range(8)])
    offer = offered(shop(listings, slots=2, epsilon=6.0, spread=Spread(1.5)))
    assert offer.policy.rule is Rule.RR
    assert offer.policy.slots == 2
    chances = [(100_000 - 9_000 * i) / 1e6 for i in range(8)]
    shares = [choose(chances, Spread(1.5), epsilon).m for epsilon in (3.0, 6.0)]
    assert offer.policy.m == shares[0] != shares[1]  # each slot is chosen for at its share of epsilon
    assert offer.policy.cost == 6.0
    few = offered(shop(listings, slots=3, epsilon=0.01, spread=Spread(0.1)))
    assert few.policy == Policy(Rule.PUBLIC, 3, slots=3)
    server = shop(listings, slots=2, policy="rr", gamma=1.0)
    offer = offered(server)
    assert server.bill(message_of(Impression, offer.token, ("i3",))) is Settlement.CONFLICT
    assert server.bill(message_of(Impression, offer.token, ("i3", "i0"))) is Settlement.OK
    single = offered(shop(Listings(["x"], [5], [10]), slots=3))
    assert single.policy == Policy(Rule.PUBLIC, 1)


def test_a_given_policy_is_fitted_to_the_candidates_there_are(shop: Shop) -> None:
    clipped = Policy(Rule.PF, 3, 2.0, bounding=Bounding.CLIPPED, width=0.1)
    assert offered(shop(policy=clipped)).policy == clipped
    many = Policy(Rule.RR, 100, 2.0, d=50)
    assert offered(shop(policy=many, gamma=1.0)).policy == Policy(Rule.RR, 4, 2.0, d=2)  # half of them, as before
    assert offered(shop(policy=Policy(Rule.RR, 100, 2.0, d=3), gamma=1.0)).policy == Policy(Rule.RR, 4, 2.0)
    floors = Policy(Rule.ENVELOPE, 4, 2.0, floors=(1 << 29,) * 4)
    assert offered(shop(policy=floors)).policy == floors
    fewer = Policy(Rule.ENVELOPE, 5, 2.0, floors=(1 << 29,) * 5)
    assert offered(shop(policy=fewer)).policy == Policy(Rule.PUBLIC, 4)
    assert offered(shop(policy="public")).policy == Policy(Rule.PUBLIC, 1)


def test_an_offer_expires_at_a_round_time_and_a_day_later_it_is_too_late(shop: Shop, clock: Clock) -> None:
    server = shop(lasts=3600)
    offer, last = offered(server), offered(server)
    seconds = clock.at // 10**6
    assert offer.expires % 3600 == 0
    assert 3600 < offer.expires - seconds <= 7200
    clock.at = (offer.expires + 86_400) * 10**6
    assert server.bill(message_of(Impression, offer.token, ("b",))) is Settlement.OK
    clock.at += 10**6
    assert server.bill(message_of(Impression, last.token, ("b",))) is Settlement.EXPIRED


def test_no_offer_is_made_that_a_clock_ahead_has_made_unbillable(shop: Shop, clock: Clock) -> None:
    server = shop(policy="rr", gamma=1.0)
    clock.at += 30 * DAY  # once, for a moment
    early = offered(server)
    assert server.bill(message_of(Impression, early.token, ("b",))) is Settlement.OK
    clock.at -= 30 * DAY
    with pytest.raises(LedgerUnavailable, match="clock"):
        server.offer(CONSENT)
    clock.at += 30 * DAY
    offer = offered(server)
    assert server.bill(message_of(Impression, offer.token, ("b",))) is Settlement.OK


def test_lapsed_offers_are_deleted_while_others_are_made_once_an_hour(
    shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = shop(lasts=3600)
    calls: list[int] = []
    forget = server.ledger.forget
    monkeypatch.setattr(server.ledger, "forget", lambda: calls.append(forget()))
    offer = offered(server)
    assert calls == [0]
    clock.at += 3600 * 10**6 - 1
    offered(server, "")
    clock.at -= 7200 * 10**6  # back: nothing is late that was not
    offered(server)
    assert calls == [0]
    clock.at += 7200 * 10**6 + 1
    offered(server, "")
    assert calls == [0, 0]
    clock.at = (offer.expires + 86_400) * 10**6 + 1
    assert len(stored_offers(server)) == 4
    offered(server)
    assert calls[2:] == [2]  # the other two were made in the next hour
    assert len(stored_offers(server)) == 3
    assert server.bill(message_of(Impression, offer.token, ("b",))) is Settlement.UNKNOWN


def test_nothing_but_token_item_price_context_and_expiry_is_stored(shop: Shop) -> None:
    server = shop(contexts=["sport"])
    offer = offered(server, OfferRequest("sport", True))
    server.bill(message_of(Impression, offer.token, (offer.items[0],)))
    server.engage(message_of(Engagement, offer.token, 1, 1.0))
    path = server.ledger._store.path  # type: ignore[attr-defined]
    with sqlite3.connect(path) as connection:
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for table in ("offers", "impressions", "engagements")
        }
        everything = " ".join(str(row) for table in columns for row in connection.execute(f"SELECT * FROM {table}"))
    assert columns["offers"] == ["id", "content", "expires", "seal"]
    assert set(columns["engagements"]) <= {"id", "item", "bit", "day", "seal"}
    assert set(columns["impressions"]) <= {"number", "id", "account", "day", "micros", "link"}
    assert offer.token not in everything  # only its digest
    assert "consent" not in everything


def test_a_view_is_the_same_for_a_whole_batch_and_writes_nothing(shop: Shop) -> None:
    server = shop(policy="rr", gamma=1.0, reserve_micros=400_000, explore=1.0)
    view = server.view()
    assert view is not None
    assert view == server.view()
    assert view.policy == Policy(Rule.RR, 4, 1.0)  # a batch is not explored
    assert dict(zip(view.items, view.prices, strict=True)) == PRICES
    assert stored_offers(server) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": 41.0},
        {"policy": "greedily"},
        {"policy": "greedy"},
        {"gamma": -0.1},
        {"gamma": 1.1},
        {"gamma": float("nan")},
        {"price_rule": "noisy_pclick"},
        {"price_rule": "third_price"},
        {"reserve_micros": -1},
        {"reserve_micros": 0.5},
        {"explore": 1.5},
        {"explore": float("nan")},
        {"explore": "x"},
        {"most_explored": 0},
        {"most_explored": 10_001},
        {"policy": Policy(Rule.RR, 3, 2.0), "epsilon": 1.0},
        {"policy": Policy(Rule.PUBLIC, 3), "epsilon": 1.0},
        {"slots": 0},
        {"slots": 101},
        {"slots": 2, "most_d": 2},
        {"lasts": 0},
        {"click_epsilon": 0.0},
    ],
)
def test_wrong_settings_are_refused(shop: Shop, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        shop(**wrong)


def test_wrong_listings_are_refused() -> None:
    for items, bids, ppm in (
        (["a", "a"], [1, 1], [1, 1]),
        (["a", ""], [1, 1], [1, 1]),
        (["a", "b\n"], [1, 1], [1, 1]),
        (["a", "b"], [1, -1], [1, 1]),
        (["a", "b"], [1, 1], [1, 10**6 + 1]),
        (["a", "b"], [1], [1, 1]),
        (["a", "b"], [1, 1], [1]),
        (["a", "b"], [1, 1], [0.5, 0.5]),
        ("ab", [1, 1], [1, 1]),
        (["a", "b"], [True, 2], [1, 1]),
        (["a", "b"], [1, 1], (1, np.True_)),
        (["a"] * (10**6 + 1), [1] * (10**6 + 1), [1] * (10**6 + 1)),
    ):
        with pytest.raises(InvalidParameter):
            Listings(items, bids, ppm)


def test_of_many_listings_ten_thousand_can_be_eligible_at_a_time(shop: Shop) -> None:
    size = 10_001
    items = [f"i{i}" for i in range(size)]
    many = Listings(items, [2] * (size - 1) + [1], [1] * size)
    server = shop(many, policy="public")
    with pytest.raises(InvalidParameter, match="among="):
        server.offer(CONSENT)
    assert stored_offers(server) == []
    assert offered(server, among=items[5:9]).items == ("i5",)
    assert offered(shop(many, policy="public", reserve_micros=2)).items == ("i0",)  # 10,000 bid so much


def test_a_policy_may_be_given_with_its_own_epsilon(shop: Shop) -> None:
    assert offered(shop(policy=Policy(Rule.RR, 3, 2.0), epsilon=2.0, gamma=1.0)).policy.epsilon == 2.0
    assert offered(shop(policy="rr", gamma=1.0)).policy.epsilon == 1.0


def test_without_a_spread_the_log_odds_of_clicks_spread_by_1(shop: Shop) -> None:
    assert Spread() == Spread(1.0, "logit-normal")
    listings = Listings([f"i{i}" for i in range(12)], [10**6] * 12, [100_000 - 8_000 * i for i in range(12)])
    sizes = [len(offered(shop(listings, epsilon=4.0, **given)).items)
             for given in ({}, {"spread": Spread(1.0)}, {"spread": Spread(0.5)}, {"spread": Spread(2.0)})]  # fmt: skip
    assert sizes[0] == sizes[1]
    assert sizes[2] < sizes[1] < sizes[3]


def test_an_item_that_no_ledger_could_name_never_reaches_it(shop: Shop) -> None:
    server = shop()
    offer = offered(server)
    for item in ("no such item", "x" * 128):
        assert server.bill(message_of(Impression, offer.token, (item,))) is Settlement.CONFLICT


def test_only_messages_are_taken(shop: Shop) -> None:
    server = shop()
    for wrong in (lambda: server.offer(None), lambda: server.bill(("t", "a")), lambda: server.engage(1)):  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage):
            wrong()
    with pytest.raises(InvalidParameter):
        PrivateSelection([("a", 1, 1)], "nowhere.db")  # type: ignore[arg-type]


def test_an_opened_ledger_is_used_as_it_is(tmp_path: Path, clock: Clock) -> None:
    with ImpressionLedger.create(tmp_path / "mine.db", clock=clock) as ledger:
        server = PrivateSelection(Listings(ITEMS, BIDS, PPM), ledger, clock=clock)
        assert server.ledger is ledger
        assert "4 with bids" in repr(server)
        server.close()
        assert offered(server)  # it is still open, for whoever else uses it


def test_a_server_is_closed_with_its_block(tmp_path: Path) -> None:
    with PrivateSelection(Listings(ITEMS, BIDS, PPM), tmp_path / "s.db") as server:
        assert offered(server)
    with pytest.raises(LedgerUnavailable):
        server.offer(CONSENT)
