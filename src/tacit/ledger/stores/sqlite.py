"""SQLite: the embedded default. One file, write-ahead log, every commit on the disk before it is acknowledged."""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from tacit.errors import LedgerDamaged, LedgerError, LedgerExists, LedgerMissing, LedgerUnavailable
from tacit.ledger.chain import Tip
from tacit.ledger.stores import sqlite_forks
from tacit.ledger.stores.interface import AlreadyThere, Answers, Query, Row
from tacit.ledger.stores.origin import (
    Origin,
    check_version,
    found_origin,
    sealed_tip,
    starting_rows,
    tip_row,
    version_of,
)
from tacit.ledger.stores.schema import LANES, MIGRATIONS, VERSION, Kind, Table

TYPES: Mapping[Kind, str] = {"int": "INTEGER", "text": "TEXT", "bytes": "BLOB"}
_PATIENCE = 60.0  # seconds to wait for another process's transaction
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_ERROR,  # a statement of ours that this file's schema does not understand
}
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_BUSY: "another process has held it for a minute",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_CORRUPT: "its pages contradict each other",
    sqlite3.SQLITE_NOTADB: "it is no database",
    sqlite3.SQLITE_CONSTRAINT: "two rows have one key",
}


_TIP = "SELECT position, link, at, seal FROM lanes WHERE book = ? AND lane = ?"


class SqliteStore:
    """A ledger in one SQLite file. Safe to share among threads; a forked process gets a connection of its own."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.lock = threading.Lock()
        self._closed = False
        self._readers: set[int] = set()
        self._connection: sqlite3.Connection | None = None
        self._origin = self._open()
        sqlite_forks.stores.add(self)

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, lanes: int) -> "SqliteStore":
        """Makes a new ledger; refuses where there is one. All of it or nothing is there afterwards."""
        file = Path(path)
        if not file.parent.is_dir():
            raise LedgerMissing(
                f"the folder {file.parent} does not exist; a ledger can only be created in one that does."
            )
        with _named(file):
            connection = _connect(file, mode="rwc")
            try:
                _refuse_what_is_there(connection, file)  # before its journal is changed; then again, alone with it
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                _refuse_what_is_there(connection, file)
                _migrate(connection, 0)
                for table, row in starting_rows(lanes):
                    connection.execute(_insert(table.name, tuple(table.columns)), row)
                connection.execute("COMMIT")
            finally:
                connection.close()
        return cls(file)

    hopeful = True  # a look-up is a call from Python for every row

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
        with _named(self.path):
            connection = _connect(self.path, mode="rw")  # its own, so that a long export holds up no charge
            self._readers.add(id(connection))
            try:
                connection.execute("BEGIN")
                yield SqliteReader(connection)
            finally:
                connection.close()
                self._readers.discard(id(connection))

    def connection(self) -> sqlite3.Connection:
        """The writers' connection, for whoever holds the lock."""
        if self._closed:
            raise LedgerUnavailable(
                f"the ledger in {self.path} was closed here; nothing may be released. Open it again."
            )
        if self._connection is None and self._open() != self._origin:
            raise LedgerDamaged(f"in {self.path} there is another ledger now than the one that was opened.")
        if self._connection is None:
            raise LedgerUnavailable(f"the ledger in {self.path} could not be opened again; nothing may be released.")
        return self._connection

    def close(self) -> None:
        with self.lock:
            self._closed = True
            self._drop()

    def pause(self) -> None:
        self.lock.acquire()
        self._drop()

    def resume(self) -> None:
        self.lock.release()

    def is_read(self) -> bool:
        return bool(self._readers)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Origin:
        if not self.path.is_file():
            raise LedgerMissing(f"there is no ledger at {self.path}. Create one with `tacit ledger init {self.path}`.")
        with _named(self.path):
            connection = _connect(self.path, mode="rw")
            try:
                version = _version(connection)
                if version is None:
                    raise LedgerMissing(f"{self.path} holds no ledger. Create one in a file that does not exist yet.")
                check_version(version)
                if version < VERSION:
                    connection.execute("BEGIN IMMEDIATE")
                    _migrate(connection, _version(connection) or 0)
                    connection.execute("COMMIT")
                origin = found_origin(dict(connection.execute("SELECT name, value FROM facts")))
            except BaseException:
                connection.close()
                raise
        self._connection = connection
        return origin


class SqliteReader:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        execute = self._connection.execute
        rows = [execute(query.sql, key).fetchone() for key in keys]
        return lambda: rows

    def stream(self, sql: str, parameters: Row = ()) -> Iterator[Row]:
        return self._connection.execute(sql, parameters)

    def damage(self) -> list[str]:
        found = [text for (text,) in self._connection.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found


class SqliteWriter:
    def __init__(self, store: SqliteStore, book: str, lanes: Sequence[int]) -> None:
        self._store, self._book, self._lanes = store, book, lanes

    def __enter__(self) -> "SqliteWriter":
        self._store.lock.acquire()
        try:
            self._connection = self._store.connection()
            self._connection.execute("BEGIN IMMEDIATE")  # before anything is read: no other writer until the commit
            self.tips = {lane: self._tip(lane) for lane in self._lanes}
        except BaseException as problem:
            self._end(problem)
            raise
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is None:
            try:
                self._connection.execute("COMMIT")
            except BaseException as failure:
                self._end(failure)
                raise
            self._store.lock.release()
        else:
            self._end(problem)

    def _end(self, problem: BaseException) -> None:
        """Rolls back, lets the next one in, and gives SQLite's errors the ledger's names."""
        with suppress(sqlite3.Error, AttributeError):  # a full disk has rolled back already; there may be no connection
            self._connection.execute("ROLLBACK")
        self._store.lock.release()
        if isinstance(problem, (sqlite3.Error, UnicodeDecodeError)):
            _raise(self._store.path, problem)

    def _tip(self, lane: int) -> Tip:
        row = self._connection.execute(_TIP, (self._book, lane)).fetchone()
        return sealed_tip(self._book, lane, row)

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        execute = self._connection.execute
        rows = [execute(query.sql, key).fetchone() for key in keys]
        return lambda: rows

    def insert(self, table: Table, rows: Sequence[Row], *, unless_there: bool = False) -> None:
        try:
            self._connection.executemany(_insert(table.name, tuple(table.columns), unless_there), rows)
        except sqlite3.IntegrityError as problem:
            if problem.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_UNIQUE:
                raise AlreadyThere from problem
            raise

    def update(self, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        self._connection.executemany(_update(table.name, columns, table.key), rows)

    def advance(self, tips: Mapping[int, Tip]) -> None:
        rows = [tip_row(self._book, lane, tip) for lane, tip in tips.items()]
        self.update(LANES, ("position", "link", "at", "seal"), rows)


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    sqlite_forks.check_file(path)
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_PATIENCE,
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")  # in write-ahead mode: one fsync per commit, before it returns
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cache_size = -65536")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_what_is_there(connection: sqlite3.Connection, file: Path) -> None:
    if _version(connection) is not None:
        raise LedgerExists(f"there is a ledger in {file} already.")
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise LedgerExists(f"{file} is a database of something else; name a file that does not exist yet.")


def _version(connection: sqlite3.Connection) -> int | None:
    """The version of the ledger in this database; None where there is none."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone() is None:
        return None
    found = connection.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
    return version_of(found)


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    for migration in MIGRATIONS[version:]:
        for table in migration.tables:
            connection.execute(table.definition(TYPES))
        for statement in migration.statements:
            connection.execute(statement)
    if version:
        connection.execute("UPDATE facts SET value = ? WHERE name = 'version'", (str(VERSION),))


@lru_cache
def _insert(table: str, columns: tuple[str, ...], unless_there: bool = False) -> str:
    skip = " ON CONFLICT DO NOTHING" if unless_there else ""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}){skip}"


@lru_cache
def _update(table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
    new, where = ", ".join(f"{column} = ?" for column in columns), " AND ".join(f"{column} = ?" for column in key)
    return f"UPDATE {table} SET {new} WHERE {where}"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """SQLite's errors as the ledger's own. The message names the file and SQLite's reason, no value."""
    try:
        yield
    except LedgerError:
        raise
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # a message about damage may itself be no text
        _raise(path, problem)


def _raise(path: Path, problem: sqlite3.Error | UnicodeDecodeError) -> NoReturn:
    """SQLite's own words may quote a value (a text that is no UTF-8), so only its code is told."""
    code = getattr(problem, "sqlite_errorcode", None)
    reason = "a value is not of its kind" if code is None else _REASONS.get(code & 0xFF, f"SQLite's error {code}")
    if code is None or code & 0xFF in _DAMAGE:
        raise LedgerDamaged(
            f"the ledger in {path} is damaged ({reason}); nothing was charged. Run `tacit ledger check`, restore a backup."
        ) from None
    raise LedgerUnavailable(
        f"the ledger in {path} cannot be used now ({reason}); nothing may be released. Mend the cause, then try again."
    ) from problem
