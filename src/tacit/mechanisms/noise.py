"""Privacy randomness: bytes from the operating system, never seeded, never logged, never numpy's. Mechanisms make releases here.

Experiment randomness has another type: a ``numpy.random.Generator``, passed as ``rng``. The type checker keeps it out of every
function that takes ``noise``.
"""

import hashlib
import os
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, SystemNoiseUnavailable
from tacit.guarantees import Guarantee, Release, nothing
from tacit.guarantees.guarantee import MECHANISM
from tacit.models.dpp.laws import from_words


class Noise(Protocol):
    """A source of independent, uniform random bytes."""

    @property
    def caveat(self) -> str | None:
        """None for noise that protects; otherwise the reason why releases drawn from it promise nothing."""

    def draw(self, count: int) -> bytes:
        """The next ``count`` bytes. No byte is ever given twice."""


class SystemNoise:
    """The operating system's cryptographic generator.

    Every draw reads it again: there is no buffer that a forked process could share, and no state to leak.
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
    """The same bytes for the same seed, for tests and simulation. Releases drawn from it promise nothing."""

    caveat = "noise replayed from a seed: for tests and simulation only"

    def __init__(self, seed: int) -> None:
        self._seed = hashlib.sha256(str(seed).encode()).digest()
        self._calls = 0

    def draw(self, count: int) -> bytes:
        """The next ``count`` bytes of the stream of this seed."""
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
    """Returns ``noise`` if it is privacy noise. A numpy generator or a seed raises InvalidParameter, before anything is charged."""
    if callable(getattr(noise, "draw", None)) and hasattr(noise, "caveat"):
        return noise
    raise InvalidParameter(
        "`noise` must be privacy noise from the operating system: leave `noise` out. For experiments pass a numpy generator as "
        "`rng`; use ReplayedNoise(seed) in tests, whose releases promise nothing."
    )


T = TypeVar("T")


def released(value: T, guarantee: Guarantee, noise: Noise) -> Release[T]:
    """Wraps a mechanism's output as a release. Does not check ``guarantee``; only mechanisms may call it.

    With replayed noise the release promises nothing, and says why.
    """
    return Release(value, promised(guarantee, noise), MECHANISM)


def unprotected(value: T, guarantee: Guarantee, noise: Noise) -> Release[T]:
    """A value under a guarantee that promises nothing. A ledger refuses it unless its owner allows that by name."""
    if not guarantee.promises_nothing:
        raise InvalidParameter("a guarantee that promises something belongs to a mechanism: use its release(...).")
    return released(value, guarantee, noise)


def promised(guarantee: Guarantee, noise: Noise) -> Guarantee:
    """What a mechanism with this guarantee promises if it draws from ``noise``: nothing with replayed noise."""
    if noise.caveat is None:
        return guarantee
    return nothing(guarantee.protects, noise.caveat, proof=guarantee.proof)


FLOATS = "real arithmetic in the sampler"  # what a guarantee assumes if the sampler computes in floats


class NoiseCoins:
    """Uniform numbers strictly between 0 and 1, from privacy noise, for samplers that compute in floats.

    The law of such a sampler is that of its theorem in real arithmetic only: state ``FLOATS`` in the guarantee.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """``count`` independent uniform numbers."""
        return from_words(words64(self._noise, count))
