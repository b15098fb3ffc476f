"""Subsets of any size from sigma I + B B^T: S from the DPP of B B^T / (1 + sigma), others with sigma / (1 + sigma)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, whole
from tacit.errors import InvalidParameter
from tacit.models.dpp.coins import Coins
from tacit.models.dpp.elementary import NONE
from tacit.models.dpp.spectrum import spectrum
from tacit.models.dpp.split import Projections

Floats = NDArray[np.float64]
Items = NDArray[np.int64]

_CELLS = 2_000_000  # coins held at once


class UnconstrainedSampler:
    """Subsets Y of n items with probability det L_Y / det(I + L), L = sigma I + B B^T, B: n x d, dense or sparse.

    Which items came by S is private where the rows are. At least n sigma/(1 + sigma) items are expected.
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

    def draw(self, coins: Coins) -> Items:
        """One subset, ascending; it may be empty."""
        return self.draw_many(1, coins)[0]

    def draw_many(self, count: int, coins: Coins) -> list[Items]:
        """``count`` independent subsets: faster than one at a time where the catalogue is small."""
        held = max(1, _CELLS // self.n)
        parts = [min(held, count - start) for start in range(0, whole("count", count, least=0), held)]
        return [items for part in parts for items in self._several(part, coins)]

    def _several(self, count: int, coins: Coins) -> list[Items]:
        rank = self._chances.size
        taken = coins.uniforms(count * rank).reshape(count, rank) < self._chances
        sizes = taken.sum(axis=1)
        first = np.argsort(~taken, axis=1, kind="stable")[:, : sizes.max()]  # the vectors taken, then the others
        chosen = np.where(np.arange(first.shape[1]) < sizes[:, None], first, NONE)
        signal = self._signal.draw(chosen, coins)
        kept = coins.uniforms(count * self.n).reshape(count, self.n) < self.sigma / (1.0 + self.sigma)
        slates, places = np.nonzero(signal != NONE)
        kept[slates, signal[slates, places]] = True
        return [np.flatnonzero(row) for row in kept]
