"""Deleting what has served its purpose: few rows at a time, so that nobody waits for long, and each of them counted once."""

from collections.abc import Callable

from tacit.ledger.impression_rows import BOOK
from tacit.ledger.stores.interface import Query, Row, Store
from tacit.ledger.stores.schema import Table


def forget(store: Store, table: Table, found: str, still: Query, given: Row, lane: Callable[[Row], int]) -> int:
    """Deletes what the SELECT ``found`` finds with the parameters ``given``, and returns how many rows that were.

    It finds some keys at a time. Before they are deleted, with their lanes locked, ``still`` asks with each key and ``given``
    whether that row is as it was found: it may have been deleted and made anew in between.
    """
    deleted = 0
    while True:
        with store.read() as reader:
            keys = list(reader.stream(found, given))
        if not keys:
            return deleted
        with store.write(BOOK, sorted({lane(key) for key in keys})) as writer:
            asked = writer.ask(still, [(*key, *given) for key in keys])()
            there = [key for key, row in zip(keys, asked, strict=True) if row is not None]
            writer.delete(table, there)
        deleted += len(there)
