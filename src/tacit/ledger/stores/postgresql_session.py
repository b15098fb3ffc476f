"""A connection to PostgreSQL as the ledger wants it, and PostgreSQL's errors as the ledger's own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerError, LedgerUnavailable
from tacit.ledger.stores.postgresql_wire import Wire

SCHEMA = "tacit"
_OLDEST = 13
# Dead peers are noticed while nobody waits, and a host that does not answer is not waited for without end.
_CONNECTING: Mapping[str, str] = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "fallback_application_name": "tacit",
}
_ALL: Mapping[str, str] = {
    "search_path": f"{SCHEMA}, pg_temp",  # named last, or a temporary table could stand in for one of ours
    "default_transaction_isolation": "read committed",  # a statement after a lock sees what its last holder committed
    "lock_timeout": "60s",
    "jit": "off",
}
READING: Mapping[str, str] = _ALL
# A writer looks up single rows by key, and its plans are made while tables are still empty: what looks best then (to read all
# rows) is worst later.
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
    """Where a ledger is. Its text names the place and no credentials, so that it may stand in a message."""

    parameters: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, uri: str) -> "Address":
        try:
            parameters: Mapping[str, Any] | None = conninfo_to_dict(uri)
        except psycopg.ProgrammingError:
            parameters = None
        if parameters is None or _garbled(parameters):
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


def _garbled(parameters: Mapping[str, Any]) -> bool:
    """Whether a password was cut in two by a sign of its own: libpq would then quote the rest of it as a host or port."""
    port = str(parameters.get("port", "")).replace(",", "")
    place = f"{parameters.get('host', '')}{parameters.get('dbname', '')}"
    return "@" in place or not (port == "" or port.isdigit())


def connect(address: Address, settings: Mapping[str, str]) -> Wire:
    """A session in which a commit is on the disk when it returns; refused where the server cannot promise that."""
    connection = psycopg.connect(
        "", **{**_CONNECTING, **address.parameters, "client_encoding": "UTF8"}, autocommit=True
    )
    try:
        found = connection.info.server_version // 10_000
        if found < _OLDEST:
            raise LedgerUnavailable(
                f"the server at {address} is PostgreSQL {found}; a ledger needs {_OLDEST} or newer."
            )
        wire = Wire(connection)
        sets = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
        ((fsync, *_),) = wire.run(f"SELECT current_setting('fsync', true), {_COMMIT}, {sets}".encode(), once=True)
        if fsync == "off":
            raise LedgerUnavailable(
                f"the server at {address} runs with fsync = off: a crash would undo charges after their release. "
                "Nothing was charged. Turn fsync on, then try again."
            )
    except BaseException:
        connection.close()
        raise
    return wire


@contextmanager
def named(address: Address) -> Iterator[None]:
    """PostgreSQL's errors as the ledger's own. The message names the database and PostgreSQL's reason, no value."""
    try:
        yield
    except LedgerError:
        raise
    except psycopg.Error as problem:
        _raise(address, problem)


def _raise(address: Address, problem: psycopg.Error) -> NoReturn:
    state = problem.sqlstate or ""
    # The server's details quote the values of a row; its first line does not. Without one, libpq tells why it cannot connect.
    reason = " ".join((problem.diag.message_primary or str(problem)).split())
    problem.args, problem._info = (
        (),
        None,
    )  # it stays reachable as the context of what is raised here, and quotes the row
    integrity = state.startswith("23") or state in {"XX001", "XX002"}
    if integrity or (
        state.startswith("42") and state != "42501"
    ):  # 42: a table or column is gone; 42501: no permission
        raise LedgerDamaged(
            f"the ledger at {address} is damaged ({reason}); nothing was charged. Run `tacit ledger check`, restore a backup."
        ) from None
    raise LedgerUnavailable(
        f"the ledger at {address} cannot be used now ({reason}); nothing may be released. Mend the server or the "
        "connection, then try again with the same ids: none is charged twice."
    ) from None
