"""An entity's account in its own ledger: one subject for all its users. Charged, then drawn, kept and re-sent verbatim."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from hashlib import sha256
from operator import add

import numpy as np

from tacit.checks import member
from tacit.entity.charges import Charges
from tacit.entity.marks import Mark
from tacit.errors import BudgetExhausted, Conflict, InvalidParameter, LedgerDamaged, UnknownSubject
from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger, Statement, Terms, price
from tacit.ledger.accounting import MEASURES, allowance
from tacit.ledger.amounts import DELTA_DIGITS, NOTHING_SPENT, Cost, shown
from tacit.ledger.beginning import begun
from tacit.ledger.clock import Clock
from tacit.ledger.names import name
from tacit.ledger.privacy import MOST_BYTES
from tacit.ledger.stores import Target

DEFAULT = Budget(epsilon=1.0, delta=1e-5)
SUBJECT = "users"
_NOTES = "messages of secure sums of"  # an entity's name: two may share a ledger
_NOTHING = pure(0.0, ONE_USER, assumes=frozenset({"a masked message tells nothing of the rows"}))


class EntityAccount:
    """Terms are agreed when the ledger first meets the subject, and never change: opened with other ones, it is refused."""

    def __init__(
        self,
        ledger: Target | PrivacyLedger,
        subject: str,
        budget: Budget | Sequence[Budget] | None,
        accounting: Accounting | str | None,
        unprotected: Iterable[str],
        clock: Clock,
        *,
        entity: str,
        head: Head | None = None,
    ) -> None:
        self.subject, self._notes = name("the subject", subject), name("the entity's notes", f"{_NOTES} {entity}")
        wished = None if budget is None else _terms(budget, accounting, unprotected)
        self._own = not isinstance(ledger, PrivacyLedger)
        self.ledger = (
            ledger
            if isinstance(ledger, PrivacyLedger)
            else begun(ledger, with_budget=budget is not None, head=head, clock=clock)
        )
        self._charges = Charges.beside(self.ledger)
        try:
            self.terms = self._agreed(wished, accounting, unprotected)
        except BaseException:
            self.close()
            raise

    def cost(self, guarantees: Sequence[Guarantee]) -> Cost:
        """What these would be charged in all; raises where one of them cannot be charged."""
        return reduce(add, (price(guarantee, self.terms) for guarantee in guarantees), NOTHING_SPENT)

    def require_room(self, guarantees: Sequence[Guarantee]) -> None:
        """Refuses, before anything is charged, a run of which a later stage would not fit into the budget."""
        needed = self.cost(guarantees)
        measure, digits = MEASURES[self.terms.accounting]
        for window in self.statement().windows:
            allowed = allowance(window.budget, self.terms)
            for what, unit, amounts in (
                (measure, digits, (window.spent.amount, needed.amount, window.left.amount, allowed.amount)),
                ("delta", DELTA_DIGITS, (window.spent.delta, needed.delta, window.left.delta, allowed.delta)),
            ):
                spent, requested, left, budget = (shown(one, unit) for one in amounts)
                if requested > left:
                    raise BudgetExhausted(
                        f"the run needs {requested:f} {what}; {left:f} of {budget:f} is left for these users ({window.budget}). "
                        "Nothing was charged and nothing is sent.",
                        measure=what,
                        spent=spent,
                        requested=requested,
                        left=left,
                        budget=budget,
                        renews=None,
                    )

    def release(self, release_id: str, asked: str, guarantee: Guarantee, draw: Callable[[], bytes]) -> bytes:
        """What was drawn for this id, now or before; refused where the id stands for something else that was asked.

        An error while drawing may tell of what was drawn. It is seen by nobody, and the id is used up: if it drew again, one charge
        would pay for as many answers as there are errors. A process that dies here shows nothing: then the id draws when it is used
        again.
        """

        def content() -> bytes:
            try:
                with np.errstate(all="ignore"):  # or what a caller has set would make errors of what is drawn
                    drawn = _packed(asked, True) + draw()
            except Exception:
                return _packed(asked, False)
            return drawn if len(drawn) <= MOST_BYTES else _packed(asked, False)

        kept = self.ledger.release(self.subject, release_id, guarantee, content)
        head, _, payload = kept.partition(b"\n")
        try:
            known, was_drawn = json.loads(head)
        except (TypeError, ValueError, RecursionError) as problem:
            raise LedgerDamaged(
                "a stored release cannot be read. Run `tacit ledger check`, restore a backup."
            ) from problem
        if known != asked:
            raise Conflict(
                "this stage of the run was answered before, to another message or from a journal that is lost. It is answered once."
            )
        if was_drawn is not True:
            raise Conflict(
                "nothing could be drawn for this stage, for a reason that is not told, as it may depend on the rows. The charge "
                "stands and the stage is used up: this entity is out of this run."
            ) from None
        return payload

    def require_first(self, note_id: str, content: bytes) -> None:
        """Notes in the ledger, at no cost, what was sent under this id; refuses where something else was sent before.

        A journal may be lost, or come back from an old backup: without this an entity could then be made to answer a second time,
        and two answers of a secure sum can unmask a single entity.
        """
        self.ledger.enrol_many([self._notes], Terms.of(Budget(1.0), ONE_USER))
        digest = sha256(content).digest()
        if self.ledger.release(self._notes, note_id, _NOTHING, lambda: digest) != digest:
            raise Conflict(
                "another answer was sent in this stage of the run: the journal beside the ledger is not the one it was sent from. "
                "Restore the right one; without it this entity is out of this run."
            )

    def statement(self) -> Statement:
        return self.ledger.statement(self.subject)

    def mark(self) -> Mark:
        """How far the ledger has come, for the journal beside it."""
        statement = self.statement()
        try:
            notes = self.ledger.statement(self._notes).charges
        except UnknownSubject:
            notes = 0
        return Mark(statement.charges, *statement.spent, notes)

    def charged(self, release_ids: Collection[str]) -> frozenset[str]:
        """Those of the ids that these users were charged for."""
        return self._charges.among(self.subject, release_ids)

    def close(self) -> None:
        if self._own:
            self.ledger.close()

    def _agreed(self, wished: Terms | None, accounting: Accounting | str | None, unprotected: Iterable[str]) -> Terms:
        """The terms that stand; without a budget of one's own those that were agreed before, or else the default."""
        if wished is None:
            try:
                wished = self.ledger.terms(self.subject)
            except UnknownSubject:
                wished = _terms(DEFAULT, accounting, unprotected)
        if wished.protects != ONE_USER or wished.accounting is Accounting.PLD:
            raise Conflict("this subject of the ledger is charged in another unit: name another subject.")
        try:
            self.ledger.enrol_many([self.subject], wished)
        except Conflict:
            raise Conflict(
                "these users have another budget or another accounting in this ledger. What was promised stays promised: open it "
                "as it was made."
            ) from None
        return wished


def _packed(asked: str, drawn: bool) -> bytes:
    return json.dumps([asked, drawn]).encode() + b"\n"


def _terms(budget: Budget | Sequence[Budget], accounting: Accounting | str | None, unprotected: Iterable[str]) -> Terms:
    listed = tuple(budget) if isinstance(budget, Iterable) else (budget,)  # what is no Budget is refused by the terms
    if accounting is None:
        spent = all(isinstance(one, Budget) and one.delta for one in listed)
        accounting = Accounting.ZCDP if spent and listed else Accounting.BASIC
    if member("accounting", Accounting, accounting) is Accounting.PLD:
        raise InvalidParameter("releases of several kinds add up by 'basic' or 'zcdp', not by 'pld'.")
    return Terms.of(listed, ONE_USER, accounting, unprotected=list(unprotected))
