"""Recomputing the impression book from its impressions alone: every link, count and sum, from a store or a file."""

from typing import Any

from tacit.ledger.amounts import MOST
from tacit.ledger.booking import MOST_MICROS
from tacit.ledger.chain import Head
from tacit.ledger.clock import DAY
from tacit.ledger.impression_rows import BOOK, lane_of_impression, link_of_impression, seal_of_account
from tacit.ledger.names import MOST_CHARACTERS
from tacit.ledger.totals import ItemTotal
from tacit.ledger.verification.findings import Notes
from tacit.ledger.verification.lanes import LaneVerifier

_IMPRESSION = (int, bytes, int, int, int, bytes)
_ACCOUNT = (int, str, int, int, int, bytes)


class _Sum:
    __slots__ = ("impressions", "item", "micros")

    def __init__(self, item: str) -> None:
        self.item, self.impressions, self.micros = item, 0, 0


class ImpressionVerifier:
    """Is fed with all impressions in the order of their numbers, then with the accounts' rows where there are any."""

    def __init__(self, ledger: str, lanes: int, notes: Notes, *, head: Head | None = None) -> None:
        self.chain = LaneVerifier(BOOK, ledger, lanes, notes, head)
        self.impressions = 0
        self._notes = notes
        self._accounts: dict[int, _Sum] = {}  # by the number of the impression that opened it
        self._place = 0, 0

    def impression(self, row: tuple[Any, ...], item: str | None) -> None:
        """The next impression, in the order of its columns, and the item of its account."""
        self.impressions += 1
        lane, position, before = self.chain.place(row[0])
        self._place = lane, position
        if tuple(map(type, row)) != _IMPRESSION or not (row[1] and (item is None or _is_name(item))):
            self.chain.unreadable(lane, position)
            return
        number, id, account, day, micros, link = row
        if item is None:
            self._note("the account of this entry is lost.")
        elif before is not None and link != link_of_impression(before, number, id, account, item, day, micros):
            self._note("this entry does not match its link: it was altered, moved or put in.")
        self.chain.advance(lane, position, link, day * DAY)
        if lane_of_impression(id, self.chain.lanes) != lane:
            self._note("this entry does not belong into its lane.")
        if not 0 <= micros <= MOST_MICROS:
            self._note("the price in this entry is beyond what can be reported.")
            return
        summed = self._accounts.get(account)
        if summed is None and account == number:
            summed = self._accounts[account] = _Sum(item or "")
        if summed is None or account % self.chain.lanes != lane:
            self._note("this entry counts towards an account that was not opened before it in its lane.")
            return
        if item is not None and summed.item != item:
            self._note("this entry counts towards the account of another item.")
        summed.impressions += 1
        summed.micros += micros

    def account(self, row: tuple[Any, ...]) -> None:
        """A stored account, in the order of the columns, once all impressions have been seen."""
        position, lane = divmod(row[0], self.chain.lanes)
        self._place = lane, position
        summed = self._accounts.pop(row[0], None)
        if summed is None:
            self._note("there is a stored account that no entry opened.")
        elif tuple(map(type, row)) != _ACCOUNT or not _is_name(row[1]):
            self._note("the stored values of the account opened here are of the wrong kind.")
        else:
            if seal_of_account(*row[:5]) != row[5]:
                self._note("the stored account opened here does not match its seal.")
            if row[1:3] != (summed.item, lane):
                self._note("the stored account opened here is that of another item or lane.")
            if row[3:5] != (summed.impressions, summed.micros) or summed.micros > MOST:
                self._note("the stored sums of the account opened here are not those of its entries.")

    def totals(self) -> tuple[ItemTotal, ...]:
        """What the impressions add up to, per item, in the order of names; before the accounts' rows are compared."""
        added: dict[str, _Sum] = {}
        for summed in self._accounts.values():
            total = added.setdefault(summed.item, _Sum(summed.item))
            total.impressions += summed.impressions
            total.micros += summed.micros
        return tuple(ItemTotal(item, total.impressions, total.micros) for item, total in sorted(added.items()))

    def _note(self, problem: str) -> None:
        self._notes.add(BOOK, problem, *self._place)


def _is_name(text: object) -> bool:
    return type(text) is str and 0 < len(text) <= MOST_CHARACTERS and text.isprintable()
