"""Slates at the server, from what a curator released once: noisy counts or a noisy kernel. Any number of them, for anybody, free.

server = PrivateSlates(curator.popularity(epsilon=1), features)
slate = server.slate(k=10)
"""

from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.models.dpp.coins import RngCoins
from tacit.models.dpp.kernels import checked_features, checked_size
from tacit.models.released_slates import ALPHA, from_counts, from_kernel


class PrivateSlates:
    """What was released, and public ``features``, one row for each of its items, in their order (for counts; a kernel needs none).

    ``rng`` is for slates that are drawn. It protects nobody, and need not: what it draws from is released already.
    """

    def __init__(
        self,
        release: Popularity | Similarity,
        features: ArrayLike | None = None,
        *,
        rng: np.random.Generator | None = None,
    ) -> None:
        if not isinstance(release, (Popularity, Similarity)):
            raise InvalidParameter("slates are made from a Popularity or a Similarity that a curator released.")
        if isinstance(release, Similarity) and features is not None:
            raise InvalidParameter("a kernel says itself how alike items are: leave `features` out.")
        self.features = None if features is None else checked_features(features)
        if self.features is not None and len(self.features) != len(release):
            raise InvalidParameter(
                f"features must be {len(release):,} rows, one for each released item, in their order."
            )
        self.release = release
        self._coins = RngCoins(np.random.default_rng() if rng is None else rng)

    def __repr__(self) -> str:
        return f"PrivateSlates({len(self.release):,} items; {self.guarantee})"

    @property
    def guarantee(self) -> Guarantee:
        """Of the release, and of all slates from it together."""
        return self.release.guarantee

    def slate(
        self, k: int = 10, *, drawn: bool = False, alpha: float = ALPHA, weights: ArrayLike | None = None
    ) -> Slate:
        """The greedy slate, in the order of its choice; or, ``drawn``, another one each time, of items that are as different.

        ``alpha`` weighs quality against difference (counts only). ``weights`` from 0 to 1 are a reader's own wishes, one for
        each item: they stay here, and what she gets is for her.
        """
        k = checked_size(k, len(self.release))
        coins = self._coins if drawn else None
        wishes = self._wishes(weights)
        if isinstance(self.release, Popularity):
            chosen = from_counts(self.release.counts() * wishes, self.features, k, alpha=alpha, coins=coins)
        else:
            chosen = from_kernel(wishes[:, None] * self.release.kernel() * wishes, k, coins=coins)
        items = tuple(self.release.items[place] for place in chosen.tolist())
        return Slate(items, "counts" if isinstance(self.release, Popularity) else "kernel", self.guarantee)

    def _wishes(self, weights: ArrayLike | None) -> NDArray[np.float64]:
        if weights is None:
            return np.ones(len(self.release))
        try:
            table = np.asarray(weights)
        except ValueError:  # rows of different lengths
            table = np.empty(0)
        if table.shape != (len(self.release),) or table.dtype.kind not in "biuf" or not np.isfinite(table).all():
            raise InvalidParameter(
                f"weights must be {len(self.release):,} finite numbers from 0 to 1, one for each item."
            )
        return cast(NDArray[np.float64], np.clip(table.astype(np.float64), 0.0, 1.0))
