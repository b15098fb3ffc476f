"""The coordinator of a federation: signs the manifest, collects one reply per entity and stage, and makes the model.

    run = Federation(manifest, key)
    while not run.done:
        for entity, message in run.outgoing().items():
            run.accept(send(entity, message))              # over any transport; every message is signed bytes
        run.advance()                                      # when all have replied, or the deadline is past
    run.outgoing()                                         # the model, for every entity

The coordinator draws no random numbers except by the public seed, and keeps no time: the same replies, closed at the same
points, give the same messages. To recover from a crash, rebuild it from the stored replies. It sees only what entities release;
under secure aggregation, only sums. So nothing here costs privacy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import Conflict, InvalidMessage, InvalidParameter, TooFewEntities
from tacit.guarantees import Guarantee
from tacit.messages.federated_prototypes.frame import open_frame, public_of
from tacit.messages.federated_prototypes.manifest import Manifest
from tacit.messages.federated_prototypes.replies import Code, Refused, Reply, SharedModel, Step, read_reply, read_sender
from tacit.messages.federated_prototypes.secure_sum import pack
from tacit.messages.federated_prototypes.terms import Mechanism
from tacit.models.moments import SharedMoments, noise_sds, triangle
from tacit.models.nonnegative import Factorisation, ReleasedPrototypes, Stack
from tacit.models.secure_sum import SumSession
from tacit.server.secure_sums import (
    HeadChoice,
    SecureSums,
    choose_head,
    moments_influence,
    no_information,
    relative_change,
    shared_moments,
)

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

MODEL, GIVEN_UP = "model", "given-up"
_INFLUENCE_EPOCHS = 5


class ReplyStatus(StrEnum):
    ACCEPTED = "accepted"
    REPEATED = "repeated"  # the same bytes were accepted before
    REJECTED = "rejected"


class Verdict(NamedTuple):
    """The outcome of a reply. ``code`` is the reason of a rejection; ``entity`` is set once the signature was verified."""

    status: ReplyStatus
    entity: str | None = None
    stage: str | None = None
    code: Code | None = None
    detail: str | None = None

    def __bool__(self) -> bool:
        return self.status is not ReplyStatus.REJECTED


class Federation:
    """The state of one run. ``key`` is the private key that belongs to the manifest's ``coordinator``."""

    def __init__(self, manifest: Manifest, key: bytes) -> None:
        if public_of(key).hex() != manifest.coordinator:
            raise InvalidParameter(
                "the manifest names another coordinator: its public key does not belong to this key."
            )
        self.manifest, self._key = manifest, bytes(key)
        self.stage = manifest.stages[0]
        self.model: SharedModel | None = None
        self._run: PrototypeRun | MomentsRun
        if manifest.mechanism is not Mechanism.MOMENTS:
            self._run = PrototypeRun(manifest)
        else:
            self._run = MomentsRun(manifest, MaskedSums(manifest) if manifest.is_secure else OpenSums())
        self._expected = tuple(member.name for member in manifest.contributors)
        self._replies: dict[tuple[str, str], bytes] = {}  # by entity and stage: the hash of the accepted reply
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
        """The entities that may reply in this stage."""
        return () if self.done else self._expected

    @property
    def replied(self) -> tuple[str, ...]:
        """The entities whose reply in this stage was accepted."""
        return tuple(name for name in self.expected if (name, self.stage) in self._replies)

    @property
    def missing(self) -> tuple[str, ...]:
        """The entities that have not replied in this stage."""
        return tuple(name for name in self.expected if (name, self.stage) not in self._replies)

    @property
    def guarantee(self) -> Guarantee:
        """What the run promises to a user."""
        return self.manifest.guarantee

    def outgoing(self) -> dict[str, bytes]:
        """The message of this stage for each entity: first the manifest for all, then steps for those left, then the model for
        all.
        """
        everybody = [member.name for member in self.manifest.roster]
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
        """Takes a reply, or returns why it was rejected. It raises nothing, whatever the bytes are; a rejected reply changes
        nothing.
        """
        entity = stage = None
        try:
            frame, entity, stage = read_sender(reply, self.manifest)
            digest, accepted = sha256(reply).digest(), self._replies.get((entity, stage))
            if accepted is not None:
                if accepted == digest:
                    return Verdict(ReplyStatus.REPEATED, entity, stage)
                raise Refused(Code.CONFLICT)
            self._require_open(entity, stage)
            self._run.take(read_reply(frame, self.manifest, self._run.head))
        except Refused as refusal:
            return Verdict(ReplyStatus.REJECTED, entity, stage, refusal.reason, refusal.detail)
        self._replies[entity, stage] = digest
        return Verdict(ReplyStatus.ACCEPTED, entity, stage)

    def _require_open(self, entity: str, stage: str) -> None:
        order = self.manifest.stages
        current = len(order) if self.done else order.index(self.stage)
        if order.index(stage) < current:
            raise Refused(Code.LATE)
        if order.index(stage) > current:
            raise Refused(Code.EARLY)
        if entity not in self._expected:
            raise Refused(Code.LEFT)

    def advance(self) -> str:
        """Closes the stage with the replies so far and returns the next stage. Later replies are discarded.

        Raises TooFewEntities if too few have replied; nothing was unmasked, and nothing has changed.
        """
        if self.done:
            return self.stage
        replied = self.replied
        if len(replied) < self.manifest.needed:
            raise TooFewEntities(
                f"{len(replied)} of {len(self._expected)} entities have replied in the stage '{self.stage}', and the manifest "
                f"requires {self.manifest.needed}: nothing was unmasked. Wait for more, or give up the run."
            )
        following = self._run.close(self.stage, replied)
        self._expected, self._steps = replied, None
        self.stage, self.model = (following, None) if isinstance(following, str) else (MODEL, following)
        return self.stage

    def give_up(self) -> str:
        """Ends a run that cannot go on. Released budgets stay spent. If the popularity is known, all entities still get it."""
        if not self.done:
            self.model = self._run.without_gram(len(self._expected)) if isinstance(self._run, MomentsRun) else None
            self.stage = GIVEN_UP if self.model is None else MODEL
        return self.stage

    def combine(self, replies: Iterable[bytes]) -> SharedModel:
        """The model of a run of prototypes, from all replies at once. Rejected replies are left out."""
        if self.manifest.mechanism is Mechanism.MOMENTS:
            raise InvalidParameter("'moments' has several stages: use outgoing, accept and advance.")
        for reply in replies:
            self.accept(reply)
        self.advance()
        if self.model is None:
            raise TooFewEntities("the run was given up.")
        return self.model

    def influence(self) -> dict[str, float]:
        """How far the model moves without each entity, relative to its size, where replies can be seen.

        For prototypes: the factors. For 'moments' without secure aggregation: the mean popularity, the head, or the mean Gram
        matrix of the pseudo-rows, whichever moves most. Look into an entity that is far above the rest.
        """
        return self._run.influence()


class _Prototypes(NamedTuple):
    centres: Floats
    sizes: Floats


class PrototypeRun:
    """A run of one stage: stacks the released prototypes and factorises them."""

    head = 0  # there is no Gram matrix

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        # As they were sent: the wide table is built only at the end.
        self._arrays: dict[str, Mapping[str, NDArray[np.generic]]] = {}
        self._items: Floats | None = None

    def take(self, reply: Reply) -> None:
        """Takes the reply of one entity."""
        self._arrays[reply.sender] = {name: array.copy() for name, array in reply.arrays.items()}

    def close(self, stage: str, replied: tuple[str, ...]) -> SharedModel:
        """The model from these entities' prototypes."""
        self._items = shared_items(self._released(replied), self._factorisation)
        factors = self._items.astype(np.float32)
        return SharedModel(self.manifest.run, len(replied), informed=bool(factors.any()), factors=factors)

    def step(self, stage: str, to: str) -> Step:
        """Raises InvalidMessage: there is no second stage."""
        raise InvalidMessage("a run of prototypes has one stage, which the manifest opens.")

    def influence(self) -> dict[str, float]:
        """How far the factors move without each entity, relative to their size."""
        if self._items is None:
            raise InvalidMessage("the influence of entities is known once there is a model.")
        return influence(self._released(tuple(self._arrays)), self._items, self._factorisation)

    def _released(self, names: tuple[str, ...]) -> dict[str, _Prototypes]:
        return {name: _read_prototypes(self._arrays[name], self.manifest.items) for name in names}

    @property
    def _factorisation(self) -> Factorisation:
        manifest = self.manifest
        return Factorisation(
            rank=manifest.rank or 0,
            seed=manifest.seed,
            ridge=manifest.ridge,
            regulariser=str(manifest.regulariser),
            zeros_observed=bool(manifest.zeros_observed),
            most_weight=manifest.most_weight,
        )


def _read_prototypes(arrays: Mapping[str, NDArray[np.generic]], items: int) -> _Prototypes:
    """The prototypes as numbers; NaN where nothing was released, or where the entity did not use a prototype (size 0)."""
    sizes, values = arrays["sizes"].astype(np.float64), arrays["values"].astype(np.float64)
    if "index" not in arrays:
        centres = values.copy()
    else:
        centres = np.full((len(sizes), items), np.nan)
        np.put_along_axis(centres, arrays["index"].astype(np.int64), values, axis=1)
    centres[(sizes == 0.0) & ~np.nan_to_num(centres).any(axis=1)] = np.nan
    return _Prototypes(centres, sizes)


@dataclass
class MomentsRun:
    """A run of two sums: popularity, then the Gram matrix of the head. ``sums`` adds up in the open, or under masks."""

    manifest: Manifest
    sums: "OpenSums | MaskedSums"
    choice: HeadChoice | None = field(default=None)

    @property
    def head(self) -> int:
        """How many items the Gram matrix covers; 0 until the head is chosen."""
        return 0 if self.choice is None else self.choice.head.size

    def take(self, reply: Reply) -> None:
        """Takes the reply of one entity in the open stage. Raises Refused without changing anything."""
        self.sums.take(reply, self.manifest.items if reply.stage == "popularity" else triangle(self.head))

    def close(self, stage: str, replied: tuple[str, ...]) -> str | SharedModel:
        """Closes a stage: the name of the next one, or the model. Raises TooFewEntities without changing anything."""
        total = self.sums.close(stage, replied)
        if total is None:
            return self.manifest.stages[self.manifest.stages.index(stage) + 1]
        sds = noise_sds(*self.manifest.rhos, shares=total.shares, honest=self.manifest.honest)
        if self.choice is None:
            self.choice = choose_head(total.values, self.manifest.items, sds[0])
            return "gram" if self.choice.informative else self._model(total.shares, no_information(self.choice, sds[1]))
        return self._model(total.shares, shared_moments(self.choice, total.values, sds[1]))

    def step(self, stage: str, to: str) -> Step:
        """What one entity is sent in a stage after the first."""
        if stage == "gram" and self.choice is not None:
            return Step(self.manifest.run, stage, to, head=self.choice.head)
        return Step(self.manifest.run, stage, to, body=pack(self.sums.forwarded(stage, to)))

    def without_gram(self, contributors: int) -> SharedModel | None:
        """The model of a run that ended before the second sum; None if it ended before the first."""
        if self.choice is None:
            return None
        return self._model(contributors, no_information(self.choice, noise_sds(*self.manifest.rhos)[1]))

    def influence(self) -> dict[str, float]:
        """The largest relative change without each entity: of popularity, head or pseudo-rows."""
        if not isinstance(self.sums, OpenSums):
            raise InvalidParameter(
                "under secure aggregation only sums are known: the influence of one entity cannot be seen."
            )
        if self.choice is None:
            raise InvalidMessage("the influence of entities is known once there is a model.")
        shifts = moments_influence(self.sums.closed["popularity"], self.sums.closed.get("gram", {}), self.manifest.rhos)
        return {name: max(shift) for name, shift in shifts.items()}

    def _model(self, contributors: int, shared: SharedMoments) -> SharedModel:
        return SharedModel(self.manifest.run, contributors, moments=shared)


class Total(NamedTuple):
    values: Whole
    shares: int  # in the sum


class OpenSums:
    """Sums without secure aggregation: the coordinator sees every share, and each share carries all the noise that protects it."""

    def __init__(self) -> None:
        self._shares: dict[str, dict[str, Whole]] = {}
        self.closed: dict[str, dict[str, Whole]] = {}  # by stage: the shares in the sum

    def take(self, reply: Reply, cells: int) -> None:
        self._shares.setdefault(reply.stage, {})[reply.sender] = reply.arrays["steps"].astype(np.int64)

    def close(self, stage: str, replied: tuple[str, ...]) -> Total | None:
        shares = self.closed[stage] = {name: self._shares[stage][name] for name in replied}
        return Total(np.add.reduce(list(shares.values()), dtype=np.int64), len(shares))

    def forwarded(self, stage: str, to: str) -> Mapping[str, bytes]:
        raise InvalidMessage("without secure aggregation entities are sent only a head of items.")


class MaskedSums:
    """Sums under secure aggregation: the coordinator sees only totals."""

    def __init__(self, manifest: Manifest) -> None:
        roster = {member.name: bytes.fromhex(member.key) for member in manifest.contributors}
        self._sums = SecureSums(SumSession(manifest.run, roster, manifest.fewest or 0, manifest.colluding or 0))
        self._survivors: dict[str, tuple[str, ...]] = {}
        self._parcels: dict[str, dict[str, bytes]] = {}

    def take(self, reply: Reply, cells: int) -> None:
        stage, body = reply.stage, reply.body
        try:
            if open_frame(body).header.get("entity") != reply.sender:
                raise InvalidMessage("a message of the secure sum must come from its own sender.")
            match stage:
                case "keys":
                    self._sums.add_keys(body)
                case "shares":
                    self._sums.add_shares(body)
                case "popularity" | "gram":
                    self._sums.add_masked(body, stage, cells)
                case _:
                    self._sums.add_unmask(body, stage.removeprefix("unmask-"))
        except (InvalidMessage, Conflict) as problem:
            raise Refused(Code.SECURE_SUM, str(problem)) from None

    def close(self, stage: str, replied: tuple[str, ...]) -> Total | None:
        if stage == "keys":
            self._sums.close_keys()
        elif stage == "shares":
            self._parcels = self._sums.close_shares()
        elif stage in ("popularity", "gram"):
            self._survivors[stage] = self._sums.close_upload(stage)
        else:
            upload = stage.removeprefix("unmask-")
            return Total(self._sums.total(upload), len(self._survivors[upload]))
        return None

    def forwarded(self, stage: str, to: str) -> Mapping[str, bytes]:
        """What the coordinator passes on to one entity: keys, parcels, or the names of the survivors."""
        if stage == "shares":
            return self._sums.close_keys()
        if stage == "popularity":
            return self._parcels[to]
        return dict.fromkeys(self._survivors[stage.removeprefix("unmask-")], b"")


def shared_items(released: Mapping[str, ReleasedPrototypes], factorisation: Factorisation) -> Floats:
    """V (items x rank) from the prototypes of all entities. The order in which these came does not matter."""
    return factorisation.items(_stack(released, factorisation))


def influence(
    released: Mapping[str, ReleasedPrototypes], items: Floats, factorisation: Factorisation
) -> dict[str, float]:
    """How far V moves without each entity, relative to its size: |V - V_without| / |V|.

    Both continue from ``items`` for a few epochs, so that the difference comes from the entity and not from another start. An
    entity whose prototypes resemble the others' has little influence; look into one that is far above the rest.
    """
    if len(released) < 2:
        raise InvalidParameter("influence compares the model with and without an entity: at least 2 are needed.")
    if not items.any():
        return dict.fromkeys(sorted(released), 0.0)
    whole = factorisation.items(_stack(released, factorisation), start=items, epochs=_INFLUENCE_EPOCHS)
    moved = {}
    for name in sorted(released):
        others = {other: prototypes for other, prototypes in released.items() if other != name}
        without = factorisation.items(_stack(others, factorisation), start=items, epochs=_INFLUENCE_EPOCHS)
        moved[name] = relative_change(whole, without)
    return moved


def _stack(released: Mapping[str, ReleasedPrototypes], factorisation: Factorisation) -> Stack:
    return factorisation.stack([released[name] for name in sorted(released)])
