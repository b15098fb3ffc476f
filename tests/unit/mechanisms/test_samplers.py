"""Exactness of the samplers: every decision is compared with the true probability in 2,000 bits, at chosen random bits.

Nothing here is statistical. Scripted noise puts U right beside the probability, where a float cannot decide, and all 65,536
first words are tried where one word decides.
"""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.guarantees.rounding import exp_bounds
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.noise import words16
from tacit.mechanisms.samplers import discrete_gaussian, discrete_laplace
from tacit.mechanisms.samplers.choice import _settle, _weight, choose, choose_one
from tacit.mechanisms.samplers.coins import (
    GUARD,
    bernoulli,
    coins,
    exponential_coins,
    few_exponential_coins,
    geometric,
)
from tacit.mechanisms.samplers.decide import exponential_bounds, is_below, logistic_bounds, ratio_bounds
from tests.unit.mechanisms import reference
from tests.unit.mechanisms.scripted import ScriptedNoise, further, native

MP = mpmath.MPContext()
MP.prec = 2000
ONES = (1 << 64) - 1
EXPONENTS = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(11), Fraction(1, 1 << 40), Fraction(40), Fraction(0)]


def exp(exponent: Fraction) -> Any:
    return MP.exp(MP.mpf(exponent.numerator) / exponent.denominator)


def digits_of(p: Any, count: int) -> int:
    """The first ``count`` binary digits of p after the point."""
    return int(MP.floor(MP.ldexp(p, count)))


# --- is U < p?


@pytest.mark.parametrize("exponent", [x for x in EXPONENTS if x])
@pytest.mark.parametrize("known", [0, 16, 64])
def test_a_uniform_that_shares_its_first_bits_with_p_is_settled_by_later_ones(exponent: Fraction, known: int) -> None:
    p = exp(-exponent)
    first, second, third = (
        digits_of(p, known),
        digits_of(p, known + 64) % (1 << 64),
        digits_of(p, known + 128) % (1 << 64),
    )
    for last, below in ((third - 1, True), (third + 1, False)):
        noise = ScriptedNoise(further(second), further(last), further(ONES))
        assert is_below(exponential_bounds(exponent), noise, prefix=first, known=known) is below


def test_dyadic_probability_is_decided_without_further_bits_once_all_of_its_own_are_known() -> None:
    bounds = ratio_bounds(Fraction(5, 16))
    for prefix in range(16):
        assert is_below(bounds, ScriptedNoise(), prefix=prefix, known=4) is (prefix < 5)


def test_certain_and_impossible_need_no_bits() -> None:
    assert is_below(ratio_bounds(Fraction(1)), ScriptedNoise())
    assert not is_below(ratio_bounds(Fraction(0)), ScriptedNoise())
    assert is_below(exponential_bounds(Fraction(0)), ScriptedNoise())


# --- coins with one probability


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(1, 65536), Fraction(65535, 65536), Fraction(1, 10**9), Fraction(1, 2)]
)
def test_each_of_the_65536_first_words_of_a_coin_is_decided_right(p: Fraction) -> None:
    words = np.arange(1 << 16)
    tie = p.numerator * 65536 // p.denominator
    rest = p * 65536 - tie
    for extra, tie_is_heads in ((0, rest > 0), (ONES, Fraction(ONES, 1 << 64) < rest)):
        heads = bernoulli(p, words.size, ScriptedNoise(native(words, 2), further(extra), further(0)))
        expected = words < tie
        if tie < 65536:
            expected[tie] = tie_is_heads
        np.testing.assert_array_equal(heads, expected)


def test_certain_coins_are_always_heads_and_impossible_ones_never() -> None:
    assert bernoulli(Fraction(1), 1000, ReplayedNoise(1)).all()
    assert not bernoulli(Fraction(0), 1000, ReplayedNoise(1)).any()
    assert coins(exponential_bounds(Fraction(0)), 1000, ReplayedNoise(1)).all()


def test_a_coin_beyond_65535_of_65536_can_still_fall_tails() -> None:
    p = 1 - Fraction(1, 1 << 40)
    noise = ScriptedNoise(native([65535, 65535], 2), further(ONES), further(ONES - (1 << 41)))
    assert bernoulli(p, 2, noise).tolist() == [False, True]


def test_no_coins_are_no_coins() -> None:
    assert bernoulli(Fraction(1, 3), 0, ReplayedNoise(1)).shape == (0,)
    assert exponential_coins(np.zeros((0, 3)), lambda i: Fraction(0), ReplayedNoise(1)).shape == (0, 3)
    assert few_exponential_coins([], lambda i: Fraction(0), ReplayedNoise(1)) == []
    assert geometric(Fraction(1, 3), 0, ReplayedNoise(1)).shape == (0,)


# --- coins with probability e^-x


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_each_of_the_65536_first_words_of_an_exponential_coin_is_decided_right(exponent: Fraction) -> None:
    words = np.arange(1 << 16)
    tie = digits_of(exp(-exponent), 16)
    after = digits_of(exp(-exponent), 80) % (1 << 64)
    for extra, tie_is_heads in ((max(after - 1, 0), after > 0), (after + 1, False)):
        noise = ScriptedNoise(native(words, 2), further(extra), *[further(ONES)] * 4)
        heads = exponential_coins(np.full(words.size, float(exponent)), lambda i: exponent, noise)
        expected = words < tie
        if tie < 65536:
            expected[tie] = tie_is_heads
        np.testing.assert_array_equal(heads, expected)


@pytest.mark.parametrize("exponent", [x for x in EXPONENTS if x])
def test_one_coin_among_few_is_decided_like_one_among_many(exponent: Fraction) -> None:
    tie = digits_of(exp(-exponent), 16)
    after = digits_of(exp(-exponent), 80) % (1 << 64)
    words = [w for w in (tie - 1, tie, tie, tie + 1, 0, 65535) if 0 <= w < 65536]
    script = [native(words, 2), *[further(max(after - 1, 0)), further(after + 1), further(after + 1)] * 2]
    many = exponential_coins(np.full(len(words), float(exponent)), lambda i: exponent, ScriptedNoise(*script))
    few = few_exponential_coins([float(exponent)] * len(words), lambda i: exponent, ScriptedNoise(*script))
    assert few == many.tolist()


def test_the_unlimited_path_gives_the_same_coins_as_the_fast_one() -> None:
    exact = [Fraction(i, 400) for i in range(4000)]
    floats = np.array([float(x) for x in exact])
    asked: list[int] = []

    def ask(i: int) -> Fraction:
        asked.append(i)
        return exact[i]

    # a uniform word settles nearly all of them, so that both paths read the same bits but for the few ties
    words = native(words16(ReplayedNoise(3), floats.size), 2)
    fast = exponential_coins(floats, ask, ScriptedNoise(words, *[further(1 << 63)] * 50))
    assert len(asked) < 20
    for guard in (0.5, 1.0):
        asked.clear()
        slow = exponential_coins(floats, ask, ScriptedNoise(words, *[further(1 << 63)] * 50), guard=guard)
        np.testing.assert_array_equal(slow, fast)
    assert asked == list(range(4000))  # a guard of 1 leaves nothing to floats
    few = few_exponential_coins(floats.tolist(), ask, ScriptedNoise(words, *[further(1 << 63)] * 50), guard=1.0)
    assert few == fast.tolist()


def test_exponential_coins_keep_the_shape_of_their_exponents() -> None:
    assert exponential_coins(np.zeros((3, 4)), lambda i: Fraction(0), ReplayedNoise(1)).shape == (3, 4)


def test_numpy_and_libm_exponentials_are_within_what_the_guard_assumes(rng: np.random.Generator) -> None:
    x = np.concatenate(
        [rng.uniform(0.0, 745.0, 500_000), rng.uniform(0.0, 4.0, 400_000), 2.0 ** rng.uniform(-60, 9, 100_000)]
    )
    if np.finfo(np.longdouble).nmant >= 63:
        truth = np.exp(-x.astype(np.longdouble))
        assert float(np.abs(np.exp(-x) - truth).max()) < 2.0**-51
    for value in x[::500].tolist():
        assert abs(Fraction(math.exp(-value)) - Fraction(float(np.exp(-value)))) < 2.0**-51
        exact = exp(-Fraction(value))
        assert abs(MP.mpf(float(np.exp(-value))) - exact) < 2.0**-51
    # an exponent off by a relative 2^-50 moves e^-x by at most x e^-x 2^-50 <= 2^-50 / e: together below 2^-49
    assert 2.0**-51 + 2.0**-50 / math.e < 2.0**-46 < GUARD / 2


# --- geometric numbers and the discrete Laplace law


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(1000), Fraction(1 << 20) / 3])
def test_probabilities_of_the_digits_are_the_true_ones(scale: Fraction) -> None:
    digits = discrete_laplace._digits(scale)
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
    digits = discrete_laplace._digits(scale)
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
        value = discrete_laplace._geometric(digits, words.size, ScriptedNoise(block, *ties, high))
        for i in range(digits.count):
            tie = int(digits.floor[i, 0])
            digit = (value >> i) & 1
            assert digit[:tie].all()
            assert int(digit[tie]) == tie_is_one
            assert not digit[tie + 1 :].any()
        assert (value < 1 << digits.count).all()


def test_high_digits_count_how_often_their_coin_falls_heads() -> None:
    scale = Fraction(3)
    digits = discrete_laplace._digits(scale)
    words = [[65535] * 3] * digits.count + [[0, 0, 1]]  # low digits 0; the third draw has no high digits
    p = exp(-(1 << digits.count) / scale)
    heads, tails = further(digits_of(p, 80) - 1), further(digits_of(p, 80) + 1)
    again, stop = further(digits_of(p, 64) - 1), further(digits_of(p, 64) + 1)
    noise = ScriptedNoise(native([w for row in words for w in row], 2), heads, heads, again, again, stop, stop)
    value = discrete_laplace._geometric(digits, 3, noise)
    assert value.tolist() == [3 << digits.count, 1 << digits.count, 0]
    assert noise.left == 0
    noise = ScriptedNoise(native([w for row in words for w in row], 2), tails, tails)
    assert discrete_laplace._geometric(digits, 3, noise).tolist() == [0, 0, 0]


def test_minus_zero_is_drawn_again_and_nothing_else_is() -> None:
    digits = discrete_laplace._digits(Fraction(1, 20))  # no digits: only the high coin
    assert digits.count == 0
    block = np.full(4, 99, dtype=np.int64)
    # all four magnitudes 0; signs -, +, -, +; the two of "-0" again: -, +; the last again: +
    noise = ScriptedNoise(
        native([9] * 4, 2), bytes([0b10100000]), native([9] * 2, 2), bytes([0b10000000]), native([9], 2), bytes([0])
    )
    discrete_laplace._fill(block, digits, noise)
    assert block.tolist() == [0, 0, 0, 0]
    assert noise.left == 0


@pytest.mark.parametrize("count", [0, 1, 2, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 40_000])
def test_discrete_laplace_gives_as_many_draws_as_asked_for(count: int) -> None:
    draws = discrete_laplace.sample(Fraction(1000), count, ReplayedNoise(5))
    assert draws.shape == (count,)
    assert draws.dtype == np.int64
    if count > 1:
        assert np.unique(draws).size > min(count, 1000) // 3


def test_chunks_do_not_repeat_each_other() -> None:
    draws = discrete_laplace.sample(Fraction(1 << 20), 1 << 16, ReplayedNoise(5)).reshape(4, -1)
    for i in range(4):
        for j in range(i):
            assert np.count_nonzero(draws[i] == draws[j]) < 5
            assert abs(np.corrcoef(np.sign(draws[i]), np.sign(draws[j]))[0, 1]) < 0.06  # 7 deviations of 1/128


def test_discrete_laplace_law_of_the_published_vector() -> None:
    law = discrete_laplace.pmf(np.arange(-3, 4), Fraction(1))
    expected = [0.0230075, 0.0625408, 0.1700034, 0.4621172, 0.1700034, 0.0625408, 0.0230075]
    np.testing.assert_allclose(law, expected, atol=5e-8)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(9, 4), Fraction(20)])
def test_laplace_pmf_and_both_tails_equal_plain_sums(scale: Fraction) -> None:
    reach = int(50 * scale) + 5
    law = reference.discrete_laplace(scale, reach)
    n = np.arange(-reach, reach + 1)
    np.testing.assert_allclose(discrete_laplace.pmf(n, scale), list(law.values()), rtol=1e-12)
    for at in (-7, -1, 0, 1, 2, 9):
        assert float(discrete_laplace.cdf(at, scale)) == pytest.approx(
            sum(p for m, p in law.items() if m <= at), rel=1e-12
        )
        assert float(discrete_laplace.survival(at, scale)) == pytest.approx(
            sum(p for m, p in law.items() if m >= at), rel=1e-12
        )


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(1 << 53), Fraction(10) ** 400])
def test_laplace_scales_that_cannot_be_drawn_are_refused(scale: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        discrete_laplace.sample(scale, 3, ReplayedNoise(1))


def test_the_smallest_and_the_largest_laplace_scale_are_drawn() -> None:
    assert not discrete_laplace.sample(Fraction(1, 10**400), 1000, ReplayedNoise(1)).any()
    large = discrete_laplace.sample(Fraction(1 << 51), 1000, ReplayedNoise(1))
    assert float(np.abs(large).mean()) == pytest.approx(2.0**51, rel=0.25)


# --- the discrete Gaussian law


@pytest.mark.parametrize(
    "variance", [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(17, 4), Fraction(9), Fraction(50)]
)
def test_gaussian_pmf_equals_plain_sums(variance: Fraction) -> None:
    law = reference.discrete_gaussian(variance, 130)
    np.testing.assert_allclose(
        discrete_gaussian.pmf(np.arange(-130, 131), variance), list(law.values()), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("count", [0, 1, 2, 40_000])
def test_discrete_gaussian_gives_as_many_draws_as_asked_for(count: int) -> None:
    draws = discrete_gaussian.sample(Fraction(10**6), count, ReplayedNoise(5))
    assert draws.shape == (count,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(10) ** 40])
def test_gaussian_variances_that_cannot_be_drawn_are_refused(variance: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        discrete_gaussian.sample(variance, 3, ReplayedNoise(1))


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

    monkeypatch.setattr(discrete_gaussian, "exponential_coins", watched)
    discrete_gaussian.sample(variance, 200, ReplayedNoise(2))
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

    sample = discrete_laplace.sample
    monkeypatch.setattr(discrete_gaussian.discrete_laplace, "sample", proposed)
    monkeypatch.setattr(discrete_gaussian, "exponential_coins", watched)
    discrete_gaussian.sample(variance, 300, ReplayedNoise(2))
    assert len(constants) == 1


# --- one of k items


def edges_of(exponents: list[Fraction]) -> list[Any]:
    """The true running shares of the weights."""
    weights = [exp(-x) for x in exponents]
    return [MP.fsum(weights[: i + 1]) / MP.fsum(weights) for i in range(len(weights))]


CHOICES = [
    [Fraction(0), Fraction(1, 3), Fraction(2)],
    [Fraction(5), Fraction(0), Fraction(0), Fraction(1, 7)],
    [Fraction(i, 50) for i in range(24)],
    [Fraction(40), Fraction(0), Fraction(60)],
]


@pytest.mark.parametrize("exponents", CHOICES)
@pytest.mark.parametrize("away", [0, 1, 2, 1 << 10, 1 << 18, 1 << 20, 1 << 21, 1 << 30])
def test_choices_beside_an_edge_are_the_true_ones(exponents: list[Fraction], away: int) -> None:
    """The words whose U lies ``away`` * 2^-64 from an edge of the running sums, on both sides of it."""
    edges = edges_of(exponents)
    floats = [float(x) for x in exponents]
    for edge in edges[:-1]:
        at = digits_of(edge, 64)
        for word, rest in ((at - away - 1, ONES), (at + away + 1, 0)):
            if not 0 <= word <= ONES:
                continue
            u = MP.ldexp(MP.mpf(word), -64) + MP.ldexp(MP.mpf(rest), -128)
            truth = sum(bool(e <= u) for e in edges[:-1])
            for guard in (GUARD, 10.0):
                script = ScriptedNoise(native([word], 8), further(rest), further(rest))
                assert choose(np.array([floats]), lambda row: exponents, script, guard=guard).tolist() == [truth]
                script = ScriptedNoise(native([word], 8), further(rest), further(rest))
                assert choose_one(floats, lambda: exponents, script, guard=guard) == truth


@pytest.mark.parametrize("exponents", CHOICES)
def test_a_choice_at_the_edge_itself_is_settled_by_further_bits(exponents: list[Fraction]) -> None:
    edges = edges_of(exponents)
    for place, edge in enumerate(edges[:-1]):
        if edge * MP.ldexp(1, 60) < 1 or (1 - edge) * MP.ldexp(1, 60) < 1:
            continue
        word, after = digits_of(edge, 64), digits_of(edge, 128) % (1 << 64)
        same = sum(bool(e == edge) for e in edges[:-1])
        for rest, chosen in ((after - 1, place), (after + 1, place + same)):
            noise = ScriptedNoise(native([word], 8), further(rest), further(rest))
            assert choose(np.array([[float(x) for x in exponents]]), lambda row: exponents, noise).tolist() == [chosen]


def test_the_unlimited_path_gives_the_same_choices_as_the_fast_one() -> None:
    exact = [[Fraction((i * j) % 17, 5) for j in range(6)] for i in range(1500)]
    exact = [[x - min(row) for x in row] for row in exact]
    floats = np.array([[float(x) for x in row] for row in exact])
    fast = choose(floats, lambda row: exact[row], ReplayedNoise(4))
    slow = choose(floats, lambda row: exact[row], ReplayedNoise(4), guard=10.0)
    np.testing.assert_array_equal(fast, slow)


def test_the_first_and_the_last_word_choose_the_first_and_the_last_living_item() -> None:
    exponents: list[Fraction | None] = [None, Fraction(1), Fraction(0), Fraction(3), None]
    floats = np.array([[math.inf, 1.0, 0.0, 3.0, math.inf]] * 2)
    noise = ScriptedNoise(native([0, ONES], 8), further(0), further(ONES))
    assert choose(floats, lambda row: exponents, noise).tolist() == [1, 3]


def test_an_item_without_weight_is_never_chosen() -> None:
    exponents = [Fraction(0), None, Fraction(0), None]
    floats = np.tile([0.0, math.inf, 0.0, math.inf], (500, 1))
    for guard in (GUARD, 10.0):
        chosen = choose(floats, lambda row: exponents, ReplayedNoise(6), guard=guard)
        assert set(chosen.tolist()) == {0, 2}


def test_a_single_item_is_chosen_whatever_the_bits() -> None:
    words = native([0, ONES, 1 << 63], 8)
    assert choose(np.zeros((3, 1)), lambda row: [Fraction(0)], ScriptedNoise(words)).tolist() == [0, 0, 0]
    assert choose_one([0.0], lambda: [Fraction(0)], ScriptedNoise(native([ONES], 8))) == 0


# --- bounds


@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 1 << 900), Fraction(1, 3), Fraction(45), Fraction(10) ** 30]
)
@pytest.mark.parametrize("count", [0, 1, 16, 64, 300, 1500])
def test_bounds_enclose_the_truth_and_are_narrow(exponent: Fraction, count: int) -> None:
    with MP.workprec(4000):
        for bounds, p in (
            (exponential_bounds(exponent), exp(-exponent)),
            (logistic_bounds(exponent), 1 / (1 + exp(exponent))),
        ):
            low, high = bounds(count)
            assert 0 <= low <= MP.ldexp(p, count) <= high
            assert high - low <= 2


def test_items_far_behind_are_settled_without_their_exponentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """e^-(10^300) to so many digits would take for ever; below 2^-128 an enclosure is known at once."""
    asked: list[Fraction] = []

    def counted(exponent: Fraction, precision: int) -> tuple[int, int]:
        asked.append(exponent)
        return exp_bounds(exponent, precision)

    monkeypatch.setattr("tacit.mechanisms.samplers.choice.exp_bounds", counted)
    exponents: list[Fraction | None] = [
        Fraction(0),
        Fraction(10**300, 7),
        None,
        Fraction(0),
        Fraction(3),
        Fraction(128),
    ]
    assert {_settle(exponents, prefix << 62, ReplayedNoise(1)) for prefix in range(4)} == {0, 3}
    assert set(asked) == {Fraction(0), Fraction(-3)}
    for x in (Fraction(0), Fraction(3, 7), Fraction(70), Fraction(88), Fraction(127), Fraction(128), Fraction(10**9)):
        low, high = _weight(x, 128)
        with mpmath.workprec(400):
            true = mpmath.ldexp(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), 128)
        assert low <= true <= high <= low + 2


def test_choices_and_coins_are_the_same_where_numpy_raises() -> None:
    exponents = np.array([[0.0, 1e-320, 800.0, 1e308], [745.5, 0.0, 0.5, np.inf]])

    def drawn() -> list[list[int]]:
        chosen = choose(exponents, lambda row: [Fraction(0)] * 4, ReplayedNoise(2))
        heads = exponential_coins(exponents[0], lambda i: Fraction(exponents[0, i]), ReplayedNoise(4))
        return [chosen.tolist(), heads.tolist(), discrete_gaussian.sample(Fraction(7), 50, ReplayedNoise(5)).tolist()]

    quiet = drawn()
    with np.errstate(all="raise"):
        assert drawn() == quiet
