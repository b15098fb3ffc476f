"""The policy `auto`: how many of the publicly best candidates to offer for a private choice, from public data alone.

rr(m, d) takes each of the d privately best of the m publicly best candidates with probability e^epsilon / (d
e^epsilon + m - d). A small m wastes little on bad candidates, a large m gives more to choose from. Under a public
prior of private scores, with means u_1 >= u_2 >= ..., the expected score is

    V(m, d) = [u_1 + ... + u_m + (e^epsilon - 1) E(sum of the d largest among the first m)] / (d e^epsilon + m - d),

and `choose` takes the largest V; of equal ones the smallest m, then the smallest d. m = 1 is the public choice and
costs nothing.

The prior says how far private scores may lie from public ones. Its draws come from a public seed: raw 64-bit words of
numpy's PCG64, which are equal in every version, turned into normal numbers rounded to 2^-20. Each candidate's draws
have exactly its public score as their mean; otherwise a choice at small epsilon would follow the chance of the draws.

The result depends on the arguments alone and is equal on every machine. Values that differ by less than 1e-12 of
themselves count as equal, so that the last bit of a library's exponential decides nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats

DRAWS = 100  # of the prior: 50 numbers and their negatives
# Of the seeds 0 to 2,999, this one's mean maxima of the first m <= 16 rows are nearest to the exact expected maxima of m normal
# numbers (within 1.8 %). The choice of m rests on these maxima; seed 3 undervalued a choice among two (0.453 for 0.564).
_SEED = 2366
_ROUNDING = 1e-12
_CERTAIN = 1e-12  # public probabilities count as at least this far from 0 and 1, so that their odds are finite
_MOST_SIGMA = 20.0  # e^(sigma |z|) stays finite
EVEN: Floats = np.full(DRAWS, 1.0 / DRAWS)
_TIE = 1e-12  # relative: closer values count as equal
_FIRST = 16  # candidates to look at before asking whether more of them can help


@dataclass(frozen=True, slots=True)
class Spread:
    """How far private scores lie from public ones, as far as is publicly known. Never estimate it from the device's own data.

    With "logit-normal", ``sigma`` is the spread of the log odds of a click. With "normal", it is in units of the
    score, such as stars.
    """

    sigma: float = 1.0
    kind: str = "logit-normal"

    def __post_init__(self) -> None:
        keep(self, sigma=positive("sigma", self.sigma))
        if self.kind not in ("logit-normal", "normal"):
            raise InvalidParameter(f"the kind of a spread must be 'logit-normal' or 'normal', not {self.kind!r}.")
        if self.kind == "logit-normal" and self.sigma > _MOST_SIGMA:
            raise InvalidParameter(
                f"sigma of a logit-normal spread must be at most {_MOST_SIGMA:g}, not {self.sigma!r}."
            )


@dataclass(frozen=True, eq=False)
class Tastes:
    """The scores that some people would give each candidate: a row for each candidate, of DRAWS people.

    Public, like a spread.

    If tastes are correlated (a user who likes one thriller likes the other), independent draws promise a gain from
    choosing that does not exist. Tables of people show the real gain.
    """

    table: Floats

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != DRAWS or not np.isfinite(table).all():
            raise InvalidParameter(f"tastes must be a table with a row of {DRAWS} finite numbers for each candidate.")
        table.setflags(write=False)
        keep(self, table=table)


class PolicyChoice(NamedTuple):
    """Offer the ``m`` publicly best candidates, prefer the ``d`` privately best of them.

    ``value`` is V(m, d), in units of the score.
    """

    m: int
    d: int
    value: float


def choose(
    public: ArrayLike, spread: Spread | Tastes, epsilon: float, *, bids: ArrayLike | None = None, most_d: int = 1
) -> PolicyChoice:
    """The best m and d for candidates with these ``public`` scores, in falling order. ``epsilon`` is in nats, for one choice.

    With a logit-normal spread, a score is bid times probability: give ``bids`` in the unit of the scores, or leave
    them out if scores are probabilities.
    """
    prior = prior_of(public, spread, bids)
    epsilon, most_d = positive("epsilon", epsilon), min(whole("most_d", most_d, least=1), prior.size)
    return _best(_promising_values(prior, epsilon)[:, None] if most_d == 1 else _values(prior, epsilon, most_d))


class Prior:
    """Draws of private scores from a spread, for any range of candidates at a time."""

    def __init__(self, public: ArrayLike, spread: Spread, bids: ArrayLike | None) -> None:
        self.scores = scores = _checked_scores(public)
        self.size, self.rows, self.spread = scores.size, _table_rows(scores.size), spread
        self.bids = stakes = None if bids is None else _checked_bids(bids, scores)
        self.often: NDArray[np.bool_] | None = None
        if spread.kind == "normal":
            return
        if stakes is not None and not stakes.all():
            stakes = np.where(stakes > 0.0, stakes, 1.0)  # a bid of 0 is a score of 0
        self.chances = scores if stakes is None else scores / stakes
        most = self.chances.max()
        if not (scores[-1] >= 0.0 and most <= 1.0 + _ROUNDING):
            raise InvalidParameter("with a logit-normal spread, every score must be its bid times a probability.")
        if most > 0.5:
            self.often = self.chances > 0.5

    def draws(self, start: int, stop: int) -> Floats:
        """A row for each candidate from ``start`` to before ``stop``."""
        scores = self.scores[start:stop]
        if self.spread.kind == "normal":
            return scores[:, None] + _scaled_normals(self.spread.sigma, self.rows)[start:stop]
        # Draw the rarer side, P = min(p, 1-p), by its odds. Since P <= 1/2, draws in pairs z and -z have a mean of at least P (the
        # slope of the logistic function is larger at the one nearer to 0). Scaled to the mean P they stay below 1.
        chances = self.chances[start:stop]
        often = None if self.often is None else self.often[start:stop]
        rarer = np.maximum(chances if often is None else np.minimum(chances, 1.0 - chances), _CERTAIN)
        draws = (rarer / (1.0 - rarer))[:, None] * _odds(self.spread.sigma, self.rows)[start:stop]
        draws /= draws + 1.0
        mean = draws @ EVEN
        if often is None:
            draws *= (scores / mean)[:, None]
            return draws
        stakes = np.ones(scores.size) if self.bids is None else self.bids[start:stop]
        draws *= (np.where(often, np.maximum(stakes - scores, 0.0), scores) / mean)[:, None]
        draws[often] = stakes[often, None] - draws[often]
        return draws

    def reach(self, start: int) -> Floats:
        """A bound, for each draw, on the private scores of all candidates from ``start`` on.

        Normal: score + sigma z. Logit-normal: if p <= 1/2, score e (1+o) / (1 + o e) with odds o and e = e^(sigma z),
        which is at most score max(1, e); otherwise at most the bid, which is less than twice the score.
        """
        following = float(self.scores[start])
        if self.spread.kind == "normal":
            return following + _largest_from(_scaled_normals, self.spread.sigma, self.rows, start)
        least = 1.0 if self.often is None else 2.0
        reach: Floats = following * np.maximum(_largest_from(_odds, self.spread.sigma, self.rows, start), least)
        return reach


class TastePrior:
    """Draws of private scores from people's tastes, each candidate's draws shifted to its public score."""

    def __init__(self, public: ArrayLike, tastes: Tastes, bids: ArrayLike | None) -> None:
        self.scores = _checked_scores(public)
        self.size, self.rows = self.scores.size, _table_rows(self.scores.size)
        if len(tastes.table) != self.size:
            raise InvalidParameter("tastes must have one row for each candidate.")
        table = tastes.table if bids is None else tastes.table * _checked_bids(bids, self.scores)[:, None]
        self._draws: Floats = table + (self.scores - table @ EVEN)[:, None]

    def draws(self, start: int, stop: int) -> Floats:
        """A row for each candidate from ``start`` to before ``stop``."""
        return self._draws[start:stop].copy()

    def reach(self, start: int) -> Floats:
        """The largest private score, for each draw, of all candidates from ``start`` on."""
        largest: Floats = self._draws[start:].max(axis=0)
        return largest


def prior_of(public: ArrayLike, spread: Spread | Tastes, bids: ArrayLike | None) -> Prior | TastePrior:
    """The prior of these candidates, from a spread or from tastes."""
    return TastePrior(public, spread, bids) if isinstance(spread, Tastes) else Prior(public, spread, bids)


def _values(prior: Prior | TastePrior, epsilon: float, most_d: int) -> Floats:
    """V(m, d) for every m (a row) and d (a column), in units of the score; -inf if d is above m.

    Numerator and denominator are scaled by e^-epsilon: no epsilon overflows.
    """
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
        # What is left of each candidate for the next place: itself, or the one that it displaced.
        left, best = np.minimum(left[1:], largest[:-1]), best[1:]
    return values


def _promising_values(prior: Prior | TastePrior, epsilon: float) -> Floats:
    """V(m, 1) for m = 1, 2, ..., until no larger m can be better."""
    shrunk, weights, shares = _constants(epsilon, prior.rows, 1)
    parts, total, top, start, largest = [], 0.0, -math.inf, 0, None
    while True:
        stop = min(prior.size, max(_FIRST, 8 * start))
        draws = prior.draws(start, stop)
        if largest is not None:
            np.maximum(draws[0], largest, out=draws[0])
        running = np.maximum.accumulate(draws, axis=0)
        sums = prior.scores[start:stop].cumsum() + total
        values = (shrunk * sums + running @ weights) * shares[0, start:stop]
        parts.append(values)
        if stop == prior.size:
            return values if len(parts) == 1 else np.concatenate(parts)
        # Beyond ``stop`` no score is above the next one and no draw above its reach. Numerators grow by at most shrunk * next and
        # denominators by shrunk for each further candidate, so every V lies below the larger of the two quotients.
        start, total, largest, following = stop, float(sums[-1]), running[-1], float(prior.scores[stop])
        reached = float(np.maximum(largest, prior.reach(stop)) @ weights)
        top = max(top, float(values.max()))
        if top - max((shrunk * total + reached) * shares[0, stop - 1], following) > _TIE * abs(top):
            return np.concatenate(parts)


def _best(values: Floats) -> PolicyChoice:
    """The first of the largest values, by m, then by d."""
    flat = values.ravel()
    top = float(flat.max())
    index = int((flat >= top - _TIE * abs(top)).argmax())
    m, d = divmod(index, values.shape[1])
    return PolicyChoice(m + 1, d + 1, float(flat[index]))


@lru_cache(maxsize=64)
def _constants(epsilon: float, rows: int, most_d: int) -> tuple[float, Floats, Floats]:
    """e^-epsilon; the weight of each draw, 1 - e^-epsilon in total; and 1 / (d + (m - d) e^-epsilon) by d and m."""
    shrunk = math.exp(-epsilon)
    d, m = np.arange(1.0, most_d + 1.0)[:, None], np.arange(1.0, rows + 1.0)
    return shrunk, -math.expm1(-epsilon) * EVEN, 1.0 / (d + np.maximum(m - d, 0.0) * shrunk)


@lru_cache(maxsize=64)
def _largest_from(table: Callable[[float, int], Floats], sigma: float, rows: int, start: int) -> Floats:
    largest: Floats = table(sigma, rows)[start:].max(axis=0)
    return largest


def _table_rows(size: int) -> int:
    """The number of rows of the table to use. A few tables serve all sizes: each begins like the next larger one."""
    return 1 << max(4, (size - 1).bit_length())


@lru_cache(maxsize=4)
def _normals(rows: int) -> Floats:
    """``rows`` rows of 50 standard normal numbers and their negatives, from the public seed."""
    words = np.random.PCG64(_SEED).random_raw(rows * (DRAWS // 2)).reshape(rows, -1)
    normals = np.rint(ndtri(((words >> np.uint64(12)) + 0.5) / 2.0**52) * 2.0**20) / 2.0**20
    table: Floats = np.concatenate([normals, -normals], axis=1)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _scaled_normals(sigma: float, rows: int) -> Floats:
    table: Floats = sigma * _normals(rows)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _odds(sigma: float, rows: int) -> Floats:
    """e^(sigma z), the factor that a draw multiplies odds by. The only exponential, computed once for each public spread."""
    table: Floats = np.exp(sigma * _normals(rows))
    table.setflags(write=False)
    return table


def _checked_scores(public: ArrayLike) -> Floats:
    scores = np.asarray(public, dtype=np.float64)
    if scores.ndim != 1 or not scores.size:
        raise InvalidParameter("public scores must be a row of at least one number.")
    # In falling order, all are finite if the first and the last are.
    if not (scores[0] < math.inf and scores[-1] > -math.inf and (scores[1:] <= scores[:-1]).all()):
        raise InvalidParameter("public scores must be finite numbers in falling order.")
    return scores


def _checked_bids(bids: ArrayLike, scores: Floats) -> Floats:
    stakes = np.asarray(bids, dtype=np.float64)
    if stakes.shape != scores.shape or not (stakes.min() >= 0.0 and stakes.max() < math.inf):
        raise InvalidParameter("bids must be finite numbers of at least 0, one for each score.")
    return stakes
