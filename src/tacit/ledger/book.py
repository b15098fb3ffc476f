"""The base of every ledger: opening and closing, the clock, the head, and group commit.

Group commit: threads that want to write at the same time share one transaction, and so one wait for the disk. The first to come
leads: it commits its own work together with all waiting work, then hands the lead on. There is no background thread, and a
single writer pays nothing.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet

from tacit.errors import InvalidParameter, LedgerBehind, LedgerDamaged, LedgerExists, LedgerUnavailable, TacitError
from tacit.ledger.chain import END_OF_TIME, Clock, Head, genesis, now
from tacit.ledger.stores import Target, create_store, open_store
from tacit.ledger.stores.interface import BOOKS, AlreadyThere, LedgerStore, LedgerTable, Query, Reader, Row

T = TypeVar("T")
R = TypeVar("R")

MOST_TOGETHER = 5_000  # items in one transaction, unless one call alone brings more
_MANY = 16  # items in one transaction: from this number on it pays to assume that no item is a repetition
_TABLES = {"privacy": "entries", "impressions": "impressions"}


class Ledger:
    """An open ledger. One object may be shared by many threads, one store by many processes."""

    def __init__(self, store: LedgerStore, *, clock: Clock = now) -> None:
        self._store, self._clock, self._expect_repeats = store, clock, False
        _open_ledgers.add(self)

    @classmethod
    def create(cls, target: Target, *, lanes: int | None = None, clock: Clock = now) -> Self:
        """A new ledger, in a file that does not exist yet or in a PostgreSQL database without a ledger."""
        return cls(create_store(target, lanes), clock=clock)

    @classmethod
    def open(cls, target: Target, *, head: Head | None = None, clock: Clock = now) -> Self:
        """The ledger at ``target``. It is never created here: a lost ledger must not look like a new one.

        With a ``head`` that was noted earlier, it refuses a ledger that lacks entries it once had, such as an old backup.
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
        """The ledger at ``target``, created if it is missing. For programs that may be starting for the first time.

        With a ``head`` it opens, and never creates: a caller who noted a head had a ledger before.
        """
        if head is not None:
            return cls.open(target, head=head, clock=clock)
        try:
            return cls.create(target, clock=clock)
        except LedgerExists:
            return cls.open(target, clock=clock)

    @classmethod
    def beside(cls, other: "Ledger") -> Self:
        """A ledger in the store that another one has opened. They share its connection; closing one closes both."""
        return cls(other._store, clock=other._clock)

    def head(self) -> Head:
        """How far the ledger has come. Keep it in another place, and pass it to ``open``."""
        return head_of(self._store)

    def close(self) -> None:
        """Closes the file or connection. Everything that was answered is on the disk already."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _moment(self) -> int:
        """The clock's time. Raises LedgerUnavailable if it is before 1970 or after the year 9909."""
        moment = self._clock()
        if not 0 <= moment <= END_OF_TIME:
            raise LedgerUnavailable(
                "the system clock shows an impossible date; nothing was charged. Set the clock and try again."
            )
        return moment

    def _after_fork(self) -> None:
        """Called in a forked child."""

    def _commit_optimistically(
        self, items: list[T], transact: Callable[[list[T], bool], list[R]], is_repeat: Callable[[R], bool]
    ) -> list[R]:
        """Commits many items, at first without looking for earlier ones if the store is faster that way.

        ``transact`` takes the items and whether to look them up. It raises AlreadyThere, and then has written nothing.
        """
        optimistic = self._store.optimistic and not self._expect_repeats and len(items) >= _MANY
        with refusing_hidden_rows():
            try:
                outcomes = transact(items, not optimistic)
            except AlreadyThere:
                outcomes = transact(items, True)
        self._expect_repeats = any(map(is_repeat, outcomes))
        return outcomes


@contextmanager
def refusing_hidden_rows() -> Iterator[None]:
    """Raises LedgerDamaged if a row exists although its id was looked up and not found: a damaged index hid it."""
    try:
        yield
    except AlreadyThere as problem:
        raise LedgerDamaged("the ledger's index disagrees with its rows. Run `tacit ledger check`.") from problem


def delete_rows(
    store: LedgerStore,
    book: str,
    table: LedgerTable,
    select: str,
    recheck: Query,
    values: Row,
    lane: Callable[[Row], int],
) -> int:
    """Deletes the rows whose keys ``select`` finds with the parameters ``values``, and returns how many.

    It deletes few rows at a time, so that nobody waits for long. Once the lanes are locked, ``recheck`` asks for each key, with
    the same values, whether the row still qualifies: another process may have deleted it and written a new one.
    """
    deleted = 0
    while True:
        with store.read() as reader:
            keys = list(reader.stream(select, values))
        if not keys:
            return deleted
        with store.write(book, sorted({lane(key) for key in keys})) as writer:
            rows = writer.ask(recheck, [(*key, *values) for key in keys])()
            expired = [key for key, row in zip(keys, rows, strict=True) if row is not None]
            writer.delete(table, expired)
        deleted += len(expired)


def sole_outcome(outcomes: list[R | TacitError]) -> R:
    """The outcome of a call for one item, or its error, raised."""
    (outcome,) = outcomes
    if isinstance(outcome, TacitError):
        raise outcome
    return outcome


class _Call(Generic[T, R]):
    __slots__ = ("event", "items", "outcomes", "problem")

    def __init__(self, items: list[T]) -> None:
        self.items = items
        self.outcomes: list[R] | None = None
        self.problem: BaseException | None = None
        self.event: threading.Event | None = None


class GroupCommit(Generic[T, R]):
    """Calls ``commit`` with the items of one or several waiting calls. All items of one call are in the same transaction."""

    def __init__(self, commit: Callable[[list[T]], list[R]]) -> None:
        self._commit = commit
        self.start()
        _groups.add(self)

    def start(self) -> None:
        """Called again in a forked child, where no thread leads or waits."""
        self._lock = threading.Lock()
        self._waiting: deque[_Call[T, R]] = deque()
        self._leader: _Call[T, R] | None = None

    def __call__(self, items: list[T]) -> list[R]:
        """The outcome of each item, once they are durable. An error of ``commit`` is raised in every call it held."""
        call: _Call[T, R] = _Call(items)
        try:
            with self._lock:
                self._waiting.append(call)
                if self._leader is None:
                    self._leader = call
                else:
                    call.event = threading.Event()
            if call.event is not None:
                call.event.wait()  # then there is an outcome, or it is this thread's turn to lead
            while call.outcomes is None and call.problem is None:
                self._commit_next()
        finally:
            self._leave(call)
        if call.outcomes is None:
            raise call.problem or LedgerUnavailable("the commit ended without an outcome; nothing may be released.")
        return call.outcomes

    def commit_valid(self, items: Iterable[T | TacitError]) -> list[R | TacitError]:
        """The outcome of each item. An error among the items is its own outcome: only the other items are committed."""
        items = list(items)
        valid = [item for item in items if not isinstance(item, TacitError)]
        outcomes = iter(self(valid) if valid else [])
        return [item if isinstance(item, TacitError) else next(outcomes) for item in items]

    def _leave(self, call: _Call[T, R]) -> None:
        """Takes a call out of the line, also after an interrupt, and hands the lead on if the call had it."""
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


def head_of(store: LedgerStore) -> Head:
    """How far a ledger has come: the ends of all lanes at one moment."""
    with store.read() as reader:
        return read_head(reader, store.ledger)


def read_head(reader: Reader, ledger: str) -> Head:
    """The ends of all lanes, from an open reader."""
    books: dict[str, list[tuple[int, str]]] = {book: [] for book in BOOKS}
    for book, position, link in reader.stream("SELECT book, position, link FROM lanes ORDER BY book, lane"):
        if book not in books or type(position) is not int or type(link) is not bytes:
            raise LedgerDamaged(
                "the ends of the lanes are not what was written. Run `tacit ledger check`, then restore a backup."
            )
        books[book].append((position, link.hex()))
    return Head(ledger, {book: tuple(tips) for book, tips in books.items()})


def check_head(head: Head) -> None:
    """Raises InvalidParameter unless the value is a whole head: a part of one would seem to protect, and would not."""
    if not isinstance(head, Head) or set(head.books) != set(BOOKS):
        raise InvalidParameter(
            "a head has both books: pass ledger.head(), or Head.from_json(...) of a head noted earlier."
        )


def require_head(store: LedgerStore, head: Head) -> None:
    """Refuses a ledger that does not contain ``head``: entries are missing, or others took their place."""
    check_head(head)
    if head.ledger != store.ledger:
        raise LedgerDamaged("this is not the ledger whose head was noted. Open the right file or database.")
    with store.read() as reader:
        current = read_head(reader, store.ledger)
        for book, noted in head.books.items():
            tips = current.books.get(book, ())
            if len(noted) != len(tips):
                raise LedgerDamaged(
                    f"the noted head has {len(noted)} lanes in the {book} book, the ledger {len(tips)}."
                )
            for lane, ((position, link), (reached, _)) in enumerate(zip(noted, tips, strict=True)):
                if reached < position:
                    raise LedgerBehind(
                        f"lane {lane} of the {book} book ends at entry {reached:,}, but had {position:,} when its head was "
                        "noted: is this an old backup? Do not charge anything to it. Restore the latest backup. If that is "
                        "lost, count what was left of every budget as spent."
                    )
                if _link_at(reader, store, book, lane, position) != link:
                    raise LedgerDamaged(
                        f"entry {position:,} of lane {lane} of the {book} book is not the one that was noted."
                    )


def _link_at(reader: Reader, store: LedgerStore, book: str, lane: int, position: int) -> str | None:
    if position == 0:
        return genesis(store.ledger, book, lane, store.lanes).hex()
    query = Query(f"SELECT link FROM {_TABLES[book]} WHERE number = ?", ("int",))
    (row,) = reader.ask(query, [(position * store.lanes + lane,)])()
    return None if row is None else row[0].hex()


_open_ledgers: "WeakSet[Ledger]" = WeakSet()
_groups: "WeakSet[GroupCommit[Any, Any]]" = WeakSet()


def _after_fork() -> None:
    for ledger in list(_open_ledgers):
        ledger._after_fork()
    for group in list(_groups):
        group.start()


os.register_at_fork(after_in_child=_after_fork)
