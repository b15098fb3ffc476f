"""The best locally private rule there is under a public prior: a linear program for the floors of an envelope.

For any rule that is epsilon-private let q_i be the least probability that any private scores give item i. Then
q_i <= p_i <= e^epsilon q_i for all scores, so no rule is better than the envelope of its own floors; and the best floors for a
prior, here a matrix of equally likely score vectors, solve a linear program. It is an upper limit for every epsilon-private rule.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from tacit.checks import positive
from tacit.errors import InvalidParameter

Floats = NDArray[np.float64]


class Optimum(NamedTuple):
    """The floors, and the mean score they earn over the draws."""

    floors: Floats
    value: float


def best_envelope(draws: NDArray[Any], epsilon: float, weights: NDArray[Any] | None = None) -> Optimum:
    """The floors q that maximise the mean over ``draws`` (draws x candidates) of the score under ``envelope(q)``.

    ``weights`` are the probabilities of the draws, all alike if they are None.

    With z = (e^epsilon - 1) q and the raise y^r = p^r - q: maximise sum_r w_r (y^r + q) . s^r subject to 0 <= y^r_i <= z_i and
    sum_i y^r_i + sum_i z_i / (e^epsilon - 1) = 1 for every draw r. The value is worked out again from the floors that are
    returned, brought to within what an envelope may have; it is what these floors earn, not what the solver says they do.
    """
    scores = _checked(draws)
    rise = float(np.expm1(positive("epsilon", epsilon)))
    rows, k = scores.shape
    share = np.full(rows, 1.0 / rows) if weights is None else _shares(weights, rows)
    spread = float(np.ptp(scores)) or 1.0
    gains = (scores - scores.min()) / spread  # the solver's tolerances are absolute
    cost = -np.concatenate([share @ gains / rise, (share[:, None] * gains).ravel()])
    every, place = np.arange(rows * k), np.arange(rows * k) % k
    limits = sparse.csr_array(  # y^r_i - z_i <= 0
        (np.tile([-1.0, 1.0], rows * k), np.stack([place, k + every], axis=1).ravel(), 2 * np.arange(rows * k + 1)),
        shape=(rows * k, k + rows * k),
    )
    each = np.concatenate([np.tile(np.arange(k), (rows, 1)), k + every.reshape(rows, k)], axis=1)
    sums = sparse.csr_array(  # sum_i z_i / (e^epsilon - 1) + sum_i y^r_i = 1
        (np.tile(np.repeat([1.0 / rise, 1.0], k), rows), each.ravel(), 2 * k * np.arange(rows + 1)),
        shape=(rows, k + rows * k),
    )
    found = linprog(cost, A_ub=limits, b_ub=np.zeros(rows * k), A_eq=sums, b_eq=np.ones(rows), method="highs")
    if found.status != 0:
        raise InvalidParameter(f"the linear program of the envelope has no solution at epsilon {epsilon:g}.")
    floors = _allowed(np.maximum(found.x[:k], 0.0) / rise, rise)
    return Optimum(floors, float(share @ envelope_scores(scores, floors, epsilon)))


def envelope_scores(scores: NDArray[Any], floors: NDArray[Any], epsilon: float) -> Floats:
    """What `envelope(floors)` earns in expectation for each row of scores: q . s, and the rest of the mass from the best down."""
    table, q = _checked(scores), np.asarray(floors, dtype=np.float64)
    order = np.argsort(-table, axis=1, kind="stable")
    room = np.expm1(positive("epsilon", epsilon)) * q[order]
    before = np.cumsum(room, axis=1) - room
    given = np.clip(1.0 - q.sum() - before, 0.0, room)
    earned: Floats = table @ q + (given * np.take_along_axis(table, order, axis=1)).sum(axis=1)
    return earned


def _allowed(floors: Floats, rise: float) -> Floats:
    """Floors whose sum lies between e^-epsilon and 1: a solver may miss it by its tolerance."""
    total = floors.sum()
    scaled: Floats = floors * (np.clip(total, np.nextafter(1.0 / (1.0 + rise), 1.0), 1.0) / total)
    return scaled


def _shares(weights: NDArray[Any], rows: int) -> Floats:
    share = np.asarray(weights, dtype=np.float64)
    if share.shape != (rows,) or not (share >= 0.0).all() or not 0.0 < share.sum() < np.inf:
        raise InvalidParameter("weights must be one number of at least 0 for each draw, and not all 0.")
    return np.asarray(share / share.sum(), dtype=np.float64)


def _checked(draws: NDArray[Any]) -> Floats:
    table = np.asarray(draws, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise InvalidParameter(
            "draws must be a table of finite scores, one row for each draw and one column for each item."
        )
    return table
