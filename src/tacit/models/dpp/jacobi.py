"""The singular values of a graded matrix by one-sided Jacobi rotations.

Rotations turn columns until all are orthogonal; their lengths are the singular values. A rotation mixes two columns only, and its
error is relative to each of them: small singular values of a matrix whose columns differ by many orders of magnitude come out with
as many right digits as large ones, where methods that reduce the whole matrix first lose all that lies 1e-16 below the largest.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SWEEPS = 60  # 6 to 12 are usual
_EPS = float(np.finfo(np.float64).eps)


def one_sided_jacobi(matrix: Floats) -> tuple[Floats, Floats]:
    """J and s, descending, such that the columns of matrix @ J are orthogonal with lengths s; J is orthogonal.

    Two columns count as orthogonal where their cosine is below max(m, 8) 2^-52. Pairs that share no column are turned together, in
    rounds as in a tournament.
    """
    turned = np.array(matrix, dtype=np.float64)
    rows, columns = turned.shape
    rotation = np.eye(columns)
    tolerance, rounds = max(rows, 8) * _EPS, _rounds(columns)
    for _ in range(_SWEEPS):
        worst = 0.0
        for one, other in rounds:
            worst = max(worst, _turn(turned, rotation, one, other, tolerance))
        if worst <= tolerance:
            break
    lengths = _lengths(turned)
    order = np.argsort(-lengths, kind="stable")
    return rotation[:, order], lengths[order]


def _turn(
    turned: Floats, rotation: Floats, one: NDArray[np.int64], other: NDArray[np.int64], tolerance: float
) -> float:
    """Makes each pair of columns orthogonal; gives the largest cosine met."""
    first, second = turned[:, one], turned[:, other]
    a, b = _lengths(first), _lengths(second)
    both = (a > 0.0) & (b > 0.0)  # a column of zeros is orthogonal to all
    a, b = np.where(both, a, 1.0), np.where(both, b, 1.0)
    cosine = np.where(both, np.einsum("ij,ij->j", first / a, second / b), 0.0)
    wanted = np.abs(cosine) > tolerance
    if wanted.any():
        one, other, a, b, cosine = one[wanted], other[wanted], a[wanted], b[wanted], cosine[wanted]
        # tan of the angle, the smaller root of t^2 + 2 zeta t = 1; lengths enter by their ratio, so that no square underflows.
        with np.errstate(over="ignore"):  # an infinite zeta is a rotation by nothing
            zeta = (b / a - a / b) / (2.0 * cosine)
        tangent = np.copysign(1.0, zeta) / (np.abs(zeta) + np.hypot(1.0, zeta))
        cos = 1.0 / np.hypot(1.0, tangent)
        sin = cos * tangent
        for table in (turned, rotation):
            left, right = table[:, one], table[:, other]
            table[:, one], table[:, other] = left * cos - right * sin, left * sin + right * cos
    return float(np.abs(cosine).max(initial=0.0))


def _lengths(columns: Floats) -> Floats:
    """Euclidean lengths, without underflow of squares."""
    top = np.abs(columns).max(axis=0, initial=0.0)
    scaled = columns / np.where(top > 0.0, top, 1.0)
    found: Floats = top * np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
    return found


def _rounds(columns: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Every pair once, in rounds of disjoint pairs: all but the first move up by one place after each round."""
    places = list(range(columns)) + [-1] * (columns % 2)  # -1: the column that rests
    half, rounds = len(places) // 2, []
    for _ in range(len(places) - 1):
        pairs = [(min(p), max(p)) for p in zip(places[:half], reversed(places[half:]), strict=True) if min(p) >= 0]
        rounds.append(
            (np.array([p[0] for p in pairs], dtype=np.int64), np.array([p[1] for p in pairs], dtype=np.int64))
        )
        places = [places[0], places[-1], *places[1:-1]]
    return rounds
