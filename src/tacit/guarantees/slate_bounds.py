"""What a slate drawn from a determinantal point process costs, and the jitter that a stated epsilon needs.

The kernel is L = sigma I + sum of c_u c_u^T with ||c_u||^2 <= bound; neighbours differ in one user's c_u. Write
x = bound / sigma. All of it is proved in docs/proofs/natural-slate.md and docs/proofs/natural-subset.md. An epsilon is rounded
up, and so is a sigma: more jitter costs less.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tacit.checks import member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees.accounting import epsilon_each
from tacit.guarantees.guarantee import LossKind
from tacit.guarantees.neighbours import Relation
from tacit.guarantees.rounding import down, precise, sqrt_down, up_from

_BITS = 256
_MOST = 2000.0  # an epsilon beyond it is taken for it: the jitter is then below every float above 0 anyway


def natural_epsilon(bound: float, sigma: float) -> float:
    """log(1 + x): exact for slates of k < n items, when a user is added or removed and when she is replaced."""
    return _log_sum(1, positive("bound", bound), sigma, lambda mp: 1)


def sigma_for(epsilon: float, bound: float = 1.0) -> float:
    """The jitter at which a slate costs ``epsilon``: bound / (e^epsilon - 1)."""
    epsilon, bound = positive("epsilon", epsilon), positive("bound", bound)
    mp = precise(_BITS)
    return _usable(up_from(mp.mpf(bound) / mp.expm1(mp.mpf(min(epsilon, _MOST)))))


def subset_epsilon(bound: float, sigma: float, relation: Relation = Relation.ADD_REMOVE) -> float:
    """The cost of a subset of any size, exact.

    Added or removed: the larger of log(1 + x) - log(1 + y) and log(1 + y), y = bound / (1 + sigma). Replaced: log(1 + x).
    """
    bound, sigma = positive("bound", bound), positive("sigma", sigma)
    if member("relation", Relation, relation) is Relation.REPLACE:
        return natural_epsilon(bound, sigma)
    mp = precise(_BITS)
    empty = mp.log1p(mp.mpf(bound) / (1 + mp.mpf(sigma)))  # the empty subset, whose weight does not move
    # log (1 + x)/(1 + y) = log(1 + (x - y)/(1 + y)), and x - y = bound / (sigma (1 + sigma)): no difference is left
    one = mp.log1p(mp.mpf(bound) / (mp.mpf(sigma) * (1 + mp.mpf(sigma) + mp.mpf(bound))))
    return up_from(max(empty, one))


def subset_sigma_for(epsilon: float, bound: float = 1.0, relation: Relation = Relation.ADD_REMOVE) -> float:
    """The jitter at which a subset of any size costs ``epsilon``."""
    if member("relation", Relation, relation) is Relation.REPLACE:
        return sigma_for(epsilon, bound)
    epsilon, bound = positive("epsilon", epsilon), positive("bound", bound)
    mp = precise(_BITS)
    plain = mp.mpf(bound) / mp.expm1(mp.mpf(min(epsilon, _MOST)))
    # bound / (sigma (1 + sigma + bound)) = e^epsilon - 1, solved for sigma without a difference; and bound / (1 + sigma) likewise
    half = 1 + mp.mpf(bound)
    one = 2 * plain / (half + mp.sqrt(half**2 + 4 * plain))
    return _usable(up_from(max(one, plain - 1)))


def subset_range(bound: float, sigma: float) -> float:
    """The range of the loss of a subset when a user is added or removed: log(1 + x), and not ``subset_epsilon``."""
    return natural_epsilon(bound, sigma)


def trace_epsilon(trace: float, sigma: float, k: int, rank: int) -> float:
    """A user adds a positive part of at most that trace and rank: m log(1 + trace / (m sigma)), m = min(k, rank)."""
    m = min(whole("k", k, least=1), whole("rank", rank, least=1))
    return _log_sum(m, trace, sigma, lambda mp: mp.mpf(m))


def frobenius_epsilon(size: float, sigma: float, k: int | None = None, n: int | None = None) -> float:
    """Any symmetric change of at most that Frobenius norm: m log(1 + size / (sigma sqrt m)), m = min(2k, n); n if there is no k."""
    m = _changed(k, n)
    return _log_sum(m, size, sigma, lambda mp: mp.sqrt(m))


def spectral_epsilon(size: float, sigma: float, k: int | None = None, n: int | None = None) -> float:
    """Any symmetric change of at most that spectral norm: m log(1 + size / sigma), m as above."""
    return _log_sum(_changed(k, n), size, sigma, lambda mp: 1)


def published_epsilon(size: float, sigma: float, n: int) -> float:
    """The paper's figure for its eigenvalue step, 2 n log(1 + size / (sigma sqrt n)). No bound on choosing the subset is in it."""
    n = whole("n", n, least=1)
    return _log_sum(2 * n, size, sigma, lambda mp: mp.sqrt(n))


def published_sigma_for(epsilon: float, n: int, size: float = 1.0) -> float:
    """The jitter that the paper's figure asks for."""
    epsilon, size, n = positive("epsilon", epsilon), positive("size", size), whole("n", n, least=1)
    mp = precise(_BITS)
    each = mp.mpf(epsilon) / (2 * n)
    return _usable(up_from(mp.mpf(size) / (mp.sqrt(n) * mp.expm1(min(each, mp.mpf(_MOST))))))


def range_each(slates: int, epsilon: float, delta: float, relation: Relation = Relation.ADD_REMOVE) -> float:
    """The largest log(1 + x) of each of ``slates`` slates that together stay within (epsilon, delta), rounded down.

    Added or removed: the loss of a slate has range log(1 + x), which is log(1 + x)^2 / 8 in zCDP. Replaced: the range is twice
    that, hence log(1 + x)^2 / 2, no less than of any pure loss. ``epsilon_each`` finds a little more for pure losses, slowly.
    """
    if member("relation", Relation, relation) is Relation.ADD_REMOVE:
        return epsilon_each(slates, epsilon, delta, LossKind.BOUNDED_RANGE)
    rho = epsilon_each(slates, epsilon, delta, LossKind.ZCDP)
    return max(down(Fraction(epsilon) / slates), sqrt_down(2 * Fraction(rho)))


def _log_sum(times: int, size: float, sigma: float, spread: Callable[[Any], Any]) -> float:
    """times * log(1 + size / (sigma * spread)), rounded up."""
    return _one_log_sum(times, positive("size", size), positive("sigma", sigma), spread(precise(_BITS)))


@lru_cache(maxsize=1024)
def _one_log_sum(times: int, size: float, sigma: float, spread: Any) -> float:
    mp = precise(_BITS)
    return up_from(times * mp.log1p(mp.mpf(size) / (mp.mpf(sigma) * spread)))


def _changed(k: int | None, n: int | None) -> int:
    """How many eigenvalues of a change can count: k positive and k negative ones, and no more than there are."""
    if n is None:
        if k is None:
            raise InvalidParameter("give k, the size of the slate, or n, the number of items, or both.")
        return 2 * whole("k", k, least=1)
    items = whole("n", n, least=1)
    return items if k is None else min(2 * whole("k", k, least=1, most=items), items)


def _usable(sigma: float) -> float:
    if not 0.0 < sigma < float("inf"):
        raise InvalidParameter("so small an epsilon needs more jitter than a float can hold: raise epsilon.")
    return sigma
