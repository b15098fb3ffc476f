"""The law of the largest score after Laplace noise, by quadrature, and the plain rate of an epsilon: references for tests."""

import numpy as np
from numpy.polynomial.legendre import leggauss

from tacit.evaluation.private_selection.selection_laws import Floats, Mask, _column, _flip, _padded, _real

_TAIL = 34.0  # e^-34 < 2e-15: below the best score by so many scales there is nothing left to integrate
_NODES = 16  # on pieces no longer than one scale
_CELLS = 2_000_000  # numbers held at once


def laplace_max(scores: Floats, rate: float | Floats, mask: Mask | None = None) -> Floats:
    """The largest after Laplace noise of scale 1/rate: the integral of f(x - s_i) times the product of F(x - s_j), j != i."""
    scores, real = _real(scores, mask)
    rows = np.reshape((scores - scores.max(axis=-1, keepdims=True)) * _column(rate), (-1, scores.shape[-1]))
    held = max(1, _CELLS // (rows.shape[1] * (rows.shape[1] + int(_TAIL) + 1) * _NODES))
    parts = [_laplace_rows(rows[start : start + held]) for start in range(0, len(rows), held)]
    return _padded(np.concatenate(parts).reshape(scores.shape), real)


def plain_rate(epsilon: float, width: float | Floats = 1.0) -> float | Floats:
    """epsilon/(2 width): every score may move by the width, up or down, so numerator and normaliser both move."""
    return epsilon / (2.0 * width)


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
