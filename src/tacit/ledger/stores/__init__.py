"""The stores of ledgers: a SQLite file or a PostgreSQL database, chosen by its address."""

import os

from tacit.errors import InvalidParameter
from tacit.ledger.stores.interface import LedgerStore

_POSTGRESQL = ("postgresql://", "postgres://")
Target = str | os.PathLike[str]


def open_store(target: Target) -> LedgerStore:
    """The ledger at ``target``: a file, or ``postgresql://...``."""
    if is_postgresql(target):
        from tacit.ledger.stores.postgresql import PostgresqlStore

        return PostgresqlStore(_address(target))
    from tacit.ledger.stores.sqlite import SqliteStore

    return SqliteStore(target)


def create_store(target: Target, lanes: int | None = None) -> LedgerStore:
    """A new ledger at ``target``. With more lanes more processes can charge at once, in PostgreSQL."""
    if is_postgresql(target):
        from tacit.ledger.stores.postgresql import PostgresqlStore

        return PostgresqlStore.create(_address(target), lanes=16 if lanes is None else lanes)
    from tacit.ledger.stores.sqlite import SqliteStore

    return SqliteStore.create(target, lanes=1 if lanes is None else lanes)


def is_postgresql(target: Target) -> bool:
    """Whether ``target`` is a PostgreSQL address. Raises InvalidParameter if it is neither an address nor a file."""
    if not isinstance(target, (str, os.PathLike)) or not os.fspath(target):
        raise InvalidParameter("name the ledger by a file or by an address postgresql://...")
    text = str(target)
    is_address = text.lower().startswith(_POSTGRESQL)
    if text == ":memory:" or (not is_address and ("://" in text or "password=" in text)):
        raise InvalidParameter(
            "a ledger must be on a disk: name a file, or an address postgresql://... (no other kind is known)."
        )
    return is_address


def _address(target: Target) -> str:
    """The address with its scheme in lower case, as libpq wants it."""
    scheme, rest = str(target).split("://", 1)
    return f"{scheme.lower()}://{rest}"
