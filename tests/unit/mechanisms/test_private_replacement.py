"""Private replacement: the contract, what every draw costs, and that no score can reach further than from 0 to 1."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.audit.twins.mislabelled import Mislabelled
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind, epsilon_of_rho, rho_for, rho_of
from tacit.mechanisms import PrivateReplacement, ReplayedNoise
from tacit.mechanisms.x_map import PUBLIC_LISTS
from tests.contracts.mechanism import SECRET, MechanismCase, MechanismContract


class PrivateReplacementCase(MechanismCase):
    """Two draws of three candidates; every table of scores is a neighbour of every other."""

    def make(self, epsilon: float) -> PrivateReplacement:
        return PrivateReplacement(3, 2, epsilon, steps=4)

    def twin(self) -> Mislabelled:
        return Mislabelled("full rate", self.make(2.0 * self.epsilon), self.make(self.epsilon).guarantee)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        tables = [np.array(cells).reshape(2, 3) for cells in product((0.0, 1.0), repeat=6)]
        return [(here, there) for here in tables for there in tables if here is not there]

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        weights = [[math.exp(self.epsilon / 4.0 * score) for score in row] for row in raw.tolist()]
        return np.array([one * other / sum(weights[0]) / sum(weights[1]) for one in weights[0] for other in weights[1]])

    def documented_loss(self) -> float:
        h = self.epsilon / 4.0
        return 2.0 * (h + math.log((1.0 + 2.0 * math.exp(h)) / (math.exp(h) + 2.0)))

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        return (
            lambda: PrivateReplacement(0, 1, 1.0),
            lambda: PrivateReplacement(2, 0, 1.0),
            lambda: PrivateReplacement(2, 1, 1.0, 1.0),
            lambda: PrivateReplacement(2, 1, 1.0, -1e-6),
            lambda: PrivateReplacement(2, 1, 1.0, math.nan),
            lambda: PrivateReplacement(2, 1, 1.0, False),
            lambda: PrivateReplacement(2, 1, 1.0, steps=0),
            lambda: PrivateReplacement(2, 3, 5e-324),
            lambda: PrivateReplacement(10, 10, 1.0).outcomes(),
        )

    def bad_inputs(self) -> Sequence[Any]:
        return (
            [SECRET, 1.0, 0.0],
            [[SECRET, 1.0, 0.0]],
            [[SECRET, 1.0], [0.0, 1.0]],
            np.full((2, 2, 3), SECRET),
            SECRET,
            np.array([["4242", "1", "0"]] * 2),
            sparse.csr_array(np.full((3, 3), SECRET)),
        )


class TestPrivateReplacement(PrivateReplacementCase, MechanismContract):
    pass


def test_fifty_draws_at_epsilon_one() -> None:
    mechanism = PrivateReplacement(100, 50, 1.0, 1e-6)
    assert rho_for(1.0, 1e-6, "simple") == pytest.approx(0.01747, abs=5e-6)
    assert math.sqrt(8.0 * rho_for(1.0, 1e-6, "simple") / 50) == pytest.approx(0.0529, abs=5e-5)
    assert mechanism.each == pytest.approx(0.0624, abs=5e-5)
    assert mechanism.each == pytest.approx(math.sqrt(8.0 * rho_for(1.0, 1e-6) / 50), rel=1e-12)
    assert mechanism.guarantee.delta == 1e-6
    assert mechanism.guarantee.protects == ONE_USER
    assert mechanism.guarantee.assumes == {PUBLIC_LISTS}


@pytest.mark.parametrize("draws", [1, 2, 5, 6, 7, 50, 999])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01])
def test_all_draws_together_stay_within_what_is_claimed(draws: int, delta: float) -> None:
    mechanism = PrivateReplacement(4, draws, 1.0, delta)
    rho = Fraction(mechanism.each) ** 2 / 8 * draws
    assert mechanism.each >= 1.0 / draws * (1.0 - 1e-12)  # never less than a plain share
    assert Fraction(rho_of(mechanism.guarantee)) >= rho
    assert rho_of(mechanism.guarantee) == pytest.approx(float(rho), rel=1e-12)
    if mechanism.guarantee.delta == 0.0:
        assert draws * Fraction(mechanism.each) <= 1
    else:
        assert mechanism.guarantee.delta == delta
        assert epsilon_of_rho(float(rho), delta) <= 1.0 + 1e-12
        assert mechanism.each > 1.0 / draws


def test_a_delta_is_used_from_six_draws_on_and_not_spent_before() -> None:
    assert [PrivateReplacement(4, draws, 1.0, 1e-6).guarantee.delta for draws in (1, 5, 6)] == [0.0, 0.0, 1e-6]


def test_one_draw_has_a_range_and_many_have_a_rho() -> None:
    one, many = PrivateReplacement(4, 1, 1.0).guarantee, PrivateReplacement(4, 3, 1.0).guarantee
    assert one.loss is not None
    assert many.loss is not None
    assert (one.loss.kind, one.loss.value) == (LossKind.BOUNDED_RANGE, 1.0)
    assert many.loss.kind is LossKind.ZCDP
    assert many.loss.value == pytest.approx(3 * (1.0 / 3.0) ** 2 / 8.0)


def test_the_rate_keeps_its_two_and_the_whole_range_as_sensitivity() -> None:
    assert PrivateReplacement(4, 2, 3.0, steps=5).rate == Fraction(3, 2) / (2 * 5)


def test_scores_are_cut_to_the_range_and_rounded_down() -> None:
    mechanism = PrivateReplacement(8, 1, 2.0, steps=4)
    row = [math.nan, -math.inf, -0.3, 0.0, 0.24, 0.26, 1.0, math.inf]
    steps = np.array([0, 0, 0, 0, 0, 1, 4, 4])
    weight = np.exp(steps / 4.0)
    np.testing.assert_allclose(mechanism.laws([row])[0], weight / weight.sum(), rtol=1e-12)


def test_undefined_is_zero_stored_or_not() -> None:
    mechanism = PrivateReplacement(3, 2, 2.0)
    table = sparse.csr_array((np.array([0.5, math.nan, 0.25]), ([0, 0, 1], [1, 2, 0])), shape=(2, 3))
    dense = np.array([[0.0, 0.5, 0.0], [0.25, 0.0, 0.0]])
    np.testing.assert_array_equal(mechanism.laws(table), mechanism.laws(dense))
    for seed in range(5):
        one, other = (mechanism.release(scores, ReplayedNoise(seed)).value for scores in (table, dense))
        assert one.tolist() == other.tolist()


def test_the_callers_table_stays_as_it_is() -> None:
    table = sparse.csr_array(np.array([[0.5, 7.0]]))
    PrivateReplacement(2, 1, 1.0).release(table)
    assert table.data.tolist() == [0.5, 7.0]


def test_every_draw_has_its_own_row_also_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.mechanisms.x_map._BLOCK", 8)
    wanted = np.array([2, 0, 3, 1, 1, 0, 3])
    mechanism = PrivateReplacement(4, 7, 7 * 2000.0)
    assert mechanism.release(np.eye(4)[wanted]).value.tolist() == wanted.tolist()  # so large an epsilon takes the best
    assert mechanism.laws(np.eye(4)[wanted]).argmax(axis=1).tolist() == wanted.tolist()


def test_probabilities_rise_with_the_score_and_their_spread_is_half_an_epsilon() -> None:
    law = PrivateReplacement(4, 1, 3.0).laws([[0.0, 0.3, 0.7, 1.0]])[0]
    assert (np.diff(law) > 0.0).all()
    assert math.log(law[3] / law[0]) == pytest.approx(1.5, abs=1e-6)
    assert law.sum() == pytest.approx(1.0)


def test_a_wrong_shape_is_told_by_its_public_sizes() -> None:
    with pytest.raises(InvalidInput, match="2 x 3 scores"):
        PrivateReplacement(3, 2, 1.0).release([[0.0, 1.0]])
    with pytest.raises(InvalidParameter, match="fewer source items"):
        PrivateReplacement(2, 3, 5e-324)
