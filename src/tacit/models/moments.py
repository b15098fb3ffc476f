"""First and second moments of users' unit rows, and item-item ridge regression on them.

**Moments.** A user with c items in their row has the unit row y = x / sqrt(c). Summed over users, that gives the
popularity. On a head of items, with w = x / sqrt(c) for the c items of the head, it gives the Gram matrix, the sum of
w w^T. Both are sent as whole numbers of 2^-20. The Gram matrix is sent as one vector: G_ii / sqrt 2 for every item of
the head, then G_ij for i < j, row by row. A user's vector then has the norm |w|^2 / sqrt 2 = 1 / sqrt 2, whatever
items they have. Proof: docs/proofs/gram-share.md.

**Item ridge (EASE).** Every item is explained by the others, from users' own rows and from shared pseudo-rows. With
unit rows Y and a ridge l, P = (Y^T Y + l I)^-1, and the scores of a row x are x - (x P) / diag P. Everything is
computed from l P = I - Y^T K^-1 Y / l with K = I + Y Y^T / l, which needs no items x items matrix while there are
fewer users than items: K^-1 Y is a dense matrix times a sparse one, and x l P = |x| (K^-1 Y)_u for a user's own row x
= |x| y_u. Pseudo-rows E with a weight a are added afterwards, without factorising the users' part again (Woodbury):
with W = E l P and M = W E^T = Q diag(u) Q^T, both computed once, l P_a = l P - B^T B for B = sqrt(a / (l + a u)) Q^T
W, row by row.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse

from tacit.checks import finite, positive, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats, Ints

STEPS = 1 << 20  # a step is 2^-20
FEWEST, MOST = 60, 1500  # items of a head
EDGE = 1.8  # times sd sqrt(head); eigenvalues of pure noise end at 2, and below .9 of that counts as noise
_SMALL, _COLUMNS = 128, 8  # up to so many rows, `_inverse` solves for so many columns at a time


@dataclass(frozen=True, eq=False)
class SharedMoments:
    """The broadcast after the sums. It is public: all of it is computed from the noisy release.

    ``head`` is empty if the release holds no information; entities then use only their own rows.
    """

    popularity: Floats  # noisy sum of the unit rows, one number for each item
    head: Ints  # items, ascending
    pseudo_rows: Floats  # rows over the head
    popularity_sd: float  # of the noise in one number of the popularity
    gram_sd: float  # of the noise in one number of the Gram matrix off its diagonal
    seen: int  # items with a popularity above three deviations of its noise

    @property
    def informative(self) -> bool:
        """Whether any item stood out of the noise. If not, entities use only their own rows."""
        return self.head.size > 0


def noise_sds(rho_popularity: float, rho_gram: float, *, shares: int = 1, honest: int = 1) -> tuple[float, float]:
    """The deviation of the noise in a sum of ``shares`` shares: of one number of the popularity, and of the Gram matrix.

    Each share has 1 / ``honest`` of the variance that rho asks for, sensitivity^2 / (2 rho); the squared
    sensitivities are 1 and 1/2.
    """
    spread = math.sqrt(whole("shares", shares, least=1) / whole("honest", honest, least=1))
    popularity, gram = positive("rho_popularity", rho_popularity), positive("rho_gram", rho_gram)
    return spread / math.sqrt(2.0 * popularity), spread / (2.0 * math.sqrt(gram))


def head_of(popularity: ArrayLike, sd: float, items: int) -> Ints | None:
    """The items whose Gram matrix is worth its noise, ascending. None if the popularity is hardly more than noise.

    The head has .6 of the items that are seen, from 60 to 1,500. In noise alone .00135 of the items are seen, so
    below 10 + .004 ``items`` of them there is no head.
    """
    noisy = np.asarray(popularity, dtype=np.float64)
    if noisy.shape != (whole("items", items, least=1),) or not np.isfinite(noisy).all():
        raise InvalidParameter(f"popularity must be {items} finite numbers, one for each item.")
    seen = seen_items(noisy, positive("sd", sd))
    if 250 * seen < 2500 + items:  # seen < 10 + .004 items, in whole numbers
        return None
    return largest(noisy, min(items, max(FEWEST, min(MOST, 6 * seen // 10))))


def seen_items(popularity: ArrayLike, sd: float) -> int:
    """How many items have a noisy popularity above three deviations of the noise."""
    return int((np.asarray(popularity, dtype=np.float64) > 3.0 * sd).sum())


def largest(values: Floats, count: int) -> Ints:
    """The positions of the ``count`` largest values, ascending; ties go to the first."""
    return np.sort(np.argsort(-values, kind="stable")[:count]).astype(np.int64)


def triangle(head: int) -> int:
    """How many numbers the vector of a Gram matrix over ``head`` items has."""
    return head * (head + 1) // 2


def gram_from(vector: NDArray[np.integer], head: int) -> Floats:
    """The symmetric Gram matrix of a vector of whole numbers, in units of 1."""
    if vector.shape != (triangle(head),):
        raise InvalidParameter(f"a Gram matrix over {head} items needs a vector of {triangle(head)} numbers.")
    matrix = np.zeros((head, head))
    matrix[np.triu_indices(head, 1)] = vector[head:] / STEPS
    matrix += matrix.T
    np.fill_diagonal(matrix, vector[:head] * (math.sqrt(2.0) / STEPS))
    return matrix


def pseudo_rows(gram: Floats, sd: float) -> Floats:
    """Rows E whose Gram matrix E^T E is ``gram`` without its noise, the heaviest first.

    E = sqrt(e - t) q^T for the eigenvectors q with an eigenvalue e above t = 1.8 sd sqrt(head). Symmetric noise of
    deviation sd off the diagonal and sqrt 2 sd on it has its largest eigenvalue at 2 sd sqrt(head).
    """
    size = len(gram)
    if gram.shape != (size, size) or not np.isfinite(gram).all():
        raise InvalidParameter("a Gram matrix must be square and hold finite numbers only.")
    if size == 0:
        return np.zeros((0, 0))
    threshold = EDGE * positive("sd", sd) * math.sqrt(size)
    values, vectors = linalg.eigh(gram, subset_by_value=(threshold, math.inf), check_finite=False)
    order = np.argsort(-values, kind="stable")
    kept = order[values[order] > threshold]
    return np.ascontiguousarray(np.sqrt(values[kept] - threshold)[:, None] * vectors[:, kept].T)


def data_free(shared: SharedMoments, rng: np.random.Generator) -> SharedMoments:
    """A control: the broadcast for a head of this size if nobody had any items, that is, noise of the same size alone."""
    items, size, sd = shared.popularity.size, shared.head.size, shared.gram_sd
    popularity = rng.normal(0.0, shared.popularity_sd, items)
    upper = np.triu(rng.normal(0.0, sd, (size, size)), 1)
    gram = upper + upper.T + np.diag(rng.normal(0.0, math.sqrt(2.0) * sd, size))
    rows = pseudo_rows(gram, sd) if size else shared.pseudo_rows
    seen = seen_items(popularity, shared.popularity_sd)
    return replace(shared, popularity=popularity, head=largest(popularity, size), pseudo_rows=rows, seen=seen)


def constant(shared: SharedMoments) -> SharedMoments:
    """A control: a broadcast that says the same about every item and weighs as much as the true one."""
    level = max(0.0, float(shared.popularity.mean()))
    rows = np.zeros((0, shared.head.size))
    if len(shared.pseudo_rows):
        rows = np.full((1, shared.head.size), math.sqrt(np.square(shared.pseudo_rows).sum() / shared.head.size))
    return replace(shared, popularity=np.full(shared.popularity.size, level), pseudo_rows=rows)


@dataclass(frozen=True, eq=False, repr=False)
class ItemRidge:
    """The regression on users' rows alone. ``solved`` is K^-1 Y (users x items), or l P itself if that is smaller."""

    unit: sparse.csr_array  # Y
    norms: Floats  # |x| of every user
    ridge: float
    solved: Floats
    dual: bool
    diagonal: Floats  # of l P
    squares: Floats  # the diagonal of the inverse of l P: 1 + G_jj / l

    def __repr__(self) -> str:
        return f"ItemRidge({self.unit.shape[1]} items)"  # the number of users is private

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
        """x l P for the users' own rows x, or for some of the users."""
        if self.dual:
            return np.asarray(self.norms[users, None] * self.solved[users])
        return np.asarray(sparse.diags_array(self.norms[users]) @ self.unit[users] @ self.solved)

    def own_marks(self, users: slice = slice(None)) -> sparse.csr_array:
        """The users' own rows x: 1 for every item that a user has."""
        part = self.unit[users]
        return sparse.csr_array((np.ones(part.nnz), part.indices, part.indptr), shape=part.shape)

    def scores(self, rows: Any = None, users: slice = slice(None)) -> Floats:
        """x - (x P) / diag P for ``rows``, or for the users' own rows. Items that a user already has get a score too."""
        marks = self.own_marks(users) if rows is None else rows
        against = self.own_applied(users) if rows is None else self.applied(rows)
        return np.asarray(marks - against / self.diagonal)


def item_ridge(rows: Any, ridge: float, *, dual: bool | None = None) -> ItemRidge:
    """The regression on marked rows (users x items; a value above 0 counts as 1), each scaled to length 1.

    ``dual`` forces one of the two forms, which agree. By default the cheaper one is used.
    """
    unit, norms = unit_rows(rows)
    users, items = unit.shape
    weight = positive("ridge", ridge)
    by_users = users <= items if dual is None else dual
    if by_users:
        kernel = (unit @ unit.T).toarray() / weight
        kernel[np.diag_indices(users)] += 1.0
        solved = np.ascontiguousarray((unit.T @ _inverse(kernel)).T)
        diagonal = 1.0 - np.asarray(unit.multiply(solved).sum(axis=0)).reshape(-1) / weight
    else:
        gram = (unit.T @ unit).toarray() / weight
        gram[np.diag_indices(items)] += 1.0
        solved = _inverse(gram)
        diagonal = np.diagonal(solved).copy()
    squares = 1.0 + np.asarray(unit.multiply(unit).sum(axis=0)).reshape(-1) / weight
    # (A^-1)_jj >= 1 / A_jj: rounding must not bring it below that.
    return ItemRidge(unit, norms, weight, solved, by_users, np.maximum(diagonal, 1.0 / squares), squares)


@dataclass(frozen=True, eq=False, repr=False)
class Blend:
    """A regression on users' rows and on pseudo-rows over a head of items, for any weight of the latter.

    Items outside the head keep their score without pseudo-rows, because pseudo-rows say nothing about them.
    """

    base: ItemRidge
    head: Ints
    pseudo: Floats  # rows over the head

    def __post_init__(self) -> None:
        if self.pseudo.shape != (len(self.pseudo), self.head.size):
            raise InvalidParameter("pseudo-rows must have one number for each item of the head.")
        if not np.isfinite(self.pseudo).all():
            raise InvalidParameter("pseudo-rows must be finite numbers.")
        if self.head.size and not 0 <= int(self.head.min()) <= int(self.head.max()) < self.base.items:
            raise InvalidParameter("the head must be items of the catalogue.")

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
        """`ItemRidge.scores` with the pseudo-rows at weight ``alpha`` for the items of the head."""
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
    """Marked rows scaled to length 1, and their lengths before. A row without items stays 0."""
    table = sparse.csr_array(rows, dtype=np.float64, copy=True)
    table.sum_duplicates()
    marked = np.isfinite(table.data) & (table.data > 0.0)
    marks = sparse.csr_array((marked.astype(np.float64), table.indices, table.indptr), shape=table.shape)
    marks.eliminate_zeros()
    sizes = np.diff(marks.indptr)
    norms = np.sqrt(sizes.astype(np.float64))
    data = np.repeat(1.0 / np.maximum(norms, 1.0), sizes)
    return sparse.csr_array((data, marks.indices, marks.indptr), shape=marks.shape), norms


def _inverse(matrix: Floats) -> Floats:
    """The inverse of a positive definite matrix, by its Cholesky factor.

    BLAS libraries split the inversion of even a tiny factor among threads, which wait for each other on a busy
    machine: some milliseconds on average for 41 rows. Solving for a few columns at a time, too little to be split,
    takes .1 ms. From a hundred rows on, the inversion needs fewer operations and is faster.
    """
    if not len(matrix):
        return matrix
    factor, failed = linalg.lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if len(matrix) <= _SMALL and not failed:
        solved = np.eye(len(matrix), order="F")
        for first in range(0, len(matrix), _COLUMNS):
            columns = slice(first, first + _COLUMNS)
            solved[:, columns], _ = linalg.lapack.dpotrs(factor, solved[:, columns], lower=1)
        return solved
    inverse, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(lower, -1).T)
