"""k-means of a few thousand weighted points: k-means++ starts, then Lloyd's steps. Plain arithmetic on public points."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def weighted_k_means(
    points: Floats, weights: Floats, k: int, *, seed: int, starts: int = 20, steps: int = 10
) -> tuple[Floats, Whole]:
    """``k`` centres and the centre of each point: the best of ``starts`` runs. With at most k points, the points themselves.

    The weights are above 0. The seed is public, and the same points always have the same centres.
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


def _spread(points: Floats, squares: Floats, weights: Floats, k: int, rng: np.random.Generator) -> Whole:
    """k-means++: each next centre with a chance in proportion to its weight times its squared distance from those so far."""
    chosen, chances, gaps = np.empty(k, dtype=np.int64), weights, np.full(len(points), np.inf)
    for place, uniform in enumerate(rng.random(k)):
        running = np.cumsum(chances)
        # where all points are chosen already, running[-1] is 0 and the last one is chosen again
        chosen[place] = min(int(np.searchsorted(running, uniform * running[-1], side="right")), len(points) - 1)
        gaps = np.minimum(gaps, _gaps(points, squares, points[chosen[place : place + 1]])[:, 0])
        chances = weights * gaps
    return chosen


def _means(points: Floats, weights: Floats, near: Whole, centres: Floats) -> Floats:
    """The weighted mean of each centre's points; a centre without any stays where it is."""
    inside = np.zeros((len(centres), len(points)))
    inside[near, np.arange(len(points))] = weights
    mass = inside.sum(axis=1, keepdims=True)
    return np.where(mass > 0.0, inside @ points / np.where(mass > 0.0, mass, 1.0), centres)


def _gaps(points: Floats, squares: Floats, centres: Floats) -> Floats:
    """Squared distances, not below 0."""
    lengths = np.einsum("ij,ij->i", centres, centres)
    gaps: Floats = np.maximum(squares[:, None] - 2.0 * (points @ centres.T) + lengths, 0.0)
    return gaps
