"""Impressions while a transaction appends them: the ends of the lanes, the items' accounts, and the rows to be written."""

from collections.abc import Iterable
from typing import NamedTuple

from tacit.errors import InvalidParameter, LedgerDamaged
from tacit.ledger.amounts import MOST
from tacit.ledger.chain import Tip
from tacit.ledger.clock import DAY, day_of
from tacit.ledger.impression_rows import ACCOUNT, link_of_impression, seal_of_account, sealed_account
from tacit.ledger.stores.interface import Row, Writer
from tacit.ledger.stores.schema import ACCOUNTS, IMPRESSIONS

MOST_MICROS = 10**15  # of one impression


class Counted(NamedTuple):
    """An impression that is on the disk. ``fresh`` is False where this id had been reported before: it was counted then."""

    number: int
    day: int  # since 1970
    fresh: bool


class Account:
    """An item's row in one lane while a transaction works on it; without a number until an impression opens it."""

    __slots__ = ("changed", "impressions", "item", "lane", "micros", "number", "opened")

    def __init__(self, item: str, lane: int, row: Row | None) -> None:
        self.item, self.lane, self.changed, self.opened = item, lane, False, False
        self.number, self.impressions, self.micros = 0, 0, 0
        if row is not None:
            self.number, _, _, self.impressions, self.micros, _ = sealed_account(row)

    def fits(self, micros: int) -> bool:
        return self.micros + micros <= MOST

    def sums(self) -> Row:
        """What changes with every impression: the counts and their seal."""
        sealed = seal_of_account(self.number, self.item, self.lane, self.impressions, self.micros)
        return self.impressions, self.micros, sealed


class _End:
    """The end of a lane while a transaction lengthens it."""

    __slots__ = ("day", "link", "position")

    def __init__(self, tip: Tip, today: int) -> None:
        self.position, self.link = tip.position, tip.link
        self.day = max(today, day_of(tip.at))  # the clock may go back, the ledger's day does not


class Booking:
    """What one transaction appends. ``accounts`` holds those it may add to, by item and lane, or why one cannot be used."""

    def __init__(self, writer: Writer, lanes: int, moment: int, wanted: Iterable[tuple[str, int]]) -> None:
        self._writer, self._lanes, self._rows = writer, lanes, list[Row]()
        self.accounts: dict[tuple[str, int], Account | LedgerDamaged] = {}
        keys = list(dict.fromkeys(wanted))
        for key, row in zip(keys, writer.ask(ACCOUNT, keys)(), strict=True):
            try:
                self.accounts[key] = Account(*key, row)
            except LedgerDamaged as problem:  # the other items can still be counted
                self.accounts[key] = problem
        self._ends = {lane: _End(tip, day_of(moment)) for lane, tip in writer.tips.items()}
        self._moment = moment
        self.fresh: dict[bytes, Row] = {}  # reported earlier in this very transaction, as the store would tell of it

    def moment_in(self, lane: int) -> int:
        """The time that holds for an entry of this lane: the clock's, but not before the lane's last day."""
        return max(self._moment, self._ends[lane].day * DAY)

    def count(self, id: bytes, account: Account, micros: int) -> Counted:
        """Appends an impression and adds it to its account."""
        lane = account.lane
        end = self._ends[lane]
        day = end.day
        end.position += 1
        number = end.position * self._lanes + lane
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
        """Hands everything to the writer; raises AlreadyThere where an id is in the book, and the transaction is over then."""
        if not self._rows:
            return
        writer = self._writer
        writer.insert(IMPRESSIONS, self._rows)  # first, for it may be refused
        changed = [account for account in self.accounts.values() if isinstance(account, Account) and account.changed]
        writer.insert(ACCOUNTS, [(a.number, a.item, a.lane, *a.sums()) for a in changed if a.opened])
        columns = ("impressions", "micros", "seal")
        writer.update(ACCOUNTS, columns, [(*a.sums(), a.number) for a in changed if not a.opened])
        # A lane that only saw repeats stays as it is, its day too.
        grown = {lane: end for lane, end in self._ends.items() if end.position > writer.tips[lane].position}
        writer.advance({lane: Tip(end.position, end.link, end.day * DAY) for lane, end in grown.items()})


def beyond() -> InvalidParameter:
    return InvalidParameter(
        f"this report would bring its item's sum above {MOST:,} micro-units, the most that can be counted; it was not counted. "
        "Go on under a new item."
    )


def micros_of(value: object) -> int:
    """As tacit.checks.whole, but without the value: a caller who mixes up the arguments must not find an id in his log."""
    number = None if isinstance(value, bool) or not hasattr(value, "__index__") else int(value.__index__())
    if number is None or not 0 <= number <= MOST_MICROS:
        raise InvalidParameter(f"micros must be a whole number of micro-units from 0 to {MOST_MICROS:,}.")
    return number
