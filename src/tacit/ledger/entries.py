"""The privacy book as rows: the links of entries, the queries, and the texts of terms and guarantees.

A check of a ledger, or of an exported file, uses these same functions on its rows.
"""

import json
from collections import Counter
from hashlib import sha256
from typing import Any, NamedTuple

from tacit.errors import GuaranteeRefused, InvalidParameter, LedgerDamaged, UnknownSubject
from tacit.guarantees import Guarantee
from tacit.ledger.budgets import NOTHING_SPENT, Cost, Statement, Terms, allowance, price, stated
from tacit.ledger.chain import digest
from tacit.ledger.stores.interface import ENTRIES, RELEASES, SUBJECTS, Query, Reader, Row, Writer

BOOK = "privacy"

SUBJECT = Query(f"{SUBJECTS.select} WHERE name = ?", ("text",))
TEXT = Query("SELECT text FROM texts WHERE digest = ?", ("bytes",))
LINK = Query("SELECT link FROM entries WHERE number = ?", ("int",))
ENTRY_COLUMNS = ", ".join(f"e.{column}" for column in ENTRIES.columns)
_ENTRY = f"SELECT {ENTRY_COLUMNS}, p.link"  # an entry, and the link before it
_BEFORE = "LEFT JOIN entries p ON p.number = e.number - ?"  # the number of lanes
CHARGE = Query(  # the lanes, the subject, the release id
    f"{_ENTRY}, r.content, r.seal FROM subjects s JOIN entries e ON e.subject = s.number {_BEFORE} "
    "LEFT JOIN releases r ON r.entry = e.number WHERE s.name = ? AND e.release_id = ?",
    ("int", "text", "text"),
)
RELEASE_ID = Query(  # the subject, the release id
    "SELECT e.release_id FROM subjects s JOIN entries e ON e.subject = s.number WHERE s.name = ? AND e.release_id = ?",
    ("text", "text"),
)
STORED = (  # the lanes, the subject: the charges with a stored release, newest first (a subject has one lane)
    f"{_ENTRY}, r.content, r.seal FROM subjects s JOIN entries e ON e.subject = s.number {_BEFORE} "
    "JOIN releases r ON r.entry = e.number WHERE s.name = ? ORDER BY e.number DESC"
)
SPENT_BEFORE = Query(  # the lanes, the subject, a time: the subject's last entry before it
    f"{_ENTRY} FROM entries e {_BEFORE} "
    "WHERE e.subject = ? AND e.windowed = 1 AND e.at < ? ORDER BY e.at DESC, e.number DESC LIMIT 1",
    ("int", "int", "int"),
)
_UNDER_EACH = "SELECT guarantee, count(*) FROM entries WHERE subject = ? AND release_id <> '' GROUP BY guarantee"


class Entry(NamedTuple):
    """One row of the book, in the order of its columns."""

    number: int
    subject: int
    release_id: str  # empty for the entry that enrolled the subject
    at: int
    guarantee: bytes  # the digest of a guarantee, or of the terms
    amount: int
    delta: int
    unprotected: int
    total: int
    total_delta: int
    total_unprotected: int
    windowed: int
    link: bytes

    @property
    def cost(self) -> Cost:
        return Cost(self.amount, self.delta, self.unprotected)


def link_of_charge(
    before: bytes,
    number: int,
    subject: int,
    release_id: str,
    at: int,
    guarantee: bytes,
    amount: int,
    delta: int,
    unprotected: int,
    total: int,
    total_delta: int,
    total_unprotected: int,
    windowed: int,
) -> bytes:
    """The link of an entry after the one whose link is ``before``."""
    # Written out, because it is formed for every charge. No field holds a line break, so no two entries have the same text.
    text = (
        f"{number}\n{subject}\n{release_id}\n{at}\n{guarantee.hex()}\n{amount}\n{delta}\n{unprotected}\n"
        f"{total}\n{total_delta}\n{total_unprotected}\n{windowed}"
    )
    return sha256(before + text.encode()).digest()


def link_of_enrolment(link: bytes, name: str) -> bytes:
    """The link of the entry that enrolled a subject: that of a charge, and over the subject's name as well."""
    return sha256(link + name.encode()).digest()


def read_subject(name: str, row: Row | None) -> Row:
    """The row that SUBJECT found, without its seal. Raises if there is none, or if it was altered."""
    if row is None:
        raise unknown_subject()
    return SUBJECTS.unsealed((row[0], name, *row[2:]))  # with the name that was asked for: an index may lead astray


def read_charge(row: Row) -> Entry:
    """A charge with the link before it. Raises LedgerDamaged if it was altered."""
    *entry, link, before = row
    if type(entry[4]) is not bytes or type(before) is not bytes or link_of_charge(before, *entry) != link:
        raise LedgerDamaged("an entry does not match its link. Run `tacit ledger check`, then restore a backup.")
    return Entry._make((*entry, link))


def read_release(row: Row) -> tuple[Entry, bytes | None]:
    """A charge and its stored release, or None, from a row that CHARGE or STORED found."""
    *charge, content, seal = row
    entry = read_charge(tuple(charge))
    return entry, None if content is None else RELEASES.unsealed((entry.number, content, seal))[1]


def spent_before(row: Row | None, subject: int, start: int) -> Cost:
    """The totals in the row that SPENT_BEFORE found. They are checked, because a sum that is too large would renew a budget."""
    if row is None or row[2] == "":  # nothing but the enrolment
        return NOTHING_SPENT
    entry = read_charge(row)
    if entry.subject != subject or entry.at >= start:
        raise LedgerDamaged("an index leads to the wrong entry. Run `tacit ledger check`, then restore a backup.")
    return Cost(entry.total, entry.total_delta, entry.total_unprotected)


def unknown_subject() -> UnknownSubject:
    return UnknownSubject(
        "the ledger knows no subject of that name. Enrol it first: ledger.enrol(subject, Budget(...), ...)."
    )


_MOST = 10_000  # terms and prices in memory, each
_MOST_CHARACTERS = 65_536  # of a guarantee's text


class Allowance(NamedTuple):
    """Terms, and what they allow in one window of each budget."""

    terms: Terms
    budgets: tuple[Cost, ...]
    windowed: int  # 1 if a charge has to look back in time
    nothing: tuple[Cost, ...]  # spent before any window, for terms without periods
    most: int  # what the totals may reach without periods
    most_delta: int

    @classmethod
    def of(cls, terms: Terms) -> "Allowance":
        """The allowance of these terms. Raises InvalidParameter for a budget that nothing can be charged to."""
        budgets = tuple(allowance(budget, terms) for budget in terms.budgets)
        most, most_delta = min(cost.amount for cost in budgets), min(cost.delta for cost in budgets)
        return cls(terms, budgets, int(terms.windowed), (NOTHING_SPENT,) * len(budgets), most, most_delta)


class Price(NamedTuple):
    """What a guarantee costs, and how the ledger writes the guarantee."""

    cost: Cost
    digest: bytes
    text: str


class PriceList:
    """A cache of facts that never change: terms by their digest, and the price of a guarantee under them."""

    def __init__(self) -> None:
        self._terms: dict[bytes, Allowance] = {}
        self._prices: dict[tuple[int, bytes], tuple[Guarantee, Price]] = {}

    def terms(self, reader: Reader | Writer, key: bytes) -> Allowance:
        """The terms of this digest, from the cache or from the ledger."""
        allowed = self._terms.get(key)
        if allowed is None:
            allowed = Allowance.of(read_terms(reader, key))
            if len(self._terms) >= _MOST:
                self._terms.clear()
            self._terms[key] = allowed
        return allowed

    def price(self, guarantee: Guarantee, key: bytes, terms: Terms) -> Price:
        """The price of ``guarantee`` under the terms of this digest; raises if it cannot be charged."""
        # The key is the guarantee's identity: hashing it takes longer than all the rest.
        cached = self._prices.get((id(guarantee), key))
        if cached is not None:
            return cached[1]
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter("a charge is made for a Guarantee: pass the mechanism's or the release's.")
        text = canonical_text(guarantee.to_json())
        if len(text) > _MOST_CHARACTERS:
            raise GuaranteeRefused("the guarantee's assumptions are too long to be kept. Shorten them.")
        new = Price(price(guarantee, terms), digest(text), text)
        if len(self._prices) >= _MOST:
            self._prices.clear()
        self._prices[id(guarantee), key] = guarantee, new  # while it is kept, no other object gets its id
        return new


def canonical_text(value: dict[str, Any]) -> str:
    """The JSON of a guarantee or of terms, always written as the same text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def read_terms(reader: Reader | Writer, key: bytes) -> Terms:
    """The terms of this digest. Raises LedgerDamaged if they were altered."""
    try:
        return Terms.from_json(json.loads(_read_text(reader, key)))
    except (ValueError, InvalidParameter) as problem:
        raise LedgerDamaged(
            "a subject's terms cannot be read. Run `tacit ledger check`, then restore a backup."
        ) from problem


def read_guarantee(reader: Reader | Writer, key: bytes) -> Guarantee:
    """The guarantee of this digest. Raises LedgerDamaged if it was altered."""
    try:
        return Guarantee.from_json(json.loads(_read_text(reader, key)))
    except (ValueError, InvalidParameter) as problem:
        raise LedgerDamaged("a guarantee cannot be read. Run `tacit ledger check`, then restore a backup.") from problem


def _read_text(reader: Reader | Writer, key: bytes) -> str:
    (row,) = reader.ask(TEXT, [(key,)])()
    if row is None or not isinstance(row[0], str) or digest(row[0]) != key:
        raise LedgerDamaged("a text is not what was written. Run `tacit ledger check`, then restore a backup.")
    return str(row[0])


def read_statement(reader: Reader, prices: PriceList, lanes: int, subject: str, moment: int) -> Statement:
    """A subject's statement at ``moment``, or at the subject's last entry if that is later."""
    (row,) = reader.ask(SUBJECT, [(subject,)])()
    number, _, key, *total, last = read_subject(subject, row)
    terms, at = prices.terms(reader, key).terms, max(moment, last)
    counted: Counter[Guarantee] = Counter()
    for guarantee, count in list(reader.stream(_UNDER_EACH, (number,))):
        counted[read_guarantee(reader, guarantee)] += count
    starts = [budget.start(at) for budget in terms.budgets]
    rows = reader.ask(SPENT_BEFORE, [(lanes, number, start) for start in starts])()
    before = tuple(spent_before(row, number, start) for row, start in zip(rows, starts, strict=True))
    return stated(subject, terms, at, counted, Cost(*total), before)
