"""Group commit: threads that want to write at the same time share one transaction, and so one wait for the disk.

Whoever comes first leads: it commits its own work together with all that is waiting, then hands the lead on. There is no
thread in the background, and a single writer pays nothing.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from tacit.errors import LedgerUnavailable

T = TypeVar("T")
R = TypeVar("R")

MOST_TOGETHER = 5_000  # items in one transaction, unless one call alone brings more


class _Call(Generic[T, R]):
    __slots__ = ("event", "items", "outcomes", "problem")

    def __init__(self, items: list[T]) -> None:
        self.items = items
        self.outcomes: list[R] | None = None
        self.problem: BaseException | None = None
        self.event: threading.Event | None = None


class GroupCommit(Generic[T, R]):
    """Calls ``commit`` with the items of one or several waiting calls; all items of one call are in the same transaction."""

    def __init__(self, commit: Callable[[list[T]], list[R]]) -> None:
        self._commit = commit
        self.start()
        _groups.add(self)

    def start(self) -> None:
        """Anew in a forked child: whoever led or waited is in the other process."""
        self._lock = threading.Lock()
        self._waiting: deque[_Call[T, R]] = deque()
        self._leader: _Call[T, R] | None = None

    def __call__(self, items: list[T]) -> list[R]:
        """The outcome of each item, once they are durable. Whatever ``commit`` raises is raised in every call it held."""
        call: _Call[T, R] = _Call(items)
        try:
            with self._lock:
                self._waiting.append(call)
                if self._leader is None:
                    self._leader = call
                else:
                    call.event = threading.Event()
            if call.event is not None:
                call.event.wait()  # either the outcome is there, or it is this thread's turn to lead
            while call.outcomes is None and call.problem is None:
                self._commit_next()
        finally:
            self._leave(call)
        if call.outcomes is None:
            raise call.problem or LedgerUnavailable("the commit ended without an outcome; nothing may be released.")
        return call.outcomes

    def _leave(self, call: _Call[T, R]) -> None:
        """Out of the line, also where an interrupt ended the wait; whoever had the lead hands it on."""
        with self._lock:
            if call.outcomes is None and call in self._waiting:
                self._waiting.remove(call)
            if self._leader is call:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None and self._leader.event is not None:
                    self._leader.event.set()

    def _commit_next(self) -> None:
        calls: list[_Call[T, R]] = []
        try:
            with self._lock:
                calls.append(self._waiting.popleft())
                size = len(calls[0].items)
                while self._waiting and size + len(self._waiting[0].items) <= MOST_TOGETHER:
                    calls.append(self._waiting.popleft())
                    size += len(calls[-1].items)
            outcomes = self._commit([item for call in calls for item in call.items])
            start = 0
            for call in calls:
                call.outcomes = outcomes[start : start + len(call.items)]
                start += len(call.items)
        except Exception as problem:
            for call in calls:
                call.problem = problem
        finally:
            for call in calls:
                if call.outcomes is None and call.problem is None:  # an interrupt is the leader's own
                    call.problem = LedgerUnavailable("the commit was interrupted; nothing may be released. Try again.")
                if call.event is not None:
                    call.event.set()


_groups: "WeakSet[GroupCommit[Any, Any]]" = WeakSet()


def _in_child() -> None:
    for group in list(_groups):
        group.start()


os.register_at_fork(after_in_child=_in_child)
