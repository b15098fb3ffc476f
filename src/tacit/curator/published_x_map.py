"""X-Map as it was published: replacements drawn among items that the ratings decide (PRS), similar items drawn and their
similarities noised (PNSA, PNCF) by a sensitivity that the ratings decide. For comparison: it promises nothing, and stays inside.

Everything is drawn once and kept: a second draw of the same thing would be worth another epsilon, even by the paper's count.
"""

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive
from tacit.curator.cross_domain_modes import Asked, Mode, charge_unprotected
from tacit.curator.cross_domain_rows import LEAST_RATINGS
from tacit.curator.nx_map import NXMap, checked_options
from tacit.curator.slate_account import SlateAccount
from tacit.curator.x_map_parts import Graph, Held, Profile
from tacit.guarantees import ONE_USER, Guarantee, nothing
from tacit.mechanisms import Noise
from tacit.mechanisms.published_x_map import PAGE, PublishedReplacement
from tacit.mechanisms.published_x_map_items import PublishedSimilarItems, published_similar_items
from tacit.models.cross_domain.temporal import decay

if TYPE_CHECKING:
    from tacit.curator.cross_domain import Transfers

REASONS = tuple(sorted(PublishedReplacement().guarantee.assumes | PublishedSimilarItems().guarantee.assumes))
PUBLISHED: Guarantee = nothing(ONE_USER, REASONS[0], proof=PAGE).assuming(*REASONS[1:])


class PublishedXMap(NXMap):
    """As ``NXMap``, with the published noise. The base of a prediction is the item's mean, as published."""

    def __init__(
        self,
        held: Held,
        graph: Graph,
        replacement: PublishedReplacement,
        similar_items: PublishedSimilarItems,
        noise: Noise,
        *,
        alpha: float = 0.03,
    ) -> None:
        self._replacement, self._similar, self._noise = replacement, similar_items, noise
        self._drawn: dict[int, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}
        self._lock = Lock()
        super().__init__(
            held, graph, PUBLISHED, k=similar_items.k, similar="static", base="item", alpha=alpha, shrink=0.0
        )
        self._alpha, self._target = alpha, held.table[:, held.n_source :]

    def _replaced(self, graph: Graph) -> NDArray[np.integer[Any]]:
        found = graph.x_sim(self._held.table, self._held.n_source)
        return self._replacement.release(found.values, self._noise).value

    def _predicted(self, own: Profile, wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        ego, means = own.ego(self._codes), self._items.means
        rated, values = ego.values.indices, ego.values.data
        found = means[wanted].copy()
        for place, (items, cosine) in enumerate(self._similar_to(wanted)):
            _, chosen, at = np.intersect1d(items, rated, assume_unique=True, return_indices=True)
            if not chosen.size:
                continue
            times = None if ego.times is None else ego.times[at]
            weight = cosine[chosen] * decay(np.zeros(at.size, dtype=np.int64), times, self._alpha)
            total = np.abs(weight).sum()
            if total > 0.0:
                found[place] += float(weight @ (values[at] - means[rated[at]]) / total)
        return np.clip(found, *self._held.bounds)

    def _similar_to(self, wanted: NDArray[np.int64]) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        """The similar items of each and their noisy similarities, drawn when first asked for."""
        with self._lock:
            new = np.array([item for item in np.unique(wanted).tolist() if item not in self._drawn], dtype=np.int64)
            if new.size:
                drawn = published_similar_items(self._target, self._similar, new, self._noise).value
                for item, items, cosine in zip(new.tolist(), drawn.items, drawn.cosine, strict=True):
                    known = items >= 0
                    self._drawn[item] = (items[known], cosine[known])
            return [self._drawn[item] for item in wanted.tolist()]


def release(
    transfers: "Transfers",
    account: SlateAccount,
    asked: Asked,
    noise: Noise,
    *,
    replacement_epsilon: float = 0.3,
    kept: int | None = 10,
    similar_epsilon: float = 0.8,
    rho: float = 0.1,
    k: int = 50,
    alpha: float = 0.03,
    significant: int = 50,
    edges: int = 10,
    least: int = LEAST_RATINGS,
) -> PublishedXMap:
    """With the paper's own parameters, which the ledger's epsilon has nothing to do with: it is noted as what promises nothing, and
    refused there unless 'published' is named in ``unprotected``."""
    graph = Graph(significant, edges, "signed", least)
    replacement = PublishedReplacement(positive("replacement_epsilon", replacement_epsilon), kept)
    similar_items = PublishedSimilarItems(k, positive("similar_epsilon", similar_epsilon), rho)
    checked_options(k, "static", "item", alpha, 0.0)
    domains = transfers.domains
    charge_unprotected(account, asked, Mode.PUBLISHED, PUBLISHED, transfers.name)
    return PublishedXMap(Held.of(domains, least), graph, replacement, similar_items, noise, alpha=alpha)
