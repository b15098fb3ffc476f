"""Subjects' rows while transactions work on them, remembered for as long as nobody else has written.

Whatever changes a subject lengthens her lane. So if the end of a lane is where this process left it, then every row that this
process remembers of that lane is still what the store holds, and need not be read again.
"""

from collections.abc import Iterable, Sequence

from tacit.errors import LedgerBehind, LedgerDamaged, TacitError, UnknownSubject
from tacit.ledger.amounts import MOST, Cost
from tacit.ledger.budgets import BEFORE_ALL
from tacit.ledger.chain import Tip, lane_of
from tacit.ledger.entries import (
    LINK,
    SPENT_BEFORE,
    SUBJECT,
    link_of_charge,
    seal_of_subject,
    sealed_subject,
    spent_before,
)
from tacit.ledger.known import Agreed, Known, Priced
from tacit.ledger.receipts import Receipt
from tacit.ledger.stores.interface import Answers, Row, Writer

_MOST_REMEMBERED = 20_000


class Lane:
    """The end of a lane while a transaction lengthens it. All its charges carry one time."""

    __slots__ = ("at", "lane", "link", "position", "was")

    def __init__(self, lane: int, tip: Tip, moment: int) -> None:
        self.lane, self.was, self.position, self.link = lane, tip, tip.position, tip.link
        self.at = max(moment, tip.at)  # the clock may go back, the ledger's time does not

    @property
    def lengthened(self) -> bool:
        return self.position > self.was.position

    @property
    def tip(self) -> Tip:
        return Tip(self.position, self.link, self.at) if self.lengthened else self.was


class Account:
    """A subject's row. ``most`` and ``most_delta`` are what the totals may reach: what was spent before a window began plus what
    the budget allows in it, for the tightest of the budgets."""

    __slots__ = (
        *("name", "number", "terms", "total", "delta", "unprotected", "at"),  # as in the store
        *("agreed", "before", "most", "most_delta"),  # what the terms allow
        *("lane", "new", "priced"),  # of the transaction at work
    )

    def __init__(self, name: str, row: Row, agreed: Agreed) -> None:
        self.number, self.terms, self.total, self.delta, self.unprotected, self.at = sealed_subject(name, row)
        self.name, self.agreed, self.before = name, agreed, agreed.nothing
        self.most, self.most_delta = agreed.most, agreed.most_delta

    def begin(self, lane: Lane) -> None:
        """A transaction starts to work on this row."""
        self.lane = lane
        self.new: dict[str, tuple[Receipt, Priced]] = {}  # charged in this very transaction, by release id
        self.priced: dict[int, Priced] = {}  # by identity: the charges keep their guarantees alive

    def look_back(self, before: tuple[Cost, ...]) -> None:
        """Takes what was spent before each budget's window."""
        self.before = before
        windows = list(zip(before, self.agreed.allowances, strict=True))
        self.most = min(MOST, *(spent.amount + allowed.amount for spent, allowed in windows))
        self.most_delta = min(MOST, *(spent.delta + allowed.delta for spent, allowed in windows))

    def charge(self, release_id: str, priced: Priced, lanes: int) -> Row | None:
        """The row of a charge, if it fits into every budget: then it is counted, and the lane is longer by it."""
        amount, more_delta, more_unprotected = priced.cost
        total, delta, unprotected = self.total + amount, self.delta + more_delta, self.unprotected + more_unprotected
        if total > self.most or delta > self.most_delta or unprotected > MOST:
            return None
        lane, windowed = self.lane, self.agreed.windowed
        lane.position += 1
        number = lane.position * lanes + lane.lane
        row = (
            number,
            self.number,
            release_id,
            lane.at,
            priced.digest,
            *priced.cost,
            total,
            delta,
            unprotected,
            windowed,
        )
        lane.link = link_of_charge(lane.link, *row)
        self.total, self.delta, self.unprotected, self.at = total, delta, unprotected, lane.at
        self.new[release_id] = (Receipt(number, lane.at, priced.cost, True), priced)
        return (*row, lane.link)

    def spent(self) -> Row:
        """The new values of the columns SPENT, then the key."""
        totals = (self.total, self.delta, self.unprotected, self.at)
        return (*totals, seal_of_subject(self.number, self.name, self.terms, *totals), self.number)


SPENT = ("total", "total_delta", "total_unprotected", "at", "seal")


class Accounts:
    """The rows that a ledger object remembers between its transactions."""

    def __init__(self) -> None:
        self._rows: dict[str, Account] = {}
        self._tips: dict[int, Tip] = {}  # where this object left the lanes
        self._reached: dict[int, Tip] = {}  # how far it has seen them come; never forgotten
        self._others_write = False
        self._at_work: list[Account] = []
        self._ends: dict[int, Lane] = {}

    def begin(
        self, writer: Writer, known: Known, names: Sequence[str], lanes: int, moment: int
    ) -> tuple[dict[str, Account | TacitError], dict[int, Lane]]:
        """The accounts of these subjects (or why there is none), and the ends of the lanes that the transaction holds.

        Where others wrote the last time, they will have written again: then everything is asked for at once.
        """
        self._at_work = []
        asked_early = list(names) if self._others_write else [name for name in names if name not in self._rows]
        asked = writer.ask(SUBJECT, [(name,) for name in asked_early]) if asked_early else None
        links = self._ask_links(writer, {lane_of(name, lanes) for name in names}, lanes) if self._others_write else {}
        ends = self._ends = {lane: Lane(lane, tip, moment) for lane, tip in writer.tips.items()}
        self._refuse_to_go_back(writer, links, lanes)
        stale = {lane for lane, tip in writer.tips.items() if self._tips.get(lane) != tip}
        accounts: dict[str, Account | TacitError] = self._read(writer, known, asked_early, asked)
        if stale:  # somebody else has written, or has put an older ledger in this one's place
            known.forget_written()
            again = [n for n in names if n not in accounts and n in self._rows and lane_of(n, lanes) in stale]
            self._rows = {name: row for name, row in self._rows.items() if lane_of(name, lanes) not in stale}
            if again:
                accounts |= self._read(writer, known, again, writer.ask(SUBJECT, [(name,) for name in again]))
        self._others_write = not stale.isdisjoint(self._tips)
        for name in names:
            account = accounts.get(name) or self._rows[name]
            accounts[name] = account
            if isinstance(account, Account):
                account.begin(ends[lane_of(name, lanes)])
                self._at_work.append(account)
        windowed = [account for account in self._at_work if account.agreed.windowed]
        if windowed:
            damaged = _look_back(writer, windowed, lanes)
            accounts |= damaged
            self._at_work = [account for account in self._at_work if account.name not in damaged]
        return accounts, ends

    def committed(self) -> None:
        """The transaction is on the disk: what it left is what the store holds."""
        if len(self._rows) > _MOST_REMEMBERED:
            self._rows = {}
        for account in self._at_work:
            self._rows[account.name] = account
        for lane, end in self._ends.items():
            self._tips[lane] = self._reached[lane] = end.tip

    def _ask_links(self, writer: Writer, lanes_asked: Iterable[int], lanes: int) -> dict[int, Answers]:
        """The links of the entries that this process saw last, in each lane."""
        reached = {lane: tip for lane in lanes_asked if (tip := self._reached.get(lane)) is not None and tip.position}
        return {lane: writer.ask(LINK, [(tip.position * lanes + lane,)]) for lane, tip in reached.items()}

    def _refuse_to_go_back(self, writer: Writer, links: dict[int, Answers], lanes: int) -> None:
        """A ledger that was put back to an earlier state, or rewritten, while this process had it open."""
        grown = []  # by others: what this process saw last must still be where it was
        for lane, tip in writer.tips.items():
            reached = self._reached.get(lane, tip)
            if tip.position < reached.position:
                raise LedgerBehind(
                    f"lane {lane} ends at entry {tip.position:,}, but had {reached.position:,} a while ago: an old backup was put "
                    "in its place? Nothing was charged. Restore the latest one, then start this program anew."
                )
            if tip.position > reached.position > 0:
                grown.append(lane)
            elif tip.position == reached.position and tip.link != reached.link:
                raise _rewritten(lane)
        links |= self._ask_links(writer, [lane for lane in grown if lane not in links], lanes)
        for lane in grown:
            (row,) = links[lane]()
            if row is None or row[0] != self._reached[lane].link:
                raise _rewritten(lane)
        self._reached |= writer.tips

    def forget(self) -> None:
        """The transaction failed: what is remembered may not be what the store holds."""
        self._rows, self._tips = {}, {}

    def _read(
        self, writer: Writer, known: Known, names: Sequence[str], asked: Answers | None
    ) -> dict[str, Account | TacitError]:
        accounts: dict[str, Account | TacitError] = {}
        for name, row in zip(names, asked() if asked is not None else (), strict=True):
            if row is None:
                accounts[name] = unknown_subject()
                continue
            try:
                accounts[name] = Account(name, row, known.agreed(writer, row[1]))
            except LedgerDamaged as problem:  # the other subjects can still be served
                accounts[name] = problem
        return accounts


def _rewritten(lane: int) -> LedgerDamaged:
    return LedgerDamaged(
        f"lane {lane} does not hold what it held a while ago: another ledger was put in its place? Nothing was charged. Restore "
        "the right one, then start this program anew."
    )


def unknown_subject() -> UnknownSubject:
    return UnknownSubject(
        "the ledger knows no subject of that name. Enrol her first: ledger.enrol(subject, Budget(...), ...)."
    )


def _look_back(writer: Writer, accounts: list[Account], lanes: int) -> dict[str, TacitError]:
    """Fills in what each account had spent before its windows began; returns those of whom it cannot be told."""
    starts = [[budget.start(account.lane.at) for budget in account.agreed.terms.budgets] for account in accounts]
    keys = [
        (lanes, account.number, start)
        for account, own in zip(accounts, starts, strict=True)
        for start in own
        if start != BEFORE_ALL
    ]
    rows = iter(writer.ask(SPENT_BEFORE, keys)())
    damaged: dict[str, TacitError] = {}
    for account, own in zip(accounts, starts, strict=True):
        found = [(None if start == BEFORE_ALL else next(rows), start) for start in own]
        try:
            account.look_back(tuple(spent_before(row, account.number, start) for row, start in found))
        except LedgerDamaged as problem:
            damaged[account.name] = problem
    return damaged
