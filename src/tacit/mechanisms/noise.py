"""Privacy randomness: bytes from the operating system, never seeded, never logged, never numpy's.

Experiment randomness is another thing and has another type: a ``numpy.random.Generator`` passed as ``rng``. A function that
takes ``noise`` cannot be given one, which the type checker enforces.
"""

import hashlib
import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, SystemNoiseUnavailable


class Noise(Protocol):
    """A source of independent, uniform random bytes."""

    @property
    def caveat(self) -> str | None:
        """None for noise that protects; otherwise the reason why releases drawn from it promise nothing."""

    def draw(self, count: int) -> bytes:
        """The next ``count`` bytes. No byte is ever given twice."""


class SystemNoise:
    """The operating system's cryptographic generator.

    Read anew for every draw: there is no buffer that a forked process could share, and no state to leak.
    """

    caveat = None

    def draw(self, count: int) -> bytes:
        """``count`` bytes from the operating system, never repeated and never kept."""
        try:
            return os.urandom(count)
        except (NotImplementedError, OSError) as problem:
            raise SystemNoiseUnavailable(
                "the operating system gave no random bytes; nothing was released."
            ) from problem


class ReplayedNoise:
    """The same bytes for the same seed: for tests and simulation. Its releases say that they promise nothing."""

    caveat = "noise replayed from a seed: for tests and simulation only"

    def __init__(self, seed: int) -> None:
        self._seed = hashlib.sha256(str(seed).encode()).digest()
        self._calls = 0

    def draw(self, count: int) -> bytes:
        """The next ``count`` bytes of the replayed stream: the same for the same seed. It hides nothing."""
        self._calls += 1
        return hashlib.shake_256(self._seed + self._calls.to_bytes(16, "big")).digest(count)


SYSTEM_NOISE = SystemNoise()


def words16(noise: Noise, count: int) -> NDArray[np.uint16]:
    """``count`` uniform 16-bit numbers."""
    return np.frombuffer(noise.draw(2 * count), dtype=np.uint16)


def words32(noise: Noise, count: int) -> NDArray[np.uint32]:
    """``count`` uniform 32-bit numbers."""
    return np.frombuffer(noise.draw(4 * count), dtype=np.uint32)


def words64(noise: Noise, count: int) -> NDArray[np.uint64]:
    """``count`` uniform 64-bit numbers."""
    return np.frombuffer(noise.draw(8 * count), dtype=np.uint64)


def bits(noise: Noise, count: int) -> int:
    """A uniform whole number of ``count`` bits."""
    size = -(-count // 8)
    return int.from_bytes(noise.draw(size), "big") >> (8 * size - count)


def checked_noise(noise: Noise) -> Noise:
    """The noise, if it is one. A generator of numpy, or a seed, is refused where a party is made: before anything is charged."""
    if callable(getattr(noise, "draw", None)) and hasattr(noise, "caveat"):
        return noise
    raise InvalidParameter(
        "privacy noise comes from the operating system: leave `noise` out. A numpy generator is for experiments, as `rng`; "
        "ReplayedNoise(seed) is for tests, and promises nothing."
    )
