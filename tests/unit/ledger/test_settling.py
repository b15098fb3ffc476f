"""Offers and settlements: the price is the offer's, each token counts once, and nothing that comes later reopens it."""

import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, LedgerUnavailable, TacitError
from tacit.ledger import Engagements, ImpressionLedger, ItemTotal, Offered, Settlement
from tacit.ledger.amounts import MOST
from tacit.ledger.booking import MOST_MICROS
from tacit.ledger.chain import digest
from tacit.ledger.clock import DAY, SECOND
from tacit.ledger.engagements import Engaged
from tacit.ledger.forgetting import forget
from tacit.ledger.impression_rows import lane_of_impression, seal_of_account
from tacit.ledger.offers import GRACE, LAPSED, STILL_LAPSED, lapsed_before, slot_key
from tacit.ledger.stores.schema import OFFERS
from tacit.ledger.verification.check import check
from tests.unit.ledger.impression_reference import alter, faults, rows
from tests.unit.ledger.small_ledger import START, Hand

OK, DUPLICATE, CONFLICT, UNKNOWN, EXPIRED = Settlement
EXPIRES = START // SECOND + 3_600
FAR = EXPIRES + 9 * 86_400
TOKEN = "5f3a" * 8
PRICES = (("apple", 80_000), ("pear", 100_000), ("fig", 0))


def offered(token: str = TOKEN, *, slots: int = 1, expires: int = EXPIRES, prices: Any = PRICES) -> Offered:
    return Offered(token, prices, "fruit", expires, slots)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def clock() -> Hand:
    return Hand(START + 12_345_678)


@pytest.fixture(params=[1, 5], ids=["one lane", "five lanes"])
def ledger(request: pytest.FixtureRequest, path: Path, clock: Hand) -> Any:
    with ImpressionLedger.create(path, lanes=request.param, clock=clock) as ledger:
        yield ledger
        assert ledger.balanced()
        assert check(path).sound


def everything(path: Path) -> list[Any]:
    tables = ("impressions", "accounts", "lanes", "offers", "batches", "engagements")
    return [rows(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]


# --- one item of one offer


def test_a_settled_item_is_charged_what_its_offer_said(ledger: ImpressionLedger, path: Path) -> None:
    ledger.offer(offered())
    assert ledger.settle(TOKEN, ("pear",)) is OK
    assert list(ledger.items()) == [ItemTotal("pear", 1, 100_000)]
    assert not faults(path)


def test_an_item_without_a_price_to_pay_is_counted_all_the_same(ledger: ImpressionLedger) -> None:
    ledger.offer(offered())
    assert ledger.settle(TOKEN, ("fig",)) is OK
    assert ledger.item("fig") == ItemTotal("fig", 1, 0)


def test_the_same_again_is_a_duplicate_and_another_item_a_conflict_and_neither_changes_anything(
    ledger: ImpressionLedger, path: Path
) -> None:
    ledger.offer(offered())
    ledger.settle(TOKEN, ("pear",))
    before = everything(path)
    assert ledger.settle(TOKEN, ("pear",)) is DUPLICATE
    assert ledger.settle(TOKEN, ("apple",)) is CONFLICT
    assert ledger.settle(TOKEN, ("pear", "apple")) is CONFLICT
    assert ledger.settle(TOKEN, ("plum",)) is CONFLICT
    assert everything(path) == before


def test_an_unknown_token_and_an_item_that_was_not_offered_count_nothing(ledger: ImpressionLedger, path: Path) -> None:
    ledger.offer(offered())
    before = everything(path)
    assert ledger.settle("0" * 32, ("pear",)) is UNKNOWN
    assert ledger.settle(TOKEN, ("plum",)) is CONFLICT
    assert ledger.settle(TOKEN, ("pear", "apple")) is CONFLICT  # more than the offer has slots
    assert everything(path) == before
    assert ledger.settle(TOKEN, ("pear",)) is OK  # a refused report has not used the token up


def test_conflicts_are_logged_without_token_or_item(ledger: ImpressionLedger, caplog: Any) -> None:
    ledger.offer(offered())
    with caplog.at_level(logging.INFO, "tacit.ledger"):
        ledger.settle(TOKEN, ("pear",))
        ledger.settle(TOKEN, ("pear",))
        ledger.settle("0" * 32, ("pear",))
        assert not caplog.records  # only what contradicts something is worth a line
        ledger.settle(TOKEN, ("apple",))
        ledger.settle_batch("b-1", "g", [("t", "apple"), ("t", "apple")], dict(PRICES))
    assert len(caplog.records) == 2
    text = caplog.text + "".join(repr(record.args) for record in caplog.records)
    assert not [word for word in (TOKEN, "apple", "pear", "b-1", digest(TOKEN).hex()) if word in text]


def test_reports_of_one_call_see_each_other(ledger: ImpressionLedger) -> None:
    ledger.offer_many([offered("a"), offered("b")])
    wished = [("a", ("pear",)), ("a", ("pear",)), ("a", ("fig",)), ("b", ("pear",)), ("c", ("pear",)), ("d", "pear")]
    outcomes = ledger.settle_many(wished)
    assert outcomes[:-1] == [OK, DUPLICATE, CONFLICT, OK, UNKNOWN]
    assert isinstance(outcomes[-1], InvalidParameter)
    assert ledger.item("pear") == ItemTotal("pear", 2, 200_000)


def test_reports_with_a_price_of_their_own_share_the_tokens(ledger: ImpressionLedger) -> None:
    """Whoever reports an offer's token by the other way must not count it a second time."""
    ledger.offer_many([offered("a"), offered("b")])
    ledger.report("a", "pear", 100_000)
    assert ledger.settle("a", ("pear",)) is DUPLICATE
    ledger.settle("b", ("pear",))
    assert not ledger.report("b", "pear", 100_000).fresh
    with pytest.raises(Conflict):
        ledger.report("b", "pear", 99_999)
    assert ledger.item("pear") == ItemTotal("pear", 2, 200_000)


# --- what is kept


def test_neither_token_nor_time_of_day_reaches_the_disk(path: Path, clock: Hand) -> None:
    with ImpressionLedger.create(path, clock=clock) as ledger:
        ledger.offer(offered())
        ledger.settle(TOKEN, ("pear",))
        ledger.engage(TOKEN, 1)
        ledger.settle_batch("b", "g", [(TOKEN, "pear")], dict(PRICES))
    stored = b"".join(file.read_bytes() for file in path.parent.glob("ledger.db*"))
    assert TOKEN.encode() not in stored
    assert bytes.fromhex(TOKEN) not in stored
    values = {value for table in everything(path) for row in table for value in row}
    assert not values & {clock.at, clock.at // SECOND, START // SECOND}
    assert {value for value in values if type(value) is int and value > START // SECOND - 10**6} <= {
        EXPIRES,
        START,  # the lane's day
    }


def test_the_same_offer_again_changes_nothing_and_another_one_is_refused(ledger: ImpressionLedger, path: Path) -> None:
    ledger.offer(offered())
    before = everything(path)
    ledger.offer(offered())
    ledger.offer_many([])
    others = [
        offered(prices=(("apple", 80_001), *PRICES[1:])),
        offered(prices=PRICES[:2]),
        offered(expires=EXPIRES + 1),
        offered(slots=2),
        offered()._replace(context="other"),
    ]
    for other in others:
        with pytest.raises(Conflict) as caught:
            ledger.offer(other)
        assert TOKEN not in str(caught.value)
    assert everything(path) == before
    ledger.settle(TOKEN, ("apple",))
    assert ledger.item("apple").micros == 80_000


def test_of_many_offers_those_that_can_be_kept_are_kept(ledger: ImpressionLedger) -> None:
    ledger.offer(offered("a"))
    with pytest.raises(Conflict):
        ledger.offer_many([offered("a", slots=2), offered("b"), offered("b"), offered("b", slots=2)])
    assert ledger.settle("b", ("pear",)) is OK


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
        with pytest.raises(LedgerUnavailable, match="Mend the clock") as caught:
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
    assert "not counted: 2." in record.getMessage()
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
    assert forget(store, OFFERS, LAPSED, STILL_LAPSED, given, lambda key: lane_of_impression(key[0], lanes)) == 0
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


# --- several slots


def test_each_slot_is_an_impression_of_its_own(ledger: ImpressionLedger, path: Path) -> None:
    ledger.offer(offered(slots=3))
    assert ledger.settle(TOKEN, ("pear", "fig")) is CONFLICT
    assert ledger.settle(TOKEN, ("pear", "fig", "pear")) is CONFLICT
    assert ledger.settle(TOKEN, ("pear", "fig", "plum")) is CONFLICT
    assert ledger.settle(TOKEN, ("pear", "fig", "apple")) is OK
    assert ledger.settle(TOKEN, ("pear", "fig", "apple")) is DUPLICATE
    assert ledger.settle(TOKEN, ("pear", "apple", "fig")) is CONFLICT
    assert ledger.settle(TOKEN, ("pear", "fig")) is CONFLICT
    assert ledger.settle(TOKEN, ("pear",)) is CONFLICT
    assert sorted(ledger.items()) == [
        ItemTotal("apple", 1, 80_000),
        ItemTotal("fig", 1, 0),
        ItemTotal("pear", 1, 100_000),
    ]
    kept = {id for (id,) in rows(path, "SELECT id FROM impressions")}
    assert kept == {slot_key(TOKEN, slot) for slot in range(3)}
    assert slot_key(TOKEN, 0) == digest(TOKEN)


def full(path: Path, item: str) -> None:
    """Lets every account of an item stand at the most that can be counted; the chain is then no longer what was written."""
    for number, lane, impressions in rows(path, "SELECT number, lane, impressions FROM accounts WHERE item = ?", item):
        seal = seal_of_account(number, item, lane, impressions, MOST)
        alter(path, f"UPDATE accounts SET micros = {MOST}, seal = x'{seal.hex()}' WHERE number = {number}")


def test_of_several_slots_all_are_counted_or_none(path: Path, clock: Hand) -> None:
    with ImpressionLedger.create(path, clock=clock) as ledger:
        ledger.report("x", "pear", 1)
        full(path, "pear")
        ledger.offer(offered(slots=2))
        before = everything(path)
        with pytest.raises(InvalidParameter, match="the most that can be counted"):
            ledger.settle(TOKEN, ("apple", "pear"))
        with pytest.raises(InvalidParameter, match="the most that can be counted"):
            ledger.settle_batch("b", "g", [("1", "apple"), ("2", "pear")], dict(PRICES))
        assert everything(path) == before
        assert ledger.settle(TOKEN, ("apple", "fig")) is OK


# --- batches


def test_a_batch_is_counted_once_at_the_prices_given(ledger: ImpressionLedger, path: Path) -> None:
    reports = [(f"{i:032x}", ("apple", "pear")[i % 2]) for i in range(41)]
    assert ledger.settle_batch("b", "g", reports, dict(PRICES)) is OK
    before = everything(path)
    assert ledger.settle_batch("b", "g", reports[::-1], dict(PRICES)) is DUPLICATE  # whatever the order
    assert ledger.settle_batch("b", "g", reports, {}) is DUPLICATE  # the prices of then hold
    assert ledger.settle_batch("b", "g", reports[1:], dict(PRICES)) is CONFLICT
    assert ledger.settle_batch("b", "g", [(reports[0][0], "pear"), *reports[1:]], dict(PRICES)) is CONFLICT
    assert ledger.settle_batch("b", "g", [], dict(PRICES)) is CONFLICT
    assert everything(path) == before
    assert list(ledger.items()) == [ItemTotal("apple", 21, 21 * 80_000), ItemTotal("pear", 20, 20 * 100_000)]
    assert not faults(path)


def test_a_token_counts_once_in_a_batch_and_again_in_the_next(ledger: ImpressionLedger, path: Path) -> None:
    assert ledger.settle_batch("b", "g", [("t", "apple")], dict(PRICES)) is OK
    before = everything(path)
    assert ledger.settle_batch("b", "h", [("t", "apple"), ("u", "pear")], dict(PRICES)) is CONFLICT
    assert everything(path) == before
    assert ledger.settle_batch("b", "h", [("u", "pear")], dict(PRICES)) is OK  # a refused batch has used nothing up
    assert ledger.settle_batch("c", "g", [("t", "apple")], dict(PRICES)) is OK
    ledger.offer(offered("t"))
    assert ledger.settle("t", ("apple",)) is OK  # an offer's token is no token of a batch
    assert ledger.item("apple") == ItemTotal("apple", 3, 240_000)


def test_a_batch_with_a_fault_is_refused_as_a_whole(ledger: ImpressionLedger, path: Path) -> None:
    before = everything(path)
    assert ledger.settle_batch("b", "g", [("t", "apple"), ("t", "apple")], dict(PRICES)) is CONFLICT
    assert ledger.settle_batch("b", "g", [("t", "apple"), ("t", "pear")], dict(PRICES)) is CONFLICT
    assert ledger.settle_batch("b", "g", [("t", "apple"), ("u", "plum")], dict(PRICES)) is CONFLICT
    assert everything(path) == before
    assert ledger.settle_batch("b", "g", [("t", "apple")], dict(PRICES)) is OK


def test_a_refused_version_is_remembered_for_its_group_and_no_other(ledger: ImpressionLedger, path: Path) -> None:
    """By whoever opens the ledger next, and however the group was or will be settled."""
    reports = [("t", "apple"), ("u", "pear")]
    for group in "gh":
        assert not ledger.refused("b", group)
    assert ledger.settle_batch("b", "g", reports, dict(PRICES)) is OK
    assert ledger.settle_batch("b", "g", reports, dict(PRICES)) is DUPLICATE
    assert not ledger.refused("b", "g")
    assert ledger.settle_batch("b", "g", reports[1:], dict(PRICES)) is CONFLICT
    assert ledger.settle_batch("b", "g", [], dict(PRICES)) is CONFLICT  # once more
    assert ledger.refused("b", "g")
    # A version may be refused before any is settled: t was counted in the other group.
    assert ledger.settle_batch("b", "h", [("t", "apple"), ("v", "pear")], dict(PRICES)) is CONFLICT
    assert ledger.settle_batch("b", "h", [("v", "pear")], dict(PRICES)) is OK
    assert ledger.settle_batch("b", "i", [("w", "plum")], dict(PRICES)) is CONFLICT
    assert ledger.settle_batch("c", "g", reports, dict(PRICES)) is OK
    with ImpressionLedger.open(path) as other:
        told = {(batch, group): other.refused(batch, group) for batch in "abc" for group in "fghij"}
    assert {key for key, refused in told.items() if refused} == {("b", "g"), ("b", "h"), ("b", "i")}
    assert len(rows(path, "SELECT * FROM refusals")) == 3
    assert ledger.settle_batch("b", "g", reports, dict(PRICES)) is DUPLICATE  # and still so
    assert ledger.refused("b", "g")


def test_a_refusal_is_durable_when_it_is_told(path: Path) -> None:
    """A process that ends without a word the moment it has heard ``conflict`` leaves it behind."""
    ImpressionLedger.create(path).close()
    program = (
        "import os, sys; from tacit.ledger import ImpressionLedger; shop = ImpressionLedger.open(sys.argv[1]);"
        "shop.settle_batch('b', 'g', [('t', 'pear')], {'pear': 1});"
        "os._exit(7 if shop.settle_batch('b', 'g', [], {}) == 'conflict' else 1)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False, capture_output=True).returncode == 7
    with ImpressionLedger.open(path) as ledger:
        assert ledger.refused("b", "g")


def test_an_empty_batch_is_a_batch(ledger: ImpressionLedger) -> None:
    assert ledger.settle_batch("b", "g", [], {}) is OK
    assert ledger.settle_batch("b", "g", [], {}) is DUPLICATE
    assert ledger.settle_batch("b", "g", [("t", "apple")], dict(PRICES)) is CONFLICT


# --- engagements


def test_engagements_are_counted_once_for_what_was_settled(ledger: ImpressionLedger, clock: Hand) -> None:
    ledger.offer_many(offered(token) for token in "abcd")
    for token, item in zip("abc", ("pear", "pear", "apple"), strict=True):
        ledger.settle(token, (item,))
    assert [ledger.engage("a", 1), ledger.engage("a", 1), ledger.engage("a", 0)] == [OK, DUPLICATE, CONFLICT]
    assert [ledger.engage("b", 0), ledger.engage("c", 1), ledger.engage("d", 1)] == [OK, OK, UNKNOWN]
    clock.at += 3 * DAY
    ledger.forget()
    assert ledger.engage("a", 1) is DUPLICATE
    assert ledger.engagements("pear") == Engagements(received=2, ones=1)
    assert ledger.engagements("apple") == Engagements(1, 1)
    assert ledger.engagements("plum") == Engagements(0, 0)
    assert ledger.item("pear").impressions == 2  # a bit is no impression


def test_bits_of_one_transaction_see_each_other(ledger: ImpressionLedger, path: Path) -> None:
    ledger.offer(offered())
    ledger.settle(TOKEN, ("pear",))
    assert ledger._engage([Engaged(TOKEN, bit) for bit in (1, 1, 0)]) == [OK, DUPLICATE, CONFLICT]
    assert rows(path, "SELECT bit FROM engagements") == [(1,)]
    assert ledger.engagements("pear") == Engagements(1, 1)


def test_a_bit_is_dated_by_the_ledgers_day_which_does_not_go_back(
    ledger: ImpressionLedger, clock: Hand, path: Path
) -> None:
    ledger.offer_many([offered("a", expires=FAR), offered("b", expires=FAR)])
    today = START // DAY
    clock.at += 2 * DAY
    assert [ledger.settle(token, ("pear",)) for token in "ab"] == [OK, OK]
    clock.at -= 2 * DAY
    assert ledger.engage("a", 1) is OK
    clock.at += 5 * DAY
    assert ledger.engage("b", 1) is OK
    assert sorted(rows(path, "SELECT day FROM engagements")) == [(today + 2,), (today + 5,)]


def test_one_bit_about_several_items_is_refused(ledger: ImpressionLedger) -> None:
    ledger.offer(offered(slots=2))
    ledger.settle(TOKEN, ("pear", "apple"))
    assert ledger.engage(TOKEN, 1) is CONFLICT
    assert ledger.engagements("pear") == Engagements(0, 0)


# --- what cannot stand in a ledger


@pytest.mark.parametrize(
    "wrong",
    [
        offered(""),
        offered("a\nb"),
        offered(prices=()),
        offered(prices=(("apple", 1), ("apple", 1))),
        offered(prices=(("apple", -1),)),
        offered(prices=(("apple", 1.0),)),
        offered(prices=(("apple", True),)),
        offered(prices=(("apple", MOST_MICROS + 1),)),
        offered(prices=(("", 1),)),
        offered(prices=(([], 1),)),
        offered(prices=[("apple", 1)]),
        offered(prices=(("apple", 1, 2),)),
        offered(prices=(("apple\n1", 1),)),
        offered(expires=-1),
        offered(expires=EXPIRES * SECOND),  # microseconds by mistake
        offered(expires=float(EXPIRES)),
        offered(slots=0),
        offered(slots=4),
        offered(slots=True),
        offered()._replace(context="x" * 201),
        offered()._replace(context=None),
        (TOKEN, PRICES),
        None,
    ],
)
def test_what_is_no_offer_is_refused_before_anything_is_kept(tmp_path: Path, wrong: Any) -> None:
    with ImpressionLedger.create(tmp_path / "a.db") as ledger:
        with pytest.raises(InvalidParameter) as caught:
            ledger.offer_many([offered("good"), wrong])
        assert TOKEN not in str(caught.value)
        assert "apple" not in str(caught.value)
        assert ledger.settle("good", ("pear",)) is UNKNOWN


@pytest.mark.parametrize(
    "wrong", [("", ("a",)), (TOKEN, ()), (TOKEN, "pear"), (TOKEN, ("a\nb",)), (TOKEN, (1,)), (TOKEN, 7), (TOKEN,), None]
)
def test_what_is_no_report_is_refused_without_showing_it(path: Path, clock: Hand, wrong: Any) -> None:
    with ImpressionLedger.create(path, clock=clock) as ledger:
        ledger.offer(offered())
        first, outcome = ledger.settle_many([(TOKEN, ("pear",)), wrong])
        assert first is OK
        assert isinstance(outcome, InvalidParameter)
        assert TOKEN not in str(outcome)


@pytest.mark.parametrize(
    "wrong",
    [
        ("", "g", [], {}),
        ("b", "", [], {}),
        ("b", "g", [("t",)], {}),
        ("b", "g", [["t", "apple"]], {"apple": 1}),
        ("b", "g", [("t", "a\nb")], {}),
        ("b", "g", [("", "apple")], {"apple": 1}),
        ("b", "g", [("t", "apple")], {"apple": 1.5}),
    ],
)
def test_what_is_no_batch_is_refused(tmp_path: Path, wrong: Any) -> None:
    with ImpressionLedger.create(tmp_path / "a.db") as ledger:
        with pytest.raises(InvalidParameter):
            ledger.settle_batch(*wrong)
        assert list(ledger.items()) == []


@pytest.mark.parametrize("bit", [2, -1, True, 1.0, "1", None])
def test_an_engagement_is_a_bit(tmp_path: Path, bit: Any) -> None:
    with ImpressionLedger.create(tmp_path / "a.db") as ledger, pytest.raises(InvalidParameter):
        ledger.engage(TOKEN, bit)


# --- damage, and many at once


def test_an_altered_offer_is_charged_to_nobody(ledger: ImpressionLedger, path: Path) -> None:
    for place, change in enumerate(
        (
            "content = replace(content, '100000', '900000')",
            f"expires = {EXPIRES + 1}",
            "content = 'null'",
            "seal = x'00'",
        )
    ):
        ledger.offer(offered(f"t{place}"))
        alter(path, f"UPDATE offers SET {change} WHERE id = x'{digest(f't{place}').hex()}'")
        ledger.offer(offered(f"good-{place}"))
        damaged, good = ledger.settle_many([(f"t{place}", ("pear",)), (f"good-{place}", ("pear",))])
        assert isinstance(damaged, LedgerDamaged)
        assert good is OK
    assert ledger.item("pear").micros == 400_000
    assert "an offer is not what was written" in str(check(path).findings)
    alter(path, "DELETE FROM offers")


def test_an_offer_moved_to_another_token_is_damage(ledger: ImpressionLedger, path: Path) -> None:
    ledger.offer(offered("cheap", prices=(("pear", 1),)))
    alter(path, f"UPDATE offers SET id = x'{digest('dear').hex()}'")
    with pytest.raises(LedgerDamaged):
        ledger.settle("dear", ("pear",))
    alter(path, "DELETE FROM offers")


def test_an_account_that_was_altered_counts_no_more(ledger: ImpressionLedger, path: Path) -> None:
    ledger.offer_many(offered(token) for token in "abcdefgh")
    for token in "abcd":
        ledger.settle(token, ("pear",))
    kept = rows(path, "SELECT micros, number FROM accounts")
    alter(path, "UPDATE accounts SET micros = micros + 1")
    outcomes = ledger.settle_many([(token, ("pear",)) for token in "abcd"])
    assert {type(outcome) for outcome in outcomes} == {LedgerDamaged}
    with pytest.raises(LedgerDamaged):
        ledger.engage("a", 1)
    for micros, number in kept:
        alter(path, f"UPDATE accounts SET micros = {micros} WHERE number = {number}")
    assert ledger.settle_many([(token, ("pear",)) for token in "abcd"]) == [DUPLICATE] * 4


def test_threads_on_the_same_tokens_count_each_once(ledger: ImpressionLedger) -> None:
    tokens = [f"t{i}" for i in range(40)]
    ledger.offer_many(offered(token) for token in tokens)
    outcomes: list[tuple[str, Settlement | TacitError]] = []

    def run(item: str) -> None:
        for token in tokens:
            outcomes.append((token, ledger.settle(token, (item,))))

    threads = [threading.Thread(target=run, args=(item,)) for item in ("pear", "pear", "apple", "fig")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 160
    for token in tokens:
        mine = sorted(str(outcome) for name, outcome in outcomes if name == token)
        assert mine.count("ok") == 1
        assert set(mine) <= {"ok", "duplicate", "conflict"}
    assert sum(total.impressions for total in ledger.items()) == 40
