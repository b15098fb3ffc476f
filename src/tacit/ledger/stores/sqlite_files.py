"""SQLite files: made all at once, opened as the ledger wants them, copied while in use; SQLite's errors as the ledger's own."""

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from tacit.errors import LedgerDamaged, LedgerError, LedgerExists, LedgerMissing, LedgerUnavailable
from tacit.ledger.stores import sqlite_forks
from tacit.ledger.stores.interface import Row
from tacit.ledger.stores.origin import Origin, check_version, found_origin, version_of
from tacit.ledger.stores.schema import MIGRATIONS, VERSION, Kind, Table

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
    sqlite3.SQLITE_NOTADB: "it is no database",
    sqlite3.SQLITE_CONSTRAINT: "two rows have one key",
}


def create(path: Path, rows: Iterable[tuple[Table, Row]]) -> None:
    """A new ledger with its first rows. It is made under another name and put in place whole: nobody ever sees half of it."""

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        migrate(connection, 0)
        for table, row in rows:
            columns = ", ".join(table.columns)
            connection.execute(f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("COMMIT")

    _put(path, fill)


def back_up(path: str | os.PathLike[str], copy: str | os.PathLike[str]) -> None:
    """A copy of a ledger as it is at one moment, also while it is in use. A plain copy of the file would lack its log."""
    with named(Path(path)):
        source, _ = open_file(Path(path))
        with closing(source):
            _put(Path(copy), source.backup)


def identity(path: Path) -> tuple[int, int]:
    """Which file it is, whatever its name. Refuses one with two names: each would have a log of its own, and two budgets."""
    try:
        found = path.stat()
        if found.st_nlink > 1:
            for draft in path.parent.glob(f".{path.name}.????????"):  # of a creation that was killed at its last step
                with suppress(FileNotFoundError):  # whoever is creating it has just removed it
                    if draft.samefile(path):
                        draft.unlink()
            found = path.stat()
    except OSError as problem:
        raise LedgerUnavailable(
            f"the ledger is not at {path} any more ({problem.strerror}); nothing may be released. Put it back."
        ) from problem
    if found.st_nlink > 1:
        raise LedgerUnavailable(f"the file {path} has a second name (a hard link); a ledger has one. Remove the other.")
    return found.st_dev, found.st_ino


def open_file(path: Path) -> tuple[sqlite3.Connection, Origin]:
    """A connection to the ledger in this file, brought up to date, and what it says it is."""
    if path.is_dir():
        raise LedgerMissing(f"{path} is a folder; a ledger is a file.")
    if not path.is_file():
        raise LedgerMissing(f"there is no ledger at {path}. Create one with `tacit ledger init {path}`.")
    # The file is never opened but by SQLite: closing another handle of it would drop the locks that this process holds on it.
    with named(path):
        identity(path)
        with _no_database(path):  # a pragma may already read the file
            connection = connect(path, mode="rw")
        try:
            version = _stated(connection, path)
            check_version(version)
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise LedgerUnavailable(f"the ledger in {path} cannot have a write-ahead log here. Use a local disk.")
            if version < VERSION:
                connection.execute("BEGIN IMMEDIATE")
                migrate(connection, stated_version(connection) or 0)
                connection.execute("COMMIT")
            _check_tables(connection, path)
            return connection, found_origin(dict(connection.execute("SELECT name, value FROM facts")))
        except BaseException:
            connection.close()
            raise


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
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
        connection.execute("PRAGMA secure_delete = ON")  # what was deleted is not left to be found in a free page
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cache_size = -65536")
    except BaseException:
        connection.close()
        raise
    return connection


def stated_version(connection: sqlite3.Connection) -> int | None:
    """The version of the ledger in this database; None where there is none."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone() is None:
        return None
    found = connection.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
    return version_of(found)


def definition(table: Table) -> str:
    """The statement that makes a table. PostgreSQL has no row numbers to leave out, so this is SQLite's alone."""
    return f"{table.definition(TYPES)} WITHOUT ROWID" if table.by_key else table.definition(TYPES)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    for migration in MIGRATIONS[version:]:
        for table in migration.tables:
            connection.execute(definition(table))
        for statement in migration.statements:
            connection.execute(statement)
    if version:
        connection.execute("UPDATE facts SET value = ? WHERE name = 'version'", (str(VERSION),))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """SQLite's errors as the ledger's own. The message names the file and SQLite's reason, no value."""
    try:
        yield
    except LedgerError:
        raise
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # a message about damage may itself be no text
        raise_named(path, problem)


def raise_named(path: Path, problem: sqlite3.Error | UnicodeDecodeError) -> NoReturn:
    """SQLite's own words may quote a value (a text that is no UTF-8), so only its code is told."""
    code = getattr(problem, "sqlite_errorcode", None)
    if isinstance(problem, sqlite3.Error):
        problem.args = ()  # it stays reachable as the context of what is raised here
    reason = "a value is not of its kind" if code is None else _REASONS.get(code & 0xFF, f"SQLite's error {code}")
    if code is None or code & 0xFF in _DAMAGE:
        raise LedgerDamaged(
            f"the ledger in {path} is damaged ({reason}); nothing was charged. Run `tacit ledger check`, restore a backup."
        ) from None
    raise LedgerUnavailable(
        f"the ledger in {path} cannot be used now ({reason}); nothing may be released. Mend the cause, then try again."
    ) from problem


def _stated(connection: sqlite3.Connection, path: Path) -> int:
    with _no_database(path):
        version = stated_version(connection)
    if version is None:
        raise LedgerMissing(f"{path} holds no ledger. Create one in a file that does not exist yet.")
    return version


@contextmanager
def _no_database(path: Path) -> Iterator[None]:
    """A file of something else is no damaged ledger."""
    try:
        yield
    except sqlite3.DatabaseError as problem:
        if (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF != sqlite3.SQLITE_NOTADB:
            raise
        problem.args = ()
        raise LedgerMissing(
            f"{path} holds no ledger: it is no SQLite file, or was never finished. Name another file."
        ) from None


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """That nothing counts twice rests on the tables' own constraints: they have to be as they were made."""
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    wanted = {definition(table) for migration in MIGRATIONS for table in migration.tables}
    wanted |= {statement for migration in MIGRATIONS for statement in migration.statements}
    if not wanted <= found:
        raise LedgerDamaged(f"the tables in {path} are not those that a ledger was made with. Restore a backup.")


def _put(path: Path, fill: Callable[[sqlite3.Connection], object]) -> None:
    """A database in a file that does not exist yet, readable by its owner only, on the disk before this returns."""
    if not path.parent.is_dir():
        raise LedgerMissing(f"the folder {path.parent} does not exist; a ledger can only be created in one that does.")
    if path.exists():
        _refuse_what_is_there(path)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with named(path):
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(connect(draft, mode="rw")) as connection:
                fill(connection)
            _sync(draft)
            try:
                os.link(draft, path)  # unlike a renaming, it never takes the place of another file
            except FileExistsError:
                _refuse_what_is_there(path)
            _sync(path.parent)
    except OSError as problem:
        raise LedgerUnavailable(
            f"no ledger can be created at {path} ({problem.strerror}). Name another place."
        ) from problem
    finally:
        for ending in ("", "-wal", "-shm"):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)


def _refuse_what_is_there(path: Path) -> NoReturn:
    try:
        connection, _ = open_file(path)
        connection.close()
    except LedgerMissing:
        raise LedgerExists(f"{path} is there and holds something else; name a file that does not exist yet.") from None
    raise LedgerExists(f"there is a ledger in {path} already. Open it, or name another place.")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
