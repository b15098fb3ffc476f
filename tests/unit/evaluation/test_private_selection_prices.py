"""Prices in other settings and from noised click probabilities: by hand, and claims that figures decide either way."""

import itertools

import numpy as np
import pytest

from tacit.evaluation.effort import Effort
from tacit.evaluation.private_selection import noisy_prices, price_settings
from tacit.evaluation.private_selection.worlds import DISPLAY, World, shaped, simulated
from tacit.evaluation.statistics import Estimate

UP, DOWN, OPEN = Estimate(0.1, 0.01, 9), Estimate(-0.1, 0.01, 9), Estimate(-0.02, 0.01, 9)


@pytest.mark.parametrize(
    ("lifts", "holds"), [((UP, DOWN), True), ((UP, UP), False), ((DOWN, DOWN), False), ((UP, OPEN), False)]
)
def test_neither_sign_is_general_only_if_both_are_shown(lifts: tuple[Estimate, Estimate], holds: bool) -> None:
    claim = price_settings.claim("click", dict(zip(("one", "other"), lifts, strict=True)))
    assert claim.holds == holds


def test_twelve_settings_each_with_its_own_world() -> None:
    found = dict(price_settings.settings())
    assert len(found) == 12
    assert len(set(found.values())) == 12
    assert set(price_settings._QUICK) < found.keys()


def test_a_quick_run_has_both_ways_to_pay_and_is_repeated_by_its_seed() -> None:
    part = price_settings.run(Effort.QUICK, seed=3)
    settings = {row.setting["setting"] for row in part.rows}
    assert settings == set(price_settings._QUICK)
    assert len(part.rows) == 2 * 2 * len(settings)
    assert part == price_settings.run(Effort.QUICK, seed=3)
    value = {(row.setting["setting"], row.setting["pay per"], row.metric): row for row in part.rows}
    assert value["few, as it is", "impression", "revenue lift"].value < -0.05
    assert value["few, as it is", "click", "revenue lift"].value > 0.05
    # Value does not hang on prices: what revenue loses, surplus gains.
    for setting, pay in itertools.product(settings, ("impression", "click")):
        revenue, surplus = (value[setting, pay, f"{metric} lift"].value for metric in ("revenue", "surplus"))
        assert revenue * surplus < 0.0


def test_public_probabilities_are_means_of_sparse_interests_too() -> None:
    shape = dict(price_settings.settings())["few, sparse interests"]
    world = shaped("sparse", shape, 8000, rng=np.random.default_rng(1))
    apart = (world.private - world.public)[world.mask]
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(apart.size)
    assert 0.08 < (apart > 0.0).mean() < 0.12  # one candidate in ten
    plain = shaped("display", DISPLAY, 50, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(plain.private, simulated("display", 50, rng=np.random.default_rng(2)).private)


def test_revenue_by_hand_when_beliefs_set_the_ranks() -> None:
    mask = np.ones((1, 3), dtype=np.bool_)
    world = World("hand", np.array([[0.10, 0.08, 0.01]]), np.zeros((1, 3)), np.array([[1.0, 1.1, 0.2]]), mask, 0.5)
    # Scores 0.1 and 0.088: the first pays 0.88 for a click, and has 0.1 of them.
    assert noisy_prices._revenue(world, world.public)[0] == pytest.approx(0.088)
    # Believed at 0.2 the second is first: it pays 0.1 / 0.2 for a click, of which it really has 0.08.
    assert noisy_prices._revenue(world, np.array([[0.10, 0.20, 0.01]]))[0] == pytest.approx(0.04)
    # Behind it nothing is left but the reserve, the lowest bid.
    assert noisy_prices._revenue(world, np.array([[0.90, 0.001, 0.001]]))[0] == pytest.approx(0.02)


def test_noise_that_sets_ranks_costs_revenue_and_more_of_it_more() -> None:
    world = simulated("display", 3000, rng=np.random.default_rng(4))
    several = world.of(world.sizes > 1.0)
    little, much = (noisy_prices.ranked(several, scale, np.random.default_rng(5)) for scale in (1e-9, 0.01))
    assert abs(little.value) < 1e-6
    assert much.below(0.0)
    part = noisy_prices.noisy_prices(world, rng=np.random.default_rng(6))
    found = {(row.metric, row.setting["scale"]): row.value for row in part.rows}
    assert found[noisy_prices.BIAS, 0.01] > found[noisy_prices.BIAS, 0.005] > 0.0
    assert found[noisy_prices.FALL, 0.01] < found[noisy_prices.FALL, 0.005] < 0.0
