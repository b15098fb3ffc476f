"""Bounds of what a slate costs that tacit itself does not use: references for the bounds that it uses."""

from fractions import Fraction

import mpmath

from tacit.checks import member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import LossKind, Relation, epsilon_each
from tacit.guarantees.arithmetic import down, sqrt_down, up_from


def trace_epsilon(trace: float, sigma: float, k: int, rank: int) -> float:
    """A user adds a positive part of at most that trace and rank: m log(1 + trace / (m sigma)), m = min(k, rank)."""
    m = min(whole("k", k, least=1), whole("rank", rank, least=1))
    return _log_sum(m, trace, sigma, m)


def frobenius_epsilon(size: float, sigma: float, k: int | None = None, n: int | None = None) -> float:
    """Any symmetric change of at most that Frobenius norm: m log(1 + size / (sigma sqrt m)), m = min(2k, n); n without a k."""
    m = _changed(k, n)
    with mpmath.workprec(256):
        return _log_sum(m, size, sigma, mpmath.sqrt(m))


def spectral_epsilon(size: float, sigma: float, k: int | None = None, n: int | None = None) -> float:
    """Any symmetric change of at most that spectral norm: m log(1 + size / sigma), m as above."""
    return _log_sum(_changed(k, n), size, sigma, 1)


def range_each(slates: int, epsilon: float, delta: float, relation: Relation = Relation.ADD_REMOVE) -> float:
    """The largest log(1 + x) of each of ``slates`` slates that together stay within (epsilon, delta), rounded down.

    Added or removed: the loss of a slate has range log(1 + x), which is log(1 + x)^2 / 8 in zCDP. Replaced: the range is twice
    that, hence log(1 + x)^2 / 2, no less than of any pure loss. ``epsilon_each`` finds a little more for pure losses, slowly.
    """
    if member("relation", Relation, relation) is Relation.ADD_REMOVE:
        return epsilon_each(slates, epsilon, delta, LossKind.BOUNDED_RANGE)
    rho = epsilon_each(slates, epsilon, delta, LossKind.ZCDP)
    return max(down(Fraction(epsilon) / slates), sqrt_down(2 * Fraction(rho)))


def _log_sum(times: int, size: float, sigma: float, spread: object) -> float:
    """times * log(1 + size / (sigma * spread)), rounded up."""
    with mpmath.workprec(256):
        ratio = mpmath.mpf(positive("size", size)) / (mpmath.mpf(positive("sigma", sigma)) * spread)
        return up_from(times * mpmath.log1p(ratio))


def _changed(k: int | None, n: int | None) -> int:
    """How many eigenvalues of a change can count: k positive and k negative ones, and no more than there are."""
    if n is None:
        if k is None:
            raise InvalidParameter("give k, the size of the slate, or n, the number of items, or both.")
        return 2 * whole("k", k, least=1)
    items = whole("n", n, least=1)
    return items if k is None else min(2 * whole("k", k, least=1, most=items), items)
