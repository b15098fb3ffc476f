"""Durable writes. A reader of a file sees the old content or the new content, never a part, even after a crash.

    replace(path, content)                   # takes the place of a file that exists
    standing = write_once(path, content)     # keeps a file that exists; returns the content that stands
    with draft(path) as temporary: ...       # for a library that writes the file itself
    with draft_new(path) as temporary: ...   # the same, where no file may exist yet

Each function writes a hidden file in the same folder (`.<name>.<random digits>`), flushes it to the disk, moves it into
place and flushes the folder. An error removes the hidden file; a process that is killed may leave it behind, so readers
of a folder skip hidden files.
"""

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

OWNER_ONLY = 0o600
_UMASK_DECIDES = 0o666


def replace(
    path: Path, content: bytes, *, mode: int = _UMASK_DECIDES, inherit_owner: bool = False, parents: bool = False
) -> None:
    """Writes ``content`` to ``path``, in place of any file there.

    The umask of the process applies to ``mode``. With ``inherit_owner`` the file gets exactly ``mode``, and the owner
    and group of the file that it replaces, or of the folder if it is new (see `give`): use it where another user reads
    what you write. ``parents`` creates missing folders first.
    """
    with draft(path, mode=mode, inherit_owner=inherit_owner, parents=parents) as temporary:
        temporary.write_bytes(content)


def write_once(path: Path, content: bytes, *, mode: int = _UMASK_DECIDES, parents: bool = False) -> bytes:
    """Writes ``content`` to ``path`` unless a file exists there, and returns the content that stands.

    If two processes write at once, one wins and both get the winner's content.
    """
    with _temporary(path, mode, parents) as temporary:
        temporary.write_bytes(content)
        with contextlib.suppress(FileExistsError):
            _link(temporary, path)
    return path.read_bytes()


@contextlib.contextmanager
def draft(
    path: Path, *, mode: int = _UMASK_DECIDES, inherit_owner: bool = False, parents: bool = False
) -> Iterator[Path]:
    """Yields an empty file to write to. It takes the place of ``path`` when the block ends without an error.

    The options are those of `replace`.
    """
    with _temporary(path, OWNER_ONLY if inherit_owner else mode, parents) as temporary:
        yield temporary
        synchronise([temporary])
        if inherit_owner:
            give(temporary, like=path if path.exists() else path.parent, mode=mode)
        os.replace(temporary, path)
        synchronise([path.parent])


@contextlib.contextmanager
def draft_new(path: Path, *, mode: int = _UMASK_DECIDES, parents: bool = False) -> Iterator[Path]:
    """As `draft`, but raises FileExistsError at the end of the block if a file stands at ``path`` by then."""
    with _temporary(path, mode, parents) as temporary:
        yield temporary
        _link(temporary, path)


def _link(temporary: Path, path: Path) -> None:
    synchronise([temporary])
    try:
        os.link(temporary, path)  # unlike a rename, a link never replaces a file
    finally:
        synchronise([path.parent])


def give(path: Path, *, like: Path, mode: int) -> None:
    """Gives a file the permissions ``mode``, and the owner and group of ``like`` if the system allows it.

    Root may change the owner. Other users may only choose a group that they belong to; where they do not, the owner
    stays as it is.
    """
    owner = like.stat()
    try:
        os.chown(path, owner.st_uid, owner.st_gid)
    except PermissionError:
        with contextlib.suppress(PermissionError):
            os.chown(path, -1, owner.st_gid)
    path.chmod(mode)


def synchronise(paths: Iterable[Path]) -> None:
    """Flushes to the disk: the content of files, the list of names of folders."""
    for path in paths:
        if os.name != "posix" and path.is_dir():
            continue  # only POSIX can open a folder
        handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Holds an exclusive lock on a folder: processes that change its files one after the other take it first."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def drafts_of(path: Path) -> Iterator[Path]:
    """The hidden files that processes left which were killed while they wrote ``path``, and those of running ones."""
    return path.parent.glob(f".{glob.escape(path.name)}.*")


@contextlib.contextmanager
def _temporary(path: Path, mode: int, parents: bool) -> Iterator[Path]:
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")  # drafts_of finds it by this name
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
