"""How many of the publicly best candidates to offer for a private choice: the policy `auto`, from public data alone.

With probability e^epsilon / (d e^epsilon + m - d) each, rr(m, d) takes one of the d privately best of the m publicly best
candidates. A small m wastes little on bad ones, a large m gives more to choose from. Under a public prior of private scores,
with means u_1 >= u_2 >= ..., its expected score is

    V(m, d) = [u_1 + ... + u_m + (e^epsilon - 1) E(sum of the d largest among the first m)] / (d e^epsilon + m - d),

and the largest V is chosen; of equal ones the smallest m, then the smallest d. m = 1 is the public choice and costs nothing.

The result is a function of its arguments, and the same on every machine: see tacit.models.public_prior for the draws. Values that
differ by less than 1e-12 of themselves count as equal, so that a last bit of a library's exponential decides nothing.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter
from tacit.models.public_prior import DRAWS, EVEN, Floats, Prior, Spread, TastePrior, Tastes, prior_of

__all__ = ["DRAWS", "Choice", "Spread", "Tastes", "choose", "choose_many", "prior_draws", "value"]

_TIE = 1e-12
_FIRST = 16  # candidates are weighed before it is asked whether more of them can help


class Choice(NamedTuple):
    """Offer the ``m`` publicly best, prefer the ``d`` privately best of them; ``value`` is V(m, d), in units of the score."""

    m: int
    d: int
    value: float


def choose(
    public: ArrayLike, spread: Spread | Tastes, epsilon: float, *, bids: ArrayLike | None = None, most_d: int = 1
) -> Choice:
    """The best m and d for candidates with these ``public`` scores, given in falling order.

    With a logit-normal spread a score is bid times probability: give ``bids`` in the unit of the scores, or leave them out where
    scores are probabilities.
    """
    prior = prior_of(public, spread, bids)
    epsilon, most_d = positive("epsilon", epsilon), min(whole("most_d", most_d, least=1), prior.size)
    return _best(_promising(prior, epsilon)[:, None] if most_d == 1 else _values(prior, epsilon, most_d))


def choose_many(
    public: ArrayLike,
    sizes: ArrayLike,
    spread: Spread,
    epsilon: float,
    *,
    bids: ArrayLike | None = None,
    most_d: int = 1,
) -> list[Choice]:
    """The choice for each of many auctions: rows of falling scores, of which the first ``sizes`` are real."""
    rows, counts = np.asarray(public, dtype=np.float64), np.asarray(sizes)
    if rows.ndim != 2 or counts.shape != rows.shape[:1] or counts.dtype.kind not in "iu":
        raise InvalidParameter("many choices need a table of scores, and the number of real ones in each row.")
    if rows.size and not (counts.min() >= 1 and counts.max() <= rows.shape[1]):
        raise InvalidParameter("every row has at least one real score, and no more than the table is wide.")
    table = None if bids is None else np.asarray(bids, dtype=np.float64)
    if table is not None and table.shape != rows.shape:
        raise InvalidParameter("bids must have the shape of the scores.")
    return [
        choose(row[:size], spread, epsilon, bids=None if table is None else table[place, :size], most_d=most_d)
        for place, (row, size) in enumerate(zip(rows, counts.tolist(), strict=True))
    ]


def value(
    public: ArrayLike, spread: Spread | Tastes, epsilon: float, *, bids: ArrayLike | None = None, most_d: int = 1
) -> Floats:
    """V(m, d) for every m (a row) and d (a column); -inf where d is above m."""
    prior = prior_of(public, spread, bids)
    return _values(prior, positive("epsilon", epsilon), min(whole("most_d", most_d, least=1), prior.size))


def prior_draws(public: ArrayLike, spread: Spread | Tastes, *, bids: ArrayLike | None = None) -> Floats:
    """The draws of the prior: a row for each candidate, whose mean is its public score."""
    prior = prior_of(public, spread, bids)
    return prior.draws(0, prior.size)


def _values(prior: Prior | TastePrior, epsilon: float, most_d: int) -> Floats:
    """V, with numerator and denominator times e^-epsilon: no epsilon overflows."""
    size = prior.size
    shrunk, weights, shares = _constants(epsilon, prior.rows, most_d)
    total = shrunk * prior.scores.cumsum()
    values = np.full((size, most_d), -np.inf)
    left = prior.draws(0, size)
    best = np.zeros(size)
    for d in range(most_d):
        largest = np.maximum.accumulate(left, axis=0)
        best += largest @ weights
        values[d:, d] = (total[d:] + best) * shares[d, d:size]
        # What the largest leave of each candidate for the next place: itself, or the one that it displaced.
        left, best = np.minimum(left[1:], largest[:-1]), best[1:]
    return values


def _promising(prior: Prior | TastePrior, epsilon: float) -> Floats:
    """V(m, 1) for m = 1, 2, ... until no larger m can be better."""
    shrunk, weights, shares = _constants(epsilon, prior.rows, 1)
    found, total, top, start, largest = [], 0.0, -math.inf, 0, None
    while True:
        stop = min(prior.size, max(_FIRST, 8 * start))
        draws = prior.draws(start, stop)
        if largest is not None:
            np.maximum(draws[0], largest, out=draws[0])
        running = np.maximum.accumulate(draws, axis=0)
        sums = prior.scores[start:stop].cumsum() + total
        values = (shrunk * sums + running @ weights) * shares[0, start:stop]
        found.append(values)
        if stop == prior.size:
            return values if len(found) == 1 else np.concatenate(found)
        # Beyond ``stop`` no score is above the next one and no draw above its reach, so numerators and denominators grow by at most
        # shrunk * next and by shrunk for each further candidate: every V lies below the larger of the two quotients.
        start, total, largest, following = stop, float(sums[-1]), running[-1], float(prior.scores[stop])
        reached = float(np.maximum(largest, prior.reach(stop)) @ weights)
        top = max(top, float(values.max()))
        if top - max((shrunk * total + reached) * shares[0, stop - 1], following) > _TIE * abs(top):
            return np.concatenate(found)


def _best(values: Floats) -> Choice:
    flat = values.ravel()  # by m, then by d: the first of those that count as equal
    top = float(flat.max())
    place = int((flat >= top - _TIE * abs(top)).argmax())
    m, d = divmod(place, values.shape[1])
    return Choice(m + 1, d + 1, float(flat[place]))


@lru_cache(maxsize=64)
def _constants(epsilon: float, rows: int, most_d: int) -> tuple[float, Floats, Floats]:
    """e^-epsilon; what the mean of the draws weighs, (1 - e^-epsilon) in all; 1 / (d + (m - d) e^-epsilon) by d and m."""
    shrunk = math.exp(-epsilon)
    d, m = np.arange(1.0, most_d + 1.0)[:, None], np.arange(1.0, rows + 1.0)
    return shrunk, -math.expm1(-epsilon) * EVEN, 1.0 / (d + np.maximum(m - d, 0.0) * shrunk)
