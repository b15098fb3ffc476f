"""Public arithmetic of prototypes: random projections and weighted k-means. No private value enters either.

Both draw from a public seed, so anyone can compute them again. They are not in the mechanisms, which draw from the
operating system only.
"""

import numpy as np

from tacit.models.arrays import Floats, Ints


def gaussian_projection(items: int, dimension: int, seed: int, which: int = 0) -> Floats:
    """items x dimension normal numbers of variance 1/dimension, which keep the mean of squared lengths.

    The ``which``-th of its seed.
    """
    rng = np.random.default_rng([0, seed, which])
    matrix: Floats = rng.standard_normal((items, dimension)) / np.sqrt(dimension)
    return matrix


def uniform_shift(half_side: int, dimension: int, seed: int, which: int) -> Ints:
    """A shift of a cube's centre, each coordinate uniform in [-half_side, half_side]. The ``which``-th of its seed."""
    rng = np.random.default_rng([1, seed, which])
    return rng.integers(-half_side, half_side, dimension, endpoint=True)


def weighted_k_means(
    points: Floats, weights: Floats, k: int, *, seed: int, starts: int = 20, steps: int = 10
) -> tuple[Floats, Ints]:
    """``k`` centres and the centre of each point: the best of ``starts`` runs. At most k points are their own centres.

    Weights must be above 0. The seed is public, and equal points always have equal centres.
    """
    if len(points) <= k:
        return points.copy(), np.arange(len(points))
    rng = np.random.default_rng(seed)
    squares = np.einsum("ij,ij->i", points, points)
    least, best = np.inf, (points[:k], np.zeros(len(points), dtype=np.int64))
    for _ in range(starts):
        centres = points[_spread(points, squares, weights, k, rng)]
        gaps = _gaps(points, squares, centres)
        near = gaps.argmin(axis=1)
        for _ in range(steps):
            centres = _means(points, weights, near, centres)
            gaps, before = _gaps(points, squares, centres), near
            near = gaps.argmin(axis=1)
            if (near == before).all():
                break
        loss = float(weights @ gaps[np.arange(len(points)), near])
        if loss < least:
            least, best = loss, (centres, near)
    return best


def _spread(points: Floats, squares: Floats, weights: Floats, k: int, rng: np.random.Generator) -> Ints:
    """k-means++: draws each next centre in proportion to its weight times its squared distance from the centres so far."""
    chosen, chances, gaps = np.empty(k, dtype=np.int64), weights, np.full(len(points), np.inf)
    for index, uniform in enumerate(rng.random(k)):
        running = np.cumsum(chances)
        # If all points are chosen already, running[-1] is 0 and the last one is chosen again.
        chosen[index] = min(int(np.searchsorted(running, uniform * running[-1], side="right")), len(points) - 1)
        gaps = np.minimum(gaps, _gaps(points, squares, points[chosen[index : index + 1]])[:, 0])
        chances = weights * gaps
    return chosen


def _means(points: Floats, weights: Floats, near: Ints, centres: Floats) -> Floats:
    """The weighted mean of each centre's points; a centre without points stays where it is."""
    inside = np.zeros((len(centres), len(points)))
    inside[near, np.arange(len(points))] = weights
    mass = inside.sum(axis=1, keepdims=True)
    return np.where(mass > 0.0, inside @ points / np.where(mass > 0.0, mass, 1.0), centres)


def _gaps(points: Floats, squares: Floats, centres: Floats) -> Floats:
    """Squared distances, at least 0."""
    lengths = np.einsum("ij,ij->i", centres, centres)
    gaps: Floats = np.maximum(squares[:, None] - 2.0 * (points @ centres.T) + lengths, 0.0)
    return gaps
