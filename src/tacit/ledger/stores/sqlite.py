"""The SQLite store, which is the default: one file, a write-ahead log, and every commit on the disk before it is acknowledged.

SQLite and forks: a child inherits SQLite's record of its locks, but not the locks. After the parent is gone, other processes
change the file while the child believes it is locked, and the file may be damaged. So no connection may be open during a fork.
Writers' connections are closed before a fork, when their transaction is over, and opened again when they are needed. A reader
cannot be closed while somebody uses it; if one is open, the child may not use that file at all.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from weakref import WeakSet

from tacit.errors import LedgerDamaged, LedgerUnavailable
from tacit.ledger.chain import Tip
from tacit.ledger.stores.interface import (
    LANES,
    AlreadyThere,
    Answers,
    LedgerTable,
    Origin,
    Query,
    Row,
    read_tip,
    starting_rows,
    tip_row,
)
from tacit.ledger.stores.sqlite_files import connect, create, forbid, identity, insert, named, open_file, raise_named

_TIP = "SELECT position, link, at, seal FROM lanes WHERE book = ? AND lane = ?"


class SqliteStore:
    """A ledger in one SQLite file. Safe to share among threads; a forked process gets a connection of its own."""

    optimistic = True  # a look-up is a call from Python for every row

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.lock = threading.Lock()
        self._closed = False
        self._readers: set[int] = set()
        self._connection: sqlite3.Connection | None = None
        self._origin = self._open()
        _stores.add(self)

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, lanes: int) -> "SqliteStore":
        """Creates a new ledger, whole or not at all. Raises LedgerExists if the file exists."""
        create(Path(path), starting_rows(lanes))
        return cls(path)

    @property
    def ledger(self) -> str:
        return self._origin.ledger

    @property
    def lanes(self) -> int:
        return self._origin.lanes

    def write(self, book: str, lanes: Sequence[int]) -> "SqliteWriter":
        return SqliteWriter(self, book, lanes)

    @contextmanager
    def read(self) -> Iterator["SqliteReader"]:
        self._require_open()
        self.require_same_file()
        with named(self.path):
            connection = connect(self.path, mode="rw")  # of its own: a long export must not delay charges
            self._readers.add(id(connection))
            try:
                connection.execute("BEGIN")
                yield SqliteReader(connection)
            finally:
                connection.close()
                self._readers.discard(id(connection))

    def connection(self) -> sqlite3.Connection:
        """The writers' connection. The caller must hold the lock."""
        self._require_open()
        if self._connection is None and self._open() != self._origin:
            raise LedgerDamaged(f"{self.path} now holds another ledger than the one that was opened.")
        if self._connection is None:
            raise LedgerUnavailable(f"the ledger in {self.path} could not be opened again; nothing may be released.")
        return self._connection

    def close(self) -> None:
        with self.lock:
            self._closed = True
            self._drop()

    def pause(self) -> None:
        """Waits for the running transaction, closes its connection, and blocks new ones until ``resume``."""
        self.lock.acquire()
        self._drop()

    def resume(self) -> None:
        self.lock.release()

    def is_read(self) -> bool:
        """Whether a reader is open."""
        return bool(self._readers)

    def _require_open(self) -> None:
        if self._closed:
            raise LedgerUnavailable(f"the ledger in {self.path} is closed; nothing may be released. Open it again.")

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Origin:
        self._connection, origin = open_file(self.path)
        self._identity = identity(self.path)
        return origin

    def require_same_file(self) -> None:
        """Refuses to write to a file that was moved, replaced or removed: others would charge the file in its place."""
        if identity(self.path) != self._identity:
            raise LedgerUnavailable(
                f"{self.path} is now another file than the one that was opened; nothing was charged. Open it again."
            )


_stores: "WeakSet[SqliteStore]" = WeakSet()
_one_fork_at_a_time = threading.Lock()
_paused: list[SqliteStore] = []


def _before_fork() -> None:
    _one_fork_at_a_time.acquire()
    for store in sorted(_stores, key=id):
        store.pause()
        _paused.append(store)


def _in_parent() -> None:
    while _paused:
        _paused.pop().resume()
    _one_fork_at_a_time.release()


def _in_child() -> None:
    for store in _paused:
        if store.is_read():
            forbid(store.path)
    _in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


class _Statements:
    """One statement for each key: SQLite runs in this process, so a question costs no round trip."""

    _connection: sqlite3.Connection

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        execute = self._connection.execute
        rows = [execute(query.sql, key).fetchone() for key in keys]
        return lambda: rows


class SqliteReader(_Statements):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def stream(self, sql: str, parameters: Row = ()) -> Iterator[Row]:
        return self._connection.execute(sql, parameters)

    def damage(self) -> list[str]:
        messages = [text for (text,) in self._connection.execute("PRAGMA integrity_check(20)")]
        return [] if messages == ["ok"] else messages


class SqliteWriter(_Statements):
    def __init__(self, store: SqliteStore, book: str, lanes: Sequence[int]) -> None:
        self._store, self._book, self._lanes = store, book, lanes

    def __enter__(self) -> "SqliteWriter":
        self._store.lock.acquire()
        try:
            self._connection = self._store.connection()
            self._connection.execute("BEGIN IMMEDIATE")  # before anything is read: no other writer until the commit
            self._store.require_same_file()
            execute, book = self._connection.execute, self._book
            self.tips = {lane: read_tip(book, lane, execute(_TIP, (book, lane)).fetchone()) for lane in self._lanes}
        except BaseException as problem:
            self._end(problem)
            raise
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is None:
            try:
                self._store.require_same_file()
                self._connection.execute("COMMIT")
            except BaseException as failure:
                self._end(failure)
                raise
            self._store.lock.release()
        else:
            self._end(problem)

    def _end(self, problem: BaseException) -> None:
        """Rolls back, releases the lock, and raises SQLite's errors as the ledger's own."""
        with suppress(sqlite3.Error, AttributeError):  # a full disk has rolled back already; there may be no connection
            self._connection.execute("ROLLBACK")
        self._store.lock.release()
        if isinstance(problem, (sqlite3.Error, UnicodeDecodeError)):
            raise_named(self._store.path, problem)

    def insert(self, table: LedgerTable, rows: Sequence[Row], *, unless_there: bool = False) -> None:
        try:
            self._connection.executemany(_insert(table, unless_there), rows)
        except sqlite3.IntegrityError as problem:
            if problem.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_UNIQUE:
                raise AlreadyThere from problem
            raise

    def update(self, table: LedgerTable, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        self._connection.executemany(_update(table, columns), rows)

    def delete(self, table: LedgerTable, keys: Sequence[Row]) -> None:
        self._connection.executemany(_delete(table), keys)

    def advance(self, tips: Mapping[int, Tip]) -> None:
        rows = [tip_row(self._book, lane, tip) for lane, tip in tips.items()]
        self.update(LANES, ("position", "link", "at", "seal"), rows)


@lru_cache
def _insert(table: LedgerTable, unless_there: bool) -> str:
    return insert(table) + (" ON CONFLICT DO NOTHING" if unless_there else "")


@lru_cache
def _update(table: LedgerTable, columns: tuple[str, ...]) -> str:
    return f"UPDATE {table.name} SET {', '.join(f'{column} = ?' for column in columns)} WHERE {_has_key(table)}"


@lru_cache
def _delete(table: LedgerTable) -> str:
    return f"DELETE FROM {table.name} WHERE {_has_key(table)}"


def _has_key(table: LedgerTable) -> str:
    return " AND ".join(f"{column} = ?" for column in table.key)
