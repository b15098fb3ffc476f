"""The rounded Gaussian sampler: floats decide only what they are sure of, the rest is decided by as many bits as it takes."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri

from tacit.errors import InvalidParameter
from tacit.mechanisms.noise import ReplayedNoise
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.integers import LEAST_TAIL, MARGIN, MOST_SD, decide, tail_bounds
from tests.unit.mechanisms.reference import rounded_gaussian_tail
from tests.unit.mechanisms.scripted import ScriptedNoise, further, native

MP = mpmath.MPContext()
MP.prec = 400
WIDE = Fraction(7, 3) * (1 << 60)  # a variance: deviations of about 2^30 steps
NO_BITS = ScriptedNoise()


def upper(at: Fraction, variance: Fraction) -> mpmath.mpf:
    """P(N > at) by the incomplete gamma function."""
    square = at * at / variance / 2
    return MP.gammainc(0.5, MP.mpf(square.numerator) / square.denominator) / MP.sqrt(MP.pi) / 2


def border(k: int, variance: Fraction, count: int = 64) -> int:
    """The first ``count`` bits of P(N > k - 1/2)."""
    return int(MP.floor(MP.ldexp(upper(Fraction(2 * k - 1, 2), variance), count)))


def test_the_float_quantile_errs_by_less_than_a_hundredth_of_what_is_allowed_for_it(rng: np.random.Generator) -> None:
    """On what floats are asked for: from 2^-20 to 1/2, dense near both ends."""
    tails = np.concatenate(
        [2.0 ** -rng.uniform(1, 20, 1500), rng.uniform(0.0, 0.5, 300), 0.5 - 2.0 ** -rng.uniform(2, 52, 300)]
    )
    tails = np.concatenate([tails, [2.0**-20, 0.5, math.nextafter(0.5, 0.0), math.exp(-2.0), math.exp(-32.0)]])
    mp = mpmath.MPContext()
    mp.prec = 160
    worst = 0.0
    for tail, seen in zip(tails.tolist(), (-ndtri(tails)).tolist(), strict=True):
        z = mp.mpf(seen)
        for _ in range(2):  # Newton's method doubles the digits each time
            z += (mp.erfc(z / mp.sqrt(2)) / 2 - tail) / mp.npdf(z)
        worst = max(worst, float(abs(z - seen) / max(1, z)))
    allowed, truncation, products = 2.0**-43, 2.0**-45 * math.sqrt(math.pi / 2.0), 2.0**-50
    assert 100 * worst < allowed
    assert allowed + truncation + products < MARGIN
    assert 0.5 / LEAST_TAIL == 2.0**-45


@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(5, 3), Fraction(10**6), WIDE], ids=str)
@pytest.mark.parametrize("count", [64, 128, 300])
def test_tails_are_enclosed(variance: Fraction, count: int) -> None:
    for times in (Fraction(0), Fraction(1, 1000), Fraction(1, 2), Fraction(3), Fraction(9), Fraction(30)):
        at = Fraction(round(times * math.isqrt(1 + math.floor(variance))) * 2 + 1, 2)
        low, high = tail_bounds(at, variance, count)
        assert low <= MP.ldexp(upper(at, variance), count) <= high
        assert high - low <= 2


def test_what_bits_leave_open_is_decided_by_further_bits_of_the_same_number() -> None:
    for k in (1, 2, 977, 10**9, 3 * 10**9):
        first = border(k, WIDE)
        second = border(k, WIDE, 128) & ((1 << 64) - 1)
        assert (
            decide(first, 64, WIDE, ScriptedNoise(further(second - 5))) == k
        )  # T below P(N > k - 1/2): beyond the border
        assert decide(first, 64, WIDE, ScriptedNoise(further(second + 5))) == k - 1
        # and once more, where 128 bits are open as well
        third = border(k, WIDE, 192) & ((1 << 64) - 1)
        assert decide(first, 64, WIDE, ScriptedNoise(further(second), further(third - 5))) == k
        assert decide(first, 64, WIDE, ScriptedNoise(further(second), further(third + 5))) == k - 1


def test_no_further_bits_are_drawn_where_the_first_tell() -> None:
    assert [decide(border(k, WIDE) - 3, 64, WIDE, NO_BITS) for k in (1, 977, 10**9)] == [1, 977, 10**9]


@pytest.mark.parametrize("variance", [Fraction(5, 3), Fraction(10**6) + Fraction(1, 3), WIDE], ids=str)
def test_draws_beside_a_border_fall_on_their_own_side(variance: Fraction, rng: np.random.Generator) -> None:
    """Floats alone get many of these wrong: the nearest words to a border, of either sign."""
    sd = math.sqrt(variance)
    places = np.unique(np.maximum(1, (np.abs(rng.normal(size=60)) * sd).astype(np.int64))).tolist()
    words, wanted = [], []
    for k in places:
        edge = border(k, variance)
        if edge < LEAST_TAIL:
            continue
        for offset in (-3, -2, 1, 2, 3):
            words += [edge + offset, edge + offset + (1 << 63)]
            wanted += [k if offset < 0 else k - 1, -k if offset < 0 else -(k - 1)]
    drawn = integers.sample_rounded_gaussian(variance, len(words), ScriptedNoise(native(words, 8)))
    assert drawn.tolist() == wanted
    assert len(wanted) > 20


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(3), Fraction(12_345), WIDE], ids=str)
def test_floats_and_unlimited_precision_agree(variance: Fraction, rng: np.random.Generator) -> None:
    words = rng.integers(0, 1 << 63, 150, dtype=np.uint64)
    drawn = integers.sample_rounded_gaussian(variance, 150, ScriptedNoise(words.tobytes(), bytes(800)))
    assert drawn.tolist() == [decide(int(word), 64, variance, ReplayedNoise(0)) for word in words]


def test_the_far_tail_takes_more_bits() -> None:
    """The smallest tails: 64 zeros are a number of which all is still to come."""
    for word, more in ((0, [5, 0]), (1, [1 << 63]), (LEAST_TAIL - 1, [123])):
        script = native([word], 8) + b"".join(map(further, more)) + bytes(64)
        (drawn,) = integers.sample_rounded_gaussian(WIDE, 1, ScriptedNoise(script)).tolist()
        known, count = word, 64
        for part in more:
            known, count = (known << 64) | part, count + 64
        # between the quantiles of the interval that is known
        assert upper(Fraction(2 * drawn + 1, 2), WIDE) <= MP.ldexp(known + 1, -count)
        assert upper(Fraction(2 * drawn - 1, 2), WIDE) >= MP.ldexp(known, -count)
    # T = 2^-2002, beyond every float: P(N > 52.5) is about 2^-1995, P(N > 53.5) about 2^-2071
    assert decide(0, 2000, Fraction(1), ScriptedNoise(further(1 << 62), bytes(64))) == 53


def test_words_are_used_once_each_and_in_order() -> None:
    words = np.arange(1, 70_001, dtype=np.uint64) << np.uint64(45)  # more than are drawn in one go
    script = ScriptedNoise(words.tobytes(), bytes(8000))
    drawn = integers.sample_rounded_gaussian(Fraction(100), words.size, script)
    assert (np.diff(drawn) <= 0).all()  # larger tails, smaller numbers
    assert drawn[0] > drawn[-1] > 0
    again = [
        integers.sample_rounded_gaussian(Fraction(100), 1, ScriptedNoise(word.tobytes(), bytes(800)))[0]
        for word in words[::7001]
    ]
    assert drawn[::7001].tolist() == again


# --- the law


@pytest.mark.parametrize(
    "variance", [Fraction(1, 9), Fraction(1), Fraction(50, 3), Fraction(4095**2), Fraction(4097**2)], ids=str
)
def test_the_law_is_that_of_a_rounded_normal(variance: Fraction) -> None:
    sd = math.sqrt(variance)
    k = np.arange(-math.ceil(10 * sd) - 2, math.ceil(10 * sd) + 3)
    law = integers.rounded_gaussian_pmf(k, variance)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_array_equal(law, law[::-1])
    np.testing.assert_allclose(
        rounded_gaussian_tail(k[:-1], variance) - rounded_gaussian_tail(k[1:], variance),
        law[:-1],
        atol=1e-15,
    )
    for place in (0, 1, round(sd), round(4 * sd)):
        exact = upper(Fraction(abs(2 * place - 1), 2), variance)
        exact = (1 - exact if place == 0 else exact) - upper(Fraction(2 * place + 1, 2), variance)
        assert float(integers.rounded_gaussian_pmf(place, variance)) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(MOST_SD**2 + 1)])
def test_what_cannot_be_drawn_is_refused(variance: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        integers.sample_rounded_gaussian(variance, 1, NO_BITS)


def test_the_widest_noise_is_drawn_and_no_numbers_are_no_numbers() -> None:
    drawn = integers.sample_rounded_gaussian(Fraction(MOST_SD**2), 200, ReplayedNoise(3))
    assert 0.7 * MOST_SD < drawn.std() < 1.3 * MOST_SD
    assert integers.sample_rounded_gaussian(Fraction(1), 0, NO_BITS).shape == (0,)


def test_a_caller_who_has_numpy_raise_gets_the_same_draws() -> None:
    quiet = integers.sample_rounded_gaussian(WIDE, 500, ReplayedNoise(1))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(integers.sample_rounded_gaussian(WIDE, 500, ReplayedNoise(1)), quiet)
