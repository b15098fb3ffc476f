"""Where the bytes come from."""

import hashlib
import os

import numpy as np
import pytest

from tacit.errors import SystemNoiseUnavailable
from tacit.mechanisms import SYSTEM_NOISE, LaplaceSum, RandomisedResponse, ReplayedNoise, SystemNoise
from tacit.mechanisms.noise import bits, words16, words32, words64
from tests.unit.mechanisms.scripted import ScriptedNoise, native


def test_system_noise_is_the_operating_systems_and_is_read_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(count: int) -> bytes:
        asked.append(count)
        return b"\x07" * count

    monkeypatch.setattr(os, "urandom", urandom)
    assert SystemNoise().draw(5) == b"\x07" * 5
    assert SYSTEM_NOISE.draw(3) == b"\x07" * 3
    assert asked == [5, 3]


def test_system_noise_protects_and_has_no_state() -> None:
    assert SYSTEM_NOISE.caveat is None
    assert vars(SYSTEM_NOISE) == {}
    assert SYSTEM_NOISE.draw(32) != SYSTEM_NOISE.draw(32)


@pytest.mark.parametrize("problem", [NotImplementedError(), OSError("no entropy")])
def test_nothing_is_released_when_the_system_has_no_entropy(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def urandom(count: int) -> bytes:
        raise problem

    monkeypatch.setattr(os, "urandom", urandom)
    for attempt in (
        lambda: RandomisedResponse(3, 1.0).release(1),
        lambda: LaplaceSum(2, 1.0, 1.0).release([[1.0, 0.0]]),
    ):
        with pytest.raises(SystemNoiseUnavailable) as caught:
            attempt()
        assert caught.value.code == "system-noise-unavailable"


def test_mechanisms_draw_from_the_system_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom

    def urandom(count: int) -> bytes:
        asked.append(count)
        return real(count)

    monkeypatch.setattr(os, "urandom", urandom)
    LaplaceSum(2, 1.0, 1.0).release([[1.0, 0.0]], ReplayedNoise(1))
    assert asked == []
    LaplaceSum(2, 1.0, 1.0).release([[1.0, 0.0]])
    assert asked


def test_replayed_noise_repeats_itself_for_one_seed_and_for_no_other() -> None:
    one, again, other = ReplayedNoise(7), ReplayedNoise(7), ReplayedNoise(8)
    first = [one.draw(16), one.draw(16)]
    assert first == [again.draw(16), again.draw(16)]
    assert first[0] != first[1]
    assert first[0] != other.draw(16)
    assert one.draw(0) == b""
    assert ReplayedNoise.caveat is not None


def test_replayed_noise_does_not_hold_its_seed_in_the_open() -> None:
    assert "424242" not in repr(vars(ReplayedNoise(424242)))
    assert hashlib.sha256(b"424242").digest() in vars(ReplayedNoise(424242)).values()


def test_numpys_generator_is_not_noise() -> None:
    with pytest.raises(AttributeError):
        RandomisedResponse(3, 1.0).release(1, np.random.default_rng(1))  # type: ignore[arg-type]


def test_words_and_bits_use_every_byte_once() -> None:
    assert words16(ScriptedNoise(native([1, 65535], 2)), 2).tolist() == [1, 65535]
    assert words32(ScriptedNoise(native([1, (1 << 32) - 1], 4)), 2).tolist() == [1, (1 << 32) - 1]
    assert words64(ScriptedNoise(native([1, (1 << 64) - 1], 8)), 2).tolist() == [1, (1 << 64) - 1]
    for count in (1, 3, 8, 9, 63, 64, 200):
        noise = ScriptedNoise(b"\xff" * 25)
        assert bits(noise, count) == (1 << count) - 1
        assert noise.left == 25 - -(-count // 8)
