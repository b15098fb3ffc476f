"""Offers and settlements: the price is the offer's, each token counts once, and nothing that comes later reopens it."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import Conflict, InvalidParameter
from tacit.ledger import ImpressionLedger, ItemTotal
from tacit.ledger.chain import SECOND, digest
from tests.unit.ledger.impression_reference import faults
from tests.unit.ledger.offers_made import CONFLICT, DUPLICATE, EXPIRES, OK, PRICES, TOKEN, UNKNOWN, everything, offered
from tests.unit.ledger.small_ledger import START, Hand

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
