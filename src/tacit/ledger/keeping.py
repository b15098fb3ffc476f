"""Stored releases: what was drawn for a charge, kept so that a retry sends the same bytes."""

from collections.abc import Iterator
from typing import NamedTuple

from tacit.errors import InvalidParameter, LedgerDamaged, TacitError
from tacit.ledger.charging import stored_release
from tacit.ledger.entries import CHARGED, STORED, linked_charge, seal_of_release
from tacit.ledger.stores.interface import Reader, Row, Writer
from tacit.ledger.stores.schema import RELEASES


class Kept(NamedTuple):
    subject: str
    release_id: str
    content: bytes


class Stored(NamedTuple):
    """What was kept for a charge."""

    release_id: str
    at: int  # when it was charged: microseconds since 1970
    content: bytes


def stored_releases(reader: Reader, lanes: int, subject: str) -> Iterator[Stored]:
    """What was kept for a subject's charges, newest first; each is checked as it is found."""
    for *found, content, seal in reader.stream(STORED, (lanes, subject)):
        entry = linked_charge(tuple(found))
        kept = stored_release(entry.number, content, seal)
        if kept is not None:
            yield Stored(entry.release_id, entry.at, kept)


def kept_for(reader: Reader, lanes: int, subject: str, release_id: str) -> bytes | None:
    """What was kept for one charge, if anything was."""
    (row,) = reader.ask(CHARGED, [(lanes, subject, release_id)])()
    return None if row is None else _linked(row)[1]


def commit_releases(writer: Writer, lanes: int, wished: list[Kept]) -> list[bytes | TacitError]:
    """What is kept for each charge: the first content that came, whoever brought it."""
    rows = writer.ask(CHARGED, [(lanes, kept.subject, kept.release_id) for kept in wished])()
    outcomes: list[bytes | TacitError] = []
    new: dict[int, bytes] = {}
    for kept, row in zip(wished, rows, strict=True):
        if row is None:
            outcomes.append(
                InvalidParameter("there is no charge with this release_id: charge first, then keep the release.")
            )
            continue
        try:
            entry, stored = _linked(row)
        except LedgerDamaged as problem:
            outcomes.append(problem)
            continue
        outcomes.append(stored if stored is not None else new.setdefault(entry, kept.content))
    if new:
        inserted: list[Row] = [(entry, content, seal_of_release(entry, content)) for entry, content in new.items()]
        writer.insert(RELEASES, inserted)
    return outcomes


def _linked(row: Row) -> tuple[int, bytes | None]:
    """The entry of a charge, and what was kept for it."""
    *found, content, seal = row
    entry = linked_charge(tuple(found)).number
    return entry, stored_release(entry, content, seal)
