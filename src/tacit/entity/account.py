"""An entity's account in its own ledger: one subject for all its users, and notes of what was sent in secure sums."""

import json
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from typing import Self

from tacit.entity.journal import Mark
from tacit.errors import Conflict, UnknownSubject
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger, Terms
from tacit.ledger.account import Account, Encoding, OtherRequest, Proposal, Wording
from tacit.ledger.chain import Clock, checked_name
from tacit.ledger.stores import Target

DEFAULT = Budget(epsilon=1.0, delta=1e-5)
SUBJECT = "users"
_NOTES = "messages of secure sums of"  # then the entity's name: two entities may share a ledger
_NOTHING = pure(0.0, ONE_USER, assumes=frozenset({"a masked message tells nothing of the rows"}))
_WORDING = Wording(
    "release",
    release_id="stage",
    data="rows",
    reused="this stage of the run was answered before: to another message, or from a journal that is lost. An entity answers a "
    "stage once.",
    retry="this entity is out of this run",
)


class EntityAccount(Account[str, bytes]):
    """An account whose requests are digests of the coordinator's messages."""

    _notes: str

    @classmethod
    def open(
        cls,
        ledger: Target | PrivacyLedger,
        subject: str,
        *,
        budget: Budget | Sequence[Budget] | None,
        accounting: Accounting | str | None,
        unprotected: Iterable[str],
        clock: Clock,
        entity: str,
        head: Head | None = None,
    ) -> Self:
        """The account of this entity's users. Raises Conflict if the ledger has other terms for them."""
        notes = checked_name("the entity's notes", f"{_NOTES} {entity}")
        proposal = Proposal(
            DEFAULT, budget, accounting, unprotected if isinstance(unprotected, str) else list(unprotected)
        )
        account = cls.agree(ledger, subject, proposal, wording=_WORDING, encoding=_ENCODING, clock=clock, head=head)
        account._notes = notes
        return account

    def require_first(self, note_id: str, content: bytes) -> None:
        """Notes in the ledger, at no cost, what was sent under this id; raises Conflict if something else was sent before.

        A journal may be lost, or come back from an old backup. Without the note an entity could then be made to answer a second
        time, and two answers of a secure sum can unmask a single entity.
        """
        self.ledger.enrol_many([self._notes], Terms.of(Budget(1.0), ONE_USER))
        digest = sha256(content).digest()
        if self.ledger.release(self._notes, note_id, _NOTHING, lambda: digest) != digest:
            raise Conflict(
                "another answer was sent in this stage of the run: it was not sent from the journal beside this ledger. "
                "Restore the right journal; without it this entity is out of this run."
            )

    def mark(self) -> Mark:
        """How far the ledger has come, for the journal beside it."""
        statement = self.statement()
        try:
            notes = self.ledger.statement(self._notes).charges
        except UnknownSubject:
            notes = 0
        return Mark(statement.charges, *statement.spent, notes)

    def charged(self, release_ids: Collection[str]) -> frozenset[str]:
        """Those of the ids that these users were charged for."""
        return self.ledger.charged(self.subject, release_ids)


def _pack(request: str, drawn: bytes | None) -> bytes:
    return json.dumps([request, drawn is not None]).encode() + b"\n" + (drawn or b"")


def _unpack(kept: bytes, request: str) -> bytes | None:
    head, _, payload = kept.partition(b"\n")
    answered, was_drawn = json.loads(head)
    if answered != request:
        raise OtherRequest
    return payload if was_drawn is True else None


_ENCODING = Encoding(_pack, _unpack)
