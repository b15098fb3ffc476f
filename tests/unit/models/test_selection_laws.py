"""Laws of selection in closed form: known vectors, slow obvious versions, padding, and the exact mechanisms."""

import math
from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad

from tacit.evaluation.private_selection.selection_laws import (
    LAWS,
    box_loss,
    calibrated_box_rate,
    calibrated_rate,
    clipped,
    envelope,
    permute_and_flip,
    response,
    scaled,
    scaled_flip_loss,
    scaled_softmax_loss,
    softmax,
    softmax_box_loss,
)
from tacit.mechanisms import Envelope, ExponentialMechanism, LaplaceNoisyMax, PermuteAndFlip, TopResponse
from tacit.mechanisms.scores import ClippedScores, ScaledScores
from tests.unit.models.laplace_max import laplace_max, plain_rate

Law = Callable[..., NDArray[np.float64]]
NOISY = (softmax, permute_and_flip, laplace_max)
LN2, LN3, LN4 = math.log(2.0), math.log(3.0), math.log(4.0)


def test_response_vectors() -> None:
    scores = np.array([4.0, 3.0, 1.0, 0.0])
    np.testing.assert_allclose(response(scores, LN3), [1 / 2, 1 / 6, 1 / 6, 1 / 6], rtol=1e-12)
    np.testing.assert_allclose(response(scores, LN3, 2), [3 / 8, 3 / 8, 1 / 8, 1 / 8], rtol=1e-12)
    assert response(scores, 5.0)[0] == pytest.approx(0.98018666, abs=5e-9)
    assert response(np.arange(15.0), 5.0)[14] == pytest.approx(0.91380009, abs=5e-9)


def test_response_prefers_the_first_of_equals_and_is_greedy_in_the_limit() -> None:
    tied = np.array([[1.0, 2.0, 2.0], [5.0, 5.0, 5.0]])
    np.testing.assert_allclose(response(tied, LN2), [[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]], rtol=1e-12)
    np.testing.assert_allclose(response(tied, LN2, 2), [[0.2, 0.4, 0.4], [0.4, 0.4, 0.2]], rtol=1e-12)
    np.testing.assert_array_equal(response(tied, math.inf), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(response(tied, 5000.0), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(response(tied, 3.0, 7), np.full((2, 3), 1 / 3))


def test_each_row_may_have_its_own_d() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    np.testing.assert_allclose(
        response(scores, LN2, np.array([1, 2])), [[0.5, 0.25, 0.25], [0.4, 0.4, 0.2]], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (softmax, [4 / 7, 2 / 7, 1 / 7]),
        (permute_and_flip, [2 / 3, 11 / 48, 5 / 48]),
    ],
)
def test_noisy_max_in_fractions(law: Law, expected: list[float]) -> None:
    np.testing.assert_allclose(law(np.array([1.0, 0.5, 0.0]), LN4), expected, rtol=1e-12)


def test_laplace_vector() -> None:
    found = laplace_max(np.array([1.0, 0.5, 0.0]), LN4)
    np.testing.assert_allclose(found, [0.58357657, 0.28456006, 0.13186337], atol=5e-9)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (softmax, [0.34065747, 0.28645765, 0.20255614, 0.17032874]),
        (permute_and_flip, [0.37566668, 0.28787351, 0.18525148, 0.15120834]),
        (laplace_max, [0.35407457, 0.29094950, 0.19506669, 0.15990924]),
    ],
)
def test_scaled_vectors(law: Law, expected: list[float]) -> None:
    inside = scaled(np.array([4.0, 3.0, 1.0, 0.0]))
    np.testing.assert_array_equal(inside, [1.0, 0.75, 0.25, 0.0])
    np.testing.assert_allclose(law(inside, plain_rate(2 * LN2)), expected, atol=5e-9)


@pytest.mark.parametrize(
    ("law", "expected", "loss"),
    [
        (softmax, [0.38594994, 0.38594994, 0.14198305, 0.08611707], 1.70507162),
        (permute_and_flip, [0.40833882, 0.40833882, 0.11578606, 0.06753630], 2.0),
    ],
)
def test_clipped_vectors_and_their_true_epsilon(law: Law, expected: list[float], loss: float) -> None:
    centres = np.array([2.0, 2.5, 1.5, 0.5])
    inside = clipped(np.array([4.0, 3.0, 1.0, 0.0]), centres, 2.0)
    np.testing.assert_array_equal(inside, [3.0, 3.0, 1.0, 0.0])
    rate = plain_rate(2.0, 2.0)
    assert rate == 0.5
    np.testing.assert_allclose(law(inside, rate), expected, atol=5e-9)
    assert float(box_loss(rate, centres, 2.0, law)) == pytest.approx(loss, abs=5e-9)


def test_envelope_vector() -> None:
    floors = np.array([0.1, 0.1, 0.05, 0.01])
    found = envelope(np.array([0.2, 0.9, 0.1, 0.8]), floors, math.log(10.0))
    np.testing.assert_allclose(found, [0.1, 0.84, 0.05, 0.01], rtol=1e-12)


def test_permute_and_flip_is_the_walk_over_all_orders() -> None:
    flips = np.exp(LN4 * (np.array([0.3, 1.0, 0.8, 0.1]) - 1.0))
    slow = np.zeros(4)
    for order in permutations(range(4)):
        missed = 1.0
        for item in order:
            slow[item] += missed * flips[item] / 24.0
            missed *= 1.0 - flips[item]
    np.testing.assert_allclose(permute_and_flip(np.array([0.3, 1.0, 0.8, 0.1]), LN4), slow, rtol=1e-12)


@pytest.mark.parametrize("rate", [0.3, 4.0, 60.0])
def test_laplace_is_its_integral(rate: float) -> None:
    scores = np.array([0.9, 0.2, 0.85, 0.0, 0.9])

    def cdf(x: float) -> float:
        return 0.5 * math.exp(x) if x < 0 else 1.0 - 0.5 * math.exp(-x)

    def integrand(x: float, item: int) -> float:
        others = math.prod(cdf(rate * (x - one)) for place, one in enumerate(scores) if place != item)
        return 0.5 * rate * math.exp(-rate * abs(x - scores[item])) * others

    ends = [-40.0 / rate, *sorted(set(scores.tolist())), 1.0 + 40.0 / rate]
    slow = [
        sum(quad(integrand, low, high, (item,), epsabs=1e-12)[0] for low, high in pairwise(ends))
        for item in range(scores.size)
    ]
    np.testing.assert_allclose(laplace_max(scores, rate), slow, atol=1e-9)


@pytest.mark.parametrize("law", NOISY)
@pytest.mark.parametrize("rate", [0.05, 2.0, 200.0])
def test_probabilities_add_up_to_one_for_a_hundred_candidates(law: Law, rate: float) -> None:
    scores = np.random.default_rng(1).random((5, 100)) * 3.0
    scores[0] = 1.0
    found = law(scores, rate)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-10)
    np.testing.assert_allclose(found[0], 0.01, atol=1e-12)


@pytest.mark.parametrize("law", NOISY)
def test_padding_changes_nothing(law: Law) -> None:
    rng = np.random.default_rng(2)
    scores, mask = rng.random((6, 7)), np.arange(7) < np.array([1, 2, 3, 4, 5, 7])[:, None]
    found = law(scores, 3.0, mask)
    top = response(scores, 1.0, 2, mask)
    low = envelope(scores, np.full(scores.shape, 0.1), 3.0, mask)
    for row, size in enumerate(mask.sum(axis=1)):
        own = scores[row, :size]
        np.testing.assert_allclose(found[row, :size], law(own, 3.0), rtol=1e-12)
        np.testing.assert_allclose(top[row, :size], response(own, 1.0, 2), rtol=1e-12)
        np.testing.assert_allclose(low[row, :size], envelope(own, np.full(size, 0.1), 3.0), rtol=1e-12)
        np.testing.assert_allclose(scaled(scores, mask)[row, :size], scaled(own), rtol=1e-12)
        assert not found[row, size:].any()
        assert not top[row, size:].any()
        assert not low[row, size:].any()


@pytest.mark.parametrize("law", NOISY)
def test_each_row_may_have_its_own_rate(law: Law) -> None:
    scores = np.random.default_rng(3).random((2, 4))
    found = law(scores, np.array([1.0, 5.0]))
    np.testing.assert_allclose(found, [law(scores[0], 1.0), law(scores[1], 5.0)], rtol=1e-12)


def test_scaling_equal_scores_gives_ones() -> None:
    np.testing.assert_array_equal(scaled(np.array([[2.0, 2.0], [0.0, 3.0]])), [[1.0, 1.0], [0.0, 1.0]])


# --- the exact mechanisms draw from the same laws


@pytest.mark.parametrize("k", [2, 5, 15])
def test_laws_agree_with_the_mechanisms(k: int) -> None:
    rng = np.random.default_rng(k)
    scores, centres = rng.normal(size=k), rng.normal(size=k)
    for mechanism, law in ((ExponentialMechanism, softmax), (PermuteAndFlip, permute_and_flip)):
        exact = mechanism(ScaledScores(k), 1.7).pmf(scores)
        np.testing.assert_allclose(
            law(scaled(scores), plain_rate(1.7)), exact, atol=3e-6
        )  # scores are rounded to 2^-20
        box = ClippedScores(tuple(centres), 1.5)
        exact = mechanism(box, 1.7).pmf(scores)
        inside = clipped(scores, centres, 1.5)
        np.testing.assert_allclose(law(inside, plain_rate(1.7, 1.5)), exact, atol=3e-6)
    coarse = scaled(np.rint(scaled(scores) * 256.0))  # on the grid already: only the noise is rounded
    laplace = LaplaceNoisyMax(ScaledScores(k, steps=256), 1.7).pmf(coarse)
    np.testing.assert_allclose(laplace_max(coarse, plain_rate(1.7)), laplace, atol=1e-3)
    for d in range(1, k):
        exact = TopResponse(k, d, 1.7).pmf(scores)
        np.testing.assert_allclose(response(scores, 1.7, d), exact, atol=1e-8)
    floors = np.full(k, 1.0 / (k + 2))
    units = tuple(int(floor * 2**32) for floor in floors)
    np.testing.assert_allclose(envelope(scores, floors, 1.7), Envelope(units, 1.7).pmf(scores), atol=1e-8)


# --- rates


@pytest.mark.parametrize(
    ("k", "flips", "gumbels"), [(2, (1.24, 1.73), (2.0, 2.0)), (4, (1.03, 1.46), (1.35, 1.58)), (15, (1.0, 1.09), (1.07, 1.17))]
)  # fmt: skip
def test_gain_of_exact_calibration(k: int, flips: tuple[float, float], gumbels: tuple[float, float]) -> None:
    for place, epsilon in enumerate((1.0, 5.0)):
        gain = calibrated_rate(epsilon, np.array([float(k)]), scaled_flip_loss) / (epsilon / 2.0)
        assert gain == pytest.approx(flips[place], abs=0.005)
        gain = calibrated_rate(epsilon, np.array([float(k)]), scaled_softmax_loss) / (epsilon / 2.0)
        assert gain == pytest.approx(gumbels[place], abs=0.006)


@pytest.mark.parametrize("rate", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("k", [2, 4, 9])
def test_closed_forms_are_the_loss_over_the_corners_of_the_unit_box(rate: float, k: int) -> None:
    middle = np.full((1, k), 0.5)
    one, size = np.array([rate]), np.array([float(k)])
    np.testing.assert_allclose(
        box_loss(rate, middle, np.array([1.0]), softmax), scaled_softmax_loss(one, size), rtol=1e-10
    )
    flip = box_loss(rate, middle, np.array([1.0]), permute_and_flip)
    np.testing.assert_allclose(flip, scaled_flip_loss(one, size), rtol=1e-10)


def test_fast_loss_of_the_exponential_mechanism_is_the_loss_over_the_corners() -> None:
    rng = np.random.default_rng(4)
    centres, mask = rng.normal(size=(20, 6)), np.arange(6) < rng.integers(1, 7, size=20)[:, None]
    width = np.full(20, 0.7)
    slow = box_loss(1.3, centres, width, softmax, mask)
    np.testing.assert_allclose(softmax_box_loss(1.3, centres, width, mask), slow, atol=1e-12)
    assert (slow[mask.sum(axis=1) == 1] == 0.0).all()


@pytest.mark.parametrize("name", LAWS)
def test_a_calibrated_rate_spends_epsilon_and_no_more(name: str) -> None:
    centres = np.random.default_rng(5).normal(size=(8, 4))
    rate = calibrated_box_rate(1.5, centres, 2.0, LAWS[name])
    loss = box_loss(rate, centres, np.full(8, 2.0), LAWS[name])
    assert (loss <= 1.5 + 1e-9).all()
    assert (rate >= 1.5 / 4.0).all()
    np.testing.assert_allclose(loss, 1.5, atol=1e-6)


def test_no_pair_of_scores_in_the_boxes_exceeds_a_calibrated_epsilon() -> None:
    rng = np.random.default_rng(6)
    centres = rng.normal(size=5)
    for law in (softmax, permute_and_flip):
        rate = float(calibrated_box_rate(2.0, centres[None, :], 1.0, law)[0])
        one, other = centres + rng.uniform(-0.5, 0.5, (2, 300, 5))
        ratio = np.log(law(one, rate) / law(other, rate))
        assert np.abs(ratio).max() <= 2.0 + 1e-9
