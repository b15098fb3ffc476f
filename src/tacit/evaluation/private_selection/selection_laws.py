"""The laws of selection in closed form, for many decisions at once: rows are decisions, columns candidates.

Decisions of different size are padded; ``mask`` says which candidates are real (all of them, if it is None). A padded candidate has
probability 0. These are floats for planning and evaluation: what a device draws from is the exact law in the mechanisms.
"""

from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def response(scores: Floats, epsilon: float, d: int | NDArray[np.int64] = 1, mask: Mask | None = None) -> Floats:
    """Randomised response: the d best at e^epsilon to 1 of the others, e^epsilon/(d e^epsilon + k - d); infinite epsilon is greedy.

    Ties go to the lowest index; with d >= k all are alike. ``d`` may differ from row to row.
    """
    scores, real = _real(scores, mask)
    size = real.sum(axis=-1, keepdims=True)
    most = np.minimum(np.asarray(d, dtype=np.int64)[..., None], size)
    if np.all(most == 1):
        best = np.arange(scores.shape[-1]) == scores.argmax(axis=-1)[..., None]
    else:
        order = np.argsort(-scores, axis=-1, kind="stable")
        best = np.argsort(order, axis=-1, kind="stable") < most
    small = np.exp(-epsilon)  # so that no epsilon overflows
    return _padded(np.where(best, 1.0, small) / (most + (size - most) * small), real)


def softmax(scores: Floats, rate: float | Floats, mask: Mask | None = None) -> Floats:
    """The exponential mechanism, which is Gumbel noise of scale 1/rate: proportional to e^(rate s)."""
    scores, real = _real(scores, mask)
    weight = _weight(scores, rate)
    return _padded(weight / weight.sum(axis=-1, keepdims=True), real)


def permute_and_flip(scores: Floats, rate: float | Floats, mask: Mask | None = None) -> Floats:
    """Exponential noise of scale 1/rate: a_i times the integral over t in [0,1] of the product of (1 - a_j t), j != i.

    A polynomial of degree k - 1, for which Gauss-Legendre quadrature with k/2 + 1 nodes is exact.
    """
    scores, real = _real(scores, mask)
    return _padded(_flip(_weight(scores, rate)), real)


def envelope(scores: Floats, floors: Floats, epsilon: float, mask: Mask | None = None) -> Floats:
    """The best law between the floors q and e^epsilon q: from q, candidates are raised in falling order of score.

    It needs sum q <= 1 <= e^epsilon sum q in every row.
    """
    scores, real = _real(scores, mask)
    floors = np.broadcast_to(np.where(real, floors, 0.0), scores.shape)
    order = np.argsort(-scores, axis=-1, kind="stable")
    room = np.take_along_axis(floors, order, axis=-1) * np.expm1(min(epsilon, 700.0))
    before = np.cumsum(room, axis=-1) - room
    raised = np.clip(1.0 - floors.sum(axis=-1, keepdims=True) - before, 0.0, room)
    probability = np.empty_like(floors)
    np.put_along_axis(probability, order, raised, axis=-1)
    return probability + floors


def scaled(scores: Floats, mask: Mask | None = None) -> Floats:
    """(s - min)/(max - min) in every row, all ones if they are equal: within [0,1] whatever the scores, so of width 1."""
    top, real = _real(scores, mask)
    low = np.where(real, scores, np.inf).min(axis=-1, keepdims=True)
    span = top.max(axis=-1, keepdims=True) - low
    inside = np.where(real, scores - low, 0.0)
    return _padded(np.divide(inside, span, out=np.ones_like(inside), where=span > 0.0), real)


def clipped(scores: Floats, centres: Floats, width: float | Floats) -> Floats:
    """Within half a width of the public centre: a score then moves by at most ``width``, which is its sensitivity."""
    half = np.asarray(width, dtype=np.float64) / 2.0
    return np.asarray(np.clip(scores, centres - half, centres + half), dtype=np.float64)


def _real(scores: Floats, mask: Mask | None) -> tuple[Floats, Mask]:
    scores = np.asarray(scores, dtype=np.float64)
    real = np.ones(scores.shape, dtype=np.bool_) if mask is None else np.broadcast_to(mask, scores.shape)
    return np.where(real, scores, -np.inf), real


def _padded(probability: Floats, real: Mask) -> Floats:
    return np.asarray(np.where(real, probability, 0.0), dtype=np.float64)


def _column(rate: float | Floats) -> Floats:
    """One rate for all rows, or one for each."""
    rate = np.asarray(rate, dtype=np.float64)
    return rate[..., None] if rate.ndim else rate


def _weight(scores: Floats, rate: float | Floats) -> Floats:
    """a_j = e^(rate (s_j - max s)), 0 for a padded candidate."""
    behind = scores - scores.max(axis=-1, keepdims=True)
    return np.asarray(np.exp(np.where(np.isneginf(behind), -np.inf, behind * _column(rate))), dtype=np.float64)


def _flip(weight: Floats, share: float = 1.0) -> Floats:
    """a_i times the integral over t in [0,1] of the product of (1 - share a_j t), j != i."""
    nodes, weights = leggauss(weight.shape[-1] // 2 + 1)
    found = np.zeros_like(weight)
    for node, part in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        survives = 1.0 - weight * (share * node)  # above 0: node < 1
        found += part * weight * np.prod(survives, axis=-1, keepdims=True) / survives
    return found


# Rates: the inverse noise scale that an epsilon pays for. The plain rate is half of epsilon over the width and always safe.
# The exact one, over a public box of scores, is at most twice as large. A candidate's probability rises in its own score and
# falls in every other, so over a box the extremes are corners, and the loss at a rate is the largest over i of
# ln p_i(own high, others low) / p_i(own low, others high). Both are floats, for evaluation: mechanisms use certified bounds.


Law = Callable[[Floats, float | Floats, Mask | None], Floats]
_STEPS = 40  # of bisection: to 1e-12 of the rate


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
