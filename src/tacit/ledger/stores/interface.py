"""The interface of a store: the tables, one kind of write transaction, one kind of read, and no SQL dialect."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, Protocol

from tacit.checks import whole
from tacit.errors import LedgerDamaged, LedgerTooNew
from tacit.ledger.chain import MOST_LANES, Tip, genesis

Kind = Literal["int", "text", "bytes"]
Row = tuple[Any, ...]
# Call it when you need the rows: a store on the wire asks several questions at once.
Answers = Callable[[], list[Row | None]]


def _no_seal(*content: Any) -> bytes:
    raise TypeError("rows of this table have no seal")


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: statements are cached by it
class LedgerTable:
    """A table whose columns are never null.

    A row that is in no chain has a checksum, its seal, in the last column. ``seal`` gives the bytes that the checksum
    covers, from the other columns. A damaged row is noticed before it is used. ``noun`` names a row in messages.

    With ``by_key`` SQLite gives the rows no numbers, which would show the order of their arrival.
    """

    name: str
    columns: Mapping[str, Kind]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    by_key: bool = False
    noun: str = "a row"
    seal: Callable[..., bytes] = _no_seal

    def definition(self, types: Mapping[Kind, str]) -> str:
        """The statement that creates the table."""
        parts = [f"{column} {types[kind]} NOT NULL" for column, kind in self.columns.items()]
        parts += [f"PRIMARY KEY ({', '.join(self.key)})"]
        parts += [f"UNIQUE ({', '.join(columns)})" for columns in self.unique]
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"

    @property
    def select(self) -> str:
        """The SELECT of all columns, in their order. A WHERE or ORDER BY may follow."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    def sealed(self, *content: Any) -> Row:
        """The row of these columns, with its seal."""
        return (*content, self.seal_of(*content))

    def seal_of(self, *content: Any) -> bytes:
        """The seal of these columns: all but the last, in their order."""
        return sha256(self.seal(*content)).digest()[:8]

    def is_sealed(self, row: Row) -> bool:
        """Whether a row is unaltered. The types count: a text may look like the hexadecimal of bytes."""
        *content, seal = row
        return [*map(type, row)] == self._types and sha256(self.seal(*content)).digest()[:8] == seal

    def unsealed(self, row: Row) -> Row:
        """A row without its seal. Raises LedgerDamaged if the row was altered."""
        if not self.is_sealed(row):
            raise LedgerDamaged(
                f"{self.noun} is not what was written. Run `tacit ledger check`, then restore a backup."
            )
        return row[:-1]

    @cached_property
    def _types(self) -> list[type]:
        return [{"int": int, "text": str, "bytes": bytes}[kind] for kind in self.columns.values()]


FACTS = LedgerTable("facts", {"name": "text", "value": "text"}, key=("name",))
LANES = LedgerTable(
    "lanes",
    {"book": "text", "lane": "int", "position": "int", "link": "bytes", "at": "int", "seal": "bytes"},
    key=("book", "lane"),
    noun="the end of a lane",
    seal=lambda book, lane, position, link, at: f"{book}\n{lane}\n{position}\n{link.hex()}\n{at}".encode(),
)
# Terms and guarantees, each kept once, under the digest of its text.
TEXTS = LedgerTable("texts", {"digest": "bytes", "text": "text"}, key=("digest",))
SUBJECTS = LedgerTable(
    "subjects",
    {
        "number": "int",  # the number of the entry that enrolled the subject
        "name": "text",
        "terms": "bytes",  # a digest
        "total": "int",
        "total_delta": "int",
        "total_unprotected": "int",
        "at": "int",
        "seal": "bytes",
    },
    key=("number",),
    unique=(("name",),),
    noun="a subject's row",
    seal=lambda number, name, terms, total, total_delta, total_unprotected, at: (
        f"{number}\n{name}\n{terms.hex()}\n{total}\n{total_delta}\n{total_unprotected}\n{at}".encode()
    ),
)
# Enrolments (release_id is empty, guarantee is the digest of the terms) and charges. The totals are the subject's, this charge
# included: what was spent in any window is a difference of two of them.
ENTRIES = LedgerTable(
    "entries",
    {
        "number": "int",
        "subject": "int",
        "release_id": "text",
        "at": "int",
        "guarantee": "bytes",
        "amount": "int",
        "delta": "int",
        "unprotected": "int",
        "total": "int",
        "total_delta": "int",
        "total_unprotected": "int",
        "windowed": "int",
        "link": "bytes",
    },
    key=("number",),
    unique=(("subject", "release_id"),),
)
RELEASES = LedgerTable(
    "releases",
    {"entry": "int", "content": "bytes", "seal": "bytes"},
    key=("entry",),
    noun="a stored release",
    seal=lambda entry, content: f"{entry}\n".encode() + content,
)
ACCOUNTS = LedgerTable(
    "accounts",
    {"number": "int", "item": "text", "lane": "int", "impressions": "int", "micros": "int", "seal": "bytes"},
    key=("number",),  # the number of the impression that opened it
    unique=(("item", "lane"),),
    noun="an item's account",
    seal=lambda number, item, lane, impressions, micros: f"{number}\n{item}\n{lane}\n{impressions}\n{micros}".encode(),
)
# Of an impression's id only the digest is kept: nobody needs the token in plain text, and its index would be four times as large.
IMPRESSIONS = LedgerTable(
    "impressions",
    {"number": "int", "id": "bytes", "account": "int", "day": "int", "micros": "int", "link": "bytes"},
    key=("number",),
    unique=(("id",),),
)
# What was offered under a token, until it can no longer be reported. The id is the token's digest. Expiry is in seconds since 1970.
OFFERS = LedgerTable(
    "offers",
    {"id": "bytes", "content": "text", "expires": "int", "seal": "bytes"},
    key=("id",),
    noun="an offer",
    seal=lambda id, content, expires: id + f"{expires}\n{content}".encode(),
)
BATCHES = LedgerTable(
    "batches",
    {"batch": "text", "group_id": "text", "digest": "bytes", "reports": "int", "day": "int", "seal": "bytes"},
    key=("batch", "group_id"),
    noun="a settled batch",
    seal=lambda batch, group_id, digest, reports, day: (
        f"{batch}\n{group_id}\n{digest.hex()}\n{reports}\n{day}".encode()
    ),
)
# Groups with a refused version: someone who sees two versions of a group sees single reports.
REFUSALS = LedgerTable(
    "refusals",
    {"batch": "text", "group_id": "text", "day": "int", "seal": "bytes"},
    key=("batch", "group_id"),
    noun="a refusal",
    seal=lambda batch, group_id, day: f"refused\n{batch}\n{group_id}\n{day}".encode(),
)
# Randomised bits, one for each impression.
ENGAGEMENTS = LedgerTable(
    "engagements",
    {"id": "bytes", "item": "text", "bit": "int", "day": "int", "seal": "bytes"},
    key=("id",),
    noun="an engagement",
    seal=lambda id, item, bit, day: id + f"{item}\n{bit}\n{day}".encode(),
)
# On a device: its choices and their states. Tokens are in plain text, because they still have to be sent.
DISPLAYS = LedgerTable(
    "displays",
    {
        "server": "text",
        "token": "text",
        "items": "text",
        "expires": "int",
        "state": "int",
        "extra": "bytes",
        "seal": "bytes",
    },
    key=("server", "token"),
    noun="a display",
    seal=lambda server, token, items, expires, state, extra: (
        f"{server}\n{token}\n{items}\n{expires}\n{state}\n".encode() + extra
    ),
)
CONSENTS = LedgerTable(
    "consents",
    {"number": "int", "granted": "int", "day": "int", "seal": "bytes"},
    key=("number",),
    noun="a consent",
    seal=lambda number, granted, day: f"consent\n{number}\n{granted}\n{day}".encode(),
)
# At a shuffler: reports that wait for their batch, and the batches that take no more.
MAIL = LedgerTable(
    "mail",
    {"batch": "text", "token": "text", "group_id": "text", "item": "text", "seal": "bytes"},
    key=("batch", "token"),
    by_key=True,
    noun="a letter",
    seal=lambda batch, token, group_id, item: f"{batch}\n{token}\n{group_id}\n{item}".encode(),
)
CLOSED = LedgerTable("closed", {"batch": "text"}, key=("batch",), noun="a closed batch")


@dataclass(frozen=True)
class Migration:
    """One step from an earlier version to this one. Steps are only ever added at the end."""

    tables: tuple[LedgerTable, ...]
    statements: tuple[str, ...] = ()


MIGRATIONS = (
    Migration(
        tables=(FACTS, LANES, TEXTS, SUBJECTS, ENTRIES, RELEASES),
        # Only a budget with a period looks back in time; a random page written for each charge is not free.
        statements=("CREATE INDEX entries_by_time ON entries (subject, at, number) WHERE windowed = 1",),
    ),
    Migration(
        tables=(ACCOUNTS, IMPRESSIONS),
        statements=("CREATE INDEX impressions_by_day ON impressions (day)",),
    ),
    Migration(
        tables=(OFFERS, BATCHES, REFUSALS, ENGAGEMENTS, DISPLAYS, CONSENTS, MAIL, CLOSED),
        statements=(
            "CREATE INDEX offers_by_expiry ON offers (expires)",
            "CREATE INDEX engagements_by_item ON engagements (item, bit)",
            "CREATE INDEX displays_by_expiry ON displays (expires)",
            "CREATE INDEX displays_unreported ON displays (server, token) WHERE state = 1",
            "CREATE INDEX mail_by_group ON mail (batch, group_id, token)",
        ),
    ),
)
VERSION = len(MIGRATIONS)
BOOKS = ("privacy", "impressions")


@dataclass(frozen=True)
class Query:
    """A SELECT with ``?`` for each parameter that finds at most one row."""

    sql: str
    parameters: tuple[Kind, ...]


class AlreadyThere(Exception):
    """A row with the same unique columns is in the table, such as a charge with the same release id."""


class Reader(Protocol):
    """A consistent view of the ledger at one moment."""

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        """The row for each key, or None if there is no such row."""
        ...

    def stream(self, sql: str, parameters: Row = ()) -> Iterator[Row]:
        """All rows of a SELECT, few of them in memory at a time."""
        ...

    def damage(self) -> list[str]:
        """Faults that the database itself reports in its files."""
        ...


class Writer(Protocol):
    """A write transaction that holds the locks of its lanes until it is committed, durably."""

    @property
    def tips(self) -> Mapping[int, Tip]:
        """The ends of the locked lanes."""
        ...

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        """The row for each key, or None if there is no such row."""
        ...

    def insert(self, table: LedgerTable, rows: Sequence[Row], *, unless_there: bool = False) -> None:
        """Adds rows. An ``optimistic`` store raises AlreadyThere for a row that exists; the transaction is over then."""
        ...

    def update(self, table: LedgerTable, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        """Sets ``columns``; each row holds their new values and then the table's key."""
        ...

    def delete(self, table: LedgerTable, keys: Sequence[Row]) -> None:
        """Removes the rows with these keys. Rows of a book are never removed, only those that have served their purpose."""
        ...

    def advance(self, tips: Mapping[int, Tip]) -> None:
        """Moves the ends of the lanes."""
        ...


class LedgerStore(Protocol):
    """A database that holds a ledger. Errors of its driver are raised as the ledger's own."""

    @property
    def ledger(self) -> str:
        """The ledger's id, drawn when it was created."""
        ...

    @property
    def lanes(self) -> int:
        """How many lanes each book of the ledger has."""
        ...

    @property
    def optimistic(self) -> bool:
        """Whether inserting many rows and catching AlreadyThere is faster than looking them up first."""
        ...

    def write(self, book: str, lanes: Sequence[int]) -> AbstractContextManager[Writer]:
        """A transaction that locks these lanes of a book. It commits at the end of the block, or rolls back on an error."""
        ...

    def read(self) -> AbstractContextManager[Reader]:
        """A consistent view of the ledger, until the end of the block."""
        ...

    def close(self) -> None:
        """Closes the file or the connections."""
        ...


@dataclass(frozen=True)
class Origin:
    """The facts fixed at the creation of a ledger. Every store writes them then, and checks them when it opens the ledger."""

    ledger: str
    lanes: int
    created: str


def starting_rows(lanes: int) -> list[tuple[LedgerTable, Row]]:
    """The rows of an empty ledger."""
    lanes = whole("lanes", lanes, least=1, most=MOST_LANES)
    ledger = uuid.uuid4().hex
    facts = {
        "ledger": ledger,
        "lanes": str(lanes),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": str(VERSION),
    }
    rows: list[tuple[LedgerTable, Row]] = [(FACTS, fact) for fact in facts.items()]
    for book in BOOKS:
        for lane in range(lanes):
            rows.append((LANES, LANES.sealed(book, lane, 0, genesis(ledger, book, lane, lanes), 0)))
    return rows


def read_origin(facts: dict[str, str]) -> Origin:
    """The origin that the table of facts states."""
    try:
        return Origin(facts["ledger"], whole("lanes", int(facts["lanes"]), least=1, most=MOST_LANES), facts["created"])
    except (KeyError, ValueError) as problem:
        raise LedgerDamaged("the ledger's table of facts is damaged. Restore a backup.") from problem


def version_of(row: Row | None) -> int:
    """The version in the ledger's row of facts."""
    try:
        return int(row[0])  # type: ignore[index]  # a lost row is damage as well
    except (TypeError, ValueError) as problem:
        raise LedgerDamaged("the ledger does not state its version. Restore a backup.") from problem


def check_version(version: int) -> None:
    """Raises LedgerTooNew for a ledger of a later version of tacit."""
    if version > VERSION:
        raise LedgerTooNew(f"the ledger has version {version}, this program knows up to {VERSION}. Update tacit.")


def tip_row(book: str, lane: int, tip: Tip) -> Row:
    """The new values of a lane's row, then its key."""
    return (*tip, LANES.seal_of(book, lane, *tip), book, lane)


def read_tip(book: str, lane: int, row: Row | None) -> Tip:
    """The end of a lane, from its position, link, time and seal. Raises LedgerDamaged if it was altered."""
    if row is None or not LANES.is_sealed((book, lane, *row)):
        raise LedgerDamaged(
            f"the end of lane {lane} is not what was written. Run `tacit ledger check`, then restore a backup."
        )
    return Tip(*row[:3])
