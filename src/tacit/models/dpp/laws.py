"""The laws by enumeration: every subset and its determinant. For few items, and the yardstick of every sampler."""

from fractions import Fraction
from itertools import combinations
from math import log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def subsets(n: int, k: int) -> list[tuple[int, ...]]:
    """All subsets of k of the items 0 .. n-1, in lexicographic order."""
    return list(combinations(range(n), k))


def all_subsets(n: int) -> list[tuple[int, ...]]:
    """All subsets of the items 0 .. n-1: the smaller first, then in lexicographic order."""
    return [one for k in range(n + 1) for one in combinations(range(n), k)]


def log_determinants(kernel: Floats, k: int, *, exact: bool = False) -> Floats:
    """log det L_Y of every subset of k items, in the order of `subsets`; -inf where it is not above 0.

    ``exact`` takes the kernel's floats as the rational numbers that they are. Graded kernels need it: where large weights multiply
    a determinant of 0, an error in its last digit is no longer small.
    """
    found = _members(len(kernel), k)
    parts = np.asarray(kernel, dtype=np.float64)[found[:, :, None], found[:, None, :]]
    if exact:
        return np.array([_exact(part) for part in parts])
    signs, logs = np.linalg.slogdet(parts)
    return np.where(signs > 0.0, logs, -np.inf)


def k_dpp_law(kernel: Floats, k: int, log_weights: Floats | None = None, *, exact: bool = False) -> Floats:
    """P(Y) = prod_Y w det L_Y / sum of the same, in the order of `subsets`; ``log_weights`` are log w, all 0 if not given."""
    logs = log_determinants(kernel, k, exact=exact)
    if log_weights is not None:
        logs = logs + np.asarray(log_weights, dtype=np.float64)[_members(len(kernel), k)].sum(axis=1)
    return law_of_logs(logs)


def dpp_law(kernel: Floats, *, exact: bool = False) -> Floats:
    """P(Y) = det L_Y / det(I + L) over subsets of every size, in the order of `all_subsets`."""
    return law_of_logs(np.concatenate([log_determinants(kernel, k, exact=exact) for k in range(len(kernel) + 1)]))


@np.errstate(all="ignore")  # whether a weight underflows may be private: no setting of a caller makes it an error
def law_of_logs(logs: Floats) -> Floats:
    """Probabilities proportional to the exponentials of ``logs``."""
    weights = np.exp(logs - logs.max())
    law: Floats = weights / weights.sum()
    return law


def _members(n: int, k: int) -> NDArray[np.int64]:
    found = subsets(n, k)
    return np.array(found, dtype=np.int64).reshape(len(found), k)


def _exact(part: Floats) -> float:
    """log of a determinant by elimination in fractions, with pivots from the diagonal: the matrix is positive semidefinite."""
    rows = [[Fraction(float(cell)) for cell in row] for row in part]
    determinant = Fraction(1)
    for step, pivot in enumerate(rows):
        determinant *= pivot[step]
        if pivot[step] <= 0:
            return -np.inf
        for row in rows[step + 1 :]:
            factor = row[step] / pivot[step]
            row[step:] = [one - factor * other for one, other in zip(row[step:], pivot[step:], strict=True)]
    return log(determinant.numerator) - log(determinant.denominator)
