"""The tables, and the steps by which a ledger of an earlier version becomes one of this version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "text", "bytes"]


@dataclass(frozen=True)
class Table:
    """A table whose columns are never null."""

    name: str
    columns: Mapping[str, Kind]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()

    def definition(self, types: Mapping[Kind, str]) -> str:
        parts = [f"{column} {types[kind]} NOT NULL" for column, kind in self.columns.items()]
        parts += [f"PRIMARY KEY ({', '.join(self.key)})"]
        parts += [f"UNIQUE ({', '.join(columns)})" for columns in self.unique]
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


FACTS = Table("facts", {"name": "text", "value": "text"}, key=("name",))
LANES = Table(
    "lanes",
    {"book": "text", "lane": "int", "position": "int", "link": "bytes", "at": "int", "seal": "bytes"},
    key=("book", "lane"),
)
# Terms and guarantees, each kept once, under the digest of its text.
TEXTS = Table("texts", {"digest": "bytes", "text": "text"}, key=("digest",))
SUBJECTS = Table(
    "subjects",
    {
        "number": "int",  # the number of the entry that enrolled her
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
)
# Enrolments (release_id is empty, guarantee is the digest of the terms) and charges. The totals are the subject's, this charge
# included: what was spent in any window is a difference of two of them.
ENTRIES = Table(
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
RELEASES = Table("releases", {"entry": "int", "content": "bytes", "seal": "bytes"}, key=("entry",))
ACCOUNTS = Table(
    "accounts",
    {"number": "int", "item": "text", "lane": "int", "impressions": "int", "micros": "int", "seal": "bytes"},
    key=("number",),  # the number of the impression that opened it
    unique=(("item", "lane"),),
)
# Of an impression's id the digest is kept: a token in plain text is nobody's need here, and its index would be four times the size.
IMPRESSIONS = Table(
    "impressions",
    {"number": "int", "id": "bytes", "account": "int", "day": "int", "micros": "int", "link": "bytes"},
    key=("number",),
    unique=(("id",),),
)


@dataclass(frozen=True)
class Migration:
    """One step. Steps are only ever added at the end."""

    tables: tuple[Table, ...]
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
)
VERSION = len(MIGRATIONS)
BOOKS = ("privacy", "impressions")
