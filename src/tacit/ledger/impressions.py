"""The impression ledger: how often each item was displayed and what is owed for it. Figures are exact; each impression counts once.

    ledger = ImpressionLedger.create("server.db")
    ledger.report("7f3a...", "item-12", 1_250_000)  # on the disk when this returns
    ledger.statement(*month(2026, 11)).to_json()

Where a device chooses among candidates, the server records its offer first, and settles what was shown at the offered price:

    ledger.offer(Offered(token, (("item-12", 1_250_000), ("item-7", 900_000)), "sport", expires))  # before it is sent
    ledger.settle(token, ("item-7",))                                                              # ok; later: duplicate

No noise, rounding or sampling touches these figures. The ledger keeps the day of an impression and the digest of its id or token.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from tacit.errors import Conflict, InvalidParameter, TacitError
from tacit.ledger.book import GroupCommit, Ledger, delete_rows, refusing_hidden_rows, sole_outcome
from tacit.ledger.chain import Clock, checked_name, digest, lane_of_digest, lapsed_before, now
from tacit.ledger.offers import (
    LAPSED,
    STILL_LAPSED,
    Batched,
    Engaged,
    Engagements,
    Offered,
    Settlement,
    Shown,
    checked_engaged,
    checked_offer,
    checked_shown,
    commit_batch,
    commit_engagements,
    commit_offers,
    commit_settlements,
    engagements_of,
    slot_key,
    was_refused,
)
from tacit.ledger.stores.interface import OFFERS, AlreadyThere, LedgerStore, Row, Writer
from tacit.ledger.tally import (
    BOOK,
    REPORTED,
    Counted,
    ImpressionStatement,
    ItemAccount,
    ItemTotal,
    Tally,
    accounts_agree,
    micros_of,
    statement_over,
    sum_too_large,
    total_of,
    totals,
)


class Report(NamedTuple):
    """An item was displayed; its owner owes ``micros`` micro-units of money, or nothing."""

    id: str
    item: str
    micros: int


class ImpressionLedger(Ledger):
    """Impressions and their totals. One object may be shared by many threads, one store by many processes.

    A file or database may hold a privacy ledger as well: each has its own book in it.
    """

    def __init__(self, store: LedgerStore, *, clock: Clock = now) -> None:
        super().__init__(store, clock=clock)
        self._report: GroupCommit[Report, Counted | TacitError] = GroupCommit(self._commit)
        self._offer: GroupCommit[Offered, TacitError | None] = GroupCommit(self._commit_offers)
        self._settle: GroupCommit[Shown, Settlement | TacitError] = GroupCommit(self._commit_settlements)
        self._engage: GroupCommit[Engaged, Settlement | TacitError] = GroupCommit(self._commit_engagements)

    def report(self, id: str, item: str, micros: int) -> Counted:
        """Counts one impression and returns when it is on the disk. Acknowledge only after that.

        The same report again changes nothing. The same ``id`` for another item or price raises Conflict, and changes nothing.
        ``micros`` is the price in micro-units of money.
        """
        return sole_outcome(self.report_many([Report(id, item, micros)]))

    def report_many(self, reports: Iterable[Report | tuple[str, str, int]]) -> list[Counted | TacitError]:
        """One transaction for many reports, in their order. Each has its own outcome: counted, or the error it would raise."""
        return self._report.commit_valid(_checked(report) for report in reports)

    def offer(self, offered: Offered) -> None:
        """Keeps an offer and returns when it is on the disk. Send it only after that. The same offer again changes nothing.

        The same token with other content raises Conflict. An offer that could not be settled any more, by the ledger's time,
        raises LedgerUnavailable: what cannot be billed must not be shown.
        """
        self.offer_many([offered])

    def offer_many(self, offers: Iterable[Offered]) -> None:
        """One transaction for many offers. It keeps all that can be kept, then raises the first error."""
        checked = [checked_offer(offered) for offered in offers]
        for outcome in self._offer(checked) if checked else ():
            if outcome is not None:
                raise outcome

    def settle(self, token: str, items: tuple[str, ...]) -> Settlement:
        """Counts what was shown of an offer, at the price that was offered, and returns when it is on the disk.

        Anything that a caller from outside can get wrong is an outcome, not an error.
        """
        return sole_outcome(self.settle_many([Shown(token, items)]))

    def settle_many(self, reports: Iterable[Shown | tuple[str, tuple[str, ...]]]) -> list[Settlement | TacitError]:
        """One transaction for many reports, in their order. Each has its own outcome, or the error it would raise."""
        return self._settle.commit_valid(checked_shown(report) for report in reports)

    def settle_batch(
        self, batch: str, group: str, reports: Iterable[tuple[str, str]], prices: Mapping[str, int]
    ) -> Settlement:
        """Counts the reports (token, item) of a shuffled batch in one transaction: all of them, once, or none.

        The same batch again is a duplicate. Other reports under the same batch and group, a repeated token, or an item without a
        price are conflicts: they count nothing, and ``refused`` remembers them. ``prices`` are in micro-units of money, by item.
        """
        batched = Batched(batch, group, reports, prices)
        lanes = self._store.lanes
        with refusing_hidden_rows(), self._store.write(BOOK, batched.lanes(lanes)) as writer:
            return commit_batch(writer, lanes, self._moment(), batched)

    def refused(self, batch: str, group: str) -> bool:
        """Whether any version of this group was ever a conflict, in this process or another."""
        with self._store.read() as reader:
            return was_refused(reader, batch, group)

    def engage(self, token: str, bit: int) -> Settlement:
        """Keeps the randomised bit for an impression that was settled before. The same bit again is a duplicate."""
        return sole_outcome(self._engage([checked_engaged(token, bit)]))

    def engagements(self, item: str) -> Engagements:
        """How many bits were received for an item, and how many of them are 1."""
        with self._store.read() as reader:
            return engagements_of(reader, checked_name("an item", item))

    def forget(self) -> int:
        """Deletes the offers that expired more than 24 hours ago, and returns how many. What was counted stays counted.

        A clock that runs ahead deletes offers that could still have been settled; their reports are then unknown.
        """
        lanes = self._store.lanes
        values = (lapsed_before(self._moment()),)
        return delete_rows(
            self._store, BOOK, OFFERS, LAPSED, STILL_LAPSED, values, lambda key: lane_of_digest(key[0], lanes)
        )

    def item(self, item: str) -> ItemTotal:
        """An item's impressions and what is owed for them, now; zeros if there are none."""
        with self._store.read() as reader:
            return total_of(reader, checked_name("an item", item))

    def items(self) -> Iterator[ItemTotal]:
        """Every item's total, all at the same moment."""
        with self._store.read() as reader:
            yield from totals(reader)

    def statement(self, first_day: date, last_day: date) -> ImpressionStatement:
        """The impressions of these days (UTC, both included), per item. For a month: ``*month(2026, 11)``."""
        with self._store.read() as reader:
            return statement_over(reader, first_day, last_day)

    def balanced(self) -> bool:
        """Whether every item's account is exactly the count and the sum of its impressions."""
        with self._store.read() as reader:
            return accounts_agree(reader)

    def _commit(self, reports: list[Report]) -> list[Counted | TacitError]:
        return self._commit_optimistically(reports, self._transact, _is_repeat)

    def _transact(self, reports: list[Report], look_up: bool) -> list[Counted | TacitError]:
        lanes = self._store.lanes
        ids = [digest(report.id) for report in reports]
        with self._store.write(BOOK, self._lanes_of(ids)) as writer:
            return _count_reports(writer, lanes, self._moment(), reports, ids, look_up=look_up)

    def _commit_offers(self, offers: list[Offered]) -> list[TacitError | None]:
        ids = [digest(offered.token) for offered in offers]
        with self._store.write(BOOK, self._lanes_of(ids)) as writer:
            return commit_offers(writer, self._store.lanes, self._moment(), offers, ids)

    def _commit_settlements(self, reports: list[Shown]) -> list[Settlement | TacitError]:
        lanes, keys = self._store.lanes, [report.keys for report in reports]
        with (
            refusing_hidden_rows(),
            self._store.write(BOOK, self._lanes_of(key for slots in keys for key in slots)) as writer,
        ):
            return commit_settlements(writer, lanes, self._moment(), reports, keys)

    def _commit_engagements(self, engaged: list[Engaged]) -> list[Settlement | TacitError]:
        ids = [slot_key(bit.token, 0) for bit in engaged]
        with self._store.write(BOOK, self._lanes_of(ids)) as writer:
            return commit_engagements(writer, self._store.lanes, self._moment(), engaged, ids)

    def _lanes_of(self, ids: Iterable[bytes]) -> list[int]:
        """In the same order in all transactions, which prevents deadlocks."""
        return sorted({lane_of_digest(id, self._store.lanes) for id in ids})


def _checked(report: Report | tuple[str, str, int]) -> Report | InvalidParameter:
    """The report if it is valid, else the error, which repeats no id."""
    try:
        if not isinstance(report, tuple) or len(report) != 3:
            raise InvalidParameter("a report is (id, item, micros).")
        id, item, micros = report
        checked_name("the id of an impression", id)
        checked_name("an item", item)
        return Report(id, item, micros_of(micros))
    except InvalidParameter as problem:
        return problem


def _count_reports(
    writer: Writer, lanes: int, moment: int, reports: Sequence[Report], ids: Sequence[bytes], *, look_up: bool
) -> list[Counted | TacitError]:
    """The outcome of each report, in order; ``ids`` are their digests. The caller's transaction makes it durable.

    Without ``look_up`` it assumes that no report came before, and raises AlreadyThere if that may be wrong.
    """
    earlier_rows = writer.ask(REPORTED, [(id,) for id in ids]) if look_up else None
    own_lanes = [lane_of_digest(id, lanes) for id in ids]
    tally = Tally(writer, lanes, moment, ((r.item, lane) for r, lane in zip(reports, own_lanes, strict=True)))
    accounts, fresh = tally.accounts, tally.fresh
    outcomes: list[Counted | TacitError] = []
    rows = earlier_rows() if earlier_rows is not None else [None] * len(reports)
    for (_, item, micros), id, lane, row in zip(reports, ids, own_lanes, rows, strict=True):
        account = accounts[item, lane]
        if isinstance(account, TacitError):
            outcomes.append(account)
        elif (earlier := row or fresh.get(id)) is not None:
            outcomes.append(_repeated_report(earlier, account, micros))
        elif account.fits(micros):
            outcomes.append(tally.count(id, account, micros))
        elif look_up:
            outcomes.append(sum_too_large())
        else:  # it does not fit, but was perhaps reported before
            raise AlreadyThere
    tally.write()
    return outcomes


def _repeated_report(earlier: Row, account: ItemAccount, micros: int) -> Counted | TacitError:
    """The outcome of a report whose id was used before. An account in a lane stands for one item."""
    number, account_then, day, micros_then = earlier
    if (account_then, micros_then) == (account.number, micros):
        return Counted(number, day, False)
    return Conflict(
        "this impression was reported before, for another item or another price; nothing was changed. An id stands for one "
        "impression: report it again as it was, or a new impression under a new id."
    )


def _is_repeat(outcome: Counted | TacitError) -> bool:
    return not outcome.fresh if isinstance(outcome, Counted) else isinstance(outcome, Conflict)
