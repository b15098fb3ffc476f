"""Counterfactual estimates: closed forms against hand-made auctions and repetition; what is biased is told so."""

import math

import numpy as np
import pytest

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import click_counts, counterfactual
from tacit.evaluation.private_selection.counterfactual import CLICKS, EXACT_SD, SD, exact_sd, logged
from tacit.evaluation.private_selection.selection_laws import response
from tacit.evaluation.private_selection.uniform_offers import exact_variance, explored
from tacit.evaluation.private_selection.worlds import World, simulated


@pytest.fixture(scope="module")
def part() -> Part:
    return counterfactual.run(Effort.QUICK, seed=0)


def two_auctions() -> World:
    public = np.array([[0.5, 0.3, 0.1], [0.4, 0.6, 0.0]])
    private = np.array([[0.2, 0.6, 0.1], [0.5, 0.4, 0.0]])
    mask = np.array([[True, True, True], [True, True, False]])
    return World("by hand", public, private, np.ones((2, 3)), mask, 1.0)


def laws(world: World, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    return response(world.private_scores, epsilon, mask=world.mask), response(
        world.public_scores, np.inf, mask=world.mask
    )


def test_the_sd_by_hand() -> None:
    world, odds = two_auctions(), 3.0
    law, target = laws(world, math.log(odds))
    # Auction 1: the target is item 1 (c = .2), shown with 1/5. Auction 2: item 2 (c = .4), shown with 1/4.
    variance = (0.2 * 5.0 - 0.2**2) + (0.4 * 4.0 - 0.4**2)
    assert exact_sd(world, law, target) == pytest.approx(math.sqrt(variance) / 2.0)


def test_the_sd_of_a_target_that_is_not_certain_by_hand() -> None:
    world = two_auctions()
    law, _ = laws(world, math.log(3.0))
    target = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    # Laws (.2, .6, .2) and (.75, .25): E term^2 = sum of target^2 c / law.
    first = 0.25 * 0.2 / 0.2 + 0.25 * 0.6 / 0.6 - (0.5 * 0.2 + 0.5 * 0.6) ** 2
    second = 0.0625 * 0.5 / 0.75 + 0.5625 * 0.4 / 0.25 - (0.25 * 0.5 + 0.75 * 0.4) ** 2
    assert exact_sd(world, law, target) == pytest.approx(math.sqrt(first + second) / 2.0)


def test_repetition_shows_the_mean_and_the_sd() -> None:
    world = two_auctions()
    law, target = laws(world, math.log(3.0))
    rng = np.random.default_rng(1)
    found = np.array([logged(world, law, target, rng=rng).terms.mean() for _ in range(20_000)])
    sd = exact_sd(world, law, target)
    assert found.mean() == pytest.approx(0.3, abs=4.0 * sd / math.sqrt(20_000))
    assert found.std() == pytest.approx(sd, rel=0.03)


def test_a_log_that_is_the_target_has_weights_of_1() -> None:
    world = two_auctions()
    _, target = laws(world, 1.0)
    log = logged(world, target, target, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(log.weights, 1.0)


def test_terms_are_those_that_a_device_forms() -> None:
    world = two_auctions()
    law, target = laws(world, 3.0)
    log = logged(world, law, target, rng=np.random.default_rng(3))
    inverse = {float(weight) for weight in 1.0 / law[world.mask]}
    assert all(weight == 0.0 or any(weight == pytest.approx(one) for one in inverse) for weight in log.weights)
    assert max(inverse) == pytest.approx(math.exp(3.0) + 3 - 1)  # the public bound on a term, for three candidates


def test_uniform_offers_know_the_public_choice_by_its_score() -> None:
    # The first has the larger bid and score, the second the larger public probability; only the first is ever clicked.
    one = np.ones((1, 2))
    world = World("by hand", np.array([[0.5, 0.6]]), np.array([[1.0, 0.0]]), np.array([[10.0, 1.0]]), one > 0.0, 1.0)
    found = explored(world, 4000, rng=np.random.default_rng(8))
    assert found.value == pytest.approx(1.0, abs=4.0 * math.sqrt(exact_variance(world) / 4000))
    assert found.value > 0.5


def test_uniform_offers_repeat_their_mean_and_their_stated_error() -> None:
    world = simulated("display", 300, rng=np.random.default_rng(4))
    best = np.where(world.mask, world.public_scores, -np.inf).argmax(axis=1)
    truth = world.private[np.arange(300), best].mean()
    found = [explored(world, 1000, rng=np.random.default_rng([5, run])) for run in range(60)]
    sd = math.sqrt(exact_variance(world) / 1000)
    values = np.array([one.value for one in found])
    assert values.mean() == pytest.approx(truth, abs=3.5 * sd / math.sqrt(60))
    assert values.std(ddof=1) == pytest.approx(sd, rel=0.3)
    assert np.mean([one.error for one in found]) == pytest.approx(sd, rel=0.1)


def test_the_figures_are_near_those_found_independently(part: Part) -> None:
    # Of another draw of such a world: truth .0781, mean .0774 (error .0010), sd .0136, self-normalised .0135, largest weight 59.
    found = {(row.method, row.metric): row for row in part.rows if row.setting.get("target") == "public"}
    truth = found["truth", CLICKS].value
    assert truth == pytest.approx(0.0781, abs=0.005)
    row = found["propensities", CLICKS]
    assert row.n == 200
    assert abs(row.value - truth) < 3.5 * found["propensities", EXACT_SD].value / math.sqrt(row.n)
    assert found["propensities", EXACT_SD].value == pytest.approx(0.0136, abs=0.002)
    assert found["propensities", SD].value == pytest.approx(found["propensities", EXACT_SD].value, rel=0.25)
    assert found["propensities, self-normalised", SD].value == pytest.approx(0.0135, abs=0.003)
    assert 30.0 < found["propensities", "largest weight"].value < 80.0
    assert found["propensities", "largest weight"].value <= found["propensities", "bound on weights"].value * (
        1 + 1e-12
    )


def test_noise_is_added_to_what_leaves_the_devices(part: Part) -> None:
    found = {(row.method, row.metric): row.value for row in part.rows if row.setting.get("target") == "public"}
    noise = found["device terms, noisy sum", "sd of the noise"]
    assert noise == pytest.approx(math.sqrt(2.0) * found["propensities", "bound on weights"] / 2041)
    whole = found["device terms, noisy sum", EXACT_SD]
    assert whole == pytest.approx(math.hypot(noise, found["propensities", EXACT_SD]))
    assert found["device terms, noisy sum", SD] > 1.5 * found["propensities", EXACT_SD]


def test_what_was_not_offered_cannot_be_told(part: Part) -> None:
    found = {row.method: row.value for row in part.rows if row.setting.get("target") == "greedy"}
    assert found["truth"] == pytest.approx(0.128, abs=0.006)
    assert found["device terms"] == pytest.approx(0.106, abs=0.008)


def test_claims_say_which_estimates_are_biased(part: Part) -> None:
    assert {claim.claim: claim.holds for claim in part.claims} == {
        "propensities: no bias for the target public": True,
        "device terms, noisy sum: no bias for the target public": True,
        "uniform offers: no bias for the target public": True,
        "device terms: no bias for a target that chooses outside of the offered candidates": False,
        "clicks: a noisy sum is at least 50 times as exact as randomised bits": True,
        "clicks: the number of impressions may stand for that of the bits received": False,
    }


def test_clicks_from_bits_and_from_sums() -> None:
    part = click_counts.run(30, seed=1)
    found = {(row.method, row.metric): row.value for row in part.rows}
    assert found["local, one bit each", "sd, in clicks, exact"] == pytest.approx(96.0, abs=0.1)
    assert found["local, one bit each", "sd, in clicks"] == pytest.approx(96.0, rel=0.5)
    assert abs(found["local, one bit each", "error, in clicks"]) < 4.0 * 96.0 / math.sqrt(30)
    assert abs(found["local, a tenth of the bits missing", "error, in clicks"]) < 4.0 * 96.0 / math.sqrt(30)
    # 68 clicks are among the missing, and (1 - p)/(2p - 1) = .582 for each of 1000 bits: -650.
    wrong = found["local, impressions in place of bits received", "error, in clicks"]
    assert wrong == pytest.approx(-650.0, abs=4.0 * 96.0 / math.sqrt(30))
    assert found["central, noisy sum", "sd, in clicks, exact"] == pytest.approx(1.36, abs=0.01)
    assert abs(found["central, noisy sum", "error, in clicks"]) < 1.2


def test_equal_seeds_equal_figures() -> None:
    assert click_counts.run(3, seed=5) == click_counts.run(3, seed=5)
    world = simulated("display", 50, rng=np.random.default_rng(6))
    assert explored(world, 80, rng=np.random.default_rng(7)) == explored(world, 80, rng=np.random.default_rng(7))
