"""k items from sigma I + B B^T, without ever forming it: signal slots and uniform slots.

det(sigma I + B B^T)_Y is the sum over the subsets S of Y of sigma^(k-|S|) det(B B^T)_S. So a slate is drawn exactly in three steps:
the number j of signal slots, with weight e_j sigma^(k-j) C(n-j, k-j), e_j the elementary symmetric polynomial of the eigenvalues of
B B^T; j items from the j-DPP of B B^T; and k-j items uniformly from the rest. **Which slots are signal, and how many, is private
where the rows are**: an item that is in no record is never one. Only the slate may leave.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, whole
from tacit.errors import InvalidParameter
from tacit.models.dpp import catalogue_free
from tacit.models.dpp.chain_rule import projection_samples
from tacit.models.dpp.coins import Coins
from tacit.models.dpp.elementary import choose, log_table
from tacit.models.dpp.filling import fill
from tacit.models.dpp.laws import law_of_logs
from tacit.models.dpp.spectrum import spectrum

Floats = NDArray[np.float64]
Items = NDArray[np.int64]

SCAN_BELOW = 5_000  # items: below, passes over the catalogue are as fast as proposals


class SplitSampler:
    """Slates Y of k of n items with probability det L_Y / e_k(L), L = sigma I + B B^T, B: n x d, dense or sparse.

    ``scan`` passes over the catalogue for every signal slot; without it the time of a draw does not grow with the catalogue. If not
    given: catalogues below 5,000 items are scanned. The law is the same.
    """

    def __init__(self, rows: Any, sigma: float, k: int, *, scan: bool | None = None) -> None:
        self.sigma = finite("sigma", sigma)
        if self.sigma < 0.0:
            raise InvalidParameter(f"sigma must be at least 0, not {sigma!r}.")
        log_values, vectors = spectrum(rows)
        rank, self.n = vectors.shape
        self.k = whole("k", k, least=1, most=self.n)
        if self.sigma == 0.0 and self.k > rank:
            raise InvalidParameter(f"k must be at most the rank of the rows, {rank}, not {k}. Take a sigma above 0.")
        self._table = log_table(log_values, min(self.k, rank))
        self._signal = Projections(vectors, scan)
        logs = self._log_weights()
        self._law = law_of_logs(logs)
        with np.errstate(all="ignore"):  # whether a weight underflows may be private
            self.log_normaliser = float(np.logaddexp.reduce(logs))

    @property
    def law_of_signal_slots(self) -> Floats:
        """P(j signal slots) for j = 0 .. k. Private where the rows are."""
        return self._law.copy()

    def draw(self, coins: Coins) -> Items:
        """One slate, ascending."""
        items: Items = self.draw_many(1, coins)[0]
        return items

    def draw_many(self, count: int, coins: Coins) -> Items:
        """``count`` independent slates, one in a row: faster than one at a time."""
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


class Projections:
    """The projection processes of some of r orthonormal vectors, each of n entries."""

    def __init__(self, vectors: Floats, scan: bool | None) -> None:
        if vectors.shape[0] > vectors.shape[1]:
            raise InvalidParameter("orthonormal vectors are the rows, so there are at most as many as entries.")
        self._vectors = vectors
        self._scan = vectors.shape[1] < SCAN_BELOW if scan is None else scan
        self._running = None if self._scan else catalogue_free.running_squares(vectors)

    def draw(self, chosen: Items, coins: Coins) -> Items:
        """For each row of ``chosen`` (vectors; `NONE` at the end) as many items, and `NONE` at the end."""
        if self._running is not None:
            return catalogue_free.sample(self._vectors, self._running, chosen, coins)
        return projection_samples(self._vectors, chosen, coins)
