"""Samplers of determinantal point processes: of a kernel that is written out, of sigma I + B B^T, and of subsets of any size.

All choose eigenvectors by their eigenvalues, then sample the projection process of the chosen ones. `DenseSampler`
needs the kernel itself, with a setup of O(n^3).

`SplitSampler` never forms the kernel. det(sigma I + B B^T)_Y is the sum over the subsets S of Y of sigma^(k-|S|)
det(B B^T)_S, so it draws a slate exactly in three steps: the number j of signal slots, with weight e_j sigma^(k-j)
C(n-j, k-j), where e_j is the elementary symmetric polynomial of the eigenvalues of B B^T; j items from the j-DPP of B
B^T; and k-j items uniformly from the rest. **If the rows are private, so is the number of signal slots and which
slots they are**: an item that is in no record is never one. Only the slate may leave.

`UnconstrainedSampler` draws S from the DPP of B B^T / (1 + sigma), and adds every other item with probability sigma /
(1 + sigma).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.arrays import Floats, Ints
from tacit.models.dpp import projection
from tacit.models.dpp.laws import NONE, Coins, choose, law_of_logs, log_table
from tacit.models.dpp.projection import projection_samples, spectrum

_CELLS = 2_000_000  # keys or coins in memory at once
SCAN_BELOW = 5_000  # items: in smaller catalogues, passes over the catalogue are as fast as proposals


class SplitSampler:
    """Slates Y of k of n items with probability det L_Y / e_k(L), L = sigma I + B B^T, B: n x d, dense or sparse.

    ``scan`` passes over the catalogue for every signal slot; without it the time of a draw does not grow with the
    catalogue. By default, catalogues below 5,000 items are scanned. The law is the same.
    """

    def __init__(self, rows: Any, sigma: float, k: int, *, scan: bool | None = None) -> None:
        self.sigma = finite("sigma", sigma)
        if self.sigma < 0.0:
            raise InvalidParameter(f"sigma must be at least 0, not {sigma!r}.")
        log_values, vectors = spectrum(rows)
        rank, self.n = vectors.shape
        self.k = whole("k", k, least=1, most=self.n)
        if self.sigma == 0.0 and self.k > rank:
            raise InvalidParameter(
                f"k must be at most the rank of the rows, {rank}, not {k}. Ask for fewer items, or give a sigma above 0."
            )
        self._table = log_table(log_values, min(self.k, rank))
        self._signal = Projections(vectors, scan)
        logs = self._log_weights()
        self._law = law_of_logs(logs)  # of the number of signal slots, 0 .. k
        with np.errstate(all="ignore"):  # an underflow may be private
            self.log_normaliser = float(np.logaddexp.reduce(logs))

    def draw(self, coins: Coins) -> Ints:
        """One slate, ascending."""
        items: Ints = self.draw_many(1, coins)[0]
        return items

    def draw_many(self, count: int, coins: Coins) -> Ints:
        """``count`` independent slates, one in each row: faster than one at a time."""
        uniforms = coins.uniforms(whole("count", count, least=0))
        running = np.cumsum(self._law)
        sizes = np.searchsorted(running, uniforms * running[-1], side="right")
        return fill(self._signal.draw(choose(self._table, sizes, coins), coins), self.n, self.k, coins)

    def _log_weights(self) -> Floats:
        """log of e_j sigma^(k-j) C(n-j, k-j) for j = 0 .. k; C(n-j-1, k-j-1) is C(n-j, k-j) (k-j)/(n-j)."""
        n, k = self.n, self.k
        logs = np.full(k + 1, -np.inf)
        top = len(self._table)
        logs[:top] = self._table[:, -1]
        slots = np.arange(k + 1)
        if self.sigma == 0.0:
            logs[:k] = -np.inf
            return logs
        few = np.arange(min(k, n - k))
        whole_choice = np.log((n - few) / (len(few) - few)).sum()
        choices = whole_choice + np.concatenate(([0.0], np.cumsum(np.log((k - slots[:-1]) / (n - slots[:-1])))))
        logs += (k - slots) * np.log(self.sigma) + choices
        return logs


class DenseSampler:
    """Slates Y of k items with probability det L_Y / e_k(L). Eigenvalues below 8 n 2^-52 of the largest count as 0."""

    def __init__(self, kernel: Floats, k: int) -> None:
        kernel = np.asarray(kernel, dtype=np.float64)
        if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
            raise InvalidInput(f"a kernel must be a square matrix of items x items, not of shape {kernel.shape}.")
        if not np.isfinite(kernel).all():
            raise InvalidInput("a kernel must hold finite numbers only, without infinity or NaN.")
        self.k = whole("k", k, least=1, most=len(kernel))
        values, vectors = np.linalg.eigh(kernel)
        above = values > 8.0 * len(values) * 2.0**-52 * values[-1]
        rank = int(above.sum()) if values[-1] > 0.0 else 0
        if k > rank:
            raise InvalidParameter(
                f"k must be at most the rank of the kernel, {rank}, not {k}. Ask for fewer items, or add a multiple of the "
                "identity."
            )
        self._table = log_table(np.log(values[above]), self.k)
        self._vectors = np.ascontiguousarray(vectors[:, above].T)
        self.log_normaliser = float(self._table[-1, -1])

    def draw(self, coins: Coins) -> Ints:
        """One slate, ascending."""
        items: Ints = self.draw_many(1, coins)[0]
        return items

    def draw_many(self, count: int, coins: Coins) -> Ints:
        """``count`` independent slates, one in each row."""
        chosen = choose(self._table, np.full(whole("count", count, least=0), self.k), coins)
        return np.sort(projection_samples(self._vectors, chosen, coins), axis=1).reshape(count, self.k)


class UnconstrainedSampler:
    """Subsets Y of n items with probability det L_Y / det(I + L), L = sigma I + B B^T, B: n x d, dense or sparse.

    If the rows are private, so is which items came from S. Expect at least n sigma/(1 + sigma) items.
    """

    def __init__(self, rows: Any, sigma: float, *, scan: bool | None = None) -> None:
        self.sigma = finite("sigma", sigma)
        if self.sigma < 0.0:
            raise InvalidParameter(f"sigma must be at least 0, not {sigma!r}.")
        log_values, vectors = spectrum(rows)
        rank, self.n = vectors.shape
        both = np.logaddexp(np.log1p(self.sigma), log_values)  # log(1 + sigma + eigenvalue)
        self._chances = np.exp(log_values - both)
        self._signal = Projections(vectors, scan)
        self.log_normaliser = float(both.sum() + (self.n - rank) * np.log1p(self.sigma))

    def draw(self, coins: Coins) -> Ints:
        """One subset, ascending; it may be empty."""
        return self.draw_many(1, coins)[0]

    def draw_many(self, count: int, coins: Coins) -> list[Ints]:
        """``count`` independent subsets: faster than one at a time if the catalogue is small."""
        batch = max(1, _CELLS // self.n)
        parts = [min(batch, count - start) for start in range(0, whole("count", count, least=0), batch)]
        return [items for part in parts for items in self._several(part, coins)]

    def _several(self, count: int, coins: Coins) -> list[Ints]:
        rank = self._chances.size
        taken = coins.uniforms(count * rank).reshape(count, rank) < self._chances
        sizes = taken.sum(axis=1)
        first = np.argsort(~taken, axis=1, kind="stable")[:, : sizes.max()]  # the vectors taken, then the others
        chosen = np.where(np.arange(first.shape[1]) < sizes[:, None], first, NONE)
        signal = self._signal.draw(chosen, coins)
        kept = coins.uniforms(count * self.n).reshape(count, self.n) < self.sigma / (1.0 + self.sigma)
        slates, positions = np.nonzero(signal != NONE)
        kept[slates, signal[slates, positions]] = True
        return [np.flatnonzero(row) for row in kept]


class Projections:
    """The projection processes of some of r orthonormal vectors, each of n entries."""

    def __init__(self, vectors: Floats, scan: bool | None) -> None:
        if vectors.shape[0] > vectors.shape[1]:
            raise InvalidParameter("give orthonormal vectors as rows; there can be no more of them than entries.")
        self._vectors = vectors
        self._scan = vectors.shape[1] < SCAN_BELOW if scan is None else scan
        self._running = None if self._scan else projection.running_squares(vectors)

    def draw(self, chosen: Ints, coins: Coins) -> Ints:
        """As many items as vectors for each row of ``chosen`` (vectors, `NONE` at the end). Shorter rows end in `NONE`."""
        if self._running is not None:
            return projection.samples_by_proposal(self._vectors, self._running, chosen, coins)
        return projection_samples(self._vectors, chosen, coins)


def fill(items: Ints, n: int, k: int, coins: Coins) -> Ints:
    """Rows of k of the items 0 .. n-1, ascending: the items of each row (`NONE` is skipped), and uniform ones from the rest.

    Up to half of the catalogue it draws a stream of uniform items and keeps new ones, in time that does not grow with
    the catalogue. Beyond that, a pass over the catalogue costs no more than the slate.
    """
    count = len(items)
    if 2 * k > n:
        return _by_keys(items, n, k, coins)
    stream = items
    while True:
        new = _first_seen(stream) & (stream != NONE)
        counts = np.cumsum(new, axis=1)
        lacking = k - int(counts[:, -1].min(initial=k)) if stream.shape[1] else k
        if lacking <= 0:
            break
        more = (coins.uniforms(count * (lacking + 2)) * n).astype(np.int64)
        stream = np.concatenate([stream, more.reshape(count, lacking + 2)], axis=1)
    return np.sort(stream[new & (counts <= k)].reshape(count, k), axis=1)


def _first_seen(stream: Ints) -> NDArray[np.bool_]:
    """Where an item occurs for the first time in its row."""
    order = np.argsort(stream, axis=1, kind="stable")
    ranked = np.take_along_axis(stream, order, axis=1)
    first = np.ones(stream.shape, dtype=np.bool_)
    np.put_along_axis(first, order[:, 1:], ranked[:, 1:] != ranked[:, :-1], axis=1)
    return first


def _by_keys(items: Ints, n: int, k: int, coins: Coins) -> Ints:
    """A uniform key for each item, below all others for items already in the row; the k items with the smallest keys."""
    slates = np.empty((len(items), k), dtype=np.int64)
    batch = max(1, _CELLS // n)
    for start in range(0, len(items), batch):
        part = items[start : start + batch]
        keys = coins.uniforms(len(part) * n).reshape(len(part), n)
        rows, positions = np.nonzero(part != NONE)
        keys[rows, part[rows, positions]] = -1.0
        slates[start : start + batch] = np.sort(np.argsort(keys, axis=1)[:, :k], axis=1)
    return slates
