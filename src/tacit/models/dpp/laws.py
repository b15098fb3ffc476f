"""Determinantal point processes (DPPs): their laws by enumeration, checks of kernels, and the tools that all samplers share.

The kernels come in three families. Natural: sigma I + sum_u c_u c_u^T. Feature map: the same with c_u = F z_u.
Tempered: diag(e^{theta s/2}) F F^T diag(e^{theta s/2}).

The laws enumerate every subset and its determinant. Use them for few items, and to test samplers. The checks are for
public matrices and matrices that a caller gives. A kernel that is built from clipped records cannot fail them, and
must not be put through them: an error that depends on a record would tell something about it.

Samplers choose eigenvectors by elementary symmetric polynomials, in logarithms, which neither overflow nor underflow;
a value of 0 is -inf. e_r(x_1..x_i) = e_r(x_1..x_(i-1)) + x_i e_(r-1)(x_1..x_(i-1)), so row r of the table is a
running sum of x_i times row r-1.
"""

from fractions import Fraction
from itertools import combinations
from math import log
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats, Ints

ASYMMETRY = 1e-8  # allowed, relative to the largest entry of a kernel
INDEFINITE = 1e-10  # how far an eigenvalue may lie below 0, relative to the largest
NONE = -1  # fills up the shorter rows of a table of indices


def k_dpp_law(kernel: Floats, k: int, log_weights: Floats | None = None, *, exact: bool = False) -> Floats:
    """P(Y) = prod_Y w det L_Y / sum of the same, over subsets of k items in the order of `subsets`.

    ``log_weights`` are log w, by default 0.
    """
    logs = log_determinants(kernel, k, exact=exact)
    if log_weights is not None:
        logs = logs + np.asarray(log_weights, dtype=np.float64)[_members(len(kernel), k)].sum(axis=1)
    return law_of_logs(logs)


@np.errstate(all="ignore")  # an underflow may be private: no numpy setting of the caller may turn it into an error
def law_of_logs(logs: Floats) -> Floats:
    """Probabilities proportional to the exponentials of ``logs``."""
    weights = np.exp(logs - logs.max())
    law: Floats = weights / weights.sum()
    return law


def log_determinants(kernel: Floats, k: int, *, exact: bool = False) -> Floats:
    """log det L_Y of every subset of k items, in the order of `subsets`; -inf if it is not above 0.

    ``exact`` computes with the kernel's floats as rational numbers. Graded kernels need this: if large weights
    multiply a determinant of 0, an error in its last digit is no longer small.
    """
    members = _members(len(kernel), k)
    parts = np.asarray(kernel, dtype=np.float64)[members[:, :, None], members[:, None, :]]
    if exact:
        return np.array([_exact_log_determinant(part) for part in parts])
    signs, logs = np.linalg.slogdet(parts)
    return np.where(signs > 0.0, logs, -np.inf)


def _exact_log_determinant(part: Floats) -> float:
    """The log of a determinant by elimination in fractions.

    Pivots come from the diagonal: the matrix is positive semidefinite.
    """
    rows = [[Fraction(float(cell)) for cell in row] for row in part]
    determinant = Fraction(1)
    for step, pivot in enumerate(rows):
        determinant *= pivot[step]
        if pivot[step] <= 0:
            return -np.inf
        for row in rows[step + 1 :]:
            factor = row[step] / pivot[step]
            row[step:] = [entry - factor * other for entry, other in zip(row[step:], pivot[step:], strict=True)]
    return log(determinant.numerator) - log(determinant.denominator)


def subsets(n: int, k: int) -> list[tuple[int, ...]]:
    """All subsets of k of the items 0 .. n-1, in lexicographic order."""
    return list(combinations(range(n), k))


def _members(n: int, k: int) -> Ints:
    """`subsets` as a table, one subset in a row."""
    listed = subsets(n, k)
    return np.array(listed, dtype=np.int64).reshape(len(listed), k)


def checked_kernel(matrix: ArrayLike) -> Floats:
    """``matrix`` as exactly symmetric floats.

    It must be square, finite, symmetric to 1e-8 and positive semidefinite to 1e-10.
    """
    kernel = _table("a kernel", matrix)
    if kernel.shape[0] != kernel.shape[1]:
        raise InvalidParameter(
            f"a kernel must be square, with one row and one column for each item, not {kernel.shape[0]} x {kernel.shape[1]}."
        )
    largest = float(np.abs(kernel).max())
    if float(np.abs(kernel - kernel.T).max()) > ASYMMETRY * largest:
        raise InvalidParameter(
            f"a kernel must be symmetric to {ASYMMETRY:g} of its largest entry. To drop the asymmetry, give (L + L.T) / 2."
        )
    # Halve first: the sum of two entries near the largest float would overflow.
    kernel = kernel / 2.0 + kernel.T / 2.0
    values = np.linalg.eigvalsh(kernel / largest) if largest > 0.0 else np.zeros(1)
    if values[0] < -INDEFINITE * np.abs(values).max():
        raise InvalidParameter(
            "a kernel must be positive semidefinite, and this one has an eigenvalue below 0. "
            "Build it as B @ B.T with one row of features for each item, or add to its diagonal."
        )
    return kernel


def checked_features(features: ArrayLike) -> Floats:
    """Public features, items x d, as floats. They must be a finite table with at least one row and one column."""
    return _table("features", features)


def checked_size(k: int, items: int) -> int:
    """The size of a slate, from 1 to the number of items. With k = items there is only one slate."""
    return whole("k", k, least=1, most=whole("the number of items", items, least=1))


def rank_of(features: ArrayLike) -> int:
    """The number of directions in which items differ: singular values above max(n, d) 2^-52 of the largest."""
    table = checked_features(features)
    # After QR, on the smaller side: an SVD of all items at once would hold a second table of them in memory.
    small = table if len(table) <= table.shape[1] else np.linalg.qr(table, mode="r")
    values = np.linalg.svd(small, compute_uv=False)
    return int(np.count_nonzero(values > max(table.shape) * np.finfo(np.float64).eps * values[0]))


def require_rank(features: ArrayLike, k: int) -> int:
    """The rank of public features. Raises InvalidParameter if slates of ``k`` items all have a determinant of 0."""
    rank = rank_of(features)
    if k > rank:
        raise InvalidParameter(
            f"a slate of {k} items needs features of rank {k} or more, and these have rank {rank}: every slate of that size has "
            "probability 0. Ask for fewer items, or add features."
        )
    return rank


def weighted_rows(features: Floats, log_weights: Floats) -> tuple[Floats, float]:
    """B and c such that e^c B B^T is the kernel of weighted features F: B = F e^{(w - c)/2} with c = max w, for log
    weights w.

    The best item keeps its features, so no weight overflows. To the log of a determinant of k items, add c times k.
    """
    top = float(np.max(log_weights))
    return features * np.exp((log_weights - top) / 2.0)[:, None], top


def _table(name: str, values: Any) -> Floats:
    try:
        table = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a table of numbers.") from None
    if table.ndim != 2 or not table.size:
        raise InvalidParameter(
            f"{name} must be a table with at least one row and one column, not of shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise InvalidParameter(f"{name} must hold finite numbers only, without infinity or NaN.")
    return table


class Coins(Protocol):
    """The randomness of a sampler: mechanisms bring the operating system's, experiments and servers a generator."""

    def uniforms(self, count: int) -> Floats:
        """``count`` independent uniform numbers, strictly between 0 and 1."""
        ...


class RngCoins:
    """Coins of a numpy generator: for experiments, and for servers that draw from released values."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def uniforms(self, count: int) -> Floats:
        """``count`` independent uniform numbers, strictly between 0 and 1."""
        return from_words(self._rng.integers(0, 1 << 64, size=count, dtype=np.uint64))


def from_words(words: NDArray[np.uint64]) -> Floats:
    """Uniform numbers from uniform 64-bit words: the midpoints of 2^52 cells, each exact in float64.

    With one bit more the last midpoint, 1 - 2^-54, would round to 1.
    """
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def log_table(log_values: Floats, k: int) -> Floats:
    """(k + 1) x (n + 1): entry (r, i) is log e_r of the first i values. O(n k)."""
    values = np.asarray(log_values, dtype=np.float64)
    table = np.full((k + 1, values.size + 1), -np.inf)
    table[0] = 0.0
    for r in range(1, k + 1):
        table[r, 1:] = np.logaddexp.accumulate(values + table[r - 1, :-1])
    return table


def choose(table: Floats, sizes: Ints, coins: Coins) -> Ints:
    """For each size j, a set C of j of the values with probability prod_C x / e_j; shorter rows end in `NONE`.

    If r values are still to be chosen from the first m, the last of them is among the first i with probability
    e_r(x_1..x_i) / e_r(x_1..x_m). So one binary search in row r of the table replaces a coin for every value. All
    rows that need r more values share the search.
    """
    most = int(sizes.max(initial=0))
    chosen = np.full((sizes.size, most), NONE, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")  # the rows that need r more values come first
    unfinished = sizes.size - np.cumsum(np.bincount(sizes, minlength=most + 1))
    left = np.full(sizes.size, table.shape[1] - 1, dtype=np.int64)  # m, for each row
    logs = np.log(coins.uniforms(sizes.size * most)).reshape(most, sizes.size)
    for r in range(most, 0, -1):
        rows = slice(0, unfinished[r - 1])
        aims = logs[r - 1, rows] + table[r, left[rows]]
        left[rows] = np.searchsorted(table[r], aims, side="left") - 1  # never a value of 0, where the row does not rise
        chosen[rows, r - 1] = left[rows]
    result = np.empty_like(chosen)
    result[order] = chosen
    return result
