"""Multi-selection on the server: the guess of the sender, the greedy slate, and the local model that is sent along.

A posterior over look-alikes, or over the whole feature domain, says who may have sent a signal.

The greedy slate takes k times the item that adds most to the samples' utility of their t best items of the slate. This
function is monotone and submodular for every t, so greedy reaches at least 1 - 1/e of the best slate.

A local model estimates the utilities of the slate's items from features alone, so that the device can pick by its true
features. It is either the principal components of (1, features, utilities) over the posterior, as published, or a
linear map: the map that principal components amount to, or a ridge regression.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter
from tacit.models.items import Classes
from tacit.models.loops.plain import NO_GAIN
from tacit.models.tables import Tables

_NULL = 1e-12  # share of the largest eigenvalue: smaller ones are null directions
_ALIKE = 1e-9  # share of the second moment: a smaller variance is rounding
_CUT = 1e-6  # relative cut-off of the least-squares solve
_DISTANCES = 1 << 22  # in memory at once: 32 MB


def capped_draws(
    signal: NDArray[Any],
    eta: float,
    count: int,
    inside: Callable[[NDArray[Any]], NDArray[np.float64]],
    *,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draws of the posterior `cap`: the signal plus fresh Laplace noise, moved ``inside`` the domain of features.

    The server guesses here. It is not a privacy mechanism, so its noise is experiment randomness.
    """
    return inside(np.asarray(signal) + rng.laplace(scale=eta, size=(count, len(signal))))


def from_lists(
    work: ModuleType,
    lists: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    rows: NDArray[np.integer[Any]],
    classes: Classes,
    k: int,
    t: int,
) -> NDArray[np.int64]:
    """The greedy slate of k items for samples that see only their r best items.

    ``lists`` are (starts, classes, kept, utilities). When no sample gains any more, the classes not yet represented
    follow, by largest summed utility. The slate is shorter than k if no class with any utility for a sample is left.
    """
    starts, listed, kept, utilities = lists
    slate: NDArray[np.int64] = work.greedy_on_lists(
        starts,
        listed,
        kept,
        utilities,
        rows,
        classes.first,
        classes.sizes,
        classes.starts,
        classes.members,
        k,
        min(t, k),
    )
    return slate


def from_weights(
    work: ModuleType,
    tables: Tables,
    rows: NDArray[np.integer[Any]],
    weights: NDArray[np.float64],
    classes: Classes,
    k: int,
    t: int,
) -> NDArray[np.int64]:
    """The greedy slate of k items for weighted look-alikes that see the full utility of every candidate class.

    It needs no draws, and nothing is cut at r.
    """
    slate: NDArray[np.int64] = work.greedy_on_weights(
        tables.utilities,
        tables.tops,
        rows,
        (weights / weights.sum()).astype(np.float32),
        tables.items,
        tables.sizes,
        tables.members,
        classes.members,
        k,
        min(t, k),
        NO_GAIN / float(tables.scale),
    )
    return slate


def filled(
    slate: NDArray[np.int64], classes: Classes, k: int, sums: Callable[[], NDArray[np.float64]]
) -> NDArray[np.int64]:
    """A slate that came out too short, followed by the classes it lacks, largest summed utility first."""
    if len(slate) >= k:
        return slate
    lacking = np.setdiff1d(np.arange(len(classes)), classes.of[slate])
    if not lacking.size:
        return slate
    order = lacking[np.lexsort((classes.first[lacking], -sums()[lacking]))][: k - len(slate)]
    return np.concatenate([slate, classes.first[order].astype(np.int64)])


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Estimates ``matrix @ [1, features]``: one row for each item of the slate."""

    matrix: NDArray[np.float64]  # k x (1 + d)

    def estimate(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """The estimated score of each item of the slate at these features."""
        estimates: NDArray[np.float64] = self.matrix[:, 0] + self.matrix[:, 1:] @ np.asarray(features, dtype=np.float64)
        return estimates


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """The leading directions of rows [1, features, utilities]. Columns of zeros stand for dropped directions."""

    basis: NDArray[np.float64]  # (1 + d + k) x p
    k: int  # items of the slate

    def estimate(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """The utilities at the point of the plane whose first 1 + d entries are nearest to [1, features]."""
        known = np.concatenate([[1.0], np.asarray(features, dtype=np.float64)])
        above, below = self._parts()
        # Not by normal equations: leading directions hold little of the features, so `above` may be ill-conditioned.
        coordinates = np.linalg.lstsq(above, known, rcond=_CUT)[0]
        estimates: NDArray[np.float64] = below @ coordinates
        return estimates

    def as_map(self) -> LinearMap:
        """The same estimates as a smaller linear map: below @ pinv(above)."""
        above, below = self._parts()
        return LinearMap(below @ np.linalg.pinv(above, rcond=_CUT))

    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        basis = np.asarray(self.basis, dtype=np.float64)
        return basis[: -self.k], basis[-self.k :]


def principal_components(gram: NDArray[np.float64], k: int, components: int = 20) -> PrincipalComponents:
    """The ``components`` leading directions, from the Gram matrix X'X of rows [1, features, utilities of k items].

    Null directions are dropped: with them the minimum-norm solve would pull the estimates to 0.
    """
    whole("components", components, least=1)
    size = len(gram)
    wanted = min(components, size - k)
    values, vectors = np.linalg.eigh(gram)
    largest, vectors = values[::-1][:wanted], vectors[:, ::-1][:, :wanted]
    kept = largest > _NULL * largest[0]
    basis = np.zeros((size, components))
    basis[:, : int(kept.sum())] = vectors[:, kept]
    return PrincipalComponents(basis, k)


def gram_of(features: NDArray[Any], utilities: NDArray[Any], multiplicities: NDArray[Any]) -> NDArray[np.float64]:
    """X'X for rows [1, features, utilities], each counted ``multiplicities`` times."""
    rows = np.empty((len(features), 1 + features.shape[1] + utilities.shape[1]))
    rows[:, 0] = 1.0
    rows[:, 1 : 1 + features.shape[1]] = features
    rows[:, 1 + features.shape[1] :] = utilities
    gram: NDArray[np.float64] = (rows * np.asarray(multiplicities, dtype=np.float64)[:, None]).T @ rows
    return gram


def fit_ridge(
    features: NDArray[Any], utilities: NDArray[Any], weights: NDArray[Any], strength: float = 0.01
) -> LinearMap:
    """Weighted least squares of each item's utility on the features around their weighted mean.

    The penalty is ``strength`` times the mean diagonal of the weighted covariance, so it has no unit.
    """
    share = np.asarray(weights, dtype=np.float64)
    return ridge_from_gram(gram_of(features, utilities, share / share.sum()), utilities.shape[1], strength)


def ridge_from_gram(gram: NDArray[np.float64], k: int, strength: float = 0.01) -> LinearMap:
    """`fit_ridge` from the Gram matrix of rows [1, features, utilities] with weights that sum to 1, for k items."""
    above = slice(1, len(gram) - k)
    mean, second, utility, cross = gram[0, above], gram[above, above], gram[0, -k:], gram[above, -k:]
    if strength != 0.0:
        positive("strength", strength)
    covariance = second - np.outer(mean, mean)
    spread = float(np.trace(covariance))
    penalty = strength * spread / len(mean)
    target = cross - np.outer(mean, utility)
    if spread <= _ALIKE * float(np.trace(second)):  # all look-alikes are one point: the rest is rounding, not slope
        slopes: NDArray[Any] = np.zeros_like(target)
    elif penalty > 0.0:
        slopes = np.linalg.solve(covariance + penalty * np.eye(len(mean)), target)
    else:
        slopes = np.linalg.lstsq(covariance, target, rcond=_CUT)[0]
    return LinearMap(np.concatenate([(utility - mean @ slopes)[:, None], slopes.T], axis=1))


def temperature(eta: float) -> float:
    """The kernel width of the ridge model, an L1 distance: 2 max(eta, 0.2).

    At small eta the posterior is only a few people, so it is wider.
    """
    if not eta > 0.0:
        raise InvalidParameter("eta must be above 0.")
    return 2.0 * max(eta, 0.2)


def cluster_diameters(
    population: NDArray[Any], size: int = 5, *, centres: int = 1500, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The L1 diameters of clusters: a person drawn from a public population, and the size - 1 people nearest to them.

    They show at which radius to read an epsilon per distance: within a cluster of diameter R, an epsilon per unit of
    distance is epsilon * R. ``centres`` people are drawn without replacement; if there are fewer, all are taken.
    """
    people = np.asarray(population, dtype=np.float64)
    size, centres = whole("size", size, least=2), whole("centres", centres, least=1)
    if people.ndim != 2 or len(people) < size or not np.isfinite(people).all():
        raise InvalidParameter(f"the population must be a table of at least {size} rows of finite features.")
    sample = rng.permutation(len(people))[:centres]
    diameters = np.empty(len(sample))
    rows = max(1, _DISTANCES // len(people))
    for first in range(0, len(sample), rows):
        part = slice(first, first + rows)
        nearest = np.argpartition(cdist(people[sample[part]], people, "cityblock"), size - 1, axis=1)[:, :size]
        diameters[part] = _diameters(people[nearest])
    return diameters


def _diameters(clusters: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest distance between two members of each cluster (clusters x members x features)."""
    largest = np.zeros(len(clusters))
    for member in range(1, clusters.shape[1]):  # each with the members before it
        apart = np.abs(clusters[:, :member] - clusters[:, member : member + 1]).sum(axis=2)
        np.maximum(largest, apart.max(axis=1), out=largest)
    return largest
