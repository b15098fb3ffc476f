"""The device: beside one user, with her profile in its memory and a ledger in its file. One signal leaves it in each slot.

device = Device("me.db", store, budget=Budget(epsilon=10, per="month"))
device.rate({"Toy Story (1995)": 5, 32: 3})
reply = server.answer(device.ask(eta=0.1))
device.pick(reply)
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, whole
from tacit.device import multi_selection
from tacit.device.profile import Profile
from tacit.device.readings import Readings, readings_of
from tacit.device.slots import checked, slot_of
from tacit.errors import BudgetExhausted, Conflict, InvalidParameter, UnknownName
from tacit.guarantees import metric
from tacit.ledger import Budget, Period, PrivacyLedger, Statement
from tacit.ledger.accounting import allowance, price
from tacit.ledger.clock import Clock, now
from tacit.ledger.stores import Target
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.multi_selection import Eta, Reply, Request, Signal, exact_eta
from tacit.models.features import FeatureSpace
from tacit.models.items import Items
from tacit.models.scorer import Scorer

SUBJECT = "me"
REINSTALLED = "reinstalled"
_LOST = "a lost memo may have spent the whole budget of its period"


class Public(Protocol):
    """What a device must know of a store: the items, and what features are."""

    @property
    def items(self) -> Items: ...

    @property
    def space(self) -> FeatureSpace: ...


class Device:
    """One user's device. ``budget`` is in epsilon per unit of L1 distance; it is agreed when the file is made, and never changes.

    ``refresh`` and ``per_period`` say when a fresh signal may be drawn: once in each month or day, or in each of ``per_period``
    equal parts of it. Say ``reinstalled`` where an earlier file was lost: the period that is under way then counts as spent (with a
    lifetime budget, for ever).
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
        self._scorer, self._noise, self._clock = scorer, noise, clock
        self._profile = Profile()
        terms = multi_selection.terms_of(self.space, budget, noise)
        lost = metric(budget.epsilon, rounding=terms.rounding, proof="multi-selection", assumes=frozenset({_LOST}))
        if price(lost, terms).amount != allowance(budget, terms).amount:
            raise InvalidParameter("the epsilon of a device's budget has at most nine decimals.")
        self._ledger = PrivacyLedger.open_or_create(place, clock=clock)
        try:
            self._ledger.enrol_many([SUBJECT], terms)
            if reinstalled and self._ledger.statement(SUBJECT).charges == 0:
                self._ledger.charge(SUBJECT, REINSTALLED, lost)
        except Conflict:
            self.close()
            raise Conflict(
                "the device in this file has another budget, another number of features, or other noise. What was promised "
                "stays promised: open it as it was made."
            ) from None
        except BaseException:
            self.close()
            raise

    def rate(self, ratings: Mapping[int | str, float]) -> None:
        """Adds ratings by the items' titles or ids, all or none of them. Nothing leaves the device, and nothing is written."""
        known: dict[int, float] = {}
        for place, (item, value) in enumerate(ratings.items(), 1):
            code = self._code(item, f"rating {place}")
            try:
                known[code] = finite("a rating", value)
            except InvalidParameter:
                raise InvalidParameter(f"rating {place} is not a finite number.") from None
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
        features = self._features()  # refused, if at all, before anything is charged or drawn
        kind = f"{self.space.kind} {self.space.dimension} {exact.numerator}/{exact.denominator}"

        def draw() -> bytes:
            return Signal.from_release(mechanism.release(features, self._noise), exact).to_bytes()

        slot = slot_of(self._clock(), self.refresh, self.per_period)
        guarantee = multi_selection.charged(mechanism, self._noise)
        try:
            return Signal.from_bytes(self._ledger.release(SUBJECT, f"{slot} {kind}", guarantee, draw))
        except BudgetExhausted:
            return self._newest(kind) or Signal.nothing(self.space.dimension, exact, mechanism.grid_bits)

    def request(self, k: int = 5, t: int = 1, *, eta: Eta = 0.1) -> Request:
        """This slot's signal in a request for a slate of k items, of which the device will take t."""
        return Request(self.ask(eta), k, t)

    def pick(self, reply: Reply, t: int = 1) -> tuple[int | str, ...]:
        """The ids of the ``t`` best items of a slate at the true features, best first; all of them where the slate has fewer.

        Nothing leaves the device: fetch the content of the whole slate, or the fetching tells the server what was picked.
        """
        codes = multi_selection.codes_of(reply, self.items)
        estimate = multi_selection.estimator(reply, codes, self.space.dimension, self._scorer)
        wanted = whole("t", t, least=1)
        with np.errstate(all="ignore"):
            estimates = estimate(self._features())
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
        return self._ledger.statement(SUBJECT)

    def close(self) -> None:
        self._ledger.close()

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
        except UnknownName:  # what she rated is private, also what she tried to: the error shows no title
            raise UnknownName(
                f"{what} is of an item that is not, or not just once, among the {len(self.items):,} of this store. "
                "Look it up with device.items.code(title)."
            ) from None

    def _features(self) -> NDArray[np.float64]:
        return self.space.check(self.space.of(*self._profile.ratings()))

    def _newest(self, kind: str) -> Signal | None:
        """The newest kept signal of this kind. It was paid for; reading charges nothing."""
        with closing(self._ledger.stored(SUBJECT)) as kept:
            found = next((one.content for one in kept if one.release_id.partition(" ")[2] == kind), None)
        return None if found is None else Signal.from_bytes(found)
