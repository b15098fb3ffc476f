"""Top response: exact weights, each draw its candidate, randomised response for d = 1, free for d = m."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE, ShuffleCondition, amplify, pure
from tacit.mechanisms import RandomisedResponse, ReplayedNoise, TopResponse
from tests.contracts.mechanism import chi_square
from tests.unit.mechanisms import reference
from tests.unit.mechanisms.scripted import ScriptedNoise


def test_vectors() -> None:
    scores = [0.4, 0.9, 0.1, 0.6]
    third = math.log(3.0)
    np.testing.assert_allclose(TopResponse(4, 1, third).pmf(scores), [1 / 6, 1 / 2, 1 / 6, 1 / 6], atol=1e-9)
    np.testing.assert_allclose(TopResponse(4, 2, third).pmf(scores), [1 / 8, 3 / 8, 1 / 8, 3 / 8], atol=1e-9)
    assert TopResponse(4, 1, 5.0).pmf(scores)[1] == pytest.approx(0.98018666, abs=5e-9)
    assert TopResponse(15, 1, 5.0).pmf(range(15))[14] == pytest.approx(0.91380009, abs=5e-9)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 2.0**-32, 0.1, 1.0, math.log(3.0), 13.9, 40.0])
def test_the_ratio_never_exceeds_e_to_the_epsilon_and_is_hardly_below(epsilon: float) -> None:
    ratio = Fraction(TopResponse(9, 4, epsilon).best_weight, 1 << 32)
    e = reference.power_of_e(Fraction(epsilon))
    assert ratio >= 1
    assert ratio.numerator <= e * ratio.denominator
    assert TopResponse(9, 4, epsilon).best_weight == int(e * 2**32)  # the floor itself, so that other devices agree


def test_a_float_exponential_would_exceed_it_for_some_epsilons(rng: np.random.Generator) -> None:
    """Why the weight comes from a proved lower bound: this is what the bound is for."""
    above = 0
    for epsilon in rng.uniform(0.0, 14.0, 800):
        e = reference.power_of_e(Fraction(float(epsilon)))
        assert TopResponse(2, 1, epsilon).best_weight <= e * 2**32
        above += math.floor(2.0**32 * math.exp(epsilon)) > e * 2**32
    assert above > 5


def test_each_draw_has_its_candidate() -> None:
    mechanism, scores = TopResponse(5, 2, 1.0), [0.1, 0.9, 0.2, 0.9, 0.5]  # best: 1, then 3; others by score: 4, 2, 0
    weight, base, total = mechanism.best_weight, 1 << 32, mechanism.total_weight
    assert total == 2 * weight + 3 * base
    size = (total - 1).bit_length()
    pad = -size % 8

    def chosen(*draws: int) -> int:
        script = ScriptedNoise(*((draw << pad).to_bytes((size + 7) // 8, "big") for draw in draws))
        value = mechanism.release(scores, script).value
        assert script.left == 0
        return value

    edges = [0, weight, 2 * weight, 2 * weight + base, 2 * weight + 2 * base, total]
    for start, end, item in zip(edges, edges[1:], [1, 3, 4, 2, 0], strict=False):
        assert chosen(start) == chosen(end - 1) == item
    assert chosen(total, 0) == 1  # a number beyond the total is drawn again


def test_ties_go_to_those_who_stand_first() -> None:
    law = TopResponse(4, 2, 2.0).pmf([0.5, 0.5, 0.5, 0.5])
    assert (law[:2] > law[2:]).all()
    assert TopResponse(3, 1, 2.0).pmf([0.0, 1.0, 1.0]).argmax() == 1


def test_only_the_order_counts() -> None:
    mechanism = TopResponse(4, 2, 1.0)
    same = [
        [1.0, 3.0, 2.0, 0.0],
        [-1e308, 1e308, 1e-300, -1.7e308],
        [0.0, math.inf, 5.0, -math.inf],
        [0, 9, 8, math.nan],
    ]
    laws = [mechanism.pmf(scores) for scores in same]
    assert all((law == laws[0]).all() for law in laws)


@pytest.mark.parametrize("scores", [[math.nan] * 3, [math.inf, math.nan, -math.inf], [1e308, -1e308, math.inf]])
def test_no_private_number_is_refused(scores: Any) -> None:
    for d in (1, 2, 3):
        mechanism = TopResponse(3, d, 1.0)
        assert mechanism.release(scores).value in range(3)
        assert mechanism.release_many([scores] * 4).value.shape == (4,)
        assert mechanism.pmf(scores).sum() == pytest.approx(1.0)


def test_what_is_no_number_counts_as_the_lowest_alone_and_in_a_batch() -> None:
    rows, surely = [[math.nan, 1.0, 0.0]] * 50, 40.0
    assert set(TopResponse(3, 1, surely).release_many(rows).value.tolist()) == {1}
    assert set(TopResponse(3, 2, surely).release_many(rows).value.tolist()) == {1, 2}
    assert TopResponse(3, 1, surely).release(rows[0]).value == 1


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("m", [2, 5, 16])
def test_with_one_best_it_is_randomised_response_to_which_is_best(m: int, epsilon: float) -> None:
    ours, theirs = TopResponse(m, 1, epsilon), RandomisedResponse(m, epsilon)
    rows = np.random.default_rng(3).random((40, m)).round(1)  # with ties
    for seed, row in enumerate(rows):
        best = int(np.argmax(row))
        assert (ours.pmf(row) == theirs.pmf(best)).all()
        assert ours.release(row, ReplayedNoise(seed)).value == theirs.release(best, ReplayedNoise(seed)).value
    many = theirs.release_many(rows.argmax(axis=1), ReplayedNoise(9)).value
    assert (ours.release_many(rows, ReplayedNoise(9)).value == many).all()
    assert ours.guarantee == theirs.guarantee


def test_the_blanket_bound_is_for_one_best_only() -> None:
    stated = {"n": 10_000, "delta": 1e-6, "conditions": set(ShuffleCondition), "k": 4}
    assert amplify(TopResponse(4, 1, 1.0).guarantee, **stated).epsilon == pytest.approx(0.0343, rel=0.01)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="blanket"):
        amplify(TopResponse(4, 2, 1.0).guarantee, **stated)  # type: ignore[arg-type]


@pytest.mark.parametrize("m", [1, 4])
def test_where_all_are_the_best_the_choice_is_uniform_and_costs_nothing(m: int) -> None:
    mechanism = TopResponse(m, m, 7.0)
    assert mechanism.guarantee == pure(0.0, ONE_PROFILE, proof="top-response")
    assert mechanism.pmf(np.arange(m)).tolist() == [1.0 / m] * m
    assert mechanism.release(np.arange(m)).guarantee.epsilon == 0.0


@pytest.mark.parametrize(("m", "d"), [(5, 1), (5, 2), (5, 4), (5, 5)])
def test_a_batch_reaches_every_candidate_with_its_probability(m: int, d: int) -> None:
    """Rows of one batch with orders of their own: each is counted by the place that its candidate has in its order."""
    mechanism, rows = TopResponse(m, d, 0.7), np.random.default_rng(8).random((40_000, m))
    chosen = mechanism.release_many(rows, ReplayedNoise(4)).value
    place = (rows > rows[np.arange(len(rows)), chosen][:, None]).sum(axis=1)  # 0: the best
    assert chi_square(np.bincount(place, minlength=m), mechanism.pmf(np.arange(m)[::-1])) > 1e-4


def test_a_batch_of_no_rows_and_a_table_for_one_decision() -> None:
    mechanism = TopResponse(3, 2, 1.0)
    assert mechanism.release_many(np.zeros((0, 3))).value.shape == (0,)
    with pytest.raises(InvalidInput, match="release_many"):
        mechanism.release([[1.0, 2.0, 3.0]])
    with pytest.raises(InvalidInput):
        mechanism.release_many([1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput):
        mechanism.release_many([[1.0, 2.0]])


def test_the_callers_scores_stay_as_they_are() -> None:
    rows = np.array([[math.nan, -math.inf, 1.0]] * 3)
    kept = rows.copy()
    TopResponse(3, 2, 1.0).release_many(rows)
    TopResponse(3, 1, 1.0).release(rows[0])
    np.testing.assert_array_equal(rows, kept)
