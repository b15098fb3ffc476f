"""The laws of selection in closed form, for many decisions at once: rows are decisions, columns candidates.

Decisions of different size are padded; ``mask`` says which candidates are real (all of them, if it is None). A padded candidate has
probability 0. These are floats for planning and evaluation: what a device draws from is the exact law in the mechanisms.
"""

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TAIL = 34.0  # e^-34 < 2e-15: below the best score by so many scales there is nothing left to integrate
_NODES = 16  # on pieces no longer than one scale
_CELLS = 2_000_000  # numbers held at once by the Laplace law


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


def laplace_max(scores: Floats, rate: float | Floats, mask: Mask | None = None) -> Floats:
    """The largest after Laplace noise of scale 1/rate: the integral of f(x - s_i) times the product of F(x - s_j), j != i."""
    scores, real = _real(scores, mask)
    rows = np.reshape((scores - scores.max(axis=-1, keepdims=True)) * _column(rate), (-1, scores.shape[-1]))
    held = max(1, _CELLS // (rows.shape[1] * (rows.shape[1] + int(_TAIL) + 1) * _NODES))
    parts = [_laplace_rows(rows[start : start + held]) for start in range(0, len(rows), held)]
    return _padded(np.concatenate(parts).reshape(scores.shape), real)


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


def _laplace_rows(behind: Floats) -> Floats:
    """The Laplace law of rows of rate (s - max s), on two stretches of x.

    Above the best score all F are 1 - a_j t/2 with t = e^-x, the polynomial of permute-and-flip. Below it, down to the tail, every
    F and f is smooth between two neighbouring scores: quadrature on pieces between scores and whole numbers, none longer than 1.
    """
    above = 0.5 * _flip(np.exp(behind), 0.5)
    ends = -np.arange(int(_TAIL) + 1.0)
    cuts = np.sort(
        np.concatenate([np.maximum(behind, -_TAIL), np.broadcast_to(ends, (len(behind), ends.size))], axis=1)
    )
    nodes, weights = leggauss(_NODES)
    half = np.diff(cuts, axis=1)[..., None] / 2.0
    x = (cuts[:, :-1, None] + half + half * nodes).reshape(len(behind), -1)
    part = (half * weights).reshape(len(behind), -1)
    apart = x[:, :, None] - behind[:, None, :]
    density = 0.5 * np.exp(-np.abs(apart))
    # A padded candidate is infinitely far below: F = 1, f = 0.
    below = np.where(apart < 0.0, density, 1.0 - density)
    product = part * np.prod(below, axis=2)
    return np.asarray(above + np.einsum("nx,nxk->nk", product, density / below), dtype=np.float64)
