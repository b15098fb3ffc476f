"""SQLite files of ledgers: created whole, opened with the right settings, and copied while in use."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from tacit.errors import LedgerDamaged, LedgerError, LedgerExists, LedgerMissing, LedgerUnavailable
from tacit.files import OWNER_ONLY, draft_new, drafts_of
from tacit.ledger.stores.interface import (
    MIGRATIONS,
    VERSION,
    Kind,
    LedgerTable,
    Origin,
    Row,
    check_version,
    read_origin,
    version_of,
)

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
    sqlite3.SQLITE_BUSY: "another process holds it",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_CORRUPT: "its pages contradict each other",
    sqlite3.SQLITE_NOTADB: "it is not a database",
    sqlite3.SQLITE_CONSTRAINT: "two rows have one key",
}


def create(path: Path, rows: Iterable[tuple[LedgerTable, Row]]) -> None:
    """Creates a ledger with its first rows under another name, then puts it in place, so nobody ever sees half of it."""

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        migrate(connection, 0)
        for table, row in rows:
            connection.execute(insert(table), row)
        connection.execute("COMMIT")

    _put(path, fill)


def back_up(path: str | os.PathLike[str], copy: str | os.PathLike[str]) -> None:
    """Copies a ledger as it is at one moment, also while it is in use. A plain copy of the file would lack its log."""
    with named(Path(path)):
        source, _ = open_file(Path(path))
        with closing(source):
            _put(Path(copy), source.backup)


def identity(path: Path) -> tuple[int, int]:
    """Which file it is, by device and number. Refuses a file with two names: each would have its own log, and its own budget."""
    try:
        status = path.stat()
        if status.st_nlink > 1:
            # A creation that was killed at its last step left its draft.
            for draft in drafts_of(path):
                with suppress(FileNotFoundError):  # its creator has just removed it
                    if draft.samefile(path):
                        draft.unlink()
            status = path.stat()
    except OSError as problem:
        raise LedgerUnavailable(
            f"the ledger is no longer at {path} ({problem.strerror}); nothing may be released. Put it back."
        ) from problem
    if status.st_nlink > 1:
        raise LedgerUnavailable(f"the file {path} has a second name (a hard link); a ledger has one. Remove the other.")
    return status.st_dev, status.st_ino


def open_file(path: Path) -> tuple[sqlite3.Connection, Origin]:
    """A connection to the ledger in this file, migrated to this version, and the ledger's origin."""
    if path.is_dir():
        raise LedgerMissing(f"{path} is a folder; a ledger is a file.")
    if not path.is_file():
        raise LedgerMissing(f"there is no ledger at {path}. Create one with `tacit ledger init {path}`.")
    # Only SQLite ever opens the file: closing another handle of it would drop the locks that this process holds on it.
    with named(path):
        identity(path)
        with _no_database(path):  # a pragma may already read the file
            connection = connect(path, mode="rw")
        try:
            version = _require_version(connection, path)
            check_version(version)
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise LedgerUnavailable(f"SQLite cannot keep a write-ahead log for {path}. Use a local disk.")
            if version < VERSION:
                connection.execute("BEGIN IMMEDIATE")
                migrate(connection, stated_version(connection) or 0)
                connection.execute("COMMIT")
            _check_tables(connection, path)
            return connection, read_origin(dict(connection.execute("SELECT name, value FROM facts")))
        except BaseException:
            connection.close()
            raise


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """A connection with the settings that a ledger needs."""
    _require_allowed(path)
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
        connection.execute("PRAGMA secure_delete = ON")  # a free page must not keep deleted content
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cache_size = -65536")
    except BaseException:
        connection.close()
        raise
    return connection


def stated_version(connection: sqlite3.Connection) -> int | None:
    """The version of the ledger in this database; None if it holds no ledger."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone() is None:
        return None
    row = connection.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
    return version_of(row)


def definition(table: LedgerTable) -> str:
    """The statement that creates a table. Only SQLite has row numbers to leave out."""
    return f"{table.definition(TYPES)} WITHOUT ROWID" if table.by_key else table.definition(TYPES)


def insert(table: LedgerTable) -> str:
    """The statement that adds a row to a table."""
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({', '.join('?' * len(table.columns))})"


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Runs the steps from this version to the newest."""
    for migration in MIGRATIONS[version:]:
        for table in migration.tables:
            connection.execute(definition(table))
        for statement in migration.statements:
            connection.execute(statement)
    if version:
        connection.execute("UPDATE facts SET value = ? WHERE name = 'version'", (str(VERSION),))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Raises SQLite's errors as the ledger's own. The message names the file and SQLite's reason, and no value."""
    try:
        yield
    except LedgerError:
        raise
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # the message about damage may not be a text
        raise_named(path, problem)


def raise_named(path: Path, problem: sqlite3.Error | UnicodeDecodeError) -> NoReturn:
    """Raises the ledger's error for one of SQLite's, with its code only: SQLite's own text may quote a value."""
    code = getattr(problem, "sqlite_errorcode", None)
    if isinstance(problem, sqlite3.Error):
        problem.args = ()  # the error raised here keeps it as its context
    reason = "a value is not of its kind" if code is None else _REASONS.get(code & 0xFF, f"SQLite's error {code}")
    if code is None or code & 0xFF in _DAMAGE:
        raise LedgerDamaged(
            f"the ledger in {path} is damaged ({reason}); nothing was charged. Run `tacit ledger check`, then restore a backup."
        ) from None
    raise LedgerUnavailable(
        f"the ledger in {path} cannot be used now ({reason}); nothing may be released. Fix the cause, then try again."
    ) from problem


def _require_version(connection: sqlite3.Connection, path: Path) -> int:
    with _no_database(path):
        version = stated_version(connection)
    if version is None:
        raise LedgerMissing(f"{path} holds no ledger. Create one in a file that does not exist yet.")
    return version


@contextmanager
def _no_database(path: Path) -> Iterator[None]:
    """Raises LedgerMissing for a file that is not a SQLite database, which is not a damaged ledger."""
    try:
        yield
    except sqlite3.DatabaseError as problem:
        if (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF != sqlite3.SQLITE_NOTADB:
            raise
        problem.args = ()
        raise LedgerMissing(
            f"{path} holds no ledger: it is not a SQLite file, or was never finished. Name another file."
        ) from None


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Raises LedgerDamaged if the tables were altered: their constraints ensure that nothing counts twice."""
    present = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    expected = {definition(table) for migration in MIGRATIONS for table in migration.tables}
    expected |= {statement for migration in MIGRATIONS for statement in migration.statements}
    if not expected <= present:
        raise LedgerDamaged(f"the tables in {path} are not those of a ledger. Restore a backup.")


def _put(path: Path, fill: Callable[[sqlite3.Connection], object]) -> None:
    """Puts a database into a file that does not exist yet, readable by its owner only, on the disk before this returns."""
    if not path.parent.is_dir():
        raise LedgerMissing(f"the folder {path.parent} does not exist; a ledger can only be created in one that does.")
    if path.exists():
        _refuse_existing(path)
    try:
        with named(path), draft_new(path, mode=OWNER_ONLY) as temporary:
            try:
                with closing(connect(temporary, mode="rw")) as connection:
                    fill(connection)
            finally:
                for ending in ("-wal", "-shm"):
                    temporary.with_name(temporary.name + ending).unlink(missing_ok=True)
    except FileExistsError:
        _refuse_existing(path)
    except OSError as problem:
        raise LedgerUnavailable(
            f"a ledger cannot be created at {path} ({problem.strerror}). Name another place."
        ) from problem


def _refuse_existing(path: Path) -> NoReturn:
    try:
        connection, _ = open_file(path)
        connection.close()
    except LedgerMissing:
        raise LedgerExists(f"{path} exists and is not a ledger; name a file that does not exist yet.") from None
    raise LedgerExists(f"{path} already holds a ledger. Open it, or name another file.")


_read_at_fork: set[tuple[int, int]] = set()  # files, by device and number


def forbid(path: Path) -> None:
    """Refuses this file from now on: it was being read when this process was forked."""
    if path.exists():
        _read_at_fork.add(_identity(path))


def _require_allowed(path: Path) -> None:
    if _read_at_fork and path.exists() and _identity(path) in _read_at_fork:
        raise LedgerUnavailable(
            f"this process was forked while the ledger in {path} was being read, and cannot use it safely; nothing may be "
            "released. Fork earlier, or start processes with `spawn`."
        )


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
