"""What sampled Gaussian steps cost: against an obvious sum in fractions, against dp-accounting, and against known limits."""

import math
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from tacit.errors import InvalidParameter
from tacit.guarantees import epsilon_of_rho
from tacit.mechanisms import sampled_gaussian
from tacit.mechanisms.sampled_gaussian import epsilon_of_sampled, multiplier_for, renyi_of_sampled

CASES = [
    (1.0, Fraction(1, 16), 200),
    (0.7, Fraction(1, 100), 1000),
    (3.0, Fraction(1, 2), 10),
    (0.4, Fraction(1, 1000), 1),
    (20.0, Fraction(1, 3), 3000),
]


def obvious_renyi(order: int, multiplier: float, rate: Fraction) -> mpf:
    """The sum as it stands in the proof, in 100 digits."""
    with mp.workdps(100):
        r = mpf(rate.numerator) / rate.denominator
        terms = (
            math.comb(order, k) * (1 - r) ** (order - k) * r**k * mp.exp(mpf(k * (k - 1)) / (2 * mpf(multiplier) ** 2))
            for k in range(order + 1)
        )
        return mp.log(sum(terms)) / (order - 1)


def obvious_epsilon(order: int, multiplier: float, rate: Fraction, steps: int, delta: float) -> mpf:
    with mp.workdps(100):
        total = steps * obvious_renyi(order, multiplier, rate) + mp.log(1 - mpf(1) / order)
        return total - (mp.log(mpf(delta)) + mp.log(order)) / (order - 1)


def order_chosen(multiplier: float, rate: Fraction, steps: int, delta: float) -> int:
    """Which order is taken is free; that its cost is rounded up is not."""
    guesses = sampled_gaussian._guesses(multiplier, rate, steps, delta)
    return int(sampled_gaussian._ORDERS[int(guesses.argmin())])


@pytest.mark.parametrize(("multiplier", "rate", "_steps"), CASES)
@pytest.mark.parametrize("order", [2, 3, 17, 300])
def test_one_step_costs_the_sum_of_the_proof(order: int, multiplier: float, rate: Fraction, _steps: int) -> None:
    wanted = obvious_renyi(order, multiplier, rate)
    found = renyi_of_sampled(order, multiplier, rate)
    with mp.workdps(100):
        assert wanted <= mpf(found) <= wanted * (1 + mpf(2) ** -51)


@pytest.mark.parametrize("order", [2, 5, 64])
def test_a_sample_of_all_users_costs_what_a_gaussian_sum_costs(order: int) -> None:
    assert renyi_of_sampled(order, 2.0, Fraction(1)) == pytest.approx(order / 8.0, rel=1e-14)


@pytest.mark.parametrize(("multiplier", "rate", "steps"), CASES)
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_epsilon_equals_that_of_dp_accounting_at_whole_orders(
    multiplier: float, rate: Fraction, steps: int, delta: float
) -> None:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    event = dp_accounting.PoissonSampledDpEvent(float(rate), dp_accounting.GaussianDpEvent(multiplier))
    accountant = RdpAccountant(orders=list(range(2, 65)))
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, steps))
    theirs, order = accountant.get_epsilon_and_optimal_order(delta)
    assert order < 64  # so that no order above could be better
    assert epsilon_of_sampled(multiplier, rate, steps, delta) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(("multiplier", "rate", "steps"), CASES)
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_epsilon_is_never_rounded_down(multiplier: float, rate: Fraction, steps: int, delta: float) -> None:
    wanted = obvious_epsilon(order_chosen(multiplier, rate, steps, delta), multiplier, rate, steps, delta)
    found = epsilon_of_sampled(multiplier, rate, steps, delta)
    with mp.workdps(100):
        assert wanted <= mpf(found) <= wanted * (1 + mpf(2) ** -51)


def test_a_margin_covers_what_a_difference_of_large_terms_may_lose() -> None:
    """Where epsilon is so small that floats are finer than the margin, it shows."""
    rate, steps, delta = Fraction(1, 16), 10, 0.1
    multiplier = multiplier_for(1e-5, delta, rate, steps)
    wanted = obvious_epsilon(order_chosen(multiplier, rate, steps, delta), multiplier, rate, steps, delta)
    with mp.workdps(100):
        assert (
            0
            < wanted + mpf(2) ** -64
            <= mpf(epsilon_of_sampled(multiplier, rate, steps, delta))
            < wanted + mpf(2) ** -63
        )


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_multiplier_is_checked_exactly_after_floats_have_searched(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    guesses = sampled_gaussian._guesses
    monkeypatch.setattr(sampled_gaussian, "_guesses", lambda *given: 0.99 * guesses(*given))
    rate, steps, delta = Fraction(1, 16), 200, 1e-6
    found = sampled_gaussian._multiplier.__wrapped__(epsilon, delta, rate, steps)
    assert 0.98 * epsilon < epsilon_of_sampled(found, rate, steps, delta) <= epsilon


def test_without_sampling_it_is_near_zcdp() -> None:
    multiplier, steps, delta = 4.0, 8, 1e-6
    by_rho = epsilon_of_rho(steps / (2.0 * multiplier**2), delta)  # the best of all orders, also between whole ones
    ours = epsilon_of_sampled(multiplier, Fraction(1), steps, delta)
    assert by_rho <= ours <= 1.01 * by_rho


def test_sampling_is_cheaper_than_no_sampling_and_costs_grow_with_rate_and_steps() -> None:
    epsilons = [epsilon_of_sampled(1.2, Fraction(1, k), 100, 1e-6) for k in (64, 16, 4, 1)]
    assert epsilons == sorted(epsilons)
    assert epsilons[0] < epsilons[-1] / 10
    steps = [epsilon_of_sampled(1.2, Fraction(1, 16), n, 1e-6) for n in (1, 10, 100, 1000)]
    assert steps == sorted(steps)
    assert epsilon_of_sampled(1.2, Fraction(1, 16), 100, 1e-6) < epsilon_of_sampled(1.1, Fraction(1, 16), 100, 1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0, 60.0])
@pytest.mark.parametrize(("rate", "steps"), [(Fraction(1, 16), 200), (Fraction(1), 3), (Fraction(1, 5000), 4000)])
def test_the_multiplier_keeps_epsilon_and_hardly_a_smaller_one_would(
    epsilon: float, rate: Fraction, steps: int
) -> None:
    found = multiplier_for(epsilon, 1e-6, rate, steps)
    assert epsilon_of_sampled(found, rate, steps, 1e-6) <= epsilon
    assert epsilon_of_sampled(found * (1.0 - 1e-7), rate, steps, 1e-6) > epsilon


def test_a_float_rate_is_taken_exactly() -> None:
    assert renyi_of_sampled(3, 1.0, 0.25) == renyi_of_sampled(3, 1.0, Fraction(1, 4))


@pytest.mark.parametrize("rate", [0, -0.1, 1.5, math.nan, math.inf, "1/4", None, True, Fraction(1, 1 << 64)])
def test_a_rate_that_is_no_probability_is_refused(rate: Any) -> None:
    with pytest.raises(InvalidParameter, match="rate"):
        renyi_of_sampled(2, 1.0, rate)


@pytest.mark.parametrize("order", [1, 0, 2.5, 5000, True])
def test_an_order_that_is_not_whole_is_refused(order: Any) -> None:
    with pytest.raises(InvalidParameter, match="order"):
        renyi_of_sampled(order, 1.0, 0.5)


def test_an_epsilon_that_no_noise_reaches_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="no noise gives epsilon"):
        multiplier_for(1e-5, 1e-6, Fraction(1, 16), 10)
