"""The inverse noise scale that an epsilon pays for: the plain half over the width, and the exact one over a public box of scores.

A candidate's probability rises in its own score and falls in every other: over a box the extremes are corners, and the loss at
a rate is the largest over i of ln p_i(own high, others low) / p_i(own low, others high). The plain rate is always safe; the exact
one is at most twice as large. In floats, for planning and evaluation: the mechanisms compute theirs with certified bounds.
"""

from collections.abc import Callable

import numpy as np

from tacit.models.selection_laws import Floats, Mask, permute_and_flip, softmax

Law = Callable[[Floats, float | Floats, Mask | None], Floats]
_STEPS = 40  # of bisection: to 1e-12 of the rate


def plain_rate(epsilon: float, width: float | Floats = 1.0) -> float | Floats:
    """epsilon/(2 width): every score may move by the width, up or down, so numerator and normaliser both move."""
    return epsilon / (2.0 * width)


def scaled_softmax_loss(rate: Floats, k: Floats) -> Floats:
    """The loss over scores in [0,1]^k: rate + ln((1 + (k-1) e^rate) / (e^rate + k-1))."""
    small = np.exp(-rate)
    return np.asarray(rate + np.log((small + k - 1.0) / (1.0 + (k - 1.0) * small)), dtype=np.float64)


def scaled_flip_loss(rate: Floats, k: Floats) -> Floats:
    """The loss over scores in [0,1]^k: 2 rate + ln(1 - (1 - e^-rate)^k)."""
    with np.errstate(divide="ignore"):  # one candidate at an infinite rate
        return np.asarray(2.0 * rate + np.log(-np.expm1(k * np.log(-np.expm1(-rate)))), dtype=np.float64)


def calibrated_rate(epsilon: float, k: Floats, loss: Callable[[Floats, Floats], Floats]) -> Floats:
    """For scaled scores of k candidates (one number for each decision): the largest rate whose loss is at most epsilon."""
    sizes, place = np.unique(np.maximum(np.asarray(k, dtype=np.float64), 2.0), return_inverse=True)
    return _largest(epsilon, np.ones_like(sizes), lambda rate: loss(rate, sizes))[place]


def calibrated_box_rate(
    epsilon: float, centres: Floats, width: float | Floats, law: Law, mask: Mask | None = None
) -> Floats:
    """For scores clipped to boxes of one width around public centres: the largest rate of each decision."""
    wide = np.broadcast_to(np.asarray(width, dtype=np.float64), centres.shape[:-1])
    if law is softmax:
        return _largest(epsilon, wide, lambda rate: softmax_box_loss(rate, centres, wide, mask))
    return _largest(epsilon, wide, lambda rate: box_loss(rate, centres, wide, law, mask))


def box_loss(
    rate: float | Floats, centres: Floats, width: float | Floats, law: Law, mask: Mask | None = None
) -> Floats:
    """The privacy loss of a law at a rate over all scores in the boxes, for each decision: over the 2k corners."""
    real = np.ones(centres.shape, dtype=np.bool_) if mask is None else mask
    half = np.asarray(width, dtype=np.float64)[..., None] / 2.0
    worst = np.zeros(centres.shape[:-1])
    for item in range(centres.shape[-1]):
        own = np.arange(centres.shape[-1]) == item
        high = law(centres + np.where(own, half, -half), rate, real)[..., item]
        low = law(centres + np.where(own, -half, half), rate, real)[..., item]
        there = real[..., item] & (low > 0.0)
        worst = np.maximum(worst, np.log(np.where(there, high, 1.0) / np.where(there, low, 1.0)))
    return np.asarray(worst, dtype=np.float64)


def softmax_box_loss(rate: float | Floats, centres: Floats, width: float | Floats, mask: Mask | None = None) -> Floats:
    """The same for the exponential mechanism in one step: u (e_i + u (S - e_i)) / (u e_i + S - e_i) at its largest.

    Here e_i = e^(rate c_i), S is their sum, and u = e^(rate width).
    """
    real = np.ones(centres.shape, dtype=np.bool_) if mask is None else mask
    rates = np.broadcast_to(np.asarray(rate, dtype=np.float64), centres.shape[:-1])[..., None]
    inside = np.where(real, centres, -np.inf)
    own = np.where(real, np.exp(rates * (inside - inside.max(axis=-1, keepdims=True))), 0.0)
    others = np.maximum(own.sum(axis=-1, keepdims=True) - own, 0.0)
    up = np.exp(rates * np.asarray(width, dtype=np.float64)[..., None])
    whole = own + others > 0.0  # an item of weight 0 beside none else is not there
    ratio = np.where(whole, up * (own + up * others) / np.where(whole, up * own + others, 1.0), 1.0)
    return np.asarray(np.log(np.where(real, ratio, 1.0)).max(axis=-1), dtype=np.float64)


def _largest(epsilon: float, width: Floats, loss: Callable[[Floats], Floats]) -> Floats:
    """By bisection between epsilon/(2 width), which is safe, and epsilon/width; the safe end is returned."""
    safe, most = epsilon / (2.0 * width), epsilon / width
    for _ in range(_STEPS):
        middle = (safe + most) / 2.0
        fits = loss(middle) <= epsilon
        safe, most = np.where(fits, middle, safe), np.where(fits, most, middle)
    return np.asarray(safe, dtype=np.float64)


LAWS: dict[str, Law] = {"gumbel": softmax, "pf": permute_and_flip}
