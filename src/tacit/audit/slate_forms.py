"""What slates lose, by formulas that share no code with the mechanisms: they document the slack of claims that are not attained.

Natural slates, in units of sigma, x = bound / sigma: a user adds x to one item's place on the diagonal. With R the kernel of the
other items and e_j the elementary symmetric polynomials, that item is in the slate with probability
p = e_{k-1}(R) / (e_{k-1}(R) + e_k(R)), and the normaliser grows by the factor 1 + x p. The slates with the item gain
(1 + x) / (1 + x p), the others lose 1 + x p. So the worst case is p small or p large: as many as possible have the other items, or
nobody has.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from tacit.audit.exact import ORDERS


def natural_added(items: int, k: int, others: int, x: float) -> float:
    """The worst |loss| when a user with one item is added to at most ``others`` users with one item each; k < items."""
    chances = list(_chances(items, k, others, x))
    return max(math.log((1.0 + x) / (1.0 + x * min(chances))), math.log1p(x * max(chances)))


def natural_rho(items: int, k: int, others: int, x: float) -> float:
    """The largest Renyi divergence over its order, for the same users."""
    return two_point_rho(_chances(items, k, others, x), math.log1p(x))


def subset_rho(others: int, bound: float, sigma: float) -> float:
    """Subsets of any size: an item of which j others are is taken with lambda / (1 + lambda), lambda = sigma + j bound.

    One more user of it raises lambda to lambda + bound; what else is taken does not depend on it.
    """
    return max(
        two_point_rho([weight / (1.0 + weight)], math.log1p(bound / weight))
        for weight in (sigma + j * bound for j in range(others + 1))
    )


def two_point_rho(chances: Iterable[float], spread: float) -> float:
    """A loss of two values ``spread`` apart, the upper one with one of the ``chances``: the largest divergence over its order.

    Of all losses within that spread these diverge most. Both directions; the neighbour's chance is
    p e^spread / (1 + p (e^spread - 1)).
    """

    def divergence(p: float, q: float, order: float) -> float:
        if order == 1.0:
            return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
        terms = (order * math.log(a) + (1.0 - order) * math.log(b) for a, b in ((p, q), (1.0 - p, 1.0 - q)))
        return _log_sum(list(terms)) / (order - 1.0)

    def worst(p: float) -> float:
        q = p * math.exp(spread) / (1.0 + p * math.expm1(spread))
        return max(divergence(*pair, float(order)) / float(order) for order in ORDERS for pair in ((p, q), (q, p)))

    return max(worst(p) for p in chances)


def tempered(items: int, k: int, votes: Sequence[tuple[Sequence[float], Sequence[float]]], theta: float) -> float:
    """Unrelated items (S = I): a slate weighs e^(theta times its votes), so the normaliser is e_k of e^(theta votes).

    ``votes`` are neighbouring totals; the worst |loss| over them and over all slates.
    """
    losses = [0.0]
    for before, after in votes:
        gain = math.log(_elementary([math.exp(theta * s) for s in after], k)[k])
        gain -= math.log(_elementary([math.exp(theta * s) for s in before], k)[k])
        moved = sorted(theta * (b - a) for a, b in zip(before, after, strict=True))
        losses += [sum(moved[items - k :]) - gain, gain - sum(moved[:k])]
    return max(losses)


def tempered_chances(votes: Sequence[tuple[Sequence[float], Sequence[float]]], theta: float) -> Iterator[float]:
    """For one unrelated item: the chance that it is one of those that gained a vote, before they did."""
    for one, other in votes:
        low, high = sorted((tuple(one), tuple(other)), key=sum)
        gained = [b > a for a, b in zip(low, high, strict=True)]
        weights = [math.exp(theta * s) for s in low]
        if any(gained) and not all(gained):
            yield sum(weight for weight, more in zip(weights, gained, strict=True) if more) / sum(weights)


def _chances(items: int, k: int, others: int, x: float) -> Iterator[float]:
    """Of the user's item, for every way in which up to ``others`` users have one of the other items each."""
    for held in product(range(others + 1), repeat=items - 1):
        if sum(held) <= others:
            e = _elementary([1.0 + count * x for count in held], k)
            yield e[k - 1] / (e[k - 1] + e[k])


def _elementary(values: Sequence[float], k: int) -> list[float]:
    e = [1.0] + [0.0] * k
    for value in values:
        for j in range(k, 0, -1):
            e[j] += value * e[j - 1]
    return e


def _log_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log - top) for log in logs))
