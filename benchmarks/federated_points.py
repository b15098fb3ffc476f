"""Points to be clustered and their loss: the same code here and in the peers' environment, which imports it by its place."""

import numpy as np


def blobs(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Points around k centres in the unit cube; drawn anew on either side, from the same seed."""
    rng = np.random.default_rng(seed)
    centres = rng.random((k, d))
    return np.clip(centres[rng.integers(k, size=n)] + 0.094 * rng.normal(size=(n, d)), 0.0, 1.0)


def loss(points: np.ndarray, centres: np.ndarray) -> float:
    """The mean squared distance of a point from the nearest centre."""
    products = (points**2).sum(axis=1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(axis=1)
    return float(products.min(axis=1).mean())
