"""An entity: one organisation that holds its users' rows, with a ledger and a journal beside them.

    entity = Entity(rows, "hospital.db", name="north", key=key, coordinator=pinned, catalogue=items, budget=budget)
    reply = entity.answer(message)         # to each message of the coordinator; None if there is nothing to send
    fit = entity.fit()                     # with the shared model, once it has come; stays inside

Messages are bytes and may travel by any means: each is signed, and checked before anything is done. An entity answers each stage
once: the same message gets the same bytes, also after a restart, and another message for the same stage raises Conflict.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from tacit.checks import several
from tacit.entity.account import SUBJECT, EntityAccount
from tacit.entity.federated_prototypes import Runs
from tacit.entity.fit import BlendedFit, LocalFit, Tuning, fit_model
from tacit.entity.journal import Journal
from tacit.entity.policy import Outlook, Policy
from tacit.entity.rows import PrivateRows, Rows
from tacit.errors import InvalidParameter
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger, Statement
from tacit.ledger.chain import Clock, now
from tacit.ledger.stores import Target, is_postgresql
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.mechanisms.noise import checked_noise
from tacit.messages.federated_prototypes.frame import KEY_BYTES, open_frame, public_of
from tacit.messages.federated_prototypes.manifest import Manifest, catalogue_hash, entity_name
from tacit.messages.federated_prototypes.replies import SharedModel
from tacit.messages.federated_prototypes.terms import Mechanism
from tacit.messages.items import Item

_FOLDER = ".runs"


class Entity:
    """One organisation's part in federated runs.

    - ``rows``: users x items in the order of the ``catalogue`` (dense or sparse), Ratings, {user: {item: value}}, triples of user,
      item and value, or a function that returns one of these when they are first needed.
    - ``users``: an id for each row of a table; rows of the same user are added up.
    - ``key``: signs replies (32 bytes, Ed25519). ``coordinator``: the public key that must have signed every message.
    - ``budget``: what all runs together may cost the users. It is agreed when the ledger is first opened, and never changes. A
      missing ledger is created only if you state a budget: tacit never recreates a lost ledger, because that would hand the same
      people a fresh budget. With a ``head`` that you noted earlier, a missing or older file is refused.
    - ``policy``: what a single run may ask for.
    - ``journal``: a folder, by default beside the ledger's file. Lose neither.
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
        public_of(key)  # raises if it is not a key
        if len(coordinator) != KEY_BYTES:
            raise InvalidParameter(f"the coordinator's public key is {KEY_BYTES} bytes.")
        if head is not None and isinstance(ledger, PrivacyLedger):
            raise InvalidParameter("this ledger is open already: give its head to PrivacyLedger.open(..., head=head).")
        catalogue = several("a catalogue", catalogue)
        self._rows = PrivateRows(rows, catalogue, users)
        records = Journal(_folder(ledger) if journal is None else journal)
        catalogue_id = catalogue_hash(catalogue)
        self._account = EntityAccount.open(
            ledger,
            subject,
            budget=budget,
            accounting=accounting,
            unprotected=unprotected,
            clock=clock,
            entity=self.name,
            head=head,
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
            records,
            noise,
            clock,
        )

    def __repr__(self) -> str:
        return f"Entity({self.name!r})"

    def answer(self, message: bytes) -> bytes | None:
        """The signed reply to a message of the coordinator: charged and drawn the first time, after that the same bytes.

        Returns None if there is nothing to send: to the manifest as a receiver, and to the model, which is kept. After an error,
        nothing was sent: InvalidMessage if the coordinator did not sign the message or its run is unknown, GuaranteeRefused and
        BudgetExhausted if policy or budget do not allow the run, Conflict if the stage was answered to another message.
        """
        return self._runs.answer(message)

    def outlook(self, manifest: bytes) -> Outlook:
        """What a signed manifest asks for: with whom, at what cost, and why it would be refused, if so. Charges nothing."""
        self._runs.require_ledger()
        return self._runs.outlook(manifest)

    def release(self, manifest: bytes) -> bytes:
        """The prototypes of this entity's users, for a signed manifest of 'grid' or 'tree'. Such a run needs nothing else."""
        frame = open_frame(manifest)
        if frame.header.get("kind") != "manifest" or frame.header.get("mechanism") == Mechanism.MOMENTS.value:
            raise InvalidParameter("release takes a signed manifest of 'grid' or 'tree'; use `answer` for 'moments'.")
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
        """The local fit, with or without the shared model: the gate decides on held-out cells. All of it stays inside.

        ``model`` is the coordinator's message, if you have not given it to `answer` yet. Otherwise the model of ``run`` is used, or
        that of the newest run.
        """
        if model is not None:
            self.answer(model)
            run = open_frame(model).header["run"]
        manifest, shared = self.shared(run)
        rng = np.random.default_rng() if rng is None else rng
        return fit_model(self._rows.table(), manifest, shared, tuning or Tuning(), rng=rng, noise=self._noise)

    def shared(self, run: str | None = None) -> tuple[Manifest, SharedModel]:
        """The manifest and the model of a run; by default of the newest run with a model."""
        shared = self._runs.model(run)
        if shared is None:
            raise InvalidParameter("no model has come yet: give the coordinator's last message to `answer` first.")
        return shared

    def leave(self, run: str) -> None:
        """Ends a run for this entity: deletes its secrets and answers nothing new. Use it for a run that was given up.

        It needs no budget, so it also works beside an old copy of the ledger.
        """
        self._runs.leave(run)

    def table(self) -> sparse.csr_array:
        """Users x items, as the mechanisms read them. Private."""
        return self._rows.table()

    def users(self) -> list[Any]:
        """The users' ids, in the order of the rows. Private."""
        return self._rows.ids()

    def statement(self) -> Statement:
        """What was charged to the users' budget, and what is left. Raises Conflict if the ledger is older than the journal."""
        self._runs.require_ledger()
        return self._account.statement()

    def head(self) -> Head:
        """How far the ledger has come. Note it elsewhere after a run: given at the next start, it refuses an older copy."""
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
        raise InvalidParameter(
            "name a folder for the journal, journal='hospital.runs': only a ledger that is given as a file has a default."
        )
    return Path(f"{os.fspath(ledger)}{_FOLDER}")
