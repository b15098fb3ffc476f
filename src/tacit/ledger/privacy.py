"""The privacy ledger: who was promised what, how much of it is spent, durably, and never more than was promised.

    ledger = PrivacyLedger.create("curator.db")
    ledger.enrol("ward-7", Budget(epsilon=2, per="month"), protects=ONE_USER)
    answer = ledger.release("ward-7", "mean-2026-11", mechanism.guarantee, lambda: encode(mechanism.release(rows)))

The charge is on the disk before anything is drawn. A crash in between loses budget, never privacy.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from time import sleep

from tacit.errors import InvalidParameter, TacitError
from tacit.guarantees import Guarantee, Neighbours
from tacit.ledger.accounting import allowance, price
from tacit.ledger.accounts import Accounts, unknown_subject
from tacit.ledger.amounts import Cost
from tacit.ledger.awaiting import Pause, awaited, time_left
from tacit.ledger.budgets import Accounting, Budget, Terms
from tacit.ledger.chain import lane_of
from tacit.ledger.charging import commit_charges
from tacit.ledger.clock import Clock, now
from tacit.ledger.enrolling import commit_enrolments
from tacit.ledger.entries import BOOK, SUBJECT
from tacit.ledger.grouping import GroupCommit
from tacit.ledger.keeping import Kept, Stored, commit_releases, kept_for, stored_releases
from tacit.ledger.known import Known
from tacit.ledger.names import name
from tacit.ledger.opened import OpenedLedger
from tacit.ledger.receipts import Charge, Receipt, checked_charge
from tacit.ledger.statements import Statement, statement_of
from tacit.ledger.stores.interface import Store

MOST_BYTES = 16 * 1024 * 1024  # of one stored release


class PrivacyLedger(OpenedLedger):
    """Subjects, their budgets and their charges. One object may be shared by many threads, one store by many processes."""

    def __init__(self, store: Store, *, clock: Clock = now, pause: Pause = sleep) -> None:
        super().__init__(store, clock=clock)
        self._pause = pause
        self._known, self._accounts = Known(), Accounts()
        self._charge: GroupCommit[Charge, Receipt | TacitError] = GroupCommit(self._commit_charges)
        self._keep: GroupCommit[Kept, bytes | TacitError] = GroupCommit(self._commit_releases)

    def enrol(
        self,
        subject: str,
        budgets: Budget | Sequence[Budget],
        *,
        protects: Neighbours,
        accounting: Accounting | str = Accounting.BASIC,
        each: Guarantee | None = None,
        unprotected: Collection[str] = (),
        rounding: float = 0.0,
    ) -> Terms:
        """Agrees terms with a subject, for good. Doing so again with the same terms changes nothing."""
        terms = Terms.of(budgets, protects, accounting, each, unprotected, rounding)
        self.enrol_many([subject], terms)
        return terms

    def enrol_many(self, subjects: Iterable[str], terms: Terms) -> None:
        """Agrees the same terms with many subjects, all in one transaction."""
        if isinstance(subjects, str) or not isinstance(terms, Terms):
            raise InvalidParameter("enrol_many takes several subjects and their Terms; for one subject say enrol.")
        names = list(dict.fromkeys(name("a subject", subject) for subject in subjects))
        for budget in terms.budgets:
            allowance(budget, terms)  # refuses a budget that nothing could be charged to
        with self._store.write(BOOK, self._lanes_of(names)) as writer:
            commit_enrolments(writer, self._store.lanes, self._moment(), names, terms)

    def price(self, subject: str, guarantee: Guarantee) -> Cost:
        """What ``charge`` would take, in whole units; raises as it would where the guarantee cannot be charged."""
        return price(guarantee, self.terms(subject))

    def charge(self, subject: str, release_id: str, guarantee: Guarantee) -> Receipt:
        """Checks and writes in one transaction, and returns when the charge is on the disk; release only after that.

        The same ``release_id`` again is no second charge. Raises BudgetExhausted, and has then charged nothing.
        """
        (outcome,) = self.charge_many([Charge(subject, release_id, guarantee)])
        if isinstance(outcome, TacitError):
            raise outcome
        return outcome

    def charge_many(self, charges: Iterable[Charge | tuple[str, str, Guarantee]]) -> list[Receipt | TacitError]:
        """One transaction for many charges, in their order; each one stands alone: a receipt, or the error it would raise."""
        wished: list[Charge] = []
        wrong: list[tuple[int, TacitError]] = []
        for place, charge in enumerate(charges):
            try:
                wished.append(checked_charge(charge))
            except InvalidParameter as problem:
                wrong.append((place, problem))
        outcomes = self._charge(wished) if wished else []
        for place, refusal in wrong:
            outcomes.insert(place, refusal)
        return outcomes

    def require_left(self, charges: Iterable[Charge | tuple[str, str, Guarantee]]) -> None:
        """Raises what one of these charges would meet if they were made in this order, and charges nothing.

        Those made before take nothing again. What is left now may be taken by others before it is charged.
        """
        wished = [checked_charge(charge) for charge in charges]
        known, accounts = Known(), Accounts()  # of its own: what is remembered of a transaction that is undone is wrong
        known.begin()
        try:
            with self._store.write(BOOK, self._lanes_of(charge.subject for charge in wished)) as writer:
                lanes, moment = self._store.lanes, self._moment()
                for outcome in commit_charges(writer, known, accounts, lanes, moment, wished, look_up=True):
                    if isinstance(outcome, TacitError):
                        raise outcome
                raise _Undone
        except _Undone:
            return

    def release(self, subject: str, release_id: str, guarantee: Guarantee, draw: Callable[[], bytes]) -> bytes:
        """Charges, draws, keeps, and returns what was kept: the only bytes that may leave.

        Called again, also after a crash or by another process at the same time, it returns the same bytes for the same charge:
        a retry never sends fresh noise. Of two at once the one that charged draws, and the other waits for it (``awaited``).
        """
        if not callable(draw):
            raise InvalidParameter("`draw` must be a function that draws the release and returns it as bytes.")
        kept = self.awaited(subject, release_id, self.charge(subject, release_id, guarantee))
        return kept if kept is not None else self.keep(subject, release_id, draw())

    def awaited(self, subject: str, release_id: str, receipt: Receipt) -> bytes | None:
        """What is kept for a charge; None where the caller is to draw it, and only then: ask before each drawing.

        The maker of a charge draws at once. Whoever finds a charge with nothing kept waits until two seconds after it was made:
        later than that its maker is taken for dead.
        """
        if receipt.fresh or receipt.stored is not None:
            return receipt.stored
        return awaited(lambda: self._kept(subject, release_id), time_left(receipt.at, self._clock()), self._pause)

    def keep(self, subject: str, release_id: str, content: bytes) -> bytes:
        """Keeps what was released for a charge, durably; the first to do so wins. Returns what is kept: send that."""
        if not isinstance(content, bytes):
            raise InvalidParameter(f"a stored release is bytes, not {type(content).__name__}.")
        if len(content) > MOST_BYTES:
            raise InvalidParameter(
                f"a stored release has at most {MOST_BYTES:,} bytes, and this one has more."
            )  # it may be private
        (outcome,) = self._keep([Kept(name("a subject", subject), name("a release_id", release_id), bytes(content))])
        if isinstance(outcome, TacitError):
            raise outcome
        return outcome

    def stored(self, subject: str) -> Generator[Stored, None, None]:
        """What was kept for a subject, newest first. Reading charges nothing and draws nothing; close it where it is left early."""
        wanted = name("a subject", subject)
        with self._store.read() as reader:
            (row,) = reader.ask(SUBJECT, [(wanted,)])()
            if row is None:
                raise unknown_subject()
            yield from stored_releases(reader, self._store.lanes, wanted)

    def terms(self, subject: str) -> Terms:
        """What was agreed with a subject."""
        with self._store.read() as reader:
            row = reader.ask(SUBJECT, [(name("a subject", subject),)])()[0]
            if row is None:
                raise unknown_subject()
            return self._known.agreed(reader, row[1]).terms

    def statement(self, subject: str) -> Statement:
        """What was promised to a subject so far, spent and left: recomputable by anybody from the exported charges."""
        with self._store.read() as reader:
            return statement_of(reader, self._known, self._store.lanes, name("a subject", subject), self._moment())

    def subjects(self) -> Iterator[str]:
        """All subjects, in the order they were enrolled."""
        with self._store.read() as reader:
            for (subject,) in reader.stream("SELECT name FROM subjects ORDER BY number"):
                yield subject

    def _kept(self, subject: str, release_id: str) -> bytes | None:
        with self._store.read() as reader:
            return kept_for(reader, self._store.lanes, subject, release_id)

    def _start_anew(self) -> None:
        """After a fork: what is remembered may be of a transaction that another thread of the parent was working on."""
        self._known, self._accounts = Known(), Accounts()

    def _commit_charges(self, charges: list[Charge]) -> list[Receipt | TacitError]:
        return self._hoping(charges, self._transact, _is_repeat)

    def _transact(self, charges: list[Charge], look_up: bool) -> list[Receipt | TacitError]:
        lanes = self._store.lanes
        self._known.begin()
        try:
            with self._store.write(BOOK, self._lanes_of(charge.subject for charge in charges)) as writer:
                outcomes = commit_charges(
                    writer, self._known, self._accounts, lanes, self._moment(), charges, look_up=look_up
                )
        except BaseException:
            self._accounts.forget()
            raise
        self._known.committed()
        self._accounts.committed()
        return outcomes

    def _commit_releases(self, wished: list[Kept]) -> list[bytes | TacitError]:
        with self._store.write(BOOK, self._lanes_of(kept.subject for kept in wished)) as writer:
            return commit_releases(writer, self._store.lanes, wished)

    def _lanes_of(self, subjects: Iterable[str]) -> list[int]:
        """In one order for everybody, so that no two transactions wait for each other."""
        lanes = self._store.lanes
        return sorted({lane_of(subject, lanes) for subject in set(subjects)}) if lanes > 1 else [0]


class _Undone(Exception):
    """Leaves a transaction without a trace."""


def _is_repeat(outcome: Receipt | TacitError) -> bool:
    return isinstance(outcome, Receipt) and not outcome.fresh
