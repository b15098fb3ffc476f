"""The runs that an entity takes part in: which message is answered, and that it is answered once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from tacit.entity.account import EntityAccount
from tacit.entity.journal import LEFT, MANIFEST, MODEL, Journal, Record
from tacit.entity.marks import note, require_reached
from tacit.entity.outlook import Outlook
from tacit.entity.policy import Policy
from tacit.entity.rows import PrivateRows
from tacit.entity.stages import LAST_SECRET, Stages
from tacit.entity.uploads import all_guarantees
from tacit.errors import Conflict, InvalidMessage, TacitError
from tacit.guarantees import Guarantee
from tacit.ledger.amounts import NOTHING_SPENT
from tacit.ledger.clock import as_text
from tacit.mechanisms import Noise
from tacit.messages.federated_prototypes_frame import Frame, open_frame, public_of
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.messages.federated_prototypes_replies import entry_of
from tacit.messages.federated_prototypes_steps import Step


@dataclass(frozen=True, repr=False)
class Runs:
    """One entity's runs. ``catalogue`` is the hash of its items, of which there are ``items``."""

    name: str
    key: bytes
    coordinator: bytes
    catalogue: str
    items: int
    policy: Policy
    rows: PrivateRows
    account: EntityAccount
    journal: Journal
    noise: Noise
    clock: Callable[[], int]

    def answer(self, message: bytes) -> bytes | None:
        """The reply to one message; None where nothing is to be sent. What is wrong is refused before anything is done."""
        frame = open_frame(message)
        frame.verify(self.coordinator)
        kind = frame.header.get("kind")
        self.require_ledger()
        if kind == "manifest":
            return self._join(message, frame)
        manifest = self.manifest(frame.header.get("run"))
        if kind == "step":
            return self._step(manifest, frame)
        if kind == "model":
            self._keep(manifest, message, frame)
            return None
        raise InvalidMessage("expected a manifest, a step or a model.")

    def leave(self, run: str) -> None:
        """Deletes the secrets of a run; nothing new is answered in it. The ledger is not asked: it may be lost."""
        self.manifest(run)
        self.journal.write(run, LEFT, Record("", b""))
        self.journal.forget_secrets(run)

    def model(self, run: str | None) -> tuple[Manifest, SharedModel] | None:
        """The manifest and the model of a run, by default of the newest that has one."""
        for known in reversed(self.journal.runs()) if run is None else [run]:
            record = self.journal.read(known, MODEL)
            if record is not None:
                manifest = self.manifest(known)
                return manifest, SharedModel.from_frame(open_frame(record.reply), manifest)
        return None

    def outlook(self, message: bytes) -> Outlook:
        """What a manifest asks of this entity. Nothing is charged, drawn or kept."""
        frame = open_frame(message)
        manifest = Manifest.from_frame(frame, self.coordinator)
        refusal, cost = None, NOTHING_SPENT
        joined = self.journal.read(manifest.run, MANIFEST) is not None
        try:
            self._require_known(manifest)
            charged = self._charged(manifest)
            cost = self.account.cost(list(charged.values()))
            if not joined:
                self._require_allowed(manifest, charged)
        except TacitError as problem:
            refusal = str(problem)
        known = frozenset(one.name for one in manifest.roster if self.policy.knows(one, self.name))
        return Outlook(manifest, known, cost, self.account.statement(), joined, refusal)

    def _charged(self, manifest: Manifest) -> dict[str, Guarantee]:
        """All that this entity would release in a run, by its stage; refuses numbers that a mechanism cannot work with."""
        me = manifest.member(self.name)
        return all_guarantees(manifest, self.noise) if me is not None and me.contributes else {}

    def _require_allowed(self, manifest: Manifest, charged: Mapping[str, Guarantee]) -> None:
        """Before the first charge: policy, all numbers of all stages, and room for all of them.

        What the ledger has charged before, for a journal that is lost, needs no room a second time.
        """
        self._require_in_time(manifest)
        self.policy.require(manifest, self.name)
        by_entry = {entry_of(manifest, stage, self.name): guarantee for stage, guarantee in charged.items()}
        made = self.account.charged(by_entry.keys())
        self.account.require_room([guarantee for entry, guarantee in by_entry.items() if entry not in made])

    def _join(self, message: bytes, frame: Frame) -> bytes | None:
        manifest = Manifest.from_frame(frame, self.coordinator)
        self._require_known(manifest)
        me = manifest.member(self.name)
        if self.journal.read(manifest.run, MANIFEST) is None:
            self._require_allowed(manifest, self._charged(manifest))
            self.journal.write(manifest.run, MANIFEST, Record(frame.digest, message))
        if me is None or not me.contributes:
            return None
        return self._answered(manifest, manifest.stages[0], frame, None)

    def _step(self, manifest: Manifest, frame: Frame) -> bytes:
        step = Step.from_frame(frame, manifest)
        me = manifest.member(self.name)
        if step.to != self.name or me is None or not me.contributes:
            raise InvalidMessage("this step is for another entity.")
        return self._answered(manifest, step.stage, frame, step)

    def require_ledger(self) -> None:
        """Refuses a ledger that is older than the journal, before anything is answered, also what was answered before."""
        require_reached(self.journal, self.account.subject, self.account.mark, self.account.charged)

    def _noted(self, entry: str) -> None:
        note(self.journal, self.account.subject, self.account.mark(), self.account.charged([entry]))

    def _answered(self, manifest: Manifest, stage: str, frame: Frame, step: Step | None) -> bytes:
        asked, entry = frame.digest, entry_of(manifest, stage, self.name)
        record = self.journal.read(manifest.run, stage)
        if record is None:
            place = manifest.stages.index(stage)
            before = self.journal.read(manifest.run, manifest.stages[place - 1]) if place else None
            if place and before is None:
                raise InvalidMessage("this step comes before an earlier one was answered.")
            if any(self.journal.read(manifest.run, end) is not None for end in (MODEL, LEFT)):
                raise Conflict("this run is over for this entity: the secrets of its sums are deleted.")
            self.policy.require(manifest, self.name)
            first = self.journal.read(manifest.run, manifest.stages[0])
            session = "" if first is None else sha256(first.reply).hexdigest()
            stages = Stages(manifest, self.name, self.key, self.account, self.rows, self.noise)
            try:
                record = stages.answer(stage, asked, step, before, session)
            finally:
                self._noted(entry)  # a charge whose draw failed, too
            record = self.journal.write(manifest.run, stage, record)
        if record.message != asked:
            raise Conflict("this stage of the run was answered before, to another message. It is answered once.")
        if manifest.is_secure:
            self.account.require_first(f"{entry} sent", record.reply)
        self._noted(entry)
        if stage == LAST_SECRET:
            self.journal.forget_secrets(manifest.run)
        return record.reply

    def _keep(self, manifest: Manifest, message: bytes, frame: Frame) -> None:
        model = SharedModel.from_frame(frame, manifest)
        record = Record(frame.digest, message)
        standing = self.journal.write(manifest.run, MODEL, record)
        if standing.message != record.message:
            older = SharedModel.from_frame(open_frame(standing.reply), manifest)
            if model.number == older.number:
                raise Conflict(
                    "another model with this number came before: ask the other entities for the hash of theirs."
                )
            if model.number > older.number:
                self.journal.replace(manifest.run, MODEL, record)
        self.journal.forget_secrets(manifest.run)

    def manifest(self, run: object) -> Manifest:
        record = self.journal.read(run, MANIFEST) if isinstance(run, str) else None
        if record is None:
            raise InvalidMessage("this message is of a run whose manifest this entity has not seen.")
        manifest = Manifest.from_frame(open_frame(record.reply), self.coordinator)
        self._require_known(manifest)
        return manifest

    def _require_in_time(self, manifest: Manifest) -> None:
        """What comes after the deadline is discarded: its budget would be spent for nothing."""
        if manifest.deadline is not None and as_text(self.clock())[:19] >= manifest.deadline[:19]:
            raise InvalidMessage("the deadline of this run is past. Nothing was charged and nothing is sent.")

    def _require_known(self, manifest: Manifest) -> None:
        if (manifest.catalogue, manifest.items) != (self.catalogue, self.items):
            raise InvalidMessage(
                "the run is over another catalogue: item ids, or their order, differ from this entity's."
            )
        me = manifest.member(self.name)
        if me is None or me.key != public_of(self.key).hex():
            raise InvalidMessage("the roster does not name this entity with its key.")
