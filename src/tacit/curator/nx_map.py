"""NX-Map: the paper's system without noise. A source item is replaced by the target item most similar to it over paths of items
that the same people rated. It promises nothing to those people, and stays with whoever holds their ratings.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, whole
from tacit.curator.cross_domain_modes import Asked, Mode, charge_unprotected
from tacit.curator.cross_domain_rows import LEAST_RATINGS
from tacit.curator.slate_account import SlateAccount
from tacit.curator.x_map_parts import Graph, Held, Profile, best, wanted_codes
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, nothing
from tacit.mechanisms import Noise
from tacit.models.cross_domain.alter_egos import replacements
from tacit.models.cross_domain.item_based import item_based

if TYPE_CHECKING:
    from tacit.curator.cross_domain import Transfers

REASONS = ("NX-Map has no noise: replacements and predictions are computed from ratings as they are",)
NX = nothing(ONE_USER, REASONS[0])
Base = Literal["user", "item"]


class NXMap:
    """Replacements, alter egos and predictions for anybody's profile. Private as the ratings behind it: ``repr`` shows sizes only.

    ``k`` similar items of a profile make a prediction, each rating weighed by its age (``alpha``); ``shrink`` stands in the
    denominator. ``base`` is what is predicted without any: the item's mean, moved by how high the user rates, or not.
    """

    def __init__(
        self,
        held: Held,
        graph: Graph,
        guarantee: Guarantee = NX,
        *,
        k: int = 50,
        similar: str = "rated",
        base: Base = "user",
        alpha: float = 0.03,
        shrink: float = 0.2,
    ) -> None:
        self.guarantee, self._held = guarantee, held
        self._options = {"k": k, "similar": similar, "alpha": alpha, "shrink": shrink}
        self._by_user, self._means = base == "user", held.means()
        held.warn_if_apart()
        self._codes = self._replaced(graph)
        self._items = item_based(held.table[:, held.n_source :], graph.significant, otherwise=held.middle)

    def _replaced(self, graph: Graph) -> NDArray[np.integer[Any]]:
        """For each source item a target item, or -1."""
        return replacements(graph.x_sim(self._held.table, self._held.n_source))

    def __repr__(self) -> str:
        source, target = len(self._held.source), len(self._held.target)
        return f"{type(self).__name__}({source:,} source items, {target:,} target items; {self.guarantee})"

    @property
    def replacements(self) -> dict[Any, Any]:
        """The target item that stands in for each source item that has one."""
        held = self._held
        mapped = np.flatnonzero(self._codes >= 0)
        pairs = zip(held.source.ids[mapped].tolist(), held.target.ids[self._codes[mapped]].tolist(), strict=True)
        return dict(pairs)

    def alter_ego(self, profile: Mapping[Any, float], times: Mapping[Any, int] | None = None) -> dict[Any, float]:
        """The profile rewritten into the target: of several source items with one image the mean; own target ratings win."""
        values = Profile.of(profile, self._held, times).ego(self._codes).values
        return dict(zip(self._held.target.ids[values.indices].tolist(), values.data.tolist(), strict=True))

    def predict(
        self,
        profile: Mapping[Any, float],
        items: Sequence[Any] | None = None,
        times: Mapping[Any, int] | None = None,
    ) -> dict[Any, float]:
        """What the profile's owner would rate these target items (by default all), on the scale, not rounded."""
        own, wanted = Profile.of(profile, self._held, times), wanted_codes(items, self._held)
        found = self._predicted(own, wanted)
        return dict(zip(self._held.target.ids[wanted].tolist(), found.tolist(), strict=True))

    def recommend(self, profile: Mapping[Any, float], k: int = 10) -> tuple[Any, ...]:
        """The k target items of largest prediction that are not in the profile."""
        rated = Profile.of(profile, self._held).target.indices
        return best(self.predict(profile), self._held.target.ids[rated], k)

    def _predicted(self, own: Profile, wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        level = np.array([own.level(self._means)]) if self._by_user else None
        users = np.zeros(wanted.size, dtype=np.int64)
        return self._items.predict(
            own.ego(self._codes),
            users,
            wanted,
            self._held.bounds,
            level=level,
            **self._options,  # type: ignore[arg-type]
        )


def release(
    transfers: "Transfers",
    account: SlateAccount,
    asked: Asked,
    noise: Noise,
    *,
    k: int = 50,
    similar: str = "rated",
    base: Base = "user",
    alpha: float = 0.03,
    shrink: float = 0.2,
    significant: int = 50,
    edges: int = 10,
    by: Literal["signed", "absolute"] = "signed",
    least: int = LEAST_RATINGS,
) -> NXMap:
    """Noted in the ledger as a release that promises nothing, and refused there unless 'nx' is named in ``unprotected``."""
    graph = Graph(significant, edges, by, least)
    options = checked_options(k, similar, base, alpha, shrink)
    domains = transfers.domains
    charge_unprotected(account, asked, Mode.NX, NX, transfers.name)
    return NXMap(Held.of(domains, least), graph, **options)


def checked_options(k: int, similar: str, base: str, alpha: float, shrink: float) -> dict[str, Any]:
    """Refused before anything is noted or read."""
    if similar not in ("rated", "static") or base not in ("user", "item"):
        raise InvalidParameter("similar must be 'rated' or 'static', and base 'user' or 'item'.")
    if finite("alpha", alpha) < 0.0 or finite("shrink", shrink) < 0.0:
        raise InvalidParameter("alpha and shrink must be at least 0.")
    return {"k": whole("k", k, least=1), "similar": similar, "base": base, "alpha": alpha, "shrink": shrink}
