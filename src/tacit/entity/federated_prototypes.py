"""An entity's part in federated prototypes: which message it answers, that it answers once, and what it releases.

`Runs` checks a message and looks into the journal; `Contributor` makes the answer of a stage; `upload_of` names the mechanism, its
guarantee and the release of a stage.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.entity.account import EntityAccount
from tacit.entity.journal import LEFT, MANIFEST, MODEL, RELEASES, Journal, Record, note, require_reached
from tacit.entity.policy import Outlook, Policy
from tacit.entity.rows import PrivateRows
from tacit.entity.secure_sum import SecureParty
from tacit.errors import Conflict, InvalidMessage, InvalidParameter, TacitError
from tacit.guarantees import Guarantee, Loss, Release, epsilon_of_rho
from tacit.guarantees.arithmetic import up
from tacit.guarantees.concentrated import epsilon_within
from tacit.ledger.budgets import NOTHING_SPENT
from tacit.ledger.chain import as_text
from tacit.mechanisms.grid_prototypes import GridPrototypes, GridShares
from tacit.mechanisms.inputs import ProfileBounds
from tacit.mechanisms.moment_shares import GramShare, PopularityShare
from tacit.mechanisms.noise import Noise, promised
from tacit.mechanisms.sparse_recovery import Prototypes
from tacit.mechanisms.tree_prototypes import TreePrototypes
from tacit.messages.federated_prototypes.frame import Frame, open_frame, public_of
from tacit.messages.federated_prototypes.manifest import Manifest
from tacit.messages.federated_prototypes.replies import BODY, Reply, SharedModel, Step, entry_of, shapes
from tacit.messages.federated_prototypes.secure_sum import unpack
from tacit.messages.federated_prototypes.terms import Mechanism
from tacit.models.moments import triangle
from tacit.models.secure_sum import SumSession

Arrays: TypeAlias = dict[str, NDArray[Any]]

LAST_SECRET = "unmask-gram"


@dataclass(frozen=True, repr=False)
class Runs:
    """The runs of one entity. ``catalogue`` is the hash of its ``items`` items."""

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
        """The reply to one message; None if there is nothing to send. Everything wrong raises before anything is done."""
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
        """Deletes the secrets of a run and answers nothing new in it. It does not read the ledger, which may be lost."""
        self.manifest(run)
        self.journal.write(run, LEFT, Record("", b""))
        self.journal.forget_secrets(run)

    def model(self, run: str | None) -> tuple[Manifest, SharedModel] | None:
        """The manifest and the model of a run; for None, of the newest run with a model."""
        for known in reversed(self.journal.runs()) if run is None else [run]:
            record = self.journal.read(known, MODEL)
            if record is not None:
                manifest = self.manifest(known)
                return manifest, SharedModel.from_frame(open_frame(record.reply), manifest)
        return None

    def outlook(self, message: bytes) -> Outlook:
        """What a manifest asks of this entity. Charges, draws and keeps nothing."""
        frame = open_frame(message)
        manifest = Manifest.from_frame(frame, self.coordinator)
        refusal, cost = None, NOTHING_SPENT
        joined = self.journal.read(manifest.run, MANIFEST) is not None
        try:
            self._require_known(manifest)
            charges = self._charges(manifest)
            cost = self.account.cost(list(charges.values()))
            if not joined:
                self._require_allowed(manifest, charges)
        except TacitError as problem:
            refusal = str(problem)
        known = frozenset(member.name for member in manifest.roster if self.policy.knows(member, self.name))
        return Outlook(manifest, known, cost, self.account.statement(), joined, refusal)

    def _charges(self, manifest: Manifest) -> dict[str, Guarantee]:
        """The guarantees of all that this entity would release in a run, by stage."""
        me = manifest.member(self.name)
        return all_guarantees(manifest, self.noise) if me is not None and me.contributes else {}

    def _require_allowed(self, manifest: Manifest, charges: Mapping[str, Guarantee]) -> None:
        """Checks deadline, policy and the room for all stages, before the first charge.

        Stages that the ledger charged before, for a journal that was lost, need no room a second time.
        """
        if manifest.deadline is not None and as_text(self.clock())[:19] >= manifest.deadline[:19]:
            # The coordinator would discard the answer, and its budget would be wasted.
            raise InvalidMessage("the deadline of this run is past. Nothing was charged and nothing is sent.")
        self.policy.require(manifest, self.name)
        by_entry = {entry_of(manifest, stage, self.name): guarantee for stage, guarantee in charges.items()}
        paid = self.account.charged(by_entry.keys())
        self.account.require_left([guarantee for entry, guarantee in by_entry.items() if entry not in paid])

    def _join(self, message: bytes, frame: Frame) -> bytes | None:
        manifest = Manifest.from_frame(frame, self.coordinator)
        self._require_known(manifest)
        me = manifest.member(self.name)
        if self.journal.read(manifest.run, MANIFEST) is None:
            self._require_allowed(manifest, self._charges(manifest))
            self.journal.write(manifest.run, MANIFEST, Record(frame.digest, message))
        if me is None or not me.contributes:
            return None
        return self._answer(manifest, manifest.stages[0], frame, None)

    def _step(self, manifest: Manifest, frame: Frame) -> bytes:
        step = Step.from_frame(frame, manifest)
        me = manifest.member(self.name)
        if step.to != self.name or me is None or not me.contributes:
            raise InvalidMessage("this step is for another entity.")
        return self._answer(manifest, step.stage, frame, step)

    def require_ledger(self) -> None:
        """Raises Conflict if the ledger is older than the journal, before anything is answered or sent again."""
        require_reached(self.journal, self.account.subject, self.account.mark, self.account.charged)

    def _note(self, entry: str) -> None:
        note(self.journal, self.account.subject, self.account.mark(), self.account.charged([entry]))

    def _answer(self, manifest: Manifest, stage: str, frame: Frame, step: Step | None) -> bytes:
        digest, entry = frame.digest, entry_of(manifest, stage, self.name)
        record = self.journal.read(manifest.run, stage)
        if record is None:
            index = manifest.stages.index(stage)
            before = self.journal.read(manifest.run, manifest.stages[index - 1]) if index else None
            if index and before is None:
                raise InvalidMessage("this step comes too early: an earlier stage was not answered yet.")
            if any(self.journal.read(manifest.run, end) is not None for end in (MODEL, LEFT)):
                raise Conflict("this run is over for this entity: the secrets of its sums are deleted.")
            self.policy.require(manifest, self.name)
            first = self.journal.read(manifest.run, manifest.stages[0])
            session = "" if first is None else sha256(first.reply).hexdigest()
            contributor = Contributor(manifest, self.name, self.key, self.account, self.rows, self.noise)
            try:
                record = contributor.answer(stage, digest, step, before, session)
            finally:
                self._note(entry)  # also a charge whose draw failed
            record = self.journal.write(manifest.run, stage, record)
        if record.message != digest:
            raise Conflict("this stage of the run was answered before, to another message. It is answered once.")
        if manifest.is_secure:
            self.account.require_first(f"{entry} sent", record.reply)
        self._note(entry)
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
        """The manifest of a run that this entity has seen."""
        record = self.journal.read(run, MANIFEST) if isinstance(run, str) else None
        if record is None:
            raise InvalidMessage("this message belongs to a run whose manifest this entity has not seen.")
        manifest = Manifest.from_frame(open_frame(record.reply), self.coordinator)
        self._require_known(manifest)
        return manifest

    def _require_known(self, manifest: Manifest) -> None:
        if (manifest.catalogue, manifest.items) != (self.catalogue, self.items):
            raise InvalidMessage(
                "the run is over another catalogue: item ids, or their order, differ from this entity's."
            )
        me = manifest.member(self.name)
        if me is None or me.key != public_of(self.key).hex():
            raise InvalidMessage("the roster does not name this entity with its key.")


@dataclass(frozen=True)
class Contributor:
    """One contributor in one run: answers each stage with a release of its rows, or a message of the secure sum.

    It writes nothing to the journal. ``digest`` names the message that is answered: a stage is answered once.
    """

    manifest: Manifest
    name: str
    key: bytes = field(repr=False)
    account: EntityAccount = field(repr=False)
    rows: PrivateRows = field(repr=False)
    noise: Noise = field(repr=False)

    def answer(self, stage: str, digest: str, step: Step | None, before: Record | None, session: str) -> Record:
        """The record of a stage: the signed reply, and the state that the next stage needs.

        ``before`` is the record of the stage before; ``session`` stands for the secrets that were drawn in the first stage.
        """
        if self.manifest.is_secure:
            reply, state = self._secure(stage, f"{digest} {session}", step, before)
        else:
            reply, state = self._open(stage, digest, step), b""
        return Record(digest, reply.signed(self.key, self.manifest), state)

    def _open(self, stage: str, digest: str, step: Step | None) -> Reply:
        head = None if step is None else step.head
        content = self._release(stage, digest, head)
        forms = shapes(self.manifest, stage, 0 if head is None else len(head)) or {}
        return Reply(stage, self.name, entry_of(self.manifest, stage, self.name), unpack_arrays(content, forms))

    def _secure(self, stage: str, digest: str, step: Step | None, before: Record | None) -> tuple[Reply, bytes]:
        session = session_of(self.manifest)
        if before is None:
            party = SecureParty.start(session, self.name, self.key)
        else:
            party = SecureParty.from_bytes(before.state, session, self.key)
        body = self._message(party, stage, digest, step)
        state = b"" if stage == LAST_SECRET else party.to_bytes()
        entry = entry_of(self.manifest, stage, self.name) if stage in RELEASES else ""
        return Reply(stage, self.name, entry, {BODY: np.frombuffer(body, dtype=np.uint8)}), state

    def _message(self, party: SecureParty, stage: str, digest: str, step: Step | None) -> bytes:
        if stage == "keys":
            return party.keys_message
        if step is None:
            raise InvalidMessage("a stage after the first needs a step of the coordinator.")
        passed_on = step.body or b""
        if stage == "shares":
            return party.shares_message(unpack(passed_on))
        if stage.startswith("unmask-"):
            survivors = unpack(passed_on)
            if any(survivors.values()):
                raise InvalidMessage("a list of survivors has content besides their names.")
            return party.unmask(survivors, stage.removeprefix("unmask-"))
        if stage == "popularity":
            party.receive(unpack(passed_on))
        # Everything wrong raises before anything is charged.
        content = self._release(stage, digest, step.head)
        length = self.manifest.items if step.head is None else triangle(len(step.head))
        return party.masked(np.frombuffer(content, "<i8", length).astype(np.int64), stage)

    def _release(self, stage: str, digest: str, head: NDArray[np.int64] | None) -> bytes:
        """The release of a stage: charged, drawn and kept in the ledger; the same bytes when asked again."""
        upload = upload_of(self.manifest, stage, head, self.noise)
        table = self.rows.table()  # before the charge: a missing file or a wrong shape must not cost anything
        return self.account.release(
            entry_of(self.manifest, stage, self.name),
            digest,
            upload.guarantee,
            lambda: pack_arrays(upload.released(table)),
        )


def session_of(manifest: Manifest) -> SumSession:
    """The secure sum of a run."""
    roster = {member.name: bytes.fromhex(member.key) for member in manifest.contributors}
    return SumSession(manifest.run, roster, manifest.fewest or 0, manifest.colluding or 0)


@dataclass(frozen=True)
class Upload:
    """One release, ready to be charged: all public numbers are checked, no row has been read."""

    guarantee: Guarantee  # what is charged: it promises no more than the release does
    draw: Callable[[sparse.csr_array], Release[Arrays]] = field(repr=False)

    def released(self, rows: sparse.csr_array) -> Arrays:
        """The arrays, drawn. Raises InvalidGuarantee if the release promises less than what was charged for it."""
        return self.draw(rows).under(self.guarantee).value


def upload_of(manifest: Manifest, stage: str, head: NDArray[np.int64] | None, noise: Noise) -> Upload:
    """What an entity releases in a stage: the mechanism of the manifest, its guarantee, and its release as arrays.

    ``head`` is for the Gram matrix.
    """
    if stage == "prototypes":
        mechanism = prototype_mechanism(manifest)
        charge = promised(_charge_of(mechanism.guarantee, manifest), noise)
        return Upload(charge, lambda rows: mechanism.release(rows, noise).map(lambda drawn: _arrays(drawn, manifest)))
    if manifest.delta is None:
        raise InvalidParameter("moments need a delta.")
    popularity, gram = manifest.rhos
    share: PopularityShare | GramShare
    if stage == "popularity":
        share = PopularityShare(manifest.items, popularity, manifest.delta, manifest.honest)
    else:
        items = () if head is None else tuple(head.tolist())
        share = GramShare(manifest.items, items, gram, manifest.delta, manifest.honest)
    charge = promised(_charge_of(share.guarantee, manifest), noise)
    return Upload(charge, lambda rows: share.release(rows, noise).map(lambda drawn: {"steps": drawn.steps}))


def all_guarantees(manifest: Manifest, noise: Noise) -> dict[str, Guarantee]:
    """The guarantee of every release of the run, by stage. Raises if a mechanism cannot work with the manifest's numbers."""
    first = np.zeros(1, dtype=np.int64)
    stages = [stage for stage in manifest.stages if stage in RELEASES]
    return {stage: upload_of(manifest, stage, first, noise).guarantee for stage in stages}


def pack_arrays(arrays: Arrays) -> bytes:
    """The arrays of a release, one after the other: their types and shapes follow from the manifest."""
    return b"".join(np.ascontiguousarray(values).tobytes() for values in arrays.values())


def unpack_arrays(content: bytes, forms: dict[str, tuple[str, tuple[int, ...]]]) -> Arrays:
    """The arrays that `pack_arrays` wrote, in these forms."""
    arrays, start = {}, 0
    for name, (kind, shape) in forms.items():
        arrays[name] = np.frombuffer(content, f"<{kind}", int(np.prod(shape)), start).reshape(shape)
        start += arrays[name].nbytes
    return arrays


def prototype_mechanism(manifest: Manifest) -> GridPrototypes | TreePrototypes:
    """The mechanism of a manifest of 'grid' or 'tree'."""
    k, each, bound = manifest.k, manifest.items_each, manifest.value_bound
    if k is None or each is None or bound is None or manifest.depth is None:
        raise InvalidParameter("prototypes need k, items_each, value_bound and depth.")
    bounds = ProfileBounds(manifest.items, each, bound, manifest.l1_bound, manifest.l2_bound)
    if manifest.mechanism is Mechanism.TREE and manifest.delta is not None and manifest.lloyd is not None:
        epsilon = epsilon_within(manifest.epsilon, manifest.delta)
        return TreePrototypes(
            bounds, k, epsilon, manifest.delta, depth=manifest.depth, lloyd=manifest.lloyd, seed=manifest.seed
        )
    return GridPrototypes(
        bounds,
        k,
        manifest.epsilon,
        users=manifest.users,
        p=manifest.dimension,
        depth=manifest.depth,
        swaps=manifest.swaps,
        trials=manifest.trials or 1,
        picked=manifest.picked,
        shares=GridShares(*(manifest.shares or ())),
        seed=manifest.seed,
    )


def _arrays(prototypes: Prototypes, manifest: Manifest) -> Arrays:
    """The arrays of the wire: sizes, and the same number of cells for every prototype.

    A prototype that a tree did not use is sent as zeros of size 0.
    """
    forms = shapes(manifest, "prototypes") or {}
    bound = np.float32(manifest.value_bound or 0.0)
    sizes = np.nan_to_num(prototypes.sizes).astype(np.float32)
    if "index" not in forms:
        return {"sizes": sizes, "values": _clip(np.nan_to_num(prototypes.centres), bound)}
    # raises unless all have the same number of cells
    index = np.stack([np.flatnonzero(~np.isnan(row)) for row in prototypes.centres])
    values = np.take_along_axis(prototypes.centres, index, axis=1)
    return {"sizes": sizes, "index": index.astype(np.uint32), "values": _clip(values, bound)}


def _clip(values: NDArray[np.float64], bound: np.float32) -> NDArray[np.float32]:
    return np.clip(values.astype(np.float32), np.float32(0.0), bound)


def _charge_of(guarantee: Guarantee, manifest: Manifest) -> Guarantee:
    """What one of the q entities of a user charges, so that all q together charge what the run costs this user.

    With noise of their own, the q releases add up. With one noise for all, the user moves the sum q times as far, which costs
    q^2 rho: q rho in each entity. Both assume that a user is in no more than q entities.
    """
    each, stated = manifest.entities_each, guarantee.assuming(*manifest.guarantee.assumes)
    if each == 1 or not manifest.is_secure or stated.loss is None:
        return stated
    rho = up(Fraction(stated.loss.value) * each)
    return replace(stated, epsilon=epsilon_of_rho(rho, stated.delta), loss=Loss(stated.loss.kind, rho))
