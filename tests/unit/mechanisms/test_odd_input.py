"""Input that no caller should give: always a typed error, never a bare one from numpy, never a wrong answer."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Neighbours, Relation
from tacit.mechanisms import (
    ExponentialMechanism,
    GaussianSum,
    GumbelTopK,
    LaplaceNoisyMax,
    LaplaceSum,
    PermuteAndFlip,
    ProfileScores,
    RandomisedResponse,
    SparseVector,
    VectorLaplace,
    VoteTotals,
)
from tacit.mechanisms.inputs import STEPS, bounded_row_sum
from tests.contracts.mechanism import unless_refused

SCORES = ProfileScores(0.0, 1.0)


@pytest.mark.parametrize("value", [[0, 1], [2], np.array([0, 1]), []], ids=repr)
def test_a_single_report_takes_a_single_value(value: Any) -> None:
    """Two values in, one report out would be a wrong answer about one of them."""
    mechanism = RandomisedResponse(3, 1.0)
    with pytest.raises(InvalidInput):
        mechanism.release(value)
    with pytest.raises(InvalidInput):
        mechanism.pmf(value)


def test_ragged_values_are_refused_with_a_code() -> None:
    with pytest.raises(InvalidInput):
        RandomisedResponse(3, 1.0).release_many([[0], [1, 2]])


def test_an_empty_list_of_values_is_no_reports() -> None:
    assert RandomisedResponse(3, 1.0).release_many([]).value.shape == (0,)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: ExponentialMechanism(SCORES, 1.0).release([10**400, 1]),
        lambda: VectorLaplace(2, 1.0).release([10**400, 1]),
        lambda: RandomisedResponse(3, 1.0).release(10**400),
    ],
    ids=["scores", "features", "value"],
)
def test_whole_numbers_beyond_floats_are_refused_with_a_code(attempt: Any) -> None:
    with pytest.raises(InvalidInput):
        attempt()


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: ExponentialMechanism(SCORES, 1.0).release(np.array([1j, 1.0])),
        lambda: PermuteAndFlip(VoteTotals(), 1.0).release(np.array([[1j, 1.0]])),
        lambda: VectorLaplace(2, 1.0).release(np.array([1j, 1.0])),
        lambda: LaplaceSum(2, 1.0, 1.0).release(np.array([[1j, 1.0]])),
        lambda: LaplaceSum(2, 1.0, 1.0).release(sparse.csr_array(np.array([[1j, 1.0]]))),
        lambda: PermuteAndFlip(VoteTotals(), 1.0).release(sparse.csr_array(np.array([[1j, 1.0]]))),
    ],
    ids=["scores", "votes", "features", "rows", "sparse rows", "sparse votes"],
)
def test_complex_numbers_are_refused_with_a_code(attempt: Any) -> None:
    with pytest.raises(InvalidInput):
        attempt()


def test_one_sparse_axis_is_no_table_of_votes() -> None:
    with pytest.raises(InvalidInput):
        PermuteAndFlip(VoteTotals(), 1.0).release(sparse.coo_array(np.array([1.0, 2.0])))


@pytest.mark.parametrize(
    "make",
    [
        lambda n: RandomisedResponse(n(3), 1.0).release(1),
        lambda n: GumbelTopK(SCORES, n(2), 1.0).release([0.1, 0.2, 0.3]),
        lambda n: ExponentialMechanism(ProfileScores(0.0, 1.0, steps=n(8)), 1.0).release([0.1, 0.2]),
        lambda n: LaplaceNoisyMax(VoteTotals(steps=n(8)), 1.0).release([[0.1, 0.2]]),
        lambda n: VectorLaplace(n(1), 1.0, grid_bits=n(20)).release([0.5]),
        lambda n: LaplaceSum(n(1), 1.0, 1.0).release([[0.5]]),
    ],
    ids=["k", "picks", "steps", "vote steps", "dimension", "columns"],
)
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_whole_parameters_of_numpy_work_or_are_refused(make: Any, kind: Any) -> None:
    release = unless_refused(lambda: make(kind))
    if release is not None:
        assert release.guarantee.to_json() == make(int).guarantee.to_json()


@pytest.mark.filterwarnings(
    "ignore:overflow encountered:RuntimeWarning"
)  # a wrong sensitivity must fail even where it only warns
def test_a_sensitivity_does_not_wrap_around_in_a_small_integer_type() -> None:
    """2 * 200 is 144 in 8 bits: a rate 2.8 times too large would spend 2.8 times the claim."""
    for source in (ProfileScores, lambda low, high, steps: VoteTotals(high, steps, Relation.REPLACE)):
        mechanism = unless_refused(lambda s=source: ExponentialMechanism(s(0.0, 1.0, steps=np.uint8(200)), 1.0))
        assert mechanism is None or mechanism.rate == Fraction(1, 400)
    sparse_vector = unless_refused(lambda: SparseVector(VoteTotals(), 0, 1.0, hits=np.uint8(200)))
    if sparse_vector is not None:
        assert sparse_vector.scales == SparseVector(VoteTotals(), 0, 1.0, hits=200).scales


@pytest.mark.parametrize("epsilon", [1e200, 1e308])
def test_huge_epsilons_on_many_votes_do_not_warn(epsilon: float) -> None:
    for kind in (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax):
        release = unless_refused(lambda k=kind: k(VoteTotals(), epsilon).release([[1.0, 0.0]] * 1000))
        assert release is None or release.value == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda relation: VoteTotals(relation=relation),
        lambda relation: LaplaceSum(1, 1.0, 1.0, relation),
        lambda relation: GaussianSum(1, 1.0, 1.0, 1e-6, relation),
    ],
    ids=["votes", "laplace", "gaussian"],
)
def test_an_unknown_relation_is_refused_with_a_code_and_a_known_one_may_be_written_out(make: Any) -> None:
    assert make("replaced by any other") == make(Relation.REPLACE)
    for unknown in ("swapped", None, 3):
        with pytest.raises(InvalidParameter):
            make(unknown)


def test_a_cell_that_is_no_number_counts_as_none_and_refuses_nobody_else() -> None:
    """Refusing the whole table for one user's cell would be an answer about that user."""
    for cell in (10**400, float("nan"), float("inf"), None, "text"):
        assert VoteTotals().integers([[1.0, 1.0], [cell, 1.0]]).tolist()[1] == 2
        assert bounded_row_sum([[0.5, 0.5], [cell, 0.0]], 2, 1.0, norm=1).tolist() == [STEPS // 2, STEPS // 2]


def test_a_table_without_users_is_released_like_any_other() -> None:
    for empty in ([], np.zeros((0, 2)), sparse.csr_array((0, 2))):
        assert LaplaceSum(2, 1.0, 1.0).release(empty).value.steps.shape == (2,)
        assert GaussianSum(2, 1.0, 1.0, 1e-6).release(empty).value.steps.shape == (2,)


@pytest.mark.parametrize("protects", [ONE_USER, Neighbours.features("L1", radius=1.0)], ids=str)
def test_randomised_response_does_not_claim_to_hide_whether_somebody_answered(protects: Neighbours) -> None:
    with pytest.raises(InvalidParameter):
        RandomisedResponse(3, 1.0, protects=protects)
