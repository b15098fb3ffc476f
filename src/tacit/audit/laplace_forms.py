"""The exact delta of two discrete Laplace laws with centres and scales of their own, by geometric sums over intervals."""

import math
from collections.abc import Callable, Sequence

Law = tuple[int, float]  # centre and scale, in steps
_REACH = 40.0  # scales to either side of the centres that are summed one by one: e^-40 lies beyond


def delta_of_laplaces(first: Law, second: Law, epsilon: float) -> float:
    """The sum over all n of (P(n) - e^epsilon P'(n))+.

    The loss is linear in n before, between and after the two centres, so it exceeds epsilon on at most one interval of each.
    """
    low, high = sorted((first[0], second[0]))
    regions = (
        [(-math.inf, low), (low + 1, high - 1), (high, math.inf)]
        if low < high
        else [(-math.inf, low), (low + 1, math.inf)]
    )
    return math.fsum(_over(first, second, epsilon, *region) for region in regions)


def epsilon_of_laplaces(first: Law, second: Law, delta: float, *, most: float = 700.0) -> float:
    """The smallest epsilon at ``delta``, in both directions; ``most`` where it is no smaller."""

    def missed(epsilon: float) -> float:
        return max(delta_of_laplaces(first, second, epsilon), delta_of_laplaces(second, first, epsilon))

    return smallest_epsilon(missed, delta, most=most)


def smallest_epsilon(missed: Callable[[float], float], delta: float, *, most: float = 700.0) -> float:
    """The smallest epsilon of which no more than ``delta`` is ``missed``; ``most`` where it is no smaller."""
    low, high = 0.0, most
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if missed(middle) <= delta else (middle, high)
    return high


def delta_together(
    chances_and_losses: Sequence[tuple[float, float]], missed: Callable[[float], float], epsilon: float
) -> float:
    """The delta of two independent outputs: whatever the first one loses, the second is ``missed`` at what that leaves."""
    return math.fsum(chance * missed(epsilon - loss) for chance, loss in chances_and_losses)


def chances_and_losses(first: Law, second: Law) -> list[tuple[float, float]]:
    """P(n) under the first law, and the loss ln P(n) / P'(n), for every n that is not too far out to matter."""
    ends = [centre + side * math.ceil(_REACH * scale) for centre, scale in (first, second) for side in (-1, 1)]
    logs = [(_log_chance(first, n), _log_chance(second, n)) for n in range(min(ends), max(ends) + 1)]
    return [(math.exp(here), here - there) for here, there in logs]


def _log_chance(law: Law, n: float) -> float:
    centre, scale = law
    return math.log(math.tanh(0.5 / scale)) - abs(n - centre) / scale


def _over(first: Law, second: Law, epsilon: float, start: float, end: float) -> float:
    """The part of the sum from ``start`` to ``end``, where neither law changes its side."""
    if start > end:
        return 0.0
    inside = start if math.isfinite(start) else end
    (level, slope), (other, other_slope) = _line(first, inside, end), _line(second, inside, end)
    # the loss at n is (level - other) + (slope - other_slope) (n - inside): where it exceeds epsilon
    gap, rise = level - other - epsilon, slope - other_slope
    if rise == 0.0:
        if gap <= 0.0:
            return 0.0
    elif rise > 0.0:
        start = max(start, math.floor(inside - gap / rise) + 1)
    else:
        end = min(end, math.ceil(inside - gap / rise) - 1)
    if start > end:
        return 0.0
    mine = _geometric(level, slope, start - inside, end - inside)
    return mine - _geometric(other + epsilon, other_slope, start - inside, end - inside)


def _line(law: Law, inside: float, end: float) -> tuple[float, float]:
    """ln P at ``inside`` and its slope, on the side of the centre where the region lies."""
    centre, scale = law
    return _log_chance(law, inside), (1.0 if end <= centre else -1.0) / scale


def _geometric(level: float, slope: float, start: float, end: float) -> float:
    """The sum of e^(level + slope n) from ``start`` to ``end``, of which the far one may be infinite."""
    first, count = (start, end - start) if slope < 0.0 else (end, end - start)
    tail = 1.0 if math.isinf(count) else -math.expm1(-abs(slope) * (count + 1.0))
    return math.exp(level + slope * first) * tail / -math.expm1(-abs(slope))
