import math

import numpy as np
import pytest

from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees import (
    ONE_PROFILE,
    ONE_USER,
    Guarantee,
    Loss,
    LossKind,
    approximate,
    epsilon_of_rho,
    metric,
    mu_for,
    pure,
    rho_for,
    rho_of,
)


def renyi(p, q, order):
    return float(np.log(np.sum(p**order * q ** (1 - order))) / (order - 1))


@pytest.mark.parametrize(
    ("kind", "value", "rho"),
    [
        (LossKind.PURE, 0.4, 0.08),
        (LossKind.BOUNDED_RANGE, 0.4, 0.02),
        (LossKind.ZCDP, 0.05, 0.05),
        (LossKind.GAUSSIAN, 0.4, 0.08),
    ],
)
def test_rho_of_each_shape(kind, value, rho):
    assert rho_of(Guarantee(0.4, ONE_USER, loss=Loss(kind, value))) == pytest.approx(rho, rel=1e-15)


def test_a_pure_epsilon_beside_another_shape_is_used_where_it_says_more():
    assert rho_of(Guarantee(0.1, ONE_USER, loss=Loss(LossKind.ZCDP, 1.0))) == pytest.approx(0.005)


@pytest.mark.parametrize("unknown", [approximate(1.0, 1e-6, ONE_USER), metric(1.0)])
def test_no_rho_follows_from_epsilon_and_delta_alone(unknown):
    with pytest.raises(InvalidGuarantee, match="state the loss"):
        rho_of(unknown)


@pytest.mark.parametrize("kind", [LossKind.PURE, LossKind.BOUNDED_RANGE])
def test_a_rho_that_would_lose_a_delta_is_refused(kind):
    with pytest.raises(InvalidGuarantee, match="except with probability delta"):
        rho_of(Guarantee(0.4, ONE_USER, delta=1e-9, loss=Loss(kind, 0.4)))


def test_a_rho_that_rounds_to_zero_is_refused():
    for conversion in ("tight", "simple"):
        with pytest.raises(InvalidParameter, match="no rho above 0"):
            rho_for(1e-300, 5e-324, conversion)
    assert mu_for(1e-150, 5e-324) > 0.0


class TestTheEighth:
    """The exponential mechanism has range epsilon, so rho = epsilon^2/8; other constants are refuted by enumeration."""

    epsilon = 0.5
    orders = (1.01, 1.5, 2.0, 5.0, 20.0, 100.0)

    def worst(self):
        """The largest divergence / order over exponential mechanisms of two outputs at every offset."""
        worst = 0.0
        for offset in np.linspace(-6, 6, 241):
            first = np.exp([0.0, offset]) / np.exp([0.0, offset]).sum()
            moved = np.exp([self.epsilon, offset])
            second = moved / moved.sum()
            for p, q in ((first, second), (second, first)):
                worst = max(worst, *(renyi(p, q, order) / order for order in self.orders))
        return worst

    def test_an_eighth_holds_and_is_nearly_reached(self):
        claim = rho_of(Guarantee(self.epsilon, ONE_PROFILE, loss=Loss(LossKind.BOUNDED_RANGE, self.epsilon)))
        assert 0.97 * claim <= self.worst() <= claim

    def test_a_quarter_of_it_would_be_refuted(self):
        assert self.worst() > self.epsilon**2 / 32

    def test_permute_and_flip_is_not_a_bounded_range_mechanism(self):
        """Two items: p = (1/2, 1/2) against (1 - e^-epsilon/2, e^-epsilon/2). Only epsilon^2/2 covers it."""
        p = np.array([0.5, 0.5])
        q = np.array([1 - math.exp(-self.epsilon) / 2, math.exp(-self.epsilon) / 2])
        worst = max(renyi(x, y, order) / order for x, y in ((p, q), (q, p)) for order in self.orders)
        assert self.epsilon**2 / 8 < worst <= rho_of(pure(self.epsilon, ONE_PROFILE))


class TestConversion:
    @pytest.mark.parametrize(("epsilon", "rho"), [(0.1, 0.000321), (1, 0.024356), (4, 0.311065), (10, 1.539279)])
    def test_rho_for_an_epsilon(self, epsilon, rho):
        assert rho_for(epsilon, 1e-6) == pytest.approx(rho, abs=5e-7)

    @pytest.mark.parametrize(("epsilon", "sigma"), [(0.5, 8.6766), (1, 4.5309), (2, 2.3816), (4, 1.2678), (8, 0.6893)])
    def test_noise_for_an_epsilon(self, epsilon, sigma):
        assert 1 / math.sqrt(2 * rho_for(epsilon, 1e-6)) == pytest.approx(sigma, abs=5e-5)

    @pytest.mark.parametrize(("epsilon", "rho"), [(1, 0.017469), (8, 0.909707)])
    def test_the_simple_closed_form(self, epsilon, rho):
        assert rho_for(epsilon, 1e-6, "simple") == pytest.approx(rho, abs=5e-7)
        assert epsilon_of_rho(rho_for(epsilon, 1e-6, "simple"), 1e-6, "simple") == pytest.approx(epsilon, rel=1e-12)

    def test_a_hundred_slates(self):
        assert epsilon_of_rho(100 * 0.1**2 / 8, 1e-6) == pytest.approx(2.419093, abs=5e-7)

    def test_a_wrong_constant_would_miss_that_vector(self):
        assert epsilon_of_rho(100 * 0.1**2 / 2, 1e-6) > 5.0
        assert epsilon_of_rho(100 * 0.1**2 / 32, 1e-6) < 1.2

    def test_the_tight_conversion_never_exceeds_the_simple_one(self):
        for rho in (1e-6, 1e-3, 0.1, 1.0, 30.0):
            for delta in (1e-12, 1e-6, 1e-2):
                assert epsilon_of_rho(rho, delta) <= epsilon_of_rho(rho, delta, "simple")

    def test_it_agrees_with_a_fine_grid_of_orders(self):
        rho, delta = 0.125, 1e-6
        orders = 1 + np.exp(np.linspace(-3, 5, 200_001))
        grid = orders * rho + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
        assert epsilon_of_rho(rho, delta) == pytest.approx(float(grid.min()), rel=1e-9)

    def test_it_covers_the_exact_gaussian(self):
        from tacit.guarantees import delta_of_gaussian

        for rho in (1e-4, 0.02, 0.5, 5.0):
            assert delta_of_gaussian(math.sqrt(2 * rho), epsilon_of_rho(rho, 1e-6)) <= 1e-6

    def test_there_and_back_never_understates(self):
        for epsilon in (1e-3, 0.3, 1.0, 9.0):
            for conversion in ("tight", "simple"):
                assert epsilon_of_rho(rho_for(epsilon, 1e-6, conversion), 1e-6, conversion) <= epsilon * (1 + 1e-15)

    def test_extremes_end(self):
        assert epsilon_of_rho(0.0, 1e-6) == 0.0
        assert 0.0 < epsilon_of_rho(5e-324, 1e-300) < 1e-150
        assert epsilon_of_rho(1e300, 1e-300) > 1e300
        assert rho_for(1e-300, 0.5) > 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_epsilon_must_be_finite_and_above_zero(bad):
    with pytest.raises(InvalidParameter, match="invalid-parameter: epsilon must be a finite number above 0"):
        rho_for(bad, 1e-6)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 2.0, math.nan, math.inf])
def test_delta_must_lie_between_zero_and_one(bad):
    with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
        rho_for(1.0, bad)
    with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
        epsilon_of_rho(1.0, bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, True])
def test_rho_must_be_finite_and_not_negative(bad):
    with pytest.raises(InvalidParameter, match="rho must be a finite number of at least 0"):
        epsilon_of_rho(bad, 1e-6)


def test_an_unknown_conversion_is_refused():
    with pytest.raises(InvalidParameter, match="'tight' or 'simple'"):
        rho_for(1.0, 1e-6, "best")
