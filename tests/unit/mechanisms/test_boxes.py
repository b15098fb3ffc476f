"""Scores in public boxes: inside them whatever the profile holds, on one grid, and never refused on private grounds."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE
from tacit.mechanisms import (
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    ReplayedNoise,
    ScaledScores,
    TopResponse,
    VoteTotals,
)
from tacit.mechanisms.scores import many_decisions

STEPS = 1 << 20
ODD = (math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, -0.0)
NOISY = (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax)


def test_scaled_scores_run_from_the_lowest_to_the_highest() -> None:
    assert (ScaledScores(4).integers([4, 3, 1, 0]) / STEPS).tolist() == [1.0, 0.75, 0.25, 0.0]
    assert ScaledScores(3, steps=10).integers([-5.0, 5.0, -0.01]).tolist() == [0, 10, 4]  # rounded down


@pytest.mark.parametrize("raw", [[7.0, 7.0, 7.0], [math.nan] * 3, [math.inf] * 3, [0.0, -0.0, 0.0]])
def test_equal_scores_become_all_ones(raw: list[float]) -> None:
    assert ScaledScores(3).integers(raw).tolist() == [STEPS] * 3


def test_what_is_no_number_counts_as_the_lowest_and_does_not_move_the_others() -> None:
    assert (ScaledScores(4).integers([math.nan, 1.0, 2.0, 3.0]) / STEPS).tolist() == [0.0, 0.0, 0.5, 1.0]


def test_a_difference_beyond_all_floats_is_scaled_all_the_same() -> None:
    assert (ScaledScores(3).integers([1.6e308, -1.6e308, 0.0]) / STEPS).tolist() == [1.0, 0.0, 0.5]
    assert (ScaledScores(3).integers([math.inf, -math.inf, 0.0]) / STEPS).tolist() == [1.0, 0.0, 0.5]


def test_one_candidate_is_always_the_highest() -> None:
    assert ScaledScores(1).integers([math.nan]).tolist() == ScaledScores(1).integers([3.0]).tolist() == [STEPS]


def test_the_sensitivity_is_the_full_width_and_scores_move_both_ways() -> None:
    for source in (ScaledScores(2, steps=6), ClippedScores((1.0, 2.0), 0.5, steps=6)):
        assert source.sensitivity == 6
        assert not source.monotone
        assert source.protects == ONE_PROFILE
    reached = {tuple(ScaledScores(2, steps=6).integers(row)) for row in ([0.0, 1.0], [1.0, 0.0])}
    assert reached == {(0, 6), (6, 0)}


def test_clipped_scores_are_cut_to_their_own_box() -> None:
    source = ClippedScores((2.0, 2.5, 1.5, 0.5), 2.0)
    steps = source.integers([4.0, 3.0, 1.0, 0.0])
    assert (steps / (STEPS / 2) - 0.5).tolist() == [3.0, 3.0, 1.0, 0.0]
    assert source.lows == (786432, 1048576, 524288, 0)


def test_the_edges_of_a_box_are_met_exactly_and_never_left() -> None:
    centres = (0.1, 1 / 3, -7.3, 0.7 + 1e-9)
    for steps in (1, 7, STEPS):
        source = ClippedScores(centres, 0.3, steps=steps)
        lows = np.array(source.lows)
        low, high = np.array(centres) - 0.15, np.array(centres) + 0.15
        assert (source.integers(low) == lows).all()
        assert (source.integers(high) == lows + steps).all()
        assert (source.integers(high - 0.003 / steps) < lows + steps).all()  # rounded down, not to the nearest
        assert (source.integers(np.full(4, 1e300)) == lows + steps).all()
        assert (source.integers(np.full(4, -math.inf)) == lows).all()


def test_equal_scores_in_different_boxes_lie_within_a_step_of_each_other(rng: np.random.Generator) -> None:
    source = ClippedScores(tuple(rng.uniform(-0.2, 0.2, 50)), 1.0, steps=1000)
    for score in rng.uniform(-0.25, 0.25, 20):
        steps = source.integers(np.full(50, score))
        assert steps.max() - steps.min() <= 2


def test_a_clipped_score_that_is_no_number_counts_as_its_public_one() -> None:
    source = ClippedScores((1.0, 5.0), 2.0)
    assert source.integers([math.nan, math.nan]).tolist() == source.integers([1.0, 5.0]).tolist()


@pytest.mark.parametrize("source", [ScaledScores(3), ClippedScores((0.0, 2.0, -1e9), 4.0)], ids=["scaled", "clipped"])
def test_no_private_number_is_refused_or_leaves_its_box(source: Any) -> None:
    lows, table = np.array(source.lows), np.array([[a, b, c] for a in ODD for b in ODD for c in ODD])
    steps = source.integers(table)
    assert (steps >= lows).all()
    assert (steps <= lows + source.sensitivity).all()
    for kind in NOISY:
        assert kind(source, 1.0).release(table[5], ReplayedNoise(1)).value in range(3)
        assert kind(source, 1.0).release_many(table, ReplayedNoise(1)).value.shape == (len(table),)


@pytest.mark.parametrize("source", [ScaledScores(5), ClippedScores((0.0, 0.2, 0.4, 0.1, 0.3), 0.5)])
def test_rows_of_a_batch_are_boxed_as_rows_alone(source: Any, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(20_000, 5))
    blocks = np.concatenate(list(many_decisions(source, rows)))
    assert (blocks[::997] == np.stack([source.integers(row) for row in rows[::997]])).all()
    assert len(blocks) == len(rows)


def test_a_table_of_votes_is_still_one_decision() -> None:
    with pytest.raises(InvalidInput, match="use release"):
        list(many_decisions(VoteTotals(), [[1.0, 0.0]]))


@pytest.mark.parametrize("raw", [[4242.0], [4242.0] * 3, [[4242.0] * 3]])
def test_another_number_of_candidates_is_refused_and_not_shown(raw: Any) -> None:
    for source in (ScaledScores(2), ClippedScores((0.0, 1.0), 1.0)):
        with pytest.raises(InvalidInput, match="2 candidates") as caught:
            source.integers(raw)
        assert "4242" not in str(caught.value)


@pytest.mark.parametrize(
    ("centres", "width"),
    [
        ((1e12, 0.0), 1.0),
        ((2.0**31,), 1.0),
        ((1.7e308, -1.7e308), 1e308),
        ((1.7e308,), 1.7e308),
        ((0.0,), 5e-324),
        ((), 1.0),
    ],
)
def test_boxes_that_floats_cannot_hold_are_refused_on_public_grounds(centres: Any, width: float) -> None:
    with pytest.raises(InvalidParameter):
        ClippedScores(centres, width)


def test_centres_as_far_as_allowed_keep_a_box_of_many_steps() -> None:
    source = ClippedScores((2.0**30, -(2.0**30)), 1.0, steps=1 << 10)
    assert source.lows == (1 << 41, 0)
    low = 2.0**30 - 0.5
    assert [int(source.integers([low + x, 0.0])[0]) - (1 << 41) for x in (0.0, 0.25, 0.5, 1.0)] == [0, 256, 512, 1024]


def test_a_source_for_some_of_the_candidates() -> None:
    source = ClippedScores((1.0, 5.0, 3.0), 2.0, steps=8)
    assert source.among([2, 0]) == ClippedScores((3.0, 1.0), 2.0, steps=8)
    assert ScaledScores(5, steps=8).among([0, 4]) == ScaledScores(2, steps=8)


def test_boxing_leaves_the_callers_scores_as_they_are() -> None:
    raw = np.array([3.0, math.nan, -1.0])
    for source in (ScaledScores(3), ClippedScores((0.0, 0.0, 0.0), 1.0)):
        source.integers(raw)
    np.testing.assert_array_equal(raw, [3.0, math.nan, -1.0])


TINY = math.exp(-708.0)
ROWS: list[list[Any]] = [
    [5e-324, 0.0, 1e-310],
    [TINY, TINY / 3.0, 1.0],
    [TINY, -TINY, -5e-324],
    [1.7e308, -1.7e308, 5e-324],
    [math.inf, math.nan, -math.inf],
    [10**400, 1.0, -(10**400)],
    [None, 10**400, 1],
]
FLOORS = (1 << 30,) * 3
FOR_THREE: list[Any] = [  # the last boxes begin at 0, where a third of a denormal number underflows
    TopResponse(3, 1, 1.0),
    TopResponse(3, 2, 1.0),
    Envelope(FLOORS, 1.0),
    Peeling(TopResponse(3, 1, 1.0), 2),
    *(
        kind(source, 1.0)
        for kind in NOISY
        for source in (ScaledScores(3), ClippedScores((0.0, TINY, 1.0), 1.0), ClippedScores((1.5,) * 3, 3.0))
    ),
]


@pytest.mark.parametrize("mechanism", FOR_THREE, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("raw", ROWS, ids=str)
def test_private_numbers_raise_nothing_whatever_the_caller_has_set(mechanism: Any, raw: list[Any]) -> None:
    usual = mechanism.release(raw, ReplayedNoise(3)).value
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(mechanism.release(raw, ReplayedNoise(3)).value, usual)
        assert len(mechanism.release_many([raw] * 3).value) == 3
        if not isinstance(mechanism, TopResponse | Envelope | Peeling):
            assert mechanism.scores.integers(raw).shape == (3,)
            assert np.geterr()["under"] == "raise"  # which stays the caller's


def test_whole_numbers_beyond_floats_are_infinite_and_keep_their_sign() -> None:
    raw = [10**400, 0, -(10**400)]
    assert ScaledScores(3).integers(raw).tolist() == ScaledScores(3).integers([math.inf, 0, -math.inf]).tolist()
    assert TopResponse(3, 1, 1.0).pmf(raw).tolist() == TopResponse(3, 1, 1.0).pmf([math.inf, 0, -math.inf]).tolist()
    assert TopResponse(2, 1, 1.0).pmf([None, -(10**400)]).argmax() == 0
