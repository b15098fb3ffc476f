"""What a ledger asks of a store: one kind of write transaction, one kind of read, and nothing about SQL dialects."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from tacit.ledger.chain import Tip
from tacit.ledger.stores.schema import Kind, Table

Row = tuple[Any, ...]
Answers = Callable[
    [], list[Row | None]
]  # called when the rows are needed: a store on the wire asks several questions at once


@dataclass(frozen=True)
class Query:
    """A SELECT with ``?`` for each parameter, that finds at most one row."""

    sql: str
    parameters: tuple[Kind, ...]


class AlreadyThere(Exception):
    """A row with the same unique columns is in the table: a charge with this release id was made before."""


class Reader(Protocol):
    """A consistent view of the ledger at one moment."""

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers:
        """The row for each key, or None where there is none."""
        ...

    def stream(self, sql: str, parameters: Row = ()) -> Iterator[Row]:
        """All rows of a SELECT, few of them in memory at a time."""
        ...

    def damage(self) -> list[str]:
        """What the database itself finds wrong with its files."""
        ...


class Writer(Protocol):
    """A write transaction that holds the locks of its lanes until it is committed, durably."""

    @property
    def tips(self) -> Mapping[int, Tip]:
        """The ends of the locked lanes."""
        ...

    def ask(self, query: Query, keys: Sequence[Row]) -> Answers: ...

    def insert(self, table: Table, rows: Sequence[Row], *, unless_there: bool = False) -> None:
        """Adds rows. A store whose ``hopeful`` is True raises AlreadyThere for one that is there; the transaction is over then."""
        ...

    def update(self, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        """Sets ``columns``; each row holds their new values and then the table's key."""
        ...

    def delete(self, table: Table, keys: Sequence[Row]) -> None:
        """Removes the rows with these keys. No row of a book is ever removed: only what has served its purpose."""
        ...

    def advance(self, tips: Mapping[int, Tip]) -> None:
        """Moves the ends of the lanes."""
        ...


class Store(Protocol):
    """A place where a ledger lives. Errors of the driver come out as the ledger's own."""

    @property
    def ledger(self) -> str:
        """The ledger's own id, drawn when it was created."""
        ...

    @property
    def lanes(self) -> int: ...

    @property
    def hopeful(self) -> bool:
        """Whether many rows are sooner inserted, and AlreadyThere caught, than looked up first."""
        ...

    def write(self, book: str, lanes: Sequence[int]) -> AbstractContextManager[Writer]: ...

    def read(self) -> AbstractContextManager[Reader]: ...

    def close(self) -> None: ...
