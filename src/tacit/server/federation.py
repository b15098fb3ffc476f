"""The coordinator of a federation: signs the manifest, collects one reply of each entity in each stage, and makes the model.

    run = Federation(manifest, key)
    while not run.done:
        for entity, message in run.outgoing().items():
            run.accept(send(entity, message))              # by any means; every message is bytes, signed
        run.advance()                                      # when all have replied, or the deadline is past
    run.outgoing()                                         # the model, to all

It draws nothing and keeps no time: the same replies, closed at the same points, give the same messages. So a coordinator that died
is rebuilt from the replies it had stored. It sees what entities release, under secure aggregation no more than sums.
"""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import InvalidParameter, TooFewEntities
from tacit.guarantees import Guarantee
from tacit.messages.federated_prototypes_frame import public_of
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.messages.federated_prototypes_replies import Code, Refused, read_reply, read_sender
from tacit.messages.federated_prototypes_terms import Mechanism
from tacit.server.federation_runs import MaskedSums, MomentsRun, OpenSums, PrototypeRun

MODEL, GIVEN_UP = "model", "given-up"


class Status(StrEnum):
    ACCEPTED = "accepted"
    REPEATED = "repeated"  # the same bytes were accepted before
    REJECTED = "rejected"


class Verdict(NamedTuple):
    """What became of a reply. ``code`` says why it was rejected; the sender is named once its signature was found good."""

    status: Status
    entity: str | None = None
    stage: str | None = None
    code: Code | None = None
    detail: str | None = None

    def __bool__(self) -> bool:
        return self.status is not Status.REJECTED


class Federation:
    """The state of one run. ``key`` is the private key that belongs to the manifest's ``coordinator``."""

    def __init__(self, manifest: Manifest, key: bytes) -> None:
        if public_of(key).hex() != manifest.coordinator:
            raise InvalidParameter(
                "the manifest names another coordinator: its public key does not belong to this key."
            )
        self.manifest, self._key = manifest, bytes(key)
        self.stage, self.model = manifest.stages[0], None  # type: str, SharedModel | None
        self._run = _run_of(manifest)
        self._expected = tuple(one.name for one in manifest.contributors)
        self._replies: dict[tuple[str, str], bytes] = {}  # by entity and stage: the hash of what was accepted
        self._steps: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return (
            f"Federation({self.manifest.mechanism}, {self.stage}: {len(self.replied)} of {len(self._expected)} replied)"
        )

    @property
    def done(self) -> bool:
        """Whether the run is over: with a model, or given up."""
        return self.stage in (MODEL, GIVEN_UP)

    @property
    def expected(self) -> tuple[str, ...]:
        """Those who may reply in this stage."""
        return () if self.done else self._expected

    @property
    def replied(self) -> tuple[str, ...]:
        """Those whose reply of this stage was accepted."""
        return tuple(name for name in self.expected if (name, self.stage) in self._replies)

    @property
    def missing(self) -> tuple[str, ...]:
        """Who has not replied in this stage."""
        return tuple(name for name in self.expected if (name, self.stage) not in self._replies)

    @property
    def guarantee(self) -> Guarantee:
        """What the run promises to a user."""
        return self.manifest.guarantee

    def outgoing(self) -> dict[str, bytes]:
        """The message of this stage for each entity: the manifest to all, then steps to those who are left, the model to all."""
        everybody = [one.name for one in self.manifest.roster]
        if self.stage == GIVEN_UP:
            return {}
        if self.model is not None:
            return dict.fromkeys(everybody, self.model.signed(self._key))
        if self.stage == self.manifest.stages[0]:
            return dict.fromkeys(everybody, self.manifest.signed(self._key))
        if self._steps is None:
            self._steps = {to: self._run.step(self.stage, to).signed(self._key) for to in self._expected}
        return dict(self._steps)

    def accept(self, reply: bytes) -> Verdict:
        """Takes a reply, or says why not. Whatever the bytes are, it raises nothing and is as it was if they are rejected."""
        entity = stage = None
        try:
            frame, entity, stage = read_sender(reply, self.manifest)
            digest, known = sha256(reply).digest(), self._replies.get((entity, stage))
            if known is not None:
                if known == digest:
                    return Verdict(Status.REPEATED, entity, stage)
                raise Refused(Code.CONFLICT)
            self._require_open(entity, stage)
            self._run.take(read_reply(frame, self.manifest, self._run.head))
        except Refused as refusal:
            return Verdict(Status.REJECTED, entity, stage, refusal.reason, refusal.detail)
        self._replies[entity, stage] = digest
        return Verdict(Status.ACCEPTED, entity, stage)

    def advance(self) -> str:
        """Closes the stage with the replies that are there; returns the next one. Later replies are discarded.

        Raises TooFewEntities as long as too few have replied: nothing was unmasked, and nothing has changed.
        """
        if self.done:
            return self.stage
        replied = self.replied
        if len(replied) < self.manifest.needed:
            raise TooFewEntities(
                f"{len(replied)} of {len(self._expected)} entities have replied in the stage '{self.stage}', and the manifest asks "
                f"for {self.manifest.needed}: nothing was unmasked. Wait for more, or give the run up."
            )
        following = self._run.close(self.stage, replied)
        self._expected, self._steps = replied, None
        self.stage, self.model = (following, None) if isinstance(following, str) else (MODEL, following)
        return self.stage

    def give_up(self) -> str:
        """Ends a run that cannot go on. What was released stays spent; if the popularity is known, it is still sent to all."""
        if not self.done:
            self.model = self._run.without_gram(len(self._expected)) if isinstance(self._run, MomentsRun) else None
            self.stage = GIVEN_UP if self.model is None else MODEL
        return self.stage

    def combine(self, replies: Iterable[bytes]) -> SharedModel:
        """The model of a run of prototypes, from all replies at once. Those that are rejected are left out."""
        if self.manifest.mechanism is Mechanism.MOMENTS:
            raise InvalidParameter("'moments' has several stages: use outgoing, accept and advance.")
        for reply in replies:
            self.accept(reply)
        self.advance()
        if self.model is None:
            raise TooFewEntities("the run was given up.")
        return self.model

    def influence(self) -> dict[str, float]:
        """How far the model moves without each entity, as a part of its size, where replies can be seen.

        Of prototypes: the factors. Of 'moments' without secure aggregation: the mean popularity, the head or the mean Gram matrix
        of the pseudo-rows, whichever moves most. An entity far above the rest deserves a look.
        """
        return self._run.influence()

    def _require_open(self, entity: str, stage: str) -> None:
        order = self.manifest.stages
        current = len(order) if self.done else order.index(self.stage)
        if order.index(stage) < current:
            raise Refused(Code.LATE)
        if order.index(stage) > current:
            raise Refused(Code.EARLY)
        if entity not in self._expected:
            raise Refused(Code.LEFT)


def _run_of(manifest: Manifest) -> PrototypeRun | MomentsRun:
    if manifest.mechanism is not Mechanism.MOMENTS:
        return PrototypeRun(manifest)
    return MomentsRun(manifest, MaskedSums(manifest) if manifest.is_secure else OpenSums())
