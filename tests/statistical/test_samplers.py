"""The samplers' laws by draws: against closed forms, against the published algorithms, against OpenDP."""

from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.coins import (
    below,
    below_each,
    bernoulli,
    exponential_bounds,
    exponential_coins,
    few_exponential_coins,
    logistic_bounds,
)
from tacit.mechanisms.samplers.subsets import choose, choose_one
from tests.contracts.mechanism import ALARM, chi_square, two_sample
from tests.unit.mechanisms import reference

pytestmark = pytest.mark.statistical
DRAWS = 200_000


def counted(draws: np.ndarray, first: int, last: int) -> np.ndarray:
    """How often each whole number from ``first`` to ``last`` was drawn; what lies beyond goes to the ends."""
    return np.bincount(np.clip(draws, first, last) - first, minlength=last - first + 1)


def with_tails(law: Any, first: int, last: int) -> np.ndarray:
    """A symmetric law on ``first`` .. ``last`` with all of its tails in the end cells."""
    p = np.asarray(law(np.arange(first, last + 1)), dtype=np.float64)
    rest = max(0.0, 1.0 - p.sum()) / 2.0
    p[0] += rest
    p[-1] += rest
    return p


# --- discrete Laplace


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(7, 3), Fraction(20), Fraction(1000, 3)])
def test_discrete_laplace_has_its_law_and_no_other(scale: Fraction, noise: Any) -> None:
    draws = integers.sample_discrete_laplace(scale, DRAWS, noise)
    last = int(8 * scale) + 3
    law = with_tails(lambda n: integers.discrete_laplace_pmf(n, scale), -last, last)
    counts = counted(draws, -last, last)
    assert chi_square(counts, law) > ALARM
    for factor in (Fraction(10, 11), Fraction(11, 10)):
        other = with_tails(lambda n, s=scale * factor: integers.discrete_laplace_pmf(n, s), -last, last)
        assert chi_square(counts, other) < ALARM


@pytest.mark.parametrize("scale", [Fraction(1 << 20) / 3, Fraction(1 << 45)])
def test_wide_discrete_laplace_noise_has_uniform_low_digits_and_the_right_quantiles(
    scale: Fraction, noise: Any
) -> None:
    draws = integers.sample_discrete_laplace(scale, DRAWS, noise)
    assert chi_square(np.bincount(draws & 255, minlength=256), np.full(256, 1 / 256)) > ALARM
    cells = 64
    rank = np.floor(integers.discrete_laplace_cdf(draws, scale) * cells).astype(np.int64).clip(0, cells - 1)
    assert chi_square(np.bincount(rank, minlength=cells), np.full(cells, 1 / cells)) > ALARM


@pytest.mark.parametrize("digits", [0, 1, 2, 3])
def test_few_digits_and_a_high_coin_make_the_same_geometric_law(digits: int, noise: Any) -> None:
    """With so few digits the high coin, which is rare in production, decides most draws."""
    scale = Fraction(3)
    bounds = [logistic_bounds((1 << i) / scale) for i in range(digits)] + [exponential_bounds((1 << digits) / scale)]
    floor = np.array([[integers._floor16(bound)] for bound in bounds], dtype=np.uint16)
    draws = integers._geometric(integers._Digits(tuple(bounds), floor), 30_000, noise)
    q = np.exp(-1.0 / 3.0)
    law = (1 - q) * q ** np.arange(40)
    law[-1] = q**39
    assert chi_square(np.bincount(np.minimum(draws, 39), minlength=40), law) > ALARM


def test_neighbouring_coordinates_and_chunks_are_independent(noise: Any) -> None:
    scale = Fraction(2)
    draws = np.clip(integers.sample_discrete_laplace(scale, DRAWS, noise), -3, 3) + 3
    law = with_tails(lambda n: integers.discrete_laplace_pmf(n, scale), -3, 3)
    for apart in (1, 8, 1 << 14):
        pairs = np.bincount(7 * draws[:-apart] + draws[apart:], minlength=49)
        assert chi_square(pairs, np.outer(law, law).ravel()) > ALARM


def test_sign_and_magnitude_are_independent_and_zero_is_single(noise: Any) -> None:
    scale = Fraction(1)
    draws = integers.sample_discrete_laplace(scale, DRAWS, noise)
    counts = counted(draws, -4, 4)
    assert chi_square(counts, with_tails(lambda n: integers.discrete_laplace_pmf(n, scale), -4, 4)) > ALARM
    doubled = with_tails(lambda n: integers.discrete_laplace_pmf(n, scale), -4, 4)
    doubled[4] *= 2.0  # what a sampler without the redraw of -0 would do
    assert chi_square(counts, doubled / doubled.sum()) < ALARM


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(5, 2)])
def test_discrete_laplace_agrees_with_the_published_algorithm(scale: Fraction, noise: Any) -> None:
    slow = np.array([reference.sample_discrete_laplace(scale, noise) for _ in range(20_000)])
    assert two_sample(integers.sample_discrete_laplace(scale, 100_000, noise), slow) > ALARM
    assert two_sample(integers.sample_discrete_laplace(scale * Fraction(6, 5), 100_000, noise), slow) < ALARM


# --- discrete Gaussian


@pytest.mark.parametrize(
    "variance", [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(15, 4), Fraction(16), Fraction(1234, 7)]
)
def test_discrete_gaussian_has_its_law_and_no_other(variance: Fraction, noise: Any) -> None:
    draws = integers.sample_discrete_gaussian(variance, DRAWS, noise)
    last = int(5 * float(variance) ** 0.5) + 2
    counts = counted(draws, -last, last)
    assert chi_square(counts, with_tails(lambda n: integers.discrete_gaussian_pmf(n, variance), -last, last)) > ALARM
    for factor in (Fraction(10, 11), Fraction(11, 10)):
        other = with_tails(lambda n, v=variance * factor: integers.discrete_gaussian_pmf(n, v), -last, last)
        assert chi_square(counts, other) < ALARM


def test_wide_discrete_gaussian_noise_has_uniform_low_digits_and_the_right_quantiles(noise: Any) -> None:
    from scipy import stats

    deviation = 3.7e9
    draws = integers.sample_discrete_gaussian(Fraction(deviation) ** 2, 100_000, noise)
    assert chi_square(np.bincount(draws & 255, minlength=256), np.full(256, 1 / 256)) > ALARM
    rank = np.floor(stats.norm.cdf(draws / deviation) * 64).astype(np.int64).clip(0, 63)
    assert chi_square(np.bincount(rank, minlength=64), np.full(64, 1 / 64)) > ALARM


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(11, 2)])
def test_discrete_gaussian_agrees_with_the_published_algorithm(variance: Fraction, noise: Any) -> None:
    slow = np.array([reference.sample_discrete_gaussian(variance, noise) for _ in range(10_000)])
    assert two_sample(integers.sample_discrete_gaussian(variance, 100_000, noise), slow) > ALARM
    assert two_sample(integers.sample_discrete_gaussian(variance * Fraction(3, 2), 100_000, noise), slow) < ALARM


# --- OpenDP, a second opinion


def opendp_draws(make: Any, metric: Any, scale: float, count: int) -> np.ndarray:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), metric
    return np.array(make(*space, scale=scale)([0] * count))


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
def test_discrete_laplace_agrees_with_opendp(scale: float, noise: Any) -> None:
    theirs = opendp_draws(dp.m.make_laplace, dp.l1_distance(T="i64"), scale, 50_000)
    assert two_sample(integers.sample_discrete_laplace(Fraction(scale), 50_000, noise), theirs) > ALARM
    assert two_sample(integers.sample_discrete_laplace(Fraction(scale) * Fraction(6, 5), 50_000, noise), theirs) < ALARM


@pytest.mark.parametrize("deviation", [0.7, 3.0, 20.0])
def test_discrete_gaussian_agrees_with_opendp(deviation: float, noise: Any) -> None:
    theirs = opendp_draws(dp.m.make_gaussian, dp.l2_distance(T="f64"), deviation, 50_000)
    assert two_sample(integers.sample_discrete_gaussian(Fraction(deviation) ** 2, 50_000, noise), theirs) > ALARM
    assert two_sample(integers.sample_discrete_gaussian(Fraction(deviation * 1.2) ** 2, 50_000, noise), theirs) < ALARM


# --- coins, choices, uniform numbers


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 1000), Fraction(999, 1000)])
def test_rational_coins_have_their_law(p: Fraction, noise: Any) -> None:
    heads = int(bernoulli(p, DRAWS, noise).sum())
    assert chi_square(np.array([heads, DRAWS - heads]), np.array([float(p), 1 - float(p)])) > ALARM


@pytest.mark.parametrize("guard", [2.0**-44, 1.0])
@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(2), Fraction(6)])
def test_exponential_coins_have_their_law_on_both_paths(exponent: Fraction, guard: float, noise: Any) -> None:
    count = 100_000 if guard < 1.0 else 10_000
    heads = int(exponential_coins(np.full(count, float(exponent)), lambda i: exponent, noise, guard=guard).sum())
    p = np.exp(-float(exponent))
    assert chi_square(np.array([heads, count - heads]), np.array([p, 1 - p])) > ALARM
    few = sum(
        sum(few_exponential_coins([float(exponent)] * 10, lambda i: exponent, noise, guard=guard)) for _ in range(1000)
    )
    assert chi_square(np.array([few, 10_000 - few]), np.array([p, 1 - p])) > ALARM


@pytest.mark.parametrize("guard", [2.0**-44, 10.0])
def test_choices_have_their_law_on_both_paths(guard: float, noise: Any) -> None:
    exact = [Fraction(1, 3), Fraction(0), Fraction(3), Fraction(1)]
    floats = [float(x) for x in exact]
    law = np.exp(-np.array(floats))
    count = 100_000 if guard < 1.0 else 10_000
    chosen = choose(np.tile(floats, (count, 1)), lambda row: exact, noise, guard=guard)
    assert chi_square(np.bincount(chosen, minlength=4), law / law.sum()) > ALARM
    one = [choose_one(floats, lambda: exact, noise, guard=guard) for _ in range(10_000)]
    assert chi_square(np.bincount(one, minlength=4), law / law.sum()) > ALARM


@pytest.mark.parametrize("bound", [1, 2, 3, 1 << 24, 1 << 40, 3 << 60])
def test_uniform_numbers_are_uniform(bound: int, noise: Any) -> None:
    cells = min(bound, 100)
    law = np.diff([-(-bound * i // cells) / bound for i in range(cells + 1)])
    one = np.array([below(bound, noise) * cells // bound for _ in range(20_000)])
    assert chi_square(np.bincount(one, minlength=cells), law) > ALARM
    if bound < 1 << 62:
        many = below_each(np.full(100_000, bound), noise)
        place = (many.astype(object) * cells // bound).astype(np.int64)
        assert chi_square(np.bincount(place, minlength=cells), law) > ALARM
