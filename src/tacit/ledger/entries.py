"""The privacy book as rows: how an entry is linked, how a subject's row is sealed, and the questions asked of them.

Whoever verifies a ledger uses these same functions on the exported rows.
"""

import json
from hashlib import sha256
from typing import Any, NamedTuple

from tacit.errors import LedgerDamaged
from tacit.ledger.amounts import NOTHING_SPENT, Cost
from tacit.ledger.stores.interface import Query, Row

BOOK = "privacy"

SUBJECT = Query(
    "SELECT number, terms, total, total_delta, total_unprotected, at, seal FROM subjects WHERE name = ?", ("text",)
)
TEXT = Query("SELECT text FROM texts WHERE digest = ?", ("bytes",))
_ENTRY = (
    "SELECT e.number, e.subject, e.release_id, e.at, e.guarantee, e.amount, e.delta, e.unprotected, e.total, e.total_delta, "
    "e.total_unprotected, e.windowed, e.link, p.link"  # an entry, and the link before it
)
_BEFORE = "LEFT JOIN entries p ON p.number = e.number - ?"  # the number of lanes
CHARGED = Query(  # the lanes, the subject, the release id
    f"{_ENTRY}, r.content, r.seal FROM subjects s JOIN entries e ON e.subject = s.number {_BEFORE} "
    "LEFT JOIN releases r ON r.entry = e.number WHERE s.name = ? AND e.release_id = ?",
    ("int", "text", "text"),
)
STORED = (  # the lanes, the subject: her charges of which something was kept, newest first (a subject has one lane)
    f"{_ENTRY}, r.content, r.seal FROM subjects s JOIN entries e ON e.subject = s.number {_BEFORE} "
    "JOIN releases r ON r.entry = e.number WHERE s.name = ? ORDER BY e.number DESC"
)
SPENT_BEFORE = Query(  # the lanes, the subject, the time: her last entry before it
    f"{_ENTRY} FROM entries e {_BEFORE} "
    "WHERE e.subject = ? AND e.windowed = 1 AND e.at < ? ORDER BY e.at DESC, e.number DESC LIMIT 1",
    ("int", "int", "int"),
)
LINK = Query("SELECT link FROM entries WHERE number = ?", ("int",))


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
    # Written out, since it is formed for every charge. No field holds a line break, so no two entries have one text.
    text = (
        f"{number}\n{subject}\n{release_id}\n{at}\n{guarantee.hex()}\n{amount}\n{delta}\n{unprotected}\n"
        f"{total}\n{total_delta}\n{total_unprotected}\n{windowed}"
    )
    return sha256(before + text.encode()).digest()


def link_of_enrolment(link: bytes, name: str) -> bytes:
    """The link of the entry that enrolled a subject: as of a charge, and over her name as well."""
    return sha256(link + name.encode()).digest()


def seal_of_subject(
    number: int, name: str, terms: bytes, total: int, total_delta: int, total_unprotected: int, at: int
) -> bytes:
    text = f"{number}\n{name}\n{terms.hex()}\n{total}\n{total_delta}\n{total_unprotected}\n{at}"
    return sha256(text.encode()).digest()[:8]


def sealed_subject(name: str, row: Row) -> Row:
    """What SUBJECT found, without the seal, if it is as it was written."""
    *content, seal = row
    if type(content[1]) is not bytes or seal != seal_of_subject(content[0], name, *content[1:]):
        raise LedgerDamaged("a subject's row is not what was written. Run `tacit ledger check`, restore a backup.")
    return tuple(content)


def linked_charge(row: Row) -> Entry:
    """A charge as it was found with the link before it, if it is as it was written."""
    *entry, link, before = row
    if type(entry[4]) is not bytes or type(before) is not bytes or link_of_charge(before, *entry) != link:
        raise LedgerDamaged("an entry does not match its link. Run `tacit ledger check`, restore a backup.")
    return Entry._make((*entry, link))


def spent_before(row: Row | None, subject: int, start: int) -> Cost:
    """The totals of what SPENT_BEFORE found for a subject and a time; a sum that is too large would renew a budget."""
    if row is None or row[2] == "":  # nothing but the enrolment
        return NOTHING_SPENT
    entry = linked_charge(row)
    if entry.subject != subject or entry.at >= start:  # an index that leads astray
        raise LedgerDamaged("an index leads to the wrong entry. Run `tacit ledger check`, restore a backup.")
    return Cost(entry.total, entry.total_delta, entry.total_unprotected)


def seal_of_release(entry: int, content: bytes) -> bytes:
    return sha256(f"{entry}\n".encode() + content).digest()[:8]


def canonical(value: dict[str, Any]) -> str:
    """The one text of a guarantee's or of terms' JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
