"""What the impressions add up to: per item, per period, and whether the accounts agree with them. All sums are integers.

Sums over several accounts are formed here and not by the database: SQLite's stop at 64 bits.
"""

from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any, NamedTuple

from tacit.errors import InvalidParameter
from tacit.ledger.impression_rows import sealed_account
from tacit.ledger.stores.interface import Reader, Row

_START = date(1970, 1, 1)
_ACCOUNT = "SELECT number, item, lane, impressions, micros, seal FROM accounts"
# One account's sum fits into 64 bits, for no report could bring it further.
_SUMS = "SELECT account, count(*) AS impressions, sum(micros) AS micros FROM impressions"


class ItemTotal(NamedTuple):
    """How often an item was displayed, and what its owner owes for that in micro-units of money."""

    item: str
    impressions: int
    micros: int

    def to_json(self) -> dict[str, Any]:
        """Money as text: a reader that takes every number for a float would round it."""
        return {"item": self.item, "impressions": self.impressions, "micros": str(self.micros)}


@dataclass(frozen=True, slots=True)
class ImpressionStatement:
    """The impressions of all days from ``first_day`` to ``last_day`` (UTC), both included, per item."""

    first_day: date
    last_day: date
    items: tuple[ItemTotal, ...]

    @property
    def impressions(self) -> int:
        """How many impressions of all items."""
        return sum(total.impressions for total in self.items)

    @property
    def micros(self) -> int:
        """What they cost together, in millionths of the currency's unit."""
        return sum(total.micros for total in self.items)

    def to_json(self) -> dict[str, Any]:
        """The statement as values for JSON."""
        return {
            "first_day": self.first_day.isoformat(),
            "last_day": self.last_day.isoformat(),
            "impressions": self.impressions,
            "micros": str(self.micros),
            "items": [total.to_json() for total in self.items],
        }


def month(year: int, month: int) -> tuple[date, date]:
    """The first and the last day of a month: ``ledger.statement(*month(2026, 11))``."""
    try:
        return date(year, month, 1), date(year, month, monthrange(year, month)[1])
    except (TypeError, ValueError) as problem:
        raise InvalidParameter("a month is a year from 1 to 9999 and a number from 1 to 12.") from problem


def total_of(reader: Reader, item: str) -> ItemTotal:
    """One item's total; zeros for an item that was never reported."""
    accounts = map(sealed_account, reader.stream(f"{_ACCOUNT} WHERE item = ?", (item,)))
    return _added(item, ((account.impressions, account.micros) for account in accounts))


def totals(reader: Reader) -> Iterator[ItemTotal]:
    """All items' totals, one at a time, in the store's order of names."""
    accounts = map(sealed_account, reader.stream(f"{_ACCOUNT} ORDER BY item, lane"))
    for item, own in groupby(accounts, key=lambda account: account.item):
        yield _added(item, ((account.impressions, account.micros) for account in own))


def statement_over(reader: Reader, first_day: date, last_day: date) -> ImpressionStatement:
    """What the impressions of these days add up to: counted from the impressions themselves, not from the accounts."""
    first, last = _day("first_day", first_day), _day("last_day", last_day)
    if last < first:
        raise InvalidParameter("the last day of a statement must not lie before its first day.")
    rows = reader.stream(
        f"SELECT a.item, s.impressions, s.micros FROM ({_SUMS} WHERE day BETWEEN ? AND ? GROUP BY account) s "
        "JOIN accounts a ON a.number = s.account ORDER BY a.item",
        (first, last),
    )
    items = (_added(item, (row[1:] for row in own)) for item, own in groupby(rows, key=lambda row: row[0]))
    return ImpressionStatement(first_day, last_day, tuple(items))


def accounts_agree(reader: Reader) -> bool:
    """Whether every account is the count and the sum of its impressions, and every impression is in an account."""
    counted = 0
    for *written, impressions, micros in reader.stream(
        "SELECT a.impressions, a.micros, s.impressions, s.micros FROM accounts a "
        f"LEFT JOIN ({_SUMS} GROUP BY account) s ON s.account = a.number"
    ):
        if impressions is None or written != [int(impressions), int(micros)]:
            return False
        counted += int(impressions)
    ((impressions,),) = reader.stream("SELECT count(*) FROM impressions")
    return counted == int(impressions)  # more of them than the accounts hold: some are in none


def _added(item: str, sums: Iterable[Row]) -> ItemTotal:
    impressions = micros = 0
    for some, their_micros in sums:
        impressions += int(some)
        micros += int(their_micros)  # PostgreSQL's sums are decimals
    return ItemTotal(item, impressions, micros)


def _day(what: str, value: date) -> int:
    """A date as the number of days since 1970."""
    if not isinstance(value, date) or isinstance(value, datetime):  # a time of day, in whatever zone, would be dropped
        raise InvalidParameter(f"{what} must be a datetime.date, without a time, not {type(value).__name__}.")
    return (value - _START).days
