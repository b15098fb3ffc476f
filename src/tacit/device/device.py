"""The device: beside one user, with her profile in its memory and a ledger in its file.

Multi-selection: one signal leaves in each slot.

device = Device("me.db", store, budget=Budget(epsilon=10, per="month"))
device.rate({"Toy Story (1995)": 5, 32: 3})
reply = server.answer(device.ask(eta=0.1))
device.pick(reply)

Private selection: what was shown leaves, exactly, once for each offer.

device.consent()
choice = device.choose(shop.offer(device.offer_request("sport")))
shop.bill(device.shown(choice))
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import several, whole
from tacit.device import multi_selection
from tacit.device.accounts import Accounts
from tacit.device.choice import Choice
from tacit.device.limits import Limits, Overall, server_name
from tacit.device.memos import Memos, require_exact
from tacit.device.profile import Profile, checked_rating
from tacit.device.readings import Readings, readings_of
from tacit.device.revocations import Revocations
from tacit.device.scoring import PrivateScorer, store_scorer
from tacit.device.selecting import Selecting
from tacit.device.slots import checked, require_within, slot_of
from tacit.errors import BudgetExhausted, InvalidFeatures, InvalidParameter, UnknownName
from tacit.ledger import Budget, Consent, DisplayLedger, Head, Period, PrivacyLedger, Settlement, Statement
from tacit.ledger.clock import Clock, now
from tacit.ledger.stores import Target
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.mechanisms.noise import checked_noise
from tacit.messages.multi_selection import Eta, Reply, Request, Signal, exact_eta
from tacit.messages.private_selection import Engagement, Impression, Offer, OfferRequest, ShuffledReport
from tacit.models.features import FeatureSpace, version_of
from tacit.models.items import Items
from tacit.models.scorer import Scorer


class Public(Protocol):
    """What a device must know of a store: the items, and what features are."""

    @property
    def items(self) -> Items: ...

    @property
    def space(self) -> FeatureSpace: ...


class Device:
    """One user's device. Its ``ledger`` is a file of its own, made at the first start.

    ``budget`` is what signals may cost, in epsilon (nats) per unit of L1 distance; it is agreed when the file is first opened with
    one, and never changes. Without one the device asks for no slates.

    ``refresh`` and ``per_period`` say when a fresh signal may be drawn: once in each month or day, or in each of ``per_period``
    equal parts of it. They are agreed like the budget, and no slot is longer than the budget's period.
    Say ``reinstalled`` once, at the first start after the file was lost or replaced by an older copy: what is left of the period
    that is under way then counts as spent (with a lifetime budget, for ever). With a ``head`` that was noted elsewhere, a file
    that is missing or older is refused.
    ``scorer`` is the server's whole model, for replies that leave the scoring to the device, and for choosing from offers unless
    a ``private_scorer`` does that. ``limits`` are for private selection, ``overall`` is for all together; their budgets are agreed
    like the first.
    """

    def __init__(
        self,
        ledger: Target,
        store: Public,
        *,
        budget: Budget | None = None,
        refresh: Period | str = Period.MONTH,
        per_period: int = 1,
        reinstalled: bool = False,
        head: Head | None = None,
        noise: Noise = SYSTEM_NOISE,
        scorer: Scorer | None = None,
        private_scorer: PrivateScorer | None = None,
        limits: Limits | None = None,
        overall: Overall | None = None,
        clock: Clock = now,
    ) -> None:
        if not (budget is None or isinstance(budget, Budget)):
            raise InvalidParameter("a device has one budget: Budget(epsilon=10, per='month').")
        if not isinstance(limits or Limits(), Limits) or not isinstance(overall, Overall | None):
            raise InvalidParameter("limits are Limits(...), and overall is Overall(radius, budget).")
        if not (hasattr(store, "items") and hasattr(store, "space")):
            raise InvalidParameter(
                "a device has a ledger's file and a store, in this order: Device('me.db', tacit.fit(ratings))."
            )
        if scorer is not None and scorer.dimension != store.space.dimension:
            raise InvalidParameter(f"the scorer takes {scorer.dimension} features, not {store.space.dimension}.")
        self.items, self.space = store.items, store.space
        self.refresh, self.per_period = checked(refresh, per_period)
        self._scorer, self._noise, self._clock = scorer, checked_noise(noise), clock
        self._profile, self._version = Profile(), version_of(self.space)
        if private_scorer is None and scorer is not None:
            private_scorer = store_scorer(self.items, scorer)
        self._private_scorer, self._limits = private_scorer, limits or Limits()
        terms = None
        if budget is not None:
            require_within(self.refresh, budget.per)
            terms = multi_selection.terms_of(self.space, budget, noise)
            require_exact(budget, terms)
        self._ledger = PrivacyLedger.open_or_create(ledger, head=head, clock=clock)
        try:
            self._accounts = Accounts(self._ledger, self._limits, overall, noise=noise, clock=clock)
            self._memos = None if terms is None else Memos(self._ledger, terms, self.refresh, self.per_period)
            self._accounts.agree()
            displays = DisplayLedger.beside(self._ledger)
            self._revocations = Revocations(displays, self._profile.wipe)
            self._selecting = Selecting(
                displays,
                self._accounts,
                self._limits,
                None if private_scorer is None else self._quality,
                noise=noise,
                clock=clock,
            )
            if reinstalled:
                self._accounts.mark_reinstalled()
                if self._memos is not None:
                    self._memos.spend_the_rest()
        except BaseException:
            self.close()
            raise

    def rate(self, ratings: Mapping[int | str, float]) -> None:
        """Adds ratings by the items' titles or ids, all or none of them. Nothing leaves the device, and nothing is written."""
        if not isinstance(ratings, Mapping):
            raise InvalidParameter("ratings are given by item: rate({'Heat (1995)': 4, 32: 5}).")
        known: dict[int, float] = {}
        for place, (item, value) in enumerate(ratings.items(), 1):
            known[self._code(item, f"rating {place}")] = checked_rating(value, place)
        self._revocations.obey()  # else what is rated now would be wiped with what was rated before
        self._profile.rate(known)

    def forget(self, item: int | str) -> None:
        """Removes a rating from the profile. A signal that is already drawn stays what it is."""
        self._profile.forget(self._code(item, "this"))

    def ask(self, eta: Eta = 0.1) -> Signal:
        """This slot's signal: drawn and charged the first time, after that the same bytes, whatever is rated meanwhile.

        Send it to as many servers as you like. eta is the user's choice, never a server's: signals with two etas are two signals,
        and both are charged. Where the budget is spent this is an older signal with this eta, or else one that tells nothing.
        Drawing takes a time that depends on the noise: ask well before, and send at a time of the calendar.
        """
        exact, memos = exact_eta(eta), self._signals()
        mechanism = multi_selection.mechanism_of(self.space, exact)
        guarantee = multi_selection.charged(mechanism, self._noise)
        overall = self._accounts.signal(guarantee)
        if not memos.ever_fits(guarantee):
            least = float(multi_selection.eta_for(memos.budget))
            raise InvalidParameter(
                f"a signal with eta = {exact} never fits into '{memos.budget}': ask with an eta of at least {least}."
            )
        if not self._accounts.ever_has_room(overall):
            raise InvalidParameter(
                f"a signal with eta = {exact} never fits into the overall budget: ask with a larger eta."
            )
        slot = slot_of(self._clock(), self.refresh, self.per_period)
        kind = f"{self._version} {exact.numerator}/{exact.denominator}"
        memo = memos.find(slot, kind)
        if memo is not None:  # before the profile is touched: neither time nor error of a repetition depends on it
            return Signal.from_bytes(memo)
        # Features are refused, if at all, before anything is charged or drawn. Where nothing fits they are not looked at, unless
        # this slot was charged and not drawn because of a crash.
        room, obeyed = self._accounts.has_room(overall), self._revocations.obey()
        features = self._features() if room and memos.fits(guarantee) else None

        def draw() -> bytes:
            # Since the features were made there was a charge, and perhaps a wait for another process.
            row = features if features is not None and self._revocations.obey() == obeyed else self._features()
            self._accounts.pay_for_signal(slot, kind, guarantee)
            return Signal.from_release(mechanism.release(row, self._noise), exact).to_bytes()

        try:
            if room:
                return Signal.from_bytes(memos.release(slot, kind, guarantee, draw))
        except BudgetExhausted:
            pass
        older = memos.newest(kind)
        return (
            Signal.nothing(self.space.dimension, exact, mechanism.grid_bits)
            if older is None
            else Signal.from_bytes(older)
        )

    def request(self, k: int = 5, t: int = 1, *, eta: Eta = 0.1) -> Request:
        """This slot's signal in a request for a slate of k items, of which the device will take t."""
        empty = Request(
            Signal.nothing(self.space.dimension, exact_eta(eta)), k, t
        )  # refuses odd k and t before any noise
        return replace(empty, signal=self.ask(eta))

    def pick(self, reply: Reply, t: int = 1) -> tuple[int | str, ...]:
        """The ids of the ``t`` best items of a slate at the true features, best first; all of them where the slate has fewer.

        Nothing leaves the device: fetch the content of the whole slate, or the fetching tells the server what was picked.
        """
        codes = multi_selection.codes_of(reply, self.items)
        estimate = multi_selection.estimator(reply, codes, self.space.dimension, self._scorer)
        wanted = whole("t", t, least=1)
        self._revocations.obey()  # here, where a ledger that cannot be read is an error: below there is none
        estimates = multi_selection.estimates_at(self._features, estimate, len(codes))
        return tuple(self.items.id(codes[place]) for place in multi_selection.best(estimates, wanted))

    def titles(self, items: Iterable[int | str] | Choice) -> tuple[str, ...]:
        """The titles of picked items, by their ids, or of a choice."""
        if isinstance(items, Choice):  # a candidate's id is a text, whatever the store's ids are
            by_text = {str(one): code for code, one in enumerate(self.items.ids.tolist())}
            return tuple(self.items.title(by_text[item]) if item in by_text else item for item in items.items)
        return tuple(self.items.title(self.items.code(item)) for item in several("the items of titles", items))

    def readings(
        self,
        eta: Eta = 0.1,
        population: NDArray[Any] | None = None,
        *,
        genres: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> Readings:
        """What one signal promises, in plain numbers: for one rating, among 5 look-alikes of a public population, for anybody.

        Draws nothing and charges nothing. The figures for one rating follow from this profile: show them to the user only.
        """
        exact = exact_eta(eta)
        guarantee = multi_selection.charged(multi_selection.mechanism_of(self.space, exact), self._noise)
        return readings_of(
            exact,
            guarantee,
            self.space,
            self._ratings(),
            genres=genres,
            population=population,
            rng=np.random.default_rng(0) if rng is None else rng,
        )

    def consent(self) -> Consent:
        """She agrees that offers are chosen from by what is private. Dated, durable, and not so before it is said."""
        return self._selecting.consent(True)

    def revoke(self) -> Consent:
        """She no longer does: from the next offer on nothing private is read. The profile is wiped, also that of another process
        with this file, before it is next used; what was spent stays spent."""
        self._profile.wipe()
        return self._selecting.consent(False)

    def consent_state(self) -> Consent:
        """What she last said about offers, and when; not granted before she said anything."""
        return self._selecting.consent_state()

    def offer_request(self, context: str = "") -> OfferRequest:
        """What is sent for an offer: a public context, and whether she consents."""
        return OfferRequest(context, self.consent_state().granted)

    def choose(
        self,
        offer: Offer | Mapping[str, object] | str | bytes | None,
        server: str = "server",
        *,
        token: str | None = None,
    ) -> Choice | None:
        """What to show for an offer; None, no fill, for what is none, malformed or expired. The same token again: the same items.

        ``server`` is the application's own name for whoever made the offer. The choice is on the disk when it is returned, and
        its cost before it was drawn. None also while another call is choosing for the same token, and where it died: only the
        first call of a token ever writes what is shown.
        Fetch the content of all candidates before: fetching that of the choice alone tells it.
        ``token`` is for offers of a batch: the blind one of the shuffled report, which then survives a crash.
        """
        return self._selecting.choose(offer, server, token)

    def shown(self, choice: Choice) -> Impression:
        """Notes, durably, that the choice is on the screen; then this impression may be sent, and sent again."""
        return self._selecting.shown(choice)

    def shuffled_report(self, choice: Choice, token: str | None = None) -> ShuffledReport:
        """``shown`` for an offer of a batch: the report for the shuffler. The first token stands, whatever is given later."""
        return self._selecting.shuffled_report(choice, token)

    def pending(self, server: str = "server") -> list[Impression]:
        """What was shown and has no final answer: send it again, the same."""
        return self._selecting.pending(server)

    def pending_reports(self, server: str = "server") -> list[ShuffledReport]:
        """The same for shuffled reports."""
        return self._selecting.pending_reports(server)

    def settled(
        self,
        what: Choice | Impression | ShuffledReport | Engagement,
        outcome: Settlement | str,
        server: str = "server",
    ) -> None:
        """Notes the server's final answer: this report is not sent again. Where none came, say nothing."""
        self._selecting.settled(what, outcome, server)

    def note_click(self, choice: Choice) -> None:
        """Remembers, in memory, that she clicked. It leaves with ``clicks_due``, as a bit that chance may have flipped."""
        self._selecting.note_click(choice)

    def clicks_due(self, server: str = "server") -> list[Engagement]:
        """One report for every display under consent whose window is over, clicked or not. Ask at times of the calendar."""
        return self._selecting.clicks_due(server)

    def clicked(self, what: Choice | Impression, clicked: bool, server: str = "server") -> Engagement | None:
        """The report of one display now, for an application that keeps the windows itself: for every display, clicked or not."""
        return self._selecting.clicked(what, clicked, server)

    def statement(self, server: str | None = None, *, overall: bool = False) -> Statement:
        """What was promised so far and what is left: by signals; by choices and clicks for a server; or overall, by all of it."""
        if overall:
            return self._accounts.overall_statement()
        return self._signals().statement() if server is None else self._accounts.statement(server_name(server))

    def head(self) -> Head:
        """How far the file has come. Note it elsewhere after asking; given to the next start, it refuses an older copy."""
        return self._ledger.head()

    def close(self) -> None:
        """Closes the ledger's file. The profile was never written, and is gone with this object."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Device({len(self.items):,} items, {self.space.dimension} features)"  # public numbers only

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a device holds a private profile and is not written, copied or sent.")

    def _quality(self, items: tuple[str, ...]) -> ArrayLike:
        """What is private about items; called once for each offer, after it was charged."""
        if self._private_scorer is None:
            raise InvalidParameter("this device has no private model.")
        return self._private_scorer(self._features(), items)

    def _signals(self) -> Memos:
        if self._memos is None:
            raise InvalidParameter("signals need a budget: Device(..., budget=Budget(epsilon=10, per='month')).")
        return self._memos

    def _code(self, item: int | str, what: str) -> int:
        try:
            return self.items.code(item)
        except (UnknownName, TypeError, ValueError, OverflowError):
            pass  # what she rated is private, also what she tried to: the error shows no title, nor does its context
        raise UnknownName(
            f"{what} is of an item that is not, or not just once, among the {len(self.items):,} of this store. "
            "Look it up with device.items.code(title)."
        )

    def _ratings(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """What she rated since consent was last revoked, by whatever process."""
        self._revocations.obey()
        return self._profile.ratings()

    def _features(self) -> NDArray[np.float64]:
        ratings = self._ratings()
        try:
            with np.errstate(all="ignore"):
                return self.space.check(self.space.of(*ratings))
        except np.linalg.LinAlgError:
            pass
        raise InvalidFeatures("the features cannot be worked out in this store's feature space: load another store.")
