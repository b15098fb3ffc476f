"""The hash chain and its parts: links, lanes and their ends, heads, times and names.

The link of an entry covers its content and the link before it, so no entry can be altered, lost or moved unnoticed. A ledger has
one or several lanes; each is a chain that one writer at a time may lengthen. The name of an account decides its lane. The number
of an entry is position * lanes + lane, so numbers are unique, and the entry before it in its lane has a number that is smaller
by ``lanes``.

Times are whole microseconds since 1970 (UTC). The ledger's time never goes back (docs/ledger.md).
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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


def lane_of_digest(digest: bytes, lanes: int) -> int:
    """The lane that ``lane_of`` finds, from the digest of the key."""
    return digest[0] % lanes


def lanes_of(keys: Iterable[str], lanes: int) -> list[int]:
    """The lanes of these accounts, in the same order in all transactions, which prevents deadlocks."""
    return sorted({lane_of(key, lanes) for key in set(keys)}) if lanes > 1 else [0]


class LaneEnd:
    """The end of a lane while a transaction lengthens it. All entries of the transaction carry one time."""

    __slots__ = ("at", "lane", "lanes", "link", "position", "tip_before")

    def __init__(self, lane: int, lanes: int, tip: Tip, moment: int) -> None:
        self.lane, self.lanes, self.tip_before = lane, lanes, tip
        self.position, self.link = tip.position, tip.link
        self.at = max(moment, tip.at)  # the clock may go back, the ledger's time does not

    @classmethod
    def of(cls, tips: Mapping[int, Tip], lanes: int, moment: int) -> "dict[int, LaneEnd]":
        """The ends of all lanes that a transaction locked."""
        return {lane: cls(lane, lanes, tip, moment) for lane, tip in tips.items()}

    def next_number(self) -> int:
        """Makes room for one more entry and returns its number. The caller then sets ``link``."""
        self.position += 1
        return self.position * self.lanes + self.lane

    @property
    def lengthened(self) -> bool:
        return self.position > self.tip_before.position

    @property
    def tip(self) -> Tip:
        """The new end. A lane without a new entry keeps its last link and time."""
        return Tip(self.position, self.link, self.at) if self.lengthened else self.tip_before


def new_tips(ends: "Mapping[int, LaneEnd]") -> dict[int, Tip]:
    """The ends of the lanes that a transaction lengthened."""
    return {lane: end.tip for lane, end in ends.items() if end.lengthened}


def genesis(ledger: str, book: str, lane: int, lanes: int) -> bytes:
    """The link before the first entry of a lane."""
    return link(b"", "tacit ledger", ledger, book, lane, lanes)


def link(before: bytes, *fields: str | int) -> bytes:
    """The link of an entry. Fields are integers and printable texts, so a line break can separate them."""
    return hashlib.sha256(before + "\n".join(map(str, fields)).encode()).digest()


def digest(text: str) -> bytes:
    """The key of a text in the table of texts."""
    return hashlib.sha256(text.encode()).digest()[:16]


@dataclass(frozen=True, slots=True)
class Head:
    """How far a ledger had come, as (position, link) for every lane of every book.

    Keep it in another place: a ledger that does not contain it has lost entries or was rewritten.
    """

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
        """The head that ``to_json`` wrote. Raises InvalidParameter for anything else."""
        try:
            books = {
                str(book): tuple((int(position), str(link)) for position, link in tips)
                for book, tips in value["books"].items()
            }
            return cls(str(value["ledger"]), books)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InvalidParameter("a head is what `tacit ledger show --json` prints under `head`.") from problem


Clock = Callable[[], int]  # microseconds since 1970

SECOND = 1_000_000
DAY = 86_400 * SECOND
END_OF_TIME = 2_900_000 * DAY  # in the year 9909: Python's calendar ends soon after
_START = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """The time of the system's clock."""
    return time.time_ns() // 1000


def as_datetime(at: int) -> datetime:
    return _START + timedelta(microseconds=at)


def as_text(at: int) -> str:
    """A time as ISO 8601 with all digits: texts are equal if and only if the times are."""
    return as_datetime(at).isoformat(timespec="microseconds")


def day_of(at: int) -> int:
    """The day that ``at`` lies in, counted from 1970."""
    return at // DAY


def start_of_month(at: int) -> int:
    moment = as_datetime(at)
    return _micros(datetime(moment.year, moment.month, 1, tzinfo=UTC))


def start_of_next_month(at: int) -> int:
    moment = as_datetime(at)
    year, month = (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
    return _micros(datetime(year, month, 1, tzinfo=UTC))


GRACE = 86_400  # seconds after its expiry in which an offer can still be reported


def is_late(expires: int, moment: int) -> bool:
    """Whether an offer that expires then (seconds since 1970) can no longer be reported at ``moment``."""
    return (expires + GRACE) * SECOND < moment


def lapsed_before(moment: int) -> int:
    """The second before which an expiry is late at ``moment``."""
    return -((GRACE * SECOND - moment) // SECOND)  # rounded up


def _micros(moment: datetime) -> int:
    return (moment - _START) // timedelta(microseconds=1)


MOST_CHARACTERS = 128


def checked_name(what: str, value: str, most: int = MOST_CHARACTERS) -> str:
    """``value``, if it is a text of 1 to ``most`` printable characters, without line breaks or control characters.

    Names in a ledger are pseudonyms and ids. An error never repeats the text.
    """
    if type(value) is not str:
        raise InvalidParameter(f"{what} must be a text, not {type(value).__name__}.")
    if not 1 <= len(value) <= most:
        raise InvalidParameter(f"{what} must have 1 to {most} characters, not {len(value):,}.")
    if not value.isprintable():
        raise InvalidParameter(f"{what} must be printable: no line breaks, control characters or lone surrogates.")
    return value
