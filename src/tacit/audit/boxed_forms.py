"""True losses of selections from scores in public boxes, by laws that share no code with the mechanisms.

The laws take whole-number scores and the exponent of one step. Over boxes the worst neighbours are opposite corners: one
candidate at an edge of its box and all others at the other edge. Here every candidate is tried; enumeration of whole boxes,
in the audit's cases, confirms that nothing inside them is worse.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import TypeAlias

from tacit.audit.closed_forms import _laplace, _laplace_cdf

Law: TypeAlias = Callable[[Sequence[int], float], list[float]]


def exponential(scores: Sequence[int], rate: float) -> list[float]:
    return [1.0 / math.fsum(math.exp(rate * (other - score)) for other in scores) for score in scores]


def permute_and_flip(scores: Sequence[int], rate: float) -> list[float]:
    """a_i times the sum over s of (-1)^s e_s / (s + 1), with e_s the elementary symmetric sums of the others' coins."""
    coins = [math.exp(rate * (score - max(scores))) for score in scores]
    law = []
    for place, coin in enumerate(coins):
        sums = [1.0]
        for other in coins[:place] + coins[place + 1 :]:
            sums = [a + other * b for a, b in zip([*sums, 0.0], [0.0, *sums], strict=True)]
        law.append(coin * math.fsum((-1) ** size * value / (size + 1) for size, value in enumerate(sums)))
    return law


def noisy_max(scores: Sequence[int], rate: float) -> list[float]:
    """By summing over the winner's noise; ties go to the first."""
    ratio = math.exp(-rate)
    reach = math.ceil(50.0 / rate) + max(scores) - min(scores)

    def wins(place: int) -> float:
        return math.fsum(
            _laplace(v, ratio)
            * math.prod(
                _laplace_cdf(v + scores[place] - other - (before < place), ratio)
                for before, other in enumerate(scores)
                if before != place
            )
            for v in range(-reach, reach + 1)
        )

    return [wins(place) for place in range(len(scores))]


LAWS: dict[str, Law] = {
    "exponential": exponential,
    "permute-and-flip": permute_and_flip,
    "noisy-max": noisy_max,
}


def over_corners(law: Law, lows: Sequence[int], steps: int, rate: float) -> float:
    """The largest loss between opposite corners of the boxes, over all candidates."""

    def loss(place: int) -> float:
        raised = [low + steps * (other == place) for other, low in enumerate(lows)]
        lowered = [low + steps * (other != place) for other, low in enumerate(lows)]
        return math.log(law(raised, rate)[place] / law(lowered, rate)[place])

    return max(loss(place) for place in range(len(lows)))


def over_peeled(
    law: Law,
    inputs: Iterable[Iterable[float]],
    prepared: Callable[[Sequence[float]], list[int]],
    slots: int,
    rate: float,
) -> float:
    """The largest loss of an ordered selection over all pairs of inputs: picks one by one, scores ``prepared`` before each."""
    logs: list[list[float]] = []
    for given in inputs:
        scores, found = list(given), []
        for picks in permutations(range(len(scores)), slots):
            left, total = list(range(len(scores))), 0.0
            for item in picks:
                total += math.log(law(prepared([scores[one] for one in left]), rate)[left.index(item)])
                left.remove(item)
            found.append(total)
        logs.append(found)
    columns: Iterable[tuple[float, ...]] = zip(*logs, strict=True)
    return max(max(column) - min(column) for column in columns)
