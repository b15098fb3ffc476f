"""The projection process of orthonormal vectors by the chain rule: one item after the other, each by a pass over the catalogue.

Item i comes next with probability proportional to the squared distance of its entries from the span of those picked so far: the
volume is the product of these distances. The entries of an item live in j dimensions: a step is one product with the vectors.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.models.dpp.coins import Coins
from tacit.models.dpp.elementary import NONE

Floats = NDArray[np.float64]
Items = NDArray[np.int64]

_CELLS = 500_000  # entries of chosen vectors held at once


def projection_sample(basis: Floats, coins: Coins) -> Items:
    """j items, Y with probability det(V_Y)^2 for the n x j basis V of orthonormal columns; in ascending order. O(n j^2)."""
    return np.sort(projection_samples(basis.T, np.arange(basis.shape[1])[None, :], coins)[0])


def projection_samples(vectors: Floats, chosen: Items, coins: Coins) -> Items:
    """For each row of ``chosen``, some of the r x n ``vectors`` (`NONE` at the end), as many items, and `NONE` at the end."""
    items = np.full(chosen.shape, NONE, dtype=np.int64)
    sizes = (chosen != NONE).sum(axis=1)
    order = np.argsort(-sizes, kind="stable")  # those with many come first: at each step a front part goes on
    held = max(1, _CELLS // max(1, vectors.shape[1] * chosen.shape[1]))
    for start in range(0, len(chosen), held):
        slates = order[start : start + held]
        most = sizes[slates[0]]
        items[slates, :most] = _side_by_side(vectors, chosen[slates, :most], sizes[slates], coins)
    return items


def _side_by_side(vectors: Floats, chosen: Items, sizes: Items, coins: Coins) -> Items:
    count, most = chosen.shape
    rows = vectors[chosen]
    rows[chosen == NONE] = 0.0
    left = np.einsum("sji,sji->si", rows, rows)  # squared distances, slates x items
    spanned = np.zeros((count, most, most))
    items = np.full((count, most), NONE, dtype=np.int64)
    uniforms = coins.uniforms(count * most).reshape(most, count)
    for step in range(most):
        on = int(np.count_nonzero(sizes > step))
        slates = np.arange(on)
        item = weighted(left[:on], uniforms[step, :on])
        direction = _away_from(spanned[:on, :step], rows[slates, :, item])
        spanned[:on, step] = direction
        items[:on, step] = item
        left[:on] -= np.square((direction[:, None, :] @ rows[:on])[:, 0])
        np.maximum(left, 0.0, out=left)
        left[slates, item] = 0.0
    return items


def weighted(weights: Floats, uniforms: Floats) -> Items:
    """For each row of weights an index with probability proportional to its weight, never one of weight 0."""
    running = np.cumsum(weights, axis=1)
    aims = uniforms * running[:, -1]  # below the sum, also when rounded: uniform numbers are at most 1 - 2^-53
    if len(weights) == 1:
        return np.asarray(np.searchsorted(running[0], aims, side="right"), dtype=np.int64)
    return np.asarray(np.count_nonzero(running <= aims[:, None], axis=1), dtype=np.int64)


def _away_from(spanned: Floats, rows: Floats) -> Floats:
    """The part of each row at right angles to the orthonormal ``spanned``, of length 1. Twice, which is enough in floats."""
    for _ in range(2):
        if spanned.shape[1]:
            rows = rows - ((rows[:, None, :] @ spanned.transpose(0, 2, 1)) @ spanned)[:, 0]
        rows = rows / np.sqrt(np.einsum("sj,sj->s", rows, rows))[:, None]
    return rows
