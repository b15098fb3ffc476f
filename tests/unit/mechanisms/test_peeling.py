"""Peeling: a share of epsilon for each slot, different candidates, boxes of those who are left."""

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from tacit.audit import domains, exact
from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms import (
    ClippedScores,
    ExponentialMechanism,
    GumbelTopK,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    ProfileScores,
    ReplayedNoise,
    ScaledScores,
    TopResponse,
)
from tests.unit.mechanisms import reference

CLIPPED = ClippedScores((0.1, 0.4, 0.3, 0.2), 0.5, steps=8)
RULES = (
    TopResponse(4, 1, 3.0),
    TopResponse(4, 2, 3.0),
    PermuteAndFlip(ScaledScores(4, steps=8), 3.0),
    PermuteAndFlip(CLIPPED, 3.0, calibrated=True),
    ExponentialMechanism(CLIPPED, 3.0, calibrated=True),
    LaplaceNoisyMax(CLIPPED, 3.0),
    LaplaceNoisyMax(ScaledScores(4, steps=8), 3.0),
)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_the_whole_selection_stays_within_epsilon(rule: Any, slots: int) -> None:
    mechanism = Peeling(rule, slots)
    inputs = domains.score_box(4, steps=1)
    laws = np.stack([mechanism.pmf(raw) for raw in inputs])
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, atol=1e-12)
    assert exact.worst_loss(laws) <= 3.0 + 1e-9
    assert mechanism.guarantee.epsilon == 3.0
    assert mechanism.guarantee.proof == "peeling"


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_one_slot_is_the_rule_itself(rule: Any) -> None:
    raw = [0.3, 0.1, 0.9, 0.5]
    np.testing.assert_allclose(Peeling(rule, 1).pmf(raw), rule.pmf(raw), rtol=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_candidates_differ_alone_and_in_a_batch(rule: Any, rng: np.random.Generator) -> None:
    mechanism, rows = Peeling(rule, 3), rng.random((500, 4))
    many = mechanism.release_many(rows, ReplayedNoise(1)).value
    assert many.shape == (500, 3)
    assert all(len(set(picks)) == 3 and set(picks) <= set(range(4)) for picks in many.tolist())
    for seed in range(20):
        assert len(set(mechanism.release(rows[seed], ReplayedNoise(seed)).value.tolist())) == 3
    assert mechanism.release_many(np.zeros((0, 4))).value.shape == (0, 3)


def test_shares_are_rounded_down_so_that_they_do_not_exceed_epsilon() -> None:
    for epsilon in (0.1, 1.0, 7.7):
        for slots in (3, 7, 9):
            each = Peeling(TopResponse(9, 1, epsilon), slots).each
            assert slots * Fraction(each) <= Fraction(epsilon)
            assert each == pytest.approx(epsilon / slots, rel=1e-15)


def test_scores_are_scaled_anew_among_those_who_are_left() -> None:
    """Once the highest is gone the next one stands at the top again."""
    mechanism, raw = Peeling(PermuteAndFlip(ScaledScores(3, steps=100), 8.0), 2), [10.0, 1.0, 0.0]
    law = dict(zip(mechanism.outcomes(), mechanism.pmf(raw), strict=True))
    rate = Fraction(4) / 200
    second = reference.permute_and_flip([100, 0], rate)
    first = reference.permute_and_flip([100, 10, 0], rate)
    assert law[0, 1] == pytest.approx(float(first[0] * second[0]), rel=1e-9)
    assert law[0, 2] == pytest.approx(float(first[0] * second[1]), rel=1e-9)


@pytest.mark.parametrize("calibrated", [False, True])
def test_clipped_scores_keep_the_boxes_of_those_who_are_left(calibrated: bool) -> None:
    centres, raw = (0.0, 0.3, 0.9), [0.2, 0.5, 0.4]
    mechanism = Peeling(PermuteAndFlip(ClippedScores(centres, 1.0, steps=10), 6.0, calibrated=calibrated), 2)
    law = dict(zip(mechanism.outcomes(), mechanism.pmf(raw), strict=True))
    first = PermuteAndFlip(ClippedScores(centres, 1.0, steps=10), 3.0, calibrated=calibrated).pmf(raw)
    for item in range(3):
        left = [other for other in range(3) if other != item]
        boxes = ClippedScores(tuple(centres[other] for other in left), 1.0, steps=10)
        second = PermuteAndFlip(boxes, 3.0, calibrated=calibrated).pmf([raw[other] for other in left])
        for other, chance in zip(left, second, strict=True):
            assert law[item, other] == pytest.approx(float(first[item] * chance), rel=1e-12)


def test_boxes_that_stay_as_they_are_make_the_top_k_of_one_gumbel_draw() -> None:
    boxes, raw = ClippedScores((0.5,) * 4, 1.0, steps=10), [0.1, 0.9, 0.4, 0.4]
    peeled = Peeling(ExponentialMechanism(boxes, 6.0), 3)
    drawn_once = GumbelTopK(ProfileScores(0.0, 1.0, steps=10), 3, 6.0)
    np.testing.assert_allclose(peeled.pmf(raw), drawn_once.pmf(raw), rtol=1e-9)


def test_a_batch_has_the_groups_of_its_rows(rng: np.random.Generator) -> None:
    """With next to no noise every row picks by its own scores, whatever rows it shares a group with."""
    rows = rng.permuted(np.tile(np.arange(5.0), (300, 1)), axis=1)
    picks = Peeling(TopResponse(5, 1, 40.0 * 1.0), 1).release_many(rows).value
    assert (picks[:, 0] == rows.argmax(axis=1)).all()
    boxes = ClippedScores((2.0,) * 5, 4.0, steps=4)
    picks = Peeling(PermuteAndFlip(boxes, 4000.0), 3).release_many(rows).value
    assert (picks == np.argsort(-rows, axis=1)[:, :3]).all()


def test_a_selection_that_does_not_look_costs_nothing() -> None:
    assert Peeling(TopResponse(1, 1, 2.0), 1).guarantee.epsilon == 0.0
    assert Peeling(TopResponse(4, 4, 2.0), 3).guarantee.epsilon == 0.0
    assert Peeling(TopResponse(4, 3, 2.0), 2).guarantee.epsilon == 2.0  # the first pick looks


def test_every_order_of_few_candidates_and_not_of_many() -> None:
    mechanism = Peeling(TopResponse(4, 1, 1.0), 2)
    assert mechanism.outcomes() == list(permutations(range(4), 2))
    with pytest.raises(InvalidParameter, match="fewer slots"):
        Peeling(TopResponse(100, 1, 1.0), 5).pmf(np.zeros(100))


def test_odd_scores_are_taken_and_odd_shapes_are_not() -> None:
    for rule in RULES:
        assert Peeling(rule, 2).release([math.nan, math.inf, -math.inf, 1e308]).value.shape == (2,)
    for raw in ([1.0] * 3, [[1.0] * 4], []):
        with pytest.raises(InvalidInput):
            Peeling(RULES[0], 2).release(raw)
    for raw in ([1.0] * 4, [[1.0] * 3]):
        with pytest.raises(InvalidInput):
            Peeling(RULES[0], 2).release_many(raw)
