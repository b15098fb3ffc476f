"""Up to how many likes count in a tempered slate, found privately where no public number is known.

A tenth of epsilon finds it: half of that picks an item that many like, half counts its likes. The rest draws the slate, at a
theta that makes 40 nats of so many likes, where more than that would come of them. Neither the item nor the count leaves.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.guarantees import Guarantee, Release
from tacit.guarantees.rounding import down
from tacit.mechanisms import ExponentialMechanism, LaplaceSum, Noise, TemperedSlate, VoteTotals
from tacit.mechanisms.drawn import released
from tacit.models.dpp.tempered import MOST_NATS

PART = 10.0  # one part of ten goes to the search
MARGIN = 4.0  # scales of the noise: a count is further below the truth with probability e^-4 / 2 = 0.9 %
MOST_PEOPLE = 1 << 28  # likes of one item; where as many have room nothing is to be found out

Places = NDArray[np.int64]
Stages = tuple[ExponentialMechanism, LaplaceSum, float]


def room(k: int, epsilon: float) -> float:
    """The likes that have room in 40 nats, at epsilon / k nats each; one at least."""
    return max(1.0, float(math.floor(_room(k, epsilon))))


def stages(k: int, epsilon: float) -> Stages | None:
    """What picks an item, what counts its likes, and the epsilon that is left; None where there is no need to search.

    The three add up to epsilon exactly: ``epsilon - left`` is not rounded (Sterbenz's lemma), nor is its half.
    """
    if _room(k, epsilon) >= MOST_PEOPLE:
        return None
    left = epsilon - epsilon / PART
    half = (epsilon - left) / 2.0
    return ExponentialMechanism(VoteTotals(), half), LaplaceSum(1, 1.0, half), left


def searched(items: int, k: int, epsilon: float) -> Guarantee:
    """What a slate promises whose ceiling is found first: all three stages. A theta that is lowered later makes it no more."""
    plain = np.eye(min(items, k + 1))  # the features do not matter, only whether there is a choice
    found = stages(k, epsilon)
    if found is None or k == items:
        return _slate(plain, k, epsilon).guarantee
    pick, count, left = found
    return pick.guarantee.then(count.guarantee).then(_slate(plain, k, left).guarantee)


def search_then_draw(
    features: NDArray[np.float64], k: int, epsilon: float
) -> Callable[[sparse.csr_array], Callable[[Noise], Release[Places]]]:
    """Draws slates, each with a search of its own: every one of them is charged for it. All that is public is checked now."""
    found, promise = stages(k, epsilon), searched(len(features), k, epsilon)
    if found is None or k == len(features):
        whole = _slate(features, k, epsilon)
        return lambda likes: whole.prepare(likes).release
    pick, count, left = found
    table, before = _slate(features, k, left).features, features
    while not np.array_equal(
        table, before
    ):  # as the mechanism keeps them, so that below nothing but the range is another one
        table, before = _slate(table, k, left).features, table
    least, margin = room(k, left), MARGIN / count.epsilon
    possible = np.flatnonzero(
        table.any(axis=1)
    )  # an item without features, or of no weight in a request, is in no slate

    def draw(likes: sparse.csr_array, part: sparse.csr_array, noise: Noise) -> Release[Places]:
        item = pick.release(part, noise).value
        near = float(count.release(part[:, [item]], noise).value.to_floats()[0])
        slate = TemperedSlate.capped(table, k, left, high=max(least, near + margin))
        # What is promised is public: the epsilon of this slate would tell the ceiling.
        return released(slate.release(likes, noise).value, promise, noise)

    def set_up(likes: sparse.csr_array) -> Callable[[Noise], Release[Places]]:
        part = likes if possible.size == len(table) else likes[:, possible]
        return lambda noise: draw(likes, part, noise)

    return set_up


def _room(k: int, epsilon: float) -> Fraction:
    return Fraction(MOST_NATS) * k / Fraction(epsilon)


def _slate(features: NDArray[np.float64], k: int, epsilon: float) -> TemperedSlate:
    """At the whole of epsilon, over the range that 40 nats leave it."""
    return TemperedSlate(features, k, epsilon, high=down(_room(k, epsilon)))
