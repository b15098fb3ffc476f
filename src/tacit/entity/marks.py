"""How far a ledger has come, noted in the journal beside it: a ledger that knows less is an old copy, or another one.

Charges are never taken back, so the number of charges of a subject and all they cost only grow, whoever else charges the ledger.
After every charge, and before an answer leaves, the journal notes both. A crash in between leaves an older note, never one that is
ahead of the ledger. With an older ledger the journal would go on, and other runs would be charged to a budget that has forgotten
what was spent. If both come from old copies of the same time nothing here can notice it.

Numbers alone would not do: an old copy catches up with them when others charge the same subject. So the ids of the entity's own
charges are noted as well, and each of them must be in the ledger.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import sha256

from tacit.entity.journal import Journal
from tacit.errors import Conflict, LedgerDamaged

_RELEASES = ("prototypes", "popularity", "gram")  # the stages whose records follow a charge


@dataclass(frozen=True, slots=True)
class Mark:
    """What a ledger knows of a subject: its charges, their sums in whole units, and the messages of secure sums it has noted."""

    charges: int
    amount: int
    delta: int
    unprotected: int
    notes: int

    @property
    def height(self) -> int:
        return self.charges + self.notes

    def reaches(self, other: "Mark") -> bool:
        return all(getattr(self, one) >= getattr(other, one) for one in self.__slots__)

    def joined(self, other: "Mark") -> "Mark":
        return Mark(*(max(getattr(self, one), getattr(other, one)) for one in self.__slots__))

    def to_bytes(self) -> bytes:
        return json.dumps([getattr(self, one) for one in self.__slots__]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Mark":
        try:
            found = json.loads(data)
            if [type(one) for one in found] != [int] * len(cls.__slots__):
                raise ValueError
        except (TypeError, ValueError, RecursionError):
            raise LedgerDamaged(
                "the journal's note of how far the ledger has come is damaged. Restore the journal from a backup."
            ) from None
        return cls(*found)


_NOTHING = Mark(0, 0, 0, 0, 0)


def require_reached(
    journal: Journal, subject: str, now: Callable[[], Mark], charged: Callable[[Collection[str]], Collection[str]]
) -> None:
    """Refuses a ledger that knows less than was noted of it. It is asked after the notes were read: others may be charging it.

    ``charged`` tells which of some ids the subject was charged for.
    """
    noted, ids = _noted(journal, subject), journal.ids(_prefix(subject))
    records = _records(journal) if noted is None else 0
    known = now()
    reached = known.charges >= records and (noted is None or known.reaches(noted))
    if not reached or set(ids) - set(charged(ids)):
        raise Conflict(
            "the ledger is older than the journal beside it: charges are missing from it that were made. Nothing was charged and "
            "nothing is sent. Restore the newest ledger, or name a new subject after counting what was spent."
        )


def note(journal: Journal, subject: str, now: Mark, ids: Collection[str] = ()) -> None:
    """Notes, durably, how far the ledger has come, and these ids of charges that are in it.

    Nothing that was noted before is taken back, and whatever others note at the same time, the highest mark counts.
    """
    for one in ids:
        journal.put_id(_prefix(subject), one)
    noted = _noted(journal, subject) or _NOTHING
    highest = now.joined(noted)
    if highest != noted:
        journal.put_mark(_prefix(subject), highest.height, highest.to_bytes())


def _noted(journal: Journal, subject: str) -> Mark | None:
    found = journal.highest_mark(_prefix(subject))
    return None if found is None else Mark.from_bytes(found)


def _records(journal: Journal) -> int:
    """Without any note, of whatever subject: so many answers are kept that were charged."""
    return 0 if journal.highest_mark("") is not None else journal.count(_RELEASES)


def _prefix(subject: str) -> str:
    return sha256(subject.encode()).hexdigest()[:32] + "-"
