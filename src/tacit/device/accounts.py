"""What private selection spends, in the device's ledger: one subject for each server and, where the owner wants it, one for all.

Nothing here looks at anything private: what is refused follows from how many offers there were, and from their policies.
"""

from contextlib import closing
from typing import TypeAlias

from tacit.device.limits import Limits, Overall
from tacit.device.memos import ME
from tacit.errors import BudgetExhausted, Conflict, GuaranteeRefused, InvalidParameter, UnknownSubject
from tacit.guarantees import ONE_PROFILE, Guarantee, pure, within
from tacit.ledger import Budget, PrivacyLedger, Receipt, Statement, Terms, price
from tacit.ledger.accounting import allowance
from tacit.ledger.clock import Clock
from tacit.mechanisms import Noise

_SERVER, _OVERALL, _REINSTALLED = "selection ", "overall", "reinstalled"
_OURS = (ME, _SERVER, _OVERALL, _REINSTALLED)
_LOST = "what was spent before the file was lost is not known, and taken for all"
_MARK = pure(0.0, ONE_PROFILE, assumes=frozenset({_LOST}))
# no room; not allowed; an id that was used for something else
_REFUSALS = (BudgetExhausted, GuaranteeRefused, Conflict)

Id: TypeAlias = tuple[str, str]  # what, and the token it is for


class Accounts:
    """The terms are agreed when a server is first met, and never change: opened with other limits, the file is refused."""

    def __init__(
        self, ledger: PrivacyLedger, limits: Limits, overall: Overall | None, *, noise: Noise, clock: Clock
    ) -> None:
        self._ledger, self._overall, self._clock = ledger, overall, clock
        self._terms = limits.terms(noise)
        self._overall_terms = None if overall is None else overall.terms(noise, limits)
        self._met: set[str] = set()
        self._require_as_agreed(list(ledger.subjects()))

    def agree(self) -> None:
        """Enrols the overall subject; where something else of the device is refused, this is not to be done."""
        if self._overall_terms is not None:
            self._ledger.enrol_many([_OVERALL], self._overall_terms)

    def mark_reinstalled(self) -> None:
        """From now on nothing is spent until every budget's period is over: of what was lost nothing is known."""
        self._ledger.enrol_many([_REINSTALLED], Terms.of(Budget(1), ONE_PROFILE))
        self._ledger.release(_REINSTALLED, f"at {self._clock()}", _MARK, lambda: b"")

    def pay(self, server: str, what: Id, guarantee: Guarantee) -> Receipt | None:
        """Charges a choice or click, durably, to the server's subject and to the overall one. None where one of them refuses.

        Where they disagree the one that was charged has lost budget; no promise is.
        """
        if self._silent() or not self.has_room(self._restated(guarantee)):
            return None
        subject = self._meet(server)
        receipt = self._charge(subject, " ".join(what), guarantee)
        if receipt is None or self._overall is None:
            return receipt
        overall = self._charge(_OVERALL, " ".join([what[0], server, what[1]]), self._overall.restated(guarantee))
        return None if overall is None else receipt

    def pay_for_signal(self, slot: str, kind: str, guarantee: Guarantee) -> None:
        """Charges a signal to the overall subject: its metric guarantee, read at the radius. Raises where there is no room."""
        found = self.signal(guarantee)
        if found is not None:
            self._ledger.charge(_OVERALL, f"signal {slot} {kind}", found)

    def signal(self, guarantee: Guarantee) -> Guarantee | None:
        return None if self._overall is None else within(guarantee, self._overall.radius)

    def has_room(self, guarantee: Guarantee | None) -> bool:
        """Whether the overall subject, if there is one, could be charged now."""
        if guarantee is None or self._overall_terms is None:
            return True
        if self._silent(self._overall_terms):
            return False
        try:
            needed = price(guarantee, self._overall_terms).amount
        except GuaranteeRefused:
            return False
        return all(needed <= window.left.amount for window in self._ledger.statement(_OVERALL).windows)

    def ever_has_room(self, guarantee: Guarantee | None) -> bool:
        """Whether the overall subject, if there is one, could be charged if nothing were spent."""
        terms = self._overall_terms
        if guarantee is None or terms is None:
            return True
        return all(price(guarantee, terms).amount <= allowance(budget, terms).amount for budget in terms.budgets)

    def awaited(self, server: str, what: Id, receipt: Receipt) -> bytes | None:
        """What is kept for a charge that was paid; None where the caller is to draw it."""
        return self._ledger.awaited(_SERVER + server, " ".join(what), receipt)

    def keep(self, server: str, what: Id, content: bytes) -> bytes:
        """Keeps what was drawn for a charge; returns what is kept, which may be another's."""
        return self._ledger.keep(_SERVER + server, " ".join(what), content)

    def kept(self, server: str, what: Id) -> bytes | None:
        """What was kept for a charge."""
        with closing(self._ledger.stored(self._meet(server))) as stored:
            return next((one.content for one in stored if one.release_id == " ".join(what)), None)

    def statement(self, server: str) -> Statement:
        return self._ledger.statement(self._meet(server))

    def overall_statement(self) -> Statement:
        if self._overall is None:
            raise InvalidParameter("this device has no overall budget: Device(..., overall=Overall(radius, budget)).")
        return self._ledger.statement(_OVERALL)

    def _restated(self, guarantee: Guarantee) -> Guarantee | None:
        return None if self._overall is None else self._overall.restated(guarantee)

    def _meet(self, server: str) -> str:
        subject = _SERVER + server
        if subject not in self._met:
            self._ledger.enrol_many([subject], self._terms)
            self._met.add(subject)
        return subject

    def _charge(self, subject: str, release_id: str, guarantee: Guarantee) -> Receipt | None:
        try:
            return self._ledger.charge(subject, release_id, guarantee)
        except _REFUSALS:
            return None

    def _silent(self, terms: Terms | None = None) -> bool:
        """Whether a reinstallation lies within a window of any budget."""
        try:
            with closing(self._ledger.stored(_REINSTALLED)) as marks:
                mark = next(iter(marks), None)
        except UnknownSubject:
            return False
        if mark is None:  # a crash between the two steps of marking
            return True
        latest = mark.at
        now = max(self._clock(), latest)  # the ledger's time never goes back
        return any(latest >= budget.start(now) for budget in (terms or self._terms).budgets)

    def _require_as_agreed(self, subjects: list[str]) -> None:
        agreed: dict[str, Terms | None] = {one: self._terms for one in subjects if one.startswith(_SERVER)}
        agreed |= {one: self._overall_terms for one in subjects if one == _OVERALL}
        if not all(one.startswith(_OURS) for one in subjects):
            raise Conflict("this file is another party's ledger, and no device's.")
        if self._overall_terms is not None and _OVERALL not in subjects:
            spending = [one for one in subjects if one != _REINSTALLED]
            if any(self._ledger.statement(one).charges for one in spending):
                raise Conflict(
                    "the device in this file has spent something that an overall budget would not contain: "
                    "an overall budget is agreed before anything is spent."
                )
        for subject, terms in agreed.items():
            if self._ledger.terms(subject) != terms:
                raise Conflict(
                    "the device in this file has other limits (budget, lifetime, non_private), another overall budget or radius, "
                    "or other noise. What was promised stays promised: open it as it was made."
                )
