"""The best floors: against another way to write the program, against every rule we have, and where the answer is known."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog

from tacit.errors import InvalidParameter
from tacit.evaluation.private_selection import selection_laws
from tacit.evaluation.private_selection.envelope_optimum import best_envelope, envelope_scores


def directly(draws: np.ndarray, epsilon: float) -> float:
    """The program as it is stated, q_i <= p_i <= e^epsilon q_i and sum p = 1, in dense matrices."""
    rows, k = draws.shape
    cost = np.concatenate([np.zeros(k), -draws.ravel() / rows])
    below, sums = [], np.zeros((rows, k + rows * k))
    for row in range(rows):
        sums[row, k + row * k : k + (row + 1) * k] = 1.0
        for item in range(k):
            for of_q, of_p in ((1.0, -1.0), (-math.exp(epsilon), 1.0)):
                line = np.zeros(k + rows * k)
                line[item], line[k + row * k + item] = of_q, of_p
                below.append(line)
    found = linprog(
        cost, A_ub=np.array(below), b_ub=np.zeros(len(below)), A_eq=sums, b_eq=np.ones(rows), method="highs"
    )
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_it_is_the_optimum_of_the_program_as_stated(epsilon: float, scale: float) -> None:
    rng = np.random.default_rng(1)
    for k in (1, 2, 5):
        draws = scale * (rng.normal(size=(12, k)) + np.linspace(1.0, 0.0, k))
        assert best_envelope(draws, epsilon).value == pytest.approx(
            directly(draws, epsilon), rel=1e-6, abs=1e-9 * scale
        )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_floors_are_allowed_and_earn_what_is_said(epsilon: float) -> None:
    draws = np.random.default_rng(2).lognormal(size=(40, 7))
    found = best_envelope(draws, epsilon)
    assert found.floors.shape == (7,)
    assert found.floors.min() >= 0.0
    assert math.exp(-epsilon) <= found.floors.sum() <= 1.0 + 1e-12
    law = selection_laws.envelope(draws, found.floors, epsilon)
    np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-9)
    assert (law >= found.floors - 1e-12).all()
    assert (law <= math.exp(epsilon) * found.floors + 1e-9).all()
    assert (law * draws).sum(axis=1).mean() == pytest.approx(found.value, rel=1e-12)


def test_what_floors_earn_by_hand() -> None:
    scores, floors = (
        np.array([[0.2, 0.9, 0.1, 0.8]]),
        np.array([0.1, 0.1, 0.05, 0.01]),
    )  # the law is (.1, .84, .05, .01)
    assert envelope_scores(scores, floors, math.log(10.0))[0] == pytest.approx(0.02 + 0.756 + 0.005 + 0.008, abs=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_no_other_floors_and_no_other_rule_earn_more(epsilon: float) -> None:
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(30, 4)) + np.array([0.8, 0.5, 0.2, 0.0])
    best = best_envelope(draws, epsilon).value
    for _ in range(300):
        floors = rng.dirichlet(np.full(4, 0.5)) * rng.uniform(math.exp(-epsilon), 1.0)
        assert envelope_scores(draws, floors, epsilon).mean() <= best + 1e-9
    scaled = selection_laws.scaled(draws)
    laws = [selection_laws.response(draws, epsilon, d) for d in (1, 2, 3)]
    laws += [law(scaled, epsilon / 2.0) for law in (selection_laws.softmax, selection_laws.permute_and_flip)]
    for law in laws:
        assert (law * draws).sum(axis=1).mean() <= best + 1e-9
    for m in range(1, 5):
        law = selection_laws.response(draws, epsilon, mask=np.arange(4) < m)
        assert (law * draws).sum(axis=1).mean() <= best + 1e-9


def test_two_opposite_tastes_are_best_served_by_randomised_response() -> None:
    draws = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = best_envelope(draws, 1.0)
    share = math.e / (1.0 + math.e)
    assert found.value == pytest.approx(share)
    assert found.floors == pytest.approx([1.0 - share, 1.0 - share])


def test_certain_scores_need_no_private_data() -> None:
    found = best_envelope(np.tile([0.3, 0.9, 0.5], (5, 1)), 2.0)
    assert found.value == pytest.approx(0.9)


def test_equal_items_are_best_served_by_the_best_d_of_randomised_response() -> None:
    k, share, epsilon = 6, 0.5, 1.0
    draws = np.array(list(product([0.0, 1.0], repeat=k)))  # all 64 Bernoulli vectors
    weights = share ** draws.sum(axis=1) * (1.0 - share) ** (k - draws.sum(axis=1))
    values = [
        float(weights @ (selection_laws.response(draws, epsilon, d) * draws).sum(axis=1)) for d in range(1, k + 1)
    ]
    assert max(values) > values[0] + 1e-3  # d = 1 is not the best here
    assert best_envelope(draws, epsilon, weights).value == pytest.approx(max(values), rel=1e-7)


def test_weights_count_as_repetition() -> None:
    draws = np.random.default_rng(4).random((4, 3))
    repeated = best_envelope(np.repeat(draws, [3, 1, 1, 2], axis=0), 1.5).value
    assert best_envelope(draws, 1.5, np.array([3.0, 1.0, 1.0, 2.0])).value == pytest.approx(repeated, rel=1e-9)


def test_more_epsilon_never_earns_less_and_all_of_it_is_greedy() -> None:
    draws = np.random.default_rng(5).random((20, 5))
    values = [best_envelope(draws, epsilon).value for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0)]
    assert all(low <= high + 1e-9 for low, high in pairwise(values))
    assert values[-1] == pytest.approx(draws.max(axis=1).mean(), rel=1e-6)
    assert values[0] >= draws.mean(axis=0).max() - 1e-9


@pytest.mark.parametrize(
    "draws", [np.zeros(3), np.zeros((0, 3)), np.array([[1.0, math.nan]]), np.array([[math.inf, 1.0]])]
)
def test_draws_must_be_a_table_of_numbers(draws: np.ndarray) -> None:
    with pytest.raises(InvalidParameter):
        best_envelope(draws, 1.0)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, math.nan]])
def test_weights_must_be_probabilities_up_to_a_factor(weights: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        best_envelope(np.eye(2), 1.0, np.array(weights))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_must_be_a_finite_number_above_0(epsilon: float) -> None:
    with pytest.raises(InvalidParameter):
        best_envelope(np.eye(2), epsilon)
