"""The hash chain: each entry's link covers its content and the link before it, so that no entry can be altered, lost or moved.

A ledger has one or several lanes, each a chain of its own that one writer at a time may lengthen. Which lane an account
belongs to follows from its name. An entry's number is position * lanes + lane: numbers are unique, and the entry before it in
its lane has the number that is ``lanes`` smaller.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.errors import InvalidParameter

MOST_LANES = 256


class Tip(NamedTuple):
    """The end of one lane."""

    position: int  # how many entries the lane holds
    link: bytes
    at: int  # the time of the last entry: the ledger's time never goes back behind it


def lane_of(key: str, lanes: int) -> int:
    """The lane that an account belongs to."""
    return hashlib.sha256(key.encode()).digest()[0] % lanes if lanes > 1 else 0


def genesis(ledger: str, book: str, lane: int, lanes: int) -> bytes:
    """What the first entry of a lane links to."""
    return link(b"", "tacit ledger", ledger, book, lane, lanes)


def link(before: bytes, *fields: str | int) -> bytes:
    """The link of an entry. Fields are integers and printable texts, so that a line break can part them."""
    return hashlib.sha256(before + "\n".join(map(str, fields)).encode()).digest()


def digest(text: str) -> bytes:
    """The key of a text in the table of texts."""
    return hashlib.sha256(text.encode()).digest()[:16]


@dataclass(frozen=True, slots=True)
class Head:
    """How far a ledger had come, as (position, link) for every lane of every book. Keep it elsewhere: a ledger that does
    not contain it has lost entries or was rewritten."""

    ledger: str
    books: dict[str, tuple[tuple[int, str], ...]]

    def to_json(self) -> dict[str, Any]:
        """The head as values for JSON."""
        return {
            "ledger": self.ledger,
            "books": {book: [list(tip) for tip in tips] for book, tips in self.books.items()},
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Head":
        """The head of such values, checked."""
        try:
            books = {
                str(book): tuple((int(position), str(link)) for position, link in tips)
                for book, tips in value["books"].items()
            }
            return cls(str(value["ledger"]), books)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InvalidParameter("a head is what `tacit ledger show --json` prints under `head`.") from problem
