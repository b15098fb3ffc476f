"""A session with PostgreSQL: statements are sent together, answered together, and each is prepared once per connection.

psycopg's cursors send each statement by itself; a charge has eight, and took twice as long with them. This module speaks to the
same driver's libpq directly, in its pipeline mode and with binary values. It also raises PostgreSQL's errors as the ledger's own.
"""

import os
import select
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import pack
from typing import Any, NoReturn

import numpy as np
import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import error_from_result

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerError, LedgerUnavailable
from tacit.ledger.stores.interface import Kind, Row

_INTEGERS = np.dtype([("size", ">i4"), ("value", ">i8")])


class Ints(bytes):
    """An array of integers in PostgreSQL's binary form."""


class Texts(bytes):
    """An array of texts."""


class Blobs(bytes):
    """An array of byte strings."""


# PostgreSQL's numbers of the types, which never change; an integer is a BIGINT however small.
_TYPES: dict[type, int] = {int: 20, str: 25, bytes: 17, Ints: 1016, Texts: 1009, Blobs: 1001}


class StatementResult:
    """The rows and the status of a statement, after the session was synced."""

    __slots__ = ("rows", "status")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.status = b""  # such as COMMIT


class Session:
    """One session. Statements run in order: each begins when the one before it has ended. Use it in one thread at a time."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection, self._pg, self._owner = connection, connection.pgconn, os.getpid()
        self._pg.nonblocking = 1  # a waiting thread must not stop the others
        self._pg.enter_pipeline_mode()
        self._loading = Transformer(connection)
        self._prepared: dict[bytes, bytes] = {}
        self._sent: list[StatementResult | None] = []
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)

    def send(self, statement: bytes, parameters: Sequence[Any] = (), *, once: bool = False) -> StatementResult:
        """Sends a statement with $1, $2, ... for its parameters. With ``once`` it is not prepared for the next time."""
        values = [_binary(value) for value in parameters]
        formats = [pq.Format.BINARY] * len(values)
        name = self._prepared.get(statement)
        if once or name is None:
            types = [_TYPES[type(value)] for value in parameters]
        if once:
            self._pg.send_query_params(statement, values, types, formats, pq.Format.BINARY)
        else:
            if name is None:
                name = self._prepared[statement] = b"tacit_%d" % len(self._prepared)
                self._pg.send_prepare(name, statement, types)
                self._sent.append(None)
            self._pg.send_query_prepared(name, values, formats, pq.Format.BINARY)
        reply = StatementResult()
        self._sent.append(reply)
        return reply

    def sync(self) -> None:
        """Waits until all statements are done. Raises the first error; the statements after it were not run."""
        if not self._sent:
            return
        self._pg.pipeline_sync()
        sent, self._sent = self._sent, []
        problem: psycopg.Error | None = None
        for reply in sent:
            result = self._result()
            if result is None:
                raise psycopg.OperationalError("the server ended the connection")
            if result.status == pq.ExecStatus.FATAL_ERROR:
                problem = problem or error_from_result(result)
                if self._pg.status == pq.ConnStatus.BAD:
                    break
            elif reply is not None:
                reply.status = result.command_status or b""
                if result.ntuples:
                    self._loading.set_pgresult(result)
                    reply.rows = self._loading.load_rows(0, result.ntuples, tuple)
            self._result()  # None: the end of this statement's results
        else:
            self._result()  # the sync itself
        if problem is not None:
            raise problem

    def run(self, statement: bytes, parameters: Sequence[Any] = (), *, once: bool = False) -> list[Row]:
        """Sends one statement and waits for its rows."""
        reply = self.send(statement, parameters, once=once)
        self.sync()
        return reply.rows

    @property
    def inherited(self) -> bool:
        """True after a fork: the session is the parent's, and must not be touched."""
        return self._owner != os.getpid()

    def alive(self) -> bool:
        """Whether the session can be used: nobody closed it, and neither server nor network ended it while it was idle."""
        if self._connection.closed:
            return False
        if not self._poll.poll(0):
            return True
        try:  # the server sent something unasked: the end of the session, or a changed setting
            self.run(b"SELECT 1")
        except psycopg.Error:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Ends the session; the server rolls back what was not committed."""
        if not self.inherited:
            self._connection.close()

    def __del__(self) -> None:
        self.close()

    def _result(self) -> pq.abc.PGresult | None:
        while self._pg.flush():  # more to send: the server may wait for us to read first
            self._poll.modify(self._pg.socket, select.POLLIN | select.POLLOUT)
            try:
                ready = self._poll.poll()
            finally:
                self._poll.modify(self._pg.socket, select.POLLIN)
            if ready[0][1] & ~select.POLLOUT:
                self._pg.consume_input()
        while self._pg.is_busy():
            self._poll.poll()
            self._pg.consume_input()
        return self._pg.get_result()


def arrays(kinds: Iterable[Kind], rows: Sequence[Row]) -> list[bytes]:
    """The columns of many rows, each as one parameter."""
    return [_array(kind, values) for kind, values in zip(kinds, zip(*rows, strict=True), strict=True)]


def _array(kind: Kind, values: tuple[Any, ...]) -> bytes:
    element = {"int": int, "text": str, "bytes": bytes}[kind]
    head = pack("!iiIii", 1, 0, _TYPES[element], len(values), 1)  # one dimension, no nulls, counted from 1
    if kind == "int":
        elements = np.empty(len(values), _INTEGERS)
        elements["size"], elements["value"] = 8, values
        return Ints(head + elements.tobytes())
    parts = [head]
    for value in [text.encode() for text in values] if kind == "text" else values:
        parts += (len(value).to_bytes(4, "big"), value)
    return (Texts if kind == "text" else Blobs)(b"".join(parts))


def _binary(value: Any) -> bytes:
    if isinstance(value, int):
        return value.to_bytes(8, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


SCHEMA = "tacit"
_OLDEST = 13
# Dead peers are noticed while the session is idle, and a host that does not answer is not waited for without end.
_CONNECTING: Mapping[str, str] = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "fallback_application_name": "tacit",
}
_ALL: Mapping[str, str] = {
    "search_path": f"{SCHEMA}, pg_temp",  # pg_temp last, or a temporary table could take the place of one of ours
    "default_transaction_isolation": "read committed",  # a statement after a lock sees what its last holder committed
    "lock_timeout": "60s",
    "jit": "off",
}
READING: Mapping[str, str] = _ALL
# A writer looks up single rows by key. Its plans are made while tables are still empty; the plan that looks best then, to read all
# rows, is the worst later.
WRITING: Mapping[str, str] = {
    **_ALL,
    "idle_in_transaction_session_timeout": "50s",  # a writer that hangs gives up its lanes before others give up waiting
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_COMMIT = (  # remote_apply waits for even more than on does
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' "
    "ELSE 'on' END, false)"
)


@dataclass(frozen=True)
class Address:
    """The address of a ledger. Its text names the place and no credentials, so it may appear in a message."""

    parameters: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, uri: str) -> "Address":
        try:
            parameters: Mapping[str, Any] | None = conninfo_to_dict(uri)
        except psycopg.ProgrammingError:
            parameters = None
        if parameters is None or _is_garbled(parameters):
            raise InvalidParameter(
                "the address of the ledger cannot be read. It is postgresql://user:password@host:port/database, where "
                "characters such as @ / : in a password are written %40 %2F %3A."
            )
        return cls(parameters)

    def __str__(self) -> str:
        host, port = str(self.parameters.get("host", "")), self.parameters.get("port")
        database = self.parameters.get("dbname", "")
        if host.startswith("/"):
            return f"postgresql:///{database}?host={host}"
        return f"postgresql://{host}{f':{port}' if port else ''}/{database}"


def _is_garbled(parameters: Mapping[str, Any]) -> bool:
    """Whether a character of a password cut it in two: libpq would then quote the rest of it as a host or port."""
    port = str(parameters.get("port", "")).replace(",", "")
    names = f"{parameters.get('host', '')}{parameters.get('dbname', '')}"
    return "@" in names or not (port == "" or port.isdigit())


def connect(address: Address, settings: Mapping[str, str]) -> Session:
    """A session in which a commit is on the disk when it returns. Raises LedgerUnavailable if the server cannot promise that."""
    connection = psycopg.connect(
        "", **{**_CONNECTING, **address.parameters, "client_encoding": "UTF8"}, autocommit=True
    )
    try:
        version = connection.info.server_version // 10_000
        if version < _OLDEST:
            raise LedgerUnavailable(
                f"the server at {address} is PostgreSQL {version}; a ledger needs {_OLDEST} or newer."
            )
        session = Session(connection)
        sets = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
        ((fsync, *_),) = session.run(f"SELECT current_setting('fsync', true), {_COMMIT}, {sets}".encode(), once=True)
        if fsync == "off":
            raise LedgerUnavailable(
                f"the server at {address} runs with fsync = off: a crash would undo charges after their release. "
                "Nothing was charged. Turn fsync on, then try again."
            )
    except BaseException:
        connection.close()
        raise
    return session


@contextmanager
def named(address: Address) -> Iterator[None]:
    """Raises PostgreSQL's errors as the ledger's own. The message names the database and PostgreSQL's reason, and no value."""
    try:
        yield
    except LedgerError:
        raise
    except psycopg.Error as problem:
        _raise(address, problem)


def _raise(address: Address, problem: psycopg.Error) -> NoReturn:
    state = problem.sqlstate or ""
    # The server's details quote the values of a row; its first line does not. Without one, libpq says why it cannot connect.
    reason = " ".join((problem.diag.message_primary or str(problem)).split())
    problem.args, problem._info = (), None  # the error stays reachable as the context of ours, and quotes the row
    integrity = state.startswith("23") or state in {"XX001", "XX002"}
    lost = state.startswith("42") and state != "42501"  # 42: a table or column is gone; 42501: no permission
    if integrity or lost:
        raise LedgerDamaged(
            f"the ledger at {address} is damaged ({reason}); nothing was charged. Run `tacit ledger check`, then restore a backup."
        ) from None
    raise LedgerUnavailable(
        f"the ledger at {address} cannot be used now ({reason}); nothing may be released. Fix the server or the "
        "connection, then try again with the same ids: no id is charged twice."
    ) from None
