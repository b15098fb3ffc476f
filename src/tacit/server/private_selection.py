"""Private selection at the server: offers from public data, bills from exact reports.

    shop = PrivateSelection(Listings(items, bids_micros, ppm), "server.db", epsilon=1.0, spread=Spread(0.8))
    offer = shop.offer(OfferRequest("sport", consent=True))   # durable before it is returned; None where there is nothing to offer
    shop.bill(impression)                                     # ok, duplicate, conflict, unknown or expired
    shop.statement(*month(2026, 11))

An offer is a function of public data: listings, context, consent and the server's own coins. Without consent the candidates and
prices are those of the usual offer, and only its policy is another one, `public`. With consent a share of the offers, drawn by the
server's coins alone, is explored instead: `uniform` over the first ``most_explored`` in public rank, which may be more or fewer.
"""

import os
from collections.abc import Collection, Sequence
from datetime import date
from typing import Self

import numpy as np

from tacit.checks import finite, whole
from tacit.errors import InvalidMessage, InvalidParameter, TacitError
from tacit.ledger import ImpressionLedger, ImpressionStatement, Offered, Settlement
from tacit.ledger.clock import SECOND, Clock, now
from tacit.ledger.stores import Target
from tacit.messages.private_selection import MOST_CANDIDATES, Engagement, Impression, Offer, OfferRequest, Policy
from tacit.messages.private_selection_offer import MOST_MICROS
from tacit.models.policy_choice import Spread
from tacit.server.clicks import ClickEstimate, click_estimate
from tacit.server.counterfactual import Exploration
from tacit.server.listings import Listings, Priced
from tacit.server.policies import AUTO, PolicyMaker, View
from tacit.server.population import Population
from tacit.server.pricing import PriceRule

EXPLORE = 0.02
MOST_EXPLORED = 100  # listings
_HOUR = 3600
# An offer may live twice as long, and devices take none that expires more than 31 days ahead.
_MOST_LASTS = 15 * 24 * _HOUR


class PrivateSelection:
    """``policy`` is "auto", "rr", "public", or a Policy whose m is the most to be offered. ``rng`` is the server's own coins.
    ``epsilon`` is 1 by default; a Policy has its own.

    ``gamma`` keeps candidates whose score is at least (1 - gamma) times the best: 1 by default, 0.8 with rr. ``reserve_micros`` is
    the least bid. Without a ``spread`` that of log odds is taken to be 1, Spread(1.0, "logit-normal").

    A share ``explore`` of the offers to those who consent, 0.02 by default and with the policy `public` or several slots 0, is
    `uniform` over the ``most_explored`` publicly best of all eligible listings, and flagged as such. Each of these m is shown with
    probability exactly 1/m, so that estimates hold for every public way to choose among them, and for none that goes beyond.

    Bits that were flipped at another epsilon than ``click_epsilon`` are refused. Lapsed offers are deleted while offers are made,
    at most once an hour by the clock, as by ``ledger.forget()``.

    ``contexts`` are the classes of context that may be kept with an offer; where none are named, none is kept. An offer expires at
    a multiple of ``lasts`` seconds, one to two of them away: it says no more than that about when it was made. ``ledger`` is an
    open impression ledger, or where to open or create one.
    ``epsilon`` and ``click_epsilon`` are in nats, for one impression and one click.
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
            raise InvalidParameter("what can be offered is given as Listings(...), or Listings.free(...).")
        self.listings = listings
        self._maker = PolicyMaker(
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
        self.explore = _share(explore, self._maker)
        self.most_explored = whole("most_explored", most_explored, least=1, most=MOST_CANDIDATES)
        self.contexts = None if contexts is None else frozenset(contexts)
        self.exploration = Exploration(click_epsilon, clock=clock)
        self._rng, self._clock = np.random.default_rng() if rng is None else rng, clock
        self._tidied: int | None = None
        self._same: tuple[Priced, View | None] | None = None
        if listings.same_in_every_context and len(listings) <= MOST_CANDIDATES:  # of more, some are named each time
            self._same = self._worked_out("", None)  # public data only: mistakes are told now
        self._opened = not isinstance(ledger, ImpressionLedger)
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
        """Closes the ledger, unless it was given open: then it is its owner's to close."""
        if self._opened:
            self.ledger.close()

    def offer(self, request: OfferRequest | str = "", *, among: Sequence[str] | None = None) -> Offer | None:
        """An offer for one device, on the disk before it is returned; None (`no_fill`) where nothing is eligible.

        ``among`` holds the auction among the items of a slate. A bare text is a context without consent.
        """
        (offer,) = self.offer_many([request], among=among)
        return offer

    def offer_many(
        self, requests: Sequence[OfferRequest | str], *, among: Sequence[str] | None = None
    ) -> list[Offer | None]:
        """One offer for each request, all on the disk in one transaction before they are returned."""
        asked = [OfferRequest(one) if isinstance(one, str) else one for one in requests]
        if not all(isinstance(one, OfferRequest) for one in asked):
            raise InvalidMessage("an offer is made for an OfferRequest, or for a context.")
        kept = [self._kept(one.context) for one in asked]
        self._tidy()
        made = [self._made(one, among) for one in asked]
        written = [
            Offered(offer.token, terms, context, offer.expires, offer.policy.slots)
            for (offer, terms, _), context in zip(made, kept, strict=True)
            if offer is not None
        ]
        self.ledger.offer_many(written)
        for (offer, _, explored), context in zip(made, kept, strict=True):
            if offer is not None and explored:
                self.exploration.offered(offer, context)
        return [offer for offer, _, _ in made]

    def _made(
        self, asked: OfferRequest, among: Sequence[str] | None
    ) -> tuple[Offer | None, tuple[tuple[str, int], ...], bool]:
        """An offer that nobody has seen, its items' prices, and whether it is explored."""
        priced, view = self._views(asked.context, among)
        explored = self._rng.random() < self.explore  # drawn for everybody: what follows takes the same time
        if view is None:
            return None, (), False
        if not asked.consent:
            view = view._replace(policy=view.policy.without_cost())
        elif explored:
            view = self._maker.uniform(priced, self.most_explored)
        offer = Offer(os.urandom(16).hex(), self._expiry(), view.policy, view.candidates)
        return offer, tuple(zip(view.items, view.prices, strict=True)), asked.consent and explored

    def view(self, context: str = "", *, among: Sequence[str] | None = None) -> View | None:
        """What everybody would be offered in this context: policy, candidates and prices, the same for a whole batch.

        For shuffled reports, which have one price for each item of a batch and no offers of their own to look up.
        """
        self._kept(context)
        return self._views(context, among)[1]

    def bill(self, impression: Impression) -> Settlement:
        """Counts what was shown at the price of its offer, once; on the disk when this returns."""
        (settled,) = self.bill_many([impression])
        if isinstance(settled, TacitError):
            raise settled
        return settled

    def bill_many(self, impressions: Sequence[Impression]) -> list[Settlement | TacitError]:
        """The same for many, in one transaction; each stands alone: its outcome, or the error it would raise."""
        if not all(isinstance(one, Impression) for one in impressions):
            raise InvalidMessage("only an Impression is billed.")
        outcomes = self.ledger.settle_many([(one.token, one.items) for one in impressions])
        for impression, outcome in zip(impressions, outcomes, strict=True):
            if outcome is Settlement.OK:
                self.exploration.shown(impression)
        return outcomes

    def engage(self, engagement: Engagement) -> Settlement:
        """Keeps a randomised click. One that was flipped at another epsilon is a conflict: estimates would be wrong by it."""
        if not isinstance(engagement, Engagement):
            raise InvalidMessage("a click is reported as an Engagement: a bit that was flipped by chance, never raw.")
        if engagement.epsilon != self.exploration.click_epsilon:
            return Settlement.CONFLICT  # not told in a log: a line for each would give what was sent, and when
        kept = self.ledger.engage(engagement.token, engagement.bit)
        if kept is Settlement.OK:
            self.exploration.engaged(engagement)
        return kept

    def clicks(self, item: str) -> ClickEstimate:
        """How often an item was clicked, among the impressions for which a bit was received."""
        received, ones = self.ledger.engagements(item)
        return click_estimate(received, ones, self.exploration.click_epsilon)

    def statement(self, first_day: date, last_day: date) -> ImpressionStatement:
        """What is owed for the impressions of these days (UTC, both included), per item, to the micro-unit."""
        return self.ledger.statement(first_day, last_day)

    def _views(self, context: str, among: Sequence[str] | None) -> tuple[Priced, View | None]:
        if self._same is not None and among is None:
            return self._same
        return self._worked_out(context, among)

    def _worked_out(self, context: str, among: Sequence[str] | None) -> tuple[Priced, View | None]:
        priced = self.listings.priced(context, among, self.reserve_micros, self.price_rule)
        return priced, self._maker.view(priced)

    def _kept(self, context: str) -> str:
        """The class of context that is kept with an offer. A text that a device made up is never kept."""
        if self.contexts is None:
            return ""
        if context not in self.contexts:
            raise InvalidMessage("this context is none of those that are known here.")
        return context

    def _tidy(self) -> None:
        """Deletes lapsed offers, once an hour: for everybody's requests alike, before anything of one is looked at."""
        moment = self._clock()
        if self._tidied is None or moment - self._tidied >= _HOUR * SECOND:
            self._tidied = moment
            self.ledger.forget()

    def _expiry(self) -> int:
        return (self._clock() // SECOND // self.lasts + 2) * self.lasts


def _share(explore: float | None, maker: PolicyMaker) -> float:
    """Exploration needs clicks, and one bit cannot tell which of several items was clicked."""
    usual = EXPLORE if maker.slots == 1 and not maker.public else 0.0
    share = finite("explore", usual if explore is None else explore)
    if not 0.0 <= share <= 1.0 or (maker.slots > 1 and share > 0.0):
        raise InvalidParameter("explore is a share from 0 to 1 of the offers; with several slots it is 0.")
    return share
