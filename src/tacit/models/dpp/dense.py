"""k items from a kernel that is written out: eigenvectors chosen by their values, then their projection process. Setup O(n^3)."""

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.dpp.chain_rule import projection_samples
from tacit.models.dpp.coins import Coins
from tacit.models.dpp.elementary import choose, log_table

Floats = NDArray[np.float64]
Items = NDArray[np.int64]


class DenseSampler:
    """Slates Y of k items with probability det L_Y / e_k(L). Eigenvalues below 8 n 2^-52 of the largest count as 0."""

    def __init__(self, kernel: Floats, k: int) -> None:
        kernel = np.asarray(kernel, dtype=np.float64)
        if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
            raise InvalidInput(f"a kernel must be a square matrix, items x items, not of shape {kernel.shape}.")
        if not np.isfinite(kernel).all():
            raise InvalidInput("a kernel must hold finite numbers only.")
        self.k = whole("k", k, least=1, most=len(kernel))
        values, vectors = np.linalg.eigh(kernel)
        above = values > 8.0 * len(values) * 2.0**-52 * values[-1]
        rank = int(above.sum()) if values[-1] > 0.0 else 0
        if k > rank:
            raise InvalidParameter(
                f"k must be at most the rank of the kernel, {rank}, not {k}. Add a multiple of the identity."
            )
        self._table = log_table(np.log(values[above]), self.k)
        self._vectors = np.ascontiguousarray(vectors[:, above].T)
        self.log_normaliser = float(self._table[-1, -1])

    def draw(self, coins: Coins) -> Items:
        """One slate, ascending."""
        items: Items = self.draw_many(1, coins)[0]
        return items

    def draw_many(self, count: int, coins: Coins) -> Items:
        """``count`` independent slates, one in a row."""
        chosen = choose(self._table, np.full(whole("count", count, least=0), self.k), coins)
        return np.sort(projection_samples(self._vectors, chosen, coins), axis=1).reshape(count, self.k)
