"""Estimates of other public ways to choose: exact means over all that can happen, errors, and what is never followed."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.ledger import Settlement
from tacit.messages.private_selection import Candidate, Engagement, Impression, Offer, OfferRequest, Policy, Rule
from tacit.server import Exploration, ExploredOffer, Listings, PrivateSelection, estimate
from tacit.server.clicks import publicly_best
from tests.releases import message_of

ITEMS = ("a", "b", "c")
CLICKS = {"a": 0.3, "b": 0.8, "c": 0.1}


def mostly_second(context: str, items: tuple[str, ...]) -> list[float]:
    return [0.25, 0.75, 0.0]


@pytest.mark.parametrize(("target", "truth"), [(publicly_best, 0.3), (mostly_second, 0.25 * 0.3 + 0.75 * 0.8)])
def test_uniform_offers_estimate_a_public_target_without_bias(target: object, truth: float) -> None:
    """The mean over every item that can be shown, every click, every flip of its bit."""
    epsilon = 0.9
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    mean = 0.0
    for shown, click, bit in product(ITEMS, (0, 1), (0, 1)):
        chance = (CLICKS[shown] if click else 1.0 - CLICKS[shown]) * (p if bit == click else 1.0 - p) / 3.0
        mean += chance * estimate([ExploredOffer("", ITEMS, shown, bit)], epsilon, target).value  # type: ignore[arg-type]
    assert mean == pytest.approx(truth, rel=1e-12)


def test_errors_and_the_self_normalised_estimate_cover_the_truth() -> None:
    rng = np.random.default_rng(6)
    epsilon, n = 3.0, 4_000
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    values, normalised, errors, normalised_errors = [], [], [], []
    for _ in range(60):
        shown = rng.integers(0, 3, n)
        clicks = rng.random(n) < np.array([CLICKS[item] for item in ITEMS])[shown]
        bits = clicks ^ (rng.random(n) > p)
        rows = [ExploredOffer("", ITEMS, ITEMS[i], int(bit)) for i, bit in zip(shown, bits, strict=True)]
        found = estimate(rows, epsilon)
        assert found.offers == n
        values.append(found.value)
        normalised.append(found.normalised)
        errors.append(found.error)
        normalised_errors.append(found.normalised_error)
    for estimates, stated in ((values, errors), (normalised, normalised_errors)):
        spread = float(np.std(estimates, ddof=1))
        assert abs(float(np.mean(estimates)) - 0.3) < 5 * spread / math.sqrt(60)
        assert float(np.mean(stated)) == pytest.approx(spread, rel=0.4)
    assert np.std(normalised) < np.std(values)


def test_of_nothing_nothing_is_told() -> None:
    assert estimate([], 1.0).offers == 0
    assert math.isnan(estimate([], 1.0).value)
    never_hit = estimate([ExploredOffer("", ITEMS, "c", 1)] * 2, 1.0)
    assert never_hit.value == 0.0
    assert math.isnan(never_hit.normalised)


@pytest.mark.parametrize("law", [[1.0, 0.0], [0.5, 0.4, 0.0], [1.5, -0.5, 0.0], [math.nan, 1.0, 0.0]])
def test_a_target_that_is_no_law_is_refused(law: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        estimate([ExploredOffer("", ITEMS, "a", 1)], 1.0, lambda context, items: law)


def test_the_server_follows_uniform_offers_from_offer_to_click(tmp_path: Path) -> None:
    listings = Listings(list(ITEMS), [10**6] * 3, [300_000, 200_000, 100_000])
    shop = PrivateSelection(listings, tmp_path / "s.db", explore=0.5, rng=np.random.default_rng(2), click_epsilon=2.0)
    uniform = 0
    for turn in range(40):
        offer = shop.offer(OfferRequest("", consent=turn < 30))
        assert offer is not None
        shown = offer.items[turn % len(offer.items)]
        shop.bill(message_of(Impression, offer.token, (shown,)))
        if turn % 3:
            shop.engage(message_of(Engagement, offer.token, turn % 2, 2.0))
            shop.engage(message_of(Engagement, offer.token, turn % 2, 2.0))  # twice: counts once
            uniform += offer.policy.rule is Rule.UNIFORM
    rows = list(shop.exploration.rows.elements())
    assert len(rows) == uniform > 3
    assert {row.items for row in rows} == {ITEMS}
    assert shop.exploration.estimate() == estimate(rows, 2.0)
    assert all("token" not in name for name in ExploredOffer._fields)


def offer_of(rule: Rule, token: str, expires: int) -> Offer:
    policy = Policy(rule, 3, 1.0 if rule is Rule.RR else 0.0)
    return Offer(token, expires, policy, tuple(Candidate(item, 1.0) for item in ITEMS))


def test_only_uniform_offers_have_a_probability_that_the_server_may_know() -> None:
    followed = Exploration(1.0, clock=lambda: 0)
    for rule in (Rule.RR, Rule.PUBLIC):
        with pytest.raises(InvalidParameter, match="uniform"):
            followed.offered(offer_of(rule, "00" * 16, 10), "")


def test_a_bit_without_an_impression_or_an_offer_is_not_explored() -> None:
    followed = Exploration(1.0, clock=lambda: 0)
    followed.offered(offer_of(Rule.UNIFORM, "00" * 16, 10), "")
    followed.engaged(message_of(Engagement, "00" * 16, 1, 1.0))
    followed.shown(message_of(Impression, "11" * 16, ("a",)))
    followed.engaged(message_of(Engagement, "11" * 16, 1, 1.0))
    assert not followed.rows


def test_a_token_is_forgotten_with_its_bit_and_a_second_bit_counts_nothing() -> None:
    followed = Exploration(1.0, clock=lambda: 0)
    followed.offered(offer_of(Rule.UNIFORM, "00" * 16, 10), "")
    followed.shown(message_of(Impression, "00" * 16, ("b",)))
    for bit in (1, 1, 0):
        followed.engaged(message_of(Engagement, "00" * 16, bit, 1.0))
    assert list(followed.rows.elements()) == [ExploredOffer("", ITEMS, "b", 1)]
    assert not followed._open


def test_a_report_that_is_refused_does_not_change_what_was_shown(tmp_path: Path) -> None:
    listings = Listings(list(ITEMS), [10**6] * 3, [300_000, 200_000, 100_000])
    with PrivateSelection(listings, tmp_path / "s.db", explore=1.0) as shop:
        offer = shop.offer(OfferRequest("", consent=True))
        assert offer is not None
        assert shop.bill(message_of(Impression, offer.token, ("b",))) is Settlement.OK
        assert shop.bill(message_of(Impression, offer.token, ("c",))) is Settlement.CONFLICT
        assert shop.engage(message_of(Engagement, offer.token, 1, 1.0)) is Settlement.OK
        assert list(shop.exploration.rows) == [ExploredOffer("", ITEMS, "b", 1)]


def test_tokens_are_forgotten_when_nothing_can_come_any_more() -> None:
    time = [0]
    followed = Exploration(1.0, clock=lambda: time[0])
    for number in range(50):
        followed.offered(offer_of(Rule.UNIFORM, f"{number:032x}", 3600), "")
    time[0] = (3600 + 2 * 86_400) * 10**6
    followed.offered(offer_of(Rule.UNIFORM, f"{98:032x}", 10**9), "")
    assert len(followed._open) == 51  # not a second too early
    time[0] += 10**6
    for number in range(100, 160):
        followed.offered(offer_of(Rule.UNIFORM, f"{number:032x}", 10**9), "")
    assert len(followed._open) == 61
