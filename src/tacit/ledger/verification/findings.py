"""What a check found: each finding is one sentence about one place, without any name, id or amount."""

from dataclasses import dataclass
from typing import Any

MOST = 100  # findings that are told; where the ledger's id was altered, every entry is wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written. ``book`` is "privacy", "impressions", or "ledger" for what both rest on."""

    book: str
    problem: str
    lane: int | None = None
    position: int | None = None

    def __str__(self) -> str:
        where = f"{self.book} book" if self.book != LEDGER else "ledger"
        if self.lane is not None:
            where += f", lane {self.lane}"
        if self.position is not None:
            where += f", entry {self.position:,}"
        return f"{where}: {self.problem}"

    def to_json(self) -> dict[str, Any]:
        return {"book": self.book, "lane": self.lane, "position": self.position, "problem": self.problem}


LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Findings:
    """How much was checked, and all that is wrong with it."""

    entries: int
    subjects: int
    impressions: int
    findings: tuple[Finding, ...] = ()
    more: int = 0  # findings beyond those that are listed

    @property
    def sound(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "sound": self.sound,
            "entries": self.entries,
            "subjects": self.subjects,
            "impressions": self.impressions,
            "findings": [finding.to_json() for finding in self.findings],
            "more": self.more,
        }


class Notes:
    """Findings as they are made; the same one is noted once, and only so many are kept."""

    def __init__(self) -> None:
        self._kept: dict[Finding, None] = {}
        self.more = 0

    def add(self, book: str, problem: str, lane: int | None = None, position: int | None = None) -> None:
        finding = Finding(book, problem, lane, position)
        if finding in self._kept:
            return
        if len(self._kept) < MOST:
            self._kept[finding] = None
        else:
            self.more += 1

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._kept)
