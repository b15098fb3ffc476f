"""The curator: a trusted holder of raw ratings, with a ledger beside them.

From one set of ratings it releases slates, or counts or a kernel for many slates:

    curator = Curator(tacit.data.load("movielens-small"), ledger="curator.db", budget=Budget(epsilon=1))
    slate = curator.slate(k=10, epsilon=0.1)
    print(curator.titles(slate), slate.guarantee)

From two domains it releases a model that carries tastes from one to the other:

    curator = Curator(films, books, "curator.db", budget=Budget(epsilon=2, delta=1e-6))
    model = curator.release(epsilon=2.0, delta=1e-6)
    print(model.recommend({"Interstellar": 5.0}), model.guarantee)
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, several
from tacit.curator.account import NAMED_AFTER_DATA, SLATES, CuratorAccount, checked_id
from tacit.curator.cross_domain import TRANSFERS, TransferRelease, Transfers
from tacit.curator.cross_domain.domains import BothDomains, Catalogues, Domains
from tacit.curator.cross_domain.x_map import NXMap
from tacit.curator.private_slates.draw import Likes, Slates
from tacit.curator.private_slates.plan import Plan, Which, plan
from tacit.curator.private_slates.routes import Route
from tacit.data.catalogue import ItemId
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger, Statement
from tacit.ledger.chain import Clock, now
from tacit.ledger.stores import Target
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.mechanisms.noise import checked_noise
from tacit.messages.cross_domain import Replacements, TransferModel
from tacit.messages.private_slates import Popularity, Similarity, Slate


class Curator:
    """Releases slates from one set of ratings, or models of two domains, and charges them to one budget for all users.

    It protects each user, added or removed. With a ``target``, or two domains as the first argument, use ``release``; with one set
    of ratings, use ``slate``, ``popularity`` and ``similarity``.

    - ``ledger``: the file of the ledger, or an open one. A missing file is created only if you state a ``budget``: tacit never
      recreates a lost ledger, because that would hand the same people a fresh budget. With a ``head`` that you noted earlier, a
      missing or older file is refused.
    - ``budget``: agreed when the ledger first meets these users, and never changed. Without it, the agreed budget holds, or else
      epsilon 1 in all for slates, and epsilon 2 at delta 1e-6 for two domains, which a single release may use up.
    - ``accounting``: how charges add up. For slates under a budget with a delta the default is zCDP, otherwise basic.
    - ``like``: the least rating that counts as a like.
    - ``features``: public numbers, one row for each item of the catalogue; by default the genres. For slates only.
    - ``most_likes``: a public number; more likes of an item make no difference. For slates only.
    - ``catalogues``: public lists of both domains' items, for ratings that came without them. ``public_catalogue`` says that the
      rated items are public; guarantees then list this as an assumption.
    - ``subject``: the name of these users in the ledger, by default made from the names of their ratings. Give other ratings of the
      same people the same subject, or they get a second budget. A ledger that knows other users asks you to name new users of two
      domains.
    - ``unprotected``: what may be released although it promises nothing: 'published', for two domains also 'nx', or the caveat of
      replayed noise.

    Slates show listed items only: an item that is known only because somebody rated it would reveal that rating. Ratings without
    any list are taken as they are, and guarantees say that their items are assumed to be public.
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
                "a curator records its charges in a ledger: name the ledger's file, ledger='curator.db'."
            )
        if head is not None and isinstance(ledger, PrivacyLedger):
            raise InvalidParameter("this ledger is open already: give its head to PrivacyLedger.open(..., head=head).")
        checked_noise(noise)
        data: Likes | Domains
        if isinstance(ratings, Ratings) and target is None:
            if catalogues is not None or public_catalogue:
                raise InvalidParameter("`catalogues` and `public_catalogue` belong to two domains: leave them out.")
            data, people, kind = Likes.of(ratings, finite("like", like), features), ratings.name, SLATES
        else:
            if features is not None or most_likes is not None:
                raise InvalidParameter("`features` and `most_likes` belong to slates of one domain: leave them out.")
            data = Domains.of(ratings, target, catalogues=catalogues, public_catalogue=public_catalogue)
            people, kind = data.people, TRANSFERS
        self._account = CuratorAccount.open(
            ledger,
            f"{NAMED_AFTER_DATA}{people}" if subject is None else subject,
            kind,
            budget=budget,
            accounting=accounting,
            unprotected=unprotected,
            named=subject is not None,
            head=head,
            noise=noise,
            clock=clock,
        )
        self.most_likes = most_likes
        self._name = people
        self._part: Slates | Transfers = (
            Slates(data, self._account, noise, most_likes)
            if isinstance(data, Likes)
            else Transfers(data, self._account, noise)
        )

    def __repr__(self) -> str:  # without the number of users: whether somebody is there is private
        if isinstance(self._part, Transfers):
            return f"Curator({self._part.domains})"
        return f"Curator({self._name!r}: {len(self.items):,} items)"

    @property
    def items(self) -> NDArray[Any]:
        """The ids of the items that may be in a slate, in the order of ``features``. Public."""
        return self._slates.likes.ids

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The public features of ``items``; None if the catalogue has no genres and you gave no features."""
        return self._slates.likes.features

    def features_of(self, items: Sequence[Any]) -> NDArray[np.float64] | None:
        """The public features of these items, in their order: ``PrivateSlates(counts, curator.features_of(counts.items))``."""
        codes = [self._slates.likes.catalogue.code(item) for item in items]
        return None if self.features is None else self.features[codes]

    @property
    def sent_again(self) -> bool:
        """Whether the last release was drawn before and sent again unchanged, even if the ratings have changed since."""
        return self._account.sent_again

    @property
    def ledger(self) -> PrivacyLedger:
        """The ledger that releases are charged to. You may note its `head()` elsewhere."""
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
        """How ``slate`` would draw, why, and what it would cost (`tacit.curator.plan`). Reads no rating, charges nothing.

        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        part = self._slates.part(among)
        return self._slates.plan(part, k, epsilon, slates, similarity=similarity, delta=delta, **options)

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

        The same ``request_id`` again gives the same slate for the same charge, also after a crash or from another process. Without
        one, every call is a new slate and a new charge. ``request`` weighs items by numbers from 0 to 1, ``among`` names a public
        part of them; further ``options`` are those of ``plan``. If drawing fails, Conflict says only that: the charge stands, and
        the id is used up.

        Slates from counts or a kernel are charged once, together. Without a ``request_id`` you get the greedy slate, always the
        same; each id gets a slate of its own, drawn from the release with the id as seed, at no cost.
        ``k`` is a number of items, ``epsilon`` is in nats of privacy loss.
        """
        part = self._slates.part(among)
        return self._slates.draw(self._slates.plan(part, k, epsilon, slates, **options), part, request, request_id)

    def popularity(
        self,
        epsilon: float = 1.0,
        *,
        likes_each: float = 20.0,
        delta: float | None = None,
        among: Sequence[ItemId] | None = None,
        request_id: str | None = None,
    ) -> Popularity:
        """Noisy counts of likes, for any number of slates. They are drawn and charged once; asking again gives the same counts.

        ``epsilon`` is the cost, as for ``slate``. If charges add up by zCDP, the cost is (``epsilon``, the budget's delta) in all,
        and the counts themselves promise a smaller epsilon without a delta; ``plan`` shows it beforehand. At most ``likes_each``
        likes of each person count, in equal shares if there are more. A new ``request_id`` is a new release of the ratings as they
        are then.
        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        part = self._slates.part(among)
        counts = self._slates.plan(part, 1, epsilon, None, delta=delta, route=Route.COUNTS, likes_each=likes_each)
        return cast(Popularity, self._slates.release_once(counts, part, request_id))

    def popularities(self, epsilons: Sequence[float]) -> list[Popularity]:
        """``popularity`` at each of these epsilons. Raises BudgetExhausted before any charge unless the budget has room for all.

        Each is charged right before it is drawn, so other threads or processes may take what is left meanwhile. Then those before
        the first that no longer fits stay charged: budget is lost, privacy is not. They are kept, and cost nothing when you ask
        again. ``epsilons`` are in nats of privacy loss.
        """
        asked = several("epsilons", epsilons)
        self._slates.require_left([self.plan(1, epsilon, None, route=Route.COUNTS) for epsilon in asked])
        return [self.popularity(epsilon) for epsilon in asked]

    def similarity(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        among: Sequence[ItemId] | None = None,
        request_id: str | None = None,
    ) -> Similarity:
        """A noisy kernel of which items the same people like, for any number of slates; at most 1,000 items.

        It is drawn and charged once, as ``popularity``.
        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        if not self._account.delta:
            raise InvalidParameter(
                f"a kernel with Gaussian noise needs a budget with a delta, and this one is {self.statement().terms.budgets[0]}: "
                "agree another one, Budget(epsilon=1, delta=1e-6), or use popularity()."
            )
        part, basic = self._slates.part(among), Accounting.BASIC
        kernel = plan(1, epsilon, None, items=len(part.ids), delta=delta, route=Route.KERNEL, accounting=basic)
        return cast(Similarity, self._slates.release_once(kernel, part, request_id))

    @overload
    def release(
        self, epsilon: float = 2.0, delta: float = 1e-6, *, mode: Literal["moments"] = "moments", request_id: str | None = None,
        **options: Any,
    ) -> TransferModel: ...  # fmt: skip
    @overload
    def release(
        self, epsilon: float = 2.0, delta: float = 1e-6, *, mode: Literal["prs_valid"], request_id: str | None = None,
        **options: Any,
    ) -> Replacements: ...  # fmt: skip
    @overload
    def release(
        self, epsilon: float = 2.0, delta: float = 1e-6, *, mode: Literal["published", "nx"], request_id: str | None = None,
        **options: Any,
    ) -> NXMap: ...  # fmt: skip
    @overload
    def release(
        self, epsilon: float = 2.0, delta: float = 1e-6, *, mode: str, request_id: str | None = None, **options: Any
    ) -> TransferRelease: ...
    def release(
        self,
        epsilon: float = 2.0,
        delta: float = 1e-6,
        *,
        mode: str = "moments",
        request_id: str | None = None,
        **options: Any,
    ) -> TransferRelease:
        """What carries tastes from the source to the target domain, for any number of users: charged, then drawn, then kept.

        - ``mode`` "moments" gives a TransferModel. You may send it to anybody: (epsilon, delta) covers all of it.
        - "prs_valid" gives Replacements: one target item for each of a public list of source items.
        - "published" and "nx" are the paper's systems with and without its noise. Neither promises anything: the ledger refuses
          them unless ``unprotected`` names them, and the result must stay inside.

        ``options`` are those of the mode's class, see ``tacit.curator.cross_domain.MODES``.

        The same release again, also after a crash or from another process, gives the same bytes for the same charge. A new
        ``request_id`` is a new release of the ratings as they are then.
        ``epsilon`` is in nats of privacy loss, ``delta`` a probability.
        """
        if not isinstance(self._part, Transfers):
            raise InvalidParameter(
                "this curator holds one domain, so nothing can be carried to another: Curator(source, target, 'curator.db') holds "
                "two. For one domain there are slates: curator.slate()."
            )
        name = None if request_id is None else checked_id(request_id)
        return self._part.release(epsilon, delta, mode, name, **options)

    def titles(self, items: Slate | Iterable[Any]) -> tuple[str, ...]:
        """The titles of a slate, or of items by their ids; for two domains, of items of either. Public."""
        wanted = items.items if isinstance(items, Slate) else several("the items of titles", items)
        if isinstance(self._part, Transfers):
            return tuple(self._part.domains.title(item) for item in wanted)
        catalogue = self._slates.likes.catalogue
        return tuple(catalogue.title(catalogue.code(cast(ItemId, item))) for item in wanted)

    def statement(self) -> Statement:
        """What was promised to these users so far, what is spent, and what is left."""
        return self._account.statement()

    def head(self) -> Head:
        """How far the ledger has come. Note it elsewhere after a release: given at the next start, it refuses an older copy."""
        return self.ledger.head()

    def close(self) -> None:
        """Closes the ledger, if this curator opened it."""
        self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _slates(self) -> Slates:
        if not isinstance(self._part, Slates):
            raise InvalidParameter(
                "this curator holds two domains, and slates come from one: make a curator of that one, with the same `subject` if "
                "its users are the same; or use release()."
            )
        return self._part
