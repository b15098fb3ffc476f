"""A federation over plain files: an entity's mailbox, its messages, and its key.

    mailbox = Mailbox("north")            # north/inbox, north/outbox
    mailbox.answer(entity)                # answers the messages in the inbox; the replies go to the outbox

Carry the files between the entities and the coordinator by any means that both sides trust. The reply to inbox/X is
outbox/X (a name that is too long is cut). Answering a message twice gives the same bytes, so you may work through a
mailbox again at any time. The coordinator's side is `tacit.engines.coordinator`.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tacit.errors import (
    BudgetExhausted,
    Conflict,
    InvalidData,
    InvalidMessage,
    InvalidParameter,
    LedgerError,
    TacitError,
)
from tacit.files import OWNER_ONLY, replace, write_once
from tacit.messages.federated_prototypes.frame import KEY_BYTES, MOST_BYTES, open_frame, public_of

if TYPE_CHECKING:
    from tacit.ledger import Statement
    from tacit.messages.federated_prototypes.manifest import Manifest
    from tacit.messages.federated_prototypes.replies import SharedModel

ENDING = ".fp"
# Models come before steps: if a run has its model, a step is too late, and its share would be charged in vain.
_KINDS = ("manifest", "model", "step")
_STAGES = ("prototypes", "keys", "shares", "popularity", "unmask-popularity", "gram", "unmask-gram")
_LONGEST_NAME = 180  # bytes of a file name that more is added to; file systems allow 255
_PUBLIC = ".pub"


class Correspondent(Protocol):
    """Answers the messages of a federation, as `tacit.Entity` does. The code that carries messages cannot reach an
    entity's rows."""

    def answer(self, message: bytes, /) -> bytes | None: ...
    def shared(self, run: str, /) -> "tuple[Manifest, SharedModel]": ...
    def statement(self) -> "Statement": ...


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """The outcome for one message.

    ``outcome`` is ``answered``, ``kept`` (there is nothing to send), ``over`` (the run has its model, so nothing is sent or
    charged any more) or ``refused``. The last two have a ``reason``. ``again`` is true if the same message may be answered
    later.
    """

    name: str  # of the file, safe to print
    outcome: str
    reason: str | None = None
    kind: str = ""  # manifest, model or step, as the message claims
    new: bool = False  # the reply was not in the outbox before
    brought_model: bool = False  # the entity now has a model that it did not have
    again: bool = False


class Mailbox:
    """One entity's folder. Only the entity's own process answers; others put messages in and take replies away."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.inbox, self.outbox = self.folder / "inbox", self.folder / "outbox"
        self.inbox.mkdir(parents=True, exist_ok=True)
        self.outbox.mkdir(parents=True, exist_ok=True)

    def put(self, message: bytes) -> str:
        """Puts a message into the inbox, under a name computed from its content. Returns the name."""
        name = sha256(message).hexdigest() + ENDING
        if not (self.inbox / name).exists():
            replace(self.inbox / name, message, parents=True)
        return name

    def reply(self, message: bytes) -> bytes | None:
        """The reply to a message that was put in: empty if there is nothing to send, None if it is not answered yet."""
        try:
            return (self.outbox / (sha256(message).hexdigest() + ENDING)).read_bytes()
        except FileNotFoundError:
            return None

    def answer(self, entity: Correspondent) -> list[MessageOutcome]:
        """Answers all messages in the inbox: manifests, then models, then steps, earlier stages first.

        A refused message stays where it is.
        """
        claims = {file: _Claim.of(file) for file in messages_in(self.inbox)}
        handled, over = list[MessageOutcome](), set[str]()
        for file in sorted(claims, key=lambda file: (*claims[file].order, file.name)):
            handled.append(self._handle(file, claims[file], entity, over))
            if (claims[file].kind, handled[-1].outcome) == ("model", "kept"):
                over.add(claims[file].run)
        return handled

    def state(self) -> dict[str, tuple[int, int, int]]:
        """A value that changes when a message arrives, arrives again, or becomes readable."""
        state = {}
        for file in messages_in(self.inbox):
            with contextlib.suppress(OSError):  # removed a moment ago, or a broken link
                status = file.stat()
                state[file.name] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        return state

    def _handle(self, file: Path, claim: "_Claim", entity: Correspondent, over: Collection[str]) -> MessageOutcome:
        name, target = printable(file.name), self.outbox / bounded(file.name, ENDING)
        model_before = _model(entity, claim)
        try:
            reply = entity.answer(read_message(file))
            content = b"" if reply is None else reply
            is_new = not target.exists() or target.read_bytes() != content
            if is_new:
                replace(target, content, parents=True)
        except (TacitError, OSError) as problem:
            is_late = isinstance(problem, Conflict) and claim.kind == "step" and claim.run in over
            outcome = "over" if is_late else "refused"
            if isinstance(problem, TacitError):
                reason = str(problem)
            else:
                reason = f"the message cannot be answered now ({os.strerror(problem.errno or errno.EIO)})."
            has_model = _model(entity, claim) != model_before  # even if writing its empty reply failed
            return MessageOutcome(name, outcome, reason, claim.kind, False, has_model, _is_temporary(problem, entity))
        outcome, has_model = "kept" if reply is None else "answered", _model(entity, claim) != model_before
        return MessageOutcome(name, outcome, None, claim.kind, is_new, has_model)


def messages_in(folder: Path) -> list[Path]:
    """The message files of a folder, by name. Hidden files, which may be half-written, and other files are left out."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.suffix == ENDING and not file.name.startswith("."))


def read_message(file: Path) -> bytes:
    """The content of a file from an untrusted source. Reads at most the size of a message, and never waits for a pipe."""

    def open_without_waiting(path: str, flags: int) -> int:
        return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

    try:
        with open(file, "rb", opener=open_without_waiting) as content:
            if not stat.S_ISREG(os.fstat(content.fileno()).st_mode):
                raise InvalidMessage(f"{printable(file.name)} is not a regular file.")
            data = content.read(MOST_BYTES + 1)
    except OSError as problem:
        raise InvalidMessage(f"{printable(file.name)} cannot be read ({problem.strerror}).") from None
    if len(data) > MOST_BYTES:
        raise InvalidMessage(f"{printable(file.name)} is longer than a message can be ({MOST_BYTES} bytes).")
    return data


def bounded(name: str, ending: str = "") -> str:
    """A file name that leaves room for additions. A longer name is cut, and gets a hash of the whole name and ``ending``."""
    whole = os.fsencode(name)
    return name if len(whole) <= _LONGEST_NAME else f"{name[:40]}-{sha256(whole).hexdigest()[:16]}{ending}"


def printable(name: str) -> str:
    """A file name that is safe to print: bytes that would start a line or move the cursor are escaped."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in name)


def new_key(file: str | os.PathLike[str]) -> bytes:
    """Draws a private key and writes it to a new file, readable by its owner only; returns the public key.

    Keys are written as hexadecimal digits. The public key is also written beside the private one, to ``<file>.pub``.
    """
    key = os.urandom(KEY_BYTES)
    public = public_of(key)
    content = f"{key.hex()}\n".encode()
    if os.path.lexists(file) or write_once(Path(file), content, mode=OWNER_ONLY) != content:
        raise InvalidParameter("this file exists, and a key is never overwritten. Name another file.")
    Path(f"{os.fspath(file)}{_PUBLIC}").write_text(public.hex() + "\n", encoding="ascii")
    return public


def read_key(file: str | os.PathLike[str]) -> bytes:
    """The private key in a file. Raises InvalidParameter if other users may read the file."""
    mode = os.stat(file).st_mode
    if os.name == "posix" and mode & 0o077:
        raise InvalidParameter("other users can read the key's file. Run `chmod 600` on it, or draw a new key.")
    return _digits(Path(file).read_bytes(), "a private key")


def read_public(text_or_file: str) -> bytes:
    """A public key: 64 hexadecimal digits, or a file that holds them."""
    text = text_or_file.strip()
    if len(text) == 2 * KEY_BYTES and not os.path.exists(text):
        return _digits(text.encode(), "a public key")
    return _digits(Path(text_or_file).read_bytes(), "a public key")


@dataclass(frozen=True, slots=True)
class _Claim:
    """The kind, stage and run that a message claims. Only the entity checks the claim."""

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
    def order(self) -> tuple[int, int]:
        kind = _KINDS.index(self.kind) if self.kind in _KINDS else len(_KINDS)
        return kind, _STAGES.index(self.stage) if self.stage in _STAGES else 0


def _model(entity: Correspondent, claim: _Claim) -> tuple[int, str] | None:
    """The entity's present model of the run that a message with a model claims."""
    if claim.kind != "model":
        return None
    try:
        _, model = entity.shared(claim.run)
    except TacitError:
        return None
    return model.number, model.hash


def _is_temporary(problem: TacitError | OSError, entity: Correspondent) -> bool:
    """Whether the same message may be answered later: after rows or a disk are repaired, or a budget period ends."""
    if isinstance(problem, BudgetExhausted):
        return any(window.budget.per.value != "lifetime" for window in entity.statement().windows)
    return isinstance(problem, OSError | InvalidData | LedgerError)


def _digits(content: bytes, kind: str) -> bytes:
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except (UnicodeDecodeError, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidData(f"expected {kind}: {2 * KEY_BYTES} hexadecimal digits.")
    return key
