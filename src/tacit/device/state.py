"""What a device holds: a profile in memory; charges, releases and displays in one file; and the budgets of that file.

Multi-selection and private selection share one ``DeviceState``. Nothing private is ever written to the file.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite
from tacit.device.limits import MOST_SERVER, Limits, Overall
from tacit.errors import BudgetExhausted, Conflict, GuaranteeRefused, InvalidFeatures, InvalidParameter, UnknownSubject
from tacit.guarantees import ONE_PROFILE, Guarantee, nothing, pure, within
from tacit.ledger import Budget, Clock, DisplayLedger, PrivacyLedger, Receipt, Statement, Terms
from tacit.ledger.budgets import allowance, price
from tacit.ledger.chain import checked_name
from tacit.mechanisms import Noise
from tacit.models.features import FeatureSpace
from tacit.models.items import Items

# The subjects of a device's ledger. The file keeps these texts: they never change.
SIGNALS = "me "  # followed by the slots
SERVER = "selection "  # followed by the server's name
OVERALL = "overall"
_REINSTALLED = "reinstalled"
_UNKNOWN_SPENDING = "what was spent before the file was lost is not known, and taken for all"
_MARK = pure(0.0, ONE_PROFILE, assumes=frozenset({_UNKNOWN_SPENDING}))

MOST_RATING = 1e6  # on any scale: features could overflow far beyond it


class Profile:
    """The private data of one user: ratings by item code, and which displays they clicked. It lives in memory only.

    Its text shows no content, and it cannot be pickled, copied or written. An application that needs the ratings after a restart
    stores them itself, in a place of its own.
    """

    __slots__ = ("_clicked", "_ratings")

    def __init__(self) -> None:
        self._ratings: dict[int, float] = {}
        self._clicked: set[tuple[str, str]] = set()

    def rate(self, ratings: Mapping[int, float]) -> None:
        """Adds ratings, or replaces earlier ones of the same items."""
        self._ratings |= ratings

    def forget(self, code: int) -> None:
        """Removes the rating of an item, if there is one."""
        self._ratings.pop(code, None)

    def click(self, server: str, token: str) -> None:
        """Remembers that the user clicked what was shown for this offer."""
        self._clicked.add((server, token))

    def clicked(self, server: str, token: str) -> bool:
        """Whether the user clicked what was shown for this offer."""
        return (server, token) in self._clicked

    def wipe(self) -> None:
        """Removes all ratings and clicks."""
        self._ratings.clear()
        self._clicked.clear()

    def ratings(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Item codes, ascending, and their ratings."""
        codes = sorted(self._ratings)
        return np.array(codes, dtype=np.int64), np.array([self._ratings[code] for code in codes], dtype=np.float64)

    def __len__(self) -> int:
        return len(self._ratings)

    def __repr__(self) -> str:
        return "Profile(private)"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a profile is private and cannot be written, copied or sent: release a signal instead.")


def checked_rating(value: float, position: int) -> float:
    """A rating within public bounds. The error names its position only, never the value."""
    try:
        number = finite("a rating", value)
    except InvalidParameter:
        number = math.inf
    if abs(number) > MOST_RATING:
        raise InvalidParameter(
            f"rating {position} must be a finite number from {-MOST_RATING:,.0f} to {MOST_RATING:,.0f}."
        )
    return number


class Room(Enum):
    """Whether a charge fits into an account."""

    NEVER = "never"  # not even if nothing were spent
    NOT_NOW = "not now"
    FITS = "fits"


class DeviceBudget:
    """The accounts in a device's ledger: one for signals, one for each server's choices and clicks, and perhaps one for all.

    Nothing here reads private data: whether a charge is refused depends on how many offers there were, and on their policies.
    Terms are agreed when an account is opened and never change. A file that was made with other limits raises Conflict.
    """

    def __init__(
        self, ledger: PrivacyLedger, limits: Limits, overall: Overall | None, *, noise: Noise, clock: Clock
    ) -> None:
        self._ledger, self._overall, self._clock = ledger, overall, clock
        self._server_terms = limits.terms(noise)
        self._overall_terms = None if overall is None else overall.terms(noise, limits)
        self._open: set[str] = set()
        self._require_same_terms()

    def room(self, charges: Sequence[tuple[str, Guarantee | None]]) -> list[Room]:
        """Whether each of these charges fits, by subject and guarantee. All subjects are read at once; nothing is charged.

        A charge without a guarantee is one to an account that this device does not have. It fits.
        """
        subjects = [subject for subject, guarantee in charges if guarantee is not None]
        statements = dict(zip(subjects, self._ledger.statements(subjects), strict=True)) if subjects else {}
        return [
            Room.FITS if guarantee is None else self._room(statements[subject], guarantee)
            for subject, guarantee in charges
        ]

    def overall_guarantee(self, guarantee: Guarantee) -> Guarantee | None:
        """What a release costs the overall account; None if the device has no such account."""
        if self._overall is None:
            return None
        if guarantee.protects == ONE_PROFILE:
            return self._overall.restated(guarantee)
        return within(guarantee, self._overall.radius)  # a signal: its metric guarantee, read at the radius

    def charge_selection(self, server: str, kind: str, token: str, guarantee: Guarantee) -> Receipt | None:
        """Charges a choice or click to the server's account and to the overall one, durably. None if either refuses.

        If the server's account accepts and the overall one refuses, the budget of the first is lost. No promise is broken.
        """
        overall = self.overall_guarantee(guarantee)
        if self._is_silent(self._server_terms) or self.room([(OVERALL, overall)]) != [Room.FITS]:
            return None
        subject = self.server_subject(server)
        try:
            receipt = self._ledger.charge(subject, f"{kind} {token}", guarantee)
            if overall is not None:
                self._ledger.charge(OVERALL, f"{kind} {server} {token}", overall)
        except (BudgetExhausted, GuaranteeRefused, Conflict):  # Conflict: the id was charged under another guarantee
            return None
        return receipt

    def charge_signal_overall(self, release_id: str, guarantee: Guarantee) -> None:
        """Charges a signal to the overall account, if there is one. Raises BudgetExhausted if it does not fit."""
        overall = self.overall_guarantee(guarantee)
        if overall is not None:
            self._ledger.charge(OVERALL, f"signal {release_id}", overall)

    def server_subject(self, server: str) -> str:
        """The subject of a server's account. It is opened at the first use."""
        subject = SERVER + server
        if subject not in self._open:
            self._ledger.enrol_many([subject], self._server_terms)
            self._open.add(subject)
        return subject

    def open_overall(self) -> None:
        """Opens the overall account. Do this last: a device that is refused must not leave one behind."""
        if self._overall_terms is not None:
            self._ledger.enrol_many([OVERALL], self._overall_terms)

    def statement(self, server: str) -> Statement:
        return self._ledger.statement(self.server_subject(server))

    def overall_statement(self) -> Statement:
        if self._overall is None:
            raise InvalidParameter("this device has no overall budget: Device(..., overall=Overall(radius, budget)).")
        return self._ledger.statement(OVERALL)

    def mark_reinstalled(self) -> None:
        """Spends nothing from now on until every budget's period is over: nobody knows what the lost file had spent."""
        self._ledger.enrol_many([_REINSTALLED], Terms.of(Budget(1), ONE_PROFILE))
        self._ledger.release(_REINSTALLED, f"at {self._clock()}", _MARK, lambda: b"")

    def _room(self, statement: Statement, guarantee: Guarantee) -> Room:
        terms = statement.terms
        try:
            amount = price(guarantee, terms).amount
        except GuaranteeRefused:
            return Room.NEVER
        if any(amount > allowance(budget, terms).amount for budget in terms.budgets):
            return Room.NEVER
        if statement.subject == OVERALL and self._is_silent(terms):
            return Room.NOT_NOW
        return Room.FITS if all(amount <= window.left.amount for window in statement.windows) else Room.NOT_NOW

    def _is_silent(self, terms: Terms) -> bool:
        """Whether the device was reinstalled within a window of one of these budgets."""
        try:
            with closing(self._ledger.stored(_REINSTALLED)) as marks:
                mark = next(iter(marks), None)
        except UnknownSubject:
            return False
        if mark is None:  # a crash between the two steps of marking
            return True
        now = max(self._clock(), mark.at)  # the ledger's time never goes back
        return any(mark.at >= budget.start(now) for budget in terms.budgets)

    def _require_same_terms(self) -> None:
        subjects = list(self._ledger.subjects())
        if not all(subject.startswith((SIGNALS, SERVER, OVERALL, _REINSTALLED)) for subject in subjects):
            raise Conflict("this file is the ledger of another party, not of a device.")
        if self._overall_terms is not None and OVERALL not in subjects:
            spenders = [subject for subject in subjects if subject != _REINSTALLED]
            if any(self._ledger.statement(subject).charges for subject in spenders):
                raise Conflict(
                    "an overall budget must be agreed before anything is spent, and the device in this file has already spent "
                    "something. Open it without `overall`."
                )
        agreed: dict[str, Terms | None] = {name: self._server_terms for name in subjects if name.startswith(SERVER)}
        agreed |= {name: self._overall_terms for name in subjects if name == OVERALL}
        if any(self._ledger.terms(subject) != terms for subject, terms in agreed.items()):
            raise Conflict(
                "the device in this file has other limits (budget, lifetime, non_private), another overall budget or radius, "
                "or other noise. Terms never change: open the file with the settings it was made with."
            )


def server_name(server: str) -> str:
    """The application's name for a server. It never comes from an offer."""
    return checked_name("the name of a server", server, MOST_SERVER)


@dataclass(eq=False, repr=False)
class DeviceState:
    """What the two systems of a device share."""

    ledger: PrivacyLedger
    displays: DisplayLedger  # in the file of the ledger
    budget: DeviceBudget
    items: Items
    space: FeatureSpace
    limits: Limits
    noise: Noise
    clock: Clock
    profile: Profile = field(default_factory=Profile)

    def __post_init__(self) -> None:
        self._last_revocation = self.displays.last_revocation()

    def obey_revocation(self) -> int:
        """Wipes the profile if consent was revoked since the last call, by any process that shares the file.

        Call it before you add to the profile and before you read it. Returns the number of the last revocation.
        """
        last = self.displays.last_revocation()
        if last != self._last_revocation:
            self.profile.wipe()
            # Only after the wipe: another thread that looks meanwhile wipes as well, and never uses what is still there.
            self._last_revocation = last
        return last

    def ratings(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The user's ratings since the last revocation: private."""
        self.obey_revocation()
        return self.profile.ratings()

    def features(self) -> NDArray[np.float64]:
        """The features of the user's ratings: private."""
        ratings = self.ratings()
        try:
            with np.errstate(all="ignore"):
                return self.space.check(self.space.of(*ratings))
        except np.linalg.LinAlgError:
            pass  # raised below, without this context: it may show private numbers
        raise InvalidFeatures("this store's feature space cannot turn the ratings into features: load another store.")

    def promise(self, guarantee: Guarantee) -> Guarantee:
        """What a release promises when it is drawn from this device's noise. The ledger charges this before the draw."""
        if self.noise.caveat is None or guarantee.promises_nothing:
            return guarantee
        return nothing(guarantee.protects, self.noise.caveat, proof=guarantee.proof)
