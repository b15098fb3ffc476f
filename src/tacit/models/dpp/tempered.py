"""Slates of a tempered kernel: P(Y) proportional to e^{sum of w over Y} det (F F^T)_Y, for public features F and log weights w.

With w = theta s and many votes the rows e^{w/2} F differ by many orders of magnitude, and popular items may be linearly
dependent: everything then hangs on directions that are tiny beside the largest, and the eigenvalues of the Gram matrix lose them.
Here rows are sorted by size, QR with column pivoting keeps the error of each row small beside that row, and one-sided Jacobi does
the same for the columns of R^T. That reaches as far as float64 does: rounding gives dependent popular items a false direction of
relative size 2^-53 e^{nats/2}, and the law errs by about its square. At 40 nats that is 1e-15 to 1e-10; near 73 the law is lost.
A limit must hold for every data set, so it is put on theta (high - low), which is public, before any record is seen.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from tacit.checks import whole
from tacit.errors import InvalidParameter
from tacit.models.dpp.coins import Coins
from tacit.models.dpp.elementary import choose, log_table
from tacit.models.dpp.jacobi import one_sided_jacobi
from tacit.models.dpp.kernels import Floats, checked_features, checked_kernel, checked_size, require_rank, weighted_rows
from tacit.models.dpp.split import Projections

MOST_NATS = 40.0  # theta (high - low)
_UNIT = 2.0**-53
_ERROR = 1e-9  # of the law, at most, by what a kernel has lost of the features it was made of


def features_of(kernel: ArrayLike) -> tuple[Floats, float]:
    """F with F F^T = the kernel given, and up to how many nats F may be tempered. Give features themselves if there are any.

    A kernel in floats is off by 2^-53 of its largest eigenvalue, F therefore by 2^-53 times the condition number of the kernel on
    its range (for features it is the square root of that), and so is the false direction of items that depend on each other. With
    e^nats times the square of it below 1e-9 a condition of 10^3 allows 39 nats, 10^6 allows 25. A kernel of full rank has no
    dependent items: up to a condition of 9 10^6 all 40 are allowed.
    """
    values, vectors = np.linalg.eigh(checked_kernel(kernel))
    real = values > len(values) * 2.0 * _UNIT * values[-1]
    if not real.any():
        raise InvalidParameter("a kernel without an eigenvalue above 0 gives every slate probability 0.")
    lost = _UNIT * float(values[-1] / values[real][0])
    nats = MOST_NATS if real.all() and lost <= _ERROR else min(MOST_NATS, float(np.log(_ERROR) - 2.0 * np.log(lost)))
    if not nats > 0.0:
        raise InvalidParameter(
            "the kernel has eigenvalues above 0 that are too small beside the largest to be told from rounding: give the features "
            "it was made of, or drop these directions."
        )
    return vectors[:, real] * np.sqrt(values[real]), nats


class TemperedSampler:
    """Draws slates of exactly ``k`` items. Everything but what is drawn is private where the weights are.

    Set-up O(n d^2). A slate takes O(n k^2) by passes over the catalogue (``scan``; if not given, below 5,000 items), else a time
    that does not grow with n. ``rank`` is that of the features, if the caller knows it already: public, and at least k.
    """

    def __init__(
        self,
        features: ArrayLike,
        log_weights: ArrayLike,
        k: int,
        *,
        rank: int | None = None,
        scan: bool | None = None,
    ) -> None:
        table = checked_features(features)
        weights = np.asarray(log_weights, dtype=np.float64)
        if weights.shape != table.shape[:1] or not np.isfinite(weights).all():
            raise InvalidParameter(f"log_weights must be {len(table)} finite numbers, one for each item.")
        self.k = checked_size(k, len(table))
        rank = require_rank(table, self.k) if rank is None else whole("rank", rank, least=self.k, most=min(table.shape))
        if rank < table.shape[1]:
            table = along_axes(table, rank)
        rows, top = weighted_rows(table, weights)
        self._vectors, values = left_singular(rows, rank)
        with np.errstate(divide="ignore"):
            self._log_values = 2.0 * np.log(values)  # eigenvalues, short of the common factor e^top
        self._table = log_table(self._log_values, self.k)
        self._projections = Projections(self._vectors, scan)
        self.log_normaliser = float(self._table[-1, -1]) + self.k * top

    def __repr__(self) -> str:
        return f"TemperedSampler({self._vectors.shape[1]:,} items, k = {self.k})"

    def draw(self, coins: Coins) -> NDArray[np.int64]:
        """One slate, items ascending."""
        slate: NDArray[np.int64] = self.draw_many(1, coins)[0]
        return slate

    def draw_many(self, count: int, coins: Coins) -> NDArray[np.int64]:
        """``count`` independent slates, one in each row."""
        sizes = np.full(whole("count", count, least=0), self.k, dtype=np.int64)
        return np.sort(self._projections.draw(choose(self._table, sizes, coins), coins), axis=1)

    @cached_property
    def marginals(self) -> Floats:
        """How likely each item is to stand in a slate; they sum to k."""
        found: Floats = self._direction_marginals() @ np.square(self._vectors)
        return found

    def _direction_marginals(self) -> Floats:
        """How likely each eigenvector is to be chosen: from the last one down, number i is the next of r still wanted with
        probability lambda_i e_{r-1}(the first i - 1) / e_r(the first i)."""
        wanted = np.zeros(self.k + 1)
        wanted[self.k] = 1.0
        found = np.zeros(len(self._log_values))
        for i in range(len(found), 0, -1):
            whole_sum = self._table[1:, i]
            above = np.where(
                whole_sum > -np.inf, whole_sum, np.inf
            )  # e_r of fewer than r values is 0, and never wanted
            taken = wanted[1:] * np.minimum(np.exp(self._log_values[i - 1] + self._table[:-1, i - 1] - above), 1.0)
            found[i - 1] = taken.sum()
            wanted[1:] -= taken
            wanted[:-1] += taken
        return found


def along_axes(features: Floats, rank: int) -> Floats:
    """Features along their ``rank`` largest singular directions, n x rank: what is left out is the same whatever the weights.

    Pivoted QR of the weighted rows would leave out what is smallest *there*: which directions count would then hang on votes. A
    row that loses more than half of its length is rounding, and becomes 0.
    """
    axes = np.linalg.svd(np.linalg.qr(features, mode="r"), full_matrices=False)[2]
    found: Floats = features @ axes[:rank].T
    size = np.abs(features).max(axis=1, keepdims=True)
    size[size == 0.0] = 1.0  # lengths are compared at a scale where squares do not vanish
    lost = np.linalg.norm(found / size, axis=1) < 0.5 * np.linalg.norm(features / size, axis=1)
    found[lost] = 0.0
    return found


def left_singular(rows: Floats, rank: int) -> tuple[Floats, Floats]:
    """The left singular vectors, one in a row, and singular values, descending, of a matrix of this rank with graded rows.

    Rows of R beyond the rank, if there are any, are left out.
    """
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    q, r, _ = qr(rows[order], mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
    rotation, values = one_sided_jacobi(r[:rank].T)
    vectors = np.empty((rank, len(rows)))
    vectors[:, order] = rotation.T @ q[:, :rank].T
    return vectors, values
