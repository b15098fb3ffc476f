"""What an entity has answered, beside its ledger: one file for each stage of a run, written once, before the answer leaves.

    <folder>/<run>/<stage>
    <folder>/charged/<subject>-<height>     how far the ledger has come
    <folder>/entries/<subject>-<digest>     the id of a charge that was made

A record is whole or missing, and the first one stands: if two processes answer at once, both send what is on the disk. Only the
owner may read the files. The secrets that a record keeps for later stages of a secure sum are deleted when a run is over.

The marks in ``charged`` and ``entries`` detect an old copy of the ledger. Charges are never taken back, so the number of charges of
a subject and their cost only grow. The journal notes both after every charge, before an answer leaves. A crash in between leaves an
older note, never one ahead of the ledger. Without marks, an entity with an old copy would charge new runs to a budget that has
forgotten earlier ones. Numbers alone do not suffice, because an old copy catches up when others charge the same subject; so the
journal also notes the ids of the entity's own charges, and each must be in the ledger. If ledger and journal both come from old
copies of the same time, nothing here can notice.
"""

import contextlib
import json
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tacit import files
from tacit.errors import Conflict, LedgerDamaged, LedgerUnavailable
from tacit.messages import values

MANIFEST, MODEL, LEFT = "manifest", "model", "left"
RELEASES = ("prototypes", "popularity", "gram")  # the stages whose records follow a charge
_MARKS, _IDS = "charged", "entries"
_PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class Record:
    """The digest of the message that was answered, the answer, and the state that later stages need."""

    message: str
    reply: bytes = field(repr=False)
    state: bytes = field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        content = self.reply + self.state
        head = [self.message, len(self.reply), len(self.state), sha256(content).hexdigest()]
        return json.dumps(head).encode() + b"\n" + content

    @classmethod
    def from_bytes(cls, data: bytes) -> "Record":
        head, _, content = data.partition(b"\n")
        try:
            message, reply, state, digest = json.loads(head)
            if len(content) != reply + state or sha256(content).hexdigest() != digest:
                raise ValueError
        except (TypeError, ValueError, RecursionError):
            raise LedgerDamaged(
                "a record in the journal beside the ledger is damaged. Restore the journal from a backup; without it this entity "
                "cannot continue its run."
            ) from None
        return cls(message, content[:reply], content[reply:])


class Journal:
    """One folder for all runs of an entity. Raises LedgerUnavailable if it cannot be read or written."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def runs(self) -> list[str]:
        """The ids of all runs that it knows, oldest first."""
        if not self.folder.is_dir():
            return []
        known = [run for run in self.folder.iterdir() if (run / MANIFEST).is_file()]
        return [run.name for run in sorted(known, key=lambda run: ((run / MANIFEST).stat().st_mtime_ns, run.name))]

    def read(self, run: str, stage: str) -> Record | None:
        """The record of a stage; None if there is none."""
        with _disk_errors():
            try:
                content = self._file(run, stage).read_bytes()
            except FileNotFoundError:
                return None
        return Record.from_bytes(content)

    def write(self, run: str, stage: str, record: Record) -> Record:
        """Keeps a record durably, unless there is one already; returns the record that stands."""
        with _disk_errors():
            content = files.write_once(self._ready(self._file(run, stage)), record.to_bytes(), mode=files.OWNER_ONLY)
        return Record.from_bytes(content)

    def replace(self, run: str, stage: str, record: Record) -> None:
        """Puts a record in place of an older one: a newer model, or the same answer without its secrets."""
        self._put(self._file(run, stage), record.to_bytes())

    def forget_secrets(self, run: str) -> None:
        """Deletes what the records of a run keep beside their answers."""
        for file in sorted(self._file(run, MANIFEST).parent.iterdir()):
            record = self.read(run, file.name) if not file.name.startswith(".") else None
            if record is not None and record.state:
                self.replace(run, file.name, Record(record.message, record.reply))

    def count(self, stages: Collection[str]) -> int:
        """How many records of these stages there are, in all runs."""
        return sum((self.folder / run / stage).is_file() for run in self.runs() for stage in stages)

    def put_mark(self, prefix: str, height: int, content: bytes) -> None:
        """Keeps a mark durably, and deletes lower ones. A higher mark that is there stays the highest."""
        mark = self.folder / _MARKS / f"{prefix}{height}"
        self._put(mark, content)
        with _disk_errors():
            for name, lower in self._marks(prefix):
                if lower < height:
                    (mark.parent / name).unlink(missing_ok=True)

    def highest_mark(self, prefix: str) -> bytes | None:
        """The content of the highest mark whose name begins with this prefix."""
        with _disk_errors():
            while marks := self._marks(prefix):
                name, _ = max(marks, key=lambda mark: mark[1])
                with contextlib.suppress(FileNotFoundError):  # deleted just now: there is a higher one
                    return (self.folder / _MARKS / name).read_bytes()
        return None

    def put_id(self, prefix: str, text: str) -> None:
        """Keeps the id of a charge durably, once."""
        entry = self.folder / _IDS / f"{prefix}{sha256(text.encode()).hexdigest()}"
        with _disk_errors():
            known = entry.is_file()
        if not known:
            self._put(entry, text.encode())

    def ids(self, prefix: str) -> list[str]:
        """All ids that were kept under this prefix."""
        folder = self.folder / _IDS
        with _disk_errors():
            entries = sorted(folder.glob(f"{prefix}*")) if folder.is_dir() else []
            contents = {entry.name: entry.read_bytes() for entry in entries}
        if any(name != f"{prefix}{sha256(content).hexdigest()}" for name, content in contents.items()):
            raise LedgerDamaged("the journal's note of a charge is damaged. Restore the journal from a backup.")
        return [content.decode() for content in contents.values()]

    def _marks(self, prefix: str) -> list[tuple[str, int]]:
        folder = self.folder / _MARKS
        names = [mark.name for mark in folder.iterdir()] if folder.is_dir() else []
        heights = [(name, name.rpartition("-")[2]) for name in names if name.startswith(prefix) and name[0] != "."]
        return [(name, int(height)) for name, height in heights if height.isdecimal()]

    def _put(self, file: Path, content: bytes) -> None:
        with _disk_errors():
            files.replace(self._ready(file), content, mode=files.OWNER_ONLY)

    def _ready(self, file: Path) -> Path:
        """The same path, in a folder that exists and that only its owner may enter."""
        self.folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        file.parent.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
        return file

    def _file(self, run: str, stage: str) -> Path:
        return self.folder / values.hexadecimal(run, "the run's id", length=64) / stage


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    """Turns an error of the disk into LedgerUnavailable."""
    try:
        yield
    except OSError as problem:
        raise LedgerUnavailable(
            f"the journal beside the ledger cannot be read or written ({problem.strerror}). Nothing was sent. Repair the disk or "
            "its permissions, then try again."
        ) from None


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a ledger has come with a subject: charges, their sums in whole units, and noted messages of secure sums."""

    charges: int
    amount: int
    delta: int
    unprotected: int
    notes: int

    @property
    def height(self) -> int:
        """Grows with every charge and every note."""
        return self.charges + self.notes

    def reaches(self, other: "Mark") -> bool:
        """Whether every number is at least that of the other mark."""
        return all(getattr(self, name) >= getattr(other, name) for name in self.__slots__)

    def highest(self, other: "Mark") -> "Mark":
        """The larger of both, number by number."""
        return Mark(*(max(getattr(self, name), getattr(other, name)) for name in self.__slots__))

    def to_bytes(self) -> bytes:
        return json.dumps([getattr(self, name) for name in self.__slots__]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Mark":
        try:
            numbers = json.loads(data)
            if [type(number) for number in numbers] != [int] * len(cls.__slots__):
                raise ValueError
        except (TypeError, ValueError, RecursionError):
            raise LedgerDamaged(
                "the journal's note of how far the ledger has come is damaged. Restore the journal from a backup."
            ) from None
        return cls(*numbers)


def require_reached(
    journal: Journal, subject: str, now: Callable[[], Mark], charged: Callable[[Collection[str]], Collection[str]]
) -> None:
    """Raises Conflict if the ledger knows less than the journal noted.

    The ledger is read after the notes, because others may be charging it. ``charged`` says which of some ids the subject was
    charged for.
    """
    noted, ids = _noted_mark(journal, subject), journal.ids(_prefix(subject))
    records = 0
    if noted is None and journal.highest_mark("") is None:  # no mark at all: each record of a release followed a charge
        records = journal.count(RELEASES)
    mark = now()
    reached = mark.charges >= records and (noted is None or mark.reaches(noted))
    if not reached or set(ids) - set(charged(ids)):
        raise Conflict(
            "the ledger is older than the journal beside it: it lacks charges that were made. Nothing was charged and nothing is "
            "sent. Restore the newest ledger, or name a new subject after counting what was spent."
        )


def note(journal: Journal, subject: str, now: Mark, ids: Collection[str] = ()) -> None:
    """Notes durably how far the ledger has come, and these ids of charges in it.

    Notes are never taken back. If others note at the same time, the highest mark counts.
    """
    for release_id in ids:
        journal.put_id(_prefix(subject), release_id)
    noted = _noted_mark(journal, subject) or Mark(0, 0, 0, 0, 0)
    highest = now.highest(noted)
    if highest != noted:
        journal.put_mark(_prefix(subject), highest.height, highest.to_bytes())


def _noted_mark(journal: Journal, subject: str) -> Mark | None:
    content = journal.highest_mark(_prefix(subject))
    return None if content is None else Mark.from_bytes(content)


def _prefix(subject: str) -> str:
    return sha256(subject.encode()).hexdigest()[:32] + "-"
