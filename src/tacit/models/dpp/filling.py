"""Slates filled up with items drawn uniformly, without replacement, from those not in them."""

import numpy as np
from numpy.typing import NDArray

from tacit.models.dpp.coins import Coins
from tacit.models.dpp.elementary import NONE

Items = NDArray[np.int64]

_CELLS = 2_000_000  # keys held at once


def fill(items: Items, n: int, k: int, coins: Coins) -> Items:
    """Rows of k of the items 0 .. n-1, ascending: those of each row of ``items`` (`NONE` is none) and uniform ones from the rest.

    Up to half of the catalogue by rejection, in time that does not grow with it: a stream of uniform items, of which new ones are
    kept. Beyond that a pass over the catalogue costs no more than the slate.
    """
    count = len(items)
    if 2 * k > n:
        return _by_keys(items, n, k, coins)
    stream = items
    while True:
        new = _first_seen(stream) & (stream != NONE)
        found = np.cumsum(new, axis=1)
        lacking = k - int(found[:, -1].min(initial=k)) if stream.shape[1] else k
        if lacking <= 0:
            break
        more = (coins.uniforms(count * (lacking + 2)) * n).astype(np.int64)
        stream = np.concatenate([stream, more.reshape(count, lacking + 2)], axis=1)
    return np.sort(stream[new & (found <= k)].reshape(count, k), axis=1)


def _first_seen(stream: Items) -> NDArray[np.bool_]:
    """Where an item stands for the first time in its row."""
    order = np.argsort(stream, axis=1, kind="stable")
    ranked = np.take_along_axis(stream, order, axis=1)
    first = np.ones(stream.shape, dtype=np.bool_)
    np.put_along_axis(first, order[:, 1:], ranked[:, 1:] != ranked[:, :-1], axis=1)
    return first


def _by_keys(items: Items, n: int, k: int, coins: Coins) -> Items:
    """A uniform key for each item, below all others for those already in; the k least."""
    slates = np.empty((len(items), k), dtype=np.int64)
    held = max(1, _CELLS // n)
    for start in range(0, len(items), held):
        part = items[start : start + held]
        keys = coins.uniforms(len(part) * n).reshape(len(part), n)
        rows, places = np.nonzero(part != NONE)
        keys[rows, part[rows, places]] = -1.0
        slates[start : start + held] = np.sort(np.argsort(keys, axis=1)[:, :k], axis=1)
    return slates
