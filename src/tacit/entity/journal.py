"""What an entity has answered, beside its ledger: one file for each stage of a run, written once, before the answer leaves.

    <folder>/<run>/<stage>
    <folder>/charged/<subject>-<height>     how far the ledger has come (see entity/marks.py)
    <folder>/entries/<subject>-<digest>     the id of a charge that was made

A record is whole or not there, and the first one stands: of two processes that answer at once, both send what is on the disk. Files
are readable by their owner only. What a record keeps for later stages (the secrets of a secure sum) is deleted when a run is over.
"""

import contextlib
import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tacit.errors import LedgerDamaged, LedgerUnavailable
from tacit.messages import fields

MANIFEST, MODEL, LEFT = "manifest", "model", "left"
_MARKS, _IDS = "charged", "entries"
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700


@dataclass(frozen=True, slots=True)
class Record:
    """The digest of the message that was answered, the answer, and what later stages need."""

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
                "cannot go on in its run."
            ) from None
        return cls(message, content[:reply], content[reply:])


class Journal:
    """One folder for all runs of an entity."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def runs(self) -> list[str]:
        """The ids of all runs it knows, oldest first."""
        if not self.folder.is_dir():
            return []
        known = [one for one in self.folder.iterdir() if (one / MANIFEST).is_file()]
        return [one.name for one in sorted(known, key=lambda one: ((one / MANIFEST).stat().st_mtime_ns, one.name))]

    def read(self, run: str, stage: str) -> Record | None:
        try:
            return Record.from_bytes(self._file(run, stage).read_bytes())
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise _unavailable(problem) from None

    def write(self, run: str, stage: str, record: Record) -> Record:
        """Keeps a record durably; returns the one that stands, which is an older one where there was one."""
        try:
            with self._written(self._file(run, stage), record.to_bytes()) as file:
                with contextlib.suppress(FileExistsError):  # the first one stands
                    os.link(file, self._file(run, stage))
                _flush(file.parent)
        except OSError as problem:
            raise _unavailable(problem) from None
        standing = self.read(run, stage)
        if standing is None:
            raise LedgerUnavailable(
                "a record vanished from the journal beside the ledger. Nothing was sent; mend that first."
            )
        return standing

    def replace(self, run: str, stage: str, record: Record) -> None:
        """Puts a record in the place of an older one: a newer model, or the same answer without its secrets."""
        try:
            with self._written(self._file(run, stage), record.to_bytes()) as file:
                os.replace(file, self._file(run, stage))
                _flush(file.parent)
        except OSError as problem:
            raise _unavailable(problem) from None

    def forget_secrets(self, run: str) -> None:
        """Deletes what the records of a run keep beside their answers."""
        for file in sorted(self._file(run, MANIFEST).parent.iterdir()):
            record = self.read(run, file.name) if not file.name.startswith(".") else None
            if record is not None and record.state:
                self.replace(run, file.name, Record(record.message, record.reply))

    def count(self, stages: Collection[str]) -> int:
        """How many records of these stages there are, of all runs."""
        return sum((self.folder / run / stage).is_file() for run in self.runs() for stage in stages)

    def put_mark(self, prefix: str, height: int, content: bytes) -> None:
        """Keeps a mark durably. A higher one that is there stays the highest; lower ones are deleted."""
        target = self.folder / _MARKS / f"{prefix}{height}"
        try:
            with self._written(target, content) as file:
                os.replace(file, target)
                _flush(file.parent)
            for name, lower in self._marks(prefix):
                if lower < height:
                    (target.parent / name).unlink(missing_ok=True)
        except OSError as problem:
            raise _unavailable(problem) from None

    def highest_mark(self, prefix: str) -> bytes | None:
        """The content of the highest mark whose name begins so."""
        try:
            while marks := self._marks(prefix):
                name, _ = max(marks, key=lambda one: one[1])
                with contextlib.suppress(FileNotFoundError):  # deleted just now: there is a higher one
                    return (self.folder / _MARKS / name).read_bytes()
        except OSError as problem:
            raise _unavailable(problem) from None
        return None

    def put_id(self, prefix: str, text: str) -> None:
        """Keeps the id of a charge durably, once."""
        target = self.folder / _IDS / f"{prefix}{sha256(text.encode()).hexdigest()}"
        try:
            if not target.is_file():
                with self._written(target, text.encode()) as file:
                    os.replace(file, target)
                    _flush(file.parent)
        except OSError as problem:
            raise _unavailable(problem) from None

    def ids(self, prefix: str) -> list[str]:
        """All ids that were kept under this prefix."""
        folder = self.folder / _IDS
        try:
            files = sorted(folder.glob(f"{prefix}*")) if folder.is_dir() else []
            found = {file.name: file.read_bytes() for file in files}
        except OSError as problem:
            raise _unavailable(problem) from None
        if any(name != f"{prefix}{sha256(content).hexdigest()}" for name, content in found.items()):
            raise LedgerDamaged("the journal's note of a charge is damaged. Restore the journal from a backup.")
        return [content.decode() for content in found.values()]

    def _marks(self, prefix: str) -> list[tuple[str, int]]:
        folder = self.folder / _MARKS
        names = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        heights = [(name, name.rpartition("-")[2]) for name in names if name.startswith(prefix) and name[0] != "."]
        return [(name, int(height)) for name, height in heights if height.isdecimal()]

    @contextlib.contextmanager
    def _written(self, target: Path, data: bytes) -> Iterator[Path]:
        self.folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        target.parent.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
        file = target.parent / f".{target.name}.{os.getpid()}.{os.urandom(8).hex()}"
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE), "wb") as content:
                content.write(data)
                content.flush()
                os.fsync(content.fileno())
            yield file
        finally:
            file.unlink(missing_ok=True)

    def _file(self, run: str, stage: str) -> Path:
        return self.folder / fields.hexadecimal(run, "the run's id", length=64) / stage


def _flush(folder: Path) -> None:
    """What a folder lists is on the disk, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unavailable(problem: OSError) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"the journal beside the ledger cannot be read or written ({problem.strerror}). Nothing was sent; mend that first."
    )
