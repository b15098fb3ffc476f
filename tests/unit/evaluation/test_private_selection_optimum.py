"""Shares of the optimum: values against the laws, against the library's own choice, and never above the upper limit."""

import math
from itertools import product

import numpy as np
import pytest

from tacit.evaluation.effort import Effort
from tacit.evaluation.private_selection import optimum, selection_laws
from tacit.evaluation.private_selection.envelope_optimum import best_envelope, envelope_scores
from tacit.evaluation.private_selection.many_equal import best_d, largest_of_bernoulli
from tacit.evaluation.private_selection.optimum import SHARE, best_response, plain_response, shares
from tacit.evaluation.private_selection.priors import (
    UNSUITED,
    auction_draws,
    equal_items,
    shared_taste,
    unequal_spreads,
)
from tacit.evaluation.private_selection.worlds import simulated
from tacit.models.private_selection import Spread, choose
from tests.unit.models.prior import prior_draws


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_the_best_response_is_the_best_of_all_laws(epsilon: float) -> None:
    draws = np.random.default_rng(1).normal(size=(40, 6)) + np.linspace(1.0, 0.0, 6)
    values = {
        (m, d): (selection_laws.response(draws, epsilon, d, mask=np.arange(6) < m) * draws).sum(axis=1).mean()
        for m in range(1, 7)
        for d in range(1, m + 1)
    }
    found = best_response(draws, epsilon, 6)
    assert found.value == pytest.approx(max(values.values()), rel=1e-12)
    assert values[found.m, found.d] == pytest.approx(found.value, rel=1e-12)
    one = best_response(draws, epsilon)
    assert one.value == pytest.approx(max(value for (_, d), value in values.items() if d == 1), rel=1e-12)
    assert plain_response(draws, epsilon) == pytest.approx(values[6, 1], rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_on_the_librarys_own_prior_it_is_the_librarys_choice(epsilon: float) -> None:
    public, spread = np.array([0.12, 0.11, 0.1, 0.07, 0.05]), Spread(0.6)
    found, chosen = best_response(prior_draws(public, spread).T, epsilon), choose(public, spread, epsilon)
    assert (found.m, found.d) == (chosen.m, chosen.d)
    assert found.value == pytest.approx(chosen.value, rel=1e-9)


def test_no_share_is_above_1_and_more_freedom_never_hurts() -> None:
    rng = np.random.default_rng(2)
    for draw in UNSUITED.values():
        found = {rule: (share, worst) for rule, share, worst in shares([draw(rng) for _ in range(3)], 2.0)}
        for place in (0, 1):
            public, plain, some, best = (found[rule][place] for rule in ("public", "rr", "rr(m)", "rr(m, d)"))
            assert max(public, plain) <= some + 1e-12
            assert some <= best + 1e-12
            assert best <= 1.0 + 1e-7
    assert found["rr(m)"][0] < 0.999  # equal items: the program does use what rr(m) cannot


def test_priors_have_their_public_scores_as_means_in_falling_order() -> None:
    world = simulated("search", 4, rng=np.random.default_rng(3))
    for clicks, scores in ((True, world.public), (False, world.public_scores)):
        drawn = auction_draws(world, 2, 50, clicks=clicks, rng=np.random.default_rng(4))
        np.testing.assert_allclose(drawn.mean(axis=0), -np.sort(-scores[2, world.mask[2]]), rtol=1e-12)
    for draw in (unequal_spreads, shared_taste):
        assert (np.diff(draw(np.random.default_rng(5)).mean(axis=0)) < 0.0).all()
    assert set(np.unique(equal_items(np.random.default_rng(6)))) == {0.0, 1.0}


def test_a_shared_taste_is_shared_and_spreads_are_unequal() -> None:
    rng = np.random.default_rng(7)
    correlated = np.abs(np.corrcoef(shared_taste(rng).T))
    assert np.median(correlated) > 0.8
    sigma = np.concatenate([unequal_spreads(rng).std(axis=0) for _ in range(10)])
    assert ((sigma < 0.004) | (sigma > 0.05)).all()
    assert 0.2 < (sigma > 0.05).mean() < 0.8


def test_with_many_draws_the_choice_of_m_is_as_good_as_the_program() -> None:
    world = simulated("display", 30, rng=np.random.default_rng(8))
    chosen = [one for one in range(30) if 3 <= world.sizes[one] <= 6][:3]
    drawn = [auction_draws(world, one, 600, clicks=False, rng=np.random.default_rng(9)) for one in chosen]
    for epsilon in (1.0, 3.0, 5.0):
        found = {rule: share for rule, share, _ in shares(drawn, epsilon)}
        assert found["rr(m)"] >= 0.9999
        assert found["rr"] < found["rr(m)"] - 1e-4
        assert found["public"] < found["rr(m)"] - 1e-4


def test_floors_made_from_few_draws_promise_more_than_they_keep() -> None:
    k, share, epsilon = 8, 0.2, 3.0
    every = np.array(list(product([0.0, 1.0], repeat=k)))
    weights = share ** every.sum(axis=1) * (1.0 - share) ** (k - every.sum(axis=1))
    exact = best_d(largest_of_bernoulli(k, share), epsilon).value
    rng = np.random.default_rng(10)
    found = [best_envelope((rng.random((20, k)) < share).astype(float), epsilon) for _ in range(8)]
    kept = [float(weights @ envelope_scores(every, one.floors, epsilon)) for one in found]
    assert max(kept) < exact  # nothing beats the best d under the true prior
    assert np.mean([one.value for one in found]) > exact


def test_the_run_and_its_claims() -> None:
    part = optimum.run(Effort.QUICK, seed=0)
    by = {
        (row.method, row.setting["prior"], row.setting["epsilon"]): row.value
        for row in part.rows
        if row.metric == SHARE
    }
    assert all(share <= 1.0 + 1e-7 for share in by.values())
    for prior in ("display, value", "search, value", "display, clicks", "search, clicks"):
        for epsilon in optimum.EPSILONS:
            # Few auctions and few draws: what 100 auctions show to 99.99 % is here within the luck of the draws.
            assert by["rr(m)", prior, epsilon] > 0.998
            assert 0.25 < by["rr", prior, epsilon] <= by["rr(m)", prior, epsilon] + 1e-12
            assert 0.75 < by["public", prior, epsilon] <= by["rr(m)", prior, epsilon] + 1e-12
        assert by["rr", prior, 1.0] < 0.95
        assert by["public", prior, 5.0] < 0.995
    for epsilon in optimum.EPSILONS:
        assert by["rr(m)", "unequal spreads", epsilon] > 0.95
        assert by["rr(m)", "shared taste", epsilon] > 0.9
    held = {claim.claim: claim.holds for claim in part.claims}
    assert len(held) == len(part.claims) == 5
    assert [holds for claim, holds in held.items() if "shared taste" in claim or "unequal" in claim] == [False, False]
    assert [holds for claim, holds in held.items() if "fresh" in claim] == [True]
    assert all(math.isfinite(row.value) for row in part.rows)
