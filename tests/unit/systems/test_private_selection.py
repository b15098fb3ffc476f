"""One offer through real messages, from the request to the bill; and a slate of multi-selection as the candidates."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tacit.device import Device, Limits, Overall
from tacit.errors import InvalidParameter
from tacit.ledger import Budget, Settlement
from tacit.messages.private_selection import Rule
from tacit.server import Listings, MultiSelection, PrivateSelection
from tacit.systems.private_selection import billed_slate, simulate
from tests.unit.server.small_store import small_store

STORE = small_store()
ITEMS = [str(item) for item in STORE.items.ids[:4]]


def shop_at(folder: Path, **options: object) -> PrivateSelection:
    listings = Listings(ITEMS, [1_000_000] * 4, [80_000, 60_000, 40_000, 20_000])
    options = {"policy": "rr", "gamma": 1.0, "explore": 0.0, **options}
    return PrivateSelection(listings, folder / "shop.db", **options)  # type: ignore[arg-type]


def device_at(folder: Path, **options: object) -> Device:
    """A device that likes best what is publicly the last."""
    options = {"private_scorer": lambda features, items: [0.1 * (ITEMS.index(item) + 1) for item in items], **options}
    device = Device(folder / "device.db", STORE, **options)  # type: ignore[arg-type]
    device.consent()
    return device


def test_what_goes_over_the_wire_is_what_is_billed(tmp_path: Path) -> None:
    shop = shop_at(tmp_path)
    with device_at(tmp_path) as device:
        outcome = simulate(device, shop)
        assert outcome.settlement is Settlement.OK
        assert json.loads(outcome.request) == {"version": 1, "context": "", "consent": 1}
        assert outcome.offer is not None
        assert outcome.impression is not None
        assert outcome.choice is not None
        offer, impression = json.loads(outcome.offer), json.loads(outcome.impression)
        assert set(offer) == {"version", "token", "expires", "policy", "candidates", "batch"}
        assert "price" not in outcome.offer
        assert impression == {"version": 1, "token": offer["token"], "items": [outcome.choice.item]}
        assert device.pending() == []  # it was answered
    prices = dict(zip(ITEMS, (60_000, 40_000, 20_000, 0), strict=True))
    (total,) = (one for one in shop.ledger.items() if one.impressions)
    assert (total.item, total.impressions, total.micros) == (outcome.choice.item, 1, prices[outcome.choice.item])


def test_the_longest_offer_that_a_server_makes_is_one_that_a_device_takes(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter):
        shop_at(tmp_path, lasts=15 * 86_400 + 1)
    start = 15 * 86_400 * 1_000_000 * 1_300  # at a multiple of it, when offers live for longest

    def clock() -> int:
        return start

    with device_at(tmp_path, clock=clock) as device:
        assert simulate(device, shop_at(tmp_path, lasts=15 * 86_400, clock=clock)).settlement is Settlement.OK


def test_the_private_favourite_is_e_to_the_epsilon_times_as_likely(tmp_path: Path) -> None:
    shop = shop_at(tmp_path, epsilon=3.0)
    limits = Limits(Budget(10_000), most_epsilon=3.0)
    with device_at(tmp_path, limits=limits) as device:
        shown = Counter(simulate(device, shop).choice.item for _ in range(150))  # type: ignore[union-attr]
    share = np.e**3 / (np.e**3 + 3)
    assert shown[ITEMS[-1]] == pytest.approx(150 * share, abs=5 * np.sqrt(150 * share * (1 - share)))
    assert sum(one.impressions for one in shop.ledger.items()) == 150
    assert shop.ledger.balanced()


def test_without_consent_the_publicly_best_is_shown_and_nothing_is_charged(tmp_path: Path) -> None:
    shop = shop_at(tmp_path)
    with device_at(tmp_path) as device:
        device.revoke()
        outcomes = [simulate(device, shop) for _ in range(10)]
        assert {one.choice.item for one in outcomes if one.choice} == {ITEMS[0]}
        assert {one.choice.policy.rule for one in outcomes if one.choice} == {Rule.PUBLIC}
        assert len({len(one.impression or "") for one in outcomes}) == 1
        device.consent()
        simulate(device, shop)
        assert device.statement("server").promised.epsilon == 1.0  # of the one with consent


def test_an_offer_of_nothing_is_no_fill(tmp_path: Path) -> None:
    shop = shop_at(tmp_path, reserve_micros=2_000_000)
    with device_at(tmp_path) as device:
        outcome = simulate(device, shop)
    assert (outcome.offer, outcome.choice, outcome.settlement) == (None, None, None)


def test_a_slate_is_offered_billed_and_the_ledger_adds_up_both_guarantees(tmp_path: Path) -> None:
    items = [str(item) for item in STORE.items.ids]
    shop = PrivateSelection(
        Listings(items, [1_000_000] * len(items), [50_000] * len(items)), tmp_path / "shop.db", policy="rr", explore=0.0
    )
    slates = MultiSelection(STORE, rng=np.random.default_rng(1))
    overall = Overall(radius=0.5, budget=Budget(20))
    with Device(tmp_path / "device.db", STORE, budget=Budget(10), overall=overall, scorer=STORE.scorer) as device:
        device.rate({int(STORE.items.ids[0]): 5.0})
        device.consent()
        first = billed_slate(device, slates, shop, k=5, eta=0.1)
        second = billed_slate(device, slates, shop, k=5, eta=0.1)
        assert first.signal == second.signal  # charged once, sent again
        for billed in (first, second):
            assert billed.outcome.settlement is Settlement.OK
            offer = json.loads(billed.outcome.offer or "")
            assert {one["item"] for one in offer["candidates"]} <= set(billed.slate)
            assert billed.outcome.choice is not None
            assert billed.outcome.choice.item in billed.slate
        # a signal of 10 per unit of distance read at half a unit (and the grid's rounding), and two choices of 1
        total = device.statement(overall=True).promised.epsilon
        assert 5.0 + 2.0 < total < 5.0 + 2.0 + 0.01
