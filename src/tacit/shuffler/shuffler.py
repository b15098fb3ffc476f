"""A shuffler over one file: every report is on the disk before it is acknowledged, each token counts once in its batch.

    shuffler = Shuffler("shuffler.db")
    shuffler.submit(report)                          # ok; the same again: duplicate; after the end: expired
    for batch in shuffler.pass_on("2026-11-16 sport"):
        server.settle(batch)                         # may be sent again: it is the same, and has no effect
    shuffler.forget("2026-11-16 sport")              # once the server has acknowledged all of them

Reports leave in the order of their tokens, which devices draw by chance. No time, address or order of arrival is written down.
"""

from collections.abc import Iterable
from threading import Lock
from typing import Self

from tacit.checks import whole
from tacit.errors import Conflict, InvalidMessage, InvalidParameter, TacitError
from tacit.ledger import MailLedger, Settlement
from tacit.ledger.names import name
from tacit.ledger.stores import Target
from tacit.messages.private_selection import Batch, ShuffledReport
from tacit.messages.private_selection_impression import MOST_REPORTS


class Shuffler:
    """A ``ledger`` of its own, a file that is made at the first start. One object may be shared by many threads.

    ``most`` is how many reports a batch takes: a message holds no more.
    """

    def __init__(self, ledger: Target, *, most: int = MOST_REPORTS) -> None:
        self._mail, self._most = MailLedger.open_or_create(ledger), min(whole("most", most, least=1), MOST_REPORTS)
        self._room: dict[str, int] = {}  # how many more reports a batch takes
        self._alone = Lock()

    def submit(self, report: ShuffledReport) -> Settlement:
        """Keeps one report; it is on the disk when this returns, and only then may the device be told so."""
        (outcome,) = self.submit_many([report])
        return outcome

    def submit_many(self, reports: Iterable[ShuffledReport]) -> list[Settlement]:
        """Many reports in one transaction. The first report with a token stands; batches that are closed or full take no more."""
        given = list(reports)
        if not all(isinstance(report, ShuffledReport) for report in given):
            raise InvalidMessage("a shuffler takes ShuffledReports and nothing else.")
        outcomes = [Settlement.EXPIRED if _can_be_kept(report) else Settlement.CONFLICT for report in given]
        with self._alone:
            places = [
                place
                for place, report in enumerate(given)
                if outcomes[place] is Settlement.EXPIRED and self._has_room(report.batch)
            ]
        letters = [(r.batch, r.group, r.item, r.token) for r in (given[place] for place in places)]
        for place, outcome in zip(places, self._mail.add_many(letters), strict=True):
            outcomes[place] = _settlement(outcome)
            if outcomes[place] is not Settlement.OK:
                with self._alone:
                    self._room[given[place].batch] += 1
        return outcomes

    def pass_on(self, batch: str) -> list[Batch]:
        """Closes a batch for good and gives its reports, one Batch for each group; the same at every call until it is forgotten.

        Small groups are passed on too: they are counted and billed, and are not called amplified.
        """
        self._mail.close_batch(batch)
        return [
            Batch(batch, group, tuple(sorted(self._mail.reports(batch, group)))) for group in self._mail.groups(batch)
        ]

    def forget(self, batch: str) -> int:
        """Deletes the reports of a closed batch; returns how many. The batch stays closed."""
        return self._mail.forget(batch)

    def close(self) -> None:
        """Closes the ledger. Whatever was acknowledged is on the disk already."""
        self._mail.close()

    def __repr__(self) -> str:
        return f"Shuffler(at most {self._most:,} reports in a batch)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _has_room(self, batch: str) -> bool:
        if batch not in self._room:
            self._room[batch] = self._most - sum(self._mail.groups(batch).values())
        if self._room[batch] <= 0:
            return False
        self._room[batch] -= 1
        return True


def _can_be_kept(report: ShuffledReport) -> bool:
    """Whether a ledger can hold its names. One that it cannot is no offer's, and must not keep others from being taken."""
    try:
        return bool(name("a batch", report.batch) and name("an item", report.item))
    except InvalidParameter:
        return False


def _settlement(outcome: bool | TacitError) -> Settlement:
    if isinstance(outcome, Conflict):
        return Settlement.EXPIRED
    if isinstance(outcome, TacitError):
        raise outcome
    return Settlement.OK if outcome else Settlement.DUPLICATE
