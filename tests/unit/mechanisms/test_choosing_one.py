"""One of k items, exactly: every choice beside an edge is the true one, to 2,000 bits."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.guarantees.arithmetic import exp_bounds
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.coins import (
    GUARD,
    exponential_bounds,
    exponential_coins,
    logistic_bounds,
)
from tacit.mechanisms.samplers.subsets import _settle, _weight, choose, choose_one
from tests.unit.mechanisms.many_digits import MP, ONES, digits_of, exp
from tests.unit.mechanisms.scripted import ScriptedNoise, further, native

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

    monkeypatch.setattr("tacit.mechanisms.samplers.subsets.exp_bounds", counted)
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
        return [
            chosen.tolist(),
            heads.tolist(),
            integers.sample_discrete_gaussian(Fraction(7), 50, ReplayedNoise(5)).tolist(),
        ]

    quiet = drawn()
    with np.errstate(all="raise"):
        assert drawn() == quiet
