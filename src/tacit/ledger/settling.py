"""One transaction of settlements: look up the impression, then the offer, append at the OFFER's price, add up."""

import logging
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from tacit.errors import InvalidParameter, LedgerDamaged, TacitError
from tacit.ledger.booking import Account, Booking, beyond
from tacit.ledger.impression_rows import REPORTED, lane_of_impression
from tacit.ledger.names import name
from tacit.ledger.offers import MOST_SLOTS, MOST_TOKEN, OFFER, Terms, is_late, sealed_offer, slot_key
from tacit.ledger.stores.interface import Row, Writer

log = logging.getLogger("tacit.ledger")


class Settlement(StrEnum):
    """What became of a report. Only ``ok`` has changed anything."""

    OK = "ok"
    DUPLICATE = "duplicate"  # it was counted before
    CONFLICT = "conflict"  # the token was reported with other items, or the item was not offered
    UNKNOWN = "unknown"  # no such token
    EXPIRED = "expired"  # more than a day after the offer's expiry


class Shown(NamedTuple):
    """These items of an offer were shown, one in each slot, in this order."""

    token: str
    items: tuple[str, ...]

    @property
    def keys(self) -> list[bytes]:
        """Of the impression in each slot; the first is what its offer is found by."""
        return [slot_key(self.token, slot) for slot in range(len(self.items))]


def checked_shown(shown: Shown | tuple[str, Iterable[str]]) -> Shown | InvalidParameter:
    """The report, if it could be one of an offer; else the reason why not, which repeats no token and no item."""
    try:
        if not isinstance(shown, tuple) or len(shown) != 2 or isinstance(shown[1], str):
            raise InvalidParameter("a report of an offer is (token, items); of one item, (token, (item,)).")
        token, items = name("a token", shown[0], MOST_TOKEN), tuple(shown[1])
        if not 1 <= len(items) <= MOST_SLOTS:
            raise InvalidParameter(f"a report of an offer names 1 to {MOST_SLOTS} items.")
        return Shown(token, tuple(name("an item", item, 200) for item in items))
    except TypeError:
        return InvalidParameter("the items of a report are a tuple of texts.")
    except InvalidParameter as problem:
        return problem


def commit_settlements(
    writer: Writer, lanes: int, moment: int, reports: Sequence[Shown], keys: Sequence[list[bytes]]
) -> list[Settlement | TacitError]:
    """The outcome of each report, in order; ``keys`` are those of its slots. The caller's transaction makes it durable."""
    # One slot more than was reported: a report that leaves out the last item is another report.
    asked_for = [(*own, slot_key(report.token, len(own))) for report, own in zip(reports, keys, strict=True)]
    impressions = writer.ask(REPORTED, [(key,) for own in asked_for for key in own])
    offers = writer.ask(OFFER, [(own[0],) for own in keys])
    wanted = (
        (item, lane_of_impression(key, lanes))
        for report, own in zip(reports, keys, strict=True)
        for item, key in zip(report.items, own, strict=True)
    )
    booking = Booking(writer, lanes, moment, wanted)
    earlier = iter(impressions())
    outcomes: list[Settlement | TacitError] = []
    for report, own, offer in zip(reports, asked_for, offers(), strict=True):
        known = [next(earlier) or booking.fresh.get(key) for key in own]
        accounts = [
            booking.accounts[item, lane_of_impression(key, lanes)]
            for item, key in zip(report.items, own[:-1], strict=True)
        ]
        usable = [account for account in accounts if isinstance(account, Account)]
        if len(usable) < len(accounts):
            outcomes.append(next(account for account in accounts if isinstance(account, LedgerDamaged)))
        elif any(row is not None for row in known):
            outcomes.append(_again(known, usable))
        else:
            outcomes.append(_settle(booking, report, own, offer, usable))
    booking.write()
    late = outcomes.count(Settlement.EXPIRED)
    if late:
        log.warning(
            "reports that came too late by the ledger's time, and were not counted: %d. If devices are in time, a clock was wrong.",
            late,
        )
    return outcomes


def refuse(reason: str) -> Settlement:
    """A conflict, told to whoever reads the log: no token and no item is in it."""
    log.warning("a report was refused: %s", reason)
    return Settlement.CONFLICT


def _again(known: list[Row | None], accounts: list[Account]) -> Settlement:
    """The outcome of a report whose token was used before. One account in a lane is one item."""
    *reported, beyond_the_last = [None if row is None else row[1] for row in known]
    if beyond_the_last is None and reported == [account.number for account in accounts]:
        return Settlement.DUPLICATE
    return refuse("its token was reported before, with other items.")


def _settle(
    booking: Booking, report: Shown, keys: Sequence[bytes], offer: Row | None, accounts: list[Account]
) -> Settlement | TacitError:
    if offer is None:
        return Settlement.UNKNOWN
    try:
        terms: Terms = sealed_offer(keys[0], offer)
    except LedgerDamaged as problem:
        return problem
    if is_late(terms.expires, booking.moment_in(accounts[0].lane)):
        return Settlement.EXPIRED
    items = report.items
    if len(items) != terms.slots or len(set(items)) < len(items) or not terms.prices.keys() >= set(items):
        return refuse("its items are not those of the offer.")
    prices = [terms.prices[item] for item in items]
    if not all(account.fits(micros) for account, micros in zip(accounts, prices, strict=True)):
        return beyond()
    for key, account, micros in zip(keys, accounts, prices, strict=False):  # the last key is none of them
        booking.count(key, account, micros)
    return Settlement.OK
