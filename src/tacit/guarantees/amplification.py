"""Shuffle amplification: n local reports, permuted by a party that does not collude with their reader, hide each other.

The bounds and what was checked are on docs/proofs/shuffle-amplification. No bound exceeds epsilon0. What must be true before
one of them may be claimed stands beside ``amplify`` (tacit.guarantees.shuffled_reports).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

from tacit.checks import finite, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees.rounding import down, precise, up_from

ShuffleMethod = Literal["numerical", "closed", "erlingsson", "two-point-2023", "blanket"]
MOST_REPORTS = 10**8
MOST_ITEMS = 1 << 20  # as many as randomised response offers
_NO_LOSS = 1e-9  # below it floats cannot tell e^epsilon0 from 1 well enough: delta is bounded by epsilon0 itself
_NO_COVER = 100.0  # above it not one of all those reports is expected to hide another: nothing is claimed


def shuffle(epsilon0: float, n: int, delta: float, method: ShuffleMethod = "numerical", k: int | None = None) -> float:
    """The epsilon at ``delta`` of n shuffled reports that are epsilon0-private each, rounded up; at most epsilon0.

    ``numerical`` and ``closed`` (Feldman, McMillan, Talwar 2021) and ``erlingsson`` (2019) hold for every randomiser;
    ``blanket`` holds for k-ary randomised response; ``two-point-2023`` is informative only: its proof was not checked here.
    Outside the range in which a closed form is proved the answer is epsilon0.
    Both epsilons are in nats, ``delta`` is a probability, ``k`` the number of values that a report can take.
    """
    epsilon0, n, k = checked(epsilon0, n, method, k)
    return _shuffle(epsilon0, n, probability("delta", delta), method, k)


def shuffle_delta(
    epsilon0: float, n: int, epsilon: float, method: ShuffleMethod = "numerical", k: int | None = None
) -> float:
    """The delta at ``epsilon`` >= 0 of n shuffled reports that are epsilon0-private each, rounded up; 1 where none is proved.

    Both epsilons are in nats; ``k`` is the number of values that a report can take.
    """
    epsilon0, n, k = checked(epsilon0, n, method, k)
    if finite("epsilon", epsilon) < 0.0:
        raise InvalidParameter(f"epsilon must be a finite number of at least 0, not {epsilon!r}.")
    if epsilon >= epsilon0:
        return 0.0
    if epsilon0 > _NO_COVER:
        return 1.0
    if method in ("closed", "erlingsson"):
        return _delta_of_closed(epsilon0, n, float(epsilon), method)
    if epsilon0 < _NO_LOSS:
        return epsilon0  # the total variation of two epsilon0-close laws is at most tanh(epsilon0/2)
    return _exact(epsilon0, n, method, k, 50.0 + epsilon0)(float(epsilon))


@lru_cache(maxsize=1024)
def _shuffle(epsilon0: float, n: int, delta: float, method: ShuffleMethod, k: int | None) -> float:
    if epsilon0 > _NO_COVER:
        return epsilon0
    if method == "closed":
        return min(epsilon0, _closed(epsilon0, n, delta))
    if method == "erlingsson":
        return min(epsilon0, _erlingsson(epsilon0, n, delta))
    if epsilon0 < _NO_LOSS:
        return 0.0 if epsilon0 <= delta else epsilon0
    # The mass that is left out is a share of 1e-9 of delta, also after the blanket's factor e^epsilon0.
    at = _exact(epsilon0, n, method, k, -math.log(delta) + epsilon0 + math.log(1e9))
    return _solve(at, delta, epsilon0, guess=max(1e-12, min(epsilon0 / 2.0, _closed(epsilon0, n, delta) / 4.0)))


def _exact(epsilon0: float, n: int, method: ShuffleMethod, k: int | None, log_left: float) -> Callable[[float], float]:
    from tacit.guarantees.shuffling import Blanket, Decoys

    if method == "blanket" and k is not None:
        return Blanket(epsilon0, n, k, log_left).delta
    shrunk = math.exp(-epsilon0)
    return Decoys(epsilon0, n, shrunk if method == "numerical" else 2.0 * shrunk / (1.0 + shrunk), log_left).delta


def _solve(at: Callable[[float], float], delta: float, most: float, guess: float) -> float:
    """The smallest epsilon up to ``most`` with at(epsilon) <= delta, from above and to seven digits; at(most) = 0."""
    low, high, x = 0.0, most, guess
    height_low = height_high = math.nan
    if at(0.0) <= delta:
        return 0.0
    for _ in range(200):
        found = at(x)
        height = math.log(found / delta) if found > 0.0 else -math.inf
        if height <= 0.0:
            high, height_high = x, height
        else:
            low, height_low = x, height
        if high - low <= 1e-7 * high:
            break
        # ln delta falls smoothly: aim where the chord says, a little to the right or left so that the ends close in.
        if low == 0.0:
            x = high / 2.0
        elif not math.isfinite(height_high):
            x = min(low * 1.5, (low + high) / 2.0)
        else:
            chord = low + (high - low) * height_low / (height_low - height_high)
            nudge = 2e-8 * high
            x = chord + nudge if chord - low < high - chord else chord - nudge
            x = x if low < x < high else (low + high) / 2.0
    return high


def _closed(epsilon0: float, n: int, delta: float) -> float:
    """Feldman, McMillan, Talwar (2021), Theorem 3.1: proved for epsilon0 <= ln(n / (16 ln(2/delta)))."""
    mp = precise(160)
    e0, exact_delta = mp.mpf(epsilon0), mp.mpf(delta)
    if not mp.exp(e0) * 16 * mp.log(2 / exact_delta) <= n * (1 - mp.ldexp(1, -60)):
        return epsilon0
    spread = 8 * mp.sqrt(mp.exp(e0) * mp.log(4 / exact_delta) / n) + 8 * mp.exp(e0) / n
    return up_from(mp.log1p(mp.tanh(e0 / 2) * spread))


def _erlingsson(epsilon0: float, n: int, delta: float) -> float:
    """Erlingsson et al. (2019): 12 epsilon0 sqrt(ln(1/delta)/n), proved for epsilon0 < 1/2, n >= 1000, delta < 1/100."""
    if not (epsilon0 < 0.5 and n >= 1000 and delta < 0.01):
        return epsilon0
    mp = precise(160)
    return up_from(12 * mp.mpf(epsilon0) * mp.sqrt(-mp.log(mp.mpf(delta)) / n))


def _delta_of_closed(epsilon0: float, n: int, epsilon: float, method: ShuffleMethod) -> float:
    """The smallest delta found at which the closed form stays within ``epsilon``; 1 where there is none."""
    form = _closed if method == "closed" else _erlingsson
    largest = 0.5 if method == "closed" else down(Fraction(0.01)) * (1.0 - 1e-15)
    if form(epsilon0, n, largest) > epsilon:
        return 1.0
    low, high = -745.0, math.log(largest)
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if form(epsilon0, n, math.exp(middle)) <= epsilon else (middle, high)
    return math.exp(high)


def checked(epsilon0: float, n: int, method: ShuffleMethod, k: int | None) -> tuple[float, int, int | None]:
    """The parameters of a bound, if they are some; ``k`` belongs to the blanket bound, and to it only."""
    if method not in get_args(ShuffleMethod):
        raise InvalidParameter(f"the method must be one of {', '.join(get_args(ShuffleMethod))}, not {method!r}.")
    if method == "blanket" and k is None:
        raise InvalidParameter("the blanket bound needs k, the number of items of the randomised response.")
    if method != "blanket" and k is not None:
        raise InvalidParameter(f"only the blanket bound depends on k; {method} holds for every k.")
    items = None if k is None else whole("k", k, least=2, most=MOST_ITEMS)
    return positive("epsilon0", epsilon0), whole("n", n, least=1, most=MOST_REPORTS), items
