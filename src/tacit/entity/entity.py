"""An entity: beside one organisation's users, with their rows in its memory, a ledger in its file and a journal beside that.

    entity = Entity(rows, "hospital.db", name="north", key=key, coordinator=pinned, catalogue=items)
    reply = entity.answer(message)         # to each message of the coordinator's; None where nothing is to be sent
    fit = entity.fit()                     # with the shared model, once it has come; stays inside

Messages are bytes, and may travel by any means: each is signed, and checked before anything is done. What an entity answers it
answers once: the same message gets the same bytes, also after a restart, and another message for the same stage gets none.
"""

import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from tacit.entity.account import SUBJECT, EntityAccount
from tacit.entity.blend import BlendedFit
from tacit.entity.fitting import Tuning, fit_model
from tacit.entity.journal import MANIFEST, MODEL, Journal, Record
from tacit.entity.local_fit import LocalFit
from tacit.entity.policy import Policy
from tacit.entity.rows import PrivateRows, Rows
from tacit.entity.stages import LAST_SECRET, Stages
from tacit.entity.uploads import all_guarantees
from tacit.errors import Conflict, InvalidMessage, InvalidParameter
from tacit.ledger import Accounting, Budget, PrivacyLedger, Statement
from tacit.ledger.clock import Clock, as_text, now
from tacit.ledger.stores import Target, is_postgresql
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.federated_prototypes_frame import Frame, open_frame, public_of
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.messages.federated_prototypes_replies import entry_of
from tacit.messages.federated_prototypes_roster import catalogue_hash, entity_name
from tacit.messages.federated_prototypes_steps import Step
from tacit.messages.federated_prototypes_terms import Mechanism
from tacit.messages.private_slates_parts import Item

_FOLDER = ".runs"


class Entity:
    """``rows``: users x items in the order of the ``catalogue`` (dense or sparse), Ratings, {user: {item: value}}, triples of user,
    item and value, or a function that gives one of these when they are first needed. ``users``: an id for each row of a table;
    rows of the same user are added up.

    ``key`` signs replies (32 bytes, Ed25519); ``coordinator`` is the public key that every message must be signed with. ``budget``
    is what all runs together may cost the users; it is agreed when the ledger is first opened, and never changes. ``policy`` is
    what a single run may ask for. The ``journal`` is a folder beside the ledger's file, unless it is named; lose neither.
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
        noise: Noise = SYSTEM_NOISE,
        clock: Clock = now,
    ) -> None:
        self.name, self._key, self._public = entity_name(name), bytes(key), public_of(key)
        self._coordinator = bytes(coordinator)
        self._items, self._catalogue = len(catalogue), catalogue_hash(catalogue)
        self._policy, self._noise, self._clock = policy or Policy(), noise, clock
        self._rows = PrivateRows(rows, catalogue, users)
        self._journal = Journal(_folder(ledger) if journal is None else journal)
        self._account = EntityAccount(ledger, subject, budget, accounting, unprotected, clock)

    def __repr__(self) -> str:
        return f"Entity({self.name!r})"

    def answer(self, message: bytes) -> bytes | None:
        """The signed reply to a message of the coordinator's: drawn and charged the first time, after that the same bytes.

        None where nothing is to be sent: to a receiver's manifest, and to the model, which is kept. Raises, and has then sent
        nothing: InvalidMessage for what is not signed by the coordinator or no message of a known run, GuaranteeRefused and
        BudgetExhausted where policy or budget do not allow the run, Conflict for a stage that was answered to another message.
        """
        frame = open_frame(message)
        frame.verify(self._coordinator)
        kind = frame.header.get("kind")
        if kind == "manifest":
            return self._join(message, frame)
        manifest = self._manifest(frame.header.get("run"))
        if kind == "step":
            return self._step(manifest, frame)
        if kind == "model":
            self._keep(manifest, message, frame)
            return None
        raise InvalidMessage("expected a manifest, a step or a model.")

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
        for known in reversed(self._journal.runs()) if run is None else [run]:
            record = self._journal.read(known, MODEL)
            if record is not None:
                manifest = self._manifest(known)
                return manifest, SharedModel.from_frame(open_frame(record.reply), manifest)
        raise InvalidParameter("no model has come yet: give the coordinator's last message to `answer` first.")

    def table(self) -> sparse.csr_array:
        """Users x items, as the mechanisms read them. Private."""
        return self._rows.table()

    def users(self) -> list[Any]:
        """Whose rows they are, in their order. Private."""
        return self._rows.ids()

    def statement(self) -> Statement:
        """What was charged to the users' budget, and what is left."""
        return self._account.statement()

    def close(self) -> None:
        self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _join(self, message: bytes, frame: Frame) -> bytes | None:
        manifest = Manifest.from_frame(frame, self._coordinator)
        self._require_known(manifest)
        me = manifest.member(self.name)
        if self._journal.read(manifest.run, MANIFEST) is None:
            self._require_in_time(manifest)
            self._policy.require(manifest)
            if me is not None and me.contributes:
                # Before the first charge: all numbers of all stages, and room for all of them.
                self._account.require_room(all_guarantees(manifest, self._noise))
            self._journal.write(manifest.run, MANIFEST, Record(frame.digest, message))
        if me is None or not me.contributes:
            return None
        return self._answered(manifest, manifest.stages[0], frame, None)

    def _step(self, manifest: Manifest, frame: Frame) -> bytes:
        step = Step.from_frame(frame, manifest)
        me = manifest.member(self.name)
        if step.to != self.name or me is None or not me.contributes:
            raise InvalidMessage("this step is for another entity.")
        return self._answered(manifest, step.stage, frame, step)

    def _answered(self, manifest: Manifest, stage: str, frame: Frame, step: Step | None) -> bytes:
        asked = frame.digest
        record = self._journal.read(manifest.run, stage)
        if record is None:
            place = manifest.stages.index(stage)
            before = self._journal.read(manifest.run, manifest.stages[place - 1]) if place else None
            if place and before is None:
                raise InvalidMessage("this step comes before an earlier one was answered.")
            if self._journal.read(manifest.run, MODEL) is not None:
                raise Conflict("this run is over: its model has come, and the secrets of its sums are deleted.")
            self._policy.require(manifest)
            first = self._journal.read(manifest.run, manifest.stages[0])
            session = "" if first is None else sha256(first.reply).hexdigest()
            stages = Stages(manifest, self.name, self._key, self._account, self._rows, self._noise)
            record = self._journal.write(manifest.run, stage, stages.answer(stage, asked, step, before, session))
        if record.message != asked:
            raise Conflict("this stage of the run was answered before, to another message. It is answered once.")
        if manifest.is_secure:
            self._account.require_first(f"{entry_of(manifest, stage)} sent", record.reply)
        if stage == LAST_SECRET:
            self._journal.forget_secrets(manifest.run)
        return record.reply

    def _keep(self, manifest: Manifest, message: bytes, frame: Frame) -> None:
        model = SharedModel.from_frame(frame, manifest)
        record = Record(frame.digest, message)
        standing = self._journal.write(manifest.run, MODEL, record)
        if standing.message != record.message:
            older = SharedModel.from_frame(open_frame(standing.reply), manifest)
            if model.number == older.number:
                raise Conflict(
                    "another model with this number came before: ask the other entities for the hash of theirs."
                )
            if model.number > older.number:
                self._journal.replace(manifest.run, MODEL, record)
        self._journal.forget_secrets(manifest.run)

    def _manifest(self, run: object) -> Manifest:
        record = self._journal.read(run, MANIFEST) if isinstance(run, str) else None
        if record is None:
            raise InvalidMessage("this message is of a run whose manifest this entity has not seen.")
        manifest = Manifest.from_frame(open_frame(record.reply), self._coordinator)
        self._require_known(manifest)
        return manifest

    def _require_in_time(self, manifest: Manifest) -> None:
        """What comes after the deadline is discarded: its budget would be spent for nothing."""
        if manifest.deadline is not None and as_text(self._clock())[:19] >= manifest.deadline[:19]:
            raise InvalidMessage("the deadline of this run is past. Nothing was charged and nothing is sent.")

    def _require_known(self, manifest: Manifest) -> None:
        if (manifest.catalogue, manifest.items) != (self._catalogue, self._items):
            raise InvalidMessage(
                "the run is over another catalogue: item ids, or their order, differ from this entity's."
            )
        me = manifest.member(self.name)
        if me is None or me.key != self._public.hex():
            raise InvalidMessage("the roster does not name this entity with its key.")


def _folder(ledger: Target | PrivacyLedger) -> Path:
    if isinstance(ledger, PrivacyLedger) or is_postgresql(ledger):
        raise InvalidParameter("name a folder for the journal: journal='hospital.runs'.")
    return Path(f"{os.fspath(ledger)}{_FOLDER}")
