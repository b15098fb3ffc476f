"""The ledger's statements as PostgreSQL likes them: for one row plain parameters, for many rows one array per column."""

from collections.abc import Iterable
from functools import cache

from tacit.ledger.stores.interface import Query
from tacit.ledger.stores.schema import Kind, Table

TYPES: dict[Kind, str] = {"int": "BIGINT", "text": 'TEXT COLLATE "C"', "bytes": "BYTEA"}
_ARRAYS: dict[Kind, str] = {"int": "bigint[]", "text": "text[]", "bytes": "bytea[]"}
_Columns = tuple[tuple[str, Kind], ...]


@cache
def for_one(query: str) -> bytes:
    """``query`` with $1, $2, ... in place of its question marks."""
    first, *rest = query.split("?")
    return (first + "".join(f"${place}{part}" for place, part in enumerate(rest, 1))).encode()


@cache
def for_many(query: Query) -> bytes:
    """``query`` for every row of the arrays; what it finds comes with the place of its key in them, in any order."""
    first, *rest = query.sql.split("?")
    inner = first + "".join(f"k.p{place}{part}" for place, part in enumerate(rest, 1))
    names = ", ".join(f"p{place}" for place in range(1, len(rest) + 1))
    return (
        f"SELECT k.place, q.* FROM {_unnested(query.parameters)} WITH ORDINALITY AS k({names}, place) "
        f"CROSS JOIN LATERAL ({inner} OFFSET 0) AS q"  # kept apart: merged into one join, a part of a key may go unused
    ).encode()


def insert(table: Table, *, many: bool = False, unless_there: bool = False) -> bytes:
    return _insert(table.name, tuple(table.columns.items()), many, unless_there)


def update(table: Table, columns: tuple[str, ...], *, many: bool = False) -> bytes:
    """Parameters are the new values of ``columns``, then the table's key."""
    named = tuple((name, table.columns[name]) for name in (*columns, *table.key))
    return _update(table.name, named, len(columns), many)


def delete(table: Table, *, many: bool = False) -> bytes:
    """Parameters are the table's key."""
    return _delete(table.name, tuple((name, table.columns[name]) for name in table.key), many)


@cache
def _insert(table: str, columns: _Columns, many: bool, unless_there: bool) -> bytes:
    names = ", ".join(name for name, _ in columns)
    if many:
        rows = f"SELECT * FROM {_unnested(kind for _, kind in columns)}"
    else:
        rows = f"VALUES ({', '.join(f'${place}' for place in range(1, len(columns) + 1))})"
    skip = " ON CONFLICT DO NOTHING" if unless_there else ""
    return f"INSERT INTO {table} ({names}) {rows}{skip}".encode()


@cache
def _update(table: str, columns: _Columns, changed: int, many: bool) -> bytes:
    names = [name for name, _ in columns]
    given = {name: f"v.{name}" if many else f"${place}" for place, name in enumerate(names, 1)}
    source = f" FROM {_unnested(kind for _, kind in columns)} AS v({', '.join(names)})" if many else ""
    sets = ", ".join(f"{name} = {given[name]}" for name in names[:changed])
    where = " AND ".join(f"t.{name} = {given[name]}" for name in names[changed:])
    return f"UPDATE {table} AS t SET {sets}{source} WHERE {where}".encode()


@cache
def _delete(table: str, key: _Columns, many: bool) -> bytes:
    names = [name for name, _ in key]
    source = f" USING {_unnested(kind for _, kind in key)} AS v({', '.join(names)})" if many else ""
    where = " AND ".join(f"t.{name} = {f'v.{name}' if many else f'${place}'}" for place, name in enumerate(names, 1))
    return f"DELETE FROM {table} AS t{source} WHERE {where}".encode()


def _unnested(kinds: Iterable[Kind]) -> str:
    return f"unnest({', '.join(f'${place}::{_ARRAYS[kind]}' for place, kind in enumerate(kinds, 1))})"
