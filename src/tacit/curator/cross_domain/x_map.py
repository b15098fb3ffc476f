"""The systems of the X-Map paper: mode 'prs_valid', which is private, and modes 'published' and 'nx', which promise nothing.

All of them join items by a `Graph` of the people who rated both, and carry a profile from the source to the target item by item.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive, whole
from tacit.curator.account import CuratorAccount, RequestDigest
from tacit.curator.cross_domain.domains import (
    SERVED,
    Domains,
    ReleaseRequest,
    charge_unprotected,
    in_units,
    shared_scale,
    union,
)
from tacit.data.catalogue import Catalogue
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import MISSING_TIME, Scale
from tacit.errors import InvalidInput, InvalidParameter, UnknownName
from tacit.guarantees import ONE_USER, Guarantee, Release, nothing
from tacit.guarantees.arithmetic import down, sqrt_down
from tacit.guarantees.concentrated import UNITS, epsilon_within, rho_within
from tacit.guarantees.guarantee import rho_exactly
from tacit.ledger import Accounting
from tacit.mechanisms import Noise, PrivateReplacement
from tacit.mechanisms.x_map import PAGE, PublishedReplacement, PublishedSimilarItems, published_similar_items
from tacit.messages.cross_domain import Replacements
from tacit.messages.items import index_of, indices_of, known_ratings
from tacit.models.cross_domain.alter_egos import AlterEgos, alter_egos, decay, item_based, mean_of, replacements
from tacit.models.cross_domain.edges import checked_order
from tacit.models.cross_domain.similarities import streamed
from tacit.models.cross_domain.transfer import LEAST_RATINGS
from tacit.models.cross_domain.x_sim import XSim, x_sim

Order = Literal["signed", "absolute"]
Base = Literal["user", "item"]

NOT_THE_RECOMMENDER = "a recommender that is fitted to ratings of the target has a guarantee of its own"
PLAIN_REASONS = ("NX-Map has no noise: replacements and predictions are computed from ratings as they are",)
NX = nothing(ONE_USER, PLAIN_REASONS[0])
PUBLISHED_REASONS = tuple(sorted(PublishedReplacement().guarantee.assumes | PublishedSimilarItems().guarantee.assumes))
PUBLISHED: Guarantee = nothing(ONE_USER, PUBLISHED_REASONS[0], proof=PAGE).assuming(*PUBLISHED_REASONS[1:])
NOBODY_IN_BOTH = (
    "nobody rated in both domains, so no path leads from an item of the source to one of the target: no item has a replacement, "
    "and every prediction is its base, the mean of the item, moved by how high the user rates unless base='item'."
)
_CODE = 12  # bytes of an item's code in a list, at most, with its comma


@dataclass(frozen=True, slots=True)
class Graph:
    """How items are joined, by public constants.

    ``significant`` co-raters make a cosine count fully (0: always). Each item keeps its ``edges`` best edges towards the other
    domain, ordered ``by`` the signed or the absolute value. Users with fewer than ``least`` ratings in a domain do not count there.
    The ledger names releases by a digest of the ``repr`` of this class: keep it as it is.
    """

    significant: int = 50
    edges: int = 10
    by: Order = "signed"
    least: int = LEAST_RATINGS

    def __post_init__(self) -> None:
        keep(
            self,
            significant=whole("significant", self.significant, least=0),
            edges=whole("edges", self.edges, least=1),
            by=checked_order(self.by),
            least=whole("least", self.least, least=1),
        )

    def x_sim(self, table: sparse.csr_array, n_source: int) -> XSim:
        """X-SIM of all source and target items that a path joins; empty if nobody rated in both domains."""
        _, legs = streamed(table, n_source, self.edges, by=self.by, shrink=self.significant)
        return x_sim(legs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidReplacements:
    """Mode 'prs_valid': for each of ``sources`` one target item among ``candidates``, by the exponential mechanism on X-SIM.

    Both are public lists; by default, all listed items of the source and of the target. All draws together cost epsilon, because
    somebody who sees several alter egos sees several draws. Short lists leave more of it to each draw: at epsilon 10 each, a best
    item that scores 1 is drawn with probability .58 among ten candidates, and .01 among a thousand.
    """

    name: ClassVar[str] = "prs_valid"

    sources: Sequence[Any] | None = None
    candidates: Sequence[Any] | None = None
    significant: int = 50
    edges: int = 10
    by: Order = "signed"
    least: int = LEAST_RATINGS

    def release(self, domains: Domains, account: CuratorAccount, request: ReleaseRequest, noise: Noise) -> Replacements:
        """Plan, promise, room, then the release."""
        domains.require_rows()  # X-SIM needs the rows themselves
        listed, graph = domains.listed, Graph(self.significant, self.edges, self.by, self.least)
        sources = _codes_of("sources", self.sources, listed.source)
        candidates = _codes_of("candidates", self.candidates, listed.target)
        mechanism = affordable(candidates.size, sources.size, request, account.terms.accounting, pure=not account.delta)
        guarantee = account.promise(mechanism.guarantee, (*listed.assumed, SERVED, NOT_THE_RECOMMENDER))
        account.require_size(listed.id_bytes + _CODE * sources.size, guarantee)
        digest = account.digest(
            self.name, mechanism, graph, listed.digest, sources.tobytes().hex(), candidates.tobytes().hex()
        )
        ids = tuple(listed.source.ids[sources].tolist()), tuple(listed.target.ids[candidates].tolist())
        bounds = (listed.scale.low, listed.scale.high)

        def draw() -> Release[Any]:
            scores = graph.x_sim(listed.read(self.least), listed.n_source).values[sources][:, candidates]
            return mechanism.release(scores, noise)

        def message(release: Release[Any]) -> Replacements:
            return Replacements.from_release(release, *ids, bounds)

        release_id = request.release_id(self.name, digest)
        kept = account.release_message(release_id, RequestDigest(digest), guarantee, draw=draw, message=message)
        return Replacements.from_json(kept)


def affordable(
    candidates: int, draws: int, request: ReleaseRequest, accounting: Accounting, *, pure: bool = False
) -> PrivateReplacement:
    """Draws that together cost no more than the request under this accounting; with ``pure``, without a delta.

    Under zCDP, a pure epsilon may cost more than it is worth at the delta. The draws then get equal shares of rho, and the
    guarantee states their plain sum beside it.
    """
    if accounting is not Accounting.ZCDP:
        epsilon, delta = in_units(request.epsilon, request.delta)
        return PrivateReplacement(candidates, draws, epsilon, 0.0 if pure else delta)
    mechanism = PrivateReplacement(candidates, draws, epsilon_within(request.epsilon, request.delta), request.delta)
    allowed, rho = rho_within(request.epsilon, request.delta), rho_exactly(mechanism.guarantee)
    half_a_unit = Fraction(1, 2 * UNITS)  # both sides are about that much below what the budget holds
    if rho is not None and rho <= allowed + half_a_unit:
        return mechanism
    each = sqrt_down(8 * allowed / draws)
    return PrivateReplacement(candidates, draws, down(draws * Fraction(each)))


@dataclass(frozen=True, eq=False, repr=False)
class UnionTable:
    """The ratings of both domains as one table, with catalogues and scale. Private, as the ratings are."""

    source: Catalogue
    target: Catalogue
    scale: Scale
    table: sparse.csr_array
    times: NDArray[np.int64] | None

    @classmethod
    def of(cls, domains: TwoDomains, least: int) -> "UnionTable":
        scale = shared_scale(domains)
        return cls(domains.source.catalogue, domains.target.catalogue, scale, *union(domains, least))

    @property
    def n_source(self) -> int:
        return len(self.source)

    @cached_property
    def codes(self) -> dict[Any, int]:
        """The column of every item of both domains."""
        return {item: code for code, item in enumerate([*self.source.ids.tolist(), *self.target.ids.tolist()])}

    @property
    def bounds(self) -> tuple[float, float]:
        return self.scale.low, min(self.scale.high, sys.float_info.max)

    def means(self) -> tuple[float, float]:
        """The mean of all ratings in the source, and in the target; the middle of the scale if there are none."""
        source, target = self.table[:, : self.n_source], self.table[:, self.n_source :]
        return mean_of(source, self.middle), mean_of(target, self.middle)

    @property
    def middle(self) -> float:
        """The middle of the scale; its low end if it has no other."""
        return self.scale.low if np.isinf(self.scale.high) else 0.5 * self.scale.low + 0.5 * self.scale.high

    def warn_if_apart(self) -> None:
        """Warns if nobody rated in both domains. It depends on the ratings: only modes that promise nothing may do so."""
        counts = np.diff(self.table.indptr)
        rows = np.repeat(np.arange(counts.size), counts)
        first = np.bincount(rows, weights=self.table.indices < self.n_source, minlength=counts.size)
        if not ((first > 0) & (first < counts)).any():
            warnings.warn(NOBODY_IN_BOTH, UserWarning, stacklevel=6)


@dataclass(frozen=True, eq=False, repr=False)
class ProfileRows:
    """One served user's own ratings, as a row of the source and one of the target. Unlisted items are left out."""

    source: sparse.csr_array
    target: sparse.csr_array
    source_times: NDArray[np.int64] | None
    target_times: NDArray[np.int64] | None

    @classmethod
    def of(
        cls, profile: Mapping[Any, float], table: UnionTable, times: Mapping[Any, int] | None = None
    ) -> "ProfileRows":
        codes, values = known_ratings(profile, table.codes, table.bounds)
        known = None
        if times is not None:
            at = _times_by_code(times, table)
            known = np.array([at.get(code, MISSING_TIME) for code in codes.tolist()], dtype=np.int64)
        in_source = codes < table.n_source
        source = _row_of(codes[in_source], values[in_source], len(table.source))
        target = _row_of(codes[~in_source] - table.n_source, values[~in_source], len(table.target))
        if known is None:
            return cls(source, target, None, None)
        return cls(source, target, known[in_source], known[~in_source])

    def ego(self, replacement: NDArray[np.integer[Any]]) -> AlterEgos:
        """The profile rewritten into the target. Ratings that its owner gave there stay, and win."""
        return alter_egos(
            self.source,
            replacement,
            self.target.shape[1],
            times=self.source_times,
            target=self.target,
            target_times=self.target_times,
        )

    def level(self, means: tuple[float, float]) -> float:
        """How far the ratings lie above the mean of their domain, on average; 0 without ratings."""
        above = np.concatenate([self.source.data - means[0], self.target.data - means[1]])
        return float(above.mean()) if above.size else 0.0


class NXMap:
    """NX-Map, the paper's system without noise: replacements, alter egos and predictions for any profile.

    A source item is replaced by the target item most similar to it over paths of items that the same people rated. NX-Map promises
    nothing to those people. It is as private as the ratings, and must stay with their holder; ``repr`` shows sizes only.

    A prediction uses ``k`` similar items of the profile, each rating weighed by its age (``alpha``), with ``shrink`` in the
    denominator. ``base`` is the prediction without similar items: the item's mean, for "user" moved by how high the user rates.
    """

    def __init__(
        self,
        table: UnionTable,
        graph: Graph,
        guarantee: Guarantee = NX,
        *,
        k: int = 50,
        similar: str = "rated",
        base: Base = "user",
        alpha: float = 0.03,
        shrink: float = 0.2,
    ) -> None:
        self.guarantee, self._table = guarantee, table
        self._options = {"k": k, "similar": similar, "alpha": alpha, "shrink": shrink}
        self._by_user, self._means = base == "user", table.means()
        table.warn_if_apart()
        self._codes = self._find_replacements(graph)
        self._items = item_based(table.table[:, table.n_source :], graph.significant, otherwise=table.middle)

    def _find_replacements(self, graph: Graph) -> NDArray[np.integer[Any]]:
        """The code of a target item for each source item, or -1."""
        return replacements(graph.x_sim(self._table.table, self._table.n_source))

    def __repr__(self) -> str:
        source, target = len(self._table.source), len(self._table.target)
        return f"{type(self).__name__}({source:,} source items, {target:,} target items; {self.guarantee})"

    @property
    def replacements(self) -> dict[Any, Any]:
        """The target item that replaces each source item; source items without one are left out."""
        source, target = self._table.source.ids, self._table.target.ids
        mapped = np.flatnonzero(self._codes >= 0)
        return dict(zip(source[mapped].tolist(), target[self._codes[mapped]].tolist(), strict=True))

    def alter_ego(self, profile: Mapping[Any, float], times: Mapping[Any, int] | None = None) -> dict[Any, float]:
        """The profile rewritten into the target: the mean of source items with the same replacement; own target ratings win."""
        values = ProfileRows.of(profile, self._table, times).ego(self._codes).values
        return dict(zip(self._table.target.ids[values.indices].tolist(), values.data.tolist(), strict=True))

    def predict(
        self,
        profile: Mapping[Any, float],
        items: Sequence[Any] | None = None,
        times: Mapping[Any, int] | None = None,
    ) -> dict[Any, float]:
        """Predicted ratings of these target items (by default all), on the scale, not rounded."""
        own, wanted = ProfileRows.of(profile, self._table, times), target_codes(items, self._table)
        predicted = self._predict_codes(own, wanted)
        return dict(zip(self._table.target.ids[wanted].tolist(), predicted.tolist(), strict=True))

    def recommend(self, profile: Mapping[Any, float], k: int = 10) -> tuple[Any, ...]:
        """The k target items of largest prediction that are not in the profile."""
        rated = ProfileRows.of(profile, self._table).target.indices
        return best(self.predict(profile), self._table.target.ids[rated], k)

    def _predict_codes(self, own: ProfileRows, wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        level = np.array([own.level(self._means)]) if self._by_user else None
        users = np.zeros(wanted.size, dtype=np.int64)
        return self._items.predict(
            own.ego(self._codes),
            users,
            wanted,
            self._table.bounds,
            level=level,
            **self._options,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Mode 'nx': an `NXMap`. The ledger notes a release without a promise, and refuses it unless ``unprotected`` names 'nx'."""

    name: ClassVar[str] = "nx"

    k: int = 50
    similar: str = "rated"
    base: Base = "user"
    alpha: float = 0.03
    shrink: float = 0.2
    significant: int = 50
    edges: int = 10
    by: Order = "signed"
    least: int = LEAST_RATINGS

    def __post_init__(self) -> None:
        if self.similar not in ("rated", "static") or self.base not in ("user", "item"):
            raise InvalidParameter("similar must be 'rated' or 'static', and base 'user' or 'item'.")
        if finite("shrink", self.shrink) < 0.0:
            raise InvalidParameter("alpha and shrink must be at least 0.")
        keep(self, k=whole("k", self.k, least=1), alpha=_checked_alpha(self.alpha))

    def release(self, domains: Domains, account: CuratorAccount, request: ReleaseRequest, noise: Noise) -> NXMap:
        """The map, once the ledger has noted it."""
        graph = Graph(self.significant, self.edges, self.by, self.least)
        rows = domains.rows
        charge_unprotected(account, request, self.name, NX, domains.name)
        table = UnionTable.of(rows, self.least)
        return NXMap(table, graph, k=self.k, similar=self.similar, base=self.base, alpha=self.alpha, shrink=self.shrink)


class PublishedXMap(NXMap):
    """X-Map as published: an `NXMap` with the paper's noise, for comparison. It promises nothing, and must stay inside.

    Replacements are drawn among items that the ratings decide (PRS); similar items are drawn and their similarities get noise
    (PNSA, PNCF) by a sensitivity that the ratings decide. The base of a prediction is the item's mean, as published. Everything is
    drawn once and kept: a second draw would cost another epsilon, even by the paper's count.
    """

    def __init__(
        self,
        table: UnionTable,
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
            table, graph, PUBLISHED, k=similar_items.k, similar="static", base="item", alpha=alpha, shrink=0.0
        )
        self._alpha, self._target = alpha, table.table[:, table.n_source :]

    def _find_replacements(self, graph: Graph) -> NDArray[np.integer[Any]]:
        similarity = graph.x_sim(self._table.table, self._table.n_source)
        return self._replacement.release(similarity.values, self._noise).value

    def _predict_codes(self, own: ProfileRows, wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        ego, means = own.ego(self._codes), self._items.means
        rated, values = ego.values.indices, ego.values.data
        predicted = means[wanted].copy()
        for index, (items, cosine) in enumerate(self._similar_to(wanted)):
            _, chosen, at = np.intersect1d(items, rated, assume_unique=True, return_indices=True)
            if not chosen.size:
                continue
            times = None if ego.times is None else ego.times[at]
            weight = cosine[chosen] * decay(np.zeros(at.size, dtype=np.int64), times, self._alpha)
            total = np.abs(weight).sum()
            if total > 0.0:
                predicted[index] += float(weight @ (values[at] - means[rated[at]]) / total)
        return np.clip(predicted, *self._table.bounds)

    def _similar_to(self, wanted: NDArray[np.int64]) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        """The similar items of each item and their noisy similarities, drawn when first needed."""
        with self._lock:
            new = np.array([item for item in np.unique(wanted).tolist() if item not in self._drawn], dtype=np.int64)
            if new.size:
                drawn = published_similar_items(self._target, self._similar, new, self._noise).value
                for item, items, cosine in zip(new.tolist(), drawn.items, drawn.cosine, strict=True):
                    known = items >= 0
                    self._drawn[item] = (items[known], cosine[known])
            return [self._drawn[item] for item in wanted.tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Mode 'published': a `PublishedXMap` with the paper's own parameters, which the ledger's epsilon does not cover.

    The ledger notes a release without a promise, and refuses it unless ``unprotected`` names 'published'.
    """

    name: ClassVar[str] = "published"

    replacement_epsilon: float = 0.3
    kept: int | None = 10
    similar_epsilon: float = 0.8
    rho: float = 0.1
    k: int = 50
    alpha: float = 0.03
    significant: int = 50
    edges: int = 10
    least: int = LEAST_RATINGS

    def __post_init__(self) -> None:
        keep(
            self,
            replacement_epsilon=positive("replacement_epsilon", self.replacement_epsilon),
            similar_epsilon=positive("similar_epsilon", self.similar_epsilon),
            k=whole("k", self.k, least=1),
            alpha=_checked_alpha(self.alpha),
        )

    def release(
        self, domains: Domains, account: CuratorAccount, request: ReleaseRequest, noise: Noise
    ) -> PublishedXMap:
        """The map, once the ledger has noted it."""
        graph = Graph(self.significant, self.edges, "signed", self.least)
        replacement = PublishedReplacement(self.replacement_epsilon, self.kept)
        similar_items = PublishedSimilarItems(self.k, self.similar_epsilon, self.rho)
        rows = domains.rows
        charge_unprotected(account, request, self.name, PUBLISHED, domains.name)
        table = UnionTable.of(rows, self.least)
        return PublishedXMap(table, graph, replacement, similar_items, noise, alpha=self.alpha)


def target_codes(items: Any, table: UnionTable) -> NDArray[np.int64]:
    """The codes of these target items; of all target items for None."""
    if items is None:
        return np.arange(len(table.target))
    codes = indices_of(items, table.codes)[1] - table.n_source
    if (codes < 0).any():
        raise UnknownName("one of these items is in the source: only items of the target are predicted.")
    return codes


def best(predicted: Mapping[Any, float], rated: NDArray[Any], k: int) -> tuple[Any, ...]:
    """The k items of largest prediction that are not ``rated``; of equal predictions, the first in the catalogue."""
    k, known = whole("k", k, least=1), set(rated.tolist())
    fresh = [item for item in predicted if item not in known]
    return tuple(sorted(fresh, key=lambda item: -predicted[item])[:k])


def _codes_of(name: str, items: Sequence[Any] | None, catalogue: Catalogue) -> NDArray[np.int64]:
    """The codes of a public part of the items, ascending; of all items for None. 17 and "17" are the same item."""
    if items is None:
        return np.arange(len(catalogue))
    try:
        named = None if isinstance(items, str | bytes) else list(items)
    except TypeError:
        named = None
    if named is None:
        raise InvalidParameter(f"`{name}` must be a list of items.")
    known = {item: code for code, item in enumerate(catalogue.ids.tolist())}
    looked_up = [(index_of(item, known), item) for item in named]
    codes = [catalogue.code(item) if code is None else code for code, item in looked_up]
    if not codes:
        raise InvalidParameter(f"`{name}` must name at least one item.")
    return np.unique(np.array(codes, dtype=np.int64))


def _times_by_code(times: Mapping[Any, int], table: UnionTable) -> dict[int, int]:
    """Times by the columns of their items. Unlisted items are left out."""
    if not isinstance(times, Mapping):
        raise InvalidInput("times must be a mapping from item to a whole number of seconds since 1970.")
    known: dict[int, int] = {}
    for item, time in times.items():
        code = index_of(item, table.codes)
        if code is None:
            continue
        if not isinstance(time, int | np.integer) or isinstance(time, bool) or not MISSING_TIME <= time < 2**62:
            raise InvalidInput(
                "every time of a profile must be a whole number of seconds since 1970, and one is not: correct it, or leave its "
                "item out."
            )
        known[code] = int(time)
    return known


def _row_of(codes: NDArray[np.int64], values: NDArray[np.float64], size: int) -> sparse.csr_array:
    return sparse.csr_array((values, codes, np.array([0, codes.size])), shape=(1, size))


def _checked_alpha(alpha: float) -> float:
    if finite("alpha", alpha) < 0.0:
        raise InvalidParameter("alpha and shrink must be at least 0.")
    return alpha
