"""One transaction of the privacy ledger: look up, check, append. Only this module decides whether a charge fits.

    with Transaction(store, memory, clock, charges, look_up=True) as transaction:   # locks the lanes, reads the subjects
        return transaction.outcomes()                                               # a receipt or an error for each charge

A ledger object remembers the subjects' rows between its transactions. Every change to a subject lengthens its lane. So if a lane
still ends where this process left it, the rows that it remembers of that lane equal those in the store, and it does not read them
again.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple, Self

from tacit.errors import Conflict, GuaranteeRefused, LedgerBehind, LedgerDamaged, TacitError
from tacit.guarantees import Guarantee
from tacit.ledger.budgets import BEFORE_ALL, MOST, Cost, Period, shortfall
from tacit.ledger.chain import Clock, LaneEnd, Tip, as_datetime, lane_of, lanes_of, new_tips
from tacit.ledger.entries import (
    BOOK,
    CHARGE,
    LINK,
    SPENT_BEFORE,
    SUBJECT,
    Allowance,
    Price,
    PriceList,
    link_of_charge,
    read_release,
    read_subject,
    spent_before,
    unknown_subject,
)
from tacit.ledger.stores.interface import ENTRIES, SUBJECTS, TEXTS, AlreadyThere, Answers, LedgerStore, Row

_MOST_ROWS = 20_000  # subjects that a ledger object remembers
_MOST_TEXTS = 10_000  # texts that it knows to be in the store
_SPENT = ("total", "total_delta", "total_unprotected", "at", "seal")  # the columns of a subject that a charge changes


class Charge(NamedTuple):
    """A request to release something about a subject."""

    subject: str
    release_id: str
    guarantee: Guarantee


class Receipt(NamedTuple):
    """A charge that is on the disk.

    ``fresh`` is False if this id had been charged before; ``stored`` is then the release that was kept, if one was.
    """

    entry: int
    at: int  # microseconds since 1970
    cost: Cost
    fresh: bool
    stored: bytes | None = None


class Memory:
    """The rows, prices and lane ends that a ledger object remembers between its transactions.

    Only a committed transaction adds to it, and a failed one empties it.
    """

    def __init__(self) -> None:
        self.prices = PriceList()
        self.rows: dict[str, SubjectRow] = {}
        self.tips: dict[int, Tip] = {}  # where this object left the lanes
        self.reached: dict[int, Tip] = {}  # how far it has seen them come; never forgotten
        self.texts: set[bytes] = set()  # digests of texts that are in the store
        self.others_write = False

    def forget(self) -> None:
        """Empties the memory after a failed transaction: it may differ from the store."""
        self.rows, self.tips, self.texts = {}, {}, set()


class Transaction:
    """The charges of one write transaction, in their order.

    It commits at the end of its block. On any error it rolls back, and what the ledger object remembers is forgotten with it.
    Without ``look_up`` it assumes that no charge was made before, and raises AlreadyThere if that may be wrong.
    """

    def __init__(
        self,
        store: LedgerStore,
        memory: Memory,
        clock: Clock,
        charges: Sequence[Charge],
        *,
        look_up: bool,
    ) -> None:
        self._memory, self._lanes, self._clock = memory, store.lanes, clock
        self._charges, self._look_up = charges, look_up
        self._writing = store.write(BOOK, lanes_of((charge.subject for charge in charges), store.lanes))
        self._rows: list[SubjectRow] = []  # the subjects that can be charged
        self._entries: list[Row] = []
        self._new_texts: dict[bytes, str] = {}

    def __enter__(self) -> Self:
        self._writer = writer = self._writing.__enter__()
        try:
            keys = [(self._lanes, charge[0], charge[1]) for charge in self._charges]
            earlier = writer.ask(CHARGE, keys) if self._look_up else None
            self._subjects = self._read(list(dict.fromkeys([charge[0] for charge in self._charges])), self._clock())
            self._earlier: Iterable[Row | None] = repeat(None) if earlier is None else earlier()
        except BaseException as problem:
            self._roll_back(problem)
            raise
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is not None:
            self._roll_back(problem)
            return
        try:
            self._write()
        except BaseException as failure:
            self._roll_back(failure)
            raise
        try:
            self._writing.__exit__(None, None, None)
        except BaseException:
            self._memory.forget()
            raise
        self._remember()

    def outcomes(self) -> list[Receipt | TacitError]:
        """The outcome of each charge: a receipt, or the error for this charge alone."""
        subjects, entries = self._subjects, self._entries
        outcomes: list[Receipt | TacitError] = []
        for (name, release_id, guarantee), earlier in zip(self._charges, self._earlier, strict=False):
            subject = subjects[name]
            if isinstance(subject, TacitError):
                # An error for each charge: one that is raised twice collects the traces of both.
                outcomes.append(type(subject)(*subject.args))
                continue
            price = subject.prices.get(id(guarantee))
            if price is None:
                try:
                    price = self._memory.prices.price(guarantee, subject.terms, subject.allowance.terms)
                except TacitError as problem:
                    outcomes.append(problem)
                    continue
                subject.prices[id(guarantee)] = price
            if earlier is not None or release_id in subject.new:
                outcomes.append(_repeated_charge(earlier, subject.new.get(release_id), price))
            elif (entry := subject.charge(release_id, price)) is not None:
                entries.append(entry)
                outcomes.append(subject.new[release_id][0])
            elif self._look_up:
                outcomes.append(_refusal(subject, price.cost))
            else:  # it does not fit, but was perhaps charged before
                raise AlreadyThere
        return outcomes

    def _write(self) -> None:
        """Hands the new rows to the writer."""
        if not self._entries:
            return
        changed = [subject for subject in self._rows if subject.new]
        texts = {price.digest: price.text for subject in changed for _, price in subject.new.values()}
        self._new_texts = {key: text for key, text in texts.items() if key not in self._memory.texts}
        if self._new_texts:
            self._writer.insert(TEXTS, list(self._new_texts.items()), unless_there=True)
        self._writer.insert(ENTRIES, self._entries)
        self._writer.update(SUBJECTS, _SPENT, [subject.spent() for subject in changed])
        self._writer.advance(new_tips(self._ends))

    def _remember(self) -> None:
        """Remembers the rows and lane ends that this transaction put on the disk."""
        memory = self._memory
        if len(memory.rows) > _MOST_ROWS:
            memory.rows = {}
        for subject in self._rows:
            memory.rows[subject.name] = subject
        for lane, end in self._ends.items():
            memory.tips[lane] = memory.reached[lane] = end.tip
        if self._new_texts:
            memory.texts = (memory.texts if len(memory.texts) < _MOST_TEXTS else set()) | self._new_texts.keys()

    def _roll_back(self, problem: BaseException) -> None:
        self._memory.forget()
        self._writing.__exit__(type(problem), problem, problem.__traceback__)

    def _read(self, names: list[str], moment: int) -> dict[str, "SubjectRow | TacitError"]:
        """The rows of these subjects, or the error for each that has none.

        If another process wrote before the last transaction, it has probably written again: then all questions go out at once.
        """
        writer, memory, lanes = self._writer, self._memory, self._lanes
        new = names if memory.others_write else [name for name in names if name not in memory.rows]
        rows = writer.ask(SUBJECT, [(name,) for name in new]) if new else None
        links = self._ask_links({lane_of(name, lanes) for name in names}) if memory.others_write else {}
        self._ends = LaneEnd.of(writer.tips, lanes, moment)
        self._require_growth(links)
        stale = {lane for lane, tip in writer.tips.items() if memory.tips.get(lane) != tip}
        subjects = self._subjects_of(new, rows)
        if stale:  # another process wrote, or put an older ledger in place of this one
            memory.texts = set()
            again = [n for n in names if n not in subjects and n in memory.rows and lane_of(n, lanes) in stale]
            memory.rows = {name: row for name, row in memory.rows.items() if lane_of(name, lanes) not in stale}
            if again:
                subjects |= self._subjects_of(again, writer.ask(SUBJECT, [(name,) for name in again]))
        memory.others_write = not stale.isdisjoint(memory.tips)
        for name in names:
            subject = subjects[name] = subjects.get(name) or memory.rows[name]
            if isinstance(subject, SubjectRow):
                subject.begin(self._ends[lane_of(name, lanes)])
                self._rows.append(subject)
        windowed = [row for row in self._rows if row.allowance.windowed]
        if windowed:
            damaged = self._look_back(windowed)
            subjects.update(damaged)
            self._rows = [row for row in self._rows if row.name not in damaged]
        return subjects

    def _subjects_of(self, names: Sequence[str], rows: Answers | None) -> "dict[str, SubjectRow | TacitError]":
        subjects: dict[str, SubjectRow | TacitError] = {}
        for name, row in zip(names, rows() if rows is not None else (), strict=True):
            if row is None:
                subjects[name] = unknown_subject()
                continue
            try:
                subjects[name] = SubjectRow(name, row, self._memory.prices.terms(self._writer, row[2]))
            except LedgerDamaged as problem:  # the other subjects can still be served
                subjects[name] = problem
        return subjects

    def _look_back(self, subjects: "list[SubjectRow]") -> dict[str, TacitError]:
        """Reads what each subject had spent before its windows began. Returns the errors of damaged subjects."""
        starts = [[budget.start(row.lane.at) for budget in row.allowance.terms.budgets] for row in subjects]
        keys = [
            (self._lanes, subject.number, start)
            for subject, its_starts in zip(subjects, starts, strict=True)
            for start in its_starts
            if start != BEFORE_ALL
        ]
        rows = iter(self._writer.ask(SPENT_BEFORE, keys)())
        damaged: dict[str, TacitError] = {}
        for subject, its_starts in zip(subjects, starts, strict=True):
            entries = [(None if start == BEFORE_ALL else next(rows), start) for start in its_starts]
            try:
                subject.look_back(tuple(spent_before(row, subject.number, start) for row, start in entries))
            except LedgerDamaged as problem:
                damaged[subject.name] = problem
        return damaged

    def _ask_links(self, lanes: Iterable[int]) -> dict[int, Answers]:
        """The links of the entries that this process saw last, in each lane."""
        reached = {lane: tip for lane in lanes if (tip := self._memory.reached.get(lane)) is not None and tip.position}
        return {lane: self._writer.ask(LINK, [(tip.position * self._lanes + lane,)]) for lane, tip in reached.items()}

    def _require_growth(self, links: dict[int, Answers]) -> None:
        """Raises if the ledger was restored to an earlier state, or rewritten, while this process had it open."""
        reached, tips = self._memory.reached, self._writer.tips
        grown = []  # lanes that others lengthened: the entry that this process saw last must still be in its place
        for lane, tip in tips.items():
            last = reached.get(lane, tip)
            if tip.position < last.position:
                raise LedgerBehind(
                    f"lane {lane} ends at entry {tip.position:,}, but had {last.position:,} a while ago: was an old backup put in "
                    "its place? Nothing was charged. Restore the latest backup, then restart this program."
                )
            if tip.position > last.position > 0:
                grown.append(lane)
            elif tip.position == last.position and tip.link != last.link:
                raise _rewritten(lane)
        links |= self._ask_links([lane for lane in grown if lane not in links])
        for lane in grown:
            (row,) = links[lane]()
            if row is None or row[0] != reached[lane].link:
                raise _rewritten(lane)
        reached |= tips


class SubjectRow:
    """A subject's row.

    ``most`` and ``most_delta`` are what the totals may reach: for the tightest of the budgets, what was spent before its window
    began plus what it allows in the window.
    """

    __slots__ = (
        *("name", "number", "terms", "total", "delta", "unprotected", "at"),  # as in the store
        *("allowance", "before", "most", "most_delta"),  # what the terms allow
        *("lane", "new", "prices"),  # of the transaction at work
    )

    def __init__(self, name: str, row: Row, allowance: Allowance) -> None:
        self.number, self.name, self.terms, self.total, self.delta, self.unprotected, self.at = read_subject(name, row)
        self.allowance, self.before = allowance, allowance.nothing
        self.most, self.most_delta = allowance.most, allowance.most_delta

    def begin(self, lane: LaneEnd) -> None:
        """A transaction starts to work on this row."""
        self.lane = lane
        self.new: dict[str, tuple[Receipt, Price]] = {}  # charged in this transaction, by release id
        self.prices: dict[int, Price] = {}  # by identity: the charges keep their guarantees alive

    def look_back(self, before: tuple[Cost, ...]) -> None:
        """Sets what was spent before each budget's window, and so what the totals may reach."""
        self.before = before
        windows = list(zip(before, self.allowance.budgets, strict=True))
        self.most = min(MOST, *(spent.amount + allowed.amount for spent, allowed in windows))
        self.most_delta = min(MOST, *(spent.delta + allowed.delta for spent, allowed in windows))

    def charge(self, release_id: str, price: Price) -> Row | None:
        """Counts a charge and returns its row; None, and nothing is counted, if it does not fit into every budget."""
        amount, more_delta, more_unprotected = price.cost
        total, delta, unprotected = self.total + amount, self.delta + more_delta, self.unprotected + more_unprotected
        if total > self.most or delta > self.most_delta or unprotected > MOST:
            return None
        lane, windowed = self.lane, self.allowance.windowed
        number = lane.next_number()
        sums = (*price.cost, total, delta, unprotected)
        row = (number, self.number, release_id, lane.at, price.digest, *sums, windowed)
        lane.link = link_of_charge(lane.link, *row)
        self.total, self.delta, self.unprotected, self.at = total, delta, unprotected, lane.at
        self.new[release_id] = (Receipt(number, lane.at, price.cost, True), price)
        return (*row, lane.link)

    def spent(self) -> Row:
        """The new values of the columns that a charge changes, then the key."""
        totals = (self.total, self.delta, self.unprotected, self.at)
        return (*totals, SUBJECTS.seal_of(self.number, self.name, self.terms, *totals), self.number)


def _repeated_charge(row: Row | None, new: tuple[Receipt, Price] | None, price: Price) -> Receipt | TacitError:
    """The outcome of a charge whose id was used before: in this transaction, or in the row that was found."""
    if new is not None:
        receipt, key = new[0]._replace(fresh=False), new[1].digest
    else:
        try:
            entry, stored = read_release(row or ())  # exactly one of row and new is set
        except LedgerDamaged as problem:
            return problem
        receipt, key = Receipt(entry.number, entry.at, entry.cost, False, stored), entry.guarantee
    if key != price.digest:
        return Conflict("this release_id was charged before, under another guarantee. A new release needs a new id.")
    return receipt


def _refusal(subject: SubjectRow, cost: Cost) -> TacitError:
    """Why a charge does not fit."""
    terms, total = subject.allowance.terms, Cost(subject.total, subject.delta, subject.unprotected)
    for budget, allowed, before in zip(terms.budgets, subject.allowance.budgets, subject.before, strict=True):
        short = shortfall(cost, total - before, allowed, terms)
        if short is None:
            continue
        renewal = budget.renews(subject.lane.at)
        renews = None if renewal is None else as_datetime(renewal)
        until = "" if renews is None else f" until {renews:%-d %B %Y}, 00:00 UTC"
        advice = "Ask for less, or wait" if budget.per is not Period.LIFETIME else "Ask for less"
        return short.error(
            f"a charge of {short.requested:f} {short.measure} was refused; {short.left:f} of {short.budget:f} is left for this "
            f"subject{until} ({budget}). {advice}.",
            renews,
        )
    return GuaranteeRefused("the sum of all charges is beyond what can be counted. Enrol a new subject.")


def _rewritten(lane: int) -> LedgerDamaged:
    return LedgerDamaged(
        f"lane {lane} does not hold what it held a while ago: was another ledger put in its place? Nothing was charged. Restore "
        "the right one, then restart this program."
    )
