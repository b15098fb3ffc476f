"""Prices, lifts and rules by hand, on auctions small enough to work out."""

import numpy as np
import pytest

from tacit.evaluation.effort import Effort
from tacit.evaluation.private_selection.automatic import chosen, first_response
from tacit.evaluation.private_selection.cutoff import cut_response, kept
from tacit.evaluation.private_selection.measures import (
    CTR,
    REVENUE,
    SURPLUS,
    lift,
    measured,
    per_click,
    per_impression,
    public_law,
    server_prices,
)
from tacit.evaluation.private_selection.rules import (
    SWEPT,
    Scored,
    banded,
    by_click,
    by_value,
    choose_many,
    clipped_noise,
    scaled_noise,
)
from tacit.evaluation.private_selection.selection_laws import box_loss, permute_and_flip, response, softmax
from tacit.evaluation.private_selection.sweep import swept
from tacit.evaluation.private_selection.sweep_claims import crossing, recovered
from tacit.evaluation.private_selection.worlds import World, simulated
from tacit.models.private_selection import Spread, choose

BIDS = np.array([[2.0, 1.5, 4.0, 0.5]])
PUBLIC = np.array([[0.05, 0.08, 0.02, 0.10]])
ALL = np.ones((1, 4), dtype=np.bool_)


def test_prices_per_impression_are_the_next_lower_score_or_the_reserve() -> None:
    prices = per_impression(BIDS * PUBLIC, 0.4 * PUBLIC, ALL)
    np.testing.assert_allclose(prices, [[0.08, 0.10, 0.05, 0.04]], rtol=1e-12)


def test_prices_of_a_click_are_the_next_score_over_the_own_probability() -> None:
    prices = per_click(BIDS, PUBLIC, 0.4, ALL)
    np.testing.assert_allclose(prices, [[0.08 / 0.05, 0.10 / 0.08, 0.05 / 0.02, 0.4]], rtol=1e-12)


def test_a_price_is_never_above_the_own_score_and_padding_pays_nothing() -> None:
    one = simulated("display", 300, rng=np.random.default_rng(1))
    prices = server_prices(one)
    assert (prices <= one.public_scores + 1e-12)[one.mask].all()
    assert not prices[~one.mask].any()


def test_lifts_by_hand() -> None:
    one = World("hand", PUBLIC, np.array([[0.10, 0.02, 0.02, 0.05]]), BIDS, ALL, 0.5)
    one = World("hand", *(np.repeat(x, 2, axis=0) for x in (one.public, one.private, one.bids, one.mask)), 0.5)
    prices = per_impression(one.public_scores, 0.4 * one.public, one.mask)
    public = measured(one, public_law(one.public_scores, one.mask), prices)
    greedy = measured(one, response(one.private_scores, np.inf), prices)
    assert lift(greedy, public, CTR).value == pytest.approx(0.10 / 0.02 - 1.0)
    assert lift(greedy, public, REVENUE).value == pytest.approx(0.08 / 0.10 - 1.0)
    assert greedy[SURPLUS][0] == pytest.approx(0.2 - 0.08)


def test_only_candidates_near_the_publicly_best_are_sent() -> None:
    scored = Scored(np.array([[1.0, 9.0, 5.0]]), np.array([[10.0, 1.9, 6.0]]), np.ones((1, 3), dtype=np.bool_))
    assert kept(scored, 0.0).tolist() == [[True, False, False]]
    assert kept(scored, 0.5).tolist() == [[True, False, True]]
    assert kept(scored, 1.0).all()
    np.testing.assert_allclose(cut_response(scored, np.log(3.0), 0.5), [[0.25, 0.0, 0.75]])


def test_auto_offers_the_publicly_best_and_looks_at_nothing_private() -> None:
    one = simulated("display", 60, rng=np.random.default_rng(2))
    scored = by_click(one)
    m, d = chosen(scored, one.spread, 1.0)
    assert (m <= one.sizes).all()
    assert (d == 1).all()
    assert m.max() > 1
    other = Scored(scored.private[::-1], scored.public, scored.mask)
    np.testing.assert_array_equal(chosen(other, one.spread, 1.0)[0], m)
    law = first_response(scored, 1.0, m)
    ranks = np.argsort(np.argsort(np.where(scored.mask, -scored.public, np.inf), axis=1), axis=1)
    np.testing.assert_array_equal(law > 0.0, scored.mask & (ranks < m[:, None]))
    np.testing.assert_allclose(law.sum(axis=1), 1.0)
    np.testing.assert_array_equal(first_response(scored, 1.0, np.ones_like(m)), public_law(scored.public, scored.mask))


def test_bands_change_no_law() -> None:
    one = by_value(simulated("display", 200, rng=np.random.default_rng(3)))
    rate = np.full(len(one.mask), 20.0)
    np.testing.assert_allclose(
        banded(permute_and_flip, one.private, rate, one.mask), permute_and_flip(one.private, 20.0, one.mask), atol=1e-12
    )
    for name, rule in SWEPT.items():
        np.testing.assert_allclose(rule(one, 2.0).sum(axis=1), 1.0, err_msg=name)


def test_rules_keep_the_epsilon_that_they_are_compared_at() -> None:
    """Over random pairs of private scores and every candidate, plain and exact rates; and twice the rate would not."""
    rng = np.random.default_rng(4)
    k, epsilon = 5, 1.5
    public = np.tile(rng.random(k), (400, 1))
    mask = np.ones((400, k), dtype=np.bool_)
    low = public - 3.0
    extreme = np.where(rng.random((2, 400, k)) < 0.5, low, public + 3.0)
    laws = {
        f"{law.__name__} {kind.__name__} {exact}": [
            kind(Scored(private, public, mask), epsilon, law=law, exact=exact, **more) for private in extreme
        ]
        for law in (softmax, permute_and_flip)
        for exact in (False, True)
        for kind, more in ((scaled_noise, {}), (clipped_noise, {"width": 0.7}))
    }
    for name, (one, other) in laws.items():
        assert np.abs(np.log(one / other)).max() <= epsilon + 1e-9, name
    wide = 0.7 * Scored(public, public, mask).unit
    assert box_loss(epsilon / wide, public[:1], np.array([wide]), permute_and_flip)[0] > epsilon + 0.1


def test_infinite_epsilon_is_greedy_unless_scores_are_clipped() -> None:
    one = swept(simulated("display", 400, rng=np.random.default_rng(5)), Effort.QUICK)
    assert one.lift("rr", np.inf, CTR).value == pytest.approx(one.lift("pf scaled", np.inf, CTR).value)
    assert one.ahead("rr", "pf clipped 0.5", np.inf, "value").above(0.0)
    last, first = crossing(one)
    assert last < first
    assert recovered(one, np.inf).value == pytest.approx(1.0)
    assert recovered(one, 5.0).value < 1.0


def test_many_auctions_are_chosen_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 9, 40)
    table = -np.sort(-rng.random((40, 8)) * 0.2, axis=1)
    bids = rng.lognormal(size=(40, 8)) + 0.3
    expected = [choose(row[:size], Spread(), 1.5, bids=bid[:size], most_d=2)
                for row, bid, size in zip(table, bids, sizes, strict=True)]  # fmt: skip
    assert choose_many(table, sizes, Spread(), 1.5, bids=bids, most_d=2) == expected
    table[:, -1] = np.where(sizes < 8, np.nan, table[:, -1])  # what stands beyond a row's size is never read
    assert choose_many(table, sizes, Spread(), 1.5, bids=bids, most_d=2) == expected
