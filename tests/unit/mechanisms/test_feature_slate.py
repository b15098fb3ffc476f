"""Slates of a feature map: what a user's contribution becomes, what it costs, and what never depends on anybody else."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, LossKind, Relation
from tacit.mechanisms import FeatureSlate, ReplayedNoise
from tacit.mechanisms.tempered_slate import _coordinates, _orthogonal
from tests.contracts.mechanism import ALARM, chi_square, log_ratio
from tests.unit.mechanisms.slate_feature_cases import public, slates_of

STEP = 2.0**-16


def kernel_of(mechanism: FeatureSlate, rows: Any) -> NDArray[np.float64]:
    half = mechanism.contributions(rows)
    return np.asarray(half @ half.T)


def slow(features: NDArray[np.float64], rows: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """The sum of c c^T, c = F z cut to the norm, without a grid."""
    total = np.zeros((len(features), len(features)))
    for row in rows:
        c = features @ row
        c = c / max(1.0, float(np.linalg.norm(c)) / math.sqrt(bound))
        total += np.outer(c, c)
    return total


# --- contributions


@pytest.mark.parametrize("shape", [(6, 3), (3, 3), (4, 7), (1, 1)])
@pytest.mark.parametrize("bound", [1.0, 0.25, 9.0])
def test_the_kernel_is_that_of_the_cut_contributions_up_to_the_grid(
    shape: tuple[int, int], bound: float, rng: np.random.Generator
) -> None:
    features = rng.normal(size=shape)
    rows = rng.normal(size=(20, shape[1])) * rng.choice([0.01, 0.5, 30.0], size=(20, 1))
    mechanism = FeatureSlate(features, 1, 1.0, bound=bound)
    found = kernel_of(mechanism, rows)
    np.testing.assert_allclose(found, slow(features, rows, bound), atol=20 * 4 * 3 * STEP * bound)
    np.testing.assert_allclose(kernel_of(mechanism, sparse.csr_array(rows)), found, atol=0.0)


def test_no_contribution_is_longer_than_the_bound(rng: np.random.Generator) -> None:
    features = rng.normal(size=(8, 4)) * 10.0
    for bound in (1.0, 0.3, 7.0):
        mechanism = FeatureSlate(features, 2, 1.0, bound=bound)
        for scale in (0.1, 1.0, 1e3, 1e150):
            lengths = [float(np.trace(kernel_of(mechanism, rng.normal(size=(1, 4)) * scale))) for _ in range(50)]
            assert max(lengths) <= bound
            assert max(lengths) > 0.99 * bound


def test_a_cut_contribution_keeps_its_direction() -> None:
    """Cutting cell by cell before the norm would turn (100, 1) into (1, 1)."""
    for row in ([100.0, 1.0], [-1e200, 1e198], [3.0, 0.03]):
        kernel = kernel_of(FeatureSlate(np.eye(2), 1, 1.0), [row])
        assert kernel[0, 1] / kernel[0, 0] == pytest.approx(row[1] / row[0], abs=4 * STEP)
        assert np.trace(kernel) == pytest.approx(1.0, abs=4 * STEP)


def test_contributions_depend_on_their_own_user_to_the_last_bit(rng: np.random.Generator) -> None:
    _, factor = _orthogonal(rng.normal(size=(50, 13)))
    rows = rng.normal(size=(301, 13))
    together = _coordinates(rows, factor, 1.0)
    for user in (0, 7, 300):
        assert (_coordinates(rows[[user]], factor, 1.0)[0] == together[user]).all()
        assert (_coordinates(rows[user:], factor, 1.0)[0] == together[user]).all()


def test_one_user_moves_the_exact_moments_by_her_own_and_blocks_change_nothing(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    features = rng.normal(size=(9, 3))
    mechanism = FeatureSlate(features, 2, 1.0)
    _, factor = _orthogonal(mechanism.features)
    rows = rng.normal(size=(50, 3))
    moments = mechanism._moments(rows, factor)
    assert moments.dtype == np.int64
    assert (moments - mechanism._moments(rows[1:], factor) == mechanism._moments(rows[:1], factor)).all()
    monkeypatch.setattr("tacit.mechanisms.tempered_slate._USERS", 7)
    assert (mechanism._moments(rows[::-1], factor) == moments).all()


def test_features_that_repeat_each_other_add_no_direction(rng: np.random.Generator) -> None:
    features = rng.normal(size=(6, 2))
    doubled = np.hstack([features, features])
    rows = rng.normal(size=(9, 2)) * 0.1
    apart = kernel_of(FeatureSlate(doubled, 1, 1.0), np.hstack([rows, rows]))
    np.testing.assert_allclose(apart, kernel_of(FeatureSlate(features, 1, 1.0), 2 * rows), atol=9 * 10 * STEP)


def test_the_basis_makes_nothing_longer(rng: np.random.Generator) -> None:
    for shape in ((200, 12), (5, 9), (40, 1)):
        basis, factor = _orthogonal(rng.normal(size=shape))
        assert np.linalg.norm(basis, 2) < 1.0
        assert np.linalg.norm(basis, 2) > 1.0 - 1e-11
        assert basis.shape[1] == factor.shape[0] == min(shape)


# --- the law and what it costs


def test_slates_have_their_law_and_an_epsilon_off_by_ten_percent_is_seen(rng: np.random.Generator) -> None:
    features = public(rng.normal(size=(6, 2)))
    rows = rng.normal(size=(40, 2))
    mechanism = FeatureSlate(features, 2, 1.0)
    kernel = kernel_of(mechanism, rows) + mechanism.sigma * np.eye(6)
    minors = np.array([np.linalg.det(kernel[np.ix_(y, y)]) for y in combinations(range(6), 2)])
    law = mechanism.pmf(rows)
    np.testing.assert_allclose(law, minors / minors.sum(), rtol=1e-10)
    counts = np.bincount(slates_of(mechanism, rows, ReplayedNoise(1), 40_000), minlength=15)
    assert chi_square(counts, law) > ALARM
    few = rows[:4]  # where the jitter weighs most
    counts = np.bincount(slates_of(mechanism, few, ReplayedNoise(2), 200_000), minlength=15)
    for epsilon in (0.9, 1.1):
        assert chi_square(counts, FeatureSlate(features, 2, epsilon).pmf(few)) < ALARM


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_user_costs_more_than_epsilon_nor_moves_the_loss_by_more_than_its_range(
    k: int, relation: Relation, rng: np.random.Generator
) -> None:
    features = rng.normal(size=(4, 3))
    mechanism = FeatureSlate(features, k, 1.0, relation=relation)
    loss = mechanism.guarantee.loss
    assert loss is not None
    assert (loss.kind, loss.value) == (LossKind.BOUNDED_RANGE, 1.0 if relation is Relation.ADD_REMOVE else 2.0)
    for _ in range(150):
        others = rng.normal(size=(rng.integers(0, 6), 3)) * rng.choice([0.1, 1.0, 100.0], size=3)
        one, other = rng.normal(size=(2, 1, 3)) * 50.0
        here = np.vstack([others, one])
        there = others if relation is Relation.ADD_REMOVE else np.vstack([others, other])
        laws = mechanism.pmf(here), mechanism.pmf(there)
        assert log_ratio(*laws) <= 1.0 + 1e-9
        assert float(np.ptp(np.log(laws[0]) - np.log(laws[1]))) <= loss.value + 1e-9


def test_adding_a_user_beside_a_crowd_comes_as_near_to_epsilon_as_one_likes() -> None:
    """Slates of two of three items: the others carry large weights, the new user an item that nobody has."""
    mechanism = FeatureSlate(np.eye(3), 2, 1.0)
    crowd = np.repeat(np.eye(3)[1:], 5_000, axis=0)
    loss = log_ratio(mechanism.pmf(crowd), mechanism.pmf(np.vstack([crowd, [[1.0, 0.0, 0.0]]])))
    assert 0.999 < loss <= 1.0 + 1e-9


def test_guarantee_says_unit_and_real_arithmetic() -> None:
    for relation, protects in ((Relation.ADD_REMOVE, ONE_USER), (Relation.REPLACE, ONE_USER_REPLACED)):
        guarantee = FeatureSlate(np.eye(3), 2, 0.7, relation=relation).guarantee
        assert (guarantee.epsilon, guarantee.protects) == (0.7, protects)
        assert guarantee.assumes == {"real arithmetic in the sampler"}
    assert FeatureSlate(np.eye(3), 2, 1.0).sigma == pytest.approx(0.581977, abs=1e-6)
    assert FeatureSlate(np.eye(3), 2, 1.0, bound=4.0).sigma == pytest.approx(4 * 0.581977, abs=4e-6)


def test_the_only_slate_costs_nothing() -> None:
    release = FeatureSlate(np.eye(3), 3, 1.0).release(np.ones((5, 3)))
    assert release.value.tolist() == [0, 1, 2]
    assert release.guarantee.epsilon == 0.0
    assert release.guarantee.assumes == frozenset()


# --- what is refused, and what never is


def test_no_record_is_refused_whatever_is_in_it(rng: np.random.Generator) -> None:
    odd: list[Any] = [math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, 0.0, 1.0, 1e6, None, "x", 10**400]
    mechanism = FeatureSlate(rng.normal(size=(6, 3)) * 1e3, 4, 1.0)
    for users in (0, 1, 2, 40) * 5:
        table = [[odd[i] for i in rng.integers(0, len(odd), 3)] for _ in range(users)]
        assert mechanism.release(table, ReplayedNoise(1)).value.shape == (4,)
        assert np.isfinite(mechanism.pmf(table)).all()


def test_what_is_no_number_counts_as_zero() -> None:
    mechanism = FeatureSlate(np.eye(3), 2, 1.0)
    odd = [[math.nan, 0.5, math.inf], [None, "x", 0.25]]
    plain = [[0.0, 0.5, 0.0], [0.0, 0.0, 0.25]]
    assert (kernel_of(mechanism, odd) == kernel_of(mechanism, plain)).all()


def test_a_coordinate_that_overflows_counts_as_zero_and_the_others_stand() -> None:
    kernel = kernel_of(FeatureSlate(np.diag([1e3, 1.0]), 1, 1.0), [[1e308, 0.5]])
    assert kernel[0, 0] == 0.0
    assert kernel[1, 1] == pytest.approx(0.25, abs=2 * STEP)


def test_rows_of_another_width_are_refused() -> None:
    for rows in (np.zeros((2, 4)), np.zeros(3), sparse.csr_array((2, 2))):
        with pytest.raises(InvalidInput):
            FeatureSlate(np.eye(3), 2, 1.0).release(rows)


def test_many_items_can_be_drawn_but_not_listed(rng: np.random.Generator) -> None:
    mechanism = FeatureSlate(rng.normal(size=(6_000, 5)), 10, 1.0)
    prepared = mechanism.prepare(rng.normal(size=(50, 5)))
    chosen = prepared.release_many(20, ReplayedNoise(1)).value
    assert chosen.shape == (20, 10)
    assert (np.diff(chosen, axis=1) > 0).all()
    assert "50" not in repr(prepared)
    with pytest.raises(InvalidParameter, match="fewer items"):
        mechanism.pmf(np.zeros((0, 5)))


def test_an_epsilon_that_needs_more_jitter_than_a_float_holds_is_refused_when_it_is_built() -> None:
    with pytest.raises(InvalidParameter, match="jitter"):
        FeatureSlate(np.eye(3), 2, 1e-320)
