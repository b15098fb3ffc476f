"""The limits of a device: budgets for signals and offers, the slots of signals, and the accounts in the ledger that enforce them.

The owner of a device sets the limits. They act on public data only, and no offer of a server changes them.
"""

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
    InvalidParameter,
    LedgerUnavailable,
    UnknownSubject,
)
from tacit.guarantees import ONE_PROFILE, Guarantee, Neighbours, pure, within
from tacit.ledger import Budget, Clock, Period, PrivacyLedger, Receipt, Statement, Terms
from tacit.ledger.budgets import allowance, price
from tacit.ledger.chain import DAY, END_OF_TIME, as_datetime, checked_name, start_of_month, start_of_next_month
from tacit.mechanisms import Noise
from tacit.messages.private_selection import MOST_EPSILON, Rule

MOST_SERVER = 60  # characters of a server's name
GREEDY = "the privately best item is shown, without noise: the owner of this device said non_private"
PRIVATE_RULES = frozenset(Rule) - {Rule.GREEDY}
_MOST_WINDOW = 82_800  # seconds: a display is kept for 24 hours after its offer expires, which leaves an hour to report
_DAILY = Budget(10, per=Period.DAY, sliding=True)

# The subjects of a device's ledger. The file keeps these texts: they never change.
SIGNALS = "me "  # followed by the slots
SERVER = "selection "  # followed by the server's name
OVERALL = "overall"
_REINSTALLED = "reinstalled"
_UNKNOWN_SPENDING = "what was spent before the file was lost is not known, and taken for all"
_MARK = pure(0.0, ONE_PROFILE, assumes=frozenset({_UNKNOWN_SPENDING}))


@dataclass(frozen=True, slots=True)
class Limits:
    """What private selection may spend, and which of a server's policies the device follows.

    Each server has a ``budget`` of its own: with a common one, every server could see what the user does elsewhere. The losses
    of servers that pool their reports add up.

    ``most_epsilon`` is the most that one offer may cost. ``lifetime`` is an epsilon for ever, in addition to the budget of a
    period, because a daily budget bounds a day and not a life. ``non_private`` allows the rule `greedy`, which promises nothing;
    the ledger then records that. Clicks are reported with ``click_epsilon`` (None: never), ``click_window`` seconds after their
    offer expires.
    """

    budget: Budget = _DAILY
    most_epsilon: float = 1.0  # nats
    rules: frozenset[Rule] = PRIVATE_RULES
    non_private: bool = False
    lifetime: float | None = None  # nats
    click_epsilon: float | None = 1.0  # nats
    click_window: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget) or self.budget.delta:
            raise InvalidParameter("the budget of a server must be one Budget(epsilon, per=...) without a delta.")
        if type(self.non_private) is not bool:
            raise InvalidParameter("non_private must be True or False.")
        listed: object = self.rules
        if isinstance(listed, str) or not isinstance(listed, Collection):
            raise InvalidParameter("rules must be a collection of names, such as {'public', 'rr'}.")
        rules = frozenset(member("a rule", Rule, rule) for rule in listed)
        if Rule.GREEDY in rules and not self.non_private:
            raise InvalidParameter("the rule 'greedy' promises nothing: to allow it, set non_private=True.")
        keep(
            self,
            rules=rules | {Rule.GREEDY} if self.non_private else rules,
            most_epsilon=_epsilon("most_epsilon", self.most_epsilon),
            click_epsilon=None if self.click_epsilon is None else _epsilon("click_epsilon", self.click_epsilon),
            click_window=whole("click_window", self.click_window, least=0, most=_MOST_WINDOW),
        )
        if self.lifetime is not None:
            keep(self, lifetime=positive("lifetime", self.lifetime))
            if self.budget.per is Period.LIFETIME:
                raise InvalidParameter("the budget already covers a lifetime: leave `lifetime` out.")

    def terms(self, noise: Noise) -> Terms:
        """The terms of each server's account. They never change."""
        budgets = [self.budget] if self.lifetime is None else [self.budget, Budget(self.lifetime)]
        unprotected = [] if noise.caveat is None else [noise.caveat]
        return Terms.of(budgets, ONE_PROFILE, unprotected=[*unprotected, *([GREEDY] if self.non_private else [])])


@dataclass(frozen=True, slots=True)
class Overall:
    """One budget for everything that leaves the device: signals, choices and clicks, for all servers together.

    It protects features within ``radius`` of each other. With a smaller radius more signals fit, and features that are further
    apart are promised less. Once the budget is spent, every server can see that: what the user does at one server then shows at
    the others.
    """

    radius: float  # L1 distance of features
    budget: Budget = _DAILY

    def __post_init__(self) -> None:
        keep(self, radius=positive("radius", self.radius))
        if not isinstance(self.budget, Budget) or self.budget.delta:
            raise InvalidParameter("the overall budget must be one Budget(epsilon, per=...) without a delta.")

    @property
    def protects(self) -> Neighbours:
        """Features within the radius, in L1 distance."""
        return Neighbours.features("L1", self.radius)

    def terms(self, noise: Noise, limits: Limits) -> Terms:
        """The terms of the overall account. They never change."""
        return Terms.of(self.budget, self.protects, unprotected=limits.terms(noise).unprotected)

    def restated(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of a choice or click, for features within the radius.

        The given guarantee bounds the loss between *any* two private states of the device. The same epsilon therefore holds
        between two states whose features are near each other.
        """
        if guarantee.protects != ONE_PROFILE or not guarantee.is_pure:
            raise InvalidParameter("only a pure guarantee for the whole profile holds between any two feature vectors.")
        if guarantee.promises_nothing:
            return replace(guarantee, protects=self.protects)
        return pure(guarantee.epsilon, self.protects, proof=guarantee.proof, assumes=guarantee.assumes)


def _epsilon(name: str, value: float) -> float:
    if not 0.0 < finite(name, value) <= MOST_EPSILON:
        raise InvalidParameter(f"{name} must be above 0 and at most {MOST_EPSILON:g}.")
    return float(value)


def server_name(server: str) -> str:
    """The application's name for a server. It never comes from an offer."""
    return checked_name("the name of a server", server, MOST_SERVER)


@dataclass(frozen=True, slots=True)
class Slots:
    """When a device may draw a fresh signal: once per day, month or lifetime, or in each of ``per_period`` equal parts."""

    refresh: Period | str = Period.MONTH
    per_period: int = 1

    def __post_init__(self) -> None:
        keep(
            self,
            refresh=member("refresh", Period, self.refresh),
            per_period=whole("per_period", self.per_period, least=1, most=1000),
        )
        if self.refresh is Period.LIFETIME and self.per_period > 1:
            raise InvalidParameter("a lifetime has no parts: set per_period=1, or refresh by day or month.")

    def at(self, time: int) -> str:
        """The name of the slot at a time, in microseconds since 1970 (UTC)."""
        if not 0 <= time <= END_OF_TIME:
            raise LedgerUnavailable(
                "the system clock shows an impossible date; nothing was drawn. Set the clock and try again."
            )
        if self.refresh is Period.LIFETIME:
            return "ever"
        if self.refresh is Period.DAY:
            start, end, name = time - time % DAY, time - time % DAY + DAY, f"{as_datetime(time):%Y-%m-%d}"
        else:
            start, end, name = start_of_month(time), start_of_next_month(time), f"{as_datetime(time):%Y-%m}"
        part = (time - start) * self.per_period // (end - start)
        return name if self.per_period == 1 else f"{name}.{part + 1}of{self.per_period}"

    def require_within(self, period: Period) -> None:
        """Raises InvalidParameter if a slot is longer than the budget's period.

        A device that lost its memos is silent for one period. If the period ended before the slot does, the device would draw a
        second signal in one slot. A slot within a period is safe, even a sliding one: 24 hours or 31 days from now never end
        before the slot does.
        """
        lengths = (Period.DAY, Period.MONTH, Period.LIFETIME)
        if lengths.index(Period(self.refresh)) > lengths.index(period):
            raise InvalidParameter(
                f"a slot must not be longer than the budget's period, and refresh='{self.refresh}' is longer than "
                f"per='{period}': use refresh='{period}', or a budget per='{self.refresh}'."
            )


def slot_of(at: int, refresh: Period | str = Period.MONTH, per_period: int = 1) -> str:
    """The name of the slot at a time (microseconds since 1970, UTC): a day or month, or one of its equal parts.

    With "lifetime" there is one slot for ever.
    """
    return Slots(refresh, per_period).at(at)


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

        A charge without a guarantee belongs to an account that this device does not have. It fits.
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
        """Opens the overall account. Do this last: a device that cannot be opened must not leave an account behind."""
        if self._overall_terms is not None:
            self._ledger.enrol_many([OVERALL], self._overall_terms)

    def statement(self, server: str) -> Statement:
        return self._ledger.statement(self.server_subject(server))

    def overall_statement(self) -> Statement:
        if self._overall is None:
            raise InvalidParameter("this device has no overall budget: Device(..., overall=Overall(radius, budget)).")
        return self._ledger.statement(OVERALL)

    def mark_reinstalled(self) -> None:
        """Blocks all spending until every budget's period is over: nobody knows what the lost file had spent."""
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
