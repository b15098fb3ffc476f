"""Clopper-Pearson bounds, checked against exact binomial sums; and the audit they make."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from tacit.audit import empirical
from tacit.errors import InvalidParameter
from tacit.mechanisms import RandomisedResponse, ReplayedNoise


@pytest.mark.parametrize(("draws", "chance"), [(20, 0.3), (50, 0.9), (200, 0.01)])
def test_each_bound_misses_the_true_probability_no_more_often_than_it_says(draws: int, chance: float) -> None:
    mistrust = 0.05
    bounds = [empirical.clopper_pearson(hits, draws, mistrust) for hits in range(draws + 1)]
    law = binom.pmf(np.arange(draws + 1), draws, chance)
    too_high = sum(p for p, (low, _) in zip(law, bounds, strict=True) if low > chance)
    too_low = sum(p for p, (_, high) in zip(law, bounds, strict=True) if high < chance)
    assert too_high <= mistrust
    assert too_low <= mistrust
    assert max(too_high, too_low) > mistrust / 20.0  # not idle either


def test_the_bounds_are_those_of_the_binomial_tails() -> None:
    low, high = empirical.clopper_pearson(7, 20, 0.01)
    assert binom.sf(6, 20, low) == pytest.approx(0.01)
    assert binom.cdf(7, 20, high) == pytest.approx(0.01)
    assert empirical.clopper_pearson(0, 20, 0.01)[0] == 0.0
    assert empirical.clopper_pearson(20, 20, 0.01)[1] == 1.0


def test_the_bound_on_epsilon_is_rarely_above_it_by_exact_binomial_sums() -> None:
    epsilon, draws, mistrust = 1.0, 60, 0.1
    truth = math.e / (1.0 + math.e)
    first, second = binom.pmf(np.arange(61), draws, truth), binom.pmf(np.arange(61), draws, 1.0 - truth)
    too_high = sum(
        first[hits] * second[other]
        for hits in range(61)
        for other in range(61)
        if first[hits] * second[other] > 1e-12
        and empirical.epsilon_of_counts(hits, draws, other, draws, mistrust=mistrust) > epsilon
    )
    assert too_high <= mistrust


def test_a_hundred_thousand_draws_bound_an_epsilon_of_one_by_about_0_95() -> None:
    mechanism = RandomisedResponse(2, 1.0)
    first, second = (
        mechanism.release_many(np.full(100_000, value), ReplayedNoise(6 + value)).value for value in (0, 1)
    )
    bound = empirical.lower_bound_by_label(first, second)
    assert 0.92 < bound.epsilon < 1.0
    assert bound.draws == 200_000
    assert empirical.lower_bound_by_threshold(first, second).epsilon == pytest.approx(bound.epsilon, abs=0.02)


def test_a_delta_lowers_the_bound() -> None:
    without = empirical.epsilon_of_counts(900, 1000, 100, 1000)
    assert 0.0 < empirical.epsilon_of_counts(900, 1000, 100, 1000, delta=0.3) < without
    assert empirical.epsilon_of_counts(900, 1000, 100, 1000, delta=0.9) == 0.0


def test_equal_samplers_are_not_accused() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        first, second = rng.integers(0, 50, size=(2, 2000))
        assert empirical.lower_bound_by_label(first, second).epsilon == 0.0
        assert empirical.lower_bound_by_threshold(first, second).epsilon == 0.0


def test_outputs_first_seen_after_the_event_was_chosen_do_not_shape_it() -> None:
    first = np.concatenate([np.zeros(200, dtype=np.int64), np.arange(1, 801)])
    second = np.concatenate([np.zeros(200, dtype=np.int64), np.arange(-800, 0)])
    assert empirical.lower_bound_by_label(first, second).epsilon == 0.0


def test_a_sampler_without_noise_is_accused() -> None:
    bound = empirical.lower_bound_by_label(np.zeros(2000, dtype=np.int64), np.ones(2000, dtype=np.int64))
    assert bound.epsilon > 4.0


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        empirical.lower_bound_by_label(np.array([0, 1]), np.array([1, 0]))
    with pytest.raises(InvalidParameter):
        empirical.clopper_pearson(3, 2, 0.1)
