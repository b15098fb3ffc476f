"""The impression ledger: which item was displayed how often and what is owed for it, exactly, each impression once.

    ledger = ImpressionLedger.create("server.db")
    ledger.report("7f3a...", "item-12", 1_250_000)  # on the disk when this returns
    ledger.statement(*month(2026, 11)).to_json()

Where a device chooses among candidates, the server offers first, and settles what was shown at the price it had offered:

    ledger.offer(Offered(token, (("item-12", 1_250_000), ("item-7", 900_000)), "sport", expires))  # before it is sent
    ledger.settle(token, ("item-7",))                                                              # ok; later: duplicate

No noise, rounding or sampling touches these figures. Of time the ledger keeps the day, of an id or token the digest.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date

from tacit.errors import Conflict, LedgerDamaged, TacitError
from tacit.ledger.batches import Batched, commit_batch, was_refused
from tacit.ledger.booking import Counted
from tacit.ledger.chain import digest
from tacit.ledger.clock import Clock, now
from tacit.ledger.engagements import Engaged, Engagements, checked_engaged, commit_engagements, engagements_of
from tacit.ledger.forgetting import forget
from tacit.ledger.grouping import GroupCommit
from tacit.ledger.impression_rows import BOOK, lane_of_impression
from tacit.ledger.names import name
from tacit.ledger.offers import LAPSED, STILL_LAPSED, Offered, checked_offer, commit_offers, lapsed_before, slot_key
from tacit.ledger.opened import OpenedLedger
from tacit.ledger.reporting import Report, checked, commit_reports
from tacit.ledger.settling import Settlement, Shown, checked_shown, commit_settlements
from tacit.ledger.stores.interface import AlreadyThere, Store
from tacit.ledger.stores.schema import OFFERS
from tacit.ledger.totals import ImpressionStatement, ItemTotal, accounts_agree, statement_over, total_of, totals


class ImpressionLedger(OpenedLedger):
    """Impressions and what they add up to. One object may be shared by many threads, one store by many processes.

    A file or database may hold a privacy ledger as well: each has its own book in it.
    """

    def __init__(self, store: Store, *, clock: Clock = now) -> None:
        super().__init__(store, clock=clock)
        self._report: GroupCommit[Report, Counted | TacitError] = GroupCommit(self._commit)
        self._offer: GroupCommit[Offered, TacitError | None] = GroupCommit(self._commit_offers)
        self._settle: GroupCommit[Shown, Settlement | TacitError] = GroupCommit(self._commit_settlements)
        self._engage: GroupCommit[Engaged, Settlement | TacitError] = GroupCommit(self._commit_engagements)

    def report(self, id: str, item: str, micros: int) -> Counted:
        """Counts one impression and returns when it is on the disk; acknowledge only after that.

        The same report again changes nothing. The same ``id`` for another item or price raises Conflict, and changes nothing.
        ``micros`` is the price in micro-units of the currency.
        """
        (outcome,) = self.report_many([Report(id, item, micros)])
        if isinstance(outcome, TacitError):
            raise outcome
        return outcome

    def report_many(self, reports: Iterable[Report | tuple[str, str, int]]) -> list[Counted | TacitError]:
        """One transaction for many reports, in their order; each one stands alone: counted, or the error it would raise."""
        wished = [checked(report) for report in reports]
        good = [report for report in wished if isinstance(report, Report)]
        outcomes = iter(self._report(good) if good else [])
        return [report if isinstance(report, TacitError) else next(outcomes) for report in wished]

    def offer(self, offered: Offered) -> None:
        """Keeps an offer and returns when it is on the disk; send it only after that. The same again changes nothing.

        The same token with other content raises Conflict. An offer that could not be settled any more, by the ledger's time,
        raises LedgerUnavailable: what cannot be billed must not be shown.
        """
        self.offer_many([offered])

    def offer_many(self, offers: Iterable[Offered]) -> None:
        """One transaction for many offers: those that can be kept are kept, then the first that cannot be is raised."""
        wished = [checked_offer(offered) for offered in offers]
        for outcome in self._offer(wished) if wished else ():
            if outcome is not None:
                raise outcome

    def settle(self, token: str, items: tuple[str, ...]) -> Settlement:
        """Counts what was shown of an offer, at the price that was offered; returns when it is on the disk.

        Everything that a caller from outside can get wrong is an outcome, not an error.
        """
        (outcome,) = self.settle_many([Shown(token, items)])
        if isinstance(outcome, TacitError):
            raise outcome
        return outcome

    def settle_many(self, reports: Iterable[Shown | tuple[str, tuple[str, ...]]]) -> list[Settlement | TacitError]:
        """One transaction for many reports, in their order; each one stands alone: its outcome, or the error it would raise."""
        wished = [checked_shown(report) for report in reports]
        good = [report for report in wished if isinstance(report, Shown)]
        outcomes = iter(self._settle(good) if good else [])
        return [report if isinstance(report, TacitError) else next(outcomes) for report in wished]

    def settle_batch(
        self, batch: str, group: str, reports: Iterable[tuple[str, str]], prices: Mapping[str, int]
    ) -> Settlement:
        """Counts a shuffled batch, reports (token, item), in one transaction: all of it, once, or nothing of it.

        The same batch again is a duplicate. Other reports under the same batch and group, a repeated token and an item without
        a price are conflicts: they count nothing, and ``refused`` remembers them.
        ``prices`` are in micro-units of the currency, by item.
        """
        batched = Batched(batch, group, reports, prices)
        lanes = self._store.lanes
        with _no_surprise(), self._store.write(BOOK, batched.lanes(lanes)) as writer:
            return commit_batch(writer, lanes, self._moment(), batched)

    def refused(self, batch: str, group: str) -> bool:
        """Whether any version of this group was ever a conflict, here or in another process."""
        with self._store.read() as reader:
            return was_refused(reader, batch, group)

    def engage(self, token: str, bit: int) -> Settlement:
        """Keeps the randomised bit for an impression that was settled before. The same again is a duplicate."""
        (outcome,) = self._engage([checked_engaged(token, bit)])
        if isinstance(outcome, TacitError):
            raise outcome
        return outcome

    def engagements(self, item: str) -> Engagements:
        """How many bits were received for an item, and how many of them are 1."""
        with self._store.read() as reader:
            return engagements_of(reader, name("an item", item))

    def forget(self) -> int:
        """Deletes the offers that expired more than 24 hours ago, and returns how many. What was counted stays counted.

        By the clock: one that runs ahead deletes offers that could still have been settled, and their reports are unknown then.
        """
        lanes = self._store.lanes
        given = (lapsed_before(self._moment()),)
        return forget(self._store, OFFERS, LAPSED, STILL_LAPSED, given, lambda key: lane_of_impression(key[0], lanes))

    def item(self, item: str) -> ItemTotal:
        """An item's impressions and what is owed for them, at this instant; zeros where there are none."""
        with self._store.read() as reader:
            return total_of(reader, name("an item", item))

    def items(self) -> Iterator[ItemTotal]:
        """Every item's total, all at the same instant."""
        with self._store.read() as reader:
            yield from totals(reader)

    def statement(self, first_day: date, last_day: date) -> ImpressionStatement:
        """What the impressions of these days (UTC, both included) add up to, per item. For a month: ``*month(2026, 11)``."""
        with self._store.read() as reader:
            return statement_over(reader, first_day, last_day)

    def balanced(self) -> bool:
        """Whether every item's account is exactly the count and the sum of its impressions."""
        with self._store.read() as reader:
            return accounts_agree(reader)

    def _commit(self, reports: list[Report]) -> list[Counted | TacitError]:
        return self._hoping(reports, self._transact, _is_repeat)

    def _transact(self, reports: list[Report], look_up: bool) -> list[Counted | TacitError]:
        lanes = self._store.lanes
        ids = [digest(report.id) for report in reports]
        with self._store.write(BOOK, self._lanes_of(ids)) as writer:
            return commit_reports(writer, lanes, self._moment(), reports, ids, look_up=look_up)

    def _commit_offers(self, offers: list[Offered]) -> list[TacitError | None]:
        ids = [digest(offered.token) for offered in offers]
        with self._store.write(BOOK, self._lanes_of(ids)) as writer:
            return commit_offers(writer, self._store.lanes, self._moment(), offers, ids)

    def _commit_settlements(self, reports: list[Shown]) -> list[Settlement | TacitError]:
        lanes, keys = self._store.lanes, [report.keys for report in reports]
        with _no_surprise(), self._store.write(BOOK, self._lanes_of(key for own in keys for key in own)) as writer:
            return commit_settlements(writer, lanes, self._moment(), reports, keys)

    def _commit_engagements(self, engaged: list[Engaged]) -> list[Settlement | TacitError]:
        ids = [slot_key(one.token, 0) for one in engaged]
        with self._store.write(BOOK, self._lanes_of(ids)) as writer:
            return commit_engagements(writer, self._store.lanes, self._moment(), engaged, ids)

    def _lanes_of(self, ids: Iterable[bytes]) -> list[int]:
        """In one order for everybody, so that no two transactions wait for each other."""
        return sorted({lane_of_impression(id, self._store.lanes) for id in ids})


@contextmanager
def _no_surprise() -> Iterator[None]:
    """Where every id was looked up first, one that is there all the same was hidden by a damaged index."""
    try:
        yield
    except AlreadyThere as problem:
        raise LedgerDamaged("the ledger's index disagrees with its rows. Run `tacit ledger check`.") from problem


def _is_repeat(outcome: Counted | TacitError) -> bool:
    return not outcome.fresh if isinstance(outcome, Counted) else isinstance(outcome, Conflict)
