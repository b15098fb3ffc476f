"""What every store writes when a ledger is created, and checks when it is opened."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from tacit.checks import whole
from tacit.errors import LedgerDamaged, LedgerTooNew
from tacit.ledger.chain import MOST_LANES, Tip, genesis
from tacit.ledger.stores.interface import Row
from tacit.ledger.stores.schema import BOOKS, FACTS, LANES, VERSION, Table


@dataclass(frozen=True)
class Origin:
    """What was fixed when the ledger was created."""

    ledger: str
    lanes: int
    created: str


def starting_rows(lanes: int) -> list[tuple[Table, Row]]:
    """The rows of an empty ledger."""
    lanes = whole("lanes", lanes, least=1, most=MOST_LANES)
    ledger = uuid.uuid4().hex
    facts = {
        "ledger": ledger,
        "lanes": str(lanes),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": str(VERSION),
    }
    rows: list[tuple[Table, Row]] = [(FACTS, fact) for fact in facts.items()]
    for book in BOOKS:
        for lane in range(lanes):
            *tip, book_key, lane_key = tip_row(book, lane, Tip(0, genesis(ledger, book, lane, lanes), 0))
            rows.append((LANES, (book_key, lane_key, *tip)))
    return rows


def found_origin(facts: dict[str, str]) -> Origin:
    try:
        return Origin(facts["ledger"], whole("lanes", int(facts["lanes"]), least=1, most=MOST_LANES), facts["created"])
    except (KeyError, ValueError) as problem:
        raise LedgerDamaged("the ledger does not say what it is. Restore a backup.") from problem


def version_of(row: Row | None) -> int:
    """The version that a ledger states."""
    try:
        return int(row[0])  # type: ignore[index]  # a lost row is damage as well
    except (TypeError, ValueError) as problem:
        raise LedgerDamaged("the ledger does not say which version it has. Restore a backup.") from problem


def check_version(version: int) -> None:
    if version > VERSION:
        raise LedgerTooNew(f"the ledger has version {version}, this program knows up to {VERSION}. Update tacit.")


def tip_row(book: str, lane: int, tip: Tip) -> Row:
    """The new values of a lane's row, then its key."""
    return (*tip, seal_of_tip(book, lane, *tip), book, lane)


def seal_of_tip(book: str, lane: int, position: int, link: bytes, at: int) -> bytes:
    """A checksum beside a row that is updated in place: a damaged one is noticed before it is used."""
    return sha256(f"{book}\n{lane}\n{position}\n{link.hex()}\n{at}".encode()).digest()[:8]


def sealed_tip(book: str, lane: int, row: Row | None) -> Tip:
    """The end of a lane as it was read, if it is as it was written."""
    if row is None or type(row[1]) is not bytes or seal_of_tip(book, lane, *row[:3]) != row[3]:
        raise LedgerDamaged(
            f"the end of lane {lane} is not what was written. Run `tacit ledger check`, restore a backup."
        )
    return Tip(*row[:3])
