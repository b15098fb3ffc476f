"""Uniform whole numbers by rejection: every value exactly equally likely."""

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Noise, bits, words32, words64


def below(bound: int, noise: Noise) -> int:
    """One uniform whole number in [0, bound)."""
    size = (bound - 1).bit_length()
    while True:
        value = bits(noise, size) if size else 0
        if value < bound:
            return value


def below_each(bounds: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
    """For every bound in [1, 2^62) a uniform whole number in [0, bound)."""
    flat = np.ascontiguousarray(bounds, dtype=np.int64).ravel()
    small = flat.size == 0 or int(flat.max()) < 1 << 24
    result = np.zeros(flat.size, dtype=np.int64)
    todo = np.flatnonzero(flat > 1)
    while todo.size:
        limit = flat[todo]
        if small:
            draw = words32(noise, todo.size).astype(np.int64)
            span = np.int64(1 << 32)
        else:
            draw = (words64(noise, todo.size) >> np.uint64(1)).view(np.int64)  # 63 bits
            span = np.int64((1 << 63) - 1)  # the value 2^63 - 1 itself is always rejected
        kept = draw < span - span % limit  # a whole number of rounds: no value is favoured
        result[todo[kept]] = draw[kept] % limit[kept]
        todo = todo[~kept]
    return result.reshape(np.shape(bounds))
