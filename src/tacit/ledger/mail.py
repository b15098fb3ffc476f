"""A shuffler's own record: reports that wait for their batch, each token once, on the disk before it is acknowledged.

mail.add("batch-9", group, "item-7", token)      # True: it is kept; False: this token was there before
mail.close_batch("batch-9")                      # no more are taken
for group in mail.groups("batch-9"):
    send("batch-9", group, mail.reports("batch-9", group))     # in the order of tokens, the same at every call
mail.forget("batch-9")                           # once the server has acknowledged all of them
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import Conflict, LedgerDamaged, TacitError
from tacit.ledger.chain import lane_of
from tacit.ledger.clock import Clock, now
from tacit.ledger.forgetting import forget
from tacit.ledger.grouping import GroupCommit
from tacit.ledger.impression_rows import BOOK
from tacit.ledger.names import name
from tacit.ledger.offers import MOST_TOKEN
from tacit.ledger.opened import OpenedLedger
from tacit.ledger.stores.interface import Query, Row, Store, Writer
from tacit.ledger.stores.schema import CLOSED, MAIL

_TOKEN = Query("SELECT 1 FROM mail WHERE batch = ? AND token = ?", ("text", "text"))
_CLOSED = Query("SELECT 1 FROM closed WHERE batch = ?", ("text",))
_GROUPS = "SELECT group_id, count(*) FROM mail WHERE batch = ? GROUP BY group_id ORDER BY group_id"
_REPORTS = "SELECT token, item, seal FROM mail WHERE batch = ? AND group_id = ? ORDER BY token"
_ALL = "SELECT batch, token FROM mail WHERE batch = ? LIMIT 2000"
_STILL = Query("SELECT 1 FROM mail WHERE batch = ? AND token = ? AND batch = ?", ("text", "text", "text"))


class Letter(NamedTuple):
    """One report: which batch and group it belongs to, its item, and the token that makes it count once."""

    batch: str
    group: str
    item: str
    token: str


class MailLedger(OpenedLedger):
    """The mail of one shuffler. One object may be shared by many threads, one store by many processes."""

    def __init__(self, store: Store, *, clock: Clock = now) -> None:
        super().__init__(store, clock=clock)
        self._add: GroupCommit[Letter, bool | TacitError] = GroupCommit(self._commit)

    def add(self, batch: str, group: str, item: str, token: str) -> bool:
        """Keeps a report, and returns when it is on the disk: True, or False where the batch has this token already.

        A batch that is closed raises Conflict, but for a token that it has.
        """
        (outcome,) = self.add_many([Letter(batch, group, item, token)])
        if isinstance(outcome, TacitError):
            raise outcome
        return outcome

    def add_many(self, letters: Iterable[Letter | tuple[str, str, str, str]]) -> list[bool | TacitError]:
        """One transaction for many reports, in their order; each one stands alone."""
        wished = [_checked(*letter) for letter in letters]
        return self._add(wished) if wished else []

    def groups(self, batch: str) -> dict[str, int]:
        """The groups of a batch, in their order, and how many reports each has."""
        with self._store.read() as reader:
            return dict(reader.stream(_GROUPS, (name("a batch", batch),)))

    def reports(self, batch: str, group: str) -> list[tuple[str, str]]:
        """The reports of one group as (token, item), in the order of tokens, which says nothing about who came when."""
        with self._store.read() as reader:
            rows = reader.stream(_REPORTS, (name("a batch", batch), name("a group", group)))
            return [_sealed(batch, group, *row) for row in rows]

    def close_batch(self, batch: str) -> None:
        """Closes a batch, for good: it takes no more reports."""
        with self._store.write(BOOK, [self._lane(name("a batch", batch))]) as writer:
            if writer.ask(_CLOSED, [(batch,)])()[0] is None:
                writer.insert(CLOSED, [(batch,)])

    def closed(self, batch: str) -> bool:
        """Whether a batch takes no more."""
        with self._store.read() as reader:
            return reader.ask(_CLOSED, [(name("a batch", batch),)])()[0] is not None

    def forget(self, batch: str) -> int:
        """Deletes the reports of a closed batch, and returns how many. It stays closed."""
        if not self.closed(batch):
            raise Conflict("a batch that still takes reports cannot be forgotten: close it first.")
        return forget(self._store, MAIL, _ALL, _STILL, (batch,), lambda key: self._lane(key[0]))

    def _lane(self, batch: str) -> int:
        return lane_of(batch, self._store.lanes)

    def _commit(self, letters: list[Letter]) -> list[bool | TacitError]:
        with self._store.write(BOOK, sorted({self._lane(letter.batch) for letter in letters})) as writer:
            return _commit_letters(writer, letters)


def _commit_letters(writer: Writer, letters: list[Letter]) -> list[bool | TacitError]:
    batches = list(dict.fromkeys(letter.batch for letter in letters))
    seen = writer.ask(_TOKEN, [(letter.batch, letter.token) for letter in letters])
    shut = writer.ask(_CLOSED, [(batch,) for batch in batches])()
    closed = {batch for batch, row in zip(batches, shut, strict=True) if row is not None}
    new: dict[tuple[str, str], Row] = {}
    outcomes: list[bool | TacitError] = []
    for (batch, group, item, token), row in zip(letters, seen(), strict=True):
        key = (batch, token)
        if row is not None or key in new:
            outcomes.append(False)
        elif batch in closed:
            outcomes.append(Conflict("this batch is closed: it takes no more reports."))
        else:
            new[key] = (batch, token, group, item, seal_of_letter(batch, token, group, item))
            outcomes.append(True)
    writer.insert(MAIL, sorted(new.values()))
    return outcomes


def seal_of_letter(batch: str, token: str, group: str, item: str) -> bytes:
    return sha256(f"{batch}\n{token}\n{group}\n{item}".encode()).digest()[:8]


def _sealed(batch: str, group: str, token: str, item: str, seal: bytes) -> tuple[str, str]:
    if seal_of_letter(batch, token, group, item) != seal:
        raise LedgerDamaged("a letter is not what was written. Run `tacit ledger check`, restore a backup.")
    return token, item


def _checked(batch: str, group: str, item: str, token: str) -> Letter:
    name("a token", token, MOST_TOKEN)
    return Letter(name("a batch", batch), name("a group", group), name("an item", item, 200), token)
