"""Slates from the likes of one set of ratings: plan (public), promise, room, then a release that is charged, drawn and kept.

`Likes` is the table that mechanisms take: one row for each person, one column for each item of a public list. `Slates` is the part
of a curator that draws from it.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import repeat
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import several
from tacit.curator.account import CuratorAccount, RequestDigest, checked_id, require_ids
from tacit.curator.fit import listed_items
from tacit.curator.private_slates.plan import Plan, Which
from tacit.curator.private_slates.plan import plan as make_plan
from tacit.curator.private_slates.routes import WEIGHED, Columns, Draw, Floats, Route, SetUp
from tacit.data.catalogue import Catalogue, ItemId
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.guarantees import Release
from tacit.mechanisms import Noise
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.models.dpp.laws import Coins, RngCoins, rank_of
from tacit.models.dpp.tempered import ALPHA, from_counts, from_kernel, quality
from tacit.models.features import unit_rows

REQUESTED = "the request's weights are public or the requester's own: others are protected, the requester is not"
_FIXED = {
    "items": "they are those of the catalogue: name a part of them in `among`",
    "rank": "it is that of the features",
    "accounting": "it was agreed with the budget, when the ledger first met these users",
}
_FREE = ("candidates", "likes_each", "most_likes", "route", "sampler", "threshold")
_LARGEST = 1e100  # of features; 1 / 1e100 is the least: squares, and sums of them over all users, are good floats
_WIDEST = 1e100  # of likes_each, and its inverse the least: steps that a message carries, sums that are good floats
_MOST_READY = 16  # set-ups and parts that are kept in memory


@dataclass(frozen=True, eq=False)
class Likes:
    """Who likes what. ``rows`` are private, everything else is public.

    ``like`` is the least rating that counts as a like. ``assumed`` is what must be true for the list of items to be public.
    ``columns`` are the columns of the whole table that this part has; None for all of them.
    """

    catalogue: Catalogue
    features: Floats | None = field(repr=False)
    rows: sparse.csr_array = field(repr=False)
    like: float
    assumed: tuple[str, ...] = ()
    columns: Columns | None = field(default=None, repr=False)

    @classmethod
    def of(cls, ratings: Ratings, like: float, features: ArrayLike | None) -> "Likes":
        """The likes of listed items. An unlisted item is known only because somebody rated it, so it is left out."""
        if not ratings.scale.low <= like <= ratings.scale.high:
            raise InvalidParameter(
                f"like = {like:g} is not on the scale of these ratings, {ratings.scale}: "
                f"{'nothing' if like > ratings.scale.high else 'everything'} would be a like. Give a `like` on the scale."
            )
        listed, assumed = listed_items(ratings)
        if not listed.n_items:
            raise InvalidParameter(f"{ratings.name!r} has no items to make a slate of.")
        require_ids(listed.catalogue, "items")
        # the error counts listed items only: how many more were rated is private
        table = None if features is None else _checked_features(features, listed.n_items)
        table = genre_features(listed.catalogue) if table is None else table
        return cls(listed.catalogue, table, rows_of(listed, like), like, assumed)

    @property
    def ids(self) -> NDArray[Any]:
        return self.catalogue.ids

    @cached_property
    def digest(self) -> str:
        """A digest of the list of items, and of what counts as a like."""
        return sha256(json.dumps([self.like, self.ids.tolist()]).encode()).hexdigest()

    @cached_property
    def features_digest(self) -> str:
        """A digest of the public features."""
        table = np.zeros((0, 0)) if self.features is None else self.features
        return sha256(repr(table.shape).encode() + table.tobytes()).hexdigest()

    @cached_property
    def id_bytes(self) -> NDArray[np.int64]:
        """The length of each id in a message, with its comma, the shortest first."""
        return np.sort(np.array([len(json.dumps(item)) + 1 for item in self.ids.tolist()], dtype=np.int64))

    @cached_property
    def rank(self) -> int:
        """The rank of the public features; 0 if there are none."""
        return 0 if self.features is None else rank_of(self.features)

    def columns_of(self, among: Sequence[ItemId]) -> Columns:
        """The columns of a public part of the items, ascending."""
        columns = np.unique([self.catalogue.code(item) for item in several("`among`", among)]).astype(np.int64)
        if not columns.size:
            raise InvalidParameter("`among` must name at least one item.")
        return columns

    def part(self, columns: Columns) -> "Likes":
        """The same people's likes of these items only."""
        features = None if self.features is None else self.features[columns]
        catalogue = self.catalogue.select(columns.astype(np.int32))
        return Likes(catalogue, features, self.rows[:, columns], self.like, self.assumed, columns)

    def weights(self, request: Mapping[ItemId, float] | ArrayLike) -> Floats:
        """A request as one weight for each item, cut to [0, 1]. Unnamed items and values that are not numbers weigh 0."""
        if isinstance(request, Mapping):
            table = np.zeros(len(self.ids))
            for item, weight in request.items():
                table[self.catalogue.code(item)] = weight if isinstance(weight, (int, float)) else 0.0
        else:
            table = _numbers(request)
        if table.shape != self.ids.shape:
            raise InvalidParameter(
                f"a request must be a mapping from items to weights from 0 to 1, or a list of {len(self.ids):,} weights."
            )
        return np.clip(np.nan_to_num(table, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)


class Slates:
    """The part of a curator that holds one set of ratings."""

    def __init__(self, likes: Likes, account: CuratorAccount, noise: Noise, most_likes: float | None = None) -> None:
        self.likes, self._account, self._noise, self._most_likes = likes, account, noise, most_likes
        self._ready: dict[str, Draw] = {}
        self._parts: dict[bytes, Likes] = {}

    def part(self, among: Sequence[ItemId] | None) -> Likes:
        """The likes of a public part of the items; all likes for None."""
        if among is None:
            return self.likes
        columns = self.likes.columns_of(among)
        key = columns.tobytes()
        part = self._parts.get(key)
        if part is None:  # look up once: another thread may clear the cache at any moment
            part = self.likes.part(columns)
            _remember(self._parts, key, part)
        return part

    def plan(
        self,
        part: Likes,
        k: int,
        epsilon: float,
        slates: int | None,
        *,
        similarity: Which | None = None,
        delta: float | None = None,
        **options: Any,
    ) -> Plan:
        """The plan for these items under the account's terms. Reads no rating, charges nothing."""
        for name in options:
            if name in _FIXED:
                raise InvalidParameter(f"a curator takes no `{name}`: {_FIXED[name]}.")
            if name not in _FREE:
                raise InvalidParameter(f"unknown option {name!r}; further options: {', '.join(_FREE)}.")
        return make_plan(
            k,
            epsilon,
            slates,
            items=len(part.ids),
            similarity=similarity or ("private" if part.features is None else "public"),
            delta=self._account.delta if delta is None else delta,
            rank=part.rank,
            accounting=self._account.terms.accounting,
            **{"most_likes": self._most_likes, **options},
        )

    def draw(
        self, plan: Plan, part: Likes, request: Mapping[ItemId, float] | ArrayLike | None, request_id: str | None
    ) -> Slate:
        """One slate of this plan. Everything wrong raises before the charge; likes are read only after it."""
        if request is not None and plan.route not in WEIGHED:
            allowed = ", ".join(sorted(WEIGHED))
            raise InvalidParameter(f"the route {plan.route.value!r} takes no request; these do: {allowed}.")
        if plan.once:
            seed = self.seed(plan, part, request_id)
            return slate_from(self.release_once(plan, part), plan, part, seed)
        release_id = f"slate {os.urandom(16).hex() if request_id is None else checked_id(request_id)}"
        weights = None if request is None else self.likes.weights(request)
        if weights is not None and part.columns is not None:
            weights = weights[part.columns]
        guarantee = self._account.promise(plan.each, part.assumed if weights is None else (*part.assumed, REQUESTED))
        digest = self._account.digest(
            "slate", plan.route, plan.options, plan.epsilon, part.digest, part.features_digest, weights is not None
        )
        self._account.require_room(part.id_bytes, len(part.ids) if plan.route is Route.SUBSET else plan.k, 0, guarantee)
        ready = self._ready.get(digest) if weights is None else None
        set_up = set_up_slate(plan, part.features, weights) if ready is None else None

        def draw() -> Release[Any]:
            sampler = ready or cast(SetUp, set_up)(part.rows)  # exactly one of them is set
            if weights is None:
                _remember(self._ready, digest, sampler)
            return sampler(self._noise)

        kept = self._account.release_message(
            release_id,
            RequestDigest(digest, b"" if weights is None else weights.tobytes()),
            guarantee,
            draw=draw,
            message=lambda release: Slate.from_release(release, part.ids, plan.route.value),
        )
        return Slate.from_json(kept)

    def release_once(self, plan: Plan, part: Likes, request_id: str | None = None) -> Popularity | Similarity:
        """The counts or the kernel of this plan, now or as released before. Without an id, their digest names them."""
        counts = plan.route is Route.COUNTS
        message = Popularity if counts else Similarity
        guarantee, set_up = self._account.promise(plan.each, part.assumed), plan.set_up(None)
        items = len(part.ids)
        if not 1.0 / _WIDEST <= plan.options.likes_each <= _WIDEST:
            raise InvalidParameter(f"likes_each must lie from {1.0 / _WIDEST:g} to {_WIDEST:g}.")
        self._account.require_room(part.id_bytes, items, items if counts else items * (items + 1) // 2, guarantee)
        digest = self._digest(plan, part)
        kept = self._account.release_message(
            self._release_id(plan, digest, request_id),
            RequestDigest(digest),
            guarantee,
            draw=lambda: set_up(part.rows)(self._noise),
            message=lambda release: message.from_release(release, part.ids),
        )
        return message.from_json(kept)

    def require_left(self, plans: Sequence[Plan]) -> None:
        """Raises BudgetExhausted unless the budget allows all these releases without an id together. Charges nothing.

        Others may take what is left before these are charged.
        """
        ids = [self._release_id(plan, self._digest(plan, self.likes), None) for plan in plans]
        guarantees = [self._account.promise(plan.each, self.likes.assumed) for plan in plans]
        self._account.ledger.require_left(zip(repeat(self._account.subject), ids, guarantees))

    def seed(self, plan: Plan, part: Likes, request_id: str | None) -> str | None:
        """What the slate of this id is drawn from, besides the release; None for the greedy slate."""
        return None if request_id is None else f"{self._digest(plan, part)}\n{checked_id(request_id)}"

    def _release_id(self, plan: Plan, digest: str, request_id: str | None) -> str:
        return f"{_message_name(plan)} {digest[:32] if request_id is None else checked_id(request_id)}"

    def _digest(self, plan: Plan, part: Likes) -> str:
        """Another epsilon, other items or likes are another release. Counts have no delta, and neither release has features."""
        delta = 0.0 if plan.route is Route.COUNTS else plan.delta
        return self._account.digest(_message_name(plan), plan.epsilon, delta, plan.options.likes_each, part.digest)


def slate_from(released: Popularity | Similarity, plan: Plan, part: Likes, seed: str | None) -> Slate:
    """The greedy slate from a release; with a ``seed``, a drawn one, the same for the same release and seed.

    numpy's generator is good enough here: it draws from what is released already, at no cost.
    """
    coins = None
    if seed is not None:
        number = int.from_bytes(sha256(seed.encode()).digest())
        coins = RngCoins(np.random.default_rng(number))
    if isinstance(released, Similarity):
        chosen = from_kernel(released.kernel(), plan.k, coins=coins)
    elif coins is None:
        chosen = from_counts(released.counts(), part.features, plan.k)
    else:
        chosen = draw_from_counts(released.counts(), part, plan.k, coins)
    return Slate.from_message(released, chosen, plan.route.value)


def draw_from_counts(counts: Floats, part: Likes, k: int, coins: Coins) -> Columns:
    """As many items by a k-DPP as the features have directions; any others by quality alone, each e^(alpha q) (Gumbel)."""
    size = min(k, part.rank)
    chosen = from_counts(counts, part.features, size, coins=coins) if size else np.zeros(0, dtype=np.int64)
    keys = ALPHA * quality(counts) - np.log(-np.log(coins.uniforms(len(counts))))
    keys[chosen] = -np.inf
    return np.sort(np.concatenate([chosen, np.argsort(-keys, kind="stable")[: k - size]]))


def set_up_slate(plan: Plan, features: Floats | None, weights: Floats | None) -> SetUp:
    """`Plan.set_up`, with errors about features and requests in words that a curator's caller can act on."""
    if plan.route is not Route.TEMPERED or features is None:
        return plan.set_up(features, weights)
    if weights is not None and rank_of(features * weights[:, None]) < plan.k:
        raise InvalidParameter(
            f"this request leaves too few different items for a tempered slate of {plan.k}: weigh at least {plan.k} items above "
            "0, of different features; or ask for fewer items, or for the route 'natural', which draws from all items."
        )
    try:
        return plan.set_up(features, weights)
    except InvalidParameter as problem:
        cause = "the features are" if weights is None else "the features, weighed by this request, are"
        raise InvalidParameter(
            f"{cause} nearly dependent, and a tempered slate cannot be drawn from them: leave out features that nearly follow from "
            "others, or ask for the route 'counts', 'top-k' or 'natural'."
        ) from problem


def rows_of(ratings: Ratings, like: float) -> sparse.csr_array:
    """1 where a person's rating is at least ``like``, people x items. NaN is not a like.

    Rows with the same user id belong to one person. They are merged before anything is clipped, or this person would count twice.
    """
    liked = np.asarray(ratings.values, dtype=np.float64) >= like  # False for NaN
    shape = (ratings.n_users, ratings.n_items)
    rows = sparse.csr_array((liked.astype(np.float64), ratings.items, ratings.starts), shape=shape, copy=True)
    rows.eliminate_zeros()
    people, person = np.unique(ratings.user_ids, return_inverse=True)
    if people.size < ratings.n_users:
        cells = (person, np.arange(ratings.n_users))
        merge = sparse.csr_array((np.ones(ratings.n_users), cells), shape=(people.size, ratings.n_users))
        rows = sparse.csr_array(merge @ rows)
        rows.data = np.minimum(rows.data, 1.0)
    return rows


def genre_features(catalogue: Catalogue) -> Floats | None:
    """The genres of each item, as rows of length 1. Public."""
    return None if catalogue.genres is None else unit_rows(catalogue.genres)


def _checked_features(features: ArrayLike, items: int) -> Floats:
    table = _numbers(features)
    if table.ndim != 2 or len(table) != items or not table.shape[1] or not np.isfinite(table).all():
        raise InvalidParameter(
            f"features must be {items:,} rows of finite numbers, one for each listed item, in their order."
        )
    size = float(np.abs(table).max())
    if size > _LARGEST or 0.0 < size < 1.0 / _LARGEST:
        raise InvalidParameter(
            f"the largest of the features must lie from {1.0 / _LARGEST:g} to {_LARGEST:g}, or floats cannot multiply them: give "
            "them in another unit."
        )
    return table


def _numbers(values: ArrayLike) -> Floats:
    """``values`` as floats; if they are not numbers, an empty table, which every check refuses."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.zeros((0, 0))


def _message_name(plan: Plan) -> str:
    return "popularity" if plan.route is Route.COUNTS else "similarity"


def _remember(cache: dict[Any, Any], key: object, value: object) -> None:
    if key not in cache and len(cache) >= _MOST_READY:
        cache.clear()
    cache[key] = value
