"""Envelope: exact weights between the floors and e^epsilon times them, the best there are, each draw its candidate."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms import Envelope, TopResponse
from tests.unit.mechanisms import reference
from tests.unit.mechanisms.scripted import ScriptedNoise, native

WHOLE = 1 << 64


def in_units(*shares: float) -> tuple[int, ...]:
    return tuple(round(share * 2**32) for share in shares)


def test_vector() -> None:
    law = Envelope(in_units(0.1, 0.1, 0.05, 0.01), math.log(10.0)).pmf([0.2, 0.9, 0.1, 0.8])
    np.testing.assert_allclose(law, [0.1, 0.84, 0.05, 0.01], atol=1e-9)  # floors are rounded to 2^-32


@pytest.mark.parametrize("epsilon", [0.7, 2.0, 11.0, 40.0])
def test_weights_are_whole_lie_in_the_envelope_and_add_up_to_one(epsilon: float, rng: np.random.Generator) -> None:
    e = reference.power_of_e(Fraction(epsilon))
    for _ in range(30):
        floors = in_units(*(rng.dirichlet(np.ones(5)) * rng.uniform(math.exp(-epsilon) * 1.01, 1.0)).clip(1e-9))
        mechanism = Envelope(floors, epsilon)
        weights = mechanism.weights(rng.normal(size=5))
        assert sum(weights) == WHOLE
        for floor, weight in zip(floors, weights, strict=True):
            assert floor << 32 <= weight
            assert weight <= e * (floor << 32)  # in exact arithmetic: no rounding exceeds e^epsilon


def test_no_other_law_in_the_envelope_scores_higher(rng: np.random.Generator) -> None:
    for _ in range(20):
        floors, scores = rng.dirichlet(np.ones(6)) * 0.3, rng.normal(size=6)
        best = linprog(-scores, A_eq=np.ones((1, 6)), b_eq=[1.0], bounds=[(q, q * math.exp(2.0)) for q in floors])
        found = Envelope(in_units(*floors), 2.0).pmf(scores) @ scores
        assert found == pytest.approx(-best.fun, abs=1e-7)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_equal_floors_make_top_response(d: int) -> None:
    scores = [0.3, 0.9, 0.5, 0.5, 0.1]
    floor = math.floor(2**32 / (d * math.e + 5 - d))
    np.testing.assert_allclose(Envelope((floor,) * 5, 1.0).pmf(scores), TopResponse(5, d, 1.0).pmf(scores), atol=5e-9)


def test_each_word_has_its_candidate_alone_and_in_a_batch() -> None:
    mechanism, scores = Envelope(in_units(0.1, 0.2, 0.05, 0.15), 1.0), [0.5, 0.1, 0.9, 0.2]
    ends = np.cumsum([0, *mechanism.weights(scores)], dtype=object)
    for item in range(4):
        for word in (int(ends[item]), int(ends[item + 1]) - 1):
            assert mechanism.release(scores, ScriptedNoise(word.to_bytes(8, "big"))).value == item
            assert mechanism.release_many([scores], ScriptedNoise(native([word], 8))).value.tolist() == [item]


def test_rows_of_a_batch_keep_their_own_laws() -> None:
    mechanism = Envelope(in_units(0.1, 0.2, 0.05, 0.15), 30.0)  # nearly all that is left goes to the best
    word = native([WHOLE - 1, WHOLE - 1, 0], 8)
    rows = [[0, 0, 0, 1.0], [1.0, 0, 0, 0], [0, 1.0, 0, 0]]
    assert mechanism.release_many(rows, ScriptedNoise(word)).value.tolist() == [3, 3, 0]
    np.testing.assert_array_equal(mechanism.pmf(rows), [mechanism.pmf(row) for row in rows])


def test_a_single_candidate_is_chosen_and_costs_nothing() -> None:
    mechanism = Envelope((1 << 32,), 1.0)
    assert mechanism.guarantee.epsilon == 0.0
    assert mechanism.release([math.nan]).value == 0
    assert mechanism.release_many([[0.0]] * 3).value.tolist() == [0, 0, 0]


def test_ties_go_to_the_first_and_no_private_number_is_refused() -> None:
    mechanism = Envelope(in_units(0.1, 0.1, 0.1), 2.0)
    assert mechanism.pmf([1.0, 1.0, 1.0]).argmax() == 0
    for odd in (math.nan, math.inf, -math.inf):
        assert mechanism.release([odd, 1.0, odd]).value in range(3)
    assert (mechanism.pmf([math.nan, 1.0, 0.0]) == mechanism.pmf([-9.0, 1.0, 0.0])).all()


def test_floors_that_no_law_can_keep_are_refused() -> None:
    for floors, epsilon in (((1 << 31, (1 << 31) + 1), 1.0), (in_units(0.3, 0.06), 1.0)):
        with pytest.raises(InvalidParameter, match="add up"):
            Envelope(floors, epsilon)
    with pytest.raises(InvalidInput):
        Envelope(in_units(0.3, 0.3), 1.0).release([1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput):
        Envelope(in_units(0.3, 0.3), 1.0).release([[1.0, 2.0]])
    with pytest.raises(InvalidInput):
        Envelope(in_units(0.3, 0.3), 1.0).release_many([1.0, 2.0])
