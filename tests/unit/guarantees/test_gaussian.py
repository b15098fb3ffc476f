import math

import mpmath
import pytest
from scipy.special import erfcx, ndtr

from tacit.errors import InvalidParameter
from tacit.guarantees import delta_of_gaussian, epsilon_of_gaussian, mu_for


def reference(mu, epsilon):
    """The same formula, at 120 digits."""
    with mpmath.workdps(120):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.2367, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 1.0, 8.0, 60.0])
def test_delta_is_the_next_float_above_the_exact_one(mu, epsilon):
    exact, ours = reference(mu, epsilon), delta_of_gaussian(mu, epsilon)
    with mpmath.workdps(120):
        assert ours >= exact
        assert ours <= max(exact * (1 + mpmath.mpf(10) ** -15), 5e-324)


def test_delta_agrees_with_a_stable_float_formula():
    for mu, epsilon in ((0.5, 1.0), (1.0, 4.0), (2.0, 3.0)):
        a, b = (epsilon / mu - mu / 2) / math.sqrt(2), (epsilon / mu + mu / 2) / math.sqrt(2)
        stable = 0.5 * math.exp(-a * a) * (erfcx(a) - erfcx(b))
        assert delta_of_gaussian(mu, epsilon) == pytest.approx(stable, rel=1e-12)
        assert delta_of_gaussian(mu, epsilon) == pytest.approx(
            ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu), rel=1e-9
        )


@pytest.mark.parametrize(
    ("epsilon", "mu", "sigma"),
    [(0.5, 0.124, 8.0576), (1, 0.236704, 4.2247), (2, 0.448, 2.2305), (4, 0.838, 1.1935), (8, 1.531545, 0.6529)],
)
def test_mu_for_an_epsilon(epsilon, mu, sigma):
    found = mu_for(epsilon, 1e-6)
    assert found == pytest.approx(mu, abs=5e-4 if len(str(mu)) < 7 else 5e-7)
    assert 1 / found == pytest.approx(sigma, abs=5e-5)


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.1, 36.3047), (10, 0.5411)])
def test_noise_at_the_ends(epsilon, sigma):
    assert 1 / mu_for(epsilon, 1e-6) == pytest.approx(sigma, abs=5e-5)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_mu_is_the_last_float_that_fits_and_epsilon_the_first(epsilon, delta):
    mu = mu_for(epsilon, delta)
    assert delta_of_gaussian(mu, epsilon) <= delta < delta_of_gaussian(mu * (1 + 1e-14), epsilon)
    back = epsilon_of_gaussian(mu, delta)
    assert delta_of_gaussian(mu, back) <= delta
    assert back == pytest.approx(epsilon, rel=1e-12)


def test_epsilon_is_zero_where_delta_covers_the_whole_difference():
    assert epsilon_of_gaussian(0.1, 0.5) == 0.0


def test_extremes_end():
    assert delta_of_gaussian(1e-300, 1.0) == 5e-324
    assert delta_of_gaussian(1e300, 1.0) == 1.0
    assert 0.0 < mu_for(1e-300, 1e-300) < 1e-299
    assert mu_for(1e300, 1e-300) > 1e149


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_parameters_are_checked(bad):
    with pytest.raises(InvalidParameter, match="mu must be a finite number above 0"):
        delta_of_gaussian(bad, 1.0)
    with pytest.raises(InvalidParameter, match="mu must be"):
        epsilon_of_gaussian(bad, 1e-6)
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        mu_for(bad, 1e-6)
    with pytest.raises(InvalidParameter, match="delta must lie"):
        mu_for(1.0, bad)
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        delta_of_gaussian(1.0, bad if bad else -1.0)
