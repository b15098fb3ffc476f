"""OpenDP as a second opinion on the claims: its privacy maps at our noise scales give our epsilons."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest

from tacit.guarantees import Relation
from tacit.mechanisms import GaussianSum, LaplaceNoisyMax, LaplaceSum, ProfileScores, VoteTotals
from tacit.mechanisms.inputs import STEPS


@pytest.fixture(autouse=True)
def _contrib() -> None:
    dp.enable_features("contrib")


def vectors(metric: dp.Metric) -> tuple[dp.Domain, dp.Metric]:
    return dp.vector_domain(dp.atom_domain(T="i64")), metric


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("relation", list(Relation))
def test_laplace_sums_have_the_epsilon_of_opendps_map(epsilon: float, relation: Relation) -> None:
    mechanism = LaplaceSum(3, 2.0, epsilon, relation)
    theirs = dp.m.make_laplace(*vectors(dp.l1_distance(T="i64")), scale=float(mechanism.noise_law.width))
    sensitivity = STEPS * (2 if relation is Relation.REPLACE else 1)
    assert theirs.map(sensitivity) == pytest.approx(mechanism.guarantee.epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("relation", list(Relation))
def test_gaussian_sums_have_the_rho_of_opendps_map(epsilon: float, relation: Relation) -> None:
    mechanism = GaussianSum(3, 2.0, epsilon, 1e-6, relation)
    theirs = dp.m.make_gaussian(*vectors(dp.l2_distance(T="f64")), scale=math.sqrt(mechanism.noise_law.width))
    sensitivity = STEPS * (2 if relation is Relation.REPLACE else 1)
    loss = mechanism.guarantee.loss
    assert loss is not None
    assert theirs.map(float(sensitivity)) == pytest.approx(loss.value, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_noisy_max_has_the_epsilon_of_opendps_map_and_half_of_it_for_monotone_scores(epsilon: float) -> None:
    for source, monotone in ((ProfileScores(0.0, 1.0, steps=64), False), (VoteTotals(steps=64), True)):
        rate = 1 / LaplaceNoisyMax(source, epsilon).scale
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=monotone)
        theirs = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=float(1 / rate))
        assert theirs.map(64) == pytest.approx(epsilon, rel=1e-9)
        assert rate == Fraction(epsilon) / (64 if monotone else 128)
