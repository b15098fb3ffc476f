"""The Gaussian trade-off, exactly: no easier to tell apart than N(0,1) from N(mu,1).

delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang, 2018), in as many bits as its
difference needs, and rounded up.
"""

import math
from functools import lru_cache

from tacit.checks import finite, positive, probability
from tacit.errors import InvalidParameter
from tacit.guarantees.rounding import precise, up_from
from tacit.guarantees.zcdp import epsilon_of_rho, largest, smallest

_SMALLEST = math.ulp(0.0)


def delta_of_gaussian(mu: float, epsilon: float) -> float:
    """The exact delta at ``epsilon`` >= 0 of a Gaussian loss mu (sensitivity / noise deviation), rounded up.

    ``epsilon`` is in nats, delta a probability; mu has no unit.
    """
    if finite("epsilon", epsilon) < 0.0:
        raise InvalidParameter(f"epsilon must be a finite number of at least 0, not {epsilon!r}.")
    return _delta(positive("mu", mu), float(epsilon))


def epsilon_of_gaussian(mu: float, delta: float) -> float:
    """The smallest epsilon of a Gaussian loss mu at ``delta``, rounded up.

    Epsilon is in nats, ``delta`` a probability; mu has no unit.
    """
    return _epsilon(positive("mu", mu), probability("delta", delta))


def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu that stays within (epsilon, delta), rounded down: the noise deviation is sensitivity / mu.

    ``epsilon`` is in nats, ``delta`` a probability; mu, the Gaussian loss, has no unit.
    """
    return _mu(positive("epsilon", epsilon), probability("delta", delta))


@lru_cache(maxsize=4096)
def _delta(mu: float, epsilon: float) -> float:
    if epsilon / mu - mu / 2.0 > 1e4:
        return _SMALLEST  # below e^(-5e7), so below every float
    if mu / 2.0 - epsilon / mu > 1e4:
        return 1.0  # above 1 - e^(-5e7)
    bits = 192
    while True:
        mp = precise(bits)
        ratio, half, root = mp.mpf(epsilon) / mu, mp.mpf(mu) / 2, mp.sqrt(mp.mpf(2))
        first = mp.erfc((ratio - half) / root) / 2
        second = mp.exp(mp.mpf(epsilon)) * mp.erfc((ratio + half) / root) / 2
        if first - second > mp.ldexp(first, 100 - bits):
            return min(1.0, up_from(first - second))
        bits *= 2


@lru_cache(maxsize=4096)
def _epsilon(mu: float, delta: float) -> float:
    if _delta(mu, 0.0) <= delta:
        return 0.0
    enough = max(epsilon_of_rho(mu * mu * (1.0 + 1e-12) / 2.0, delta), 1e-300)
    while _delta(mu, enough) > delta:
        enough *= 2.0
    return smallest(lambda epsilon: _delta(mu, epsilon) <= delta, enough)


@lru_cache(maxsize=4096)
def _mu(epsilon: float, delta: float) -> float:
    log_inverse = -math.log(delta)
    start = math.sqrt(2.0) * epsilon / (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse))
    return largest(lambda mu: _delta(mu, epsilon) <= delta, max(start, 1e-300))
