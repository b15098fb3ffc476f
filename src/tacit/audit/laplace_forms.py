"""The exact delta of two discrete Laplace laws with centres and scales of their own, by geometric sums over intervals."""

import math

Law = tuple[int, float]  # centre and scale, in steps


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
    low, high = 0.0, most
    for _ in range(80):
        middle = (low + high) / 2.0
        worst = max(delta_of_laplaces(first, second, middle), delta_of_laplaces(second, first, middle))
        low, high = (low, middle) if worst <= delta else (middle, high)
    return high


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
    return math.log(math.tanh(0.5 / scale)) - abs(inside - centre) / scale, (1.0 if end <= centre else -1.0) / scale


def _geometric(level: float, slope: float, start: float, end: float) -> float:
    """The sum of e^(level + slope n) from ``start`` to ``end``, of which the far one may be infinite."""
    first, count = (start, end - start) if slope < 0.0 else (end, end - start)
    tail = 1.0 if math.isinf(count) else -math.expm1(-abs(slope) * (count + 1.0))
    return math.exp(level + slope * first) * tail / -math.expm1(-abs(slope))
