"""The device's file: what was charged, and the memos, which are the signals that were drawn for it. Nothing private is in it."""

import math
from collections.abc import Callable
from contextlib import closing

from tacit.device.slots import slot_of
from tacit.errors import BudgetExhausted, Conflict, InvalidParameter
from tacit.guarantees import Guarantee, metric
from tacit.ledger import Budget, Period, PrivacyLedger, Statement, Terms
from tacit.ledger.accounting import MEASURES, allowance, price
from tacit.ledger.amounts import shown

ME = "me "  # how the subject of a device's signals begins; those of private selection begin otherwise
_LOST = "a lost memo may have spent the whole budget of its period"


def require_exact(budget: Budget, terms: Terms) -> None:
    """Refuses a budget that the ledger would round."""
    if price(_lost(budget.epsilon, terms), terms).amount != allowance(budget, terms).amount:
        raise InvalidParameter("the epsilon of a device's budget has at most nine decimals.")


class Memos:
    """The signals in a device's ledger. Their subject is named after the slots, which are so agreed for good, like the budget."""

    def __init__(self, ledger: PrivacyLedger, terms: Terms, refresh: Period, per_period: int) -> None:
        (self.budget,), self.terms, self.subject = terms.budgets, terms, f"{ME}{refresh} {per_period}"
        self._ledger = ledger
        try:
            self._require_first()
            self._ledger.enrol_many([self.subject], terms)
            self._require_first()  # another process may have made it otherwise in the same moment: one of them was first
        except Conflict:
            raise Conflict(
                "the device in this file has another budget, other slots (refresh, per_period), another number of features, or "
                "other noise. What was promised stays promised: open it as it was made."
            ) from None

    def spend_the_rest(self) -> None:
        """Charges all that is left now: what was lost with a file was, at most, that. Doing so again in a period adds nothing.

        A file that is an old copy is no exception, nor is one that has a memo of this slot: a later memo of the same slot, with
        another eta or other features, may be missing from it. The memos that it has are still sent, and cost nothing.
        """
        statement = self.statement()
        while (left := statement.windows[0].left.amount) > 0:
            epsilon = float(shown(left, MEASURES[self.terms.accounting][1]))
            while price(_lost(epsilon, self.terms), self.terms).amount > left:
                epsilon = math.nextafter(
                    epsilon, 0.0
                )  # billions with nine decimals: what remains is too little for a signal
            try:
                self._ledger.charge(
                    self.subject, f"reinstalled {slot_of(statement.at, self.budget.per)}", _lost(epsilon, self.terms)
                )
            except Conflict:  # this period is marked already
                return
            except BudgetExhausted:  # another process has spent some of it meanwhile
                statement = self.statement()
                continue
            return

    def fits(self, guarantee: Guarantee) -> bool:
        """Whether a signal could be charged now."""
        return price(guarantee, self.terms).amount <= self.statement().windows[0].left.amount

    def ever_fits(self, guarantee: Guarantee) -> bool:
        """Whether a signal could be charged to a period in which nothing is spent."""
        return price(guarantee, self.terms).amount <= allowance(self.budget, self.terms).amount

    def find(self, slot: str, kind: str) -> bytes | None:
        """The memo of a slot. Reading charges nothing."""
        return self._first(lambda kept_slot, kept_kind: (kept_slot, kept_kind) == (slot, kind))

    def newest(self, kind: str) -> bytes | None:
        """The newest memo of this kind, of whatever slot. It was paid for."""
        return self._first(lambda _, kept_kind: kept_kind == kind)

    def release(self, slot: str, kind: str, guarantee: Guarantee, draw: Callable[[], bytes]) -> bytes:
        """Charges, draws, keeps; the same bytes for everybody who asks for this slot."""
        return self._ledger.release(self.subject, f"{slot} {kind}", guarantee, draw)

    def statement(self) -> Statement:
        return self._ledger.statement(self.subject)

    def _require_first(self) -> None:
        if [one for one in self._ledger.subjects() if one.startswith(ME)][:1] not in ([], [self.subject]):
            raise Conflict("another device's file.")

    def _first(self, wanted: Callable[[str, str], bool]) -> bytes | None:
        with closing(self._ledger.stored(self.subject)) as memos:
            for memo in memos:
                slot, _, kind = memo.release_id.partition(" ")
                if wanted(slot, kind):
                    return memo.content
        return None


def _lost(epsilon: float, terms: Terms) -> Guarantee:
    return metric(epsilon, rounding=terms.rounding, proof="multi-selection", assumes=frozenset({_LOST}))
