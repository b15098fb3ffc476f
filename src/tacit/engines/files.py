"""Files that are whole or not there: messages in folders that several processes, and other programs, look into."""

import contextlib
import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from tacit.errors import InvalidMessage
from tacit.messages.federated_prototypes_frame import MOST_BYTES

ENDING = ".fp"
_LONGEST = 180  # bytes of a name that `write` puts more before and behind; file systems allow 255


def write(file: Path, content: bytes) -> None:
    """Puts a file in its place, whatever was there."""
    with _whole(file, content) as temporary:
        os.replace(temporary, file)


def write_once(file: Path, content: bytes) -> bytes:
    """Puts a file in its place unless one is there; returns what stands."""
    with _whole(file, content) as temporary, contextlib.suppress(FileExistsError):
        os.link(temporary, file)
    return file.read_bytes()


def messages_in(folder: Path) -> list[Path]:
    """The message files of a folder, by name. Others, and half-written ones, are none."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.suffix == ENDING and not file.name.startswith("."))


def bounded(name: str) -> str:
    """A name that a file can be written under: one that is longer is cut, and told apart by its hash."""
    whole = os.fsencode(name)
    return name if len(whole) <= _LONGEST else f"{name[:40]}-{sha256(whole).hexdigest()[:16]}{ENDING}"


def told(name: str) -> str:
    """A file's name as it can be printed, whatever bytes it has: none of them begins a line or moves a cursor."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in name)


def read_message(file: Path) -> bytes:
    """The bytes of a file that may be anybody's: never more than a message can have. A pipe is not waited for."""
    try:
        with open(file, "rb", opener=_at_once) as content:
            if not stat.S_ISREG(os.fstat(content.fileno()).st_mode):
                raise InvalidMessage(f"{told(file.name)} is no file.")
            data = content.read(MOST_BYTES + 1)
    except OSError as problem:
        raise InvalidMessage(f"{told(file.name)} cannot be read ({problem.strerror}).") from None
    if len(data) > MOST_BYTES:
        raise InvalidMessage(f"{told(file.name)} is longer than any message.")
    return data


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@contextlib.contextmanager
def _whole(file: Path, content: bytes) -> Iterator[Path]:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with temporary.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        yield temporary
        handle = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    finally:
        temporary.unlink(missing_ok=True)
