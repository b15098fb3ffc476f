"""Noise with chosen bytes: the only way to see the one case in 2^44."""

import sys
from collections.abc import Iterable


class ScriptedNoise:
    """Gives the bytes it was told to give, in order, and fails when asked for more."""

    caveat = "scripted: for tests only"

    def __init__(self, *parts: bytes) -> None:
        self._bytes = b"".join(parts)
        self._next = 0

    def draw(self, count: int) -> bytes:
        piece = self._bytes[self._next : self._next + count]
        assert len(piece) == count, "the script is too short"
        self._next += count
        return piece

    @property
    def left(self) -> int:
        """How many bytes were not asked for."""
        return len(self._bytes) - self._next


def native(words: Iterable[int], size: int) -> bytes:
    """Words of ``size`` bytes as the array samplers read them."""
    return b"".join(int(word).to_bytes(size, sys.byteorder) for word in words)


def further(word: int) -> bytes:
    """64 further bits of a uniform number, as the unlimited-precision path reads them."""
    return word.to_bytes(8, "big")
