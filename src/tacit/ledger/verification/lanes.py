"""Following the lanes of one book entry by entry, from a store or from a file: nothing lost, nothing put in, time in order."""

from collections.abc import Iterable
from typing import Any

from tacit.ledger.chain import Head, genesis
from tacit.ledger.stores.origin import seal_of_tip
from tacit.ledger.verification.findings import LEDGER, Notes

_LANE_ROW = (int, int, bytes, int, bytes)


class LaneVerifier:
    """Knows where each lane has come to, and whether it passed through a noted head."""

    def __init__(self, book: str, ledger: str, lanes: int, notes: Notes, head: Head | None = None) -> None:
        self.book, self.lanes, self._notes = book, lanes, notes
        self.position = [0] * lanes
        # None where an entry could not be read: what follows it cannot be linked to it.
        self.link: list[bytes | None] = [genesis(ledger, book, lane, lanes) for lane in range(lanes)]
        self.at = [0] * lanes
        self._noted: list[tuple[int, str]] = [(0, "")] * lanes
        if head is not None:
            self._note_head(ledger, head)

    def place(self, number: int) -> tuple[int, int, bytes | None]:
        """The lane and position of an entry, and the link before it; entries come in the order of their numbers."""
        position, lane = divmod(number, self.lanes)
        if position == self.position[lane] + 1:
            return lane, position, self.link[lane]
        self._notes.add(
            self.book, f"this entry follows entry {self.position[lane]:,}: those between are lost.", lane, position
        )
        return lane, position, None

    def advance(self, lane: int, position: int, link: bytes, at: int) -> None:
        if at < self.at[lane]:
            self._notes.add(self.book, "time goes back at this entry.", lane, position)
        self.position[lane], self.link[lane], self.at[lane] = position, link, at
        if position == self._noted[lane][0] and link.hex() != self._noted[lane][1]:
            self._notes.add(self.book, "this entry is not the one in the noted head: it was rewritten.", lane, position)

    def unreadable(self, lane: int, position: int) -> None:
        """Goes on after an entry that holds no entry."""
        self._notes.add(self.book, "the values of this entry are of the wrong kind.", lane, position)
        self.position[lane], self.link[lane] = position, None

    def reaches_head(self) -> None:
        """To be asked at the end: notes each lane that ends before the noted head."""
        for lane, (position, _) in enumerate(self._noted):
            if self.position[lane] < position:
                self._notes.add(
                    self.book,
                    f"the lane ends here, but had {position:,} entries when its head was noted: an old backup?",
                    lane,
                    self.position[lane],
                )

    def compare(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """The stored ends of the lanes against the entries: rows of lane, position, link, at, seal."""
        found: set[int] = set()
        for row in rows:
            if tuple(map(type, row)) != _LANE_ROW or not 0 <= row[0] < self.lanes:
                self._notes.add(self.book, "there is a stored end of a lane that this ledger cannot have.")
                continue
            lane, position, link, at, seal = row
            found.add(lane)
            if seal != seal_of_tip(self.book, *row[:4]):
                self._notes.add(self.book, "the stored end of the lane does not match its seal.", lane)
            if position != self.position[lane]:
                self._notes.add(
                    self.book,
                    f"the stored end of the lane is entry {position:,}, the last entry is {self.position[lane]:,}.",
                    lane,
                )
            elif (self.link[lane] or link) != link or at != self.at[lane]:
                self._notes.add(self.book, "the stored end of the lane is not that of its last entry.", lane)
        for lane in sorted(set(range(self.lanes)) - found):
            self._notes.add(self.book, "the stored end of the lane is lost.", lane)

    def _note_head(self, ledger: str, head: Head) -> None:
        if head.ledger != ledger:
            self._notes.add(LEDGER, "this is another ledger than the one whose head was noted.")
            return
        noted = head.books.get(self.book, ())
        if len(noted) != self.lanes:
            self._notes.add(self.book, f"the noted head has {len(noted)} lanes, the ledger {self.lanes}.")
            return
        self._noted = list(noted)
