"""Which charges a ledger knows, by their ids. Nothing is charged and nothing that was kept is read."""

from collections.abc import Collection

from tacit.ledger.opened import OpenedLedger
from tacit.ledger.stores.interface import Query

_CHARGED = Query(
    "SELECT e.release_id FROM subjects s JOIN entries e ON e.subject = s.number WHERE s.name = ? AND e.release_id = ?",
    ("text", "text"),
)


class Charges(OpenedLedger):
    """In the store of a privacy ledger: ``Charges.beside(ledger)``."""

    def among(self, subject: str, release_ids: Collection[str]) -> frozenset[str]:
        """Those of the ids that the subject was charged for, whether or not something was drawn."""
        if not release_ids:
            return frozenset()
        with self._store.read() as reader:
            rows = reader.ask(_CHARGED, [(subject, one) for one in release_ids])()
        return frozenset(row[0] for row in rows if row is not None)
