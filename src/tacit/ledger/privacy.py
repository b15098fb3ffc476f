"""The privacy ledger: subjects, their budgets and what is spent of them. It is durable and never exceeds a budget.

    ledger = PrivacyLedger.create("curator.db")
    ledger.enrol("ward-7", Budget(epsilon=2, per="month"), protects=ONE_USER)
    answer = ledger.release("ward-7", "mean-2026-11", mechanism.guarantee, lambda: encode(mechanism.release(rows)))

The charge is on the disk before anything is drawn. A crash in between loses budget, never privacy.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from time import sleep
from typing import NamedTuple

from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, TacitError
from tacit.guarantees import Guarantee, Neighbours
from tacit.ledger.book import GroupCommit, Ledger, sole_outcome
from tacit.ledger.budgets import Accounting, Budget, Cost, Statement, Terms, allowance, price
from tacit.ledger.chain import (
    MOST_CHARACTERS,
    SECOND,
    Clock,
    LaneEnd,
    checked_name,
    digest,
    lane_of,
    lanes_of,
    new_tips,
    now,
)
from tacit.ledger.entries import (
    BOOK,
    CHARGE,
    RELEASE_ID,
    STORED,
    SUBJECT,
    canonical_text,
    link_of_charge,
    link_of_enrolment,
    read_release,
    read_statement,
    unknown_subject,
)
from tacit.ledger.stores.interface import ENTRIES, RELEASES, SUBJECTS, TEXTS, LedgerStore, Row, Writer
from tacit.ledger.transaction import Charge, Memory, Receipt, Transaction

MOST_BYTES = 16 * 1024 * 1024  # of one stored release
LONGEST_DRAW = 2 * SECOND  # after a charge: public, and far longer than a device takes to draw and to keep
_STEP = SECOND // 100

Pause = Callable[[float], None]  # takes seconds


class Stored(NamedTuple):
    """A release that was kept for a charge."""

    release_id: str
    at: int  # when it was charged: microseconds since 1970
    content: bytes


class PrivacyLedger(Ledger):
    """Subjects, their budgets and their charges. One object may be shared by many threads, one store by many processes."""

    def __init__(self, store: LedgerStore, *, clock: Clock = now, pause: Pause = sleep) -> None:
        super().__init__(store, clock=clock)
        self._pause = pause
        self._memory = Memory()
        self._charge: GroupCommit[Charge, Receipt | TacitError] = GroupCommit(self._commit_charges)
        self._keep: GroupCommit[_Release, bytes | TacitError] = GroupCommit(self._commit_releases)

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
        """Agrees terms with a subject, for good. The same terms again change nothing; other terms raise Conflict."""
        terms = Terms.of(budgets, protects, accounting, each, unprotected, rounding)
        self.enrol_many([subject], terms)
        return terms

    def enrol_many(self, subjects: Iterable[str], terms: Terms) -> None:
        """Agrees the same terms with many subjects, all in one transaction."""
        if isinstance(subjects, str) or not isinstance(terms, Terms):
            raise InvalidParameter("enrol_many takes several subjects and their Terms. For one subject, use enrol.")
        names = list(dict.fromkeys(checked_name("a subject", subject) for subject in subjects))
        for budget in terms.budgets:
            allowance(budget, terms)  # refuses a budget that nothing could be charged to
        with self._store.write(BOOK, lanes_of(names, self._store.lanes)) as writer:
            _enrol(writer, self._store.lanes, self._moment(), names, terms)

    def price(self, subject: str, guarantee: Guarantee) -> Cost:
        """What ``charge`` would take, in whole units. Raises as ``charge`` would if the guarantee cannot be charged."""
        return price(guarantee, self.terms(subject))

    def charge(self, subject: str, release_id: str, guarantee: Guarantee) -> Receipt:
        """Checks and writes a charge in one transaction, and returns when it is on the disk. Release only after that.

        The same ``release_id`` again is not charged again. Raises BudgetExhausted, and then has charged nothing.
        """
        return sole_outcome(self.charge_many([Charge(subject, release_id, guarantee)]))

    def charge_many(self, charges: Iterable[Charge | tuple[str, str, Guarantee]]) -> list[Receipt | TacitError]:
        """One transaction for many charges, in their order. Each has its own outcome: a receipt, or the error it would raise."""
        checked: list[Charge | TacitError] = []
        for charge in charges:
            try:
                checked.append(_checked_charge(charge))
            except InvalidParameter as problem:
                checked.append(problem)
        return self._charge.commit_valid(checked)

    def require_left(self, charges: Iterable[Charge | tuple[str, str, Guarantee]]) -> None:
        """Raises the first error that these charges would meet if they were made in this order. Charges nothing.

        A charge that was made before costs nothing. Another caller may take what is left before you charge it.
        """
        valid = [_checked_charge(charge) for charge in charges]
        rehearsal = Transaction(self._store, Memory(), self._moment, valid, look_up=True)
        with suppress(_Undo), rehearsal as transaction:
            for outcome in transaction.outcomes():
                if isinstance(outcome, TacitError):
                    raise outcome
            raise _Undo

    def release(self, subject: str, release_id: str, guarantee: Guarantee, draw: Callable[[], bytes]) -> bytes:
        """Charges, draws, keeps, and returns what was kept: the only bytes that may leave.

        The same id again returns the same bytes for the same charge, also after a crash or in another process: a retry never
        sends fresh noise. If two callers release the same id at once, the one that charged draws and the other waits (``awaited``).
        """
        if not callable(draw):
            raise InvalidParameter("`draw` must be a function that draws the release and returns it as bytes.")
        kept = self.awaited(subject, release_id, self.charge(subject, release_id, guarantee))
        return kept if kept is not None else self.keep(subject, release_id, draw())

    def awaited(self, subject: str, release_id: str, receipt: Receipt) -> bytes | None:
        """The stored release of a charge, or None if the caller has to draw it. Ask before each draw.

        The maker of a charge draws at once. Another caller, who finds a charge without a release, waits until two seconds after
        the charge, and then assumes that the maker has died. If both drew and the faster were kept, the kept release would lean
        towards noise that is quickly drawn, and would not have the mechanism's law (docs/proofs/ledger.md, Once).
        """
        if receipt.fresh or receipt.stored is not None:
            return receipt.stored
        left = max(0, min(LONGEST_DRAW, receipt.at + LONGEST_DRAW - self._clock()))
        while left > 0:
            step = min(_STEP, left)
            self._pause(step / SECOND)
            left -= step  # counts the time waited: a clock that stands still would hold the caller for ever
            kept = self.kept(subject, release_id)
            if kept is not None:
                return kept
        return None

    def keep(self, subject: str, release_id: str, content: bytes) -> bytes:
        """Keeps the release of a charge, durably. The first call wins; send the bytes that this returns."""
        if not isinstance(content, bytes):
            raise InvalidParameter(f"a stored release is bytes, not {type(content).__name__}.")
        if len(content) > MOST_BYTES:  # the length is not shown: it may be private
            raise InvalidParameter(f"a stored release has at most {MOST_BYTES:,} bytes, and this one has more.")
        release = _Release(checked_name("a subject", subject), checked_name("a release_id", release_id), bytes(content))
        return sole_outcome(self._keep([release]))

    def kept(self, subject: str, release_id: str) -> bytes | None:
        """The stored release of one charge; None if nothing was charged or kept under this id. Reading charges nothing."""
        key = (self._store.lanes, checked_name("a subject", subject), checked_name("a release_id", release_id))
        with self._store.read() as reader:
            (row,) = reader.ask(CHARGE, [key])()
            return None if row is None else read_release(row)[1]

    def charged(self, subject: str, release_ids: Collection[str]) -> frozenset[str]:
        """The ids among these that the subject was charged for, whether or not a release was kept."""
        if not release_ids:
            return frozenset()
        with self._store.read() as reader:
            rows = reader.ask(RELEASE_ID, [(subject, release_id) for release_id in release_ids])()
        return frozenset(row[0] for row in rows if row is not None)

    def stored(self, subject: str) -> Generator[Stored, None, None]:
        """The stored releases of a subject, newest first. Reading charges nothing. Close the generator if you stop early."""
        name = checked_name("a subject", subject)
        with self._store.read() as reader:
            (row,) = reader.ask(SUBJECT, [(name,)])()
            if row is None:
                raise unknown_subject()
            for charge in reader.stream(STORED, (self._store.lanes, name)):
                entry, content = read_release(charge)
                if content is not None:
                    yield Stored(entry.release_id, entry.at, content)

    def terms(self, subject: str) -> Terms:
        """The terms that were agreed with a subject."""
        with self._store.read() as reader:
            (row,) = reader.ask(SUBJECT, [(checked_name("a subject", subject),)])()
            if row is None:
                raise unknown_subject()
            return self._memory.prices.terms(reader, row[2]).terms

    def statement(self, subject: str) -> Statement:
        """The guarantee that a subject has so far, and what is spent and left. Anyone can recompute it from an export."""
        return self.statements([subject])[0]

    def statements(self, subjects: Iterable[str]) -> list[Statement]:
        """The statements of several subjects, all in one read."""
        names = [checked_name("a subject", subject) for subject in subjects]
        with self._store.read() as reader:
            moment, lanes = self._moment(), self._store.lanes
            return [read_statement(reader, self._memory.prices, lanes, name, moment) for name in names]

    def subjects(self) -> Iterator[str]:
        """All subjects, in the order they were enrolled."""
        with self._store.read() as reader:
            for (subject,) in reader.stream("SELECT name FROM subjects ORDER BY number"):
                yield subject

    def _commit_charges(self, charges: list[Charge]) -> list[Receipt | TacitError]:
        return self._commit_optimistically(
            charges, self._transact, lambda outcome: isinstance(outcome, Receipt) and not outcome.fresh
        )

    def _transact(self, charges: list[Charge], look_up: bool) -> list[Receipt | TacitError]:
        with Transaction(self._store, self._memory, self._moment, charges, look_up=look_up) as transaction:
            return transaction.outcomes()

    def _commit_releases(self, releases: list["_Release"]) -> list[bytes | TacitError]:
        lanes = self._store.lanes
        with self._store.write(BOOK, lanes_of((release.subject for release in releases), lanes)) as writer:
            return _keep(writer, lanes, releases)

    def _after_fork(self) -> None:
        """Empties the memory: another thread of the parent may have been in the middle of a transaction."""
        self._memory = Memory()


class _Undo(Exception):
    """Ends a transaction without a trace."""


class _Release(NamedTuple):
    subject: str
    release_id: str
    content: bytes


def _checked_charge(charge: Charge | tuple[str, str, Guarantee]) -> Charge:
    if not isinstance(charge, tuple) or len(charge) != 3:
        raise InvalidParameter("a charge is (subject, release_id, guarantee).")
    subject, release_id, guarantee = charge
    # As in checked_name, written out because it is done for every charge.
    if not (type(subject) is str and 0 < len(subject) <= MOST_CHARACTERS and subject.isprintable()):
        checked_name("a subject", subject)
    if not (type(release_id) is str and 0 < len(release_id) <= MOST_CHARACTERS and release_id.isprintable()):
        checked_name("a release_id", release_id)
    return charge if type(charge) is Charge else Charge(subject, release_id, guarantee)


def _enrol(writer: Writer, lanes: int, moment: int, names: list[str], terms: Terms) -> None:
    """Enrols the subjects that are not there yet, each as an entry of the chain. Refuses all if one has other terms."""
    text = canonical_text(terms.to_json())
    key = digest(text)
    rows = writer.ask(SUBJECT, [(name,) for name in names])()
    if any(row is not None and row[2] != key for row in rows):
        raise Conflict("a subject of that name has other terms, and terms never change. Enrol under another name.")
    ends = LaneEnd.of(writer.tips, lanes, moment)
    entries: list[Row] = []
    subjects: list[Row] = []
    for name, row in zip(names, rows, strict=True):
        if row is not None:
            continue
        end = ends[lane_of(name, lanes)]
        number = end.next_number()
        entry = (number, number, "", end.at, key, 0, 0, 0, 0, 0, 0, int(terms.windowed))
        end.link = link_of_enrolment(link_of_charge(end.link, *entry), name)
        entries.append((*entry, end.link))
        subjects.append(SUBJECTS.sealed(number, name, key, 0, 0, 0, end.at))
    if entries:
        writer.insert(TEXTS, [(key, text)], unless_there=True)
        writer.insert(SUBJECTS, subjects)
        writer.insert(ENTRIES, entries)
        writer.advance(new_tips(ends))


def _keep(writer: Writer, lanes: int, releases: list[_Release]) -> list[bytes | TacitError]:
    """The kept content of each charge: the first that came, from any caller."""
    rows = writer.ask(CHARGE, [(lanes, release.subject, release.release_id) for release in releases])()
    outcomes: list[bytes | TacitError] = []
    new: dict[int, bytes] = {}
    for release, row in zip(releases, rows, strict=True):
        if row is None:
            outcomes.append(
                InvalidParameter("there is no charge with this release_id: charge first, then keep the release.")
            )
            continue
        try:
            entry, stored = read_release(row)
        except LedgerDamaged as problem:
            outcomes.append(problem)
            continue
        outcomes.append(stored if stored is not None else new.setdefault(entry.number, release.content))
    if new:
        writer.insert(RELEASES, [RELEASES.sealed(entry, content) for entry, content in new.items()])
    return outcomes
