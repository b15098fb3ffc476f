"""Kernels of determinantal point processes: the three families, and what a kernel that somebody gives must be.

Natural: sigma I + sum_u c_u c_u^T. Feature map: the same with c_u = F z_u. Tempered: diag(e^{theta s/2}) F F^T diag(e^{theta s/2}).
The checks here are for public or caller-given matrices. A kernel that is built from clipped records cannot fail them, and must not
be put through them: a refusal that depends on a record would tell something about it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import whole
from tacit.errors import InvalidParameter

Floats = NDArray[np.float64]

ASYMMETRY = 1e-8  # of a kernel, relative to its largest entry
INDEFINITE = 1e-10  # an eigenvalue may lie so far below 0, relative to the largest


def checked_kernel(matrix: ArrayLike) -> Floats:
    """``matrix`` as exactly symmetric floats, if it is square, finite, symmetric to 1e-8 and positive semidefinite to 1e-10."""
    kernel = _table("a kernel", matrix)
    if kernel.shape[0] != kernel.shape[1]:
        raise InvalidParameter(
            f"a kernel must be square, one row and one column for each item, not {kernel.shape[0]} x {kernel.shape[1]}."
        )
    largest = float(np.abs(kernel).max())
    if float(np.abs(kernel - kernel.T).max()) > ASYMMETRY * largest:
        raise InvalidParameter(
            f"a kernel must be symmetric to {ASYMMETRY:g} of its largest entry: give (L + L.T) / 2 if that is what is meant."
        )
    # Halves first: the sum of two entries near the largest float would overflow.
    kernel = kernel / 2.0 + kernel.T / 2.0
    values = np.linalg.eigvalsh(kernel / largest) if largest > 0.0 else np.zeros(1)
    if values[0] < -INDEFINITE * np.abs(values).max():
        raise InvalidParameter(
            "a kernel must be positive semidefinite, and this one has an eigenvalue below 0: "
            "build it as B @ B.T from one row of features for each item, or add to its diagonal."
        )
    return kernel


def checked_features(features: ArrayLike) -> Floats:
    """Public features, items x d, as floats, if they are a finite table with at least one row and one column."""
    return _table("features", features)


def checked_size(k: int, items: int) -> int:
    """The size of a slate, from 1 to the number of items; k = items is allowed, and then there is but one slate."""
    return whole("k", k, least=1, most=whole("the number of items", items, least=1))


def rank_of(features: ArrayLike) -> int:
    """The number of directions in which items differ: singular values above max(n, d) 2^-52 of the largest."""
    table = checked_features(features)
    # Of the smaller side after QR: an SVD of all items at once would hold a second table of them.
    small = table if len(table) <= table.shape[1] else np.linalg.qr(table, mode="r")
    values = np.linalg.svd(small, compute_uv=False)
    return int(np.count_nonzero(values > max(table.shape) * np.finfo(np.float64).eps * values[0]))


def require_rank(features: ArrayLike, k: int) -> int:
    """The rank of public features, if slates of ``k`` items have a positive determinant at all."""
    rank = rank_of(features)
    if k > rank:
        raise InvalidParameter(
            f"a slate of {k} items needs features of rank {k} or more, and these have rank {rank}: every such slate would have "
            "probability 0. Ask for fewer items, or add features."
        )
    return rank


def weighted_rows(features: Floats, log_weights: Floats) -> tuple[Floats, float]:
    """B and a number c such that e^c B B^T is the kernel of weighted features: F e^{(w - max w)/2}, and max w, for weights in logs.

    The best item keeps its features as they are: no weight overflows. A determinant of k items is short of c times k in logs.
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
        raise InvalidParameter(f"{name} must hold finite numbers only: an entry is infinite or not a number.")
    return table
