"""Private selection at the server: offers from public data, bills from exact reports.

    shop = PrivateSelection(Listings(items, bids_micros, ppm), "server.db", epsilon=1.0, spread=Spread(0.8))
    offer = shop.offer(OfferRequest("sport", consent=True))   # durable before it is returned; None if nothing is eligible
    shop.bill(impression)                                     # ok, duplicate, conflict, unknown or expired
    shop.statement(*month(2026, 11))

An offer is a function of public data: listings, context, consent and the server's own random numbers. Without consent a device
gets the same candidates and prices, but the policy `public`. With consent the server turns a random share of the offers into
explored ones: `uniform` over the first ``most_explored`` listings in public rank, which may be more or fewer than the usual
candidates.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import NamedTuple, Self

import numpy as np

from tacit.checks import finite, positive, whole
from tacit.errors import InvalidMessage, InvalidParameter, TacitError
from tacit.ledger import ImpressionLedger, ImpressionStatement, Offered, Settlement
from tacit.ledger.chain import SECOND, Clock, now
from tacit.ledger.stores import Target
from tacit.messages.private_selection import (
    MOST_CANDIDATES,
    MOST_EPSILON,
    MOST_MICROS,
    MOST_SLOTS,
    Candidate,
    Engagement,
    Impression,
    Offer,
    OfferRequest,
    Policy,
    Rule,
)
from tacit.models.private_selection import Spread, choose
from tacit.server.clicks import ClickEstimate, Exploration, click_estimate
from tacit.server.listings import Auction, Listings, Population, PriceRule

AUTO = "auto"
EXPLORE = 0.02  # share of the offers to devices with consent
MOST_EXPLORED = 100  # listings
_USUAL_EPSILON = 1.0
_GAMMA_OF_RR = 0.8
_HOUR = 3600
# An offer may live twice as long, and devices accept none that expires more than 31 days ahead.
_MOST_LASTS = 15 * 24 * _HOUR
_MICRO = 1e6
_CONTEXTS_SHOWN = 10


class View(NamedTuple):
    """What the server offers in one context. It does not depend on the device."""

    policy: Policy
    candidates: tuple[Candidate, ...]
    prices: tuple[int, ...]  # micro-units; they stay on the server

    @property
    def items(self) -> tuple[str, ...]:
        """The candidates' items, in falling order of their public scores."""
        return tuple(candidate.item for candidate in self.candidates)


class PrivateSelection:
    """Offers listings to devices and bills what they display.

    ``ledger`` is an open impression ledger, or where to open or create one. ``policy`` is "auto", "rr", "public", or a Policy
    whose m is the largest number of candidates. ``epsilon`` (1 by default) and ``click_epsilon`` are in nats, for one
    impression and one click; a Policy has its own epsilon. ``spread`` says how far private scores lie from public ones; for
    listings with bids the default is Spread(1.0, "logit-normal"). ``rng`` holds the server's own random numbers.

    ``gamma`` keeps candidates whose score is at least (1 - gamma) times the best: 1 by default, 0.8 with rr. ``reserve_micros``
    is the least bid. ``explore`` is the share of explored offers: 0.02 by default, 0 with the policy `public` or with several
    slots. An explored offer shows each of the m = ``most_explored`` publicly best eligible listings with probability exactly
    1/m and is flagged `uniform`, so that estimates hold for every public way to choose among these m, but not beyond them.

    ``contexts`` are the classes of context that may be stored with an offer; without them no context is stored. An offer
    expires at a multiple of ``lasts`` seconds, one to two of them away, so that its expiry reveals little about when it was
    made. Clicks that were randomised at an epsilon other than ``click_epsilon`` are refused. Making offers also deletes expired
    ones, at most once an hour, as ``ledger.forget()`` does.
    """

    def __init__(
        self,
        listings: Listings,
        ledger: ImpressionLedger | Target,
        *,
        policy: str | Policy = AUTO,
        epsilon: float | None = None,
        spread: Spread | Population | None = None,
        reserve_micros: int = 0,
        gamma: float | None = None,
        price_rule: PriceRule | str | None = None,
        explore: float | None = None,
        most_explored: int = MOST_EXPLORED,
        slots: int = 1,
        most_d: int = 1,
        lasts: int = _HOUR,
        contexts: Collection[str] | None = None,
        click_epsilon: float = 1.0,
        rng: np.random.Generator | None = None,
        clock: Clock = now,
    ) -> None:
        if not isinstance(listings, Listings):
            raise InvalidParameter("listings must be Listings(...) or Listings.free(...).")
        self.listings = listings
        self._policies = PolicyMaker(
            policy,
            epsilon=epsilon,
            spread=spread,
            gamma=gamma,
            slots=slots,
            most_d=most_d,
            with_money=not listings.without_money,
        )
        self.price_rule = listings.billed_by(price_rule)
        self.reserve_micros = whole("reserve_micros", reserve_micros, least=0, most=MOST_MICROS)
        self.lasts = whole("lasts", lasts, least=1, most=_MOST_LASTS)
        self.explore = _explored_share(explore, self._policies)
        self.most_explored = whole("most_explored", most_explored, least=1, most=MOST_CANDIDATES)
        self.contexts = None if contexts is None else frozenset(contexts)
        self.exploration = Exploration(click_epsilon, clock=clock)
        self._rng, self._clock = np.random.default_rng() if rng is None else rng, clock
        self._last_cleanup: int | None = None
        self._constant: tuple[Auction, View | None] | None = None
        # With more listings each call has to name some of them. Public data only, so a mistake raises an error now.
        if listings.same_in_every_context and len(listings) <= MOST_CANDIDATES:
            self._constant = self._auction_and_view("", None)
        self._owns_ledger = not isinstance(ledger, ImpressionLedger)
        self.ledger = (
            ledger if isinstance(ledger, ImpressionLedger) else ImpressionLedger.open_or_create(ledger, clock=clock)
        )

    def __repr__(self) -> str:
        return f"PrivateSelection({self.listings}, {self.price_rule})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the ledger. A ledger that you passed in open stays open."""
        if self._owns_ledger:
            self.ledger.close()

    def offer(self, request: OfferRequest | str = "", *, among: Sequence[str] | None = None) -> Offer | None:
        """An offer for one device, durable before it is returned; None (`no_fill`) if nothing is eligible.

        ``among`` limits the auction to the items of a slate. A plain string is a context without consent.
        """
        (offer,) = self.offer_many([request], among=among)
        return offer

    def offer_many(
        self, requests: Sequence[OfferRequest | str], *, among: Sequence[str] | None = None
    ) -> list[Offer | None]:
        """One offer for each request. All are durable, in one transaction, before they are returned."""
        messages = [OfferRequest(request) if isinstance(request, str) else request for request in requests]
        if not all(isinstance(request, OfferRequest) for request in messages):
            raise InvalidMessage("an offer is made for an OfferRequest, or for a context.")
        contexts = [self._stored_context(request.context) for request in messages]
        self._forget_expired()
        offers = [self._make(request, among) for request in messages]
        self.ledger.offer_many(
            [
                Offered(offer.token, prices, context, offer.expires, offer.policy.slots)
                for (offer, prices, _), context in zip(offers, contexts, strict=True)
                if offer is not None
            ]
        )
        for (offer, _, explored), context in zip(offers, contexts, strict=True):
            if offer is not None and explored:
                self.exploration.offered(offer, context)
        return [offer for offer, _, _ in offers]

    def _make(
        self, request: OfferRequest, among: Sequence[str] | None
    ) -> tuple[Offer | None, tuple[tuple[str, int], ...], bool]:
        """A new offer, its items with their prices, and whether it is explored."""
        auction, view = self._auction_and_view(request.context, among)
        explored = self._rng.random() < self.explore  # drawn for every request, so that all take the same time
        if view is None:
            return None, (), False
        if not request.consent:
            view = view._replace(policy=view.policy.without_cost())
        elif explored:
            view = self._policies.uniform(auction, self.most_explored)
        expires = (self._clock() // SECOND // self.lasts + 2) * self.lasts
        offer = Offer(os.urandom(16).hex(), expires, view.policy, view.candidates)
        return offer, tuple(zip(view.items, view.prices, strict=True)), request.consent and explored

    def view(self, context: str = "", *, among: Sequence[str] | None = None) -> View | None:
        """What every device would be offered in this context: policy, candidates and prices.

        Use it to open a batch of shuffled reports, in which all offers share one view.
        """
        self._stored_context(context)
        return self._auction_and_view(context, among)[1]

    def bill(self, impression: Impression) -> Settlement:
        """Counts what was shown at the price of its offer, once. Durable when this returns."""
        (settled,) = self.bill_many([impression])
        if isinstance(settled, TacitError):
            raise settled
        return settled

    def bill_many(self, impressions: Sequence[Impression]) -> list[Settlement | TacitError]:
        """Bills many impressions in one transaction. Each gets its own outcome, or the error that `bill` would raise."""
        if not all(isinstance(impression, Impression) for impression in impressions):
            raise InvalidMessage("only an Impression can be billed.")
        outcomes = self.ledger.settle_many([(impression.token, impression.items) for impression in impressions])
        for impression, outcome in zip(impressions, outcomes, strict=True):
            if outcome is Settlement.OK:
                self.exploration.shown(impression)
        return outcomes

    def engage(self, engagement: Engagement) -> Settlement:
        """Stores a randomised click. A click randomised at another epsilon is a conflict: it would bias the estimates."""
        if not isinstance(engagement, Engagement):
            raise InvalidMessage("report a click as an Engagement: a randomised bit, never the raw click.")
        if engagement.epsilon != self.exploration.click_epsilon:
            return Settlement.CONFLICT  # not logged: a line would reveal what was sent, and when
        outcome = self.ledger.engage(engagement.token, engagement.bit)
        if outcome is Settlement.OK:
            self.exploration.engaged(engagement)
        return outcome

    def clicks(self, item: str) -> ClickEstimate:
        """How often an item was clicked, among the impressions for which a bit was received."""
        received, ones = self.ledger.engagements(item)
        return click_estimate(received, ones, self.exploration.click_epsilon)

    def statement(self, first_day: date, last_day: date) -> ImpressionStatement:
        """What is owed for the impressions of these days (UTC, both included), per item, to the micro-unit."""
        return self.ledger.statement(first_day, last_day)

    def _auction_and_view(self, context: str, among: Sequence[str] | None) -> tuple[Auction, View | None]:
        if self._constant is not None and among is None:
            return self._constant
        auction = self.listings.priced(context, among, self.reserve_micros, self.price_rule)
        return auction, self._policies.view(auction)

    def _stored_context(self, context: str) -> str:
        """The class of context that is stored with an offer. Free text from a device is never stored."""
        if self.contexts is None:
            return ""
        if context not in self.contexts:
            known = sorted(self.contexts)
            more = "" if len(known) <= _CONTEXTS_SHOWN else f" and {len(known) - _CONTEXTS_SHOWN} more"
            raise InvalidMessage(f"unknown context; known contexts: {', '.join(known[:_CONTEXTS_SHOWN])}{more}.")
        return context

    def _forget_expired(self) -> None:
        """Deletes expired offers once an hour, before looking at any request: so its timing reveals nothing about one."""
        moment = self._clock()
        if self._last_cleanup is None or moment - self._last_cleanup >= _HOUR * SECOND:
            self._last_cleanup = moment
            self.ledger.forget()


class PolicyMaker:
    """Decides, from public data alone, which candidates of an auction are offered and by which policy a device chooses.

    Without a ``spread``, `auto` assumes Spread() for listings with bids: a standard deviation of 1 in log odds.
    """

    def __init__(
        self,
        policy: str | Policy,
        *,
        epsilon: float | None,
        spread: Spread | Population | None,
        gamma: float | None,
        slots: int,
        most_d: int,
        with_money: bool,
    ) -> None:
        self.slots = whole("slots", slots, least=1, most=MOST_SLOTS)
        self.most_d = whole("most_d", most_d, least=1)
        if epsilon is not None and isinstance(policy, Policy) and epsilon != policy.epsilon:
            raise InvalidParameter("the policy has its own epsilon: leave epsilon out, or pass the same value.")
        self.epsilon = positive("epsilon", _USUAL_EPSILON if epsilon is None or isinstance(policy, Policy) else epsilon)
        if self.epsilon > MOST_EPSILON:
            raise InvalidParameter(f"epsilon must be at most {MOST_EPSILON:g}; a larger one promises nothing.")
        self.fixed = _fixed_policy(policy, self.epsilon, self.slots)
        if self.fixed is not None:
            self.slots = self.fixed.slots
        if self.slots > 1 and self.most_d > 1:
            raise InvalidParameter("most_d must be 1 with several slots.")
        if spread is None and self.fixed is None and not with_money:
            raise InvalidParameter(
                "`auto` needs to know how far private scores lie from public ones, in units of quality: for example "
                "spread=Spread(0.5, 'normal')."
            )
        self.spread, self.with_money = spread or Spread(), with_money
        usual = _GAMMA_OF_RR if self.fixed is not None and self.fixed.rule is Rule.RR else 1.0
        self.gamma = finite("gamma", usual if gamma is None else gamma)
        if not 0.0 <= self.gamma <= 1.0:
            raise InvalidParameter(f"gamma must lie from 0 to 1, not {gamma!r}.")
        self._least_share = 1 - Fraction(Decimal(repr(self.gamma)))

    @property
    def public(self) -> bool:
        """Whether only the publicly best item is ever shown."""
        return self.fixed is not None and self.fixed.rule is Rule.PUBLIC

    def view(self, auction: Auction) -> View | None:
        """What is offered of an auction; None if nothing is eligible."""
        close = self._count_close(auction)
        if close == 0:
            return None
        return _first_candidates(
            auction, self._auto_policy(auction, close) if self.fixed is None else _shorten(self.fixed, close)
        )

    def uniform(self, auction: Auction, most: int) -> View:
        """A uniform choice among the ``most`` publicly best eligible listings."""
        return _first_candidates(auction, Policy(Rule.UNIFORM, min(most, len(auction.items))))

    def _count_close(self, auction: Auction) -> int:
        """How many listings score at least (1 - gamma) times the best. Exact, in whole numbers, for listings with bids."""
        if not auction.items or self._least_share == 0:
            return len(auction.items)
        if auction.exact is not None:
            least = ceil(self._least_share * auction.exact[0])
            return sum(score >= least for score in auction.exact)
        if auction.scores[-1] < 0.0:
            raise InvalidParameter(
                "a gamma below 1 keeps a share of the best quality, so all qualities must be at least 0."
            )
        return int(np.count_nonzero(auction.scores >= float(self._least_share) * auction.scores[0]))

    def _auto_policy(self, auction: Auction, close: int) -> Policy:
        bids = np.array(auction.bids[:close]) / _MICRO if self.with_money else None
        # Peeling: each slot is a choice of its own, at its share of epsilon (for several slots a rule of thumb).
        prior = self.spread.tastes(auction.items[:close]) if isinstance(self.spread, Population) else self.spread
        best = choose(auction.scores[:close], prior, self.epsilon / self.slots, bids=bids, most_d=self.most_d)
        slots = min(self.slots, close)
        if best.m <= slots:
            return Policy(Rule.PUBLIC, slots, slots=slots)
        return Policy(Rule.RR, best.m, self.epsilon, best.d, slots)


def _fixed_policy(policy: str | Policy, epsilon: float, slots: int) -> Policy | None:
    """The policy that was asked for, for as many candidates as possible; None for `auto`."""
    if isinstance(policy, Policy):
        if slots not in (1, policy.slots):
            raise InvalidParameter("the policy has its own slots: leave slots out, or pass the same value.")
        return policy
    if policy == AUTO:
        return None
    if policy == Rule.PUBLIC:
        return Policy(Rule.PUBLIC, slots, slots=slots)  # only the publicly best can be shown
    if policy == Rule.RR:
        return Policy(Rule.RR, MOST_CANDIDATES, epsilon, slots=slots)
    raise InvalidParameter("policy must be 'auto', 'rr', 'public', or a Policy.")


def _shorten(policy: Policy, close: int) -> Policy:
    """The policy for at most ``close`` candidates; d stays the same share of them."""
    m = min(policy.m, close)
    slots = min(policy.slots, m)
    # An envelope has one floor for each candidate, so it cannot be shortened.
    if m == 1 or (policy.floors is not None and m < policy.m):
        return Policy(Rule.PUBLIC, m, slots=slots)
    return replace(policy, m=m, d=max(1, policy.d * m // policy.m), slots=slots)


def _first_candidates(auction: Auction, policy: Policy) -> View:
    m = policy.m
    return View(
        policy,
        tuple(
            Candidate(item, score, bid)
            for item, score, bid in zip(auction.items[:m], auction.scores[:m].tolist(), auction.bids[:m], strict=True)
        ),
        auction.prices[:m],
    )


def _explored_share(explore: float | None, policies: PolicyMaker) -> float:
    """``explore``, checked. Exploration needs clicks, and one bit cannot say which of several items was clicked."""
    usual = EXPLORE if policies.slots == 1 and not policies.public else 0.0
    share = finite("explore", usual if explore is None else explore)
    if not 0.0 <= share <= 1.0 or (policies.slots > 1 and share > 0.0):
        raise InvalidParameter("explore must be a share from 0 to 1 of the offers; with several slots it must be 0.")
    return share
