"""One call that chooses the route to a slate, from how many are wanted and whether similarity is public, and says why.

All of it is a function of public parameters: neither the choice nor a refusal tells anything about a rating.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from tacit.checks import member, positive, probability, whole
from tacit.curator.slate_calibration import counted, each_of
from tacit.curator.slate_reasons import reason
from tacit.curator.slate_routes import FEATURED, ONCE, Options, Route, promise
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, repeat, tight
from tacit.ledger import Accounting, Budget
from tacit.mechanisms.slate_draws import Sampler

Which = Literal["public", "private"]
WORTH = 10.0  # counts need about ten times the epsilon of one tempered slate for slates as popular (MovieLens 1M)
_LESS = 1.0 - 1e-9  # two epsilons that differ by rounding are the same


@dataclass(frozen=True, slots=True)
class Plan:
    """How slates come about, and what they promise: ``each`` release by itself, and all that are planned in ``total``.

    ``slates`` is None for any number of them. ``epsilon`` is that of each, which the cap at 40 nats may have lowered where
    ``most_likes`` is given: what is not spent stays in the budget. For a route that releases once ``each`` and ``total`` are
    that one release.
    """

    route: Route
    why: str
    options: Options
    slates: int | None
    epsilon: float
    delta: float  # a probability
    each: Guarantee
    total: Guarantee

    @property
    def k(self) -> int:
        """How many items a slate has."""
        return self.options.k

    @property
    def once(self) -> bool:
        """Whether one release serves all slates, so that it is charged once."""
        return self.route in ONCE

    def __str__(self) -> str:
        return f"{self.route}: {self.why}\n  each: {self.each}\n  total: {self.total}"


def plan(
    k: int = 10,
    epsilon: float = 1.0,
    slates: int | None = 1,
    *,
    items: int,
    similarity: Which = "public",
    delta: float = 0.0,
    route: Route | str = "auto",
    rank: int | None = None,
    accounting: Accounting | str | None = None,
    most_likes: float | None = None,
    likes_each: float = 20.0,
    candidates: int | None = None,
    threshold: int | None = None,
    sampler: Sampler | None = None,
) -> Plan:
    """Slates of ``k`` out of ``items`` items, ``slates`` of them (None: any number), for (``epsilon``, ``delta``) in all.

    ``rank`` is that of the public features, if similarity is public (None: at least k). ``accounting`` says how a ledger adds the
    slates up: basic, zcdp, or (None) the better of the two for so many slates.
    ``epsilon`` is in nats, ``delta`` a probability. Likes are whole numbers: ``most_likes`` of an item make a difference,
    ``likes_each`` of a person count.
    """
    options = Options(items, k, most_likes, likes_each, candidates, threshold, sampler)
    wanted = _Wanted(
        options,
        positive("epsilon", epsilon),
        0.0 if type(delta) in (int, float) and delta == 0 else counted(probability("delta", delta)),
        None if slates is None else whole("slates", slates, least=1),
        None if accounting is None else member("accounting", Accounting, accounting),
        None if rank is None else whole("rank", rank, least=0),
    )
    if similarity not in get_args(Which):
        raise InvalidParameter(f"similarity must be 'public' or 'private', not {similarity!r}.")
    if wanted.accounting is Accounting.PLD:
        raise InvalidParameter("slates of several kinds add up by 'basic' or 'zcdp', not by 'pld'.")
    chosen = wanted.chosen(similarity == "public") if route == "auto" else member("route", Route, route)
    return wanted.planned(chosen, chosen_by_name=route != "auto")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What was asked for, checked."""

    options: Options
    epsilon: float
    delta: float
    slates: int | None
    accounting: Accounting | None
    rank: int | None

    def chosen(self, public: bool) -> Route:
        if not public:
            return Route.KERNEL if self.slates is None else Route.NATURAL
        if self.slates is None:
            return Route.COUNTS
        by_likes = Route.TOP_K if self.rank is not None and self.options.k > self.rank else Route.TEMPERED
        # A score of e nats per k likes against counts of one epsilon for all slates: the noise that counts is about the same
        # where the first is a tenth of the second.
        return by_likes if WORTH * self.each(by_likes) >= _LESS * self.each(Route.COUNTS) else Route.COUNTS

    def planned(self, route: Route, *, chosen_by_name: bool) -> Plan:
        self._require(route)
        wished = epsilon = self.each(route)
        one = promise(route, self.options, self.delta)(epsilon)
        if route is Route.TEMPERED and one.epsilon > 0.0:
            epsilon = one.epsilon  # capped, perhaps
        slates = 1 if route in ONCE else self.slates or 1
        total = together(one, slates, self.delta)
        found = Plan(route, "", self.options, self.slates, epsilon, self.delta, one, total)
        return replace(found, why=reason(found, wished, chosen_by_name, self.epsilon, self._added_up(route, wished)))

    def each(self, route: Route) -> float:
        """The largest epsilon of each release that keeps all of them within (epsilon, delta), before the cap."""
        if self.accounting is not None:
            return self._each(route, self.accounting)
        ways = [Accounting.BASIC, Accounting.ZCDP] if self.delta else [Accounting.BASIC]
        return max(self._each(route, way) for way in ways)

    def _each(self, route: Route, accounting: Accounting) -> float:
        times = 1 if route in ONCE else self.slates or 1
        options = _uncapped(self.options) if route is Route.TEMPERED else self.options
        return each_of(promise(route, options, self.delta), times, Budget(self.epsilon, self.delta), accounting)

    def _added_up(self, route: Route, wished: float) -> float | None:
        """The epsilon of each if charges were simply added up, where that is more and a ledger's accounting forbids it."""
        if self.accounting is not Accounting.ZCDP:
            return None
        basic = self._each(route, Accounting.BASIC)
        return basic if wished < _LESS * basic else None

    def _require(self, route: Route) -> None:
        k, rank = self.options.k, self.rank
        if rank is None or route not in FEATURED or route is Route.SPARSE:
            return
        if rank == 0:
            raise InvalidParameter(f"the route {route.value!r} needs public features, and there are none.")
        if route is Route.TEMPERED and k > rank:
            raise InvalidParameter(
                f"features of rank {rank} make a tempered slate of at most {rank} items, not {k}: ask for fewer items, for the "
                "route 'counts' or 'top-k', or give features that tell more items apart."
            )


def together(one: Guarantee, slates: int, delta: float) -> Guarantee:
    """``slates`` releases under ``one``: added up, or at ``delta`` by their ranges (rho = T eta^2 / 8), whichever is less."""
    basic = repeat(one, slates)
    if not delta or basic.promises_nothing or one.epsilon == 0.0 or one.delta:
        return basic
    ranged = tight({one: slates}, delta, "zcdp")
    return ranged if ranged.epsilon < basic.epsilon else basic


def _uncapped(options: Options) -> Options:
    """A range so narrow that 40 nats are never reached. Where none is given no cap applies, and there are other stages."""
    return options if options.most_likes is None else replace(options, most_likes=1e-300)
