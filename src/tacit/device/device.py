"""The device: beside one user, with her profile in its memory and a ledger in its file. One signal leaves it in each slot.

device = Device("me.db", store, budget=Budget(epsilon=10, per="month"))
device.rate({"Toy Story (1995)": 5, 32: 3})
reply = server.answer(device.ask(eta=0.1))
device.pick(reply)
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.device import multi_selection
from tacit.device.memos import Memos, require_exact, version_of
from tacit.device.profile import Profile, checked_rating
from tacit.device.readings import Readings, readings_of
from tacit.device.slots import checked, require_within, slot_of
from tacit.errors import BudgetExhausted, InvalidFeatures, InvalidParameter, UnknownName
from tacit.ledger import Budget, Head, Period, Statement
from tacit.ledger.clock import Clock, now
from tacit.ledger.stores import Target
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.multi_selection import Eta, Reply, Request, Signal, exact_eta
from tacit.models.features import FeatureSpace
from tacit.models.items import Items
from tacit.models.scorer import Scorer


class Public(Protocol):
    """What a device must know of a store: the items, and what features are."""

    @property
    def items(self) -> Items: ...

    @property
    def space(self) -> FeatureSpace: ...


class Device:
    """One user's device. ``budget`` is in epsilon per unit of L1 distance; it is agreed when the file is made, and never changes.

    ``refresh`` and ``per_period`` say when a fresh signal may be drawn: once in each month or day, or in each of ``per_period``
    equal parts of it. They are agreed like the budget, and no slot is longer than the budget's period.
    Say ``reinstalled`` once, at the first start after the file was lost or replaced by an older copy: what is left of the period
    that is under way then counts as spent (with a lifetime budget, for ever). With a ``head`` that was noted elsewhere, a file
    that is missing or older is refused.
    ``scorer`` is the server's whole model, for replies that leave the scoring to the device.
    """

    def __init__(
        self,
        place: Target,
        store: Public,
        *,
        budget: Budget,
        refresh: Period | str = Period.MONTH,
        per_period: int = 1,
        reinstalled: bool = False,
        head: Head | None = None,
        noise: Noise = SYSTEM_NOISE,
        scorer: Scorer | None = None,
        clock: Clock = now,
    ) -> None:
        if not isinstance(budget, Budget):
            raise InvalidParameter("a device has one budget: Budget(epsilon=10, per='month').")
        if scorer is not None and scorer.dimension != store.space.dimension:
            raise InvalidParameter(f"the scorer takes {scorer.dimension} features, not {store.space.dimension}.")
        self.items, self.space = store.items, store.space
        self.refresh, self.per_period = checked(refresh, per_period)
        require_within(self.refresh, budget.per)
        self._scorer, self._noise, self._clock = scorer, noise, clock
        self._profile, self._version = Profile(), version_of(self.space)
        terms = multi_selection.terms_of(self.space, budget, noise)
        require_exact(budget, terms)
        self._memos = Memos(place, terms, self.refresh, self.per_period, head=head, clock=clock)
        if reinstalled:
            try:
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
        exact = exact_eta(eta)
        mechanism = multi_selection.mechanism_of(self.space, exact)
        guarantee = multi_selection.charged(mechanism, self._noise)
        if not self._memos.ever_fits(guarantee):
            least = float(multi_selection.eta_for(self._memos.budget))
            raise InvalidParameter(
                f"a signal with eta = {exact} never fits into '{self._memos.budget}': ask with an eta of at least {least}."
            )
        slot = slot_of(self._clock(), self.refresh, self.per_period)
        kind = f"{self._version} {exact.numerator}/{exact.denominator}"
        memo = self._memos.find(slot, kind)
        if memo is not None:  # before the profile is touched: neither time nor error of a repetition depends on it
            return Signal.from_bytes(memo)
        # Features are refused, if at all, before anything is charged or drawn. Where nothing fits they are not looked at, unless
        # this slot was charged and not drawn because of a crash.
        features = self._features() if self._memos.fits(guarantee) else None

        def draw() -> bytes:
            row = self._features() if features is None else features
            return Signal.from_release(mechanism.release(row, self._noise), exact).to_bytes()

        try:
            return Signal.from_bytes(self._memos.release(slot, kind, guarantee, draw))
        except BudgetExhausted:
            older = self._memos.newest(kind)
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
        estimates = multi_selection.estimates_at(self._features, estimate, len(codes))
        return tuple(self.items.id(codes[place]) for place in multi_selection.best(estimates, wanted))

    def titles(self, picked: tuple[int | str, ...]) -> tuple[str, ...]:
        """The titles of picked items."""
        return tuple(self.items.title(self.items.code(item)) for item in picked)

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
            self._profile.ratings(),
            genres=genres,
            population=population,
            rng=np.random.default_rng(0) if rng is None else rng,
        )

    def statement(self) -> Statement:
        """What was promised by all signals so far, and what is left of the budget."""
        return self._memos.statement()

    def head(self) -> Head:
        """How far the file has come. Note it elsewhere after asking; given to the next start, it refuses an older copy."""
        return self._memos.head()

    def close(self) -> None:
        self._memos.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Device({self._profile!r}, {len(self.items):,} items, {self.space.dimension} features)"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a device holds a private profile and is not written, copied or sent.")

    def _code(self, item: int | str, what: str) -> int:
        try:
            return self.items.code(item)
        except (UnknownName, TypeError, ValueError, OverflowError):
            pass  # what she rated is private, also what she tried to: the error shows no title, nor does its context
        raise UnknownName(
            f"{what} is of an item that is not, or not just once, among the {len(self.items):,} of this store. "
            "Look it up with device.items.code(title)."
        )

    def _features(self) -> NDArray[np.float64]:
        try:
            with np.errstate(all="ignore"):
                return self.space.check(self.space.of(*self._profile.ratings()))
        except np.linalg.LinAlgError:
            pass
        raise InvalidFeatures("the features cannot be worked out in this store's feature space: load another store.")
