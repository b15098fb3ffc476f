"""One transaction of reports with a price of their own: look up, compare, append. Everything that decides what counts is here."""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.errors import Conflict, InvalidParameter, TacitError
from tacit.ledger.booking import MOST_MICROS, Account, Booking, Counted, beyond, micros_of
from tacit.ledger.impression_rows import REPORTED, lane_of_impression
from tacit.ledger.names import name
from tacit.ledger.stores.interface import AlreadyThere, Row, Writer


class Report(NamedTuple):
    """An item was displayed; its owner owes ``micros`` millionths of a unit of money, or nothing."""

    id: str
    item: str
    micros: int


def checked(report: Report | tuple[str, str, int]) -> Report | InvalidParameter:
    """The report, if it could stand in the ledger; else the reason why not, which repeats no id."""
    try:
        if not isinstance(report, tuple) or len(report) != 3:
            raise InvalidParameter("a report is (id, item, micros).")
        id, item, micros = report
        name("the id of an impression", id)
        name("an item", item)
        return Report(id, item, micros if type(micros) is int and 0 <= micros <= MOST_MICROS else micros_of(micros))
    except InvalidParameter as problem:
        return problem


def commit_reports(
    writer: Writer, lanes: int, moment: int, reports: Sequence[Report], ids: Sequence[bytes], *, look_up: bool
) -> list[Counted | TacitError]:
    """The outcome of each report, in order; ``ids`` are their digests. The caller's transaction makes it durable.

    Without ``look_up`` it is hoped that none was reported before; where that may be wrong AlreadyThere is raised.
    """
    asked = writer.ask(REPORTED, [(id,) for id in ids]) if look_up else None
    places = [lane_of_impression(id, lanes) for id in ids]
    booking = Booking(writer, lanes, moment, ((r.item, lane) for r, lane in zip(reports, places, strict=True)))
    accounts, fresh = booking.accounts, booking.fresh
    outcomes: list[Counted | TacitError] = []
    rows = asked() if asked is not None else [None] * len(reports)
    for (_, item, micros), id, lane, row in zip(reports, ids, places, rows, strict=True):
        account = accounts[item, lane]
        if isinstance(account, TacitError):
            outcomes.append(account)
        elif (earlier := row or fresh.get(id)) is not None:
            outcomes.append(_again(earlier, account, micros))
        elif account.fits(micros):
            outcomes.append(booking.count(id, account, micros))
        elif look_up:
            outcomes.append(beyond())
        else:  # it does not fit, but was perhaps reported before
            raise AlreadyThere
    booking.write()
    return outcomes


def _again(earlier: Row, account: Account, micros: int) -> Counted | TacitError:
    """The outcome of a report whose id was used before. One account in a lane is one item."""
    number, account_then, day, micros_then = earlier
    if (account_then, micros_then) == (account.number, micros):
        return Counted(number, day, False)
    return Conflict(
        "this impression was reported before, for another item or another price; nothing was changed. An id stands for one "
        "impression: report it again as it was, or a new impression under a new id."
    )
