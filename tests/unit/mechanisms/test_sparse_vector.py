"""Sparse vector: what the contract's three queries do not show."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import ProfileScores, ReplayedNoise, SparseVector, VoteTotals
from tacit.mechanisms.samplers import integers


def log_chance(mechanism: SparseVector, misses: np.ndarray, hit: int) -> float:
    """ln P("no" to every one of ``misses``, then "yes" to ``hit``), by summing over the threshold's noise."""
    threshold_scale, answer_scale = mechanism.scales
    shift = np.arange(-1500, 1501)
    needed = mechanism.threshold + shift
    log_terms = np.log(integers.discrete_laplace_pmf(shift, threshold_scale))
    scores, counts = np.unique(misses, return_counts=True)
    for score, count in zip(scores, counts, strict=True):
        log_terms += count * np.log(integers.discrete_laplace_cdf(needed - score - 1, answer_scale))
    log_terms += np.log(integers.discrete_laplace_survival(needed - hit, answer_scale))
    top = log_terms.max()
    return float(top + np.log(np.exp(log_terms - top).sum()))


@pytest.mark.parametrize("source", [ProfileScores(0.0, 1.0, steps=8), VoteTotals(steps=8)])
def test_claim_is_approached_as_misses_multiply_and_never_passed(source: ProfileScores | VoteTotals) -> None:
    epsilon, width = 2.0, 8
    mechanism = SparseVector(source, 40, epsilon)
    losses = []
    for queries in (1, 10, 100, 1000):
        # neighbours: all missed scores rise by the sensitivity; the one that hits falls by it, or (monotone) stays
        here = log_chance(mechanism, np.zeros(queries, dtype=np.int64), 0 if source.monotone else width)
        there = log_chance(mechanism, np.full(queries, width), 0)
        losses.append(here - there)
    assert losses == sorted(losses)
    assert losses[-1] <= epsilon + 1e-9
    assert losses[-1] > 0.9 * epsilon


def test_shares_add_up_to_epsilon_exactly() -> None:
    for hits in (1, 2, 7, 1000):
        for source in (ProfileScores(0.0, 1.0), VoteTotals()):
            for_threshold, for_answers = SparseVector(source, 0, 0.7, hits=hits).shares
            assert for_threshold + for_answers == Fraction(0.7)
            ratio = float(for_answers / for_threshold)
            assert ratio == pytest.approx((hits * (1 if source.monotone else 2)) ** (2 / 3))


def test_scales_charge_every_hit_and_both_directions() -> None:
    mechanism = SparseVector(ProfileScores(0.0, 1.0, steps=10), 0, 1.0, hits=3)
    for_threshold, for_answers = mechanism.shares
    assert mechanism.scales == (10 / for_threshold, 60 / for_answers)
    mechanism = SparseVector(VoteTotals(steps=10), 0, 1.0, hits=3)
    for_threshold, for_answers = mechanism.shares
    assert mechanism.scales == (10 / for_threshold, 30 / for_answers)


def test_transcript_stops_with_the_last_allowed_hit() -> None:
    scores = [0.0, 1.0, 1.0, 0.0, 1.0]
    source = ProfileScores(0.0, 1.0, steps=1000)
    for hits, expected in (
        (1, (False, True)),
        (2, (False, True, True)),
        (3, (False, True, True, False, True)),
        (9, (False, True, True, False, True)),
    ):
        assert SparseVector(source, 500, 1e5, hits=hits).release(scores, ReplayedNoise(1)).value == expected


def test_a_score_equal_to_the_threshold_reaches_it() -> None:
    mechanism = SparseVector(ProfileScores(0.0, 1.0, steps=10), 5, 1e6)
    assert mechanism.release([0.5], ReplayedNoise(1)).value == (True,)
    assert mechanism.release([0.4], ReplayedNoise(1)).value == (False,)


@pytest.mark.parametrize(("queries", "hits"), [(1, 1), (4, 1), (4, 2), (3, 3), (3, 5)])
def test_transcripts_are_all_different_and_none_continues_another(queries: int, hits: int) -> None:
    found = SparseVector(VoteTotals(), 0, 1.0, hits=hits).outcomes(queries)
    assert len(set(found)) == len(found)
    assert not any(a != b and b[: len(a)] == a for a in found for b in found)
    if hits > queries:
        assert len(found) == 2**queries
    law = SparseVector(VoteTotals(), 1, 1.0, hits=hits).pmf(np.ones((1, queries)))
    assert law.sum() == pytest.approx(1.0, abs=1e-12)


def test_far_thresholds_are_never_or_always_reached() -> None:
    scores = ProfileScores(0.0, 1.0, steps=1)
    assert SparseVector(scores, 1 << 53, 1.0).release([1.0, 1.0]).value == (False, False)
    assert SparseVector(scores, -(1 << 53), 1.0).release([0.0, 1.0]).value == (True,)


def test_a_law_with_too_many_terms_is_refused_while_its_sampler_is_not() -> None:
    fine = SparseVector(ProfileScores(0.0, 1.0), 1, 0.1)
    with pytest.raises(InvalidParameter, match="fewer steps"):
        fine.pmf([0.0, 1.0])
    assert len(fine.release([0.0]).value) == 1


@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 700.0])
def test_extreme_epsilons_neither_overflow_nor_warn(epsilon: float) -> None:
    assert SparseVector(ProfileScores(0.0, 1.0), 1 << 19, epsilon, hits=2).release([0.0, 1.0, 0.2]).value


@pytest.mark.parametrize(
    ("epsilon", "hits"), [(5e-324, 1), (1.0, 10**400), (math.ulp(0.0) * 3, 2)], ids=["0", "1", "2"]
)
def test_parameters_beyond_floats_are_refused_with_a_code(epsilon: float, hits: int) -> None:
    with pytest.raises(InvalidParameter):
        SparseVector(VoteTotals(), 0, epsilon, hits=hits).release([[1.0, 0.0]])
