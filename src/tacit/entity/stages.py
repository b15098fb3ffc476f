"""The answer of a contributor to each stage: a release of its rows, or a message of the secure sum. Nothing is written here."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.entity.account import EntityAccount
from tacit.entity.journal import Record
from tacit.entity.masking import SecureParty
from tacit.entity.rows import PrivateRows
from tacit.entity.uploads import packed, unpacked, upload_of
from tacit.errors import InvalidMessage
from tacit.mechanisms import Noise
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_replies import BODY, Reply, entry_of, shapes
from tacit.messages.federated_prototypes_secure import unpack
from tacit.messages.federated_prototypes_steps import Step
from tacit.models.moments import triangle
from tacit.models.secure_sum import SumSession

RELEASES = ("prototypes", "popularity", "gram")
LAST_SECRET = "unmask-gram"


@dataclass(frozen=True)
class Stages:
    """One contributor in one run. ``asked`` is the digest of the message that is answered: a stage is answered once."""

    manifest: Manifest
    name: str
    key: bytes = field(repr=False)
    account: EntityAccount = field(repr=False)
    rows: PrivateRows = field(repr=False)
    noise: Noise = field(repr=False)

    def answer(self, stage: str, asked: str, step: Step | None, before: Record | None, session: str) -> Record:
        """The record of a stage: the signed reply, and the state that the next one needs.

        ``before`` is the record of the stage before, ``session`` what stands for the secrets that were drawn in the first one.
        """
        if self.manifest.is_secure:
            reply, state = self._secure(stage, f"{asked} {session}", step, before)
        else:
            reply, state = self._open(stage, asked, step), b""
        return Record(asked, reply.signed(self.key, self.manifest), state)

    def _open(self, stage: str, asked: str, step: Step | None) -> Reply:
        head = None if step is None else step.head
        content = self._released(stage, asked, head)
        forms = shapes(self.manifest, stage, 0 if head is None else len(head)) or {}
        return Reply(stage, self.name, entry_of(self.manifest, stage, self.name), unpacked(content, forms))

    def _secure(self, stage: str, asked: str, step: Step | None, before: Record | None) -> tuple[Reply, bytes]:
        party = self._party(before)
        body = self._message(party, stage, asked, step)
        state = b"" if stage == LAST_SECRET else party.to_bytes()
        entry = entry_of(self.manifest, stage, self.name) if stage in RELEASES else ""
        return Reply(stage, self.name, entry, {BODY: np.frombuffer(body, dtype=np.uint8)}), state

    def _message(self, party: SecureParty, stage: str, asked: str, step: Step | None) -> bytes:
        if stage == "keys":
            return party.keys_message
        if step is None:
            raise InvalidMessage("a stage after the first is opened by a step of the coordinator's.")
        passed_on = step.body or b""
        if stage == "shares":
            return party.shares_message(unpack(passed_on))
        if stage.startswith("unmask-"):
            survivors = unpack(passed_on)
            if any(survivors.values()):
                raise InvalidMessage("survivors are named, and nothing is said of them.")
            return party.unmask(survivors, stage.removeprefix("unmask-"))
        if stage == "popularity":
            party.receive(unpack(passed_on))
        # All that can be refused is refused before anything is charged.
        content = self._released(stage, asked, step.head)
        length = self.manifest.items if step.head is None else triangle(len(step.head))
        return party.masked(np.frombuffer(content, "<i8", length).astype(np.int64), stage)

    def _released(self, stage: str, asked: str, head: NDArray[np.int64] | None) -> bytes:
        """Charged, drawn and kept in the ledger; the same bytes ever after."""
        upload = upload_of(self.manifest, stage, head, self.noise)
        table = (
            self.rows.table()
        )  # a file that is missing, a table of another shape: found out before anything is charged
        return self.account.release(
            entry_of(self.manifest, stage, self.name), asked, upload.guarantee, lambda: packed(upload.draw(table))
        )

    def _party(self, before: Record | None) -> SecureParty:
        session = session_of(self.manifest)
        if before is None:
            return SecureParty.start(session, self.name, self.key)
        return SecureParty.from_bytes(before.state, session, self.key)


def session_of(manifest: Manifest) -> SumSession:
    roster = {one.name: bytes.fromhex(one.key) for one in manifest.contributors}
    return SumSession(manifest.run, roster, manifest.fewest or 0, manifest.colluding or 0)
