"""Heads: how far a ledger has come, to be noted elsewhere and compared later."""

from tacit.errors import InvalidParameter, LedgerBehind, LedgerDamaged
from tacit.ledger.chain import Head, genesis
from tacit.ledger.stores.interface import Query, Reader, Store
from tacit.ledger.stores.schema import BOOKS

_TABLES = {"privacy": "entries", "impressions": "impressions"}


def head_of(store: Store) -> Head:
    """The ends of all lanes, at one moment."""
    with store.read() as reader:
        return read_head(reader, store.ledger)


def read_head(reader: Reader, ledger: str) -> Head:
    books: dict[str, list[tuple[int, str]]] = {book: [] for book in BOOKS}
    for book, position, link in reader.stream("SELECT book, position, link FROM lanes ORDER BY book, lane"):
        if book not in books or type(position) is not int or type(link) is not bytes:
            raise LedgerDamaged("the ends of the lanes are not what was written. Run `tacit ledger check`.")
        books[book].append((position, link.hex()))
    return Head(ledger, {book: tuple(tips) for book, tips in books.items()})


def check_head(head: Head) -> None:
    """Refuses what is no head, or only a part of one: it would seem to protect and does not."""
    if not isinstance(head, Head) or set(head.books) != set(BOOKS):
        raise InvalidParameter("a head tells of both books: ledger.head(), or Head.from_json(...) of what was noted.")


def require_head(store: Store, head: Head) -> None:
    """Refuses a ledger that does not contain ``head``: it lacks entries that it once had, or other ones took their place."""
    check_head(head)
    if head.ledger != store.ledger:
        raise LedgerDamaged(
            "this is another ledger than the one whose head was noted. Look for the right file or database."
        )
    with store.read() as reader:
        now = read_head(reader, store.ledger)
        for book, noted in head.books.items():
            tips = now.books.get(book, ())
            if len(noted) != len(tips):
                raise LedgerDamaged(
                    f"the noted head has {len(noted)} lanes in the {book} book, the ledger {len(tips)}."
                )
            for lane, ((position, link), (reached, _)) in enumerate(zip(noted, tips, strict=True)):
                if reached < position:
                    raise LedgerBehind(
                        f"lane {lane} of the {book} book ends at entry {reached:,}, but had {position:,} when its head was "
                        "noted: an old backup? Nothing may be charged to it. Restore the latest one; if that is lost, count "
                        "what was left of every budget as spent."
                    )
                if _link_at(reader, store, book, lane, position) != link:
                    raise LedgerDamaged(
                        f"entry {position:,} of lane {lane} of the {book} book is not the one that was noted."
                    )


def _link_at(reader: Reader, store: Store, book: str, lane: int, position: int) -> str | None:
    if position == 0:
        return genesis(store.ledger, book, lane, store.lanes).hex()
    query = Query(f"SELECT link FROM {_TABLES[book]} WHERE number = ?", ("int",))
    (row,) = reader.ask(query, [(position * store.lanes + lane,)])()
    return None if row is None else row[0].hex()
