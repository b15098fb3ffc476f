"""Several slots, batches and engagements: all or nothing, each once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tacit.errors import InvalidParameter
from tacit.ledger import Engagements, ImpressionLedger, ItemTotal
from tacit.ledger.budgets import MOST
from tacit.ledger.chain import DAY, digest
from tacit.ledger.offers import Engaged, slot_key
from tacit.ledger.stores.interface import ACCOUNTS
from tests.unit.ledger.impression_reference import alter, faults, rows
from tests.unit.ledger.offers_made import CONFLICT, DUPLICATE, FAR, OK, PRICES, TOKEN, UNKNOWN, everything, offered
from tests.unit.ledger.small_ledger import START, Hand

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
        seal = ACCOUNTS.seal_of(number, item, lane, impressions, MOST)
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
