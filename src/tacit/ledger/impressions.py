"""The impression ledger: which item was displayed how often and what is owed for it, exactly, each impression once.

    ledger = ImpressionLedger.create("server.db")
    ledger.report("7f3a...", "item-12", 1_250_000)  # on the disk when this returns
    ledger.statement(*month(2026, 11)).to_json()

No noise, rounding or sampling touches these figures. Of time the ledger keeps the day, of an id the digest.
"""

from collections.abc import Iterable, Iterator
from datetime import date

from tacit.errors import Conflict, TacitError
from tacit.ledger.chain import digest
from tacit.ledger.clock import Clock, now
from tacit.ledger.grouping import GroupCommit
from tacit.ledger.impression_rows import BOOK, lane_of_impression
from tacit.ledger.names import name
from tacit.ledger.opened import OpenedLedger
from tacit.ledger.reporting import Counted, Report, checked, commit_reports
from tacit.ledger.stores.interface import Store
from tacit.ledger.totals import ImpressionStatement, ItemTotal, accounts_agree, statement_over, total_of, totals


class ImpressionLedger(OpenedLedger):
    """Impressions and what they add up to. One object may be shared by many threads, one store by many processes.

    A file or database may hold a privacy ledger as well: each has its own book in it.
    """

    def __init__(self, store: Store, *, clock: Clock = now) -> None:
        super().__init__(store, clock=clock)
        self._report: GroupCommit[Report, Counted | TacitError] = GroupCommit(self._commit)

    def report(self, id: str, item: str, micros: int) -> Counted:
        """Counts one impression and returns when it is on the disk; acknowledge only after that.

        The same report again changes nothing. The same ``id`` for another item or price raises Conflict, and changes nothing.
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
        # The lanes in one order for everybody, so that no two transactions wait for each other.
        with self._store.write(BOOK, sorted({lane_of_impression(id, lanes) for id in ids})) as writer:
            return commit_reports(writer, lanes, self._moment(), reports, ids, look_up=look_up)


def _is_repeat(outcome: Counted | TacitError) -> bool:
    return not outcome.fresh if isinstance(outcome, Counted) else isinstance(outcome, Conflict)
