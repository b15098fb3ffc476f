"""Federated prototypes end to end in one process: coordinator, entities, coordinator, entities. For trying and testing.

with simulate({"north": rows, "south": others, "west": more}, catalogue, epsilon=2.0, users=500) as run:
    print(run.guarantee)
    scores = run.entities["north"].fit().scores()
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from tacit.entity import Entity, Policy
from tacit.entity.rows import Rows
from tacit.errors import InvalidParameter
from tacit.ledger import Budget
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.federated_prototypes.frame import KEY_BYTES, public_of
from tacit.messages.federated_prototypes.manifest import Manifest, Member, Role, catalogue_hash
from tacit.messages.federated_prototypes.replies import SharedModel
from tacit.messages.federated_prototypes.terms import Mechanism
from tacit.messages.items import Item
from tacit.server.federated_prototypes import Federation
from tacit.systems.transcript import Transcript


@dataclass(frozen=True, eq=False, repr=False)
class FederationTranscript(Transcript):
    """The entities with their ledgers, and the run. Close it to close the ledgers.

    The guarantee holds for each user of an entity, for everything that the entity sent.
    """

    entities: dict[str, Entity]
    run: Federation
    sent: dict[str, int]  # bytes, by entity
    _open: ExitStack

    @property
    def manifest(self) -> Manifest:
        """Every public constant of the run."""
        return self.run.manifest

    @property
    def model(self) -> SharedModel | None:
        """The model that the coordinator sent to all; None if the run was given up."""
        return self.run.model

    @property
    def summary(self) -> str:
        return repr(self.run)

    def close(self) -> None:
        """Closes the entities' ledgers, and removes their folder if it was temporary."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def simulate(
    rows: Mapping[str, Rows],
    catalogue: Sequence[Item],
    *,
    epsilon: float,
    users: int,
    receivers: Mapping[str, Rows] | None = None,
    silent: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    budget: Budget | None = None,
    policy: Policy | None = None,
    noise: Noise = SYSTEM_NOISE,
    unprotected: Sequence[str] = (),
    **constants: Any,
) -> FederationTranscript:
    """One run over the entities of ``rows``; ``receivers`` send nothing and get the model.

    ``users`` is the public order of magnitude of an entity's users; further ``constants`` are those of the Manifest. ``silent``
    maps entities that stop replying to the stage from which on they do. Ledgers are in ``folder``, by default a temporary one that
    closing removes. ``budget`` is by default what this run needs.
    ``epsilon`` is in nats, for each user of any entity.
    """
    rows, receivers = dict(rows), dict(receivers or {})
    if set(rows) & set(receivers):
        raise InvalidParameter("an entity cannot be in both `rows` and `receivers`: it contributes or receives.")
    coordinator = os.urandom(KEY_BYTES)
    keys = {name: os.urandom(KEY_BYTES) for name in (*rows, *receivers)}
    roster = tuple(
        Member(name, public_of(key).hex(), Role.RECEIVER if name in receivers else Role.CONTRIBUTOR)
        for name, key in keys.items()
    )
    manifest = _manifest(catalogue, coordinator, roster, epsilon=epsilon, users=users, **constants)
    pure = manifest.mechanism is Mechanism.GRID
    with ExitStack() as opened:
        home = Path(opened.enter_context(tempfile.TemporaryDirectory()) if folder is None else folder)
        entities = {
            name: opened.enter_context(
                Entity(
                    own,
                    home / f"{name}.db",
                    name=name,
                    key=keys[name],
                    coordinator=public_of(coordinator),
                    catalogue=catalogue,
                    budget=budget or Budget(epsilon, 0.0 if pure else manifest.delta or 0.0),
                    policy=policy,
                    noise=noise,
                    unprotected=unprotected,
                )
            )
            for name, own in (rows | receivers).items()
        }
        run = Federation(manifest, coordinator)
        sent = _carry_stages(run, entities, silent or {})
        for name, message in run.outgoing().items():  # the model
            entities[name].answer(message)
        return FederationTranscript(run.guarantee, sum(sent.values()), entities, run, sent, opened.pop_all())


def _manifest(catalogue: Sequence[Item], coordinator: bytes, roster: tuple[Member, ...], **constants: Any) -> Manifest:
    """All public constants of a run, which the coordinator fixes and signs."""
    known = [constant.name for constant in fields(Manifest) if constant.init]
    if unknown := [name for name in constants if name not in known]:
        raise InvalidParameter(f"a manifest has no constant {unknown[0]!r}; it has {', '.join(known)}.")
    return Manifest(
        catalogue=catalogue_hash(catalogue),
        items=len(catalogue),
        roster=roster,
        coordinator=public_of(coordinator).hex(),
        **constants,
    )


def _carry_stages(run: Federation, entities: Mapping[str, Entity], silent: Mapping[str, str]) -> dict[str, int]:
    """Carries all stages to the end: in each, the entities charge, draw, keep and reply, and the coordinator combines.

    Returns the bytes that each entity sent.
    """
    sent, quiet = dict.fromkeys(entities, 0), set[str]()
    while not run.done:
        quiet |= {name for name, stage in silent.items() if stage == run.stage}
        for name, message in run.outgoing().items():
            reply = None if name in quiet else entities[name].answer(message)
            if reply is not None:
                sent[name] += len(reply)
                run.accept(reply)
        run.advance()
    return sent
