"""Means with standard errors, where the same user may stand in several trials.

Trials of one user are not independent of each other: errors are summed user by user before they are squared (the usual
cluster-robust error). With every user once it is the usual standard error of a mean.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from tacit.errors import InvalidParameter

SHOWN = 2.0  # standard errors from which on a difference counts as shown
NOT_SHOWN, CONTRARY = "[not shown]", "contrary"  # in evidence: what does not hold, and what shows the opposite
_CONTRARY = 0.05  # the chance of a false "contrary", over all settings that are looked at together


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, its standard error (NaN where it cannot be told), and the number of trials."""

    value: float
    stderr: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:+.4f} ± {self.stderr:.4f}"

    def below(self, bound: float, errors: float = SHOWN) -> bool:
        """Whether the figure is below ``bound`` by at least so many standard errors."""
        return self.value + errors * self.stderr < bound  # NaN is not

    def above(self, bound: float, errors: float = SHOWN) -> bool:
        return self.value - errors * self.stderr > bound


def mean(values: NDArray[Any], users: NDArray[Any] | None = None) -> Estimate:
    """The mean and its error; ``users`` says whose trial each value is."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not values.size or (users is not None and len(users) != values.size):
        raise InvalidParameter("a mean needs a row of values, and a user for each of them.")
    found = float(values.mean())
    return Estimate(found, _error(values - found, users), values.size)


def difference(one: NDArray[Any], other: NDArray[Any], users: NDArray[Any] | None = None) -> Estimate:
    """The mean of ``one - other``, trial by trial: what the trials have in common cancels out."""
    return mean(_paired(one) - _paired(other), users)


def reduction(one: NDArray[Any], other: NDArray[Any], users: NDArray[Any] | None = None) -> Estimate:
    """By what share the mean of ``one`` is below that of ``other``, trial by trial; the error is of first order."""
    one, other = _paired(one), _paired(other)
    whole = float(other.mean())
    if whole == 0.0:
        return Estimate(math.nan, math.nan, one.size)
    ratio = float(one.mean()) / whole
    return Estimate(1.0 - ratio, _error((one - ratio * other) / whole, users), one.size)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether "this is below that" holds over several settings.

    It holds if the mean over all settings shows it (2 standard errors) and no single setting shows the contrary. A setting
    shows the contrary at a level of 5 % shared among all of them, because one of many would often do so by chance.
    """

    settings: tuple[tuple[str, Estimate], ...]
    pooled: Estimate

    @property
    def holds(self) -> bool:
        return self.pooled.below(0.0) and not self.contrary

    @property
    def shown(self) -> int:
        """In how many settings it is shown by itself."""
        return sum(found.below(0.0) for _, found in self.settings)

    @property
    def contrary(self) -> list[str]:
        errors = float(norm.isf(_CONTRARY / max(1, len(self.settings))))
        return [name for name, found in self.settings if found.above(0.0, errors)]

    def __str__(self) -> str:
        name, weakest = max(self.settings, key=lambda setting: setting[1].value)
        told = f"mean difference {self.pooled} over {len(self.settings)} settings, shown in {self.shown} of them"
        against = f"; {CONTRARY} on average" if self.pooled.above(0.0) else ""
        against += f"; {CONTRARY} at {', '.join(self.contrary)}" if self.contrary else ""
        is_open = not (self.holds or against)
        return f"{told}; weakest at {name}: {weakest}{against}" + (f" {NOT_SHOWN}" if is_open else "")


def below(pairs: dict[str, tuple[NDArray[Any], NDArray[Any]]], users: NDArray[Any]) -> Verdict:
    """The verdict on "the first of each pair is below the second"; pairs by the name of their setting, trials in the same order."""
    if not pairs:
        raise InvalidParameter("a verdict needs at least one setting.")
    least = min(min(len(one), len(other)) for one, other in pairs.values())
    apart = {name: (one[:least] - other[:least]) for name, (one, other) in pairs.items()}
    settings = tuple((name, mean(values, users[:least])) for name, values in apart.items())
    return Verdict(settings, mean(np.mean(list(apart.values()), axis=0), users[:least]))


def _paired(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _error(residuals: NDArray[np.float64], users: NDArray[Any] | None) -> float:
    """sqrt(G/(G - 1) sum over users of (sum of their residuals)^2) / n, for G users."""
    sums = residuals
    if users is not None:
        _, place = np.unique(users, return_inverse=True)
        sums = np.zeros(int(place.max()) + 1)
        np.add.at(sums, place, residuals)
    groups = sums.size
    if groups < 2:
        return math.nan
    return math.sqrt(groups / (groups - 1) * float(sums @ sums)) / residuals.size
