"""Noise on vectors: sums over users (Laplace, Gaussian) and one feature vector (metric privacy)."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, LossKind, Relation
from tacit.mechanisms import GaussianSum, LaplaceSum, ReplayedNoise, VectorLaplace
from tacit.mechanisms.inputs import STEPS, bounded_row_sum
from tacit.mechanisms.samplers import integers
from tests.unit.mechanisms import reference
from tests.unit.mechanisms.scripted import ScriptedNoise

# --- Laplace sums


def product_loss(mechanism: LaplaceSum, here: np.ndarray, there: np.ndarray) -> float:
    """Coordinates are independent, so the worst output is the worst of each; outputs beyond both totals suffice."""
    loss = 0.0
    for a, b in zip(here.tolist(), there.tolist(), strict=True):
        outputs = np.array([min(a, b) - 5, min(a, b), (a + b) // 2, max(a, b), max(a, b) + 5])
        loss += float(
            np.abs(np.log(mechanism.noise_law.pmf(outputs, a)) - np.log(mechanism.noise_law.pmf(outputs, b))).max()
        )
    return loss


ROWS = [[2.0, 0.0, 0.0], [-0.5, 1.0, 0.5], [9.0, 9.0, -9.0], [1e-9, math.nan, math.inf], [0.0, 0.0, 0.0]]


def test_loss_of_a_sum_over_several_coordinates_stays_within_the_claim() -> None:
    mechanism = LaplaceSum(3, 2.0, 0.8)
    table = [[1.0, -3.0, 0.2], [0.0, 0.5, 0.5]]
    losses = [
        product_loss(mechanism, bounded_row_sum(table, 3, 2.0, 1), bounded_row_sum([*table, row], 3, 2.0, 1))
        for row in ROWS
    ]
    assert max(losses) <= 0.8 + 1e-9
    assert losses[0] == pytest.approx(0.8, abs=1e-9)  # all of the bound on one coordinate: tight
    assert losses[1] == pytest.approx(0.8, abs=1e-9)  # or spread over all


def test_replacing_a_row_needs_and_gets_twice_the_noise() -> None:
    added, changed = LaplaceSum(3, 2.0, 0.8), LaplaceSum(3, 2.0, 0.8, Relation.REPLACE)
    assert changed.noise_law.width == 2 * added.noise_law.width
    here, there = bounded_row_sum([[2.0, 0.0, 0.0]], 3, 2.0, 1), bounded_row_sum([[0.0, -2.0, 0.0]], 3, 2.0, 1)
    assert product_loss(changed, here, there) == pytest.approx(0.8, abs=1e-9)
    assert product_loss(added, here, there) > 1.5
    assert (added.guarantee.protects, changed.guarantee.protects) == (ONE_USER, ONE_USER_REPLACED)


def test_l1_noise_is_not_enough_for_rows_that_are_only_bounded_in_l2() -> None:
    """The broken twin of the row bound: rows of L2 norm 1 have an L1 norm up to sqrt(dimension)."""
    mechanism = LaplaceSum(3, 2.0, 0.8)
    zero = np.zeros(3, dtype=np.int64)
    assert product_loss(mechanism, zero, bounded_row_sum([[9.0, 9.0, 9.0]], 3, 2.0, 2)) > 0.8 * 1.7


def test_noisy_sums_have_the_step_of_the_bound_and_are_near_the_truth() -> None:
    rows = sparse.csr_array(np.eye(3)[np.arange(3000) % 3])
    release = LaplaceSum(3, 1.0, 5.0).release(rows, ReplayedNoise(1))
    assert release.value.step == Fraction(1, STEPS)
    np.testing.assert_allclose(release.value.to_floats(), 1000.0, atol=5.0)
    release = GaussianSum(3, 1.0, 5.0, 1e-6).release(rows, ReplayedNoise(1))
    np.testing.assert_allclose(release.value.to_floats(), 1000.0, atol=12.0)


@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 700.0])
def test_extreme_epsilons_of_sums_neither_overflow_nor_warn(epsilon: float) -> None:
    for mechanism in (LaplaceSum(2, 1.0, epsilon), GaussianSum(2, 1.0, epsilon, 1e-6)):
        assert mechanism.release([[1.0, 0.0]], ReplayedNoise(1)).value.steps.shape == (2,)


@pytest.mark.parametrize("epsilon", [1e-200, 5e-324])
def test_epsilons_below_what_the_sampler_can_draw_are_refused(epsilon: float) -> None:
    with pytest.raises(InvalidParameter):
        LaplaceSum(1, 1.0, epsilon).release([[1.0]])


# --- Gaussian sums


@pytest.mark.parametrize(
    ("epsilon", "deviation"), [(0.5, 8.6766), (1.0, 4.5309), (2.0, 2.3816), (4.0, 1.2678), (8.0, 0.6893)]
)
def test_deviation_at_delta_one_in_a_million(epsilon: float, deviation: float) -> None:
    mechanism = GaussianSum(1, 1.0, epsilon, 1e-6)
    assert math.sqrt(mechanism.noise_law.width) / STEPS == pytest.approx(deviation, abs=6e-5)


def test_noise_is_never_below_what_the_stated_rho_needs() -> None:
    for epsilon, relation in product((0.3, 1.0, 9.0), Relation):
        mechanism = GaussianSum(1, 1.0, epsilon, 1e-5, relation)
        sensitivity = STEPS * (2 if relation is Relation.REPLACE else 1)
        loss = mechanism.guarantee.loss
        assert loss is not None
        assert loss.kind is LossKind.ZCDP
        assert Fraction(sensitivity**2) / (2 * mechanism.noise_law.width) <= Fraction(loss.value)


@pytest.mark.parametrize(
    ("variance", "shift"), [(Fraction(1), 1), (Fraction(9, 4), 2), (Fraction(1, 2), 1), (Fraction(30), 7)]
)
def test_renyi_divergence_of_the_discrete_gaussian_is_at_most_that_of_the_theorem(
    variance: Fraction, shift: int
) -> None:
    """a * shift^2 / (2 sigma^2) for every order a, by summing over all outputs."""
    law = reference.discrete_gaussian(variance, 150)
    rho = shift * shift / (2.0 * float(variance))
    for order in (1.1, 2.0, 5.0, 11.0):
        total = sum(
            p * (p / law[n - shift]) ** (order - 1)
            for n, p in law.items()
            if n - shift in law and p > 0 < law[n - shift]
        )
        assert math.log(total) / (order - 1) <= order * rho + 1e-9
        if float(order).is_integer():  # whole orders move the grid onto itself: equality
            assert math.log(total) / (order - 1) == pytest.approx(order * rho, rel=1e-6)


def test_delta_of_a_gaussian_sum_is_within_the_claim_and_that_of_half_the_noise_is_not() -> None:
    """delta(epsilon) by summing P - e^epsilon P' over outputs, every 2^12 steps; the integrand is smooth on that scale."""
    mechanism = GaussianSum(1, 1.0, 1.0, 1e-4)
    for variance, holds in ((mechanism.noise_law.width, True), (mechanism.noise_law.width / 4, False)):
        steps = np.arange(-(1 << 27), 1 << 27, 1 << 12)
        excess = integers.discrete_gaussian_pmf(steps, variance) - math.e * integers.discrete_gaussian_pmf(
            steps + STEPS, variance
        )
        delta = float(np.maximum(excess, 0.0).sum()) * (1 << 12)
        assert (delta <= 1e-4) is holds


def test_gaussian_pmf_sums_to_the_law_of_a_cell() -> None:
    mechanism = GaussianSum(1, 1.0, 2.0, 1e-6)
    steps = np.arange(1000, 1000 + (1 << 20))
    below = [float(reference.gaussian_below(n - 77, mechanism.noise_law.width)) for n in (steps[0], steps[-1] + 1)]
    assert float(mechanism.noise_law.pmf(steps, 77).sum()) == pytest.approx(below[1] - below[0], rel=1e-9)


# --- one feature vector


def test_metric_guarantee_counts_the_rounding_of_every_coordinate() -> None:
    guarantee = VectorLaplace(38, 0.05).guarantee
    assert guarantee.per_distance
    assert guarantee.protects.distance == "L1"
    assert guarantee.epsilon == 1.0 / 0.05
    assert Fraction(guarantee.rounding) == Fraction(38, 1 << 20)
    assert guarantee.epsilon * guarantee.rounding == pytest.approx(7.2e-4, rel=0.01)


def test_loss_is_at_most_grid_distance_times_rate_with_equality_beyond_both(rng: np.random.Generator) -> None:
    mechanism = VectorLaplace(4, 0.3, grid_bits=3)
    rate = 1 / (0.3 * 8)
    for _ in range(200):
        here, there = rng.integers(0, 9, size=(2, 4)) / 8
        distance = float(np.abs(here - there).sum() * 8)
        outputs = rng.integers(-15, 25, size=(300, 4))
        loss = mechanism.log_pmf(outputs, here) - mechanism.log_pmf(outputs, there)
        assert float(np.abs(loss).max()) <= distance * rate + 1e-9
        beyond = np.where(here > there, 20, -10)[None, :]
        loss = mechanism.log_pmf(beyond, here) - mechanism.log_pmf(beyond, there)
        assert float(loss[0]) == pytest.approx(distance * rate, abs=1e-9)


def test_redrawing_until_the_value_fits_the_domain_would_double_the_loss() -> None:
    """The broken twin: the normaliser then depends on the features."""
    mechanism = VectorLaplace(1, 0.1, grid_bits=10)
    inside = np.arange(0, 1025)[:, None]

    def redrawn(feature: float) -> np.ndarray:
        law = np.exp(mechanism.log_pmf(inside, [feature]))
        return law / law.sum()

    worst = float(np.abs(np.log(redrawn(0.0)) - np.log(redrawn(1 / 1024))).max())
    assert worst > 1.9 * mechanism.guarantee.epsilon / 1024


def test_features_are_clipped_and_rounded_to_the_nearest_grid_point() -> None:
    mechanism = VectorLaplace(5, 1e-9, grid_bits=2)  # no noise to speak of: this is about the grid
    value = mechanism.release([-3.0, 0.1, 0.13, 0.9, 7.0], ReplayedNoise(1)).value
    assert value.steps.tolist() == [0, 0, 1, 4, 4]
    assert value.to_floats().tolist() == [0.0, 0.0, 0.25, 1.0, 1.0]


def test_releases_are_saturated_after_the_noise_so_that_they_fit_32_bits() -> None:
    value = VectorLaplace(2000, 1e6, grid_bits=20).release(np.zeros(2000), ReplayedNoise(1)).value
    assert value.steps.max() == (1 << 31) - 1
    assert value.steps.min() == -(1 << 31) + 1


def test_noise_does_not_depend_on_the_features() -> None:
    """Same bytes, other features: the difference of the releases is the difference of the grid points."""
    mechanism = VectorLaplace(3, 0.2)
    one = mechanism.release([0.0, 0.5, 1.0], ReplayedNoise(9)).value.steps
    other = mechanism.release([1.0, 0.25, 0.0], ReplayedNoise(9)).value.steps
    assert (other - one).tolist() == [1 << 20, -(1 << 18), -(1 << 20)]


def test_the_same_bytes_give_the_same_release() -> None:
    mechanism = VectorLaplace(3, 0.2)
    first, again = (mechanism.release([0.1, 0.2, 0.3], ReplayedNoise(4)).value.steps for _ in range(2))
    assert first.tobytes() == again.tobytes()


def test_nothing_is_drawn_for_refused_features() -> None:
    with pytest.raises(ValueError, match="finite"):
        VectorLaplace(1, 1.0).release([math.nan], ScriptedNoise())


@pytest.mark.parametrize("scale", [0.1, 0.3, 1 / 3, 0.7, 3.0, 7.7, 1e-3])
def test_the_epsilon_of_a_noisy_vector_is_rounded_up(scale: float) -> None:
    """1/0.3 and its like are no floats: the nearest one may lie below."""
    assert Fraction(VectorLaplace(3, scale).guarantee.epsilon) >= 1 / Fraction(scale)


def test_an_infinite_cell_counts_as_none() -> None:
    total = bounded_row_sum([[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 1.0]], 2, 1.0, norm=1)
    assert total.tolist() == [0, STEPS]
