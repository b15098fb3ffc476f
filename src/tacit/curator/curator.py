"""The curator: a trusted holder of raw ratings, with a ledger beside them. What leaves is a slate, or counts or a kernel for many;
of two domains, a model that carries tastes from one to the other.

curator = Curator(tacit.data.load("movielens-small"), ledger="curator.db", budget=Budget(epsilon=1))
slate = curator.slate(k=10, epsilon=0.1)
print(curator.titles(slate), slate.guarantee)

curator = Curator(films, books, "curator.db", budget=Budget(epsilon=2, delta=1e-6))
model = curator.release(epsilon=2.0, delta=1e-6)
print(model.recommend({"Interstellar": 5.0}), model.guarantee)
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, several
from tacit.curator.cross_domain import TRANSFERS, Catalogues, Released, Transfers
from tacit.curator.cross_domain_rows import BothDomains
from tacit.curator.likes import Likes
from tacit.curator.nx_map import NXMap
from tacit.curator.published_x_map import PublishedXMap
from tacit.curator.slate_account import SLATES, SlateAccount
from tacit.curator.slate_drawing import Draw, SetUp
from tacit.curator.slate_once import release_once, require_left, seed_of, slate_of
from tacit.curator.slate_plan import Plan, Which, plan
from tacit.curator.slate_request import checked_id, require_options, set_up_of
from tacit.curator.slate_routes import WEIGHED, Route
from tacit.data.ids import ItemId
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger, Statement
from tacit.ledger.clock import Clock, now
from tacit.ledger.stores import Target
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.mechanisms.noise import checked_noise
from tacit.messages.cross_domain import Replacements, TransferModel
from tacit.messages.private_slates import Popularity, Similarity, Slate

REQUESTED = "the request's weights are public or the requester's own: others are protected, the requester is not"
_MOST_READY = 16  # set-ups that are kept in memory


class Curator:
    """Slates from ratings, or releases of two domains, charged to one budget for everybody in them: it protects each user, added or
    removed.

    With a ``target`` (or two domains as the first argument) what is made is ``release``, and a ledger without
    terms of theirs gives a budget of epsilon 2 at delta 1e-6, which a single release may use up (basic accounting); ``like``,
    ``features`` and ``most_likes`` belong to slates.
    ``catalogues`` are public lists of both domains' items, for ratings that came without; ``public_catalogue`` says that the items
    of such ratings are public all the same, which guarantees then assume.

    ``budget`` is agreed when the ledger first meets these ratings, and never changes (with a delta charges add up by zCDP, unless
    ``accounting`` says basic). A ledger's file that is missing is made for a budget that is stated, and not without: a lost one
    must not look like a fresh budget. In a ledger that is there, without one, it is what was agreed, or else epsilon 1 in all.
    With a ``head`` that was noted elsewhere, a file that is missing or older is refused.

    ``like`` is the least rating that counts as a like. ``features`` are public, one row for each item of the
    catalogue; by default the genres. ``most_likes`` is public, too: how many likes of an item make a difference. Only items that a
    list names are ever in a slate: one that is known because somebody rated it would tell so. Where there is no list at all, that
    is an assumption, and said.

    ``subject`` names these users in the ledger, by default after their ratings; of two domains it is the same whichever is the
    source. Other ratings of the same users belong to the same subject, which has to be given then: a further pair of domains, or
    one of the two for slates, would otherwise have a budget of its own for the same people. In a ledger that knows others, new
    users of two domains have to be named: files that were renamed are the same people. ``unprotected`` names
    what may be released although it promises nothing: 'published', for two domains also 'nx', or the caveat of replayed noise.
    """

    def __init__(
        self,
        ratings: Ratings | TwoDomains | BothDomains,
        target: Ratings | None = None,
        ledger: Target | PrivacyLedger | None = None,
        *,
        budget: Budget | Sequence[Budget] | None = None,
        accounting: Accounting | str | None = None,
        like: float = 4.0,
        features: ArrayLike | None = None,
        most_likes: float | None = None,
        subject: str | None = None,
        unprotected: Collection[str] = (),
        catalogues: Catalogues | None = None,
        public_catalogue: bool = False,
        head: Head | None = None,
        noise: Noise = SYSTEM_NOISE,
        clock: Clock = now,
    ) -> None:
        if ledger is None:
            raise InvalidParameter(
                "a curator keeps what it was charged in a ledger: name its file, ledger='curator.db'."
            )
        if head is not None and isinstance(ledger, PrivacyLedger):
            raise InvalidParameter("this ledger is open already: give its head to PrivacyLedger.open(..., head=head).")
        self.most_likes, self._noise = most_likes, checked_noise(noise)
        self._ready: dict[str, Draw] = {}
        self._parts: dict[bytes, Likes] = {}
        self._transfers, self._held = None, None
        if isinstance(ratings, Ratings) and target is None:
            if catalogues is not None or public_catalogue:
                raise InvalidParameter("`catalogues` and `public_catalogue` belong to two domains: leave them out.")
            self._held = Likes.of(ratings, finite("like", like), features)
            self._name, people, kind = ratings.name, ratings.name, SLATES
        else:
            if features is not None or most_likes is not None:
                raise InvalidParameter("`features` and `most_likes` belong to slates of one domain: leave them out.")
            self._transfers = Transfers.of(ratings, target, catalogues=catalogues, public_catalogue=public_catalogue)
            self._name, people, kind = self._transfers.name, self._transfers.people, TRANSFERS
        users = f"users of {people}" if subject is None else subject
        self._account = SlateAccount(
            ledger, users, budget, accounting, unprotected, noise, clock, kind, named=subject is not None, head=head
        )

    def __repr__(self) -> str:  # not how many users: whether one is there is private
        if self._transfers is not None:
            return f"Curator({self._transfers})"
        return f"Curator({self._name!r}: {len(self.items):,} items)"

    @property
    def items(self) -> NDArray[Any]:
        """The ids of the items that may be in a slate, in the order of ``features``. Public."""
        return self._likes.ids

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The public features of ``items``; None where the catalogue has no genres and none were given."""
        return self._likes.features

    def features_of(self, items: Sequence[Any]) -> NDArray[np.float64] | None:
        """The public features of these items, in their order: ``PrivateSlates(counts, curator.features_of(counts.items))``."""
        codes = [self._likes.catalogue.code(item) for item in items]
        return None if self.features is None else self.features[codes]

    @property
    def sent_again(self) -> bool:
        """Whether what was released last had been drawn before, and is the same as then, whatever the ratings are by now."""
        return self._account.sent_again

    @property
    def ledger(self) -> PrivacyLedger:
        """The ledger that releases are charged to; `head()` of it may be noted elsewhere."""
        return self._account.ledger

    def plan(
        self,
        k: int = 10,
        epsilon: float = 1.0,
        slates: int | None = 1,
        *,
        similarity: Which | None = None,
        delta: float | None = None,
        among: Sequence[ItemId] | None = None,
        **options: Any,
    ) -> Plan:
        """How ``slate`` would go about it, why, and what it would cost (tacit.curator.plan). Reads no rating, charges nothing.

        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        part = self._part(among)
        require_options(options)
        return plan(
            k,
            epsilon,
            slates,
            items=len(part.ids),
            similarity=similarity or ("private" if part.features is None else "public"),
            delta=self._account.delta if delta is None else delta,
            rank=part.rank,
            accounting=self._account.terms.accounting,
            **{"most_likes": self.most_likes, **options},
        )

    def slate(
        self,
        k: int = 10,
        epsilon: float = 1.0,
        *,
        slates: int | None = 1,
        request: Mapping[ItemId, float] | ArrayLike | None = None,
        request_id: str | None = None,
        among: Sequence[ItemId] | None = None,
        **options: Any,
    ) -> Slate:
        """One of ``slates`` slates that together cost ``epsilon`` (at the budget's delta): charged, then drawn, then kept.

        The same ``request_id`` again, also after a crash or from another process, gives the same slate for the same charge; without
        one every call is a new slate and a new charge. ``request`` weighs items by numbers from 0 to 1, ``among`` names a public
        part of them; further ``options`` are those of ``plan``. Where drawing fails, that alone is told (Conflict): the charge
        stands, and the id is used up.

        Slates from counts or a kernel are charged once, together. Without a ``request_id`` it is the greedy one, always the same;
        each id has a slate of its own, drawn from what is released already, with the id as seed. It costs nothing.
        ``k`` is a number of items, ``epsilon`` is in nats of privacy loss.
        """
        made, part = self.plan(k, epsilon, slates, among=among, **options), self._part(among)
        if request is not None and made.route not in WEIGHED:
            allowed = ", ".join(sorted(WEIGHED))
            raise InvalidParameter(f"the route {made.route.value!r} takes no request; these do: {allowed}.")
        if made.once:
            seed = seed_of(self._account, made, part, request_id)
            return slate_of(release_once(self._account, made, part, self._noise, None), made, part, seed)
        release_id = f"slate {os.urandom(16).hex() if request_id is None else checked_id(request_id)}"
        weights = self._likes.weights(request)
        if weights is not None and part is not self._likes:
            weights = weights[self._likes.places(among)]
        guarantee = self._account.promised(made.each, part.assumed if request is None else (*part.assumed, REQUESTED))
        what = self._account.digest(
            "slate", made.route, made.options, made.epsilon, part.digest, part.features_digest, request is not None
        )
        ready = self._ready.get(what) if request is None else None
        # What is wrong is refused before anything is charged, and ratings are read only after that.
        self._account.require_room(part.id_bytes, len(part.ids) if made.route is Route.SUBSET else made.k, 0, guarantee)
        set_up = set_up_of(made, part.features, weights) if ready is None else None

        def draw() -> bytes:
            drawer = ready or cast(SetUp, set_up)(part.rows)  # one of the two is there
            if request is None:
                _remember(self._ready, what, drawer)
            release = self._account.stated(drawer(self._noise), guarantee)
            return self._account.packed(Slate.from_release(release, part.ids, made.route.value).to_json())

        asked = b"" if weights is None else weights.tobytes()
        return Slate.from_json(self._account.release(release_id, what, guarantee, draw, asked=asked))

    def popularity(
        self,
        epsilon: float = 1.0,
        *,
        likes_each: float = 20.0,
        delta: float | None = None,
        among: Sequence[ItemId] | None = None,
        request_id: str | None = None,
    ) -> Popularity:
        """Noisy counts of likes, for any number of slates. Drawn and charged once; asked for again they are what they were.

        ``epsilon`` is what they cost, as for ``slate``: where charges add up by zCDP, that is (``epsilon``, the budget's delta) in
        all, and the counts themselves are drawn, and promise, a smaller epsilon without a delta. ``plan`` shows it beforehand.
        Of each person ``likes_each`` likes count, in equal shares if she has more. A new ``request_id`` is a new release, of what
        the ratings are by then.
        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        part = self._part(among)
        made = self.plan(1, epsilon, None, delta=delta, among=among, route=Route.COUNTS, likes_each=likes_each)
        return cast(Popularity, release_once(self._account, made, part, self._noise, request_id))

    def popularities(self, epsilons: Sequence[float]) -> list[Popularity]:
        """``popularity`` at each of these epsilons. Unless the budget has room for all, it is refused before any is charged.

        That is BudgetExhausted. Each is charged right before it is drawn, so others, in threads or processes, may take what is left
        meanwhile. Then those before the first that no longer fits stay charged: budget is lost, privacy is not. They are kept, and
        asked for again they cost nothing. ``epsilons`` are in nats of privacy loss.
        """
        wished = several("epsilons", epsilons)
        plans = [self.plan(1, epsilon, None, route=Route.COUNTS) for epsilon in wished]
        require_left(self._account, plans, self._likes)
        return [self.popularity(epsilon) for epsilon in wished]

    def similarity(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        among: Sequence[ItemId] | None = None,
        request_id: str | None = None,
    ) -> Similarity:
        """A noisy kernel of who likes what together, for any number of slates; of at most 1,000 items. As ``popularity``, once.

        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        if not self._account.delta:
            raise InvalidParameter(
                f"a kernel with Gaussian noise needs a budget with a delta, and this one is {self.statement().terms.budgets[0]}: "
                "agree another one, Budget(epsilon=1, delta=1e-6), or use popularity()."
            )
        part, basic = self._part(among), Accounting.BASIC
        made = plan(1, epsilon, None, items=len(part.ids), delta=delta, route=Route.KERNEL, accounting=basic)
        return cast(Similarity, release_once(self._account, made, part, self._noise, request_id))

    @overload
    def release(
        self, epsilon: float = ..., delta: float = ..., *, mode: Literal["moments"] = ..., request_id: str | None = ...,
        **options: Any,
    ) -> TransferModel: ...  # fmt: skip
    @overload
    def release(
        self, epsilon: float = ..., delta: float = ..., *, mode: Literal["prs_valid"], request_id: str | None = ..., **options: Any
    ) -> Replacements: ...  # fmt: skip
    @overload
    def release(
        self, epsilon: float = ..., delta: float = ..., *, mode: Literal["published"], request_id: str | None = ..., **options: Any
    ) -> PublishedXMap: ...  # fmt: skip
    @overload
    def release(
        self, epsilon: float = ..., delta: float = ..., *, mode: Literal["nx"], request_id: str | None = ..., **options: Any
    ) -> NXMap: ...  # fmt: skip
    @overload
    def release(
        self, epsilon: float = ..., delta: float = ..., *, mode: str, request_id: str | None = ..., **options: Any
    ) -> Released: ...
    def release(
        self,
        epsilon: float = 2.0,
        delta: float = 1e-6,
        *,
        mode: str = "moments",
        request_id: str | None = None,
        **options: Any,
    ) -> Released:
        """What carries tastes from the source to the target domain, for any number of users: charged, then drawn, then kept.

        ``mode`` "moments" gives a TransferModel, which may be sent to anybody: (epsilon, delta) covers it whole. "prs_valid" gives
        Replacements, one target item for each of a public list of source items. "published" and "nx" are the paper's systems with
        and without its noise; neither promises anything, so that the ledger refuses them unless ``unprotected`` names them, and
        what they give stays inside. ``options`` are those of ``tacit.curator.cross_domain.Transfers.release``.

        The same release again, also after a crash or from another process, is the same bytes for the same charge. A new
        ``request_id`` is a new release, of what the ratings are by then.
        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        if self._transfers is None:
            raise InvalidParameter(
                "this curator holds one domain, and nothing can be carried to another: Curator(source, target, 'curator.db') holds "
                "two. Of one domain there are slates: curator.slate()."
            )
        return self._transfers.release(
            self._account, epsilon, delta, mode=mode, request_id=request_id, noise=self._noise, **options
        )

    def titles(self, items: Slate | Iterable[Any]) -> tuple[str, ...]:
        """The titles of a slate, or of items by their ids; of two domains those of either. Public."""
        wanted = items.items if isinstance(items, Slate) else several("the items of titles", items)
        if self._transfers is not None:
            return tuple(self._transfers.title(item) for item in wanted)
        catalogue = self._likes.catalogue
        return tuple(catalogue.title(catalogue.code(cast(ItemId, item))) for item in wanted)

    def statement(self) -> Statement:
        """What was promised to these users so far, spent and left."""
        return self._account.statement()

    def head(self) -> Head:
        """How far the ledger has come. Note it elsewhere after a release; given to the next start, it refuses an older copy."""
        return self.ledger.head()

    def close(self) -> None:
        """Closes the ledger, if this curator opened it."""
        self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _likes(self) -> Likes:
        if self._held is None:
            raise InvalidParameter(
                "this curator holds two domains, and slates are of one: make a curator of that one, with the same `subject` if its "
                "users are the same; or use release()."
            )
        return self._held

    def _part(self, among: Sequence[ItemId] | None) -> Likes:
        places = self._likes.places(among)
        if places is None:
            return self._likes
        key = places.tobytes()
        found = self._parts.get(key)
        if found is None:  # another thread may clear the cache at any moment: it is not asked twice
            found = self._likes.part(places)
            _remember(self._parts, key, found)
        return found


def _remember(cache: dict[Any, Any], key: object, value: object) -> None:
    if key not in cache and len(cache) >= _MOST_READY:
        cache.clear()
    cache[key] = value
