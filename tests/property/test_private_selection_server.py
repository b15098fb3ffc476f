"""Laws of the server in private selection, for all listings: prices, ranks, what is offered, and what consent may change."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.ledger import ImpressionLedger, Settlement
from tacit.messages.private_selection import Impression, Offer, OfferRequest, Rule
from tacit.models.private_selection import Spread, choose
from tacit.server import Listings, PrivateSelection, listings, ranked
from tests.releases import message_of
from tests.unit.models.prior import prior_draws, value

MONEY = st.one_of(st.integers(0, 50), st.integers(0, 10**15))
LISTED = st.lists(st.tuples(MONEY, st.integers(0, 10**6)), min_size=1, max_size=12)


@given(LISTED, MONEY)
def test_no_price_is_above_the_own_score_or_below_the_reserve(listed: list[tuple[int, int]], reserve: int) -> None:
    bids, ppm = zip(*listed, strict=True)
    ranking = ranked(bids, ppm, reserve)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(listings, "_FEW", 0)
        assert ranked(bids, ppm, reserve) == ranking  # by numpy as one by one
    assert sorted(ranking.order) == [place for place, bid in enumerate(bids) if bid >= reserve]
    for place, score, price in zip(ranking.order, ranking.scores, ranking.prices, strict=True):
        assert score == bids[place] * ppm[place]
        assert 0 <= price * 10**6 <= score
        assert price >= reserve * ppm[place] // 10**6
    keys = [(-score, place) for place, score in zip(ranking.order, ranking.scores, strict=True)]
    assert keys == sorted(keys)


@given(LISTED, MONEY, st.data())
def test_a_price_does_not_depend_on_the_own_bid_while_the_rank_stays(
    listed: list[tuple[int, int]], reserve: int, data: st.DataObject
) -> None:
    bids, ppm = (list(part) for part in zip(*listed, strict=True))
    before = ranked(bids, ppm, reserve)
    if not before.order:
        return
    place = data.draw(st.sampled_from(before.order))
    rank = before.order.index(place)
    bids[place] = data.draw(st.integers(reserve, 10**15))
    after = ranked(bids, ppm, reserve)
    if after.order == before.order:
        assert after.prices[rank] == before.prices[rank]


@given(LISTED, MONEY)
def test_whoever_is_below_the_reserve_changes_nothing(listed: list[tuple[int, int]], reserve: int) -> None:
    bids, ppm = zip(*listed, strict=True)
    kept = [place for place, bid in enumerate(bids) if bid >= reserve]
    alone = ranked([bids[place] for place in kept], [ppm[place] for place in kept], reserve)
    full = ranked(bids, ppm, reserve)
    assert (full.scores, full.prices) == (alone.scores, alone.prices)
    assert full.order == tuple(kept[place] for place in alone.order)


@settings(deadline=None)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9),
    st.floats(0.01, 5.0),
    st.floats(0.01, 30.0),
    st.integers(1, 3),
)
def test_auto_is_never_worse_than_public_under_its_own_prior(
    chances: list[float], sigma: float, epsilon: float, most_d: int
) -> None:
    scores = np.sort(np.array(chances))[::-1]
    best = choose(scores, Spread(sigma), epsilon, most_d=most_d)
    values = value(scores, Spread(sigma), epsilon, most_d=most_d)
    assert best.value >= scores[0] * (1 - 1e-9) - 1e-300  # the smallest floats have no digits to spare
    assert best.value >= values.max() * (1 - 1e-9) - 1e-300
    assert 1 <= best.d <= best.m <= scores.size
    draws = prior_draws(scores, Spread(sigma))
    assert np.allclose(draws.mean(axis=1), scores, rtol=1e-9, atol=1e-12)
    assert draws.min() >= 0.0
    assert draws.max() <= 1.0 + 1e-12


@pytest.fixture(scope="module")
def ledger() -> Iterator[ImpressionLedger]:
    with tempfile.TemporaryDirectory() as folder, ImpressionLedger.create(Path(folder) / "l.db") as opened:
        yield opened


@settings(deadline=None, max_examples=40)
@given(
    LISTED,
    MONEY,
    st.sampled_from(["auto", "rr", "public"]),
    st.floats(0.05, 10.0),
    st.sampled_from([None, 0.0, 0.3, 1.0]),
    st.data(),
)
def test_every_offer_is_well_formed_and_bills_what_was_priced(
    ledger: ImpressionLedger,
    listed: list[tuple[int, int]],
    reserve: int,
    policy: str,
    epsilon: float,
    gamma: float | None,
    data: st.DataObject,
) -> None:
    bids, ppm = zip(*listed, strict=True)
    items = [f"{place}" for place in range(len(bids))]
    shop = PrivateSelection(
        Listings(items, bids, ppm),
        ledger,
        policy=policy,
        epsilon=epsilon,
        gamma=gamma,
        reserve_micros=reserve,
        explore=0.3,
    )
    ranking = ranked(bids, ppm, reserve)
    consenting, not_consenting = shop.offer(OfferRequest("", True)), shop.offer(OfferRequest("", False))
    if not ranking.order:
        assert consenting is None
        assert not_consenting is None
        return
    assert not_consenting is not None
    assert consenting is not None
    assert not_consenting.policy.rule is Rule.PUBLIC
    best_first = tuple(items[place] for place in ranking.order)
    prices = dict(zip(best_first, ranking.prices, strict=True))
    for offer in (consenting, not_consenting):
        assert Offer.from_json(offer.to_json()) == offer
        assert offer.items == best_first[: len(offer.items)]
        assert offer.policy.cost in (0.0, epsilon)
    if consenting.policy.rule is Rule.UNIFORM:
        assert consenting.items == best_first
    else:
        assert consenting.candidates == not_consenting.candidates
    shown = data.draw(st.sampled_from(consenting.items))
    before = ledger.item(shown).micros
    assert shop.bill(message_of(Impression, consenting.token, (shown,))) is Settlement.OK
    assert ledger.item(shown).micros - before == prices[shown]
