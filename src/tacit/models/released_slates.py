"""Slates from what was released once: noisy counts with public features, or a noisy kernel. Any number of them, free."""

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite
from tacit.errors import InvalidParameter
from tacit.models.dpp.coins import Coins
from tacit.models.dpp.dense import DenseSampler
from tacit.models.dpp.greedy import greedy_map
from tacit.models.dpp.kernels import rank_of
from tacit.models.dpp.tempered import MOST_NATS, TemperedSampler

ALPHA = 3.0  # the weight of quality against difference: an item of the best quality weighs e^3
_LEAST = 1e-3  # of the largest eigenvalue: what is added to a noisy kernel, so that every slate is possible

Floats = NDArray[np.float64]


def quality(counts: Floats) -> Floats:
    """Noisy counts as numbers from 0 to 1, the best item 1; where nothing is above 0 all are 0."""
    above = np.maximum(counts, 0.0)
    top = float(above.max())
    return above / top if top > 0.0 else above


@np.errstate(all="ignore")  # what is tiny beside the best is 0, whatever a caller has set
def from_counts(
    counts: Floats, features: Floats | None, k: int, *, alpha: float = ALPHA, coins: Coins | None = None
) -> NDArray[np.int64]:
    """``k`` items of great quality and different features, in the order they were chosen; with ``coins`` drawn, in order of place.

    The kernel is diag(e^(alpha q/2)) F F^T diag(e^(alpha q/2)). Without features quality alone decides.
    """
    if not 0.0 <= finite("alpha", alpha) <= MOST_NATS:
        raise InvalidParameter(f"alpha must lie from 0 to {MOST_NATS:g}, not {alpha!r}.")
    weights = alpha * quality(counts)
    table = np.ones((len(counts), 1)) if features is None else features
    if coins is None:
        return greedy_map((table, 0.0), k, log_weights=weights, fill=True)
    if features is None or k > rank_of(table):
        raise InvalidParameter(
            f"{k} items are drawn with features of rank {k} or more: give such features, or choose greedily."
        )
    return TemperedSampler(table, weights, k).draw(coins)


@np.errstate(all="ignore")
def from_kernel(kernel: Floats, k: int, *, coins: Coins | None = None) -> NDArray[np.int64]:
    """``k`` items of a noisy kernel, whose negative eigenvalues are noise and taken for 0; greedily, or drawn with ``coins``."""
    values, vectors = np.linalg.eigh(kernel)
    values = np.maximum(values, 0.0)
    top = float(values[-1])
    mended = (vectors * values) @ vectors.T + (_LEAST * top if top > 0.0 else 1.0) * np.eye(len(kernel))
    mended = (mended + mended.T) / 2.0
    return greedy_map(mended, k, fill=True) if coins is None else DenseSampler(mended, k).draw(coins)
