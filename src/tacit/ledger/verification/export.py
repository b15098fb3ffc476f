"""Export of a ledger as one file of JSON Lines, and its recomputation: anyone who holds the file can check every figure.

The lines, in this order, each with its ``kind``: one ``header``; every ``text`` of terms or of a guarantee, under its digest;
every ``enrolment`` and ``charge`` in the order of their numbers; every ``impression`` likewise; one ``end`` with the head, the
counts and the SHA-256 of all lines before it. Stored releases are not exported: they belong to the subjects.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO

from tacit.errors import InvalidParameter, LedgerDamaged, UnknownSubject
from tacit.ledger.book import check_head, read_head
from tacit.ledger.budgets import Statement
from tacit.ledger.chain import MOST_LANES, Head, digest, now
from tacit.ledger.entries import BOOK as PRIVACY
from tacit.ledger.stores.interface import LedgerStore, Reader
from tacit.ledger.tally import BOOK as IMPRESSIONS
from tacit.ledger.tally import ItemTotal
from tacit.ledger.verification.books import LEDGER, Findings, ImpressionVerifier, Notes, PrivacyVerifier

FORMAT = "tacit-ledger-export"
VERSION = 1

_ENTRIES = (
    "SELECT e.number, e.release_id, e.at, e.guarantee, e.amount, e.delta, e.unprotected, e.total, e.total_delta, "
    "e.total_unprotected, e.windowed, e.link, s.name "
    "FROM entries e LEFT JOIN subjects s ON s.number = e.subject ORDER BY e.number"
)
_IMPRESSIONS = (
    "SELECT i.number, i.id, a.item, i.day, i.micros, i.link "
    "FROM impressions i LEFT JOIN accounts a ON a.number = i.account ORDER BY i.number"
)
_EACH = 2_000  # lines between two reports of progress


def export(store: LedgerStore, out: TextIO, *, progress: Callable[[int], None] | None = None) -> int:
    """Writes the whole ledger, as it is at one moment, and returns the number of lines.

    ``progress`` is called with the number of lines so far.
    """
    checksum = hashlib.sha256()
    lines = 0
    with store.read() as reader:
        for content in _contents(reader, store):
            if content["kind"] == "end":
                content["sha256"] = checksum.hexdigest()
            line = line_of(content)
            checksum.update(line.encode())
            out.write(line)
            lines += 1
            if progress is not None and lines % _EACH == 0:
                progress(lines)
    return lines


def line_of(content: dict[str, Any]) -> str:
    """The content as a line, always written in the same way."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n"


def _contents(reader: Reader, store: LedgerStore) -> Iterator[dict[str, Any]]:
    try:
        yield from _header_and_texts(reader, store)
        entries = subjects = impressions = 0
        for number, release_id, at, key, *figures, windowed, link, name in reader.stream(_ENTRIES):
            entries += 1
            entry = {"number": number, "subject": _required(name), "at": at, "windowed": windowed, "link": link.hex()}
            if release_id:
                cost, total = figures[:3], figures[3:]
                charge = {"release_id": release_id, "guarantee": key.hex(), "cost": cost, "total": total}
                yield {"kind": "charge", **entry, **charge}
            else:
                subjects += 1
                yield {"kind": "enrolment", **entry, "terms": key.hex()}
        for number, id, item, day, micros, link in reader.stream(_IMPRESSIONS):
            impressions += 1
            impression = {"number": number, "id": id.hex(), "item": _required(item), "day": day, "micros": micros}
            yield {"kind": "impression", **impression, "link": link.hex()}
        head = read_head(reader, store.ledger).to_json()
        yield {"kind": "end", "head": head, "entries": entries, "subjects": subjects, "impressions": impressions}
    except (AttributeError, KeyError, TypeError, ValueError) as problem:  # values of the wrong kind
        raise _damaged() from problem


def _header_and_texts(reader: Reader, store: LedgerStore) -> Iterator[dict[str, Any]]:
    ((created,),) = reader.stream("SELECT value FROM facts WHERE name = 'created'")
    header = {"format": FORMAT, "version": VERSION, "ledger": store.ledger, "lanes": store.lanes, "created": created}
    yield {"kind": "header", **header}
    for key, text in reader.stream("SELECT digest, text FROM texts ORDER BY digest"):
        yield {"kind": "text", "digest": key.hex(), "text": text}


def _required(name: str | None) -> str:
    if name is None:
        raise _damaged()
    return name


def _damaged() -> LedgerDamaged:
    return LedgerDamaged("rows are lost or damaged, so nothing can be exported. Run `tacit ledger check`.")


_WRONG = (KeyError, TypeError, ValueError, AttributeError, RecursionError, InvalidParameter)


@dataclass(frozen=True)
class Recomputation:
    """Everything that follows from an export. Trust it only if ``findings.sound`` is True."""

    findings: Findings
    ledger: str | None  # its id; None if even the header could not be read
    items: tuple[ItemTotal, ...]
    _subjects: dict[str, int]
    _privacy: PrivacyVerifier | None

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of the subjects, in the order of their enrolment."""
        return tuple(self._subjects)

    def statement(self, subject: str, at: int | None = None) -> Statement:
        """A subject's statement from its charges alone, now or at a time after its last charge."""
        number = self._subjects.get(subject)
        statement = None
        if self._privacy is not None and number in self._privacy.subject_sums:
            statement = self._privacy.statement(subject, number, now() if at is None else at)
        if statement is None:
            raise UnknownSubject("the export holds no subject of that name whose charges can be read.")
        return statement


def recompute(lines: Iterable[str], *, head: Head | None = None) -> Recomputation:
    """Reads an export line by line. A line that was altered, lost, moved or inserted is a finding, never an error."""
    if head is not None:
        check_head(head)
    reading = _Reading(head)
    for line in lines:
        reading.line(line if line.endswith("\n") else f"{line}\n")
    return reading.done()


class _Reading:
    def __init__(self, head: Head | None) -> None:
        self._head, self._notes = head, Notes()
        self._lines, self._checksum = 0, hashlib.sha256()
        self._texts: dict[bytes, str] = {}
        self._unused: set[bytes] = set()
        self._keys: set[bytes] = set()  # of releases and impressions, hashed
        self._subjects: dict[str, int] = {}
        self._opened: dict[tuple[str, int], int] = {}  # accounts by item and lane
        self._privacy: PrivacyVerifier | None = None
        self._impressions: ImpressionVerifier | None = None
        self._ledger: str | None = None
        self._ended = False

    def line(self, line: str) -> None:
        self._lines += 1
        try:
            content = json.loads(line)
            kind = content["kind"]
            if self._ended:
                self._notes.add(LEDGER, f"line {self._lines:,} follows the end of the export.")
            elif kind == "header" and self._lines == 1:
                self._header(content)
            elif self._privacy is None or self._impressions is None:
                return  # nothing can be verified; `done` adds a finding
            elif kind == "text":
                self._text(content)
            elif kind == "enrolment":
                self._enrolment(self._privacy, content)
            elif kind == "charge":
                self._charge(self._privacy, content)
            elif kind == "impression":
                self._impression(self._impressions, content)
            elif kind == "end":
                self._end(self._privacy, self._impressions, content, line)
            else:
                self._unreadable()
        except _WRONG:
            self._unreadable()
        self._checksum.update(line.encode(errors="replace"))

    def done(self) -> Recomputation:
        privacy, impressions = self._privacy, self._impressions
        if privacy is None or impressions is None:
            self._notes.add(LEDGER, "the file does not begin with the header of an export that this program can read.")
        elif not self._ended:
            self._notes.add(LEDGER, "the export has no end: lines are cut off.")
        faults, more = self._notes.findings, self._notes.more
        if privacy is None or impressions is None:
            return Recomputation(Findings(0, 0, 0, faults, more), None, (), {}, None)
        findings = Findings(privacy.entries, privacy.subjects, impressions.impressions, faults, more)
        return Recomputation(findings, self._ledger, impressions.totals(), self._subjects, privacy)

    def _header(self, content: dict[str, Any]) -> None:
        ledger, lanes, version = content["ledger"], content["lanes"], content["version"]
        if content["format"] != FORMAT or (type(ledger), type(lanes), type(version)) != (str, int, int):
            return
        if version == VERSION and 1 <= lanes <= MOST_LANES and ledger.isprintable():
            self._ledger = ledger
            self._privacy = PrivacyVerifier(ledger, lanes, self._texts.get, self._notes, head=self._head, counting=True)
            self._impressions = ImpressionVerifier(ledger, lanes, self._notes, head=self._head)

    def _text(self, content: dict[str, Any]) -> None:
        key = bytes.fromhex(content["digest"])
        self._texts[key] = content["text"]
        self._unused.add(key)

    def _enrolment(self, privacy: PrivacyVerifier, content: dict[str, Any]) -> None:
        number, name, key = content["number"], content["subject"], bytes.fromhex(content["terms"])
        if (type(name), type(number)) != (str, int):
            raise ValueError
        if self._subjects.setdefault(name, number) != number:
            self._notes.add(PRIVACY, f"line {self._lines:,} enrols a subject for the second time.")
        self._unused.discard(key)
        link = bytes.fromhex(content["link"])
        privacy.entry((number, number, "", content["at"], key, 0, 0, 0, 0, 0, 0, content["windowed"], link), name)

    def _charge(self, privacy: PrivacyVerifier, content: dict[str, Any]) -> None:
        number, key, link = content["number"], bytes.fromhex(content["guarantee"]), bytes.fromhex(content["link"])
        amount, delta, unprotected = content["cost"]
        total, total_delta, total_unprotected = content["total"]
        if not content["release_id"]:
            raise ValueError  # an empty id marks an enrolment
        self._once(PRIVACY, f"{content['subject']}\n{content['release_id']}")
        self._unused.discard(key)
        subject = self._subjects.get(content["subject"], 0)
        figures = (amount, delta, unprotected, total, total_delta, total_unprotected)
        row = (number, subject, content["release_id"], content["at"], key, *figures, content["windowed"], link)
        privacy.entry(row, None)

    def _impression(self, impressions: ImpressionVerifier, content: dict[str, Any]) -> None:
        number, id, item = content["number"], bytes.fromhex(content["id"]), content["item"]
        self._once(IMPRESSIONS, content["id"])
        account = self._opened.setdefault((item, number % impressions.chain.lanes), number)
        link = bytes.fromhex(content["link"])
        impressions.impression((number, id, account, content["day"], content["micros"], link), item)

    def _end(
        self, privacy: PrivacyVerifier, impressions: ImpressionVerifier, content: dict[str, Any], line: str
    ) -> None:
        """Compares the last line with all lines before it."""
        self._ended = True
        if content["sha256"] != self._checksum.hexdigest() or line_of(content) != line:
            self._notes.add(LEDGER, "the lines of the export are not those that were written.")
        counts = {"entries": privacy.entries, "subjects": privacy.subjects, "impressions": impressions.impressions}
        if any(type(content[name]) is not int or content[name] != count for name, count in counts.items()):
            self._notes.add(LEDGER, "the export does not hold as many lines as its end says.")
        noted = Head.from_json(content["head"])
        for book, chain in ((PRIVACY, privacy.chain), (IMPRESSIONS, impressions.chain)):
            reached = tuple(
                (position, (link or b"").hex()) for position, link in zip(chain.position, chain.link, strict=True)
            )
            if noted.ledger != self._ledger or noted.books.get(book) != reached:
                self._notes.add(book, "the export ends with another head than its entries lead to.")
            chain.reaches_head()
        if self._unused:
            self._notes.add(PRIVACY, "there is a text of terms or of a guarantee that no entry refers to.")

    def _once(self, book: str, key: str) -> None:
        """Notes a release or an impression that came before."""
        hashed = digest(f"{book}\n{key}")
        if hashed in self._keys:
            self._notes.add(book, f"line {self._lines:,} repeats an id: something was counted twice.")
        self._keys.add(hashed)

    def _unreadable(self) -> None:
        self._notes.add(LEDGER, f"line {self._lines:,} of the export cannot be read.")
