"""Shares of moments, by many draws: their noise, alone and in the sum, and an audit from outside, each with teeth."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.mechanisms import GramShare, Noise, PopularityShare
from tacit.models.moments import STEPS, gram_from
from tests.contracts.mechanism import ALARM, chi_square

pytestmark = pytest.mark.statistical

DELTA, CELLS = 1e-6, 128
ITEMS = 1 << 20


def p_value(draws: NDArray[np.integer[Any]], variance: float) -> float:
    place = np.floor(stats.norm.cdf(draws / math.sqrt(variance)) * CELLS).astype(np.int64).clip(0, CELLS - 1)
    return chi_square(np.bincount(place, minlength=CELLS), np.full(CELLS, 1 / CELLS))


@pytest.mark.parametrize(("rho", "honest"), [(0.02, 1), (0.3, 9), (1.5, 143)])
def test_noise_of_an_empty_entity_is_what_is_stated_and_not_three_percent_off(
    rho: float, honest: int, noise: Noise
) -> None:
    for share, squared in (
        (PopularityShare(ITEMS, rho, DELTA, honest), 1 << 40),
        (GramShare(2000, range(1448), rho, DELTA, honest), 1 << 39),
    ):
        draws = share.release([], noise).value.steps
        variance = squared / (2 * rho * honest)
        assert draws.size > 10**6
        assert p_value(draws, variance) > ALARM
        for factor in (0.97, 1.03):
            assert p_value(draws, variance * factor) < ALARM


def test_the_diagonal_is_twice_as_variable_as_the_rest_of_the_matrix(noise: Noise) -> None:
    share = GramShare(1448, range(1448), 0.1, DELTA)
    matrices = [gram_from(share.release([], noise).value.steps, 1448) * STEPS for _ in range(12)]
    on = np.concatenate([np.diagonal(one) for one in matrices])
    off = matrices[0][np.triu_indices(1448, 1)]
    variance = (1 << 39) / 0.2
    assert p_value(off, variance) > ALARM
    assert p_value(on, 2 * variance) > ALARM
    for factor in (0.8, 1.25):  # 17,000 draws see no less
        assert p_value(on, 2 * variance * factor) < ALARM
    assert p_value(on, variance) < ALARM  # a diagonal that was sent undivided


def test_the_sum_of_the_fewest_honest_shares_has_the_whole_variance(noise: Noise) -> None:
    """Ten entities, three of which drop out and one of which colludes. Divided by ten the noise would be too little."""
    rho, least = 0.3, 6
    total = sum(PopularityShare(ITEMS, rho, DELTA, least).release([], noise).value.steps for _ in range(least))
    variance = (1 << 40) / (2 * rho)
    assert p_value(np.asarray(total), variance) > ALARM
    for wrong in (variance * least / 10, variance / least, variance * 1.03):
        assert p_value(np.asarray(total), wrong) < ALARM
    twin = sum(PopularityShare(ITEMS, rho, DELTA, 10).release([], noise).value.steps for _ in range(least))
    assert p_value(np.asarray(twin), variance) < ALARM


def test_numbers_have_noise_of_their_own_and_one_draw_for_all_is_told(noise: Noise) -> None:
    share = GramShare(1448, range(1448), 0.1, DELTA)
    first, second = (share.release([], noise).value.steps for _ in range(2))
    spread = math.sqrt(share.noise_law.width)

    def even(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
        places = [np.floor(stats.norm.cdf(draws / spread) * 8).astype(np.int64).clip(0, 7) for draws in (one, other)]
        return chi_square(np.bincount(8 * places[0] + places[1], minlength=64), np.full(64, 1 / 64))

    half = first.size // 2
    for one, other in ((first, second), (first[:-1], first[1:]), (first[:half], first[half : 2 * half])):
        assert even(one, other) > ALARM
    for one, other in ((first, first), (first, second // 8 + first)):
        assert even(one, other) < ALARM


def test_an_audit_from_outside_stays_below_the_claim_and_refuses_rows_that_are_not_scaled(noise: Noise) -> None:
    """100,000 runs on nine items. An unscaled user of nine items is three times as long and costs nine times the rho."""
    rho = 0.5
    draws = PopularityShare(9 * 100_000, rho, DELTA).release([], noise).value.steps.reshape(-1, 9)
    for delta in (0.01, 0.2):
        share = PopularityShare(9, rho, delta)
        found, claim = at_delta(share.totals([[1] * 9]), draws, delta), share.guarantee.epsilon
        assert 0.2 * claim < found <= claim < at_delta(np.full(9, STEPS), draws, delta)


def at_delta(vector: NDArray[np.int64], draws: NDArray[np.int64], delta: float) -> float:
    """ln((P[S] - delta) / P'[S]) with P[S] bounded from below and P'[S] from above, each with confidence 1 - 1e-9."""
    towards = vector / np.linalg.norm(vector)
    cut = float(np.linalg.norm(vector)) / 2 + 0.5 * float(np.std(draws @ towards))
    runs = len(draws)
    here, there = (int((one @ towards > cut).sum()) for one in (draws + vector, draws))
    low, high = stats.beta.ppf(ALARM, here, runs - here + 1), stats.beta.ppf(1 - ALARM, there + 1, runs - there)
    return math.log((low - delta) / high) if low > delta else -math.inf
