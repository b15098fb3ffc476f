"""Selecting one candidate, or some: known laws, special cases, extreme parameters."""

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, ONE_USER, ONE_USER_REPLACED, LossKind, Relation
from tacit.mechanisms import (
    ExponentialMechanism,
    GumbelTopK,
    LaplaceNoisyMax,
    PermuteAndFlip,
    ProfileScores,
    RandomisedResponse,
    ReplayedNoise,
    VoteTotals,
)
from tests.unit.mechanisms import reference
from tests.unit.mechanisms.scripted import ScriptedNoise, native

SELECTIONS = (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax)


# --- randomised response


def test_randomised_response_vectors() -> None:
    np.testing.assert_allclose(RandomisedResponse(4, math.log(3.0)).pmf(0), [1 / 2, 1 / 6, 1 / 6, 1 / 6], atol=1e-9)
    assert RandomisedResponse(4, 5.0).pmf(2)[2] == pytest.approx(0.98018666, abs=5e-9)
    assert RandomisedResponse(15, 5.0).pmf(14)[14] == pytest.approx(0.91380009, abs=5e-9)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-15, 1e-9, 0.1, 1.0, math.log(3.0), 13.9, 40.0])
@pytest.mark.parametrize("k", [2, 3, 1000, 1 << 20])
def test_randomised_response_never_exceeds_its_claim_in_exact_arithmetic(k: int, epsilon: float) -> None:
    truth = RandomisedResponse(k, epsilon).truth
    lie = (1 - truth) / (k - 1)
    ratio = truth / lie
    e = reference.power_of_e(Fraction(epsilon))
    assert ratio >= 1  # a truth less likely than a lie would be a loss of its own, above any claim below 2^-32
    assert ratio.numerator <= e * ratio.denominator  # never above e^epsilon, whatever the rounding
    assert ratio.numerator >= e * ratio.denominator * (1 - 2.0**-31)  # and hardly below


def test_each_draw_of_a_single_report_has_its_value() -> None:
    mechanism = RandomisedResponse(3, 1.0)
    weight, base = mechanism.true_weight, 1 << 32
    size = (weight + 2 * base - 1).bit_length()
    shift = -size % 8

    def report(draw: int, value: int) -> int:
        return mechanism.release(value, ScriptedNoise((draw << shift).to_bytes((size + 7) // 8, "big"))).value

    for value, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        assert [report(0, value), report(weight - 1, value)] == [value, value]
        assert [report(weight, value), report(weight + base - 1, value)] == [others[0], others[0]]
        assert [report(weight + base, value), report(weight + 2 * base - 1, value)] == [others[1], others[1]]


def test_lies_of_a_batch_are_the_other_values_and_all_of_them() -> None:
    for value, others in ((0, [1, 2, 3]), (1, [0, 2, 3]), (3, [0, 1, 2])):
        noise = ScriptedNoise(native([65535] * 3, 2), native([0, 1, 2], 4))  # three lies, each of the draws once
        assert RandomisedResponse(4, 1.0).release_many([value] * 3, noise).value.tolist() == others


def test_reports_of_no_users_are_no_reports() -> None:
    assert RandomisedResponse(3, 1.0).release_many(np.zeros(0, dtype=np.int64)).value.shape == (0,)


def test_values_of_several_users_keep_their_places() -> None:
    values = np.arange(5).repeat(3)
    assert RandomisedResponse(5, 40.0).release_many(values, ReplayedNoise(1)).value.tolist() == values.tolist()
    assert values.tolist() == np.arange(5).repeat(3).tolist()


# --- published laws


def test_vector_of_three_scores() -> None:
    scores, epsilon = [1.0, 0.5, 0.0], 2.0 * math.log(4.0)
    source = ProfileScores(0.0, 1.0)
    np.testing.assert_allclose(ExponentialMechanism(source, epsilon).pmf(scores), [4 / 7, 2 / 7, 1 / 7], atol=1e-12)
    np.testing.assert_allclose(PermuteAndFlip(source, epsilon).pmf(scores), [2 / 3, 11 / 48, 5 / 48], atol=1e-12)


def test_vector_of_four_scaled_scores() -> None:
    scores, epsilon = [1.0, 0.75, 0.25, 0.0], 2.0 * math.log(2.0)
    source = ProfileScores(0.0, 1.0)
    np.testing.assert_allclose(
        ExponentialMechanism(source, epsilon).pmf(scores), [0.34065747, 0.28645765, 0.20255614, 0.17032874], atol=1e-8
    )
    np.testing.assert_allclose(
        PermuteAndFlip(source, epsilon).pmf(scores), [0.37566668, 0.28787351, 0.18525148, 0.15120834], atol=1e-8
    )


@pytest.mark.parametrize(
    ("scores", "rate", "law"),
    [
        ([1.0, 0.5, 0.0], math.log(4.0), [0.58357657, 0.28456006, 0.13186337]),
        ([1.0, 0.75, 0.25, 0.0], math.log(2.0), [0.35407457, 0.29094950, 0.19506669, 0.15990924]),
    ],
)
def test_noisy_max_approaches_the_continuous_law_as_the_grid_gets_finer(
    scores: list[float], rate: float, law: list[float]
) -> None:
    """Ties, which go to the first, have a chance of about rate / (4 steps): that is the tolerance."""
    away = []
    for steps in (64, 256, 1024, 4096):
        fine = LaplaceNoisyMax(ProfileScores(0.0, 1.0, steps=steps), 2.0 * rate).pmf(scores)
        away.append(float(np.abs(fine - law).max()))
        assert away[-1] < rate / (2 * steps)
    assert away == sorted(away, reverse=True)


def test_clipped_scores_have_the_full_width_as_sensitivity() -> None:
    # scores (3, 3, 1, 0) of width 2 around public ones, at epsilon 2: rate 1/2 for each unit
    shifted = [1.0, 1.0, 0.0, 0.0]  # a source of one common width; the published law moves items by themselves
    law = ExponentialMechanism(ProfileScores(0.0, 2.0), 2.0).pmf(shifted)
    np.testing.assert_allclose(law, reference.exponential([2, 2, 0, 0], Fraction(1, 4)), atol=1e-12)


# --- laws against the slow references, on less tame numbers than the contract's


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 7.3])
@pytest.mark.parametrize("scores", [[3, 3, 3], [0, 5, 5, 1], [9, 0, 4, 4, 2, 9]])
def test_laws_equal_the_slow_references(epsilon: float, scores: list[int]) -> None:
    source = ProfileScores(0.0, 9.0, steps=9)
    rate = Fraction(epsilon) / 18
    np.testing.assert_allclose(
        ExponentialMechanism(source, epsilon).pmf(scores), reference.exponential(scores, rate), rtol=1e-12
    )
    np.testing.assert_allclose(
        PermuteAndFlip(source, epsilon).pmf(scores), reference.permute_and_flip(scores, rate), rtol=1e-11
    )


def test_noisy_max_of_three_candidates_equals_all_combinations_of_noise() -> None:
    mechanism = LaplaceNoisyMax(ProfileScores(0.0, 1.0, steps=1), 3.0)
    for scores in ([0, 0, 0], [1, 0, 1], [0, 1, 0]):
        np.testing.assert_allclose(
            mechanism.pmf(scores), reference.noisy_max(scores, Fraction(2, 3), reach=18), rtol=1e-6, atol=1e-10
        )


def test_ties_of_noisy_max_go_to_the_first_candidate() -> None:
    law = LaplaceNoisyMax(ProfileScores(0.0, 1.0, steps=1), 8.0).pmf([1.0, 1.0, 1.0])
    assert law[0] > law[1] > law[2]
    fine = LaplaceNoisyMax(ProfileScores(0.0, 1.0, steps=4096), 8.0).pmf([1.0, 1.0, 1.0])
    np.testing.assert_allclose(fine, 1 / 3, atol=1e-3)


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(rng: np.random.Generator) -> None:
    for _ in range(200):
        scores = rng.random(rng.integers(2, 12))
        epsilon = float(rng.uniform(0.1, 8.0))
        source = ProfileScores(0.0, 1.0)
        better = PermuteAndFlip(source, epsilon).pmf(scores) @ scores
        assert better >= ExponentialMechanism(source, epsilon).pmf(scores) @ scores - 1e-12


def test_top_k_of_all_candidates_is_an_order_and_top_1_is_the_exponential_mechanism() -> None:
    source, scores = ProfileScores(0.0, 1.0), [0.1, 0.9, 0.5]
    np.testing.assert_allclose(
        GumbelTopK(source, 1, 2.0).pmf(scores), ExponentialMechanism(source, 2.0).pmf(scores), rtol=1e-14
    )
    everything = GumbelTopK(source, 3, 2.0)
    assert everything.outcomes(3) == list(permutations(range(3)))
    assert everything.pmf(scores).sum() == pytest.approx(1.0, abs=1e-14)
    picks = everything.release_many(np.tile(scores, (200, 1)), ReplayedNoise(1)).value
    assert (np.sort(picks, axis=1) == [0, 1, 2]).all()


# --- guarantees


def test_guarantees_say_whom_they_protect_and_what_is_known_of_the_loss() -> None:
    votes, changed = VoteTotals(), VoteTotals(relation=Relation.REPLACE)
    assert PermuteAndFlip(ProfileScores(0.0, 1.0), 1.0).guarantee.protects == ONE_PROFILE
    assert PermuteAndFlip(votes, 1.0).guarantee.protects == ONE_USER
    assert PermuteAndFlip(changed, 1.0).guarantee.protects == ONE_USER_REPLACED
    assert ExponentialMechanism(votes, 1.0).guarantee.loss.kind is LossKind.BOUNDED_RANGE  # type: ignore[union-attr]
    assert PermuteAndFlip(votes, 1.0).guarantee.loss.kind is LossKind.PURE  # type: ignore[union-attr]
    assert LaplaceNoisyMax(votes, 1.0).guarantee.loss.kind is LossKind.PURE  # type: ignore[union-attr]
    top = GumbelTopK(votes, 4, 2.0).guarantee
    assert top.loss.kind is LossKind.ZCDP  # type: ignore[union-attr]
    assert top.loss.value == 2.0**2 / (8 * 4)  # type: ignore[union-attr]


@pytest.mark.parametrize("scores", [ProfileScores(0.0, 1.0, steps=1), VoteTotals()])
def test_losses_of_the_exponential_mechanism_have_range_epsilon(scores: Any) -> None:
    """What makes it compose at epsilon^2/8: not only |loss| but max loss - min loss is at most epsilon."""
    mechanism = ExponentialMechanism(scores, 2.0)
    if isinstance(scores, VoteTotals):
        pairs = [
            (np.zeros((1, 3)) + a, np.concatenate([np.zeros((1, 3)) + a, [b]]))
            for a in (0, 1)
            for b in np.ndindex(2, 2, 2)
        ]
    else:
        pairs = [(a, b) for a in np.ndindex(2, 2, 2) for b in np.ndindex(2, 2, 2)]
    widest = max(np.ptp(np.log(mechanism.pmf(here)) - np.log(mechanism.pmf(there))) for here, there in pairs)
    assert widest == pytest.approx(2.0, abs=1e-12)


def test_losses_of_permute_and_flip_and_noisy_max_do_not_have_range_epsilon() -> None:
    for kind in (PermuteAndFlip, LaplaceNoisyMax):
        mechanism = kind(ProfileScores(0.0, 1.0, steps=1), 2.0)
        pairs = [(a, b) for a in np.ndindex(2, 2, 2) for b in np.ndindex(2, 2, 2)]
        widest = max(np.ptp(np.log(mechanism.pmf(here)) - np.log(mechanism.pmf(there))) for here, there in pairs)
        assert widest > 2.0 * 1.1


# --- special cases


@pytest.mark.parametrize("kind", SELECTIONS)
def test_one_candidate_is_always_chosen(kind: Any) -> None:
    mechanism = kind(ProfileScores(0.0, 1.0, steps=4), 0.5)
    assert mechanism.pmf([0.3]).tolist() == pytest.approx([1.0])
    assert mechanism.release([0.3]).value == 0
    assert mechanism.release_many([[0.3], [0.9]]).value.tolist() == [0, 0]


@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip])
@pytest.mark.parametrize("k", [2, 7, 128, 129, 1000])
def test_equal_scores_are_equally_likely(kind: Any, k: int) -> None:
    np.testing.assert_allclose(kind(ProfileScores(0.0, 1.0), 3.0).pmf(np.full(k, 0.4)), 1.0 / k, rtol=1e-11)


@pytest.mark.parametrize("kind", SELECTIONS)
@pytest.mark.parametrize("k", [127, 128, 129, 1000])
def test_many_candidates_are_no_obstacle(kind: Any, k: int) -> None:
    scores = np.linspace(0.0, 1.0, k)
    mechanism = kind(ProfileScores(0.0, 1.0, steps=4), 3.0)
    law = mechanism.pmf(scores)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert (law > 0).all()
    assert 0 <= mechanism.release(scores, ReplayedNoise(2)).value < k
    many = mechanism.release_many(np.tile(scores, (40, 1)), ReplayedNoise(2)).value
    assert many.shape == (40,)
    assert ((many >= 0) & (many < k)).all()


@pytest.mark.parametrize("kind", [*SELECTIONS, lambda scores, epsilon: GumbelTopK(scores, 2, epsilon)])
@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 700.0, 1e5])
def test_extreme_epsilons_neither_overflow_nor_warn(kind: Any, epsilon: float) -> None:
    mechanism = kind(ProfileScores(-3.0, 5.0), epsilon)
    scores = [5.0, -3.0, 4.0, 1e308]
    best = np.atleast_1d(mechanism.release(scores, ReplayedNoise(3)).value)
    many = mechanism.release_many(np.tile(scores, (50, 1)), ReplayedNoise(3)).value.reshape(50, -1)
    if epsilon > 100:
        assert set(best.tolist()) <= {0, 3}
        assert set(many.ravel().tolist()) <= {0, 3}
    if not isinstance(mechanism, LaplaceNoisyMax):
        assert mechanism.pmf(scores).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kind", SELECTIONS)
def test_many_votes_at_a_large_epsilon_neither_overflow_nor_warn(kind: Any) -> None:
    table = np.zeros((2000, 3))
    table[:, 1] = 1.0
    assert kind(VoteTotals(), 700.0).release(table, ReplayedNoise(1)).value == 1


@pytest.mark.parametrize("kind", [*SELECTIONS, lambda scores, epsilon: GumbelTopK(scores, 2, epsilon)])
def test_no_decisions_give_no_choices(kind: Any) -> None:
    many = kind(ProfileScores(0.0, 1.0), 1.0).release_many(np.zeros((0, 3))).value
    assert many.shape[0] == 0
    assert many.dtype == np.int64


@pytest.mark.parametrize("kind", SELECTIONS)
def test_decisions_of_many_blocks_keep_their_places(kind: Any) -> None:
    best = np.arange(6000) % 7
    scores = np.eye(7)[best]
    chosen = kind(ProfileScores(0.0, 1.0), 200.0).release_many(scores, ReplayedNoise(1)).value
    np.testing.assert_array_equal(chosen, best)
    picks = GumbelTopK(ProfileScores(0.0, 1.0), 1, 200.0).release_many(scores, ReplayedNoise(1)).value
    np.testing.assert_array_equal(picks[:, 0], best)


@pytest.mark.parametrize("kind", SELECTIONS)
def test_votes_are_one_decision_and_not_many(kind: Any) -> None:
    with pytest.raises(InvalidInput, match="release"):
        kind(VoteTotals(), 1.0).release_many([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(InvalidInput, match="release_many"):
        kind(ProfileScores(0.0, 1.0), 1.0).release([[1.0, 0.0], [0.0, 1.0]])


def test_a_law_with_too_many_terms_is_refused_while_its_sampler_is_not() -> None:
    fine = LaplaceNoisyMax(ProfileScores(0.0, 1.0), 0.1)
    with pytest.raises(InvalidParameter, match="fewer steps"):
        fine.pmf([0.0, 1.0])
    assert fine.release([0.0, 1.0]).value in (0, 1)


# --- scores


def test_profile_scores_are_clipped_and_rounded_down_from_the_lower_edge() -> None:
    source = ProfileScores(-1.0, 1.0, steps=8)
    assert source.integers([-5.0, -1.0, -0.76, -0.75, 0.0, 0.99, 1.0, 1e300]).tolist() == [0, 0, 0, 1, 4, 7, 8, 8]


@pytest.mark.parametrize(
    ("low", "high"), [(0.1, 0.3), (-1e308, 7e307), (1e-300, 2e-300), (0.0, 5e-290), (1.0, 1.0 + 2**-52)]
)
@pytest.mark.parametrize("steps", [1, 3, 1 << 20, 1 << 24])
def test_profile_scores_never_leave_the_grid(low: float, high: float, steps: int, rng: np.random.Generator) -> None:
    inside = low + (high - low) * rng.random(200)
    integers = ProfileScores(low, high, steps).integers(np.concatenate([[low, high, -1.7e308, 1.7e308], inside]))
    assert integers.min() == 0
    assert steps - 1 <= integers.max() <= steps


@pytest.mark.parametrize("high", [1e-310, 5e-324, 1e-305])
def test_a_range_too_narrow_for_its_grid_is_refused_or_stays_on_the_grid(high: float) -> None:
    """steps / (high - low) must not overflow: integers outside 0 .. steps would break the sensitivity."""
    try:
        source = ProfileScores(0.0, high)
    except InvalidParameter:
        return
    integers = source.integers([0.0, high / 2, high, 1.0])
    assert integers.min() >= 0
    assert integers.max() <= source.sensitivity


def test_scores_and_votes_of_the_caller_stay_as_they_are() -> None:
    scores = np.array([[-4.0, 9.0, 0.5]])
    PermuteAndFlip(ProfileScores(0.0, 1.0), 1.0).release(scores[0])
    PermuteAndFlip(ProfileScores(0.0, 1.0), 1.0).release_many(scores)
    PermuteAndFlip(VoteTotals(), 1.0).release(scores)
    assert scores.tolist() == [[-4.0, 9.0, 0.5]]
    table = sparse.csr_array((np.array([1.0, 5.0, 1.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    VoteTotals().integers(table)
    assert table.data.tolist() == [1.0, 5.0, 1.0]
    assert table.indices.tolist() == [2, 0, 2]


def test_one_user_moves_each_total_by_at_most_the_sensitivity_whatever_her_row_holds() -> None:
    source = VoteTotals(most=2.0, steps=4)
    table = np.array([[2.0, 1.0, 0.4], [0.6, 0.0, 9.0]])
    before = source.integers(table)
    assert before.tolist() == [5, 2, 4]
    for row in ([math.nan] * 3, [math.inf, -math.inf, 1e308], [-5.0, 0.5, 2.0], [0.0, 0.0, 0.0]):
        moved = source.integers(np.concatenate([table, [row]])) - before
        assert moved.min() >= 0  # all the same way
        assert moved.max() <= source.sensitivity


def test_sparse_votes_count_like_dense_ones() -> None:
    dense = np.array([[1.0, 0.0, 3.0], [0.0, math.nan, 0.5], [math.inf, 0.25, -1.0]])
    source = VoteTotals(most=1.0, steps=8)
    assert source.integers(sparse.csr_array(dense)).tolist() == source.integers(dense).tolist()
    assert source.integers(sparse.coo_array(dense)).tolist() == source.integers(dense).tolist()
    twice = sparse.csr_array((np.array([0.5, 0.5, 0.0]), np.array([1, 1, 2]), np.array([0, 3])), shape=(1, 3))
    assert source.integers(twice).tolist() == [0, 8, 0]  # duplicates are one vote, an explicit zero is none
    assert source.integers(sparse.csr_array((0, 3))).tolist() == [0, 0, 0]


def test_no_users_still_choose() -> None:
    law = PermuteAndFlip(VoteTotals(), 1.0).pmf(np.zeros((0, 4)))
    np.testing.assert_allclose(law, 0.25, rtol=1e-12)
    assert PermuteAndFlip(VoteTotals(), 1.0).release(np.zeros((0, 4))).value in range(4)
