"""A federation over plain files: an entity's inbox and outbox, carried by any means that both sides already trust.

    mailbox = Mailbox("north")            # north/inbox, north/outbox
    mailbox.answer(entity)                # answers what is in the inbox, and puts the replies into the outbox

The reply to inbox/X is outbox/X (a name that is too long is cut). What is answered twice is the same, so a mailbox may be worked
through again at any time. The coordinator's side is `tacit.engines.coordinator`.
"""

import contextlib
import errno
import os
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines.files import ENDING, bounded, messages_in, read_message, told, write
from tacit.errors import BudgetExhausted, Conflict, InvalidData, InvalidMessage, LedgerError, TacitError
from tacit.messages.federated_prototypes_frame import open_frame

if TYPE_CHECKING:  # who only carries messages, as a node of Flower's does, loads nothing that could read rows
    from tacit.entity import Entity

# Models before steps: a step of a run that has its model is too late, and its share would be paid for nothing.
_KINDS = ("manifest", "model", "step")
_STAGES = ("prototypes", "keys", "shares", "popularity", "unmask-popularity", "gram", "unmask-gram")


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of one message: ``answered``, ``kept`` (nothing is to be sent), or, for a reason, ``over`` (of a run that has its
    model: nothing is sent or spent any more) or ``refused``; then ``again`` where time alone may change that. ``new`` where the
    reply was not there before; ``brought_model`` where the entity now has a model that it did not have."""

    name: str  # of the file, as it can be printed
    outcome: str
    reason: str | None = None
    kind: str = ""  # manifest, model or step, as the message says
    new: bool = False
    brought_model: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a file says of itself; whether that is true is found out by the entity."""

    kind: str
    stage: str
    run: str

    @classmethod
    def of(cls, file: Path) -> "_Claim":
        try:
            header = open_frame(read_message(file)).header
        except InvalidMessage:
            return cls("", "", "")
        return cls(*(str(header.get(name, "")) for name in ("kind", "stage", "run")))

    @property
    def place(self) -> tuple[int, int]:
        kind = _KINDS.index(self.kind) if self.kind in _KINDS else len(_KINDS)
        return kind, _STAGES.index(self.stage) if self.stage in _STAGES else 0


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
        """Answers all messages of the inbox: manifests, models, and then steps, earlier stages first.

        A message that is refused is left where it is.
        """
        claims = {file: _Claim.of(file) for file in messages_in(self.inbox)}
        handled, over = list[Handled](), set[str]()
        for file in sorted(claims, key=lambda file: (*claims[file].place, file.name)):
            handled.append(self._handled(file, claims[file], entity, over))
            if (claims[file].kind, handled[-1].outcome) == ("model", "kept"):
                over.add(claims[file].run)
        return handled

    def state(self) -> dict[str, tuple[int, int, int]]:
        """Changes when a message comes, comes again, or can be read at last."""
        found = {}
        for file in messages_in(self.inbox):
            with contextlib.suppress(OSError):  # taken away just now, or a link to nothing
                about = file.stat()
                found[file.name] = (about.st_mtime_ns, about.st_ctime_ns, about.st_size)
        return found

    def _handled(self, file: Path, claim: _Claim, entity: "Entity", over: Collection[str]) -> Handled:
        name, target = told(file.name), self.outbox / bounded(file.name)
        had = _model(entity, claim)
        try:
            reply = entity.answer(read_message(file))
            content = b"" if reply is None else reply
            new = not target.exists() or target.read_bytes() != content
            if new:
                write(target, content)
        except (TacitError, OSError) as problem:
            late = isinstance(problem, Conflict) and claim.kind == "step" and claim.run in over
            outcome, reason = "over" if late else "refused", _reason(problem)
            brought = _model(entity, claim) != had  # where it was kept, and only the empty reply could not be written
            return Handled(name, outcome, reason, claim.kind, False, brought, _curable(problem, entity))
        outcome, brought = "kept" if reply is None else "answered", _model(entity, claim) != had
        return Handled(name, outcome, None, claim.kind, new, brought)


def _model(entity: "Entity", claim: _Claim) -> tuple[int, str] | None:
    """Which model the entity has of the run that a model claims to be of."""
    if claim.kind != "model":
        return None
    try:
        _, model = entity.shared(claim.run)
    except TacitError:
        return None
    return model.number, model.hash


def _curable(problem: TacitError | OSError, entity: "Entity") -> bool:
    """Whether a message may be answered later though nothing comes: rows or a disk are mended, a period of the budget is over."""
    if isinstance(problem, BudgetExhausted):
        return any(window.budget.per.value != "lifetime" for window in entity.statement().windows)
    return isinstance(problem, OSError | InvalidData | LedgerError)


def _reason(problem: TacitError | OSError) -> str:
    if isinstance(problem, TacitError):
        return str(problem)
    return f"it cannot be answered now ({os.strerror(problem.errno or errno.EIO)})."
