"""Statements on their way to PostgreSQL and back: sent together, answered together, each prepared once per connection.

psycopg's cursors send each statement by itself; a charge has eight, and took twice as long with them. Here the same driver's
libpq is spoken to directly, in its pipeline mode and with binary values.
"""

import os
import select
from collections.abc import Iterable, Sequence
from struct import pack
from typing import Any

import numpy as np
import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from tacit.ledger.stores.interface import Row
from tacit.ledger.stores.schema import Kind

_INTEGERS = np.dtype([("size", ">i4"), ("value", ">i8")])


class Ints(bytes):
    """An array of integers in PostgreSQL's binary form."""


class Texts(bytes):
    """An array of texts."""


class Blobs(bytes):
    """An array of byte strings."""


# PostgreSQL's numbers of the types, which never change; an integer is a BIGINT however small.
_TYPES: dict[type, int] = {int: 20, str: 25, bytes: 17, Ints: 1016, Texts: 1009, Blobs: 1001}


class Reply:
    """What came back for a statement, once the wire was synced."""

    __slots__ = ("rows", "status")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.status = b""  # such as COMMIT


class Wire:
    """One session. Statements are in order: each begins when the one before it has ended. Not for several threads at once."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection, self._pg, self._owner = connection, connection.pgconn, os.getpid()
        self._pg.nonblocking = 1  # a thread that waits must not stop the others, nor the one that it waits for
        self._pg.enter_pipeline_mode()
        self._loading = Transformer(connection)
        self._prepared: dict[bytes, bytes] = {}
        self._sent: list[Reply | None] = []
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)

    def send(self, statement: bytes, parameters: Sequence[Any] = (), *, once: bool = False) -> Reply:
        """Puts a statement, with $1, $2, ... for its parameters, on the way. It is not kept for the next time if ``once``."""
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
        reply = Reply()
        self._sent.append(reply)
        return reply

    def sync(self) -> None:
        """Waits until all that was sent is done. Raises the first error; the statements behind it were not run."""
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
        """False for a session that was closed, or that the server or the network has ended while it was idle."""
        if self._connection.closed:
            return False
        if not self._poll.poll(0):
            return True
        try:  # something came unasked: a farewell, or news such as a changed setting
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
        while self._pg.flush():  # more is to be sent: the server may have to be heard before it listens
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
