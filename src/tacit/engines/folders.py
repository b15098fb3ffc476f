"""A federation over plain files: an entity's inbox and outbox, carried by any means that both sides already trust.

    mailbox = Mailbox("north")            # north/inbox, north/outbox
    mailbox.answer(entity)                # answers what is in the inbox, and puts the replies into the outbox

The reply to inbox/X is outbox/X. What is answered twice is the same, so a mailbox may be worked through again at any time. The
coordinator's side is `tacit.engines.coordinator`.
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines.files import ENDING, messages_in, read_message, write
from tacit.errors import InvalidMessage, TacitError
from tacit.messages.federated_prototypes_frame import open_frame

if TYPE_CHECKING:  # who only carries messages, as a node of Flower's does, loads nothing that could read rows
    from tacit.entity import Entity

if TYPE_CHECKING:  # who only carries messages needs no entity
    from tacit.entity import Entity

_KINDS = ("manifest", "step", "model")
_STAGES = ("prototypes", "keys", "shares", "popularity", "unmask-popularity", "gram", "unmask-gram")


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of one message: ``answered``, ``kept`` (nothing is to be sent) or ``refused``, for a reason."""

    name: str
    outcome: str
    reason: str | None = None


class Mailbox:
    """One entity's folder. Only its own process answers; others put messages in and take replies away."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.inbox, self.outbox = self.folder / "inbox", self.folder / "outbox"
        for one in (self.inbox, self.outbox):
            one.mkdir(parents=True, exist_ok=True)

    def put(self, message: bytes) -> str:
        """Puts a message into the inbox under a name that follows from its content; returns that name."""
        name = sha256(message).hexdigest() + ENDING
        if not (self.inbox / name).exists():
            write(self.inbox / name, message)
        return name

    def reply(self, message: bytes) -> bytes | None:
        """The reply to a message that was put in: empty where nothing is to be sent, None where it is not answered yet."""
        try:
            return (self.outbox / (sha256(message).hexdigest() + ENDING)).read_bytes()
        except FileNotFoundError:
            return None

    def answer(self, entity: "Entity") -> list[Handled]:
        """Answers all messages of the inbox, earlier stages first. A message that is refused is left where it is."""
        return [self._handled(file, entity) for file in sorted(messages_in(self.inbox), key=_order)]

    def _handled(self, file: Path, entity: "Entity") -> Handled:
        target = self.outbox / file.name
        try:
            reply = entity.answer(read_message(file))
        except TacitError as problem:
            return Handled(file.name, "refused", str(problem))
        content = b"" if reply is None else reply
        if not target.exists() or target.read_bytes() != content:
            write(target, content)
        return Handled(file.name, "kept" if reply is None else "answered")


def _order(file: Path) -> tuple[int, int, str]:
    """By what the message says of itself; whether that is true is found out by the entity."""
    try:
        header = open_frame(read_message(file)).header
        kind, stage = header.get("kind"), header.get("stage")
        return _KINDS.index(kind), _STAGES.index(stage) if stage in _STAGES else 0, file.name
    except (InvalidMessage, ValueError):
        return len(_KINDS), 0, file.name
