"""SQLite and forks. A child inherits what SQLite believes about its locks, but not the locks: once the parent is gone, others
change the file under the child's hands, and it comes to harm. So no connection may be open at the moment of a fork.

Writers' connections are closed before a fork, when their transaction is over, and opened again when they are next needed. A reader
cannot be closed, since somebody is using it; if one is open, the child may not use that file at all.
"""

import os
import threading
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from tacit.errors import LedgerUnavailable


class Forkable(Protocol):
    """A store that has connections."""

    path: Path

    def pause(self) -> None:
        """Waits for the transaction at work, closes its connection, and lets no other begin."""
        ...

    def resume(self) -> None: ...

    def is_read(self) -> bool:
        """Whether a reader is open."""
        ...


stores: "WeakSet[Forkable]" = WeakSet()
_one_fork_at_a_time = threading.Lock()
_paused: list[Forkable] = []
_forbidden: set[tuple[int, int]] = set()  # files, by device and number


def check_file(path: Path) -> None:
    """Refuses a file that was being read when this process was forked."""
    if _forbidden and path.exists() and _identity(path) in _forbidden:
        raise LedgerUnavailable(
            f"this process was forked while the ledger in {path} was being read, and cannot use it safely; nothing may be "
            "released. Fork earlier, or start processes anew (`spawn`)."
        )


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _before() -> None:
    _one_fork_at_a_time.acquire()
    for store in sorted(stores, key=id):
        store.pause()
        _paused.append(store)


def _in_parent() -> None:
    while _paused:
        _paused.pop().resume()
    _one_fork_at_a_time.release()


def _in_child() -> None:
    _forbidden.update(_identity(store.path) for store in _paused if store.is_read() and store.path.exists())
    _in_parent()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
