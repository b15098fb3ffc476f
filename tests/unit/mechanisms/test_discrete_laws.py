"""The discrete Laplace and Gaussian laws: their digits, tails and draws are the true ones, to 2,000 bits."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.coins import (
    exponential_coins,
)
from tests.unit.mechanisms import reference
from tests.unit.mechanisms.many_digits import MP, ONES, digits_of, exp
from tests.unit.mechanisms.scripted import ScriptedNoise, further, native

# --- geometric numbers and the discrete Laplace law


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(1000), Fraction(1 << 20) / 3])
def test_probabilities_of_the_digits_are_the_true_ones(scale: Fraction) -> None:
    digits = integers._digits(scale)
    for i in range(digits.count):
        p = 1 / (1 + exp((1 << i) / scale))
        assert int(digits.floor[i, 0]) == digits_of(p, 16)
        for size in (0, 16, 80, 300):
            low, high = digits.bounds[i](size)
            assert low <= MP.ldexp(p, size) <= high
            assert high - low <= 2
    p = exp(-(1 << digits.count) / scale)
    assert p < 2.0**-16
    assert int(digits.floor[-1, 0]) == 0
    low, high = digits.bounds[-1](200)
    assert low <= MP.ldexp(p, 200) <= high


@pytest.mark.parametrize("scale", [Fraction(5), Fraction(1000, 7)])
def test_all_first_words_and_their_ties_are_decided_right_for_each_digit(scale: Fraction) -> None:
    digits = integers._digits(scale)
    words = np.arange(1 << 16)
    below: list[bytes] = []
    above: list[bytes] = []
    for i in range(digits.count):
        after = digits_of(1 / (1 + exp((1 << i) / scale)), 80) % (1 << 64)
        below.append(further(after - 1))
        above.append(further(after + 1))
    high = further(ONES)  # the coin of the high digits: its one tie falls tails
    block = native(np.tile(words, digits.count + 1), 2)
    for ties, tie_is_one in ((below, 1), (above, 0)):
        value = integers._geometric(digits, words.size, ScriptedNoise(block, *ties, high))
        for i in range(digits.count):
            tie = int(digits.floor[i, 0])
            digit = (value >> i) & 1
            assert digit[:tie].all()
            assert int(digit[tie]) == tie_is_one
            assert not digit[tie + 1 :].any()
        assert (value < 1 << digits.count).all()


def test_high_digits_count_how_often_their_coin_falls_heads() -> None:
    scale = Fraction(3)
    digits = integers._digits(scale)
    words = [[65535] * 3] * digits.count + [[0, 0, 1]]  # low digits 0; the third draw has no high digits
    p = exp(-(1 << digits.count) / scale)
    heads, tails = further(digits_of(p, 80) - 1), further(digits_of(p, 80) + 1)
    again, stop = further(digits_of(p, 64) - 1), further(digits_of(p, 64) + 1)
    noise = ScriptedNoise(native([w for row in words for w in row], 2), heads, heads, again, again, stop, stop)
    value = integers._geometric(digits, 3, noise)
    assert value.tolist() == [3 << digits.count, 1 << digits.count, 0]
    assert noise.left == 0
    noise = ScriptedNoise(native([w for row in words for w in row], 2), tails, tails)
    assert integers._geometric(digits, 3, noise).tolist() == [0, 0, 0]


def test_minus_zero_is_drawn_again_and_nothing_else_is() -> None:
    digits = integers._digits(Fraction(1, 20))  # no digits: only the high coin
    assert digits.count == 0
    block = np.full(4, 99, dtype=np.int64)
    # all four magnitudes 0; signs -, +, -, +; the two of "-0" again: -, +; the last again: +
    noise = ScriptedNoise(
        native([9] * 4, 2), bytes([0b10100000]), native([9] * 2, 2), bytes([0b10000000]), native([9], 2), bytes([0])
    )
    integers._fill(block, digits, noise)
    assert block.tolist() == [0, 0, 0, 0]
    assert noise.left == 0


@pytest.mark.parametrize("count", [0, 1, 2, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 40_000])
def test_discrete_laplace_gives_as_many_draws_as_asked_for(count: int) -> None:
    draws = integers.sample_discrete_laplace(Fraction(1000), count, ReplayedNoise(5))
    assert draws.shape == (count,)
    assert draws.dtype == np.int64
    if count > 1:
        assert np.unique(draws).size > min(count, 1000) // 3


def test_chunks_do_not_repeat_each_other() -> None:
    draws = integers.sample_discrete_laplace(Fraction(1 << 20), 1 << 16, ReplayedNoise(5)).reshape(4, -1)
    for i in range(4):
        for j in range(i):
            assert np.count_nonzero(draws[i] == draws[j]) < 5
            assert abs(np.corrcoef(np.sign(draws[i]), np.sign(draws[j]))[0, 1]) < 0.06  # 7 deviations of 1/128


def test_discrete_laplace_law_of_the_published_vector() -> None:
    law = integers.discrete_laplace_pmf(np.arange(-3, 4), Fraction(1))
    expected = [0.0230075, 0.0625408, 0.1700034, 0.4621172, 0.1700034, 0.0625408, 0.0230075]
    np.testing.assert_allclose(law, expected, atol=5e-8)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(9, 4), Fraction(20)])
def test_laplace_pmf_and_both_tails_equal_plain_sums(scale: Fraction) -> None:
    reach = int(50 * scale) + 5
    law = reference.discrete_laplace(scale, reach)
    n = np.arange(-reach, reach + 1)
    np.testing.assert_allclose(integers.discrete_laplace_pmf(n, scale), list(law.values()), rtol=1e-12)
    for at in (-7, -1, 0, 1, 2, 9):
        assert float(integers.discrete_laplace_cdf(at, scale)) == pytest.approx(
            sum(p for m, p in law.items() if m <= at), rel=1e-12
        )
        assert float(integers.discrete_laplace_survival(at, scale)) == pytest.approx(
            sum(p for m, p in law.items() if m >= at), rel=1e-12
        )


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(1 << 53), Fraction(10) ** 400])
def test_laplace_scales_that_cannot_be_drawn_are_refused(scale: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        integers.sample_discrete_laplace(scale, 3, ReplayedNoise(1))


def test_the_smallest_and_the_largest_laplace_scale_are_drawn() -> None:
    assert not integers.sample_discrete_laplace(Fraction(1, 10**400), 1000, ReplayedNoise(1)).any()
    large = integers.sample_discrete_laplace(Fraction(1 << 51), 1000, ReplayedNoise(1))
    assert float(np.abs(large).mean()) == pytest.approx(2.0**51, rel=0.25)


# --- the discrete Gaussian law


@pytest.mark.parametrize(
    "variance", [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(17, 4), Fraction(9), Fraction(50)]
)
def test_gaussian_pmf_equals_plain_sums(variance: Fraction) -> None:
    law = reference.discrete_gaussian(variance, 130)
    np.testing.assert_allclose(
        integers.discrete_gaussian_pmf(np.arange(-130, 131), variance), list(law.values()), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("count", [0, 1, 2, 40_000])
def test_discrete_gaussian_gives_as_many_draws_as_asked_for(count: int) -> None:
    draws = integers.sample_discrete_gaussian(Fraction(10**6), count, ReplayedNoise(5))
    assert draws.shape == (count,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(10) ** 40])
def test_gaussian_variances_that_cannot_be_drawn_are_refused(variance: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        integers.sample_discrete_gaussian(variance, 3, ReplayedNoise(1))


@pytest.mark.parametrize(
    "variance",
    [Fraction(1, 1000), Fraction(1, 2), Fraction(10), Fraction(10**6) / 7, Fraction(1 << 44) / 3, Fraction(1 << 90)],
)
def test_float_exponents_of_the_gaussian_coins_are_within_the_guard(
    variance: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """|y| - sigma^2/t cancels, so the exponent's relative error is unbounded; what counts is the error of e^-x."""
    worst = 0.0

    def watched(exponents: Any, exact: Any, noise: Any) -> Any:
        nonlocal worst
        for i in range(0, exponents.size, max(1, exponents.size // 400)):
            worst = max(worst, abs(float(MP.exp(-MP.mpf(float(exponents[i]))) - exp(-exact(i)))))
        return exponential_coins(exponents, exact, noise)

    monkeypatch.setattr(integers, "exponential_coins", watched)
    integers.sample_discrete_gaussian(variance, 200, ReplayedNoise(2))
    assert worst < 2.0**-48


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(15, 4), Fraction(10**6) / 7])
def test_proposal_and_coin_of_the_gaussian_sampler_multiply_to_its_law(
    variance: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """|y|/t + x(y) = y^2/2v + a constant, in fractions: then the kept values have weights e^(-y^2/2v)."""
    proposals: list[Any] = []
    constants: set[Fraction] = set()

    def proposed(scale: Fraction, count: int, noise: Any) -> Any:
        proposals.append((scale, sample(scale, count, noise)))
        return proposals[-1][1]

    def watched(exponents: Any, exact: Any, noise: Any) -> Any:
        scale, values = proposals[-1]
        for i in range(min(200, exponents.size)):
            y = abs(int(values[i]))
            constants.add(y / scale + exact(i) - Fraction(y * y) / (2 * variance))
        return exponential_coins(exponents, exact, noise)

    sample = integers.sample_discrete_laplace
    monkeypatch.setattr(integers, "sample_discrete_laplace", proposed)
    monkeypatch.setattr(integers, "exponential_coins", watched)
    integers.sample_discrete_gaussian(variance, 300, ReplayedNoise(2))
    assert len(constants) == 1
