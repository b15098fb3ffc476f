"""Uniform whole numbers: every value exactly equally likely, shown by trying all words or the ones at the border."""

import numpy as np
import pytest

from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.samplers.coins import below, below_each
from tests.unit.mechanisms.scripted import ScriptedNoise, native


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 100, 255, 256])
def test_all_first_bytes_share_the_values_of_below_evenly(bound: int) -> None:
    seen: list[int] = []
    for first in range(256):
        noise = ScriptedNoise(bytes([first]), bytes([0]))
        value = below(bound, noise)
        if noise.left == (1 if bound > 1 else 2):  # accepted with the first byte; a rejected one goes on to the zero
            seen.append(value)
    counts = np.bincount(seen, minlength=bound)
    assert counts.size == bound
    assert set(counts.tolist()) == {counts[0]}


@pytest.mark.parametrize("bound", [1 << 24, (1 << 40) + 7, 10**30])
def test_below_rejects_what_lies_beyond_the_bound(bound: int) -> None:
    size = ((bound - 1).bit_length() + 7) // 8
    shift = 8 * size - (bound - 1).bit_length()
    last = ((bound - 1) << shift).to_bytes(size, "big")
    assert below(bound, ScriptedNoise(last)) == bound - 1
    if bound & (bound - 1):
        beyond = (bound << shift).to_bytes(size, "big")
        assert below(bound, ScriptedNoise(beyond, last)) == bound - 1


@pytest.mark.parametrize("bound", [2, 3, 7, 1000, (1 << 24) - 1])
def test_small_bounds_accept_a_whole_number_of_rounds_of_32_bit_words(bound: int) -> None:
    accepted = (1 << 32) - (1 << 32) % bound
    assert accepted % bound == 0
    words = [0, bound - 1, bound, accepted - 1]
    assert below_each(np.full(4, bound), ScriptedNoise(native(words, 4))).tolist() == [0, bound - 1, 0, bound - 1]
    if accepted < 1 << 32:
        noise = ScriptedNoise(
            native([accepted, 1, (1 << 32) - 1], 4), native([(1 << 32) - 1, 5 % bound], 4), native([0], 4)
        )
        assert below_each(np.full(3, bound), noise).tolist() == [0, 1, 5 % bound]
        assert noise.left == 0


@pytest.mark.parametrize("bound", [1 << 24, (1 << 24) + 1, 1 << 40, 3 * (1 << 59), (1 << 62) - 1])
def test_large_bounds_accept_a_whole_number_of_rounds_of_63_bit_words(bound: int) -> None:
    span = (1 << 63) - 1
    accepted = span - span % bound
    assert accepted % bound == 0
    words = [w << 1 for w in (0, bound - 1, bound % accepted, accepted - 1)]
    expected = [0, bound - 1, (bound % accepted) % bound, bound - 1]
    assert below_each(np.full(4, bound), ScriptedNoise(native(words, 8))).tolist() == expected
    noise = ScriptedNoise(native([accepted << 1], 8), native([(1 << 64) - 1], 8), native([6], 8))
    assert below_each(np.array([bound]), noise).tolist() == [3]


def test_a_bound_of_one_needs_no_words() -> None:
    assert below(1, ScriptedNoise()) == 0
    assert below_each(np.array([1, 1, 1]), ScriptedNoise()).tolist() == [0, 0, 0]


def test_bounds_may_differ_and_keep_their_shape() -> None:
    bounds = np.array([[1, 2, 3], [4, 1 << 23, 1]])
    for _ in range(50):
        value = below_each(bounds, ReplayedNoise(8))
        assert value.shape == bounds.shape
        assert ((value >= 0) & (value < bounds)).all()
    assert below_each(np.zeros((0, 2), dtype=np.int64), ReplayedNoise(8)).shape == (0, 2)
