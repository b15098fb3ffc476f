"""What slates cost: known figures, relations that turn back into each other, and the side on which numbers are rounded."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, Guarantee, Loss, LossKind, Relation, tight
from tacit.mechanisms.slates import (
    natural_epsilon,
    published_epsilon,
    published_sigma_for,
    sigma_for,
    subset_epsilon,
    subset_range,
    subset_sigma_for,
)
from tests.unit.mechanisms.slate_bounds import frobenius_epsilon, range_each, spectral_epsilon, trace_epsilon

EPSILONS = st.floats(1e-9, 50.0)
SIZES = st.floats(1e-6, 1e6)


def test_known_figures() -> None:
    assert sigma_for(1.0) == pytest.approx(0.581977, abs=5e-7)
    assert sigma_for(1.0) == pytest.approx(1.0 / math.expm1(1.0), rel=1e-14)
    assert sigma_for(0.1) == pytest.approx(9.508332, abs=5e-7)
    assert subset_epsilon(1.0, 1.0) == pytest.approx(0.405465, abs=5e-7)
    assert trace_epsilon(1.0, 0.5, k=10, rank=4) == pytest.approx(1.621860, abs=5e-7)
    assert frobenius_epsilon(1.0, 1.0, k=10) == pytest.approx(4.036058, abs=5e-7)
    assert published_epsilon(1.0, 1.0, 1000) == pytest.approx(62.266147, abs=5e-7)
    assert published_epsilon(1.0, sigma_for(1.0), 3883) == pytest.approx(211.2, abs=0.05)
    assert published_sigma_for(1.0, 3883) == pytest.approx(124.6, abs=0.05)
    assert spectral_epsilon(1.0, 1.0, k=3) == pytest.approx(6 * math.log(2.0), rel=1e-14)


def test_many_slates_have_the_known_figures() -> None:
    slate = Guarantee(0.1, ONE_USER, loss=Loss(LossKind.BOUNDED_RANGE, 0.1))
    assert tight({slate: 100}, 1e-6, "zcdp").epsilon == pytest.approx(2.419093, abs=1e-6)
    assert range_each(1000, 1.0, 1e-6) == pytest.approx(0.013959, abs=1e-6)
    assert range_each(100, 2.419094, 1e-6) == pytest.approx(0.1, abs=1e-6)


def test_replacing_a_user_doubles_the_range_and_so_halves_what_each_of_many_slates_may_have() -> None:
    added, replaced = (range_each(1000, 1.0, 1e-6, relation) for relation in Relation)
    assert replaced == pytest.approx(added / 2.0, rel=1e-12)
    assert range_each(1, 1.0, 1e-6, Relation.REPLACE) == 1.0  # a single one costs what it costs when a user is added
    assert tight({Guarantee(replaced, ONE_USER_REPLACED): 1000}, 1e-6, "zcdp").epsilon <= 1.0 + 1e-12


@given(EPSILONS, SIZES)
def test_the_jitter_of_an_epsilon_costs_that_epsilon_and_never_more(epsilon: float, bound: float) -> None:
    pairs: list[tuple[float, Callable[[float], float]]] = [
        (sigma_for(epsilon, bound), lambda sigma: natural_epsilon(bound, sigma)),
        (subset_sigma_for(epsilon, bound), lambda sigma: subset_epsilon(bound, sigma)),
        (
            subset_sigma_for(epsilon, bound, Relation.REPLACE),
            lambda sigma: subset_epsilon(bound, sigma, Relation.REPLACE),
        ),
        (published_sigma_for(epsilon, 17, bound), lambda sigma: published_epsilon(bound, sigma, 17)),
    ]
    for sigma, cost in pairs:
        assert cost(sigma) == pytest.approx(epsilon, rel=1e-12)
        # each side is rounded up by itself; the truth is not above what was asked for
        assert cost(math.nextafter(sigma, math.inf)) <= math.nextafter(epsilon, math.inf)


@given(st.floats(1e-3, 30.0), st.floats(1e-3, 1e3))
def test_the_truth_in_many_digits_is_on_the_safe_side(epsilon: float, bound: float) -> None:
    with mpmath.workdps(60):
        sigma = mpmath.mpf(sigma_for(epsilon, bound))
        assert mpmath.log1p(mpmath.mpf(bound) / sigma) <= mpmath.mpf(epsilon)
        truth = mpmath.log1p(mpmath.mpf(bound) / mpmath.mpf(epsilon))
        assert truth <= mpmath.mpf(natural_epsilon(bound, epsilon)) <= truth * (1 + mpmath.mpf(2) ** -51)
        one, other = (mpmath.log1p(mpmath.mpf(bound) / (i + mpmath.mpf(epsilon))) for i in (0, 1))
        truth = max(one - other, other)
        assert truth <= mpmath.mpf(subset_epsilon(bound, epsilon)) <= truth * (1 + mpmath.mpf(2) ** -51)


@given(SIZES, SIZES, st.floats(1.001, 100.0))
def test_more_jitter_costs_less_and_a_larger_bound_more(bound: float, sigma: float, factor: float) -> None:
    costs: list[Callable[[float, float], float]] = [
        natural_epsilon,
        subset_epsilon,
        subset_range,
        lambda b, s: trace_epsilon(b, s, 5, 3),
        lambda b, s: frobenius_epsilon(b, s, 5),
        lambda b, s: spectral_epsilon(b, s, n=9),
        lambda b, s: published_epsilon(b, s, 9),
    ]
    for cost in costs:
        assert cost(bound, sigma * factor) < cost(bound, sigma) < cost(bound * factor, sigma)


@given(SIZES, SIZES)
def test_the_bounds_are_in_order(bound: float, sigma: float) -> None:
    eta = natural_epsilon(bound, sigma)
    assert subset_epsilon(bound, sigma) <= eta == subset_epsilon(bound, sigma, Relation.REPLACE)
    assert subset_range(bound, sigma) == eta
    assert trace_epsilon(bound, sigma, k=10, rank=1) == eta  # a user's c c^T has rank 1
    spread = [trace_epsilon(bound, sigma, k=10, rank=rank) for rank in range(1, 12)]
    assert spread[:10] == sorted(spread[:10])
    assert spread[9] == spread[10]  # no more than k eigenvalues count
    n = 30
    whole = frobenius_epsilon(bound, sigma, n=n)
    assert 2 * whole == pytest.approx(
        published_epsilon(bound, sigma, n), rel=1e-14
    )  # the paper's, without its factor 2
    assert frobenius_epsilon(bound, sigma, k=3, n=n) <= frobenius_epsilon(bound, sigma, k=20, n=n) == whole
    assert frobenius_epsilon(bound, sigma, k=3) <= spectral_epsilon(bound, sigma, k=3)


def test_the_range_of_a_subset_is_not_its_epsilon() -> None:
    """At bound = sigma = 1 the Renyi divergence of order 2 is .1178, which a range of .405 would not allow."""
    with_one, without = (np.array([1.0, weight]) / (1.0 + weight) for weight in (2.0, 1.0))  # one item, L = 2 and L = 1
    renyi = max(math.log(float(np.sum(p * p / q))) for p, q in ((with_one, without), (without, with_one)))
    assert renyi == pytest.approx(0.1178, abs=5e-5)
    assert renyi > 2 * subset_epsilon(1.0, 1.0) ** 2 / 8
    assert renyi <= 2 * subset_range(1.0, 1.0) ** 2 / 8


def test_a_change_of_frobenius_norm_d_may_cost_more_than_the_bound_with_k_instead_of_2k() -> None:
    size, k, n = 5.0, 1, 10
    before, after = np.array([1.0] + [2.0] * 9), np.array([5.0] + [1.0] * 9)
    assert np.linalg.norm(after - before) == size
    ratio = (after / after.sum()) / (before / before.sum())
    assert ratio.max() == pytest.approx(95 / 14)
    assert math.log(ratio.max()) > math.log(1.0 + size)
    assert math.log(ratio.max()) <= frobenius_epsilon(size, 1.0, k, n)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, None, "1", True])
def test_what_is_no_size_is_refused(bad: Any) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: natural_epsilon(bad, 1.0),
        lambda: natural_epsilon(1.0, bad),
        lambda: sigma_for(bad),
        lambda: sigma_for(1.0, bad),
        lambda: subset_epsilon(bad, 1.0),
        lambda: subset_epsilon(1.0, bad),
        lambda: subset_sigma_for(bad),
        lambda: trace_epsilon(1.0, bad, 2, 2),
        lambda: trace_epsilon(1.0, 1.0, bad, 2),
        lambda: frobenius_epsilon(bad, 1.0, 2),
        lambda: spectral_epsilon(1.0, bad, 2),
        lambda: published_epsilon(1.0, bad, 5),
        lambda: published_sigma_for(bad, 5),
        lambda: published_sigma_for(1.0, bad),
        lambda: range_each(bad, 1.0, 1e-6),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidParameter):
            attempt()


def test_sizes_that_do_not_fit_each_other_are_refused() -> None:
    for attempt in (lambda: frobenius_epsilon(1.0, 1.0), lambda: frobenius_epsilon(1.0, 1.0, k=4, n=3)):
        with pytest.raises(InvalidParameter):
            attempt()
    with pytest.raises(InvalidParameter, match="Raise epsilon"):
        sigma_for(1e-320)


def test_extreme_epsilons_have_an_answer() -> None:
    assert 0.0 < sigma_for(1e308) < 1e-300
    assert 0.0 < published_sigma_for(1e308, 3) < 1e-300
    assert 0.0 < subset_sigma_for(300.0) < 1e-100
    assert natural_epsilon(1e308, 5e-324) == pytest.approx(math.log(1e308) + 1074 * math.log(2.0), rel=1e-12)
    assert Fraction(natural_epsilon(5e-324, 1e308)) > 0
