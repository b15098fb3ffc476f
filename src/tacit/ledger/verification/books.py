"""Verifiers that recompute both books from their entries alone: every link, price, sum and window, from a store or from a file.

If somebody alters an entry and keeps the links, the links show it. If they recompute the links, the prices, sums and budgets show
it, and so does a head that was noted before.
"""

import copy
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tacit.errors import TacitError
from tacit.guarantees import Guarantee
from tacit.ledger.budgets import MOST, NOTHING_SPENT, Budget, Cost, Period, Statement, Terms, price, stated
from tacit.ledger.chain import DAY, END_OF_TIME, MOST_CHARACTERS, Head, digest, genesis, lane_of, lane_of_digest
from tacit.ledger.entries import BOOK as PRIVACY
from tacit.ledger.entries import Allowance, link_of_charge, link_of_enrolment
from tacit.ledger.stores.interface import ACCOUNTS, LANES, SUBJECTS
from tacit.ledger.tally import BOOK as IMPRESSIONS
from tacit.ledger.tally import MOST_MICROS, ItemTotal, link_of_impression

LEDGER = "ledger"
MOST_FINDINGS = 100  # findings that are listed: if the ledger's id was altered, every entry is wrong


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it was written: one sentence about one place, without any name, id or amount.

    ``book`` is "privacy", "impressions", or "ledger" for the tables that both books rest on.
    """

    book: str
    problem: str
    lane: int | None = None
    position: int | None = None

    def __str__(self) -> str:
        where = f"{self.book} book" if self.book != LEDGER else "ledger"
        if self.lane is not None:
            where += f", lane {self.lane}"
        if self.position is not None:
            where += f", entry {self.position:,}"
        return f"{where}: {self.problem}"

    def to_json(self) -> dict[str, Any]:
        """The finding as values for JSON."""
        return {"book": self.book, "lane": self.lane, "position": self.position, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class Findings:
    """How much was checked, and every fault that was found."""

    entries: int
    subjects: int
    impressions: int
    findings: tuple[Fault, ...] = ()
    more: int = 0  # findings that are not listed

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The findings as values for JSON."""
        return {
            "sound": self.sound,
            "entries": self.entries,
            "subjects": self.subjects,
            "impressions": self.impressions,
            "findings": [finding.to_json() for finding in self.findings],
            "more": self.more,
        }


class Notes:
    """Collects findings. It keeps each finding once, and at most MOST_FINDINGS of them."""

    def __init__(self) -> None:
        self._kept: dict[Fault, None] = {}
        self.more = 0

    def add(self, book: str, problem: str, lane: int | None = None, position: int | None = None) -> None:
        finding = Fault(book, problem, lane, position)
        if finding in self._kept:
            return
        if len(self._kept) < MOST_FINDINGS:
            self._kept[finding] = None
        else:
            self.more += 1

    @property
    def findings(self) -> tuple[Fault, ...]:
        return tuple(self._kept)


_LANE_ROW = (int, int, bytes, int, bytes)


class LaneVerifier:
    """Follows the lanes of one book entry by entry: nothing lost, nothing inserted, time in order, and through a noted head."""

    def __init__(self, book: str, ledger: str, lanes: int, notes: Notes, head: Head | None = None) -> None:
        self.book, self.lanes, self._notes = book, lanes, notes
        self.position = [0] * lanes
        # None after an entry that could not be read: the next one cannot be linked to it.
        self.link: list[bytes | None] = [genesis(ledger, book, lane, lanes) for lane in range(lanes)]
        self.at = [0] * lanes
        self._located = 0, 0
        self._noted: list[tuple[int, str]] = [(0, "")] * lanes
        if head is not None:
            self._note_head(ledger, head)

    def locate(self, number: int) -> tuple[int, int]:
        """The lane and position of an entry, which ``note`` then names."""
        position, lane = divmod(number, self.lanes)
        self._located = lane, position
        return self._located

    def note(self, problem: str) -> None:
        """Adds a finding about the entry that was located last."""
        self._notes.add(self.book, problem, *self._located)

    def link_before(self, lane: int, position: int) -> bytes | None:
        """The link before the next entry, or None if it is unknown. Entries come in the order of their numbers."""
        if position == self.position[lane] + 1:
            return self.link[lane]
        self.note(f"this entry follows entry {self.position[lane]:,}: entries in between are lost.")
        return None

    def advance(self, lane: int, position: int, link: bytes, at: int) -> None:
        """Takes an entry as the new end of its lane."""
        if at < self.at[lane]:
            self.note("time goes back at this entry.")
        self.position[lane], self.link[lane], self.at[lane] = position, link, at
        if position == self._noted[lane][0] and link.hex() != self._noted[lane][1]:
            self.note("this entry is not the one in the noted head: it was rewritten.")

    def unreadable(self, lane: int, position: int) -> None:
        """Continues after an entry that cannot be read."""
        self.note("the values of this entry are of the wrong kind.")
        self.position[lane], self.link[lane] = position, None

    def reaches_head(self) -> None:
        """Notes each lane that ends before the noted head. Call this at the end."""
        for lane, (position, _) in enumerate(self._noted):
            if self.position[lane] < position:
                self._notes.add(
                    self.book,
                    f"the lane ends here, but had {position:,} entries when its head was noted: is this an old backup?",
                    lane,
                    self.position[lane],
                )

    def compare(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Compares the stored ends of the lanes with the entries: rows of lane, position, link, at, seal."""
        stored: set[int] = set()
        for row in rows:
            if tuple(map(type, row)) != _LANE_ROW or not 0 <= row[0] < self.lanes:
                self._notes.add(self.book, "there is a stored end of a lane that this ledger cannot have.")
                continue
            lane, position, link, at, seal = row
            stored.add(lane)
            if seal != LANES.seal_of(self.book, *row[:4]):
                self._notes.add(self.book, "the stored end of the lane does not match its seal.", lane)
            if position != self.position[lane]:
                self._notes.add(
                    self.book,
                    f"the stored end of the lane is entry {position:,}, the last entry is {self.position[lane]:,}.",
                    lane,
                )
            elif (self.link[lane] or link) != link or at != self.at[lane]:
                self._notes.add(self.book, "the stored end of the lane is not that of its last entry.", lane)
        for lane in sorted(set(range(self.lanes)) - stored):
            self._notes.add(self.book, "the stored end of the lane is lost.", lane)

    def _note_head(self, ledger: str, head: Head) -> None:
        if head.ledger != ledger:
            self._notes.add(LEDGER, "this is not the ledger whose head was noted.")
            return
        noted = head.books.get(self.book, ())
        if len(noted) != self.lanes:
            self._notes.add(self.book, f"the noted head has {len(noted)} lanes, the ledger {self.lanes}.")
            return
        self._noted = list(noted)


_FIELDS = 4  # of one step of a trail: a time, and the sum spent by then


class LookBack(Protocol):
    """The sum spent before a budget's window began, followed from charge to charge without asking the store.

    Call ``before`` once for every charge of one subject, in the order of time.
    """

    def before(self, at: int, spent: Cost) -> Cost:
        """What was spent before the window of a charge at ``at``; ``spent`` is all that was spent before that charge."""
        ...


def look_back(budget: Budget) -> LookBack:
    """The look-back for this budget's kind of period."""
    if budget.per is Period.LIFETIME:
        return Lifetime()
    return Sliding(budget) if budget.sliding else Calendar(budget)


class Lifetime:
    """A budget without periods."""

    __slots__ = ()

    def before(self, at: int, spent: Cost) -> Cost:
        return NOTHING_SPENT


class Calendar:
    """A day or a month of the calendar. Two figures are enough: when the window ends, and what was spent before it began."""

    __slots__ = ("_before", "_budget", "_ends")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._ends: int | None = None
        self._before = NOTHING_SPENT

    def before(self, at: int, spent: Cost) -> Cost:
        if self._ends is None or at >= self._ends:
            self._ends, self._before = self._budget.renews(at), spent
        return self._before


class Sliding:
    """Any 24 hours or 31 days. It remembers the charges of one window, 32 bytes for each moment; the budget bounds their number."""

    __slots__ = ("_before", "_budget", "_first", "_last", "_trail")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._trail = array("q")
        self._first = 0  # where the window begins in the trail
        self._last: int | None = None  # the time of the charge before
        self._before = NOTHING_SPENT

    def before(self, at: int, spent: Cost) -> Cost:
        trail = self._trail
        if self._last is not None:
            if len(trail) > self._first and trail[-_FIELDS] == self._last:
                del trail[-_FIELDS:]  # charges of one moment are one step
            trail.extend((self._last, *spent))
        self._last = at
        start, first, end = self._budget.start(at), self._first, len(trail)
        while first < end and trail[first] < start:
            first += _FIELDS
        if first > self._first:
            self._before = Cost(*trail[first - _FIELDS + 1 : first])
            if 2 * first >= end:  # moving the rest costs no more than what was passed over
                del trail[:first]
                first = 0
            self._first = first
        return self._before


Texts = Callable[[bytes], str | None]

_ENTRY = (int, int, str, int, bytes, int, int, int, int, int, int, int, bytes)
_SUBJECT = (int, str, bytes, int, int, int, int, bytes)
_MOST_KNOWN = 50_000  # prices and texts kept in memory
_UNREADABLE = (TacitError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)


class SubjectSum:
    """A subject as the entries so far describe it."""

    __slots__ = ("agreed", "at", "counted", "looks", "spent", "terms")

    def __init__(self, terms: bytes, agreed: Allowance | None, at: int) -> None:
        self.terms, self.agreed, self.at = terms, agreed, at
        self.spent = NOTHING_SPENT
        self.looks: tuple[LookBack, ...] = ()
        self.counted: dict[bytes, int] | None = None  # charges by the digest of their guarantee
        if agreed is not None:
            self.looks = tuple(look_back(budget) for budget in agreed.terms.budgets)


class PrivacyVerifier:
    """Takes all entries in the order of their numbers, then the subjects' rows if there are any.

    It keeps a few hundred bytes for each subject. With ``counting`` it also counts charges by guarantee, for statements.
    """

    def __init__(
        self,
        ledger: str,
        lanes: int,
        texts: Texts,
        notes: Notes,
        *,
        head: Head | None = None,
        counting: bool = False,
    ) -> None:
        self.chain = LaneVerifier(PRIVACY, ledger, lanes, notes, head)
        self.entries = self.subjects = 0
        self.subject_sums: dict[int, SubjectSum] = {}  # by the number of the entry that enrolled the subject
        self._texts, self._counting, self._note = texts, counting, self.chain.note
        self._agreed: dict[bytes, Allowance | None] = {}
        self._prices: dict[tuple[bytes, bytes], Cost | None] = {}

    def entry(self, entry: tuple[Any, ...], name: str | None) -> None:
        """The next entry, in the order of its columns; ``name`` is the subject's if the entry enrols one."""
        self.entries += 1
        lane, position = self.chain.locate(entry[0])
        before = self.chain.link_before(lane, position)
        if tuple(map(type, entry)) != _ENTRY or not (_printable(entry[2]) and (name is None or _printable(name))):
            self.chain.unreadable(lane, position)
            return
        release_id, at, link = entry[2], entry[3], entry[12]
        linked = True
        if before is not None and (release_id or name is not None):
            expected = link_of_charge(before, *entry[:12])
            linked = link == (expected if release_id else link_of_enrolment(expected, name or ""))
            if not linked:
                self._note("this entry does not match its link: it was altered, moved or inserted.")
        self.chain.advance(lane, position, link, at)
        if not 0 <= at <= END_OF_TIME:
            self._note("the time of this entry is in no calendar.")
        elif release_id:
            self._charge(entry, linked)
        else:
            self._enrolment(entry, name)

    def subject(self, row: tuple[Any, ...]) -> None:
        """A stored subject, in the order of the columns, once all entries have been seen."""
        self.chain.locate(row[0])
        subject_sum = self.subject_sums.pop(row[0], None)
        if subject_sum is None:
            self._note("there is a stored subject that no entry enrolled.")
        elif tuple(map(type, row)) != _SUBJECT or not _printable(row[1]):
            self._note("the stored values of the subject enrolled here are of the wrong kind.")
        else:
            if SUBJECTS.seal_of(*row[:7]) != row[7]:
                self._note("the stored row of the subject enrolled here does not match its seal.")
            if row[2] != subject_sum.terms:
                self._note("the stored terms of the subject enrolled here are not those of its enrolment.")
            if row[3:6] != subject_sum.spent or row[6] != subject_sum.at:
                self._note("the stored sum of the subject enrolled here is not that of its charges.")

    def statement(self, name: str, number: int, at: int) -> Statement | None:
        """The statement of the subject that entry ``number`` enrolled; None if its charges cannot be read."""
        subject_sum = self.subject_sums[number]
        at = max(at, subject_sum.at)
        try:
            if subject_sum.agreed is None:
                return None
            counted: Counter[Guarantee] = Counter()
            for key, count in sorted((subject_sum.counted or {}).items()):
                counted[self._guarantee(key)] += count
            before = tuple(look.before(at, subject_sum.spent) for look in copy.deepcopy(subject_sum.looks))
            return stated(name, subject_sum.agreed.terms, at, counted, subject_sum.spent, before)
        except _UNREADABLE:
            return None

    def _enrolment(self, entry: tuple[Any, ...], name: str | None) -> None:
        number, subject, _, at, key, *figures, windowed, _ = entry
        if subject != number or any(figures):
            self._note("this entry is neither an enrolment nor a charge.")
            return
        self.subjects += 1
        if name is None:
            self._note("the subject that this entry enrols is lost.")
        elif not _is_name(name) or lane_of(name, self.chain.lanes) != number % self.chain.lanes:
            self._note("the subject that this entry enrols does not belong here.")
        if key not in self._agreed:
            self._agreed[key] = self._read_terms(key)
        agreed = self._agreed[key]
        if agreed is None:
            self._note("the terms that this entry agrees are lost or altered.")
        elif windowed != agreed.windowed:
            self._note("this entry does not say whether its budgets have periods as its terms do.")
        subject_sum = self.subject_sums[number] = SubjectSum(key, agreed, at)
        if self._counting:
            subject_sum.counted = {}

    def _charge(self, entry: tuple[Any, ...], linked: bool) -> None:
        subject_sum = self.subject_sums.get(entry[1])
        if subject_sum is None or entry[1] % self.chain.lanes != entry[0] % self.chain.lanes:
            self._note("this entry charges a subject that was not enrolled before it in its lane.")
            return
        if len(entry[2]) > MOST_CHARACTERS:
            self._note("the release id of this entry is too long.")
        earlier, cost, stored = subject_sum.spent, Cost(*entry[5:8]), entry[8:11]
        total = earlier + cost
        if min(cost) < 0 or max(total) > MOST:
            self._note("the figures of this entry are beyond what can be charged.")
            return
        subject_sum.spent = total
        if total != stored:
            self._note("the sum in this entry is not that of the charges up to it.")
            if linked and min(stored) >= 0 and max(stored) <= MOST:
                subject_sum.spent = Cost(*stored)  # charges before it are lost; do not report the rest one by one
        subject_sum.at = entry[3]
        if subject_sum.counted is not None:
            subject_sum.counted[entry[4]] = subject_sum.counted.get(entry[4], 0) + 1
        if subject_sum.agreed is not None:
            self._spend(subject_sum, subject_sum.agreed, entry, cost, earlier)

    def _spend(
        self, subject_sum: SubjectSum, agreed: Allowance, entry: tuple[Any, ...], cost: Cost, earlier: Cost
    ) -> None:
        """Checks the price of one charge, and every window it lies in."""
        due = self._price(entry[4], subject_sum.terms, agreed.terms)
        if due is None:
            self._note("the guarantee of this entry is lost, altered, or one that the terms refuse.")
        elif due != cost:
            self._note("the cost in this entry is not the price of its guarantee.")
        if entry[11] != agreed.windowed:
            self._note("this entry does not say whether its budgets have periods as its terms do.")
        amount, delta = earlier.amount + cost.amount, earlier.delta + cost.delta
        for look, allowed in zip(subject_sum.looks, agreed.budgets, strict=True):
            before = look.before(entry[3], earlier)
            if amount - before.amount > allowed.amount or delta - before.delta > allowed.delta:
                self._note("with this entry more was spent in one period than a budget allows.")

    def _price(self, key: bytes, terms_key: bytes, terms: Terms) -> Cost | None:
        """What the guarantee of this digest costs; None if it cannot be read or charged."""
        pair = (key, terms_key)
        if pair not in self._prices:
            if len(self._prices) >= _MOST_KNOWN:
                self._prices.clear()
            try:
                self._prices[pair] = price(self._guarantee(key), terms)
            except _UNREADABLE:
                self._prices[pair] = None
        return self._prices[pair]

    def _guarantee(self, key: bytes) -> Guarantee:
        return Guarantee.from_json(json.loads(self._text(key)))

    def _read_terms(self, key: bytes) -> Allowance | None:
        try:
            return Allowance.of(Terms.from_json(json.loads(self._text(key))))
        except _UNREADABLE:
            return None

    def _text(self, key: bytes) -> str:
        text = self._texts(key)
        if type(text) is not str or digest(text) != key:
            raise ValueError
        return text


def _printable(text: object) -> bool:
    """Whether a link can be formed over a text: it has no line break and no half character."""
    return type(text) is str and text.isprintable()


_IMPRESSION = (int, bytes, int, int, int, bytes)
_ACCOUNT = (int, str, int, int, int, bytes)


class _ItemSum:
    __slots__ = ("impressions", "item", "micros")

    def __init__(self, item: str) -> None:
        self.item, self.impressions, self.micros = item, 0, 0


class ImpressionVerifier:
    """Takes all impressions in the order of their numbers, then the accounts' rows if there are any."""

    def __init__(self, ledger: str, lanes: int, notes: Notes, *, head: Head | None = None) -> None:
        self.chain = LaneVerifier(IMPRESSIONS, ledger, lanes, notes, head)
        self.impressions = 0
        self._note = self.chain.note
        self._accounts: dict[int, _ItemSum] = {}  # by the number of the impression that opened it

    def impression(self, row: tuple[Any, ...], item: str | None) -> None:
        """The next impression, in the order of its columns, and the item of its account."""
        self.impressions += 1
        lane, position = self.chain.locate(row[0])
        before = self.chain.link_before(lane, position)
        if tuple(map(type, row)) != _IMPRESSION or not (row[1] and (item is None or _is_name(item))):
            self.chain.unreadable(lane, position)
            return
        number, id, account, day, micros, link = row
        if item is None:
            self._note("the account of this entry is lost.")
        elif before is not None and link != link_of_impression(before, number, id, account, item, day, micros):
            self._note("this entry does not match its link: it was altered, moved or inserted.")
        self.chain.advance(lane, position, link, day * DAY)
        if lane_of_digest(id, self.chain.lanes) != lane:
            self._note("this entry belongs to another lane.")
        if not 0 <= micros <= MOST_MICROS:
            self._note("the price in this entry is beyond what can be reported.")
            return
        summed = self._accounts.get(account)
        if summed is None and account == number:
            summed = self._accounts[account] = _ItemSum(item or "")
        if summed is None or account % self.chain.lanes != lane:
            self._note("this entry counts towards an account that was not opened before it in its lane.")
            return
        if item is not None and summed.item != item:
            self._note("this entry counts towards the account of another item.")
        summed.impressions += 1
        summed.micros += micros

    def account(self, row: tuple[Any, ...]) -> None:
        """A stored account, in the order of the columns, once all impressions have been seen."""
        lane, _ = self.chain.locate(row[0])
        summed = self._accounts.pop(row[0], None)
        if summed is None:
            self._note("there is a stored account that no entry opened.")
        elif tuple(map(type, row)) != _ACCOUNT or not _is_name(row[1]):
            self._note("the stored values of the account opened here are of the wrong kind.")
        else:
            if ACCOUNTS.seal_of(*row[:5]) != row[5]:
                self._note("the stored account opened here does not match its seal.")
            if row[1:3] != (summed.item, lane):
                self._note("the stored account opened here is that of another item or lane.")
            if row[3:5] != (summed.impressions, summed.micros) or summed.micros > MOST:
                self._note("the stored sums of the account opened here are not those of its entries.")

    def totals(self) -> tuple[ItemTotal, ...]:
        """What the impressions add up to, per item, in the order of names. Call it before the accounts' rows are compared."""
        added: dict[str, _ItemSum] = {}
        for summed in self._accounts.values():
            total = added.setdefault(summed.item, _ItemSum(summed.item))
            total.impressions += summed.impressions
            total.micros += summed.micros
        return tuple(ItemTotal(item, total.impressions, total.micros) for item, total in sorted(added.items()))


def _is_name(text: object) -> bool:
    return type(text) is str and text.isprintable() and 0 < len(text) <= MOST_CHARACTERS
