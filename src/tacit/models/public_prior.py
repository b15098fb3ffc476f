"""A public prior of private scores: how far they may lie from the public ones, and draws of them, the same on every machine.

The draws come from a public seed: the raw 64-bit words of numpy's PCG64, which are the same in every version, turned into normal
numbers rounded to 2^-20. Each candidate's draws have its public score as their mean, exactly: without that a choice at small
epsilon would follow the chance of the draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from tacit.checks import keep, positive
from tacit.errors import InvalidParameter

DRAWS = 100  # of the prior: 50 and their negatives
# Of the seeds 0 to 2,999 the one whose mean maxima of the first m <= 16 rows are nearest to the exact expected maxima of m normal
# numbers (within 1.8 %). The choice of m rests on these; seed 3 undervalued a choice among two (0.453 for 0.564).
_SEED = 2366
_ROUNDING = 1e-12
_CERTAIN = 1e-12  # public probabilities are taken to lie this far from 0 and 1: their odds are finite
_MOST_SIGMA = 20.0  # e^(sigma |z|) stays finite

Floats = NDArray[np.float64]
EVEN: Floats = np.full(DRAWS, 1.0 / DRAWS)


@dataclass(frozen=True, slots=True)
class Spread:
    """How far private scores lie from public ones, as far as is publicly known: never taken from the device's own data.

    "logit-normal": ``sigma`` is the spread of the log odds of a click. "normal": it is in units of the score, such as stars.
    """

    sigma: float = 1.0
    kind: str = "logit-normal"

    def __post_init__(self) -> None:
        keep(self, sigma=positive("sigma", self.sigma))
        if self.kind not in ("logit-normal", "normal"):
            raise InvalidParameter(f"the kind of a spread is 'logit-normal' or 'normal', not {self.kind!r}.")
        if self.kind == "logit-normal" and self.sigma > _MOST_SIGMA:
            raise InvalidParameter(f"a spread of log odds is at most {_MOST_SIGMA:g}, not {self.sigma!r}.")


@dataclass(frozen=True, eq=False)
class Tastes:
    """What some people would give each candidate: a row for each candidate, of DRAWS people. Public, as a spread is.

    Where tastes go together (who likes one thriller likes the other), draws that are independent promise a gain from choosing
    that is not there; people themselves show what there is.
    """

    table: Floats

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != DRAWS or not np.isfinite(table).all():
            raise InvalidParameter(f"tastes are a row of {DRAWS} finite numbers for each candidate.")
        table.setflags(write=False)
        keep(self, table=table)


class TastePrior:
    """Draws of the private scores of candidates from people's tastes, each candidate's shifted to its public score."""

    def __init__(self, public: ArrayLike, tastes: Tastes, bids: ArrayLike | None) -> None:
        self.scores = _falling(public)
        self.size, self.rows = self.scores.size, _rounded_up(self.scores.size)
        if len(tastes.table) != self.size:
            raise InvalidParameter("there is one row of tastes for each candidate.")
        table = tastes.table if bids is None else tastes.table * _bids(bids, self.scores)[:, None]
        self._draws: Floats = table + (self.scores - table @ EVEN)[:, None]

    def draws(self, start: int, stop: int) -> Floats:
        return self._draws[start:stop].copy()

    def reach(self, start: int) -> Floats:
        largest: Floats = self._draws[start:].max(axis=0)
        return largest


class Prior:
    """Draws of the private scores of candidates, of any of them at a time."""

    def __init__(self, public: ArrayLike, spread: Spread, bids: ArrayLike | None) -> None:
        self.scores = scores = _falling(public)
        self.size, self.rows, self.spread = scores.size, _rounded_up(scores.size), spread
        self.bids = stakes = None if bids is None else _bids(bids, scores)
        self.often: NDArray[np.bool_] | None = None
        if spread.kind == "normal":
            return
        if stakes is not None and not stakes.all():
            stakes = np.where(stakes > 0.0, stakes, 1.0)  # a bid of nothing is a score of nothing
        self.chances = scores if stakes is None else scores / stakes
        most = self.chances.max()
        if not (scores[-1] >= 0.0 and most <= 1.0 + _ROUNDING):
            raise InvalidParameter("under a logit-normal spread a score is bid times a probability.")
        if most > 0.5:
            self.often = self.chances > 0.5

    def draws(self, start: int, stop: int) -> Floats:
        """A row for each candidate from ``start`` to before ``stop``."""
        scores = self.scores[start:stop]
        if self.spread.kind == "normal":
            return scores[:, None] + _scaled_normals(self.spread.sigma, self.rows)[start:stop]
        # Draw the rarer side, P = min(p, 1-p), by its odds. As P <= 1/2, draws in pairs z and -z have a mean of at least P (the
        # slope of the logistic function is larger at the one nearer to 0): scaled to the mean P they stay below 1.
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
        """For each draw a bound on the private scores of all candidates from ``start`` on.

        Normal: score + sigma z. Logit-normal: where p <= 1/2, score e (1+o) / (1 + o e) with odds o and e = e^(sigma z), which is
        at most score max(1, e); elsewhere at most the bid, which is less than twice the score.
        """
        following = float(self.scores[start])
        if self.spread.kind == "normal":
            return following + _largest_from(_scaled_normals, self.spread.sigma, self.rows, start)
        least = 1.0 if self.often is None else 2.0
        reach: Floats = following * np.maximum(_largest_from(_odds, self.spread.sigma, self.rows, start), least)
        return reach


def prior_of(public: ArrayLike, spread: Spread | Tastes, bids: ArrayLike | None) -> "Prior | TastePrior":
    return TastePrior(public, spread, bids) if isinstance(spread, Tastes) else Prior(public, spread, bids)


@lru_cache(maxsize=64)
def _largest_from(table: Callable[[float, int], Floats], sigma: float, rows: int, start: int) -> Floats:
    largest: Floats = table(sigma, rows)[start:].max(axis=0)
    return largest


def _rounded_up(size: int) -> int:
    """Few tables serve all sizes: each begins as the next larger one does."""
    return 1 << max(4, (size - 1).bit_length())


@lru_cache(maxsize=4)
def _normals(rows: int) -> Floats:
    """``rows`` of 50 standard normal numbers and their negatives, from the public seed."""
    words = np.random.PCG64(_SEED).random_raw(rows * (DRAWS // 2)).reshape(rows, -1)
    drawn = np.rint(ndtri(((words >> np.uint64(12)) + 0.5) / 2.0**52) * 2.0**20) / 2.0**20
    table: Floats = np.concatenate([drawn, -drawn], axis=1)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _scaled_normals(sigma: float, rows: int) -> Floats:
    table: Floats = sigma * _normals(rows)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _odds(sigma: float, rows: int) -> Floats:
    """e^(sigma z): what a draw multiplies odds by. The one exponential, worked out once for each public spread."""
    table: Floats = np.exp(sigma * _normals(rows))
    table.setflags(write=False)
    return table


def _falling(public: ArrayLike) -> Floats:
    scores = np.asarray(public, dtype=np.float64)
    if scores.ndim != 1 or not scores.size:
        raise InvalidParameter("public scores are a row of at least one number.")
    # in falling order all are finite if the two ends are
    if not (scores[0] < math.inf and scores[-1] > -math.inf and (scores[1:] <= scores[:-1]).all()):
        raise InvalidParameter("public scores must be finite numbers in falling order.")
    return scores


def _bids(bids: ArrayLike, scores: Floats) -> Floats:
    stakes = np.asarray(bids, dtype=np.float64)
    if stakes.shape != scores.shape or not (stakes.min() >= 0.0 and stakes.max() < math.inf):
        raise InvalidParameter("bids must be finite numbers of at least 0, one for each score.")
    return stakes
