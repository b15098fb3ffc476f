"""The PostgreSQL store: a ledger that many machines share.

A transaction locks the rows of its lanes, so transactions in other lanes run beside it. Questions travel together, and so do
writes: a charge waits for the network twice. All tables are in the schema ``tacit`` of the database that the address names. A
connection pooler in between has to keep sessions.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import count
from weakref import WeakSet

from tacit.errors import LedgerDamaged, LedgerExists, LedgerMissing, LedgerUnavailable, MissingExtra
from tacit.ledger.chain import Tip
from tacit.ledger.stores.interface import (
    ACCOUNTS,
    DISPLAYS,
    LANES,
    MIGRATIONS,
    SUBJECTS,
    VERSION,
    Answers,
    Kind,
    LedgerTable,
    Origin,
    Query,
    Row,
    check_version,
    read_origin,
    read_tip,
    starting_rows,
    tip_row,
    version_of,
)

try:
    import psycopg
except ImportError as missing:
    raise MissingExtra("a ledger in PostgreSQL needs psycopg: pip install 'tacit[postgresql]'.") from missing

from tacit.ledger.stores.postgresql_wire import READING, SCHEMA, WRITING, Address, Session, arrays, connect, named

TYPES: dict[Kind, str] = {"int": "BIGINT", "text": 'TEXT COLLATE "C"', "bytes": "BYTEA"}
_ARRAYS: dict[Kind, str] = {"int": "bigint[]", "text": "text[]", "bytes": "bytea[]"}
_AT_A_TIME = 2_000  # rows of a stream in memory
_MOST_SPARE = 4  # sessions kept for the next read
_STREAMS = count(1)  # names of cursors; none is used twice
# Rows of these tables change in place: their pages keep room for that.
_UPDATED = {LANES.name, SUBJECTS.name, ACCOUNTS.name, DISPLAYS.name}
# Held by the one process that creates or migrates a ledger.
_ALONE = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'tacit', 'big')})".encode()
_LOCK = (  # in the same order in all transactions, which prevents deadlocks
    b"SELECT lane, position, link, at, seal FROM lanes WHERE book = $1 AND lane = ANY($2) ORDER BY lane FOR UPDATE"
)


class PostgresqlStore:
    """A ledger in one PostgreSQL database. Safe to share among threads; a forked process gets sessions of its own."""

    optimistic = False  # all look-ups of a transaction are one statement

    def __init__(self, uri: str) -> None:
        self._address = Address.of(uri)
        self._lock = threading.Lock()
        self._closed = False
        self._spare: list[Session] = []
        self._inherited: list[Session] = []
        with named(self._address):
            self._session, self._origin = _open(self._address)
        _stores.add(self)

    @classmethod
    def create(cls, uri: str, *, lanes: int) -> "PostgresqlStore":
        """Creates a new ledger, whole or not at all. Raises LedgerExists if the database holds one."""
        address, rows = Address.of(uri), starting_rows(lanes)
        with named(address), closing(connect(address, WRITING)) as session:
            session.run(b"BEGIN")
            session.run(_ALONE)
            if _version(session) is not None:
                raise LedgerExists(f"{address} already holds a ledger.")
            _make_schema(session, address)
            _migrate(session, 0)
            for table, row in rows:
                session.send(insert(table), row)
            session.run(b"COMMIT")
        return cls(uri)

    @property
    def ledger(self) -> str:
        return self._origin.ledger

    @property
    def lanes(self) -> int:
        return self._origin.lanes

    @contextmanager
    def write(self, book: str, lanes: Sequence[int]) -> Iterator["PostgresqlWriter"]:
        with self._lock, named(self._address):
            session = self._own_session()
            try:
                writer = PostgresqlWriter(session, book, lanes)
                yield writer
                writer.commit()
            except BaseException as problem:
                _roll_back(session, problem)
                raise

    @contextmanager
    def read(self) -> Iterator["PostgresqlReader"]:
        with named(self._address):
            session = self._spare_session()  # of its own: a long export must not delay charges
            try:
                session.send(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield PostgresqlReader(session, self._address)
            except BaseException as problem:
                _roll_back(session, problem)
                raise
            else:
                session.run(b"ROLLBACK")
            finally:
                self._put_back(session)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._session.close()
            while self._spare:
                self._spare.pop().close()

    def _own_session(self) -> Session:
        self._require_open()
        if not self._usable(self._session):  # nothing of this transaction has been sent yet
            self._session, origin = _open(self._address)
            if origin != self._origin:
                self._session.close()
                raise LedgerDamaged(f"{self._address} now holds another ledger than the one that was opened.")
        return self._session

    def _spare_session(self) -> Session:
        self._require_open()
        while self._spare:
            session = self._spare.pop()
            if self._usable(session):
                return session
        return connect(self._address, READING)

    def _put_back(self, session: Session) -> None:
        if self._closed or len(self._spare) >= _MOST_SPARE:
            session.close()
        elif session.alive():
            self._spare.append(session)

    def _usable(self, session: Session) -> bool:
        if session.inherited:  # after a fork: the parent's session must be neither used nor closed
            self._inherited.append(session)
            return False
        return session.alive()

    def _require_open(self) -> None:
        if self._closed:
            raise LedgerUnavailable(f"the ledger at {self._address} is closed. Open it again.")


_stores: "WeakSet[PostgresqlStore]" = WeakSet()


def _after_fork() -> None:
    for store in list(_stores):
        store._lock = threading.Lock()  # the thread that held the old one is in the parent


os.register_at_fork(after_in_child=_after_fork)


class PostgresqlReader:
    def __init__(self, session: Session, address: Address) -> None:
        self._session, self._address = session, address

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        return _ask(self._session, query, keys)

    def stream(self, sql: str, parameters: Row = ()) -> Iterator[Row]:
        name = f"stream_{next(_STREAMS)}"
        with named(self._address):
            declare = f"DECLARE {name} NO SCROLL CURSOR FOR ".encode()
            self._session.send(declare + for_one(sql), parameters, once=True)
            fetch = f"FETCH {_AT_A_TIME} FROM {name}".encode()
            full = True
            while full:
                rows = self._session.run(fetch, once=True)
                yield from rows
                full = len(rows) == _AT_A_TIME
            self._session.send(f"CLOSE {name}".encode(), once=True)

    def damage(self) -> list[str]:
        """Pages that differ from their checksums, if the server keeps checksums."""
        query = b"SELECT coalesce(sum(checksum_failures), 0)::bigint FROM pg_stat_database WHERE datname = current_database()"
        ((failures,),) = self._session.run(query)
        return [f"the server has met {failures} damaged pages in this database"] if failures else []


class PostgresqlWriter:
    """One transaction. A statement sees what was committed before it began, and no statement begins before the locks are held,
    even if it was sent along with them."""

    def __init__(self, session: Session, book: str, lanes: Sequence[int]) -> None:
        self._session, self._book, self._lanes, self._wrote = session, book, sorted(set(lanes)), False
        self._tips: dict[int, Tip] | None = None
        session.send(b"BEGIN")
        self._locked = session.send(_LOCK, (book, *arrays(("int",), [(lane,) for lane in self._lanes])))

    @property
    def tips(self) -> Mapping[int, Tip]:
        if self._tips is None:  # not a cached_property: in Python 3.11 all instances wait for one lock
            self._session.sync()
            rows = {row[0]: row[1:] for row in self._locked.rows}
            self._tips = {lane: read_tip(self._book, lane, rows.get(lane)) for lane in self._lanes}
        return self._tips

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        return _ask(self._session, query, keys)

    def insert(self, table: LedgerTable, rows: Sequence[Row], *, unless_there: bool = False) -> None:
        # A transaction in another lane may insert the same rows, and one then waits for the other. The same order in all
        # transactions prevents deadlocks, as it does for lanes.
        ordered = sorted(rows) if unless_there else rows
        statement = insert(table, many=len(rows) > 1, unless_there=unless_there)
        self._write(statement, table.columns.values(), ordered)

    def update(self, table: LedgerTable, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        kinds = [table.columns[name] for name in (*columns, *table.key)]
        self._write(update(table, columns, many=len(rows) > 1), kinds, rows)

    def delete(self, table: LedgerTable, keys: Sequence[Row]) -> None:
        kinds = [table.columns[name] for name in table.key]
        self._write(delete(table, many=len(keys) > 1), kinds, keys)

    def advance(self, tips: Mapping[int, Tip]) -> None:
        rows = [tip_row(self._book, lane, tip) for lane, tip in tips.items()]
        self.update(LANES, ("position", "link", "at", "seal"), rows)

    def commit(self) -> None:
        """Returns when all is on the disk. A transaction that wrote nothing releases its locks without waiting for the disk."""
        _ = self.tips  # raises for a lane that does not exist
        end = self._session.send(b"COMMIT" if self._wrote else b"ROLLBACK")
        self._session.sync()
        if self._wrote and end.status != b"COMMIT":
            raise LedgerUnavailable("the server rolled the transaction back; nothing was charged. Try again.")

    def _write(self, statement: bytes, kinds: Iterable[Kind], rows: Sequence[Row]) -> None:
        if rows:
            self._wrote = True
            self._session.send(statement, rows[0] if len(rows) == 1 else arrays(kinds, rows))


def _ask(session: Session, query: Query, keys: Sequence[Row]) -> Answers:
    """The rows arrive when the answers are called for, together with those of all other questions sent by then."""
    if len(keys) > 1:
        reply = session.send(for_many(query), arrays(query.parameters, keys))
    elif keys:
        reply = session.send(for_one(query.sql), keys[0])

    def answers() -> list[Row | None]:
        session.sync()
        if len(keys) <= 1:
            return [reply.rows[0] if reply.rows else None for _ in keys]
        rows: list[Row | None] = [None] * len(keys)
        for row in reply.rows:
            rows[row[0] - 1] = row[1:]
        return rows

    return answers


def _open(address: Address) -> tuple[Session, Origin]:
    session = connect(address, WRITING)
    try:
        version = _version(session)
        if version is None:
            raise LedgerMissing(f"there is no ledger at {address}. Create one with `tacit ledger init`.")
        check_version(version)
        if version < VERSION:
            session.run(b"BEGIN")
            session.run(_ALONE)
            _migrate(session, _version(session) or 0)
            session.run(b"COMMIT")
        return session, read_origin(dict(session.run(b"SELECT name, value FROM facts")))
    except BaseException:
        session.close()
        raise


def _version(session: Session) -> int | None:
    """The version of the ledger in this database; None if it holds no ledger."""
    if session.run(f"SELECT to_regclass('{SCHEMA}.facts')::text".encode()) == [(None,)]:
        return None
    rows = session.run(b"SELECT value FROM facts WHERE name = 'version'")
    return version_of(rows[0] if rows else None)


def _make_schema(session: Session, address: Address) -> None:
    """Creates the schema. It may exist and be empty: an administrator made it, and gave us no right to create one."""
    ((encoding, schema),) = session.run(
        f"SELECT current_setting('server_encoding'), to_regnamespace('{SCHEMA}')::text".encode()
    )
    if encoding != "UTF8":
        raise LedgerUnavailable(f"the database at {address} is encoded in {encoding}; a ledger needs one in UTF8.")
    if schema is None:
        session.run(f"CREATE SCHEMA {SCHEMA}".encode())
    elif session.run(f"SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}') LIMIT 1".encode()):
        raise LedgerExists(f"the schema {SCHEMA} in {address} holds other tables; name another database.")


def _migrate(session: Session, version: int) -> None:
    for migration in MIGRATIONS[version:]:
        for table in migration.tables:
            room = " WITH (fillfactor = 70)" if table.name in _UPDATED else ""
            session.run(f"{table.definition(TYPES)}{room}".encode(), once=True)
        for statement in migration.statements:
            session.run(statement.encode(), once=True)
    if version:
        session.run(b"UPDATE facts SET value = $1 WHERE name = 'version'", (str(VERSION),))


def _roll_back(session: Session, problem: BaseException) -> None:
    """Ends a transaction. If that fails, it ends the session, and the next transaction gets a new one."""
    try:
        if isinstance(problem, psycopg.Error) or not isinstance(problem, Exception | GeneratorExit):
            session.close()
        else:
            session.run(b"ROLLBACK")
    except psycopg.Error:
        session.close()


# Statements: for one row plain parameters, for many rows one array per column.


@cache
def for_one(query: str) -> bytes:
    """``query`` with $1, $2, ... for its question marks."""
    first, *rest = query.split("?")
    return (first + "".join(f"${index}{part}" for index, part in enumerate(rest, 1))).encode()


@cache
def for_many(query: Query) -> bytes:
    """``query`` for every row of the arrays. Each row found comes with the place of its key in the arrays, in any order."""
    first, *rest = query.sql.split("?")
    inner = first + "".join(f"k.p{index}{part}" for index, part in enumerate(rest, 1))
    names = ", ".join(f"p{index}" for index in range(1, len(rest) + 1))
    return (
        f"SELECT k.place, q.* FROM {_unnested(query.parameters)} WITH ORDINALITY AS k({names}, place) "
        f"CROSS JOIN LATERAL ({inner} OFFSET 0) AS q"  # kept apart: merged into one join, a part of a key may go unused
    ).encode()


@cache
def insert(table: LedgerTable, *, many: bool = False, unless_there: bool = False) -> bytes:
    if many:
        rows = f"SELECT * FROM {_unnested(table.columns.values())}"
    else:
        rows = f"VALUES ({', '.join(f'${index}' for index in range(1, len(table.columns) + 1))})"
    skip = " ON CONFLICT DO NOTHING" if unless_there else ""
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) {rows}{skip}".encode()


@cache
def update(table: LedgerTable, columns: tuple[str, ...], *, many: bool) -> bytes:
    """Parameters are the new values of ``columns``, then the table's key."""
    names = (*columns, *table.key)
    values = {name: f"v.{name}" if many else f"${index}" for index, name in enumerate(names, 1)}
    source = f" FROM {_unnested(table.columns[name] for name in names)} AS v({', '.join(names)})" if many else ""
    sets = ", ".join(f"{name} = {values[name]}" for name in columns)
    where = " AND ".join(f"t.{name} = {values[name]}" for name in table.key)
    return f"UPDATE {table.name} AS t SET {sets}{source} WHERE {where}".encode()


@cache
def delete(table: LedgerTable, *, many: bool) -> bytes:
    """Parameters are the table's key."""
    source = (
        f" USING {_unnested(table.columns[name] for name in table.key)} AS v({', '.join(table.key)})" if many else ""
    )
    values = (f"v.{name}" if many else f"${index}" for index, name in enumerate(table.key, 1))
    where = " AND ".join(f"t.{name} = {value}" for name, value in zip(table.key, values, strict=True))
    return f"DELETE FROM {table.name} AS t{source} WHERE {where}".encode()


def _unnested(kinds: Iterable[Kind]) -> str:
    return f"unnest({', '.join(f'${index}::{_ARRAYS[kind]}' for index, kind in enumerate(kinds, 1))})"
