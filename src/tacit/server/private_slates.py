"""Private slates at the server, from one release of a curator: noisy counts or a noisy kernel.

    server = PrivateSlates(curator.popularity(epsilon=1), features)
    slate = server.slate(k=10)

Slates are post-processing of the release: you can make any number of them for any reader at no further cost.
"""

from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.models.dpp.laws import RngCoins, checked_features, checked_size
from tacit.models.dpp.tempered import ALPHA, from_counts, from_kernel


class PrivateSlates:
    """Makes slates from a ``release`` and from public ``features``: one row for each released item, in their order.

    A kernel takes no features. ``rng`` draws slates; it is experiment randomness, because its input is already released.
    """

    def __init__(
        self,
        release: Popularity | Similarity,
        features: ArrayLike | None = None,
        *,
        rng: np.random.Generator | None = None,
    ) -> None:
        if not isinstance(release, (Popularity, Similarity)):
            raise InvalidParameter("release must be a Popularity or a Similarity that a curator released.")
        if isinstance(release, Similarity) and features is not None:
            raise InvalidParameter("a kernel already contains the similarity of items: leave `features` out.")
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
        """The guarantee of the release. It covers all slates made from it together."""
        return self.release.guarantee

    def slate(
        self, k: int = 10, *, drawn: bool = False, alpha: float = ALPHA, weights: ArrayLike | None = None
    ) -> Slate:
        """The greedy slate, in the order of choice. With ``drawn``, a random slate of items that are as different.

        ``alpha`` weighs quality against diversity (counts only). ``weights`` from 0 to 1 are one reader's wishes, one for each
        item; the slate is then for this reader, and the weights are not stored.
        """
        k = checked_size(k, len(self.release))
        coins = self._coins if drawn else None
        wishes = self._checked_weights(weights)
        if isinstance(self.release, Popularity):
            chosen = from_counts(self.release.counts() * wishes, self.features, k, alpha=alpha, coins=coins)
        else:
            chosen = from_kernel(wishes[:, None] * self.release.kernel() * wishes, k, coins=coins)
        return Slate.from_message(self.release, chosen, "counts" if isinstance(self.release, Popularity) else "kernel")

    def _checked_weights(self, weights: ArrayLike | None) -> NDArray[np.float64]:
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
