"""Until when an offer can be made and settled, and when it is forgotten, whatever the clock does."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import Conflict, LedgerUnavailable
from tacit.ledger import ImpressionLedger, ItemTotal, Settlement
from tacit.ledger.book import delete_rows
from tacit.ledger.chain import DAY, GRACE, SECOND, digest, lane_of_digest, lapsed_before
from tacit.ledger.offers import LAPSED, STILL_LAPSED
from tacit.ledger.stores.interface import OFFERS
from tacit.ledger.tally import BOOK
from tests.unit.ledger.impression_reference import rows
from tests.unit.ledger.offers_made import (
    CONFLICT,
    DUPLICATE,
    EXPIRED,
    EXPIRES,
    FAR,
    OK,
    TOKEN,
    UNKNOWN,
    everything,
    offered,
)
from tests.unit.ledger.small_ledger import START, Hand

# --- time


@pytest.mark.parametrize(("late", "outcome"), [(0, OK), (1, EXPIRED)])
def test_an_offer_can_be_settled_until_a_day_after_its_expiry(
    ledger: ImpressionLedger, clock: Hand, late: int, outcome: Settlement
) -> None:
    ledger.offer(offered())
    clock.at = (EXPIRES + 86_400) * SECOND + late
    if late:
        assert ledger.settle(TOKEN, ("pear",)) is outcome
    assert ledger.forget() == late  # what can still be settled is never deleted
    assert ledger.settle(TOKEN, ("pear",)) is (UNKNOWN if late else outcome)
    assert ledger.item("pear").impressions == 1 - late


def of_every_lane(ledger: ImpressionLedger) -> list[str]:
    """A token for each lane."""
    lanes = ledger._store.lanes
    return [next(f"o{i}" for i in range(10_000) if digest(f"o{i}")[0] % lanes == lane) for lane in range(lanes)]


def test_what_the_ledgers_time_would_not_settle_is_not_offered(
    ledger: ImpressionLedger, clock: Hand, path: Path
) -> None:
    """A clock that was ahead once must not lead to offers that are shown and never billed."""
    clock.at += 4 * DAY
    for token in of_every_lane(ledger):
        ledger.report(token, "plum", 1)
    clock.at -= 4 * DAY
    reached = (START + 4 * DAY) // SECOND  # the start of the lanes' last day
    before = everything(path)
    for expires in (EXPIRES, reached - 86_400 - 1):
        with pytest.raises(LedgerUnavailable, match="Set the clock") as caught:
            ledger.offer(offered(expires=expires))
        assert TOKEN not in str(caught.value)
    assert everything(path) == before
    ledger.offer(offered(expires=reached - 86_400))
    assert ledger.settle(TOKEN, ("pear",)) is OK
    clock.at += 4 * DAY  # caught up
    ledger.offer(offered("later", expires=EXPIRES + 4 * 86_400))
    assert ledger.settle("later", ("pear",)) is OK


def test_of_many_offers_only_those_that_are_late_are_left_out(ledger: ImpressionLedger, clock: Hand) -> None:
    clock.at = (EXPIRES + 86_400) * SECOND + 1
    with pytest.raises(LedgerUnavailable):
        ledger.offer_many([offered("a"), offered("b", expires=EXPIRES + 1), offered("a")])
    assert [ledger.settle(token, ("pear",)) for token in "ab"] == [UNKNOWN, OK]


def test_an_offer_that_is_there_may_be_made_again_however_late_it_is(
    ledger: ImpressionLedger, clock: Hand, path: Path
) -> None:
    ledger.offer(offered())
    before = everything(path)
    clock.at += 3 * DAY
    ledger.offer(offered())
    with pytest.raises(Conflict):
        ledger.offer(offered(slots=2))
    assert everything(path) == before


def test_reports_that_come_too_late_are_told_in_the_log_once_for_all_of_them(
    ledger: ImpressionLedger, clock: Hand, caplog: Any
) -> None:
    ledger.offer_many([offered(), offered("b"), offered("c", expires=FAR)])
    clock.at += 3 * DAY
    with caplog.at_level(logging.INFO, "tacit.ledger"):
        assert ledger.settle("c", ("pear",)) is OK
        assert not caplog.records
        assert ledger.settle_many([(TOKEN, ("pear",)), ("b", ("fig",))]) == [EXPIRED, EXPIRED]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "2 reports came too late" in record.getMessage()
    assert not [word for word in (TOKEN, "pear", "fig", digest(TOKEN).hex()) if word in record.getMessage()]


def test_a_report_can_come_for_exactly_one_day() -> None:
    assert GRACE == 86_400


class MadeAnew:
    """A store in which something happens between finding rows and deleting them."""

    def __init__(self, store: Any, between: Any) -> None:
        self.read, self._store, self._between = store.read, store, between

    def write(self, *given: Any) -> Any:
        between, self._between = self._between, lambda: None
        between()
        return self._store.write(*given)


def test_an_offer_that_was_made_anew_while_it_is_forgotten_stays(ledger: ImpressionLedger, clock: Hand) -> None:
    ledger.offer_many([offered(), offered("b")])
    clock.at += 3 * DAY
    lanes = ledger._store.lanes

    def between() -> None:
        assert ledger.forget() == 2
        ledger.offer(offered(expires=FAR))

    store: Any = MadeAnew(ledger._store, between)
    given = (lapsed_before(clock.at),)
    assert delete_rows(store, BOOK, OFFERS, LAPSED, STILL_LAPSED, given, lambda key: lane_of_digest(key[0], lanes)) == 0
    assert ledger.settle(TOKEN, ("pear",)) is OK


def test_the_clock_that_goes_back_makes_no_late_report_early(ledger: ImpressionLedger, clock: Hand) -> None:
    lanes = ledger._store.lanes
    ledger.offer(offered())
    clock.at += 4 * DAY
    other = next(f"o{i}" for i in range(10_000) if digest(f"o{i}")[0] % lanes == digest(TOKEN)[0] % lanes)
    ledger.report(other, "plum", 1)
    clock.at -= 4 * DAY
    assert ledger.settle(TOKEN, ("pear",)) is EXPIRED


def test_what_was_counted_is_known_after_its_offer_is_gone(ledger: ImpressionLedger, clock: Hand) -> None:
    ledger.offer_many([offered("a"), offered("b"), offered("two", slots=2), offered("later", expires=FAR)])
    ledger.settle("a", ("pear",))
    ledger.settle("two", ("pear", "fig"))
    clock.at += 3 * DAY
    assert ledger.forget() == 3
    assert ledger.forget() == 0
    for _ in range(2):
        assert ledger.settle("a", ("pear",)) is DUPLICATE
        assert ledger.settle("a", ("apple",)) is CONFLICT
        assert ledger.settle("two", ("pear", "fig")) is DUPLICATE
        assert ledger.settle("two", ("pear",)) is CONFLICT
        assert ledger.settle("two", ("fig", "pear")) is CONFLICT
        assert ledger.settle("two", ("pear", "fig", "apple")) is CONFLICT
        # Offered again, with other prices even: what was counted stays as it is.
        ledger.offer(offered("a", expires=FAR, prices=(("apple", 1), ("pear", 2))))
        ledger.offer(offered("two", expires=FAR))
    assert ledger.settle("b", ("pear",)) is UNKNOWN
    assert ledger.settle("later", ("pear",)) is OK
    assert ledger.item("pear") == ItemTotal("pear", 3, 300_000)


def test_thousands_of_offers_are_forgotten(ledger: ImpressionLedger, clock: Hand, path: Path) -> None:
    ledger.offer_many(offered(f"old-{i}", expires=EXPIRES + i % 3) for i in range(4_500))
    ledger.offer_many(offered(f"new-{i}", expires=EXPIRES + 3) for i in range(10))
    clock.at = (EXPIRES + GRACE + 3) * SECOND
    assert ledger.forget() == 4_500
    assert rows(path, "SELECT count(*), min(expires) FROM offers") == [(10, EXPIRES + 3)]


def test_a_clock_that_is_in_no_calendar_settles_and_deletes_nothing(ledger: ImpressionLedger, clock: Hand) -> None:
    ledger.offer(offered())
    kept, clock.at = clock.at, 3_000_000 * DAY
    for call in (lambda: ledger.settle(TOKEN, ("pear",)), ledger.forget):
        with pytest.raises(LedgerUnavailable):
            call()
    clock.at = kept
    assert ledger.settle(TOKEN, ("pear",)) is OK
