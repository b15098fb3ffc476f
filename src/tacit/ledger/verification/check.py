"""The check of a whole ledger: every row of every table against what the entries say, in one pass and little memory.

It finds rows that were altered, lost, moved or put in. Two things only a noted head can show: that the latest entries were cut
off together with all traces of them, and that somebody rewrote everything after some entry and mended every sum and link. A
stored release that was removed leaves no trace at all; its charge does.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerError
from tacit.ledger.chain import Head, digest
from tacit.ledger.entries import BOOK as PRIVACY
from tacit.ledger.entries import TEXT, seal_of_release
from tacit.ledger.heads import check_head
from tacit.ledger.impression_rows import BOOK as IMPRESSIONS
from tacit.ledger.stores import Target, open_store
from tacit.ledger.stores.interface import Query, Reader, Row, Store
from tacit.ledger.stores.schema import BOOKS
from tacit.ledger.verification.findings import LEDGER, Finding, Findings, Notes
from tacit.ledger.verification.impressions import ImpressionVerifier
from tacit.ledger.verification.privacy import PrivacyVerifier
from tacit.ledger.verification.selection import UNIQUE, check_selection

Progress = Callable[[int, int], None]  # how many entries of both books were checked, of how many

_FACTS = {"ledger", "lanes", "created", "version"}
_BATCH = 2_000  # rows between two questions to the store
_MOST_TEXTS = 20_000
_MOST_BYTES = 32 * 1024 * 1024  # of stored releases in memory, or one of them if that is larger
_ENTRIES = (
    "SELECT e.number, e.subject, e.release_id, e.at, e.guarantee, e.amount, e.delta, e.unprotected, e.total, e.total_delta, "
    "e.total_unprotected, e.windowed, e.link, s.name FROM entries e LEFT JOIN subjects s ON s.number = e.number ORDER BY e.number"
)
_SUBJECTS = "SELECT number, name, terms, total, total_delta, total_unprotected, at, seal FROM subjects ORDER BY number"
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
_UNIQUE = (
    ("subject, release_id", "entries"),
    ("id", "impressions"),
    ("name", "subjects"),
    ("item, lane", "accounts"),
    *UNIQUE,
)
_ACCOUNTS = "SELECT number, item, lane, impressions, micros, seal FROM accounts ORDER BY number"


def check(store_or_target: Store | Target, *, head: Head | None = None, progress: Progress | None = None) -> Findings:
    """Everything that is wrong with a ledger; with a ``head``, also what it lacks since that was noted.

    Damage is a finding, however bad. Raises where there is no ledger to check.
    """
    if head is not None:
        check_head(head)
    if not isinstance(store_or_target, (str, os.PathLike)):
        return _Check(store_or_target, head, progress).run()
    try:
        store = open_store(store_or_target)
    except InvalidParameter:
        raise  # not the ledger is wrong, but its address
    except (LedgerDamaged, ValueError) as problem:  # a version that is no number, too
        return Findings(0, 0, 0, (Finding(LEDGER, f"it cannot be opened: {_one_line(problem)}"),))
    try:
        return _Check(store, head, progress).run()
    finally:
        store.close()


class _Check:
    def __init__(self, store: Store, head: Head | None, progress: Progress | None) -> None:
        self._store, self._progress, self._notes = store, progress, Notes()
        self._texts = _Texts()
        self._privacy = PrivacyVerifier(store.ledger, store.lanes, self._texts, self._notes, head=head)
        self._impressions = ImpressionVerifier(store.ledger, store.lanes, self._notes, head=head)
        self._done = self._all = 0

    def run(self) -> Findings:
        parts: list[tuple[str, Callable[[Reader], None]]] = [
            (LEDGER, self._file),
            (LEDGER, self._foundations),
            (PRIVACY, self._entries),
            (PRIVACY, self._releases),
            (IMPRESSIONS, self._all_impressions),
            (LEDGER, self._selection),
        ]
        for book, part in parts:
            try:
                with self._store.read() as reader:
                    part(reader)
            except LedgerError as problem:  # its text may quote what could not be read; that is nobody's business here
                self._notes.add(book, f"it cannot be read to its end ({problem.code}).")
            except (TypeError, ValueError, ArithmeticError, AttributeError):  # such as a number that is none
                self._notes.add(book, "it cannot be read to its end: it holds values that no ledger has.")
        privacy, impressions, notes = self._privacy, self._impressions, self._notes
        return Findings(privacy.entries, privacy.subjects, impressions.impressions, notes.findings, notes.more)

    def _file(self, reader: Reader) -> None:
        for damage in reader.damage():
            self._notes.add(LEDGER, f"the database finds its own files damaged: {_one_line(damage)}")

    def _foundations(self, reader: Reader) -> None:
        """Facts, books and texts. The ledger's id and lanes need no look here: every link rests on them."""
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
            for _ in reader.stream(f"SELECT 1 FROM {table} GROUP BY {columns} HAVING count(*) > 1"):
                self._notes.add(LEDGER, f"two rows of {table} have one key: something was counted twice.")
        for _ in reader.stream("SELECT digest FROM texts EXCEPT SELECT guarantee FROM entries"):
            self._notes.add(PRIVACY, "there is a text of terms or of a guarantee that no entry refers to.")

    def _entries(self, reader: Reader) -> None:
        entry = self._privacy.entry
        for batch in _batches(reader.stream(_ENTRIES)):
            self._texts.prepare(reader, (row[4] for row in batch))
            for row in batch:
                entry(row[:13], row[13])
            self._tell(len(batch))
        for row in reader.stream(_SUBJECTS):
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
        if type(content) is not bytes or seal_of_release(entry, content) != seal:
            self._notes.add(PRIVACY, "the stored release of this entry is not what was written.", lane, position)

    def _all_impressions(self, reader: Reader) -> None:
        impression = self._impressions.impression
        for batch in _batches(reader.stream(_IMPRESSIONS)):
            for row in batch:
                impression(row[:6], row[6])
            self._tell(len(batch))
        for row in reader.stream(_ACCOUNTS):
            self._impressions.account(row)
        self._impressions.chain.compare(reader.stream(_LANES, (IMPRESSIONS,)))
        self._impressions.chain.reaches_head()

    def _selection(self, reader: Reader) -> None:
        check_selection(reader, self._notes)

    def _tell(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._progress(self._done, max(self._all, self._done))


class _Texts:
    """Texts by digest, asked for many at a time, not all of them in memory."""

    def __init__(self) -> None:
        self._known: dict[bytes, str | None] = {}

    def prepare(self, reader: Reader, keys: Iterable[Any]) -> None:
        """Reads those texts that are not known yet."""
        needed = {key for key in keys if type(key) is bytes}
        if len(self._known) > _MOST_TEXTS:
            self._known.clear()
        wanted = [(key,) for key in needed if key not in self._known]
        if not wanted:
            return
        for (key,), row in zip(wanted, reader.ask(TEXT, wanted)(), strict=True):
            self._known[key] = None if row is None else row[0]

    def __call__(self, key: bytes) -> str | None:
        return self._known.get(key)


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
