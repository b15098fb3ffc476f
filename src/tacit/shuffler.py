"""The shuffler: collects reports until their batch is closed, and passes them on without sender, time or order.

    shuffler = Shuffler("shuffler.db")
    shuffler.submit(report)                          # ok; the same again: duplicate; after the end: expired
    for batch in shuffler.pass_on("2026-11-16 sport"):
        server.settle(batch)                         # safe to repeat: the batch is the same, and settles once
    shuffler.forget("2026-11-16 sport")              # once the server has acknowledged all of them

Every report is durable before it is acknowledged, and each token counts once in its batch. Reports leave in the order of their
tokens, which devices draw at random. No time, address or order of arrival is stored. The shuffler sees items, groups and
tokens, but no offers. Users must trust that it does not collude with the server: tacit cannot check that.
"""

from collections.abc import Iterable
from threading import Lock
from typing import Self

from tacit.checks import whole
from tacit.errors import Conflict, InvalidMessage, InvalidParameter, TacitError
from tacit.ledger import MailLedger, Settlement
from tacit.ledger.chain import checked_name
from tacit.ledger.stores import Target
from tacit.messages.private_selection import MOST_REPORTS, Batch, ShuffledReport

__all__ = ["Shuffler"]


class Shuffler:
    """Collects reports in a ``ledger`` of its own, a file that is created at the first start. Threads may share one object.

    A batch takes at most ``most`` reports, so that it fits into one message.
    """

    def __init__(self, ledger: Target, *, most: int = MOST_REPORTS) -> None:
        self._mail, self._most = MailLedger.open_or_create(ledger), min(whole("most", most, least=1), MOST_REPORTS)
        self._room: dict[str, int] = {}  # how many more reports a batch takes
        self._lock = Lock()

    def submit(self, report: ShuffledReport) -> Settlement:
        """Stores one report, durably. Acknowledge it to the device only after this returns."""
        (outcome,) = self.submit_many([report])
        return outcome

    def submit_many(self, reports: Iterable[ShuffledReport]) -> list[Settlement]:
        """Stores many reports in one transaction. The first report with a token counts; closed or full batches take no more."""
        submitted = list(reports)
        if not all(isinstance(report, ShuffledReport) for report in submitted):
            raise InvalidMessage("a shuffler takes only ShuffledReports.")
        outcomes = [Settlement.EXPIRED if _can_be_stored(report) else Settlement.CONFLICT for report in submitted]
        with self._lock:
            accepted = [
                index
                for index, report in enumerate(submitted)
                if outcomes[index] is Settlement.EXPIRED and self._reserve_room(report.batch)
            ]
        letters = [(r.batch, r.group, r.item, r.token) for r in (submitted[index] for index in accepted)]
        for index, outcome in zip(accepted, self._mail.add_many(letters), strict=True):
            outcomes[index] = _settlement(outcome)
            if outcomes[index] is not Settlement.OK:
                with self._lock:
                    self._room[submitted[index].batch] += 1
        return outcomes

    def pass_on(self, batch: str) -> list[Batch]:
        """Closes a batch for good and returns its reports, one Batch per group: the same at every call until you forget it.

        Small groups are passed on too. The server counts and bills them, but does not call them amplified.
        """
        self._mail.close_batch(batch)
        return [
            Batch(batch, group, tuple(sorted(self._mail.reports(batch, group)))) for group in self._mail.groups(batch)
        ]

    def forget(self, batch: str) -> int:
        """Deletes the reports of a closed batch; returns how many. The batch stays closed."""
        return self._mail.forget(batch)

    def close(self) -> None:
        """Closes the ledger. Acknowledged reports are already durable."""
        self._mail.close()

    def __repr__(self) -> str:
        return f"Shuffler(at most {self._most:,} reports in a batch)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reserve_room(self, batch: str) -> bool:
        """Reserves room for one more report in the batch. Returns False if the batch is full."""
        if batch not in self._room:
            self._room[batch] = self._most - sum(self._mail.groups(batch).values())
        if self._room[batch] <= 0:
            return False
        self._room[batch] -= 1
        return True


def _can_be_stored(report: ShuffledReport) -> bool:
    """Whether the ledger accepts the report's names. If not, it belongs to no offer and must not block other reports."""
    try:
        return bool(checked_name("a batch", report.batch) and checked_name("an item", report.item))
    except InvalidParameter:
        return False


def _settlement(outcome: bool | TacitError) -> Settlement:
    if isinstance(outcome, Conflict):
        return Settlement.EXPIRED
    if isinstance(outcome, TacitError):
        raise outcome
    return Settlement.OK if outcome else Settlement.DUPLICATE
