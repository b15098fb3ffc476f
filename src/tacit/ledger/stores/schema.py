"""The tables, and the steps by which a ledger of an earlier version becomes one of this version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "text", "bytes"]


@dataclass(frozen=True)
class Table:
    """A table whose columns are never null. Where ``by_key``, SQLite gives its rows no numbers, which would tell who came when."""

    name: str
    columns: Mapping[str, Kind]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    by_key: bool = False

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
# What was offered under a token (the id is its digest), until it can no longer be reported (it expires in seconds since 1970).
OFFERS = Table("offers", {"id": "bytes", "content": "text", "expires": "int", "seal": "bytes"}, key=("id",))
BATCHES = Table(
    "batches",
    {"batch": "text", "group_id": "text", "digest": "bytes", "reports": "int", "day": "int", "seal": "bytes"},
    key=("batch", "group_id"),
)
# Groups of which a version was refused: whoever saw it and another version saw single reports.
REFUSALS = Table(
    "refusals", {"batch": "text", "group_id": "text", "day": "int", "seal": "bytes"}, key=("batch", "group_id")
)
# Bits that chance has flipped, one for each impression.
ENGAGEMENTS = Table(
    "engagements", {"id": "bytes", "item": "text", "bit": "int", "day": "int", "seal": "bytes"}, key=("id",)
)
# A device's own: what it chose, and how far that has come. Tokens are in plain text, since they have still to be sent.
DISPLAYS = Table(
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
)
CONSENTS = Table("consents", {"number": "int", "granted": "int", "day": "int", "seal": "bytes"}, key=("number",))
# A shuffler's own: reports that wait for their batch, and the batches that take no more.
MAIL = Table(
    "mail",
    {"batch": "text", "token": "text", "group_id": "text", "item": "text", "seal": "bytes"},
    key=("batch", "token"),
    by_key=True,
)
CLOSED = Table("closed", {"batch": "text"}, key=("batch",))


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
