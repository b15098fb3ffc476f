"""Rounding never understates a cost: compared with exact fractions and with mpmath at 2,000 bits."""

import math
import sys
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.guarantees.arithmetic import (
    down,
    down_from,
    exactly,
    exp_bounds,
    precise,
    shown_up,
    sqrt_down,
    sqrt_up,
    up,
    up_from,
)

MP = mpmath.MPContext()
MP.prec = 2000
fractions = st.fractions(min_value=-(10**40), max_value=10**40, max_denominator=10**40)
positive = st.fractions(min_value=Fraction(1, 10**60), max_value=10**60, max_denominator=10**60).filter(bool)


def real(value: Fraction) -> mpmath.mpf:
    return MP.mpf(value.numerator) / value.denominator


@given(fractions)
def test_up_and_down_are_the_nearest_floats_on_their_side(value: Fraction) -> None:
    above, below = up(value), down(value)
    assert Fraction(below) <= value <= Fraction(above)
    assert above == below or math.nextafter(below, math.inf) == above
    assert (above == below) is (Fraction(above) == value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_left_as_they_are(value: float) -> None:
    assert up(Fraction(value)) == value == down(Fraction(value))


def test_numbers_beyond_the_largest_float_go_to_infinity_on_the_dear_side_only() -> None:
    huge, largest = Fraction(10) ** 400, sys.float_info.max
    assert (up(huge), down(huge)) == (math.inf, largest)
    assert (up(-huge), down(-huge)) == (-largest, -math.inf)
    tiny = Fraction(1, 10**400)
    assert (up(tiny), down(tiny)) == (math.ulp(0.0), 0.0)
    assert (up(-tiny), down(-tiny)) == (0.0, -math.ulp(0.0))


tiny_to_huge = st.one_of(
    st.just(Fraction(0)),
    st.fractions(min_value=0, max_value=800, max_denominator=10**20),
    st.builds(lambda n: Fraction(1, 1 << n), st.integers(1, 1100)),
    st.builds(lambda n: Fraction(1 << n), st.integers(0, 1030)),
    st.floats(min_value=0.0, max_value=1e308).map(Fraction),
)


@settings(max_examples=200, deadline=None)
@given(tiny_to_huge, st.sampled_from([0, 1, 16, 17, 64, 80, 333, 1000]))
def test_bounds_of_the_exponential_enclose_it(exponent: Fraction, bits: int) -> None:
    low, high = exp_bounds(-exponent, bits)
    with MP.workprec(max(2000, bits + 400)):
        scaled = MP.ldexp(MP.exp(-real(exponent)), bits) if exponent < 10**6 else None
    if scaled is None:
        assert low == 0 < high  # e^-1000000 is above 0 and below every bit asked for
    else:
        assert low <= scaled <= high
    assert 0 <= high - low <= 2


@settings(max_examples=100, deadline=None)
@given(st.fractions(min_value=0, max_value=40, max_denominator=10**15), st.sampled_from([32, 64]))
def test_bounds_of_growing_exponentials_enclose_them(exponent: Fraction, bits: int) -> None:
    low, high = exp_bounds(exponent, bits)
    scaled = MP.ldexp(MP.exp(real(exponent)), bits)
    assert low <= scaled <= high
    assert high - low <= 2 + scaled * MP.ldexp(1, -46)  # relative once the number is large


def test_bounds_of_one_are_exact() -> None:
    assert exp_bounds(Fraction(0), 77) == (1 << 77, 1 << 77)


@settings(deadline=None)
@given(st.one_of(positive, st.integers(0, 10**30).map(lambda n: Fraction(n * n))))
def test_square_roots_lie_on_their_sides_and_close(value: Fraction) -> None:
    above, below = Fraction(sqrt_up(value)), Fraction(sqrt_down(value))
    assert below * below <= value <= above * above
    assert above - below <= 2 * Fraction(math.ulp(float(above)))


@pytest.mark.parametrize("root", [0, 1, 3, 1 << 20, 10**15])
def test_roots_of_squares_are_exact(root: int) -> None:
    assert sqrt_up(Fraction(root * root)) == root == sqrt_down(Fraction(root * root))


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_rounding_from_mpmath_allows_for_its_error(value: float) -> None:
    number = precise(200).mpf(value)
    assert down_from(number) < value < up_from(number)
    assert up_from(number) <= value + 2 * math.ulp(value)


def test_mpmaths_global_precision_is_neither_read_nor_changed() -> None:
    before = mpmath.mp.prec
    try:
        mpmath.mp.prec = 20
        low, high = exp_bounds(Fraction(-1, 3), 300)
        assert low <= MP.ldexp(MP.exp(real(Fraction(-1, 3))), 300) <= high
        assert precise(256).prec == 256
        assert mpmath.mp.prec == 20
    finally:
        mpmath.mp.prec = before


def test_a_root_a_hair_above_a_float_is_rounded_up() -> None:
    assert sqrt_up(1 + Fraction(1, 2**400)) > 1.0
    assert sqrt_down(1 + Fraction(1, 2**400)) == 1.0


@given(st.floats(min_value=1e-300, max_value=1e300), st.sampled_from([3, 6]))
def test_printed_costs_are_never_below_the_cost_and_near_it(value: float, digits: int) -> None:
    assert value <= float(shown_up(value, digits)) <= value * (1 + 1.1 * 10.0 ** (1 - digits))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1.0, 6, "1"),
        (0.5, 6, "0.5"),
        (0.1, 6, "0.1"),
        (1e-6, 3, "1e-06"),
        (0.0, 6, "0"),
        (40.0, 6, "40"),
        (1.0000004, 6, "1.00001"),
        (1.0049e-6, 3, "1.01e-06"),
        (999999.5, 6, "1e+06"),
    ],
)
def test_short_numbers_are_printed_as_they_are_and_others_up(value: float, digits: int, text: str) -> None:
    assert shown_up(value, digits) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_printed_exactly_read_back_the_same(value: float) -> None:
    assert float(exactly(value)) == value
    assert exactly(4) == "4"
