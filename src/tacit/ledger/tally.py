"""The impression book: the links of impressions, how a transaction counts them, and their totals.

An item has one account in each lane where it was displayed, so the lane's lock covers everything that a report touches. A check of
a ledger, or of an exported file, uses these same functions on its rows.
"""

from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any, NamedTuple

from tacit.errors import InvalidParameter, LedgerDamaged
from tacit.ledger.budgets import MOST
from tacit.ledger.chain import DAY, LaneEnd, day_of, link, new_tips
from tacit.ledger.stores.interface import ACCOUNTS, IMPRESSIONS, Query, Reader, Row, Writer

BOOK = "impressions"
MOST_MICROS = 10**15  # of one impression

REPORTED = Query("SELECT number, account, day, micros FROM impressions WHERE id = ?", ("bytes",))
_ACCOUNT = Query(f"{ACCOUNTS.select} WHERE item = ? AND lane = ?", ("text", "int"))
# The sum of one account fits into 64 bits. Sums over several accounts are formed in Python, because SQLite's stop at 64 bits.
_SUMS = "SELECT account, count(*) AS impressions, sum(micros) AS micros FROM impressions"
_START = date(1970, 1, 1)


def link_of_impression(before: bytes, number: int, id: bytes, account: int, item: str, day: int, micros: int) -> bytes:
    """The link of an impression. It covers the item as well, which the row names only by its account."""
    # The fields joined beforehand give the same link as one by one, in half the time.
    return link(before, f"{number}\n{id.hex()}\n{account}\n{item}\n{day}\n{micros}")


class Counted(NamedTuple):
    """An impression that is on the disk. ``fresh`` is False if this id was reported before, and counted then."""

    number: int
    day: int  # since 1970
    fresh: bool


class ItemAccount:
    """An item's account in one lane while a transaction works on it. It has no number until an impression opens it."""

    __slots__ = ("changed", "impressions", "item", "lane", "micros", "number", "opened")

    def __init__(self, item: str, lane: int, row: Row | None) -> None:
        self.item, self.lane, self.changed, self.opened = item, lane, False, False
        self.number, self.impressions, self.micros = 0, 0, 0
        if row is not None:
            self.number, _, _, self.impressions, self.micros = ACCOUNTS.unsealed(row)

    def fits(self, micros: int) -> bool:
        return self.micros + micros <= MOST

    def row(self) -> Row:
        return ACCOUNTS.sealed(self.number, self.item, self.lane, self.impressions, self.micros)


class Tally:
    """The impressions that one transaction appends.

    ``accounts`` holds the accounts that it may add to, by item and lane, or the error of a damaged one.
    """

    def __init__(self, writer: Writer, lanes: int, moment: int, accounts: Iterable[tuple[str, int]]) -> None:
        self._writer, self._rows = writer, list[Row]()
        self.accounts: dict[tuple[str, int], ItemAccount | LedgerDamaged] = {}
        keys = list(dict.fromkeys(accounts))
        for key, row in zip(keys, writer.ask(_ACCOUNT, keys)(), strict=True):
            try:
                self.accounts[key] = ItemAccount(*key, row)
            except LedgerDamaged as problem:  # the other items can still be counted
                self.accounts[key] = problem
        self._ends = LaneEnd.of(writer.tips, lanes, day_of(moment) * DAY)  # an impression keeps its day only
        self._moment = moment
        self.fresh: dict[bytes, Row] = {}  # reported earlier in this transaction, as REPORTED would find it

    def moment_in(self, lane: int) -> int:
        """The time that holds for an entry of this lane: the clock's, but not before the lane's last day."""
        return max(self._moment, self._ends[lane].at)

    def count(self, id: bytes, account: ItemAccount, micros: int) -> Counted:
        """Appends an impression and adds it to its account."""
        end = self._ends[account.lane]
        number, day = end.next_number(), day_of(end.at)
        if not account.number:
            account.number, account.opened = number, True
        end.link = link_of_impression(end.link, number, id, account.number, account.item, day, micros)
        self._rows.append((number, id, account.number, day, micros, end.link))
        account.impressions += 1
        account.micros += micros
        account.changed = True
        self.fresh[id] = (number, account.number, day, micros)
        return Counted(number, day, True)

    def write(self) -> None:
        """Hands all rows to the writer. Raises AlreadyThere if an id is in the book; the transaction is over then."""
        if not self._rows:
            return
        writer = self._writer
        writer.insert(IMPRESSIONS, self._rows)  # first, because it may be refused
        changed = [
            account for account in self.accounts.values() if isinstance(account, ItemAccount) and account.changed
        ]
        writer.insert(ACCOUNTS, [account.row() for account in changed if account.opened])
        updated = [(*account.row()[3:], account.number) for account in changed if not account.opened]
        writer.update(ACCOUNTS, ("impressions", "micros", "seal"), updated)
        writer.advance(new_tips(self._ends))


def sum_too_large() -> InvalidParameter:
    """The error for a report that its item's account cannot hold."""
    return InvalidParameter(
        f"this report would bring its item's sum above {MOST:,} micro-units, the most that can be counted; it was not counted. "
        "Continue under a new item."
    )


def micros_of(value: object) -> int:
    """As tacit.checks.whole, but no error shows the value: if a caller mixes up the arguments, no id reaches a log."""
    number = None if isinstance(value, bool) or not hasattr(value, "__index__") else int(value.__index__())
    if number is None or not 0 <= number <= MOST_MICROS:
        raise InvalidParameter(f"micros must be a whole number of micro-units from 0 to {MOST_MICROS:,}.")
    return number


class ItemTotal(NamedTuple):
    """How often an item was displayed, and what its owner owes for it in micro-units of money."""

    item: str
    impressions: int
    micros: int

    def to_json(self) -> dict[str, Any]:
        """The total as values for JSON. Money is text: a reader that takes every number for a float would round it."""
        return {"item": self.item, "impressions": self.impressions, "micros": str(self.micros)}


@dataclass(frozen=True, slots=True)
class ImpressionStatement:
    """The impressions of all days from ``first_day`` to ``last_day`` (UTC), both included, per item."""

    first_day: date
    last_day: date
    items: tuple[ItemTotal, ...]

    @property
    def impressions(self) -> int:
        """The number of impressions of all items."""
        return sum(total.impressions for total in self.items)

    @property
    def micros(self) -> int:
        """The price of all impressions, in micro-units of money."""
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
    accounts = map(ACCOUNTS.unsealed, reader.stream(f"{ACCOUNTS.select} WHERE item = ?", (item,)))
    return _added(item, (account[3:] for account in accounts))


def totals(reader: Reader) -> Iterator[ItemTotal]:
    """All items' totals, one at a time, in the store's order of names."""
    accounts = map(ACCOUNTS.unsealed, reader.stream(f"{ACCOUNTS.select} ORDER BY item, lane"))
    for item, of_item in groupby(accounts, key=lambda account: account[1]):
        yield _added(item, (account[3:] for account in of_item))


def statement_over(reader: Reader, first_day: date, last_day: date) -> ImpressionStatement:
    """The impressions of these days per item, added up from the impressions themselves and not from the accounts."""
    first, last = _day("first_day", first_day), _day("last_day", last_day)
    if last < first:
        raise InvalidParameter("the last day of a statement must not be before its first day.")
    rows = reader.stream(
        f"SELECT a.item, s.impressions, s.micros FROM ({_SUMS} WHERE day BETWEEN ? AND ? GROUP BY account) s "
        "JOIN accounts a ON a.number = s.account ORDER BY a.item",
        (first, last),
    )
    items = (_added(item, (row[1:] for row in of_item)) for item, of_item in groupby(rows, key=lambda row: row[0]))
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
    return counted == int(impressions)  # fewer: some impressions are in no account


def _added(item: str, sums: Iterable[Row]) -> ItemTotal:
    impressions = micros = 0
    for count, owed in sums:
        impressions += int(count)
        micros += int(owed)  # PostgreSQL's sums are decimals
    return ItemTotal(item, impressions, micros)


def _day(what: str, value: date) -> int:
    """A date as the number of days since 1970."""
    if not isinstance(value, date) or isinstance(value, datetime):  # a time of day would be dropped
        raise InvalidParameter(f"{what} must be a datetime.date, without a time, not {type(value).__name__}.")
    return (value - _START).days
