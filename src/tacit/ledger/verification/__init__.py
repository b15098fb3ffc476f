"""The check of a whole ledger: every row of every table against what the entries say, in one pass and little memory.

It finds rows that were altered, lost, moved or inserted. Only a noted head shows that the latest entries were cut off together
with all traces of them, or that somebody rewrote everything after some entry and recomputed every sum and link. A stored release
that was removed leaves no trace; its charge does. A third party can check an exported file alone (`export`).
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerError
from tacit.ledger.book import check_head
from tacit.ledger.chain import Head, digest
from tacit.ledger.entries import BOOK as PRIVACY
from tacit.ledger.entries import ENTRY_COLUMNS, TEXT
from tacit.ledger.records import DisplayState
from tacit.ledger.stores import Target, open_store
from tacit.ledger.stores.interface import (
    ACCOUNTS,
    BATCHES,
    BOOKS,
    CLOSED,
    CONSENTS,
    DISPLAYS,
    ENGAGEMENTS,
    ENTRIES,
    MAIL,
    OFFERS,
    REFUSALS,
    RELEASES,
    SUBJECTS,
    LedgerStore,
    LedgerTable,
    Query,
    Reader,
    Row,
)
from tacit.ledger.stores.interface import IMPRESSIONS as IMPRESSION_ROWS
from tacit.ledger.tally import BOOK as IMPRESSIONS
from tacit.ledger.verification.books import LEDGER, Fault, Findings, ImpressionVerifier, Notes, PrivacyVerifier

Progress = Callable[[int, int], None]  # entries of both books that were checked, and all of them

_FACTS = {"ledger", "lanes", "created", "version"}
_BATCH = 2_000  # rows between two questions to the store
_MOST_TEXTS = 20_000
_MOST_BYTES = 32 * 1024 * 1024  # of stored releases in memory, or one of them if that is larger
_ENTRIES = (
    f"SELECT {ENTRY_COLUMNS}, s.name FROM entries e LEFT JOIN subjects s ON s.number = e.number ORDER BY e.number"
)
_LANES = "SELECT lane, position, link, at, seal FROM lanes WHERE book = ?"
_RELEASES = (
    "SELECT r.entry, length(r.content), r.seal, e.release_id FROM releases r "
    "LEFT JOIN entries e ON e.number = r.entry ORDER BY r.entry"
)
_CONTENT = Query("SELECT content FROM releases WHERE entry = ?", ("int",))
_IMPRESSIONS = (
    "SELECT i.number, i.id, i.account, i.day, i.micros, i.link, a.item FROM impressions i "
    "LEFT JOIN accounts a ON a.number = i.account ORDER BY i.number"
)
# The tables beside the books, and the book that a finding names. Their rows are in no chain and are deleted on purpose, so a
# missing row is not a finding, and the seal shows an altered one. Nothing that is counted or owed depends on them.
_BESIDE = (
    (OFFERS, IMPRESSIONS),
    (BATCHES, IMPRESSIONS),
    (REFUSALS, IMPRESSIONS),
    (DISPLAYS, LEDGER),
    (MAIL, LEDGER),
    (CLOSED, LEDGER),
    (ENGAGEMENTS, IMPRESSIONS),
)
_UNIQUE = (
    *((columns, table) for table in (ENTRIES, IMPRESSION_ROWS, SUBJECTS, ACCOUNTS) for columns in table.unique),
    *((table.key, table) for table in (CONSENTS, *(table for table, _ in _BESIDE))),
)
_STRAY_ENGAGEMENTS = (  # those that belong to no impression of their item
    "SELECT 1 FROM engagements e LEFT JOIN impressions i ON i.id = e.id LEFT JOIN accounts a ON a.number = i.account "
    "WHERE a.item IS NULL OR a.item <> e.item OR e.bit NOT IN (0, 1) LIMIT 1"
)


def check(
    store_or_target: LedgerStore | Target, *, head: Head | None = None, progress: Progress | None = None
) -> Findings:
    """Everything that is wrong with a ledger; with a ``head``, also the entries it lost since the head was noted.

    Damage is a finding, however bad. Raises LedgerMissing if there is no ledger to check.
    """
    if head is not None:
        check_head(head)
    if not isinstance(store_or_target, (str, os.PathLike)):
        return _Check(store_or_target, head, progress).run()
    try:
        store = open_store(store_or_target)
    except InvalidParameter:
        raise  # the address is wrong, not the ledger
    except (LedgerDamaged, ValueError) as problem:  # also a version that is not a number
        return Findings(0, 0, 0, (Fault(LEDGER, f"it cannot be opened: {_one_line(problem)}"),))
    try:
        return _Check(store, head, progress).run()
    finally:
        store.close()


class _Check:
    def __init__(self, store: LedgerStore, head: Head | None, progress: Progress | None) -> None:
        self._store, self._progress, self._notes = store, progress, Notes()
        self._texts = _Texts()
        self._privacy = PrivacyVerifier(store.ledger, store.lanes, self._texts, self._notes, head=head)
        self._impressions = ImpressionVerifier(store.ledger, store.lanes, self._notes, head=head)
        self._done = self._all = 0

    def run(self) -> Findings:
        parts: list[tuple[str, Callable[[Reader], None]]] = [
            (LEDGER, self._database),
            (LEDGER, self._foundations),
            (PRIVACY, self._entries),
            (PRIVACY, self._releases),
            (IMPRESSIONS, self._all_impressions),
            (LEDGER, self._tables_beside),
        ]
        for book, part in parts:
            try:
                with self._store.read() as reader:
                    part(reader)
            except LedgerError as problem:  # only its code: the text may quote what could not be read
                self._notes.add(book, f"it cannot be read to its end ({problem.code}).")
            except (TypeError, ValueError, ArithmeticError, AttributeError):  # such as a text in the place of a number
                self._notes.add(book, "it cannot be read to its end: it holds values of the wrong kind.")
        privacy, impressions, notes = self._privacy, self._impressions, self._notes
        return Findings(privacy.entries, privacy.subjects, impressions.impressions, notes.findings, notes.more)

    def _database(self, reader: Reader) -> None:
        for damage in reader.damage():
            self._notes.add(LEDGER, f"the database finds its own files damaged: {_one_line(damage)}")

    def _foundations(self, reader: Reader) -> None:
        """Facts, books and texts. The ledger's id and lanes are not checked here: every link rests on them."""
        facts: dict[Any, Any] = dict(reader.stream("SELECT name, value FROM facts"))
        if set(facts) != _FACTS or not _is_time(facts["created"]):
            self._notes.add(LEDGER, "the facts about the ledger are not those it was created with.")
        for book, position in reader.stream("SELECT book, position FROM lanes"):
            if book not in BOOKS:
                self._notes.add(LEDGER, "there is a stored end of a lane of a book that does not exist.")
            self._all += position if type(position) is int else 0
        for key, text in reader.stream("SELECT digest, text FROM texts"):
            if type(key) is not bytes or type(text) is not str or digest(text) != key:
                self._notes.add(PRIVACY, "a text of terms or of a guarantee is not what was written.")
        for columns, table in _UNIQUE:
            for _ in reader.stream(f"SELECT 1 FROM {table.name} GROUP BY {', '.join(columns)} HAVING count(*) > 1"):
                self._notes.add(LEDGER, f"two rows of {table.name} have one key: something was counted twice.")
        for _ in reader.stream("SELECT digest FROM texts EXCEPT SELECT guarantee FROM entries"):
            self._notes.add(PRIVACY, "there is a text of terms or of a guarantee that no entry refers to.")

    def _entries(self, reader: Reader) -> None:
        entry = self._privacy.entry
        for batch in _batches(reader.stream(_ENTRIES)):
            self._texts.prepare(reader, (row[4] for row in batch))
            for row in batch:
                entry(row[:13], row[13])
            self._report_progress(len(batch))
        for row in reader.stream(f"{SUBJECTS.select} ORDER BY number"):
            self._privacy.subject(row)
        self._privacy.chain.compare(reader.stream(_LANES, (PRIVACY,)))
        self._privacy.chain.reaches_head()

    def _releases(self, reader: Reader) -> None:
        for batch in _batches(reader.stream(_RELEASES)):
            for part in _not_too_large(batch):
                contents = reader.ask(_CONTENT, [(row[0],) for row in part])()
                for (entry, _, seal, release_id), content in zip(part, contents, strict=True):
                    self._release(entry, seal, release_id, None if content is None else content[0])

    def _release(self, entry: int, seal: object, release_id: object, content: object) -> None:
        position, lane = divmod(entry, self._store.lanes)
        if not release_id:
            self._notes.add(PRIVACY, "there is a stored release that was never charged.", lane, position)
        if not RELEASES.is_sealed((entry, content, seal)):
            self._notes.add(PRIVACY, "the stored release of this entry is not what was written.", lane, position)

    def _all_impressions(self, reader: Reader) -> None:
        impression = self._impressions.impression
        for batch in _batches(reader.stream(_IMPRESSIONS)):
            for row in batch:
                impression(row[:6], row[6])
            self._report_progress(len(batch))
        for row in reader.stream(f"{ACCOUNTS.select} ORDER BY number"):
            self._impressions.account(row)
        self._impressions.chain.compare(reader.stream(_LANES, (IMPRESSIONS,)))
        self._impressions.chain.reaches_head()

    def _tables_beside(self, reader: Reader) -> None:
        """The tables beside the books, each kind of fault once."""
        for table, book in _BESIDE:
            if not all(_is_intact(table, row) for row in reader.stream(table.select)):
                self._notes.add(book, f"{table.noun} is not what was written.")
        granted_before, day_before = 0, 0
        for number, row in enumerate(reader.stream(f"{CONSENTS.select} ORDER BY number"), 1):
            _, granted, day, _ = row
            repeated = number > 1 and granted == granted_before  # only a refusal repeats, and it keeps its first day
            sealed = CONSENTS.is_sealed(row) and row[0] == number and day >= day_before
            if not sealed or (repeated and (granted, day) != (0, day_before)):
                self._notes.add(LEDGER, "the consents are not those that were written.")
                break
            granted_before, day_before = granted, day
        for _ in reader.stream(_STRAY_ENGAGEMENTS):
            self._notes.add(IMPRESSIONS, "there is an engagement that belongs to no impression of its item.")

    def _report_progress(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._progress(self._done, max(self._all, self._done))


class _Texts:
    """Texts by digest, read many at a time and not all kept in memory."""

    def __init__(self) -> None:
        self._texts: dict[bytes, str | None] = {}

    def prepare(self, reader: Reader, keys: Iterable[Any]) -> None:
        """Reads the texts that are not in memory yet."""
        needed = {key for key in keys if type(key) is bytes}
        if len(self._texts) > _MOST_TEXTS:
            self._texts.clear()
        new = [(key,) for key in needed if key not in self._texts]
        if not new:
            return
        for (key,), row in zip(new, reader.ask(TEXT, new)(), strict=True):
            self._texts[key] = None if row is None else row[0]

    def __call__(self, key: bytes) -> str | None:
        return self._texts.get(key)


def _is_intact(table: LedgerTable, row: Row) -> bool:
    """Whether a row of a table beside the books is unaltered, and holds what such a row holds."""
    if table is CLOSED:
        return type(row[0]) is str and row[0].isprintable() and row[0] != ""
    if not table.is_sealed(row):
        return False
    try:
        if table is OFFERS:
            return type(json.loads(row[1])) is list
        return table is not DISPLAYS or DisplayState(row[4]) in DisplayState
    except ValueError:
        return False


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    rows = iter(rows)
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _not_too_large(rows: list[Row]) -> Iterator[list[Row]]:
    """Rows whose contents, of the lengths in their second column, may be in memory together."""
    part: list[Row] = []
    size = 0
    for row in rows:
        if part and size + row[1] > _MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(row)
        size += row[1]
    if part:
        yield part


def _is_time(text: object) -> bool:
    try:
        datetime.fromisoformat(str(text))
    except ValueError:
        return False
    return True


def _one_line(problem: object) -> str:
    return " ".join(str(problem).split())
