"""Whether slates of a tempered kernel follow the law of the enumeration: 60,000 draws, and teeth for a law that is a little off."""

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.models.dpp.laws import RngCoins, k_dpp_law, subsets
from tacit.models.dpp.tempered import TemperedSampler

pytestmark = pytest.mark.statistical
ALARM = 1e-4
DRAWS = 60_000
FEATURES = np.array(
    [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1], [2, 1, 0, -1]], dtype=float
)
SCORES = np.array([3.0, 2.0, 5.0, 1.0, 0.0, 4.0, 2.0])
GRADED = np.array([40.0, 40.0, 40.0, 40.0, 0.5, 0.0, 0.0])  # the first four depend on each other


def p_value(drawn: np.ndarray, law: np.ndarray, k: int) -> float:
    """Chi-square on counts; slates of which fewer than 5 are expected stand together, and there are none of probability 0."""
    place = {slate: at for at, slate in enumerate(subsets(len(FEATURES), k))}
    counts = np.bincount([place[tuple(slate)] for slate in drawn.tolist()], minlength=len(place)).astype(float)
    if counts[law == 0.0].any():
        return 0.0
    expected, many = law * len(drawn), law * len(drawn) >= 5.0
    counts = np.append(counts[many], counts[~many].sum())
    expected = np.append(expected[many], expected[~many].sum())
    if expected[-1] < 1e-6 and counts[-1] == 0.0:
        counts, expected = counts[:-1], expected[:-1]
    return float(chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_slates_follow_the_law_and_not_one_that_is_near(k: int, scan: bool, rng: np.random.Generator) -> None:
    weights = 0.4 * SCORES
    drawn = TemperedSampler(FEATURES, weights, k, scan=scan).draw_many(DRAWS, RngCoins(rng))
    kernel = FEATURES @ FEATURES.T
    assert p_value(drawn, k_dpp_law(kernel, k, weights, exact=True), k) > ALARM
    assert p_value(drawn, k_dpp_law(kernel, k, 1.1 * weights, exact=True), k) < ALARM
    assert p_value(drawn, k_dpp_law(kernel + 0.1 * np.eye(7), k, weights, exact=True), k) < ALARM


@pytest.mark.parametrize("scan", [True, False])
def test_slates_of_a_graded_kernel_follow_the_law(scan: bool, rng: np.random.Generator) -> None:
    drawn = TemperedSampler(FEATURES, GRADED, 4, scan=scan).draw_many(DRAWS, RngCoins(rng))
    kernel = FEATURES @ FEATURES.T
    law = k_dpp_law(kernel, 4, GRADED, exact=True)
    assert law[0] == 0.0
    assert p_value(drawn, law, 4) > ALARM
    other = GRADED.copy()
    other[4] += 0.1
    assert p_value(drawn, k_dpp_law(kernel, 4, other, exact=True), 4) < ALARM
