"""Recomputing the privacy book from its entries alone: every link, price, sum and window, whether they come from a store or a file.

What was altered by one who did not mend the links is found by the links; what was altered by one who did is found by the
prices, sums and budgets, and by a head that was noted before.
"""

import copy
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from tacit.errors import TacitError
from tacit.guarantees import Guarantee
from tacit.ledger.accounting import price
from tacit.ledger.amounts import MOST, NOTHING_SPENT, Cost
from tacit.ledger.budgets import Terms
from tacit.ledger.chain import Head, digest, lane_of
from tacit.ledger.clock import END_OF_TIME
from tacit.ledger.entries import BOOK, link_of_charge, link_of_enrolment, seal_of_subject
from tacit.ledger.known import Agreed
from tacit.ledger.names import MOST_CHARACTERS
from tacit.ledger.statements import Statement, stated
from tacit.ledger.verification.findings import Notes
from tacit.ledger.verification.lanes import LaneVerifier
from tacit.ledger.verification.lookback import LookBack, look_back

Texts = Callable[[bytes], str | None]

_ENTRY = (int, int, str, int, bytes, int, int, int, int, int, int, int, bytes)
_SUBJECT = (int, str, bytes, int, int, int, int, bytes)
_MOST_KNOWN = 50_000  # prices and texts kept in memory
_UNREADABLE = (TacitError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Account:
    """A subject as her entries so far describe her."""

    __slots__ = ("agreed", "at", "counted", "looks", "spent", "terms")

    def __init__(self, terms: bytes, agreed: Agreed | None, at: int) -> None:
        self.terms, self.agreed, self.at = terms, agreed, at
        self.spent = NOTHING_SPENT
        self.looks: tuple[LookBack, ...] = ()
        self.counted: dict[bytes, int] | None = None  # charges by the digest of their guarantee
        if agreed is not None:
            self.looks = tuple(look_back(budget) for budget in agreed.terms.budgets)


class PrivacyVerifier:
    """Is fed with all entries in the order of their numbers, then with the subjects' rows where there are any.

    Keeps a few hundred bytes for each subject. With ``counting`` it also counts charges by guarantee, for statements.
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
        self.chain = LaneVerifier(BOOK, ledger, lanes, notes, head)
        self.entries = self.subjects = 0
        self.accounts: dict[int, Account] = {}  # by the number of the entry that enrolled her
        self._texts, self._notes, self._counting = texts, notes, counting
        self._place = 0, 0  # the lane and position of what is looked at
        self._agreed: dict[bytes, Agreed | None] = {}
        self._prices: dict[tuple[bytes, bytes], Cost | None] = {}

    def entry(self, entry: tuple[Any, ...], name: str | None) -> None:
        """The next entry, in the order of its columns; ``name`` is the subject's where the entry enrols one."""
        self.entries += 1
        lane, position, before = self.chain.place(entry[0])
        self._place = lane, position
        if tuple(map(type, entry)) != _ENTRY or not (_printable(entry[2]) and (name is None or _printable(name))):
            self.chain.unreadable(lane, position)
            return
        release_id, at, link = entry[2], entry[3], entry[12]
        linked = True
        if before is not None and (release_id or name is not None):
            expected = link_of_charge(before, *entry[:12])
            linked = link == (expected if release_id else link_of_enrolment(expected, name or ""))
            if not linked:
                self._note("this entry does not match its link: it was altered, moved or put in.")
        self.chain.advance(lane, position, link, at)
        if not 0 <= at <= END_OF_TIME:
            self._note("the time of this entry is in no calendar.")
        elif release_id:
            self._charge(entry, linked)
        else:
            self._enrolment(entry, name)

    def subject(self, row: tuple[Any, ...]) -> None:
        """A stored subject, in the order of the columns, once all entries have been seen."""
        position, lane = divmod(row[0], self.chain.lanes)
        self._place = lane, position
        account = self.accounts.pop(row[0], None)
        if account is None:
            self._note("there is a stored subject whom no entry enrolled.")
        elif tuple(map(type, row)) != _SUBJECT or not _printable(row[1]):
            self._note("the stored values of the subject enrolled here are of the wrong kind.")
        else:
            if seal_of_subject(*row[:7]) != row[7]:
                self._note("the stored row of the subject enrolled here does not match its seal.")
            if row[2] != account.terms:
                self._note("the stored terms of the subject enrolled here are not those she was enrolled with.")
            if row[3:6] != account.spent or row[6] != account.at:
                self._note("the stored sum of the subject enrolled here is not that of her charges.")

    def statement(self, name: str, number: int, at: int) -> Statement | None:
        """What follows from the charges of the subject enrolled by entry ``number``; None where they cannot be read."""
        account = self.accounts[number]
        at = max(at, account.at)
        try:
            if account.agreed is None:
                return None
            counted: Counter[Guarantee] = Counter()
            for key, count in sorted((account.counted or {}).items()):
                counted[self._guarantee(key)] += count
            before = tuple(look.before(at, account.spent) for look in copy.deepcopy(account.looks))
            return stated(name, account.agreed.terms, at, counted, account.spent, before)
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
        elif not 0 < len(name) <= MOST_CHARACTERS or lane_of(name, self.chain.lanes) != self._place[0]:
            self._note("the subject that this entry enrols does not belong here.")
        if key not in self._agreed:
            self._agreed[key] = self._read_terms(key)
        agreed = self._agreed[key]
        if agreed is None:
            self._note("the terms that this entry agrees are lost or altered.")
        elif windowed != agreed.windowed:
            self._note("this entry does not say whether its budgets have periods as its terms do.")
        account = self.accounts[number] = Account(key, agreed, at)
        if self._counting:
            account.counted = {}

    def _charge(self, entry: tuple[Any, ...], linked: bool) -> None:
        account = self.accounts.get(entry[1])
        if account is None or entry[1] % self.chain.lanes != self._place[0]:
            self._note("this entry charges a subject that was not enrolled before it in its lane.")
            return
        if len(entry[2]) > MOST_CHARACTERS:
            self._note("the release id of this entry is too long.")
        earlier, cost, stored = account.spent, Cost(*entry[5:8]), entry[8:11]
        total = earlier + cost
        if min(cost) < 0 or max(total) > MOST:
            self._note("the figures of this entry are beyond what can be charged.")
            return
        account.spent = total
        if total != stored:
            self._note("the sum in this entry is not that of the charges up to it.")
            if linked and min(stored) >= 0 and max(stored) <= MOST:
                account.spent = Cost(*stored)  # charges before it are lost; the rest shall not be told one by one
        account.at = entry[3]
        if account.counted is not None:
            account.counted[entry[4]] = account.counted.get(entry[4], 0) + 1
        if account.agreed is not None:
            self._spend(account, account.agreed, entry, cost, earlier)

    def _spend(self, account: Account, agreed: Agreed, entry: tuple[Any, ...], cost: Cost, earlier: Cost) -> None:
        """The price of one charge, and every window it lies in."""
        due = self._price(entry[4], account.terms, agreed.terms)
        if due is None:
            self._note("the guarantee of this entry is lost, altered, or one that the terms refuse.")
        elif due != cost:
            self._note("the cost in this entry is not the price of its guarantee.")
        if entry[11] != agreed.windowed:
            self._note("this entry does not say whether its budgets have periods as its terms do.")
        amount, delta = earlier.amount + cost.amount, earlier.delta + cost.delta
        for look, allowed in zip(account.looks, agreed.allowances, strict=True):
            before = look.before(entry[3], earlier)
            if amount - before.amount > allowed.amount or delta - before.delta > allowed.delta:
                self._note("with this entry more was spent in one period than a budget allows.")

    def _price(self, key: bytes, terms_key: bytes, terms: Terms) -> Cost | None:
        """What the guarantee of this digest costs; None where it cannot be read or charged."""
        known = (key, terms_key)
        if known not in self._prices:
            if len(self._prices) >= _MOST_KNOWN:
                self._prices.clear()
            try:
                self._prices[known] = price(self._guarantee(key), terms)
            except _UNREADABLE:
                self._prices[known] = None
        return self._prices[known]

    def _guarantee(self, key: bytes) -> Guarantee:
        return Guarantee.from_json(json.loads(self._text(key)))

    def _read_terms(self, key: bytes) -> Agreed | None:
        try:
            return Agreed.to(Terms.from_json(json.loads(self._text(key))))
        except _UNREADABLE:
            return None

    def _text(self, key: bytes) -> str:
        text = self._texts(key)
        if type(text) is not str or digest(text) != key:
            raise ValueError
        return text

    def _note(self, problem: str) -> None:
        self._notes.add(BOOK, problem, *self._place)


def _printable(text: object) -> bool:
    """Whether a link can be formed over it: a line break or half a character has no place there."""
    return type(text) is str and text.isprintable()
