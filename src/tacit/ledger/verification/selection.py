"""The tables beside the books: offers, batches, refusals, engagements, displays, consents, mail. What is in them is in no chain.

Rows of them are deleted on purpose, so that a missing one is no finding; an altered one is, by its seal. Nothing that is
counted or owed rests on them: that is in the impressions.
"""

import json
from collections.abc import Callable
from typing import Any

from tacit.ledger.batches import seal_of_batch, seal_of_refusal
from tacit.ledger.consents import seal_of_consent
from tacit.ledger.display_rows import DisplayState, seal_of_display
from tacit.ledger.engagements import seal_of_engagement
from tacit.ledger.impression_rows import BOOK
from tacit.ledger.mail import seal_of_letter
from tacit.ledger.offers import seal_of_offer
from tacit.ledger.stores.interface import Reader, Row
from tacit.ledger.verification.findings import LEDGER, Notes

UNIQUE = (
    ("id", "offers"),
    ("batch, group_id", "batches"),
    ("batch, group_id", "refusals"),
    ("id", "engagements"),
    ("server, token", "displays"),
    ("number", "consents"),
    ("batch, token", "mail"),
    ("batch", "closed"),
)
_ENGAGEMENTS = (  # those that belong to no impression of their item
    "SELECT 1 FROM engagements e LEFT JOIN impressions i ON i.id = e.id LEFT JOIN accounts a ON a.number = i.account "
    "WHERE a.item IS NULL OR a.item <> e.item OR e.bit NOT IN (0, 1) LIMIT 1"
)


def check_selection(reader: Reader, notes: Notes) -> None:
    """Notes what is wrong with these tables, each kind of fault once."""
    for rows, book, what, good in (
        ("SELECT id, content, expires, seal FROM offers", BOOK, "an offer", _offer),
        ("SELECT batch, group_id, digest, reports, day, seal FROM batches", BOOK, "a settled batch", _batch),
        ("SELECT batch, group_id, day, seal FROM refusals", BOOK, "a refusal", _refusal),
        ("SELECT server, token, items, expires, state, extra, seal FROM displays", LEDGER, "a display", _display),
        ("SELECT batch, token, group_id, item, seal FROM mail", LEDGER, "a letter", _letter),
        ("SELECT batch FROM closed", LEDGER, "a closed batch", _closed),
        ("SELECT id, item, bit, day, seal FROM engagements", BOOK, "an engagement", _engagement),
    ):
        if not all(_holds(good, row) for row in reader.stream(rows)):
            notes.add(book, f"{what} is not what was written.")
    last = (0, 0)
    for place, row in enumerate(reader.stream("SELECT number, granted, day, seal FROM consents ORDER BY number"), 1):
        repeated = place > 1 and row[1] == last[0]  # as only a revocation is, and under its first day
        if not _holds(_consent, row) or row[0] != place or row[2] < last[1] or (repeated and row[1:3] != (0, last[1])):
            notes.add(LEDGER, "the consents are not those that were written.")
            break
        last = row[1], row[2]
    for _ in reader.stream(_ENGAGEMENTS):
        notes.add(BOOK, "there is an engagement that belongs to no impression of its item.")


def _holds(good: Callable[..., bool], row: Row) -> bool:
    try:
        return good(*row)
    except (TypeError, ValueError, AttributeError, KeyError):  # values of the wrong kind
        return False


def _offer(id: bytes, content: str, expires: int, seal: bytes) -> bool:
    return type(json.loads(content)) is list and seal_of_offer(id, content, expires) == seal


def _batch(*row: Any) -> bool:
    return bool(seal_of_batch(*row[:-1]) == row[-1])


def _refusal(*row: Any) -> bool:
    return bool(seal_of_refusal(*row[:-1]) == row[-1])


def _display(*row: Any) -> bool:
    return bool(DisplayState(row[4]) in DisplayState and seal_of_display(*row[:-1]) == row[-1])


def _consent(*row: Any) -> bool:
    return bool(seal_of_consent(*row[:-1]) == row[-1])


def _letter(*row: Any) -> bool:
    return bool(seal_of_letter(*row[:-1]) == row[-1])


def _engagement(*row: Any) -> bool:
    return bool(seal_of_engagement(*row[:-1]) == row[-1])


def _closed(batch: str) -> bool:
    return batch.isprintable() and batch != ""
