"""Exactness of the samplers: every decision is compared with the true probability in 2,000 bits, at chosen random bits.

Nothing here is statistical. Scripted noise puts U right beside the probability, where a float cannot decide, and all 65,536
first words are tried where one word decides.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.noise import words16
from tacit.mechanisms.samplers.coins import (
    GUARD,
    bernoulli,
    coins,
    exponential_bounds,
    exponential_coins,
    few_exponential_coins,
    is_below,
    ratio_bounds,
)
from tests.unit.mechanisms.many_digits import MP, ONES, digits_of, exp
from tests.unit.mechanisms.scripted import ScriptedNoise, further, native

EXPONENTS = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(11), Fraction(1, 1 << 40), Fraction(40), Fraction(0)]


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
