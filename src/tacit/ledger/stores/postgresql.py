"""PostgreSQL: a ledger that many machines share. A transaction locks the rows of its lanes, so that those in other lanes run
beside it; questions, and then writes, travel together: a charge waits for the network twice.

All tables are in the schema ``tacit`` of the database that the address names. A pooler in between has to keep sessions.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from weakref import WeakSet

from tacit.errors import LedgerDamaged, LedgerExists, LedgerMissing, LedgerUnavailable, MissingExtra
from tacit.ledger.chain import Tip
from tacit.ledger.stores.interface import Answers, Query, Row
from tacit.ledger.stores.origin import (
    Origin,
    check_version,
    found_origin,
    sealed_tip,
    starting_rows,
    tip_row,
    version_of,
)
from tacit.ledger.stores.schema import ACCOUNTS, DISPLAYS, LANES, MIGRATIONS, SUBJECTS, VERSION, Kind, Table

try:
    import psycopg
except ImportError as missing:
    raise MissingExtra("a ledger in PostgreSQL needs psycopg: pip install 'tacit[postgresql]'.") from missing

from tacit.ledger.stores import postgresql_statements as statements
from tacit.ledger.stores.postgresql_session import READING, SCHEMA, WRITING, Address, connect, named
from tacit.ledger.stores.postgresql_wire import Wire, arrays

_AT_A_TIME = 2_000  # rows of a stream in memory
_MOST_SPARE = 4  # sessions kept for the next read
_STREAMS = count(1)  # names of cursors; none is used twice
_UPDATED = {
    LANES.name,
    SUBJECTS.name,
    ACCOUNTS.name,
    DISPLAYS.name,
}  # rows that change in place: their pages keep room for it
_ALONE = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'tacit', 'big')})".encode()  # who creates or migrates a ledger
_LOCK = (  # in one order for everybody, so that no two transactions wait for each other
    b"SELECT lane, position, link, at, seal FROM lanes WHERE book = $1 AND lane = ANY($2) ORDER BY lane FOR UPDATE"
)


class PostgresqlStore:
    """A ledger in one PostgreSQL database. Safe to share among threads; a forked process gets sessions of its own."""

    hopeful = False  # all look-ups of a transaction are one statement

    def __init__(self, uri: str) -> None:
        self._address = Address.of(uri)
        self._lock = threading.Lock()
        self._closed = False
        self._spare: list[Wire] = []
        self._inherited: list[Wire] = []
        with named(self._address):
            self._wire, self._origin = _open(self._address)
        _stores.add(self)

    @classmethod
    def create(cls, uri: str, *, lanes: int) -> "PostgresqlStore":
        """Makes a new ledger; refuses where there is one. All of it or nothing is there afterwards."""
        address, rows = Address.of(uri), starting_rows(lanes)
        with named(address), closing(connect(address, WRITING)) as wire:
            wire.run(b"BEGIN")
            wire.run(_ALONE)
            if _version(wire) is not None:
                raise LedgerExists(f"there is a ledger in {address} already.")
            _make_schema(wire, address)
            _migrate(wire, 0)
            for table, row in rows:
                wire.send(statements.insert(table), row)
            wire.run(b"COMMIT")
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
            wire = self._own_wire()
            try:
                writer = PostgresqlWriter(wire, book, lanes)
                yield writer
                writer.commit()
            except BaseException as problem:
                _roll_back(wire, problem)
                raise

    @contextmanager
    def read(self) -> Iterator["PostgresqlReader"]:
        with named(self._address):
            wire = self._spare_wire()  # its own, so that a long export holds up no charge
            try:
                wire.send(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield PostgresqlReader(wire, self._address)
            except BaseException as problem:
                _roll_back(wire, problem)
                raise
            else:
                wire.run(b"ROLLBACK")
            finally:
                self._put_back(wire)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._wire.close()
            while self._spare:
                self._spare.pop().close()

    def after_fork(self) -> None:
        """In a child: whoever held the lock is in the other process."""
        self._lock = threading.Lock()

    def _own_wire(self) -> Wire:
        self._check_open()
        if not self._usable(self._wire):  # nothing of this transaction has been sent yet
            self._wire, origin = _open(self._address)
            if origin != self._origin:
                self._wire.close()
                raise LedgerDamaged(f"at {self._address} there is another ledger now than the one that was opened.")
        return self._wire

    def _spare_wire(self) -> Wire:
        self._check_open()
        while self._spare:
            wire = self._spare.pop()
            if self._usable(wire):
                return wire
        return connect(self._address, READING)

    def _put_back(self, wire: Wire) -> None:
        if self._closed or len(self._spare) >= _MOST_SPARE:
            wire.close()
        elif wire.alive():
            self._spare.append(wire)

    def _usable(self, wire: Wire) -> bool:
        if wire.inherited:  # after a fork: the parent's session must not be used, nor closed by being forgotten
            self._inherited.append(wire)
            return False
        return wire.alive()

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerUnavailable(f"the ledger at {self._address} was closed here. Open it again.")


_stores: "WeakSet[PostgresqlStore]" = WeakSet()


def _after_fork() -> None:
    for store in list(_stores):
        store.after_fork()


os.register_at_fork(after_in_child=_after_fork)


class PostgresqlReader:
    def __init__(self, wire: Wire, address: Address) -> None:
        self._wire, self._address = wire, address

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        return _asked(self._wire, query, keys)

    def stream(self, sql: str, parameters: Row = ()) -> Iterator[Row]:
        name = f"stream_{next(_STREAMS)}"
        with named(self._address):
            declare = f"DECLARE {name} NO SCROLL CURSOR FOR ".encode()
            self._wire.send(declare + statements.for_one(sql), parameters, once=True)
            fetch = f"FETCH {_AT_A_TIME} FROM {name}".encode()
            full = True
            while full:
                rows = self._wire.run(fetch, once=True)
                yield from rows
                full = len(rows) == _AT_A_TIME
            self._wire.send(f"CLOSE {name}".encode(), once=True)

    def damage(self) -> list[str]:
        """Pages that differed from their checksums, where the server keeps such."""
        query = b"SELECT coalesce(sum(checksum_failures), 0)::bigint FROM pg_stat_database WHERE datname = current_database()"
        ((failures,),) = self._wire.run(query)
        return [f"the server has met {failures} damaged pages in this database"] if failures else []


class PostgresqlWriter:
    """One transaction. A statement sees what was committed before it began, and none begins before the locks are held: also
    those that were sent along with them."""

    def __init__(self, wire: Wire, book: str, lanes: Sequence[int]) -> None:
        self._wire, self._book, self._lanes, self._wrote = wire, book, sorted(set(lanes)), False
        self._tips: dict[int, Tip] | None = None
        wire.send(b"BEGIN")
        self._locked = wire.send(_LOCK, (book, *arrays(("int",), [(lane,) for lane in self._lanes])))

    @property
    def tips(self) -> Mapping[int, Tip]:
        if self._tips is None:  # not a cached_property: in Python 3.11 all its instances wait for one lock
            self._wire.sync()
            found = {row[0]: row[1:] for row in self._locked.rows}
            self._tips = {lane: sealed_tip(self._book, lane, found.get(lane)) for lane in self._lanes}
        return self._tips

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        return _asked(self._wire, query, keys)

    def insert(self, table: Table, rows: Sequence[Row], *, unless_there: bool = False) -> None:
        # Another lane's transaction may insert the same rows, and then one waits for the other: in one order, as with lanes.
        ordered = sorted(rows) if unless_there else rows
        statement = statements.insert(table, many=len(rows) > 1, unless_there=unless_there)
        self._write(statement, table.columns.values(), ordered)

    def update(self, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        kinds = [table.columns[name] for name in (*columns, *table.key)]
        self._write(statements.update(table, columns, many=len(rows) > 1), kinds, rows)

    def delete(self, table: Table, keys: Sequence[Row]) -> None:
        kinds = [table.columns[name] for name in table.key]
        self._write(statements.delete(table, many=len(keys) > 1), kinds, keys)

    def advance(self, tips: Mapping[int, Tip]) -> None:
        rows = [tip_row(self._book, lane, tip) for lane, tip in tips.items()]
        self.update(LANES, ("position", "link", "at", "seal"), rows)

    def commit(self) -> None:
        """Returns when all is on the disk. A transaction that only looked gives its locks back, and waits for no disk."""
        _ = self.tips  # a lane that is not there was not locked
        end = self._wire.send(b"COMMIT" if self._wrote else b"ROLLBACK")
        self._wire.sync()
        if self._wrote and end.status != b"COMMIT":
            raise LedgerUnavailable("the server has rolled the transaction back; nothing was charged. Try again.")

    def _write(self, statement: bytes, kinds: Iterable[Kind], rows: Sequence[Row]) -> None:
        if rows:
            self._wrote = True
            self._wire.send(statement, rows[0] if len(rows) == 1 else arrays(kinds, rows))


def _asked(wire: Wire, query: Query, keys: Sequence[Row]) -> Answers:
    """The answers are fetched when they are called for, together with those to all other questions sent by then."""
    if len(keys) > 1:
        reply = wire.send(statements.for_many(query), arrays(query.parameters, keys))
    elif keys:
        reply = wire.send(statements.for_one(query.sql), keys[0])

    def answers() -> list[Row | None]:
        wire.sync()
        if len(keys) <= 1:
            return [reply.rows[0] if reply.rows else None for _ in keys]
        found: list[Row | None] = [None] * len(keys)
        for row in reply.rows:
            found[row[0] - 1] = row[1:]
        return found

    return answers


def _open(address: Address) -> tuple[Wire, Origin]:
    wire = connect(address, WRITING)
    try:
        version = _version(wire)
        if version is None:
            raise LedgerMissing(f"there is no ledger at {address}. Create one with `tacit ledger init`.")
        check_version(version)
        if version < VERSION:
            wire.run(b"BEGIN")
            wire.run(_ALONE)
            _migrate(wire, _version(wire) or 0)
            wire.run(b"COMMIT")
        return wire, found_origin(dict(wire.run(b"SELECT name, value FROM facts")))
    except BaseException:
        wire.close()
        raise


def _version(wire: Wire) -> int | None:
    """The version of the ledger in this database; None where there is none."""
    if wire.run(f"SELECT to_regclass('{SCHEMA}.facts')::text".encode()) == [(None,)]:
        return None
    found = wire.run(b"SELECT value FROM facts WHERE name = 'version'")
    return version_of(found[0] if found else None)


def _make_schema(wire: Wire, address: Address) -> None:
    """The schema may be there and empty: then whoever runs the server has made it, and given us no right to make one."""
    ((encoding, schema),) = wire.run(
        f"SELECT current_setting('server_encoding'), to_regnamespace('{SCHEMA}')::text".encode()
    )
    if encoding != "UTF8":
        raise LedgerUnavailable(f"the database at {address} is encoded in {encoding}; a ledger needs one in UTF8.")
    if schema is None:
        wire.run(f"CREATE SCHEMA {SCHEMA}".encode())
    elif wire.run(f"SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}') LIMIT 1".encode()):
        raise LedgerExists(f"the schema {SCHEMA} in {address} holds something else; name another database.")


def _migrate(wire: Wire, version: int) -> None:
    for migration in MIGRATIONS[version:]:
        for table in migration.tables:
            room = " WITH (fillfactor = 70)" if table.name in _UPDATED else ""
            wire.run(f"{table.definition(statements.TYPES)}{room}".encode(), once=True)
        for statement in migration.statements:
            wire.run(statement.encode(), once=True)
    if version:
        wire.run(b"UPDATE facts SET value = $1 WHERE name = 'version'", (str(VERSION),))


def _roll_back(wire: Wire, problem: BaseException) -> None:
    """Ends a transaction, by ending the session where that has failed: the next one then gets a new session."""
    try:
        if isinstance(problem, psycopg.Error) or not isinstance(problem, Exception | GeneratorExit):
            wire.close()
        else:
            wire.run(b"ROLLBACK")
    except psycopg.Error:
        wire.close()
