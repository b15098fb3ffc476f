"""Kernels of whole numbers, sigma I + A^T A: products of columns and minors, all of them exact."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_WHOLE_GRAM = 512  # items up to which all products of columns are formed once
_CELLS = 1 << 21  # entries of the table that a batch of proposals may gather
_PROPOSALS = 1 << 13
_FEW = 1 << 18  # cells up to which columns are written out: so small a dense product is faster than a sparse one


class WholeKernel:
    """sigma I + A^T A, A users x items in whole numbers with the squares of each row at most 2^32, sigma >= 1 of any size.

    With fewer than 2^30 users every sum of products of two columns is below 2^62, so int64 holds it exactly; sigma is a
    Python number and joins them in floats or in Python's whole numbers only.
    """

    def __init__(self, rows: sparse.csr_array, sigma: int) -> None:
        columns = sparse.csc_array(rows)
        columns.sort_indices()
        self.users, self.items = columns.shape
        self.sigma = sigma
        self._start = columns.indptr.astype(np.int64)
        self._user = columns.indices.astype(np.int64)
        self._value = columns.data.astype(np.int64)
        self.running = np.concatenate([[0], np.cumsum(self._value * self._value)])[self._start]  # of the squares
        self.signal: NDArray[np.int64] = np.diff(self.running)  # the diagonal of A^T A
        self.root = np.sqrt(float(sigma) + self.signal.astype(np.float64))
        # |sum of a_ui a_uj| over any users is at most the larger L_ii (Cauchy and Schwarz): below 2^53 floats add it exactly
        self._exact_in_floats = int(self.signal.max(initial=0)) < 1 << 53
        self._lengths = float(np.diff(self._start) @ self.root**2) / float(np.sum(self.root**2))  # of a proposed column
        self._products = None
        if self.items <= _WHOLE_GRAM:
            self._products = np.asarray((columns.T @ columns).todense(), dtype=np.int64)

    @property
    def total(self) -> int:
        """The trace of A^T A."""
        return int(self.running[-1])

    @property
    def at_once(self) -> bool:
        """Whether all products of columns have been formed."""
        return self._products is not None

    def batch(self, k: int) -> int:
        """How many proposals of k items to look at together."""
        if self.at_once:
            return _PROPOSALS
        return int(min(max(_CELLS / (1.0 + k * self._lengths), 4), _PROPOSALS))

    def products(self, slates: NDArray[np.int64]) -> NDArray[np.int64]:
        """(A^T A)_Y for every slate: slates x k x k."""
        if self._products is not None:
            return np.asarray(self._products[slates[:, :, None], slates[:, None, :]])
        count, k = slates.shape
        first = self._start[slates.ravel()]
        length = self._start[slates.ravel() + 1] - first
        ends = np.concatenate([[0], np.cumsum(length)])
        place = np.arange(ends[-1]) + np.repeat(first - ends[:-1], length)
        # one block of users for each slate, so that only the k x k blocks that are wanted are formed
        user = self._user[place] + self.users * np.repeat(np.arange(count), length.reshape(count, k).sum(axis=1))
        width = count * self.users
        if width * k <= _FEW and self._exact_in_floats:
            dense = np.zeros((width, k))
            dense[user, np.repeat(np.tile(np.arange(k), count), length)] = self._value[place]
            dense = dense.reshape(count, self.users, k)
            return np.asarray(np.matmul(dense.transpose(0, 2, 1), dense).astype(np.int64))
        if width > 4 * user.size + 1024:
            known, user = np.unique(user, return_inverse=True)
            width = known.size
        table = sparse.csr_array((self._value[place], user, ends), shape=(count * k, width))
        product = (table @ table.T.tocsr()).tocoo()
        result = np.zeros((count, k, k), dtype=np.int64)
        result[product.row // k, product.row % k, product.col % k] = product.data
        return result

    def minor(self, slate: NDArray[np.int64]) -> int:
        """det L_Y, exactly."""
        matrix = [[int(cell) for cell in row] for row in self.products(slate[None, :])[0]]
        for i, row in enumerate(matrix):
            row[i] += self.sigma
        return determinant(matrix)

    def hadamard(self, slate: NDArray[np.int64]) -> int:
        """The product of L_ii over the slate: at least det L_Y."""
        product = 1
        for item in slate:
            product *= self.sigma + int(self.signal[item])
        return product


def determinant(matrix: list[list[int]]) -> int:
    """The determinant of a positive definite matrix of whole numbers (Bareiss: every division leaves no remainder)."""
    rows = [list(row) for row in matrix]
    before = 1
    for j in range(len(rows) - 1):
        pivot = rows[j][j]  # a leading minor: above 0
        for i in range(j + 1, len(rows)):
            for m in range(j + 1, len(rows)):
                rows[i][m] = (rows[i][m] * pivot - rows[i][j] * rows[j][m]) // before
        before = pivot
    return rows[-1][-1]
