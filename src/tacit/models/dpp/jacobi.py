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
    rounds as in a tournament. Columns shorter than 1e-150 of the largest entry may count as 0.
    """
    rows, columns = matrix.shape
    top = float(np.abs(matrix).max(initial=0.0)) or 1.0
    # Row c holds column c and then row c of J^T: one rotation turns both.
    turned = np.concatenate([matrix.T / top, np.eye(columns)], axis=1)
    tolerance, rounds = max(rows, 8) * _EPS, _rounds(columns)
    for _ in range(_SWEEPS):
        if max(_turn(turned, rows, pairs, tolerance) for pairs in rounds) <= tolerance:
            break
    lengths = np.linalg.norm(turned[:, :rows], axis=1)
    order = np.argsort(-lengths, kind="stable")
    return turned[order, rows:].T, top * lengths[order]


def _turn(turned: Floats, rows: int, pairs: NDArray[np.int64], tolerance: float) -> float:
    """Makes each pair of columns orthogonal; gives the largest cosine met."""
    both = turned[pairs]  # first or second x pairs x entries
    heads = both[:, :, :rows]
    squares = np.einsum("spi,spi->sp", heads, heads)
    product = np.einsum("pi,pi->p", heads[0], heads[1])
    a, b = np.sqrt(squares)
    # A column of zeros is orthogonal to all.
    cosine = np.divide(product, a * b, out=np.zeros_like(product), where=(a > 0.0) & (b > 0.0))
    wanted = np.abs(cosine) > tolerance
    if wanted.any():
        if not wanted.all():
            pairs, both, a, b = pairs[:, wanted], both[:, wanted], a[wanted], b[wanted]
        # tan of the angle: the smaller root of t^2 + 2 zeta t = 1, zeta = (b^2 - a^2) / 2ab cosine.
        with np.errstate(over="ignore"):  # an infinite zeta is a rotation by nothing
            zeta = (b / a - a / b) / (2.0 * cosine[wanted])
        tangent = np.copysign(1.0, zeta) / (np.abs(zeta) + np.hypot(1.0, zeta))
        cos = 1.0 / np.hypot(1.0, tangent)
        cos, sin = cos[:, None], (cos * tangent)[:, None]
        turned[pairs[0]] = both[0] * cos - both[1] * sin
        turned[pairs[1]] = both[0] * sin + both[1] * cos
    return float(np.abs(cosine).max(initial=0.0))


def _rounds(columns: int) -> list[NDArray[np.int64]]:
    """Every pair once, in rounds of disjoint pairs (2 x pairs): all but the first move up by one place after each round."""
    places = list(range(columns)) + [-1] * (columns % 2)  # -1: the column that rests
    half, rounds = len(places) // 2, []
    for _ in range(len(places) - 1):
        pairs = [(min(p), max(p)) for p in zip(places[:half], reversed(places[half:]), strict=True) if min(p) >= 0]
        rounds.append(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
        places = [places[0], places[-1], *places[1:-1]]
    return rounds
