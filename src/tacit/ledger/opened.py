"""What both ledgers have: a place, a clock, a beginning and an end."""

import os
from collections.abc import Callable
from typing import Self, TypeVar
from weakref import WeakSet

from tacit.errors import LedgerDamaged, LedgerExists, LedgerUnavailable
from tacit.ledger.chain import Head
from tacit.ledger.clock import END_OF_TIME, Clock, now
from tacit.ledger.heads import head_of, require_head
from tacit.ledger.stores import Target, create_store, open_store
from tacit.ledger.stores.interface import AlreadyThere, Store

T = TypeVar("T")
R = TypeVar("R")

_MANY = 16  # items in one transaction, from which on it pays to hope that none of them is a repetition


class OpenedLedger:
    """One object may be shared by many threads, one store by many processes."""

    def __init__(self, store: Store, *, clock: Clock = now) -> None:
        self._store, self._clock, self._expect_repeats = store, clock, False
        _opened.add(self)

    @classmethod
    def create(cls, target: Target, *, lanes: int | None = None, clock: Clock = now) -> Self:
        """A new ledger in a file that does not exist yet, or in a PostgreSQL database that has none."""
        return cls(create_store(target, lanes), clock=clock)

    @classmethod
    def open(cls, target: Target, *, head: Head | None = None, clock: Clock = now) -> Self:
        """The ledger at ``target``. It is never created here: a lost ledger must not look like a new one.

        With a ``head`` that was noted earlier, a ledger that lacks entries it once had (an old backup) is refused.
        """
        store = open_store(target)
        try:
            if head is not None:
                require_head(store, head)
        except BaseException:
            store.close()
            raise
        return cls(store, clock=clock)

    @classmethod
    def open_or_create(cls, target: Target, *, head: Head | None = None, clock: Clock = now) -> Self:
        """For a program that starts for the first time. Elsewhere say which of the two you mean.

        Whoever has noted a ``head`` has had a ledger before: it is then opened, and never created.
        """
        if head is not None:
            return cls.open(target, head=head, clock=clock)
        try:
            return cls.create(target, clock=clock)
        except LedgerExists:
            return cls.open(target, clock=clock)

    @classmethod
    def beside(cls, other: "OpenedLedger") -> Self:
        """This ledger in the store that another one has opened: they share its connection, and closing one closes both."""
        return cls(other._store, clock=other._clock)

    def head(self) -> Head:
        """How far the ledger has come. Keep it somewhere else and give it to ``open``."""
        return head_of(self._store)

    def close(self) -> None:
        """Closes the file or connection. Everything that was answered is on the disk already."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _moment(self) -> int:
        """The clock's time, if a calendar knows it."""
        moment = self._clock()
        if not 0 <= moment <= END_OF_TIME:
            raise LedgerUnavailable(
                "the clock's time is in no calendar; nothing was charged. Mend the clock, then try again."
            )
        return moment

    def _start_anew(self) -> None:
        """In a forked child."""

    def _hoping(
        self, items: list[T], transact: Callable[[list[T], bool], list[R]], is_repeat: Callable[[R], bool]
    ) -> list[R]:
        """Commits many items, at first without looking whether they were there before, where that is quicker.

        ``transact`` takes the items and whether to look them up; it raises AlreadyThere, and has then written nothing.
        """
        hopeful = self._store.hopeful and not self._expect_repeats and len(items) >= _MANY
        try:
            try:
                outcomes = transact(items, not hopeful)
            except AlreadyThere:
                outcomes = transact(items, True)
        except AlreadyThere as problem:
            raise LedgerDamaged("the ledger's index disagrees with its rows. Run `tacit ledger check`.") from problem
        self._expect_repeats = any(map(is_repeat, outcomes))
        return outcomes


_opened: "WeakSet[OpenedLedger]" = WeakSet()


def _in_child() -> None:
    for ledger in list(_opened):
        ledger._start_anew()


os.register_at_fork(after_in_child=_in_child)
