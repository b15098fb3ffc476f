"""Local models: the small scorer that is sent along with a slate, so that the device can pick at its true features.

Both kinds estimate the utilities of the k items of a slate from features alone: principal components of (1, features, utilities)
over the posterior, as published; and a linear map, which is what principal components amount to, or a ridge regression.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter

_NULL = 1e-12  # eigenvalues below this share of the largest are null directions
_ALIKE = 1e-9  # a variance below this share of the second moment is rounding
_CUT = 1e-6  # relative cut-off of the least-squares solve


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
    """The leading directions of rows [1, features, utilities]; columns of zeros stand for directions that were dropped."""

    basis: NDArray[np.float64]  # (1 + d + k) x p
    k: int  # items of the slate

    def estimate(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """The utilities at the point of the plane whose first 1 + d entries are nearest to [1, features]."""
        known = np.concatenate([[1.0], np.asarray(features, dtype=np.float64)])
        above, below = self._parts()
        # never by normal equations: leading directions hold little of the features, so `above` may be ill-conditioned
        place = np.linalg.lstsq(above, known, rcond=_CUT)[0]
        estimates: NDArray[np.float64] = below @ place
        return estimates

    def as_map(self) -> LinearMap:
        """The same estimates as a smaller linear map: below @ pinv(above)."""
        above, below = self._parts()
        return LinearMap(below @ np.linalg.pinv(above, rcond=_CUT))

    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        basis = np.asarray(self.basis, dtype=np.float64)
        return basis[: -self.k], basis[-self.k :]


def principal_components(gram: NDArray[np.float64], k: int, components: int = 20) -> PrincipalComponents:
    """From the Gram matrix X'X of rows [1, features, utilities] (with multiplicities), in float64.

    Null directions are dropped: with them the minimum-norm solve would drag the estimated values to 0.
    """
    whole("components", components, least=1)
    size = len(gram)
    wanted = min(components, size - k)
    largest, vectors = _leading(gram, wanted)
    kept = largest > _NULL * largest[0]
    basis = np.zeros((size, components))
    basis[:, : int(kept.sum())] = vectors[:, kept]
    return PrincipalComponents(basis, k)


def gram_of(features: NDArray[Any], utilities: NDArray[Any], multiplicities: NDArray[Any]) -> NDArray[np.float64]:
    """X'X for rows [1, features, utilities], each counted as often as ``multiplicities`` says."""
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

    The penalty is ``strength`` times the mean diagonal of the weighted covariance, so that it has no unit.
    """
    share = np.asarray(weights, dtype=np.float64)
    return ridge_from_gram(gram_of(features, utilities, share / share.sum()), utilities.shape[1], strength)


def ridge_from_gram(gram: NDArray[np.float64], k: int, strength: float = 0.01) -> LinearMap:
    """`fit_ridge` from the Gram matrix of rows [1, features, utilities] with weights that sum to 1: it holds all moments."""
    above = slice(1, len(gram) - k)
    mean, second, utility, cross = gram[0, above], gram[above, above], gram[0, -k:], gram[above, -k:]
    if strength != 0.0:
        positive("strength", strength)
    covariance = second - np.outer(mean, mean)
    spread = float(np.trace(covariance))
    penalty = strength * spread / len(mean)
    target = cross - np.outer(mean, utility)
    if spread <= _ALIKE * float(np.trace(second)):  # all look-alikes are one point: what is left is rounding, not slope
        slopes: NDArray[Any] = np.zeros_like(target)
    elif penalty > 0.0:
        slopes = np.linalg.solve(covariance + penalty * np.eye(len(mean)), target)
    else:
        slopes = np.linalg.lstsq(covariance, target, rcond=_CUT)[0]
    return LinearMap(np.concatenate([(utility - mean @ slopes)[:, None], slopes.T], axis=1))


def temperature(eta: float) -> float:
    """The kernel width of the ridge model: 2 max(eta, 0.2). Wider than the posterior, which at small eta is but a few people."""
    if not eta > 0.0:
        raise InvalidParameter("eta must be above 0.")
    return 2.0 * max(eta, 0.2)


def _leading(gram: NDArray[np.float64], wanted: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ``wanted`` largest eigenvalues, descending, and their vectors."""
    values, vectors = np.linalg.eigh(gram)
    return values[::-1][:wanted], vectors[:, ::-1][:, :wanted]
