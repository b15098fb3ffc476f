"""The device of one user: a profile in memory, and a ledger in a file.

Multi-selection: one signal leaves in each slot.

    device = Device("me.db", store, budget=Budget(epsilon=10, per="month"))
    device.rate({"Toy Story (1995)": 5, 32: 3})
    reply = server.answer(device.ask(eta=0.1))
    device.pick(reply)

Private selection: the item that was shown leaves, exactly, once for each offer.

    device.consent()
    choice = device.choose(shop.offer(device.offer_request("sport")))
    shop.bill(device.shown(choice))
"""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.checks import several
from tacit.device.limits import DeviceBudget, Limits, Overall, Slots, server_name
from tacit.device.multi_selection import DeviceMultiSelection, Readings, terms_of
from tacit.device.private_selection import Choice, DevicePrivateSelection, PrivateScorer, code_of_name, store_scorer
from tacit.device.profile import DeviceState, checked_rating
from tacit.errors import InvalidParameter, UnknownName
from tacit.ledger import (
    Budget,
    Clock,
    Consent,
    DisplayLedger,
    Head,
    Period,
    PrivacyLedger,
    Settlement,
    Statement,
    Target,
    now,
)
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.mechanisms.noise import checked_noise
from tacit.messages.multi_selection import Eta, Reply, Request, Signal
from tacit.messages.private_selection import Engagement, Impression, Offer, OfferRequest, ShuffledReport
from tacit.models.features import FeatureSpace
from tacit.models.items import Items
from tacit.models.scorers import Scorer


class Public(Protocol):
    """The public part of a store: its items, and how ratings become features."""

    @property
    def items(self) -> Items: ...

    @property
    def space(self) -> FeatureSpace: ...


class Device:
    """One user's device. ``ledger`` is a file of its own, made at the first start.

    ``budget`` is what signals may cost, in epsilon (nats) per unit of L1 distance. It is agreed when the file is first opened with
    one, and never changes. A device without a budget cannot ask for slates.

    ``refresh`` and ``per_period`` say when a fresh signal may be drawn: once per month or day, or in each of ``per_period`` equal
    parts of it. They are agreed like the budget, and a slot is never longer than the budget's period.
    Set ``reinstalled`` once, at the first start after the file was lost or replaced by an older copy: the rest of the current
    period then counts as spent (with a lifetime budget, for ever). With a ``head`` that you noted elsewhere, a file that is
    missing or older is refused.
    ``scorer`` is the server's whole model. The device uses it for replies that leave the scoring to the device, and for choosing
    from offers unless there is a ``private_scorer``. ``limits`` are for private selection, ``overall`` is for everything together;
    their budgets are agreed like the first.
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
        limits = limits or Limits()
        if not (budget is None or isinstance(budget, Budget)):
            raise InvalidParameter("budget must be one Budget, such as Budget(epsilon=10, per='month').")
        if not isinstance(limits, Limits) or not isinstance(overall, Overall | None):
            raise InvalidParameter("limits must be Limits(...), and overall must be Overall(radius, budget).")
        if not (hasattr(store, "items") and hasattr(store, "space")):
            raise InvalidParameter(
                "a device takes a ledger's file and a store, in this order: Device('me.db', tacit.fit(ratings))."
            )
        if scorer is not None and scorer.dimension != store.space.dimension:
            raise InvalidParameter(f"the scorer takes {scorer.dimension} features, not {store.space.dimension}.")
        slots, noise = Slots(refresh, per_period), checked_noise(noise)
        self.items, self.space = store.items, store.space
        self.refresh, self.per_period = Period(slots.refresh), slots.per_period
        if private_scorer is None and scorer is not None:
            private_scorer = store_scorer(self.items, scorer)
        terms = None if budget is None else terms_of(self.space, budget, slots, noise)
        book = PrivacyLedger.open_or_create(ledger, head=head, clock=clock)  # all parameters are checked by now
        try:
            budgets = DeviceBudget(book, limits, overall, noise=noise, clock=clock)
            displays = DisplayLedger.beside(book)
            self._state = DeviceState(book, displays, budgets, self.items, self.space, limits, noise, clock)
            self._multi_selection = DeviceMultiSelection(self._state, slots, terms, scorer)
            budgets.open_overall()
            self._private_selection = DevicePrivateSelection(self._state, private_scorer)
            if reinstalled:
                budgets.mark_reinstalled()
                self._multi_selection.spend_rest()
        except BaseException:
            book.close()
            raise

    def rate(self, ratings: Mapping[int | str, float]) -> None:
        """Adds ratings by the items' titles or ids, all or none of them. Nothing leaves the device or is written to disk."""
        if not isinstance(ratings, Mapping):
            raise InvalidParameter("ratings must be a mapping by item: rate({'Heat (1995)': 4, 32: 5}).")
        checked: dict[int, float] = {}
        for position, (item, value) in enumerate(ratings.items(), 1):
            checked[self._code(item, f"rating {position}")] = checked_rating(value, position)
        self._state.obey_revocation()  # otherwise the new ratings would be wiped with the old ones
        self._state.profile.rate(checked)

    def forget(self, item: int | str) -> None:
        """Removes a rating from the profile. A signal that was already drawn does not change."""
        self._state.profile.forget(self._code(item, "this"))

    def ask(self, eta: Eta = 0.1) -> Signal:
        """The signal of the current slot: drawn and charged once, then the same bytes even if ratings change.

        Send it to as many servers as you like. The user chooses eta, never a server: signals with two etas are two signals, and
        both are charged. If the budget is spent, you get an older signal with this eta, or else one that says nothing about the
        user. Drawing takes a time that depends on the noise: ask well before, and send at a fixed time of the calendar.
        """
        return self._multi_selection.ask(eta)

    def request(self, k: int = 5, t: int = 1, *, eta: Eta = 0.1) -> Request:
        """The signal of the current slot, in a request for a slate of k items, of which the device will take t."""
        return self._multi_selection.request(k, t, eta)

    def pick(self, reply: Reply, t: int = 1) -> tuple[int | str, ...]:
        """The ids of the ``t`` best items of a slate at the true features, best first; all of them if the slate has fewer.

        Nothing leaves the device. Fetch the content of the whole slate: fetching only the pick would tell the server.
        """
        return self._multi_selection.pick(reply, t)

    def titles(self, items: Iterable[int | str] | Choice) -> tuple[str, ...]:
        """The titles of picked items, by their ids, or of a choice. An item of an offer without a title here keeps its id."""
        if isinstance(items, Choice):  # a candidate's id is a text, even if the store's ids are numbers
            codes = [(item, code_of_name(self.items, item)) for item in items.items]
            return tuple(item if code is None else self.items.title(code) for item, code in codes)
        return tuple(self.items.title(self.items.code(item)) for item in several("the items of titles", items))

    def readings(
        self,
        eta: Eta = 0.1,
        population: NDArray[Any] | None = None,
        *,
        genres: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> Readings:
        """The guarantee of one signal in plain numbers: for one rating, among 5 look-alikes of a public population, for anybody.

        Draws nothing and charges nothing. The figures for one rating follow from this profile: show them to the user only.
        """
        return self._multi_selection.readings(eta, population, genres, rng)

    def consent(self) -> Consent:
        """Records the user's consent to private selection, with its date.

        Without consent, offers are answered from public data only.
        """
        return self._private_selection.consent(True)

    def revoke(self) -> Consent:
        """Revokes consent: from the next offer on, nothing private is read.

        The profile is wiped. Other processes that share this file wipe theirs before they next use it. Spent budget stays spent.
        """
        return self._private_selection.consent(False)

    def consent_state(self) -> Consent:
        """Whether the user consents, and since which day. Without an answer there is no consent."""
        return self._state.displays.consent_state()

    def offer_request(self, context: str = "") -> OfferRequest:
        """A request for an offer: a public context, and whether the user consents."""
        return OfferRequest(context, self.consent_state().granted)

    def choose(
        self,
        offer: Offer | Mapping[str, object] | str | bytes | None,
        server: str = "server",
        *,
        token: str | None = None,
    ) -> Choice | None:
        """The choice to show for an offer; None (no fill) if the offer is missing, malformed or expired.

        The same token gives the same items.

        ``server`` is the application's own name for the maker of the offer. The choice is on the disk when it is returned, and its
        cost was charged before it was drawn. None also while another call is choosing for the same token, and after such a call
        died: only the first call of a token ever writes what is shown.
        Fetch the content of all candidates in advance: fetching only that of the choice would reveal it.
        ``token`` is for offers of a batch: the blind token of the shuffled report, which then survives a crash.
        """
        return self._private_selection.choose(offer, server, token)

    def shown(self, choice: Choice) -> Impression:
        """Records, durably, that the choice is on the screen. After that you may send this impression, also repeatedly."""
        return self._private_selection.shown(choice)

    def shuffled_report(self, choice: Choice, token: str | None = None) -> ShuffledReport:
        """``shown`` for an offer of a batch: the report for the shuffler. The first token counts; later ones are ignored."""
        return self._private_selection.shuffled_report(choice, token)

    def pending(self, server: str = "server") -> list[Impression]:
        """The impressions that were shown and have no final answer: send them again, unchanged."""
        return self._private_selection.pending(server)

    def pending_reports(self, server: str = "server") -> list[ShuffledReport]:
        """The shuffled reports that have no final answer: send them again, unchanged."""
        return self._private_selection.pending_reports(server)

    def settled(
        self,
        what: Choice | Impression | ShuffledReport | Engagement,
        outcome: Settlement | str,
        server: str = "server",
    ) -> None:
        """Records the server's final answer: the report is not sent again. Do not call it without a final answer."""
        self._private_selection.settled(what, outcome, server)

    def note_click(self, choice: Choice) -> None:
        """Remembers a click, in memory. It leaves with ``clicks_due``, as a bit that may have been flipped at random."""
        self._private_selection.note_click(choice)

    def clicks_due(self, server: str = "server") -> list[Engagement]:
        """One report for every display under consent whose window is over, clicked or not. Call it at fixed times."""
        return self._private_selection.clicks_due(server)

    def clicked(self, what: Choice | Impression, clicked: bool, server: str = "server") -> Engagement | None:
        """The report of one display now. Use it if your application keeps the windows itself: for every display, clicked or not."""
        return self._private_selection.clicked(what, clicked, server)

    def statement(self, server: str | None = None, *, overall: bool = False) -> Statement:
        """The guarantee so far, and what is left: for signals, for choices and clicks at a server, or overall."""
        if overall:
            return self._state.budget.overall_statement()
        if server is None:
            return self._multi_selection.statement()
        return self._state.budget.statement(server_name(server))

    def head(self) -> Head:
        """How far the file has come. Note it elsewhere after asking; the next start, given this head, refuses an older copy."""
        return self._state.ledger.head()

    def close(self) -> None:
        """Closes the ledger's file. The profile was never written, and is gone with this object."""
        self._state.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Device({len(self.items):,} items, {self.space.dimension} features)"  # public numbers only

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a device holds a private profile and cannot be written, copied or sent.")

    def _code(self, item: int | str, name: str) -> int:
        try:
            return self.items.code(item)
        except (UnknownName, TypeError, ValueError, OverflowError):
            pass  # raised below, without this context: a rating that failed is private as well, and so is its title
        raise UnknownName(
            f"{name} is of an item that is not among the {len(self.items):,} of this store, or not unique. "
            "Look it up with device.items.code(title)."
        )
