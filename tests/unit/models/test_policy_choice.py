"""The policy `auto`: V against the law of randomised response itself, the public prior, ties, and what it is a function of."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from tacit.errors import InvalidParameter
from tacit.models.private_selection import (
    DRAWS,
    PolicyChoice,
    Prior,
    Spread,
    Tastes,
    choose,
)
from tests.unit.models.prior import prior_draws, value

CLICKS = np.array([0.2, 0.11, 0.1, 0.1, 0.04, 0.01])
BIDS = np.array([0.5, 3.0, 1.0, 0.125, 2.0, 0.7])


def by_the_law(draws: np.ndarray, epsilon: float, m: int, d: int) -> float:
    """The expected score of rr(m, d), one draw of the private scores at a time, from its probabilities."""
    total = 0.0
    for scores in draws[:m].T:
        best = np.argsort(-scores, kind="stable")[:d]
        weights = np.ones(m)
        weights[best] = math.exp(epsilon)
        total += float(weights @ scores) / weights.sum()
    return total / draws.shape[1]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("spread", [Spread(0.8), Spread(0.06, "normal")])
@pytest.mark.parametrize("bids", [None, BIDS])
def test_value_is_the_expectation_under_the_law_of_randomised_response(
    epsilon: float, spread: Spread, bids: np.ndarray | None
) -> None:
    scores = CLICKS if bids is None else np.sort(CLICKS * BIDS)[::-1]
    stakes = None if bids is None else BIDS[np.argsort(-CLICKS * BIDS, kind="stable")]
    draws = prior_draws(scores, spread, bids=stakes)
    values = value(scores, spread, epsilon, bids=stakes, most_d=3)
    for m in range(1, scores.size + 1):
        for d in range(1, 4):
            if d > m:
                assert values[m - 1, d - 1] == -math.inf
            else:
                assert values[m - 1, d - 1] == pytest.approx(by_the_law(draws, epsilon, m, d), rel=1e-12)
    best = choose(scores, spread, epsilon, bids=stakes, most_d=3)
    assert best.value == pytest.approx(values.max(), rel=1e-12)
    assert values[best.m - 1, best.d - 1] == best.value
    single = choose(scores, spread, epsilon, bids=stakes)
    assert (single.m, single.d) == (int(values[:, 0].argmax()) + 1, 1)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 4.0])
def test_draws_of_clicks_have_exactly_the_public_mean_and_stay_probabilities(sigma: float) -> None:
    chances = np.array([1.0, 0.97, 0.6, 0.5, 0.3, 0.05, 1e-6, 0.0])
    draws = prior_draws(chances, Spread(sigma))
    assert draws.shape == (chances.size, DRAWS)
    assert np.allclose(draws.mean(axis=1), chances, rtol=1e-12, atol=1e-15)
    assert draws.min() >= 0.0
    assert draws.max() <= 1.0
    spread = draws[1:-1].std(axis=1)
    assert (spread > 0.0).all()  # every one of them is uncertain, but for the two that are sure


def test_draws_of_scores_are_bids_times_draws_of_clicks() -> None:
    order = np.argsort(-CLICKS * BIDS, kind="stable")
    draws = prior_draws((CLICKS * BIDS)[order], Spread(0.8), bids=BIDS[order])
    chances = draws / BIDS[order][:, None]
    odds = np.log(chances / (1.0 - chances))
    # The spread is that of the log odds (scaling to the mean moves them alike where chances are small), whatever the bid.
    assert odds.std(axis=1) == pytest.approx(np.full(order.size, 0.8), rel=0.35)
    assert chances.mean(axis=1) == pytest.approx(CLICKS[order], rel=1e-12)


def test_draws_of_ratings_have_the_public_mean_and_the_spread_in_stars() -> None:
    ratings = np.array([4.5, 4.1, -1.0])
    draws = prior_draws(ratings, Spread(0.5, "normal"))
    assert draws.mean(axis=1) == pytest.approx(ratings, rel=1e-12)
    assert draws.std(axis=1) == pytest.approx(np.full(3, 0.5), rel=0.25)
    assert abs(np.corrcoef(draws)[0, 1]) < 0.4  # drawn independently of each other


def test_the_draws_value_a_choice_among_few_as_normal_numbers_do() -> None:
    """The mean of the largest of the first m draws against E max = integral of m x phi(x) Phi(x)^(m-1), for m from 2 to 16."""
    table = prior_draws(np.zeros(16), Spread(1.0, "normal"))
    for m in range(2, 17):
        exact, _ = quad(lambda x, m=m: m * x * norm.pdf(x) * norm.cdf(x) ** (m - 1), -10.0, 10.0)
        assert table[:m].max(axis=0).mean() == pytest.approx(exact, rel=0.03)


def test_nothing_to_gain_means_the_public_choice() -> None:
    assert choose([0.3], Spread(), 1.0).m == 1
    assert choose([0.3, 0.001, 0.001], Spread(0.1), 0.5).m == 1
    assert choose([0.1, 0.1, 0.1, 0.1], Spread(1e-13), 1.0).m == 1  # all m are equally good: the smallest
    assert choose([2.0, 2.0, 2.0], Spread(1e-9, "normal"), 1e-6).m == 1
    assert choose([0.0, 0.0], Spread(), 1.0) == PolicyChoice(1, 1, 0.0)


def test_more_epsilon_and_more_spread_offer_more() -> None:
    scores = np.linspace(0.12, 0.05, 20)
    offered = [choose(scores, Spread(0.6), epsilon).m for epsilon in (0.25, 1.0, 3.0, 6.0)]
    assert offered == sorted(offered)
    assert offered[0] < offered[-1]
    widths = [choose(scores, Spread(sigma), 2.0).m for sigma in (0.05, 0.3, 1.0)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_several_best_help_where_many_are_equally_good() -> None:
    chances = np.full(60, 0.1)
    assert choose(chances, Spread(2.5), 2.0, most_d=12).d > 1
    assert choose(chances, Spread(2.5), 2.0).d == 1


def test_large_epsilon_neither_overflows_nor_warns() -> None:
    scores = np.linspace(0.12, 0.11, 9)
    best = choose(scores, Spread(1.0), 5_000.0)
    assert best.m == 9
    assert best.value == pytest.approx(prior_draws(scores, Spread(1.0)).max(axis=0).mean(), rel=1e-12)


def test_the_result_is_a_function_of_its_arguments_alone() -> None:
    """Pinned: the draws come from the raw words of PCG64 under a public seed, which no version of numpy changes."""
    scores = [0.15, 0.14, 0.13, 0.12, 0.04, 0.01]
    first = choose(scores, Spread(0.8), 2.0)
    assert first == choose(np.array(scores), Spread(0.8), 2.0)
    assert first[:2] == (4, 1)
    assert first.value == pytest.approx(0.193068737346, rel=1e-9)
    # A candidate's draws do not depend on how many follow it; the mean they are scaled to is a matrix product, whose last bit may.
    for spread, within in ((Spread(0.8, "normal"), 0.0), (Spread(0.8), 1e-15)):
        many, few = prior_draws(np.full(100, 0.1), spread)[:5], prior_draws(np.full(5, 0.1), spread)
        assert np.allclose(many, few, rtol=within, atol=0.0)


@pytest.mark.parametrize("kind", ["logit-normal", "normal"])
def test_what_is_left_out_could_not_have_been_chosen(kind: str) -> None:
    """Long lists are not weighed to their end; the choice is that of the full table, and the bound is one."""
    rng = np.random.default_rng(9)
    lengths = []
    for turn in range(120):
        size = int(rng.integers(17, 300))
        chances = rng.beta(*((1, 12), (30, 300), (2, 2))[turn % 3], size)
        bids = rng.lognormal(0.0, rng.choice([0.05, 0.9]), size)
        order = np.argsort(-chances * bids)
        scores, stakes = (chances * bids)[order], bids[order]
        spread = Spread(float(rng.choice([0.1, 0.8, 2.5])) * (0.05 if kind == "normal" else 1.0), kind)
        epsilon = float(rng.choice([0.2, 1.0, 4.0, 9.0]))
        values = value(scores, spread, epsilon, bids=stakes)[:, 0]
        found = choose(scores, spread, epsilon, bids=stakes)
        assert found.m == int(values.argmax()) + 1
        assert found.value == pytest.approx(values.max(), rel=1e-12)
        lengths.append(found.m)
        prior = Prior(scores, spread, stakes)
        for start in (1, 16, size - 1):
            assert (prior.reach(start) - prior.draws(start, size).max(axis=0)).min() > -1e-12
    assert min(lengths) == 1
    assert max(lengths) > 16
    likely = Prior(
        np.full(16, 0.6), Spread(2.5), None
    )  # draws of what is likely reach up to 1 where the odds of the rest are low
    assert (likely.reach(15) - likely.draws(15, 16)[0]).min() > -1e-12
    flat = np.full(300, 0.1)
    values = value(flat, Spread(0.8, kind), 9.0)[:, 0]
    assert choose(flat, Spread(0.8, kind), 9.0).m == int(values.argmax()) + 1 > 128


def test_weighing_goes_on_while_the_next_candidate_may_still_be_better() -> None:
    """After 16 the bound is that of an offer of 16 with the best draw of the rest; that of 17 would leave out this one."""
    scores = np.array([1.0] * 16 + [0.9])
    people = np.zeros((17, DRAWS))
    people[16] = np.tile([0.5, -0.5], DRAWS // 2)  # half of them like the last one best
    tastes = Tastes(people)
    values = value(scores, tastes, 1.0)[:, 0]
    assert values[:16] == pytest.approx(np.ones(16), abs=1e-12)
    assert values[16] > 1.01
    assert choose(scores, tastes, 1.0).m == 17


@pytest.mark.parametrize(
    "public", [[], [0.1, 0.2], [math.nan], [0.2, math.nan], [math.inf, 0.1], [0.1, -math.inf], [[0.2, 0.1]]]
)
def test_scores_that_are_not_falling_finite_numbers_are_refused(public: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        choose(public, Spread(1.0, "normal"), 1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_is_a_finite_number_above_0(epsilon: float) -> None:
    with pytest.raises(InvalidParameter):
        choose([0.2, 0.1], Spread(), epsilon)


def test_scores_that_are_no_bid_times_a_probability_are_refused() -> None:
    for public, bids in (([1.5, 0.1], None), ([0.1, -0.1], None), ([0.5, 0.4], [0.4, 1.0]), ([0.5, 0.4], [1.0, -1.0])):
        with pytest.raises(InvalidParameter):
            choose(public, Spread(), 1.0, bids=bids)
    with pytest.raises(InvalidParameter):
        choose([0.5, 0.4], Spread(), 1.0, bids=[1.0])
    assert choose([0.5, 0.0], Spread(), 1.0, bids=[1.0, 0.0]).m == 1  # a bid of nothing is a score of nothing


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, 21.0])
def test_spread_is_checked(sigma: float) -> None:
    with pytest.raises(InvalidParameter):
        Spread(sigma)


def test_kind_of_spread_is_checked() -> None:
    with pytest.raises(InvalidParameter, match="kind"):
        Spread(1.0, "uniform")
