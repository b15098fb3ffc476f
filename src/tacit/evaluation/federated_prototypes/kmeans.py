"""Exact prototypes, for comparison only: they promise nothing. k-means with a k-means++ start, and users as they are."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
STEPS = 30


def clusters(rows: sparse.csr_array, k: int, *, rng: np.random.Generator, steps: int = STEPS) -> NDArray[np.int64]:
    """Which of ``k`` clusters each row belongs to; zeros count as zeros. At most so many Lloyd steps."""
    users = rows.shape[0]
    norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    centres = _start(rows, norms, min(k, users), rng)
    of = np.full(users, -1)
    for _ in range(steps):
        near = (centres**2).sum(axis=1)[None, :] - 2.0 * (rows @ centres.T)
        now = near.argmin(axis=1)
        if np.array_equal(now, of):
            break
        of = now
        centres = means(rows, of, len(centres), keep=centres)
    return of


def means(rows: sparse.csr_array, of: NDArray[np.int64], k: int, *, keep: Floats | None = None) -> Floats:
    """The centre of each cluster, zeros counted; an empty one is ``keep``'s, or zeros."""
    sums, sizes = _sums(rows, of, k), np.bincount(of, minlength=k)
    found = sums / np.maximum(sizes, 1)[:, None]
    if keep is not None:
        found[sizes == 0] = keep[sizes == 0]
    return found


def raters_means(rows: sparse.csr_array, of: NDArray[np.int64], k: int) -> Floats:
    """The mean over those members who have the cell; NaN where none has."""
    raters = _sums(sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape), of, k)
    with np.errstate(invalid="ignore"):
        return np.asarray(_sums(rows, of, k) / np.where(raters > 0.0, raters, np.nan))


def _sums(rows: sparse.csr_array, of: NDArray[np.int64], k: int) -> Floats:
    users = rows.shape[0]
    member = sparse.csr_array((np.ones(users), (of, np.arange(users))), shape=(k, users))
    return np.asarray((member @ rows).toarray(), dtype=np.float64)


def _start(rows: sparse.csr_array, norms: Floats, k: int, rng: np.random.Generator) -> Floats:
    """k-means++: each further centre is a user drawn by her squared distance to those chosen."""
    chosen = [int(rng.integers(rows.shape[0]))]
    nearest = np.full(rows.shape[0], np.inf)
    for _ in range(k - 1):
        last = rows[[chosen[-1]]].toarray().ravel()
        nearest = np.minimum(nearest, np.maximum(norms + norms[chosen[-1]] - 2.0 * (rows @ last), 0.0))
        total = float(nearest.sum())
        chosen.append(
            int(rng.choice(rows.shape[0], p=nearest / total)) if total > 0.0 else int(rng.integers(rows.shape[0]))
        )
    return np.asarray(rows[chosen].toarray(), dtype=np.float64)
