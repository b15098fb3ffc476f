"""What a third party does with nothing but an exported file: verify every line, and derive every figure anew."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit.errors import InvalidParameter, UnknownSubject
from tacit.ledger.chain import MOST_LANES, Head, digest
from tacit.ledger.clock import now
from tacit.ledger.entries import BOOK as PRIVACY
from tacit.ledger.heads import check_head
from tacit.ledger.impression_rows import BOOK as IMPRESSIONS
from tacit.ledger.statements import Statement
from tacit.ledger.totals import ItemTotal
from tacit.ledger.verification.export import FORMAT, VERSION, line_of
from tacit.ledger.verification.findings import LEDGER, Findings, Notes
from tacit.ledger.verification.impressions import ImpressionVerifier
from tacit.ledger.verification.privacy import PrivacyVerifier

_WRONG = (KeyError, TypeError, ValueError, AttributeError, RecursionError, InvalidParameter)


@dataclass(frozen=True)
class Recomputed:
    """What an export says once it is believed: only where ``findings.sound`` is True."""

    findings: Findings
    ledger: str | None  # its id; None where not even the header could be read
    items: tuple[ItemTotal, ...]
    _subjects: dict[str, int]
    _privacy: PrivacyVerifier | None

    @property
    def subjects(self) -> tuple[str, ...]:
        """Their names, in the order of their entries."""
        return tuple(self._subjects)

    def statement(self, subject: str, at: int | None = None) -> Statement:
        """A subject's statement, now or at a time after her last charge, from her charges alone."""
        number = self._subjects.get(subject)
        statement = None
        if self._privacy is not None and number in self._privacy.accounts:
            statement = self._privacy.statement(subject, number, now() if at is None else at)
        if statement is None:
            raise UnknownSubject("the export holds no subject of that name whose charges can be read.")
        return statement


def recompute(lines: Iterable[str], *, head: Head | None = None) -> Recomputed:
    """Reads an export line by line. Whatever was altered, lost, moved or put in is a finding, never an error."""
    if head is not None:
        check_head(head)
    reading = _Reading(head)
    for line in lines:
        reading.line(line if line.endswith("\n") else f"{line}\n")
    return reading.done()


class _Reading:
    def __init__(self, head: Head | None) -> None:
        self._head, self._notes = head, Notes()
        self._lines, self._seen = 0, hashlib.sha256()
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
                return  # nothing can be verified; `done` says so
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
        self._seen.update(line.encode(errors="replace"))

    def done(self) -> Recomputed:
        privacy, impressions = self._privacy, self._impressions
        if privacy is None or impressions is None:
            self._notes.add(LEDGER, "the file does not begin with the header of an export that this program can read.")
        elif not self._ended:
            self._notes.add(LEDGER, "the export has no end: lines are cut off.")
        found, more = self._notes.findings, self._notes.more
        if privacy is None or impressions is None:
            return Recomputed(Findings(0, 0, 0, found, more), None, (), {}, None)
        findings = Findings(privacy.entries, privacy.subjects, impressions.impressions, found, more)
        return Recomputed(findings, self._ledger, impressions.totals(), self._subjects, privacy)

    def _header(self, told: dict[str, Any]) -> None:
        ledger, lanes, version = told["ledger"], told["lanes"], told["version"]
        if told["format"] != FORMAT or (type(ledger), type(lanes), type(version)) != (str, int, int):
            return
        if version == VERSION and 1 <= lanes <= MOST_LANES and ledger.isprintable():
            self._ledger = ledger
            self._privacy = PrivacyVerifier(ledger, lanes, self._texts.get, self._notes, head=self._head, counting=True)
            self._impressions = ImpressionVerifier(ledger, lanes, self._notes, head=self._head)

    def _text(self, told: dict[str, Any]) -> None:
        key = bytes.fromhex(told["digest"])
        self._texts[key] = told["text"]
        self._unused.add(key)

    def _enrolment(self, privacy: PrivacyVerifier, told: dict[str, Any]) -> None:
        number, name, key = told["number"], told["subject"], bytes.fromhex(told["terms"])
        if (type(name), type(number)) != (str, int):
            raise ValueError
        if self._subjects.setdefault(name, number) != number:
            self._notes.add(PRIVACY, f"line {self._lines:,} enrols a subject for the second time.")
        self._unused.discard(key)
        link = bytes.fromhex(told["link"])
        privacy.entry((number, number, "", told["at"], key, 0, 0, 0, 0, 0, 0, told["windowed"], link), name)

    def _charge(self, privacy: PrivacyVerifier, told: dict[str, Any]) -> None:
        number, key, link = told["number"], bytes.fromhex(told["guarantee"]), bytes.fromhex(told["link"])
        amount, delta, unprotected = told["cost"]
        total, total_delta, total_unprotected = told["total"]
        if not told["release_id"]:
            raise ValueError  # an empty one is an enrolment's
        self._once(PRIVACY, f"{told['subject']}\n{told['release_id']}")
        self._unused.discard(key)
        subject = self._subjects.get(told["subject"], 0)
        figures = (amount, delta, unprotected, total, total_delta, total_unprotected)
        row = (number, subject, told["release_id"], told["at"], key, *figures, told["windowed"], link)
        privacy.entry(row, None)

    def _impression(self, impressions: ImpressionVerifier, told: dict[str, Any]) -> None:
        number, id, item = told["number"], bytes.fromhex(told["id"]), told["item"]
        self._once(IMPRESSIONS, told["id"])
        account = self._opened.setdefault((item, number % impressions.chain.lanes), number)
        link = bytes.fromhex(told["link"])
        impressions.impression((number, id, account, told["day"], told["micros"], link), item)

    def _end(self, privacy: PrivacyVerifier, impressions: ImpressionVerifier, told: dict[str, Any], line: str) -> None:
        """The last line against all lines before it."""
        self._ended = True
        if told["sha256"] != self._seen.hexdigest() or line_of(told) != line:
            self._notes.add(LEDGER, "the lines of the export are not those that were written.")
        counts = {"entries": privacy.entries, "subjects": privacy.subjects, "impressions": impressions.impressions}
        if any(type(told[name]) is not int or told[name] != count for name, count in counts.items()):
            self._notes.add(LEDGER, "the export does not hold as many lines as its end says.")
        noted = Head.from_json(told["head"])
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
        """Notes a release or an impression that was there before."""
        hashed = digest(f"{book}\n{key}")
        if hashed in self._keys:
            self._notes.add(book, f"line {self._lines:,} repeats an id: something was counted twice.")
        self._keys.add(hashed)

    def _unreadable(self) -> None:
        self._notes.add(LEDGER, f"line {self._lines:,} of the export cannot be read.")
