"""Noise on a lattice: exact shifts through replayed noise, exact Renyi divergences and deltas."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.audit import exact, lattice
from tacit.audit.cases import sums
from tacit.audit.twins.sums import LocalSensitivity
from tacit.guarantees import Relation
from tacit.guarantees.concentrated import delta_of_gaussian
from tacit.mechanisms import GaussianSum, LaplaceSum, VectorLaplace
from tacit.mechanisms.inputs import STEPS, bounded_row_sum
from tacit.mechanisms.samplers import integers


def test_centres_are_the_sums_themselves() -> None:
    tables = [np.zeros((0, 3)), np.array([[0.5, -0.25, 0.0]]), np.array([[9.0, 0.0, 0.0], [0.0, 0.0, 1e-9]])]
    for mechanism, norm in ((LaplaceSum(3, 1.0, 1.0), 1), (GaussianSum(3, 1.0, 1.0, 1e-6), 2)):
        found = lattice.centres(mechanism, tables)
        by_hand = np.stack([bounded_row_sum(table, 3, 1.0, norm) for table in tables])
        assert found is not None
        assert np.array_equal(found, by_hand - by_hand[0])


def test_centres_of_features_are_their_grid_points() -> None:
    found = lattice.centres(VectorLaplace(2, 1.0, grid_bits=2), [[0.0, 0.0], [0.5, 1.0], [0.26, 7.0]])
    assert found is not None
    assert found.tolist() == [[0, 0], [2, 4], [1, 4]]


def test_noise_that_depends_on_the_data_is_found_out() -> None:
    twin = LocalSensitivity(LaplaceSum(1, 1.0, 1.0))
    assert lattice.centres(twin, [np.array([[1.0, 1.0]]), np.array([[1.0, 1.0], [4.0, -4.0]])]) is None


@pytest.mark.parametrize("relation", list(Relation))
def test_hostile_rows_never_move_a_sum_by_more_than_its_sensitivity(relation: Relation) -> None:
    tables, pairs = sums._neighbours(relation)
    most = STEPS if relation is Relation.ADD_REMOVE else 2 * STEPS
    for mechanism in (LaplaceSum(3, 2.0, 1.0, relation), GaussianSum(3, 2.0, 1.0, 1e-6, relation)):
        centre = lattice.centres(mechanism, tables)
        assert centre is not None
        shift = lattice.shifts(centre, pairs)
        if isinstance(mechanism, LaplaceSum):
            assert lattice.largest_l1(shift) == most
        else:
            assert lattice.largest_squares(shift) == most**2


def test_the_largest_laplace_ratio_is_found_at_the_probed_outputs() -> None:
    scale = Fraction(7, 2)

    def pmf(steps: np.ndarray, total: int) -> np.ndarray:
        return integers.discrete_laplace_pmf(np.asarray(steps) - total, scale)

    for shift in (0, 1, 2, 5, 9):
        every = np.arange(-60, 61)
        by_hand = float(np.abs(np.log(pmf(every, 0) / pmf(every, shift))).max())
        assert lattice.laplace_loss(pmf, shift) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(2), Fraction(30), Fraction(4000)])
def test_renyi_divergences_on_the_lattice_are_those_of_the_whole_law(variance: Fraction) -> None:
    reach = 40 * math.ceil(math.sqrt(variance)) + 40
    points = np.arange(-reach, reach + 1)
    deviation = math.sqrt(variance)

    def pmf(steps: np.ndarray, total: int) -> np.ndarray:
        return integers.discrete_gaussian_pmf(np.asarray(steps) - total, variance)

    shift = max(1, round(deviation / 2))
    for order in (1.0, 1.5, 2.0, 5.0):
        p, q = pmf(points, shift), pmf(points, 0)
        kept = (p > 1e-300) & (q > 1e-300)
        found = lattice.gaussian_renyi(pmf, shift, order, deviation)
        assert found == pytest.approx(float(exact.renyi(p[kept], q[kept], order)), rel=1e-9)
        assert found <= order * shift**2 / (2.0 * float(variance)) * (1.0 + 1e-12)  # what zCDP claims


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(9), Fraction(2500)])
def test_deltas_on_the_lattice_are_those_of_the_whole_law(variance: Fraction) -> None:
    reach = 45 * math.ceil(math.sqrt(variance))
    points = np.arange(-reach, reach + 1)
    shift = max(1, round(math.sqrt(variance)))
    laws = np.stack([integers.discrete_gaussian_pmf(points - centre, variance) for centre in (shift, 0)])
    for epsilon in (0.1, 1.0, 3.0):
        by_hand = exact.worst_delta(laws / laws.sum(axis=1, keepdims=True), epsilon)
        assert lattice.gaussian_delta(shift, variance, epsilon) == pytest.approx(by_hand, rel=1e-9, abs=1e-15)


def test_the_tail_by_the_normal_law_agrees_with_the_sum_where_both_apply() -> None:
    variance = Fraction(10**6)
    points = np.arange(-40_000, 40_001)
    law = integers.discrete_gaussian_pmf(points, variance)
    above = np.cumsum(law[::-1])[::-1]
    at = np.array([0, 1000, 3000, 5000])
    assert lattice.gaussian_tail(at, variance) == pytest.approx(above[at + 40_000], rel=2e-6)
    assert lattice.gaussian_tail(-3000, variance) == pytest.approx(above[-3000 + 40_000], rel=2e-6)


def test_a_fine_lattice_has_the_delta_of_the_normal_law() -> None:
    variance = Fraction(3 * STEPS**2)
    mu = STEPS / math.sqrt(variance)
    for epsilon in (0.5, 1.0, 2.0):
        assert lattice.gaussian_delta(STEPS, variance, epsilon) == pytest.approx(
            delta_of_gaussian(mu, epsilon), rel=1e-9
        )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-8), (1.0, 1e-6), (4.0, 1e-5)])
def test_gaussian_sums_stay_within_their_delta(epsilon: float, delta: float) -> None:
    mechanism = GaussianSum(1, 1.0, epsilon, delta)
    assert 0.3 * delta < lattice.gaussian_delta(STEPS, mechanism.noise_law.width, epsilon) * 20.0
    assert lattice.gaussian_delta(STEPS, mechanism.noise_law.width, epsilon) <= delta
    for smaller in (STEPS // 2, STEPS // 10, 1):
        assert lattice.gaussian_delta(smaller, mechanism.noise_law.width, epsilon) <= delta
