"""Exact enumeration, against cases whose answer is known."""

import math

import numpy as np
import pytest

from tacit.audit import exact
from tacit.errors import InvalidParameter

COIN = np.array([[0.8, 0.2], [0.2, 0.8]])


def test_the_worst_loss_of_a_coin_is_its_log_odds() -> None:
    assert exact.worst_loss(COIN) == pytest.approx(math.log(4.0), abs=1e-15)


def test_an_output_that_only_one_input_can_give_is_an_infinite_loss() -> None:
    assert exact.worst_loss([[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]]) == math.inf
    assert exact.worst_loss([[0.5, 0.4, 0.1], [0.5, 0.5, 0.0]]) == math.inf


def test_an_output_that_no_input_can_give_costs_nothing() -> None:
    assert exact.worst_loss([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]) == 0.0


def test_only_neighbouring_pairs_count() -> None:
    laws = [[0.5, 0.5], [0.6, 0.4], [0.9, 0.1]]
    assert exact.worst_loss(laws, [[0, 1]]) == pytest.approx(math.log(0.5 / 0.4))
    assert exact.worst_loss(laws) == pytest.approx(math.log(0.5 / 0.1))
    assert exact.worst_loss(laws, np.empty((0, 2))) == 0.0


def test_a_pair_counts_in_both_directions() -> None:
    laws = [[0.98, 0.02], [0.9, 0.1]]
    assert exact.worst_loss(laws, [[0, 1]]) == exact.worst_loss(laws, [[1, 0]]) == pytest.approx(math.log(5.0))


def test_the_worst_case_names_the_pair_and_the_output() -> None:
    worst = exact.worst_case([[0.5, 0.5], [0.6, 0.4], [0.9, 0.1]])
    assert (worst.first, worst.second, worst.output) == (0, 2, 1)


@pytest.mark.parametrize("laws", [[[0.5, 0.4]], [[1.2, -0.2]], [[math.nan, 1.0]], [0.5, 0.5]])
def test_what_is_no_law_is_refused(laws: list[object]) -> None:
    with pytest.raises(InvalidParameter):
        exact.worst_loss(laws)  # type: ignore[arg-type]


def test_a_pair_of_unknown_inputs_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        exact.worst_loss(COIN, [[0, 2]])


def test_delta_falls_to_zero_at_the_worst_loss() -> None:
    assert exact.worst_delta(COIN, 0.0) == pytest.approx(0.6)
    assert exact.worst_delta(COIN, 1.0) == pytest.approx(0.8 - math.e * 0.2)
    assert exact.worst_delta(COIN, math.log(4.0) + 1e-12) == 0.0


def test_epsilon_at_a_delta_inverts_delta_at_an_epsilon() -> None:
    assert exact.epsilon_at(COIN, exact.worst_delta(COIN, 0.7)) == pytest.approx(0.7, abs=1e-12)
    assert exact.epsilon_at(COIN, 0.0) == exact.worst_loss(COIN)
    assert exact.epsilon_at(COIN, 0.7) == 0.0
    assert exact.epsilon_at([[1.0, 0.0], [0.9, 0.1]], 0.01) == math.inf


def test_the_range_of_a_loss_is_up_to_twice_the_loss() -> None:
    assert exact.loss_range(COIN) == pytest.approx(2.0 * math.log(4.0))
    assert exact.loss_range([[0.5, 0.5], [0.9, 0.1]]) == pytest.approx(math.log(0.5 / 0.1) - math.log(0.5 / 0.9))
    assert exact.loss_range([[1.0, 0.0], [0.9, 0.1]]) == math.inf


def test_renyi_divergences_match_their_definition() -> None:
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.3, 0.4])
    for order in (1.5, 2.0, 7.0):
        by_hand = math.log(sum(a**order * b ** (1.0 - order) for a, b in zip(p, q, strict=True))) / (order - 1.0)
        assert float(exact.renyi(p, q, order)) == pytest.approx(by_hand, rel=1e-13)
    assert float(exact.renyi(p, q, 1.0)) == pytest.approx(float(np.sum(p * np.log(p / q))), rel=1e-13)
    assert float(exact.renyi(p, q, 1.000001)) == pytest.approx(float(exact.renyi(p, q, 1.0)), rel=1e-5)


def test_renyi_is_infinite_where_only_the_first_law_can_be() -> None:
    assert exact.renyi([0.5, 0.5], [1.0, 0.0], 2.0) == math.inf
    assert exact.renyi([0.5, 0.5], [1.0, 0.0], 1.0) == math.inf
    assert exact.renyi([1.0, 0.0], [0.5, 0.5], 3.0) == pytest.approx(math.log(2.0))


def test_rho_of_a_coin_is_its_kullback_leibler_divergence() -> None:
    # for a symmetric coin D_a / a falls in a, so the largest is at order 1
    assert exact.zcdp(COIN) == pytest.approx(0.6 * math.log(4.0), rel=1e-12)


def test_rho_never_exceeds_half_the_squared_loss() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        laws = rng.dirichlet(np.ones(4), size=3)
        assert exact.zcdp(laws) <= exact.worst_loss(laws) ** 2 / 2.0 + 1e-12
        assert exact.zcdp(laws) <= exact.loss_range(laws) ** 2 / 8.0 + 1e-12
