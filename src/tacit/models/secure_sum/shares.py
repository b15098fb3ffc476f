"""Shamir's secret sharing of 32 bytes, modulo the prime 2^521 - 1.

    split(secret, threshold, count)[i - 1]     the share of holder i: a random polynomial of degree threshold - 1 at the point i
    combine({i: share, ...})                   the secret, which is the polynomial at 0

Any `threshold` shares give the secret. Fewer say nothing by themselves: they are uniform and independent whatever it is; beside
commitments that is so for bounded computing power. A wrong share gives a wrong secret without notice: compare with a commitment.
"""

import os
from collections.abc import Mapping
from functools import lru_cache

PRIME = 2**521 - 1
SECRET_BYTES = 32
SHARE_BYTES = 66


def split(secret: bytes, threshold: int, count: int) -> list[bytes]:
    """The shares of holders 1 to ``count``, of ``SHARE_BYTES`` each."""
    polynomial = [int.from_bytes(secret, "big"), *(_uniform() for _ in range(threshold - 1))]
    return [evaluate(polynomial, at, PRIME).to_bytes(SHARE_BYTES, "big") for at in range(1, count + 1)]


def combine(shares: Mapping[int, bytes]) -> bytes | None:
    """The secret, or None if these shares are not of one secret of 32 bytes. Give exactly as many as the threshold says."""
    points = tuple(sorted(shares))
    values = [int.from_bytes(shares[point], "big") for point in points]
    found = sum(weight * value for weight, value in zip(_weights(points), values, strict=True)) % PRIME
    return found.to_bytes(SECRET_BYTES, "big") if found < 2 ** (8 * SECRET_BYTES) else None


def evaluate(polynomial: list[int], at: int, prime: int) -> int:
    """Horner's rule; the constant term comes first."""
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * at + coefficient) % prime
    return value


def weights(points: tuple[int, ...], prime: int) -> tuple[int, ...]:
    """Lagrange: the value at 0 is the sum of weight times value, for every polynomial of degree below the number of points."""
    found = []
    for one in points:
        above = below = 1
        for other in points:
            if other != one:
                above, below = above * other % prime, below * (other - one) % prime
        found.append(above * pow(below, -1, prime) % prime)
    return tuple(found)


@lru_cache(maxsize=8)  # all secrets of one upload are combined from the same holders
def _weights(points: tuple[int, ...]) -> tuple[int, ...]:
    return weights(points, PRIME)


def _uniform() -> int:
    """A number below the prime from the operating system, each with the same probability."""
    while True:
        drawn = int.from_bytes(os.urandom(SHARE_BYTES), "big") >> (8 * SHARE_BYTES - 521)
        if drawn < PRIME:
            return drawn
