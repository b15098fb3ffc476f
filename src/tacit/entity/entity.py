"""An entity: beside one organisation's users, with their rows in its memory, a ledger in its file and a journal beside that.

    entity = Entity(rows, "hospital.db", name="north", key=key, coordinator=pinned, catalogue=items, budget=budget)
    reply = entity.answer(message)         # to each message of the coordinator's; None where nothing is to be sent
    fit = entity.fit()                     # with the shared model, once it has come; stays inside

Messages are bytes, and may travel by any means: each is signed, and checked before anything is done. What an entity answers it
answers once: the same message gets the same bytes, also after a restart, and another message for the same stage gets none.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from tacit.checks import several
from tacit.entity.account import SUBJECT, EntityAccount
from tacit.entity.blend import BlendedFit
from tacit.entity.fitting import Tuning, fit_model
from tacit.entity.journal import Journal
from tacit.entity.local_fit import LocalFit
from tacit.entity.outlook import Outlook
from tacit.entity.policy import Policy
from tacit.entity.rows import PrivateRows, Rows
from tacit.entity.runs import Runs
from tacit.errors import InvalidParameter
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger, Statement
from tacit.ledger.clock import Clock, now
from tacit.ledger.stores import Target, is_postgresql
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.mechanisms.noise import checked_noise
from tacit.messages.federated_prototypes_frame import KEY_BYTES, open_frame, public_of
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.messages.federated_prototypes_roster import catalogue_hash, entity_name
from tacit.messages.federated_prototypes_terms import Mechanism
from tacit.messages.private_slates_parts import Item

_FOLDER = ".runs"


class Entity:
    """``rows``: users x items in the order of the ``catalogue`` (dense or sparse), Ratings, {user: {item: value}}, triples of user,
    item and value, or a function that gives one of these when they are first needed. ``users``: an id for each row of a table;
    rows of the same user are added up.

    ``key`` signs replies (32 bytes, Ed25519); ``coordinator`` is the public key that every message must be signed with. ``budget``
    is what all runs together may cost the users; it is agreed when the ledger is first opened, and never changes. A ledger's file
    that is missing is made for a budget that is stated, and not without: a lost one must not look like a fresh budget. With a
    ``head`` that was noted elsewhere, a file that is missing or older is refused. ``policy`` is what a single run may ask for. The
    ``journal`` is a folder beside the ledger's file, unless it is named; lose neither.
    """

    def __init__(
        self,
        rows: Rows,
        ledger: Target | PrivacyLedger,
        *,
        name: str,
        key: bytes,
        coordinator: bytes,
        catalogue: Sequence[Item],
        users: Sequence[Any] | None = None,
        budget: Budget | Sequence[Budget] | None = None,
        accounting: Accounting | str | None = None,
        unprotected: Iterable[str] = (),
        policy: Policy | None = None,
        journal: str | os.PathLike[str] | None = None,
        subject: str = SUBJECT,
        head: Head | None = None,
        noise: Noise = SYSTEM_NOISE,
        clock: Clock = now,
    ) -> None:
        self.name, self._noise = entity_name(name), checked_noise(noise)
        public_of(key)  # refuses what is no key
        if len(coordinator) != KEY_BYTES:
            raise InvalidParameter(f"the coordinator's public key is {KEY_BYTES} bytes.")
        if head is not None and isinstance(ledger, PrivacyLedger):
            raise InvalidParameter("this ledger is open already: give its head to PrivacyLedger.open(..., head=head).")
        catalogue = several("a catalogue", catalogue)
        self._rows = PrivateRows(rows, catalogue, users)
        place = Journal(_folder(ledger) if journal is None else journal)
        catalogue_id = catalogue_hash(catalogue)
        self._account = EntityAccount(
            ledger, subject, budget, accounting, unprotected, clock, entity=self.name, head=head
        )
        self._runs = Runs(
            self.name,
            bytes(key),
            bytes(coordinator),
            catalogue_id,
            len(catalogue),
            policy or Policy(),
            self._rows,
            self._account,
            place,
            noise,
            clock,
        )

    def __repr__(self) -> str:
        return f"Entity({self.name!r})"

    def answer(self, message: bytes) -> bytes | None:
        """The signed reply to a message of the coordinator's: drawn and charged the first time, after that the same bytes.

        None where nothing is to be sent: to a receiver's manifest, and to the model, which is kept. Raises, and has then sent
        nothing: InvalidMessage for what is not signed by the coordinator or no message of a known run, GuaranteeRefused and
        BudgetExhausted where policy or budget do not allow the run, Conflict for a stage that was answered to another message.
        """
        return self._runs.answer(message)

    def outlook(self, manifest: bytes) -> Outlook:
        """What a signed manifest asks for: with whom, at what cost, and whether it would be refused. Charges nothing."""
        self._runs.require_ledger()
        return self._runs.outlook(manifest)

    def release(self, manifest: bytes) -> bytes:
        """The prototypes of this entity's users, for a signed manifest of 'grid' or 'tree': all that such a run asks of it."""
        frame = open_frame(manifest)
        if frame.header.get("kind") != "manifest" or frame.header.get("mechanism") == Mechanism.MOMENTS.value:
            raise InvalidParameter("release takes a signed manifest of 'grid' or 'tree'; 'moments' goes by `answer`.")
        reply = self.answer(manifest)
        if reply is None:
            raise InvalidParameter("this entity is a receiver in this run: it sends nothing.")
        return reply

    def fit(
        self,
        model: bytes | None = None,
        *,
        run: str | None = None,
        tuning: Tuning | None = None,
        rng: np.random.Generator | None = None,
    ) -> LocalFit | BlendedFit:
        """The local fit, with or without the shared model as the gate decides on held-out cells. All of it stays inside.

        ``model`` is the coordinator's message, if it was not answered before; else the newest run's model is used, or ``run``'s.
        """
        if model is not None:
            self.answer(model)
            run = open_frame(model).header["run"]
        manifest, shared = self.shared(run)
        rng = np.random.default_rng() if rng is None else rng
        return fit_model(self._rows.table(), manifest, shared, tuning or Tuning(), rng=rng, noise=self._noise)

    def shared(self, run: str | None = None) -> tuple[Manifest, SharedModel]:
        """The manifest and the model of a run, by default of the newest that has one."""
        found = self._runs.model(run)
        if found is not None:
            return found
        raise InvalidParameter("no model has come yet: give the coordinator's last message to `answer` first.")

    def leave(self, run: str) -> None:
        """Ends a run for this entity: its secrets are deleted, and nothing new is answered. For a run that was given up.

        It needs no budget, so it works beside an old ledger, too.
        """
        self._runs.leave(run)

    def table(self) -> sparse.csr_array:
        """Users x items, as the mechanisms read them. Private."""
        return self._rows.table()

    def users(self) -> list[Any]:
        """Whose rows they are, in their order. Private."""
        return self._rows.ids()

    def statement(self) -> Statement:
        """What was charged to the users' budget, and what is left. A ledger older than the journal does not know: Conflict."""
        self._runs.require_ledger()
        return self._account.statement()

    def head(self) -> Head:
        """How far the ledger has come. Note it elsewhere after a run; given to the next start, it refuses an older copy."""
        return self._account.ledger.head()

    def close(self) -> None:
        """Closes the ledger, if this entity opened it."""
        self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _folder(ledger: Target | PrivacyLedger) -> Path:
    if isinstance(ledger, PrivacyLedger) or is_postgresql(ledger):
        raise InvalidParameter("name a folder for the journal: journal='hospital.runs'.")
    return Path(f"{os.fspath(ledger)}{_FOLDER}")
