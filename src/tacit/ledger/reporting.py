"""One transaction of the impression ledger: look up, compare, append, add up. Everything that decides what counts is here."""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, TacitError
from tacit.ledger.amounts import MOST
from tacit.ledger.chain import Tip
from tacit.ledger.clock import DAY, day_of
from tacit.ledger.impression_rows import (
    ACCOUNT,
    REPORTED,
    lane_of_impression,
    link_of_impression,
    seal_of_account,
    sealed_account,
)
from tacit.ledger.names import name
from tacit.ledger.stores.interface import AlreadyThere, Row, Writer
from tacit.ledger.stores.schema import ACCOUNTS, IMPRESSIONS

MOST_MICROS = 10**15  # of one impression


class Report(NamedTuple):
    """An item was displayed; its owner owes ``micros`` millionths of a unit of money, or nothing."""

    id: str
    item: str
    micros: int


class Counted(NamedTuple):
    """An impression that is on the disk. ``fresh`` is False where this id had been reported before: it was counted then."""

    number: int
    day: int  # since 1970
    fresh: bool


class _End:
    """The end of a lane while a transaction lengthens it."""

    __slots__ = ("day", "link", "position")

    def __init__(self, tip: Tip, today: int) -> None:
        self.position, self.link = tip.position, tip.link
        self.day = max(today, day_of(tip.at))  # the clock may go back, the ledger's day does not


class _Account:
    """An item's row in one lane while a transaction works on it; without a number until an impression opens it."""

    __slots__ = ("changed", "impressions", "item", "lane", "micros", "number", "opened")

    def __init__(self, item: str, lane: int, row: Row | None) -> None:
        self.item, self.lane, self.changed, self.opened = item, lane, False, False
        self.number, self.impressions, self.micros = 0, 0, 0
        if row is not None:
            self.number, _, _, self.impressions, self.micros, _ = sealed_account(row)

    def sums(self) -> Row:
        """What changes with every impression: the counts and their seal."""
        sealed = seal_of_account(self.number, self.item, self.lane, self.impressions, self.micros)
        return self.impressions, self.micros, sealed


def checked(report: Report | tuple[str, str, int]) -> Report | InvalidParameter:
    """The report, if it could stand in the ledger; else the reason why not, which repeats no id."""
    try:
        if not isinstance(report, tuple) or len(report) != 3:
            raise InvalidParameter("a report is (id, item, micros).")
        id, item, micros = report
        name("the id of an impression", id)
        name("an item", item)
        return Report(id, item, micros if type(micros) is int and 0 <= micros <= MOST_MICROS else _whole(micros))
    except InvalidParameter as problem:
        return problem


def commit_reports(
    writer: Writer, lanes: int, moment: int, reports: Sequence[Report], ids: Sequence[bytes], *, look_up: bool
) -> list[Counted | TacitError]:
    """The outcome of each report, in order; ``ids`` are their digests. The caller's transaction makes it durable.

    Without ``look_up`` it is hoped that none was reported before; where that may be wrong AlreadyThere is raised.
    """
    asked = writer.ask(REPORTED, [(id,) for id in ids]) if look_up else None
    places = [lane_of_impression(id, lanes) for id in ids]
    accounts = _accounts(writer, list(dict.fromkeys((r.item, lane) for r, lane in zip(reports, places, strict=True))))
    ends = {lane: _End(tip, day_of(moment)) for lane, tip in writer.tips.items()}
    outcomes: list[Counted | TacitError] = []
    impressions: list[Row] = []
    fresh: dict[bytes, Row] = {}  # reported earlier in this very transaction
    rows = asked() if asked is not None else [None] * len(reports)
    for (_, item, micros), id, lane, row in zip(reports, ids, places, rows, strict=True):
        account = accounts[item, lane]
        if isinstance(account, TacitError):
            outcomes.append(account)
            continue
        earlier = row or fresh.get(id)
        if earlier is not None:
            outcomes.append(_again(earlier, account, micros))
            continue
        if account.micros + micros > MOST:
            if not look_up:  # it does not fit, but was perhaps reported before
                raise AlreadyThere
            outcomes.append(_beyond())
            continue
        end = ends[lane]
        day = end.day
        end.position += 1
        number = end.position * lanes + lane
        if not account.number:
            account.number, account.opened = number, True
        end.link = link_of_impression(end.link, number, id, account.number, item, day, micros)
        impressions.append((number, id, account.number, day, micros, end.link))
        account.impressions += 1
        account.micros += micros
        account.changed = True
        fresh[id] = (number, account.number, day, micros)
        outcomes.append(Counted(number, day, True))
    if impressions:
        _write(writer, impressions, [a for a in accounts.values() if isinstance(a, _Account) and a.changed], ends)
    return outcomes


def _accounts(writer: Writer, keys: list[tuple[str, int]]) -> dict[tuple[str, int], "_Account | TacitError"]:
    accounts: dict[tuple[str, int], _Account | TacitError] = {}
    for key, row in zip(keys, writer.ask(ACCOUNT, keys)(), strict=True):
        try:
            accounts[key] = _Account(*key, row)
        except LedgerDamaged as problem:  # the other items can still be counted
            accounts[key] = problem
    return accounts


def _again(earlier: Row, account: _Account, micros: int) -> Counted | TacitError:
    """The outcome of a report whose id was used before. One account in a lane is one item."""
    number, account_then, day, micros_then = earlier
    if (account_then, micros_then) == (account.number, micros):
        return Counted(number, day, False)
    return Conflict(
        "this impression was reported before, for another item or another price; nothing was changed. An id stands for one "
        "impression: report it again as it was, or a new impression under a new id."
    )


def _beyond() -> InvalidParameter:
    return InvalidParameter(
        f"this report would bring its item's sum above {MOST:,} micro-units, the most that can be counted; it was not counted. "
        "Go on under a new item."
    )


def _whole(micros: object) -> int:
    """As tacit.checks.whole, but without the value: a caller who mixes up the arguments must not find an id in his log."""
    number = None if isinstance(micros, bool) or not hasattr(micros, "__index__") else int(micros.__index__())
    if number is None or not 0 <= number <= MOST_MICROS:
        raise InvalidParameter(f"micros must be a whole number of micro-units from 0 to {MOST_MICROS:,}.")
    return number


def _write(writer: Writer, impressions: list[Row], changed: list[_Account], ends: dict[int, _End]) -> None:
    writer.insert(IMPRESSIONS, impressions)  # first, for it may be refused
    writer.insert(ACCOUNTS, [(a.number, a.item, a.lane, *a.sums()) for a in changed if a.opened])
    columns = ("impressions", "micros", "seal")
    writer.update(ACCOUNTS, columns, [(*a.sums(), a.number) for a in changed if not a.opened])
    # A lane that only saw repeats stays as it is, its day too.
    grown = {lane: end for lane, end in ends.items() if end.position > writer.tips[lane].position}
    writer.advance({lane: Tip(end.position, end.link, end.day * DAY) for lane, end in grown.items()})
