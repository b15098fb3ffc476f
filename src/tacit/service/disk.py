"""Files that are whole or not there, and belong to whoever is to read them.

A service is often another user than the one who publishes a model or adds a key, and neither is everybody's to read. So what is
written belongs to the owner of the folder that it is put into, as far as the system lets the writer give it away.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OWNER_ONLY = 0o600


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One change of what is in it after the other, whichever process they are from."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def put(file: Path, content: bytes, *, mode: int = OWNER_ONLY) -> None:
    """Puts a file in its place, durably. One that was there keeps its owner."""
    partial = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    try:
        with open(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        give(partial, like=file if file.exists() else file.parent, mode=mode)
        os.replace(partial, file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    synchronise([file.parent])


def give(path: Path, *, like: Path, mode: int) -> None:
    """To the owner and group of ``like``, if the system lets us: root may; others may give it to a group that they are in."""
    about = like.stat()
    try:
        os.chown(path, about.st_uid, about.st_gid)
    except PermissionError:
        with suppress(PermissionError):
            os.chown(path, -1, about.st_gid)
    path.chmod(mode)


def synchronise(paths: Iterable[Path]) -> None:
    """Their content, or for folders the names in them, is on the disk afterwards."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
