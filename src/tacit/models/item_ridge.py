"""Item-item ridge regression (EASE): every item explained by the others, from users' own rows and from shared pseudo-rows.

With unit rows Y and a ridge l: P = (Y^T Y + l I)^-1, and the scores of a row x are x - (x P) / diag P. Everything is in terms of
l P = I - Y^T K^-1 Y / l, K = I + Y Y^T / l, which needs no items x items matrix while there are fewer users than items: K^-1 Y is a
dense matrix times a sparse one, and x l P = |x| (K^-1 Y)_u for a user's own row x = |x| y_u.

Pseudo-rows E with a weight a are added afterwards, without a new factorisation of the users' part (Woodbury):
with W = E l P and M = W E^T = Q diag(u) Q^T, both found once, l P_a = l P - B^T B, B = sqrt(a / (l + a u)) Q^T W, row by row.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from tacit.checks import finite, positive
from tacit.errors import InvalidParameter

Floats = NDArray[np.float64]

_SMALL, _COLUMNS = 128, 8  # rows of a matrix that is inverted so many columns at a time


@dataclass(frozen=True, eq=False, repr=False)
class ItemRidge:
    """The regression on users' rows alone. ``solved`` is K^-1 Y (users x items), or l P itself where that is smaller."""

    unit: sparse.csr_array  # Y
    norms: Floats  # |x| of every user
    ridge: float
    solved: Floats
    dual: bool
    diagonal: Floats  # of l P
    squares: Floats  # of the inverse of l P, its diagonal: 1 + G_jj / l

    def __repr__(self) -> str:
        return f"ItemRidge({self.unit.shape[1]} items)"  # how many users there are is private

    @property
    def items(self) -> int:
        """How many items the model knows."""
        return int(self.unit.shape[1])

    def applied(self, rows: Any) -> Floats:
        """rows l P, for any rows over the items, dense or sparse."""
        if not self.dual:
            return np.asarray(rows @ self.solved)
        dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
        inner = rows @ self.unit.T
        inner = inner.toarray() if sparse.issparse(inner) else inner
        return np.asarray(dense - inner @ self.solved / self.ridge)

    def own_applied(self, users: slice = slice(None)) -> Floats:
        """x l P for the users' own marked rows x, some users at a time if asked to."""
        if self.dual:
            return np.asarray(self.norms[users, None] * self.solved[users])
        return np.asarray(sparse.diags_array(self.norms[users]) @ self.unit[users] @ self.solved)

    def own_marks(self, users: slice = slice(None)) -> sparse.csr_array:
        """The users' own rows x: 1 for every item that a user has."""
        part = self.unit[users]
        return sparse.csr_array((np.ones(part.nnz), part.indices, part.indptr), shape=part.shape)

    def scores(self, rows: Any = None, users: slice = slice(None)) -> Floats:
        """x - (x P) / diag P for ``rows``, or for the users' own rows. Items that a user has get a score too."""
        marks = self.own_marks(users) if rows is None else rows
        against = self.own_applied(users) if rows is None else self.applied(rows)
        return np.asarray(marks - against / self.diagonal)


def item_ridge(rows: Any, ridge: float, *, dual: bool | None = None) -> ItemRidge:
    """The regression on marked rows (users x items; what is above 0 counts as 1), each scaled to length 1.

    ``dual`` forces one of the two forms, which agree; left out, the cheaper one is taken.
    """
    unit, norms = unit_rows(rows)
    users, items = unit.shape
    weight = positive("ridge", ridge)
    by_users = users <= items if dual is None else dual
    if by_users:
        kernel = (unit @ unit.T).toarray() / weight
        kernel[np.diag_indices(users)] += 1.0
        solved = np.ascontiguousarray((unit.T @ _inverse(kernel)).T)
        found = 1.0 - np.asarray(unit.multiply(solved).sum(axis=0)).reshape(-1) / weight
    else:
        gram = (unit.T @ unit).toarray() / weight
        gram[np.diag_indices(items)] += 1.0
        solved = _inverse(gram)
        found = np.diagonal(solved).copy()
    squares = 1.0 + np.asarray(unit.multiply(unit).sum(axis=0)).reshape(-1) / weight
    # (A^-1)_jj >= 1 / A_jj: rounding must not bring it below, let alone to 0
    return ItemRidge(unit, norms, weight, solved, by_users, np.maximum(found, 1.0 / squares), squares)


@dataclass(frozen=True, eq=False, repr=False)
class Blend:
    """A regression on users' rows and on pseudo-rows over a head of items, for any weight of the latter.

    Items outside the head keep the score that they have without pseudo-rows, of which these know nothing.
    """

    base: ItemRidge
    head: NDArray[np.int64]
    pseudo: Floats  # rows over the head

    def __post_init__(self) -> None:
        if self.pseudo.shape != (len(self.pseudo), self.head.size):
            raise InvalidParameter("pseudo-rows need one number for each item of the head.")
        if not np.isfinite(self.pseudo).all():
            raise InvalidParameter("pseudo-rows must be finite numbers.")
        if self.head.size and not 0 <= int(self.head.min()) <= int(self.head.max()) < self.base.items:
            raise InvalidParameter("a head must hold items of the catalogue.")

    def __repr__(self) -> str:
        return f"Blend({len(self.pseudo)} pseudo-rows over {self.head.size} items)"

    @cached_property
    def _reach(self) -> Floats:
        """W = E l P, over all items."""
        full = np.zeros((len(self.pseudo), self.base.items))
        full[:, self.head] = self.pseudo
        return self.base.applied(full)

    @cached_property
    def _rotated(self) -> tuple[Floats, Floats]:
        """The eigenvalues u of M = E l P E^T, and Q^T W for its eigenvectors Q."""
        product = self._reach[:, self.head] @ self.pseudo.T
        values, vectors = linalg.eigh((product + product.T) / 2.0, check_finite=False)
        return np.maximum(values, 0.0), np.asarray(vectors.T @ self._reach)

    def factor(self, alpha: float) -> Floats:
        """B, with l P_alpha = l P - B^T B."""
        weight = finite("alpha", alpha) / self.base.ridge
        if weight < 0.0:
            raise InvalidParameter("alpha must be at least 0.")
        if weight == 0.0 or not len(self.pseudo):
            return np.zeros((0, self.base.items))
        values, rotated = self._rotated
        return np.asarray(np.sqrt(weight / (1.0 + weight * values))[:, None] * rotated)

    def scores(self, alpha: float, rows: Any = None, users: slice = slice(None)) -> Floats:
        """As those of the regression, with the pseudo-rows at weight ``alpha`` for the items of the head."""
        marks = self.base.own_marks(users) if rows is None else rows
        against = self.base.own_applied(users) if rows is None else self.base.applied(rows)
        factor, head = self.factor(alpha), self.head
        diagonal = self.base.diagonal.copy()
        if len(factor):
            against[:, head] -= (marks @ factor.T) @ factor[:, head]
            less = diagonal[head] - np.square(factor[:, head]).sum(axis=0)
            squares = self.base.squares[head] + alpha * np.square(self.pseudo).sum(axis=0) / self.base.ridge
            diagonal[head] = np.maximum(less, 1.0 / squares)
        return np.asarray(marks - against / diagonal)


def unit_rows(rows: Any) -> tuple[sparse.csr_array, Floats]:
    """Marked rows scaled to length 1, and the lengths that they had. A row without items stays 0."""
    table = sparse.csr_array(rows, dtype=np.float64, copy=True)
    table.sum_duplicates()
    had = np.isfinite(table.data) & (table.data > 0.0)
    marks = sparse.csr_array((had.astype(np.float64), table.indices, table.indptr), shape=table.shape)
    marks.eliminate_zeros()
    sizes = np.diff(marks.indptr)
    norms = np.sqrt(sizes.astype(np.float64))
    data = np.repeat(1.0 / np.maximum(norms, 1.0), sizes)
    return sparse.csr_array((data, marks.indices, marks.indptr), shape=marks.shape), norms


def _inverse(matrix: Floats) -> Floats:
    """Of a positive definite matrix, by its Cholesky factor.

    BLAS libraries share the inversion of even a tiny factor among threads, which wait for each other on a busy machine: some
    milliseconds on average for 41 rows, where solving for a few columns at a time, too little to be shared, takes .1 ms. From a
    hundred rows on the inversion's fewer operations count for more.
    """
    if not len(matrix):
        return matrix
    factor, failed = linalg.lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if len(matrix) <= _SMALL and not failed:
        solved = np.eye(len(matrix), order="F")
        for first in range(0, len(matrix), _COLUMNS):
            some = slice(first, first + _COLUMNS)
            solved[:, some], _ = linalg.lapack.dpotrs(factor, solved[:, some], lower=1)
        return solved
    inverse, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(lower, -1).T)
