"""The sampler test, with teeth. Seeds are fixed; a threshold of 1e-9 is missed once in 10^9 free seeds."""

import numpy as np
import pytest

from tacit.audit import distribution
from tacit.audit.distribution import THRESHOLD, counts_of, lattice_p_value, off_by, p_value
from tacit.errors import InvalidParameter
from tacit.mechanisms import ExponentialMechanism, ProfileScores, RandomisedResponse, ReplayedNoise, VectorLaplace
from tacit.mechanisms.samplers import integers

DRAWS = 100_000


def test_draws_from_the_law_pass_and_an_epsilon_off_by_ten_percent_is_rejected() -> None:
    mechanism = RandomisedResponse(4, 1.5)
    counts = counts_of(mechanism.release_many(np.full(DRAWS, 2), ReplayedNoise(1)).value, 4)
    assert p_value(counts, mechanism.pmf(2)) > THRESHOLD
    assert p_value(counts, off_by(mechanism, 1.1).pmf(2)) < THRESHOLD
    assert p_value(counts, off_by(mechanism, 1 / 1.1).pmf(2)) < THRESHOLD


def test_a_swapped_pair_of_cells_is_rejected() -> None:
    mechanism = ExponentialMechanism(ProfileScores(0.0, 1.0), 1.0)
    raw = [0.0, 0.5, 0.8, 1.0]
    counts = counts_of(mechanism.release_many(np.tile(raw, (DRAWS, 1)), ReplayedNoise(2)).value, 4)
    law = mechanism.pmf(raw)
    assert p_value(counts, law) > THRESHOLD
    assert p_value(counts, law[[0, 2, 1, 3]]) < THRESHOLD


def test_a_lattice_scale_off_by_ten_percent_is_rejected() -> None:
    mechanism = VectorLaplace(DRAWS, 0.1)
    drawn = mechanism.release(np.zeros(DRAWS), ReplayedNoise(3)).value.steps

    def fit(law: VectorLaplace) -> float:
        return lattice_p_value(drawn, lambda n: integers.discrete_laplace_cdf(n, law.noise_law.width))

    assert fit(mechanism) > THRESHOLD
    assert fit(off_by(mechanism, 1.1)) < THRESHOLD
    assert fit(off_by(mechanism, 1 / 1.1)) < THRESHOLD


def test_a_lattice_that_is_shifted_is_rejected() -> None:
    mechanism = VectorLaplace(DRAWS, 0.1, grid_bits=5)
    drawn = mechanism.release(np.zeros(DRAWS), ReplayedNoise(4)).value.steps

    def fit(shift: int) -> float:
        return lattice_p_value(drawn, lambda n: integers.discrete_laplace_cdf(n - shift, mechanism.noise_law.width))

    assert fit(0) > THRESHOLD
    assert fit(1) < THRESHOLD


def test_coarse_lattices_have_fewer_cells_and_still_a_law() -> None:
    noise = integers.sample_discrete_laplace(
        VectorLaplace(1, 0.5, grid_bits=0).noise_law.width, 10_000, ReplayedNoise(5)
    )
    scale = VectorLaplace(1, 0.5, grid_bits=0).noise_law.width
    assert lattice_p_value(noise, lambda n: integers.discrete_laplace_cdf(n, scale)) > THRESHOLD


def test_an_impossible_outcome_is_rejected_outright() -> None:
    assert p_value([10, 1], [1.0, 0.0]) == 0.0


def test_small_cells_are_pooled_by_the_law_alone() -> None:
    law = np.array([0.499, 0.499, 0.001, 0.001])
    assert p_value(np.array([499, 499, 2, 0]), law) == p_value(np.array([499, 499, 0, 2]), law)
    assert p_value(np.array([499, 440, 61, 0]), law) < THRESHOLD


def test_sixty_percent_on_one_of_ten_equal_items_is_rejected() -> None:
    counts = np.array([600, *[44] * 4, *[45] * 4, 44])
    assert p_value(counts, np.full(10, 0.1)) < THRESHOLD


@pytest.mark.parametrize("counts", [np.array([0.6, 0.4]), np.array([0, 0]), np.array([3, -1]), np.array([1, 2, 3])])
def test_what_are_no_counts_is_refused(counts: np.ndarray) -> None:
    with pytest.raises(InvalidParameter):
        p_value(counts, [0.5, 0.5])


def test_only_mechanisms_with_an_epsilon_or_a_scale_can_be_moved() -> None:
    assert distribution.off_by(RandomisedResponse(2, 1.0), 2.0).epsilon == 2.0
    assert distribution.off_by(VectorLaplace(1, 1.0), 2.0).scale == 0.5
    with pytest.raises(InvalidParameter):
        distribution.off_by(3.0)
