"""Federated prototypes from end to end in one process: entities, coordinator, entities again, in that order. For trying.

with simulate({"north": rows, "south": others, "west": more}, catalogue, epsilon=2.0, users=500) as run:
    print(run.guarantee)
    scores = run.entities["north"].fit().scores()
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tacit.entity import Entity, Policy
from tacit.entity.rows import Rows
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee
from tacit.ledger import Budget
from tacit.mechanisms import SYSTEM_NOISE, Noise
from tacit.messages.federated_prototypes_frame import KEY_BYTES, public_of
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.messages.federated_prototypes_roster import Member, Role, catalogue_hash
from tacit.messages.federated_prototypes_terms import Mechanism
from tacit.messages.private_slates_parts import Item
from tacit.server.federation import Federation


@dataclass(eq=False)
class Outcome:
    """The entities with their ledgers, the run, and how many bytes left whom. Closing it closes the ledgers."""

    entities: dict[str, Entity]
    run: Federation
    sent: dict[str, int] = field(default_factory=dict)  # bytes, by entity
    _open: ExitStack = field(default_factory=ExitStack, repr=False)

    @property
    def bytes_sent(self) -> int:
        """How many bytes left all entities together; ``sent`` has them by entity."""
        return sum(self.sent.values())

    @property
    def manifest(self) -> Manifest:
        """Every public constant of the run."""
        return self.run.manifest

    @property
    def model(self) -> SharedModel | None:
        """What the coordinator made and sent to all; None while the run is under way, and where it was given up."""
        return self.run.model

    @property
    def guarantee(self) -> Guarantee:
        """What the run promises of all that an entity sent, to each of its users."""
        return self.run.guarantee

    def close(self) -> None:
        """Closes the entities' ledgers, and removes the folder that was made for them."""
        self._open.close()

    def __enter__(self) -> "Outcome":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Outcome({self.run!r}, {self.bytes_sent:,} bytes sent)"


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
) -> Outcome:
    """One run over the entities of ``rows``; ``receivers`` send nothing and get the model.

    ``users`` is the public order of magnitude of an entity's users; further ``constants`` are those of the Manifest. ``silent``
    names entities that stop replying, and from which stage on. Ledgers lie in ``folder``, or in one that closing removes.
    ``budget`` is by default what this run needs.
    ``epsilon`` is in nats, for each user of any entity.
    """
    receivers = dict(receivers or {})
    if set(rows) & set(receivers):
        raise InvalidParameter("an entity contributes or receives, not both.")
    known = [one.name for one in fields(Manifest) if one.init]
    if unknown := [name for name in constants if name not in known]:
        raise InvalidParameter(f"a manifest has no constant {unknown[0]!r}; it has {', '.join(known)}.")
    everybody = {**rows, **receivers}
    keys = {name: os.urandom(KEY_BYTES) for name in everybody}
    coordinator = os.urandom(KEY_BYTES)
    roster = tuple(
        Member(name, public_of(key).hex(), Role.RECEIVER if name in receivers else Role.CONTRIBUTOR)
        for name, key in keys.items()
    )
    # 1. The coordinator fixes and signs all public constants.
    manifest = Manifest(
        catalogue=catalogue_hash(catalogue),
        items=len(catalogue),
        epsilon=epsilon,
        users=users,
        roster=roster,
        coordinator=public_of(coordinator).hex(),
        **constants,
    )
    pure = manifest.mechanism is Mechanism.GRID
    with ExitStack() as opened:
        place = Path(opened.enter_context(tempfile.TemporaryDirectory()) if folder is None else folder)
        entities = {
            name: opened.enter_context(
                Entity(
                    own,
                    place / f"{name}.db",
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
            for name, own in everybody.items()
        }
        outcome = Outcome(entities, Federation(manifest, coordinator), dict.fromkeys(everybody, 0))
        _converse(outcome, dict(silent or {}))
        outcome._open = opened.pop_all()
    return outcome


def _converse(outcome: Outcome, silent: Mapping[str, str]) -> None:
    """2. In every stage each entity charges, draws, keeps and replies. 3. The coordinator combines. 4. The model goes to all."""
    run, quiet = outcome.run, set[str]()
    while not run.done:
        quiet |= {name for name, stage in silent.items() if stage == run.stage}
        for name, message in run.outgoing().items():
            reply = None if name in quiet else outcome.entities[name].answer(message)
            if reply is not None:
                outcome.sent[name] += len(reply)
                run.accept(reply)
        run.advance()
    for name, message in run.outgoing().items():
        outcome.entities[name].answer(message)
