"""The privacy book as rows: how an entry is linked, how a subject's row is sealed, and the questions asked of them.

Whoever verifies a ledger uses these same functions on the exported rows.
"""

import json
from hashlib import sha256
from typing import Any, NamedTuple

from tacit.ledger.stores.interface import Query

BOOK = "privacy"

SUBJECT = Query(
    "SELECT number, terms, total, total_delta, total_unprotected, at, seal FROM subjects WHERE name = ?", ("text",)
)
TEXT = Query("SELECT text FROM texts WHERE digest = ?", ("bytes",))
CHARGED = Query(
    "SELECT e.number, e.at, e.guarantee, e.amount, e.delta, e.unprotected, r.content, r.seal "
    "FROM subjects s JOIN entries e ON e.subject = s.number LEFT JOIN releases r ON r.entry = e.number "
    "WHERE s.name = ? AND e.release_id = ?",
    ("text", "text"),
)
SPENT_BEFORE = Query(
    "SELECT total, total_delta, total_unprotected FROM entries WHERE subject = ? AND windowed = 1 AND at < ? "
    "ORDER BY at DESC, number DESC LIMIT 1",
    ("int", "int"),
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


def seal_of_release(entry: int, content: bytes) -> bytes:
    return sha256(f"{entry}\n".encode() + content).digest()[:8]


def canonical(value: dict[str, Any]) -> str:
    """The one text of a guarantee's or of terms' JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
