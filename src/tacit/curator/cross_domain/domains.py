"""Two domains as a curator holds them: public lists of items, one table of all ratings, and the budget of one release.

`Domains` takes what the caller has, `BothDomains` is what private modes may use: lists and scale are public and known at once;
ratings are read when ``read`` is called, after the charge. All items have one coding, the source first, and each person one row.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import positive, probability, whole
from tacit.curator.account import CuratorAccount, require_ids
from tacit.curator.fit import RATED_AT_ALL
from tacit.data.catalogue import Catalogue, code_of
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import MISSING_TIME, Ratings, Scale
from tacit.errors import GuaranteeRefused, InvalidData, InvalidParameter, UnknownName
from tacit.guarantees import Guarantee, epsilon_of_gaussian, mu_for
from tacit.guarantees.arithmetic import sqrt_down
from tacit.guarantees.concentrated import rho_within
from tacit.ledger import Accounting
from tacit.ledger.budgets import DELTA_DIGITS, MEASURES, shown, units_down
from tacit.messages.cross_domain import LARGEST

RatingsPair: TypeAlias = TwoDomains | tuple[Ratings, Ratings]  # two sets of ratings share the users with equal ids
Catalogues: TypeAlias = tuple[Sequence[Any], Sequence[Any]]
Rows: TypeAlias = Any  # a csr_array of users x items, or an object with ``totals(of)`` that adds such rows up elsewhere

PUBLIC = "the lists of items and all settings are public"
SERVED = "what a served user sees is computed from the release and her own ratings alone"


@dataclass(frozen=True, eq=False, repr=False)
class BothDomains:
    """Two domains over public lists of items. Catalogues, scale and name are public; what ``read`` returns is private.

    ``read(least)`` is called only after the charge. It returns the rows of users with at least ``least`` ratings in a domain, over
    the source's items and then the target's: a csr_array, or an object with ``totals(of)`` that adds up rows on another machine.
    """

    source: Catalogue
    target: Catalogue
    scale: Scale
    read: Callable[[int], Rows] = field(repr=False)
    name: str  # of these ratings: other ratings have another name
    assumed: tuple[str, ...] = ()
    people: str = ""  # what the ledger calls their users; by default, the name

    def __post_init__(self) -> None:
        for catalogue, side in ((self.source, "source"), (self.target, "target")):
            if not len(catalogue):
                raise InvalidParameter(f"the {side} has no listed items.")
            require_ids(catalogue, f"the {side}'s items")
        if np.isin(self.source.ids.astype(str), self.target.ids.astype(str)).any():
            raise InvalidParameter("an item is in both domains; each must be in one.")
        if (self.source.ids.dtype.kind == "U") != (self.target.ids.dtype.kind == "U"):
            raise InvalidParameter(
                "one domain names its items by whole numbers, the other by texts: name all by texts."
            )
        if math.isinf(self.scale.high):
            raise InvalidParameter(
                f"ratings on the scale {self.scale} have no upper bound, so no noise can hide one of them: state a scale with two "
                "ends when you read them, Scale(low, high); outside='clip' moves ratings that lie outside."
            )
        if max(abs(self.scale.low), abs(self.scale.high)) > LARGEST:
            raise InvalidParameter(f"ratings must lie within {LARGEST:g} of 0: give them in another unit.")

    def __repr__(self) -> str:
        return f"BothDomains({self.name!r}: {len(self.source):,} and {len(self.target):,} items)"

    @property
    def n_source(self) -> int:
        """How many items the source domain has."""
        return len(self.source)

    @property
    def n_items(self) -> int:
        """How many items both domains have together."""
        return len(self.source) + len(self.target)

    @cached_property
    def digest(self) -> str:
        """A digest of both lists of items, of their order, and of the scale."""
        parts = [self.source.ids.tolist(), self.target.ids.tolist(), self.scale.low, self.scale.high]
        return sha256(json.dumps(parts).encode()).hexdigest()

    @cached_property
    def id_bytes(self) -> int:
        """The length of all ids in a message, with their commas."""
        ids = [*self.source.ids.tolist(), *self.target.ids.tolist()]
        return sum(len(json.dumps(item)) + 1 for item in ids)

    @classmethod
    def of(
        cls,
        domains: RatingsPair,
        *,
        catalogues: Catalogues | None = None,
        public_catalogue: bool = False,
    ) -> "BothDomains":
        """The listed items of two sets of ratings. Unlisted items are left out, with their ratings.

        ``catalogues`` are public lists of the source's and the target's items. They replace the lists that came with the ratings,
        and releases show ids as they are written there. A domain without any list raises InvalidParameter, unless
        ``public_catalogue`` says that its rated items are public; the guarantee then lists this as an assumption.
        """
        scale = shared_scale(domains)
        if catalogues is None:
            lists = [listed_part(part.catalogue) for part in pair_of(domains)]
        else:
            if not isinstance(catalogues, tuple | list) or len(catalogues) != 2:
                raise InvalidParameter("catalogues are two lists of ids: (source_items, target_items).")
            lists = [public_list(ids) for ids in catalogues]
        without = [f"the {side}" for side, known in zip(("source", "target"), lists, strict=True) if known is None]
        if without and not public_catalogue:
            raise InvalidParameter(
                f"{' and '.join(without)} came without a list of items, and which items were rated at all is private. Give public "
                "lists, catalogues=(source_items, target_items); or, if the rated items are public, public_catalogue=True: the "
                "guarantee then lists this as an assumption."
            )
        source, target = (known or part.catalogue for known, part in zip(lists, pair_of(domains), strict=True))

        def read(least: int) -> sparse.csr_array:
            return union(restrict_both(domains, source, target), least)[0]

        assumed = (RATED_AT_ALL,) if without else ()
        return cls(source, target, scale, read, name_of(domains), assumed, people_of(domains))


class Domains:
    """The two domains that a curator holds. ``pair`` is None if the ratings lie elsewhere and only totals of them come here."""

    def __init__(
        self,
        name: str,
        people: str,
        pair: RatingsPair | None,
        listed: BothDomains | None = None,
        *,
        catalogues: Catalogues | None = None,
        public_catalogue: bool = False,
    ) -> None:
        self.name, self.people, self._pair, self._listed = name, people, pair, listed
        self._catalogues, self._public = catalogues, public_catalogue

    @classmethod
    def of(
        cls, source: object, target: object, *, catalogues: Catalogues | None = None, public_catalogue: bool = False
    ) -> "Domains":
        """The domains of two sets of ratings that share the users with equal ids, of TwoDomains, or of totals elsewhere."""
        pair: RatingsPair | None = None
        if isinstance(source, Ratings) and isinstance(target, Ratings):
            pair = source, target
        elif isinstance(source, TwoDomains) and target is None:
            pair = source
        if pair is not None:
            shared_scale(pair)  # raises at once, whatever will be released
            if catalogues is None:
                require_apart(pair)
            return cls(name_of(pair), people_of(pair), pair, catalogues=catalogues, public_catalogue=public_catalogue)
        if isinstance(source, BothDomains) and target is None:
            if catalogues is not None or public_catalogue:
                raise InvalidParameter(
                    "these domains have their catalogues: leave `catalogues` and `public_catalogue` out."
                )
            return cls(source.name, source.people or source.name, None, source)
        raise InvalidParameter(
            "a curator holds Ratings, tacit.data.load('movielens-small'); or two of them, "
            "Curator(source, target, ledger='curator.db'); or TwoDomains, Curator(domains, ledger='curator.db')."
        )

    def __repr__(self) -> str:
        return f"{self.name!r}: two domains"

    def title(self, item: Any) -> str:
        """The title of a listed item of either domain; its id if there are no titles."""
        for catalogue in (self.listed.target, self.listed.source):
            code = code_of(catalogue.ids, item)
            if code is not None:
                return catalogue.title(code)
        raise UnknownName(f"no item {item!r} is listed in either of these domains.")

    @cached_property
    def listed(self) -> BothDomains:
        """What private modes release. Raises InvalidParameter if nothing is listed, or if ratings have no bounds."""
        if self._listed is not None:
            return self._listed
        pair = cast(RatingsPair, self._pair)  # `of` gives one of the two
        return BothDomains.of(pair, catalogues=self._catalogues, public_catalogue=self._public)

    def require_rows(self) -> None:
        """Raises InvalidParameter if only totals of the ratings come here."""
        if self._pair is None:
            raise InvalidParameter(
                "these ratings lie elsewhere, and only totals of them come here: use mode 'moments'."
            )

    @cached_property
    def rows(self) -> TwoDomains:
        """The ratings as they are, for modes that promise nothing.

        An item that was rated in both domains raises an error. It reveals something about ratings, so only those modes use this.
        """
        self.require_rows()
        pair = cast(RatingsPair, self._pair)
        return pair if isinstance(pair, TwoDomains) else TwoDomains.align(*pair)


def name_of(domains: RatingsPair) -> str:
    return " and ".join(part.name for part in pair_of(domains))


def people_of(domains: RatingsPair) -> str:
    """Like ``name_of``, in alphabetical order: swapping source and target keeps the users and their budget."""
    return " and ".join(sorted(part.name for part in pair_of(domains)))


def shared_scale(domains: RatingsPair) -> Scale:
    """The scale of both domains. They must agree, because ratings are carried from one to the other as they are."""
    first, second = (part.scale for part in pair_of(domains))
    if (first.low, first.high) != (second.low, second.high):
        raise InvalidParameter(
            f"the source is rated on the scale {first}, the target on {second}: bring the ratings to one scale, and state it when "
            "you read both."
        )
    return first if first == second else first.without_step()


# ---- Public lists of items, and ratings over them.


def pair_of(domains: RatingsPair) -> tuple[Ratings, Ratings]:
    return (domains.source, domains.target) if isinstance(domains, TwoDomains) else domains


def public_list(ids: Sequence[Any]) -> Catalogue:
    """A public list of ids, as they are written there, in ascending order."""
    try:
        each = [] if isinstance(ids, str | bytes) else list(ids)
    except TypeError:  # not a collection
        each = []
    numbers = all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in each)
    texts = all(isinstance(item, str) and not item.endswith("\0") for item in each)  # numpy drops such an end
    if not each or not (numbers or texts):
        raise InvalidParameter(
            "a catalogue is a list of ids, all whole numbers or all texts, at least one; no text ends with a zero character."
        )
    try:
        return Catalogue(np.unique(np.array(each, dtype=np.int64 if numbers else np.str_)))
    except OverflowError:
        raise InvalidParameter(
            "a whole number of a catalogue has no more than 63 bits: write such ids as texts."
        ) from None


def listed_part(catalogue: Catalogue) -> Catalogue | None:
    """The listed part of a catalogue; None if nothing is listed, so that its items are known from ratings alone."""
    named = catalogue.listed
    if named.all():
        return catalogue
    return catalogue.select(np.flatnonzero(named).astype(np.int32)) if named.any() else None


def require_apart(domains: RatingsPair) -> None:
    """Raises InvalidData if both domains list an item.

    A domain without a list is represented by its rated items: nothing is released of it, unless these are public.
    """
    first, second = (listed_part(part.catalogue) or part.catalogue for part in pair_of(domains))
    if np.isin(first.ids.astype(str), second.ids.astype(str)).any():
        raise InvalidData("an item is in both domains; each must be in one.")


def restrict(ratings: Ratings, catalogue: Catalogue) -> Ratings:
    """The same ratings over another list of items; ratings of items that it does not name are left out.

    A list stands by itself: the ratings change neither its items, nor their order, nor what raises an error. Numbers and texts
    are compared as texts, 17 and "17". Readers take ids for whole numbers only if all of them are written the usual way, so
    whether a rating is in the list does not depend on other ratings.
    """
    if catalogue is ratings.catalogue:
        return ratings
    known, wanted = ratings.catalogue.ids, catalogue.ids
    if (known.dtype.kind == "U") != (wanted.dtype.kind == "U"):
        known, wanted = known.astype(str), wanted.astype(str)
    order = np.argsort(wanted, kind="stable")
    position = order[np.minimum(np.searchsorted(wanted, known, sorter=order), order.size - 1)]
    part = ratings.subset((wanted[position] == known)[ratings.items])
    codes = position.astype(np.int32)[part.items]
    rows = np.lexsort((codes, part.users))  # texts and numbers sort differently
    times = None if part.times is None else part.times[rows]
    return replace(part, items=codes[rows], values=part.values[rows], times=times, catalogue=catalogue)


def restrict_both(domains: RatingsPair, source: Catalogue, target: Catalogue) -> TwoDomains:
    """Both domains over public lists without a common item, with the same users in both."""
    first, second = pair_of(domains)
    kept = restrict(first, source), restrict(second, target)
    return TwoDomains(*kept) if isinstance(domains, TwoDomains) else TwoDomains.align(*kept)


# ---- The ratings of both domains as one table.


def union(domains: TwoDomains, least: int = 1) -> tuple[sparse.csr_array, NDArray[np.int64] | None]:
    """One row for each person, the source's items first, and the times beside the values (None if there are no times).

    Rows with the same user id belong to one person. They are merged, and the latest rating of an item counts; otherwise this
    person would count twice. A value that is not finite is no rating. Fewer than ``least`` ratings in a domain are left out.
    """
    least = whole("least", least, least=1)
    parts, n_source = (domains.source, domains.target), domains.source.n_items
    values = np.concatenate([part.values for part in parts]).astype(np.float64)
    items = np.concatenate([parts[0].items.astype(np.int64), parts[1].items.astype(np.int64) + n_source])
    times = None
    if any(part.times is not None for part in parts):
        known = [np.full(len(part), MISSING_TIME) if part.times is None else part.times for part in parts]
        times = np.concatenate(known)
    people, person = np.unique(domains.source.user_ids, return_inverse=True)
    owner = np.concatenate([person[part.users] for part in parts])
    order = _person_order(domains) if people.size == domains.n_users else _merge_order(owner, items, times)
    order = order[np.isfinite(values[order])]
    side = 2 * owner[order] + (items[order] >= n_source)
    order = order[(np.bincount(side, minlength=2 * people.size) >= least)[side]]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner[order], minlength=people.size))])
    shape = (people.size, n_source + domains.target.n_items)
    table = sparse.csr_array((values[order], items[order], starts), shape=shape)
    return table, None if times is None else times[order]


def _person_order(domains: TwoDomains) -> NDArray[np.int64]:
    """The rows of both domains by person and then by item, if no id occurs twice: each domain is in this order already."""
    source, target = domains.source, domains.target
    ids = np.argsort(np.argsort(source.user_ids, kind="stable"), kind="stable")
    if (np.diff(ids) < 0).any():  # people are not in the order of their ids
        owner = np.concatenate([ids[source.users], ids[target.users]])
        return np.argsort(owner, kind="stable")
    positions = [
        np.arange(len(source)) + np.repeat(target.starts[:-1].astype(np.int64), source.counts),
        np.arange(len(target)) + np.repeat(source.starts[1:].astype(np.int64), target.counts),
    ]
    order = np.empty(len(source) + len(target), dtype=np.int64)
    order[np.concatenate(positions)] = np.arange(order.size)
    return order


def _merge_order(owner: NDArray[Any], items: NDArray[Any], times: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The rows by person and then by item.

    Of several ratings of one item by one person, the latest counts; of equal times, the last row.
    """
    keys: tuple[NDArray[Any], ...] = (items, owner) if times is None else (times, items, owner)
    order = np.lexsort(keys)  # stable
    last = np.ones(order.size, dtype=np.bool_)
    last[:-1] = (owner[order[1:]] != owner[order[:-1]]) | (items[order[1:]] != items[order[:-1]])
    return order[last]


# ---- One release: its name in the ledger, and the largest loss that its budget allows.


class ReleaseRequest(NamedTuple):
    """What one release may cost, and the id that the caller gives it (None: its settings name it). Checked."""

    epsilon: float
    delta: float
    request_id: str | None = None

    def release_id(self, mode: str, digest: str) -> str:
        """The name of the release in the ledger. Without an id, the same settings give the same name, and the same release."""
        return f"{mode} {digest[:32] if self.request_id is None else self.request_id}"


def charge_unprotected(
    account: CuratorAccount, request: ReleaseRequest, mode: str, guarantee: Guarantee, name: str
) -> None:
    """Charges a release that promises nothing. Raises GuaranteeRefused unless the terms of the subject allow it by name."""
    release_id = request.release_id(mode, account.digest(mode, name))
    try:
        account.charge(release_id, guarantee)
    except GuaranteeRefused:
        raise GuaranteeRefused(
            f"mode {mode!r} promises nothing to anybody in these ratings, and their terms in this ledger do not allow that. Use "
            "mode 'moments'; or allow it when the ledger first meets these users: "
            f"Curator(..., unprotected=[{mode!r}])."
        ) from None


def in_units(epsilon: float, delta: float) -> tuple[float, float]:
    """Both rounded down to the ledger's units, as it rounds a budget: a budget of 2/3 then holds a charge of 2/3."""
    epsilon_units = units_down(positive("epsilon", epsilon), MEASURES[Accounting.BASIC][1])
    delta_units = units_down(probability("delta", delta), DELTA_DIGITS)
    if epsilon_units < 1 or delta_units < 1:
        raise InvalidParameter("epsilon or delta is too small to be charged: raise it.")
    return float(shown(epsilon_units, MEASURES[Accounting.BASIC][1])), float(shown(delta_units, DELTA_DIGITS))


def mu_within(epsilon: float, delta: float, accounting: Accounting) -> float:
    """The largest Gaussian loss that costs no more than (epsilon, delta) under this accounting.

    Under basic accounting, a release costs its exact epsilon (Balle and Wang, 2018). Under zCDP it costs rho = mu^2 / 2, and the
    conversion of the sum costs more.
    """
    if accounting is Accounting.ZCDP:
        return sqrt_down(2 * rho_within(epsilon, delta))
    epsilon, delta = in_units(epsilon, delta)
    mu = mu_for(epsilon, delta)
    while epsilon_of_gaussian(mu, delta) > epsilon:
        mu *= 1.0 - 1e-15  # mu comes from bisection: an ulp too much would be charged as a whole unit
    return mu
