"""The impression ledger: nothing altered without a trace, opened by several, and after a restart."""

import shutil
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import (
    LedgerBehind,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnavailable,
)
from tacit.guarantees import ONE_USER, pure
from tacit.ledger.budgets import Budget
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.privacy import PrivacyLedger
from tacit.ledger.stores.interface import ACCOUNTS
from tacit.ledger.tally import Counted, ItemTotal
from tests.unit.ledger.impression_reference import alter, faults, rows
from tests.unit.ledger.impressions_made import Hands, kinds

# --- damage


@pytest.fixture
def filled(ledger: ImpressionLedger, clock: Hands) -> ImpressionLedger:
    for clock.day in [date(2026, 11, 15), date(2026, 11, 16)]:
        ledger.report_many([(f"{clock.day}-{i}", ("apple", "pear")[i % 2], 10 + i) for i in range(20)])
    return ledger


def test_the_rows_are_what_the_format_says(filled: ImpressionLedger, path: Path) -> None:
    assert faults(path) == []
    assert rows(path, "SELECT count(*) FROM impressions") == [(40,)]
    head = filled.head().to_json()["books"]["impressions"]
    assert head == [
        [position, link.hex()]
        for position, link in rows(path, "SELECT position, link FROM lanes WHERE book = 'impressions' ORDER BY lane")
    ]


SOME = "(SELECT number FROM impressions ORDER BY number LIMIT 1 OFFSET 10)"
LAST = "(SELECT max(number) FROM impressions)"
# Two neighbours of one lane exchange everything but their numbers.
SWAP = [
    f"UPDATE impressions SET number = -number WHERE number IN ({SOME}, {SOME} + (SELECT value FROM facts WHERE name = 'lanes'))",
    "UPDATE impressions SET number = (SELECT -sum(number) FROM impressions WHERE number < 0) - -number WHERE number < 0",
]


@pytest.mark.parametrize(
    "tampering",
    [
        [f"UPDATE impressions SET micros = micros + 1 WHERE number = {SOME}"],
        [f"UPDATE impressions SET day = day + 1 WHERE number = {LAST}"],
        [f"UPDATE impressions SET id = zeroblob(16) WHERE number = {SOME}"],
        [f"UPDATE impressions SET account = account + 1 WHERE number = {SOME}"],
        [f"DELETE FROM impressions WHERE number = {SOME}"],
        [f"DELETE FROM impressions WHERE number = {LAST}"],
        ["UPDATE accounts SET micros = micros - 1 WHERE item = 'apple'"],
        ["UPDATE accounts SET impressions = impressions + 1 WHERE item = 'pear'"],
        ["UPDATE accounts SET item = 'fig' WHERE item = 'pear'"],
        ["DELETE FROM accounts WHERE item = 'pear'"],
        ["UPDATE lanes SET position = position - 1 WHERE book = 'impressions'"],
    ],
    ids=lambda statements: statements[0].split(" WHERE")[0],
)
def test_no_row_is_altered_or_lost_without_a_trace(filled: ImpressionLedger, path: Path, tampering: list[str]) -> None:
    alter(path, *tampering)
    assert faults(path) != []


def test_no_two_rows_change_places_without_a_trace(filled: ImpressionLedger, path: Path) -> None:
    before = rows(path, "SELECT number, id FROM impressions ORDER BY number")
    alter(path, *SWAP)
    after = rows(path, "SELECT number, id FROM impressions ORDER BY number")
    assert before != after
    assert sorted(n for n, _ in before) == sorted(n for n, _ in after)
    assert filled.balanced()  # the sums cannot show it, the links do
    assert len(faults(path)) >= 2


def reseal(path: Path) -> None:
    """What somebody does who knows the seals: they tell of accidents, the impressions themselves of intent."""
    for row in rows(path, "SELECT number, item, lane, impressions, micros FROM accounts"):
        alter(path, f"UPDATE accounts SET seal = x'{ACCOUNTS.seal_of(*row).hex()}' WHERE number = {row[0]}")


@pytest.mark.parametrize(
    ("statement", "balanced"),
    [
        ("UPDATE accounts SET micros = micros + 1 WHERE item = 'apple'", False),
        ("UPDATE accounts SET impressions = impressions - 1 WHERE item = 'apple'", False),
        ("DELETE FROM accounts WHERE item = 'apple'", False),
        ("INSERT INTO accounts SELECT max(number) + 1, 'fig', 0, 0, 0, x'' FROM accounts", False),
        ("UPDATE accounts SET item = 'fig' WHERE item = 'apple'", True),  # the links name the item
    ],
)
def test_accounts_must_agree_with_their_impressions(
    filled: ImpressionLedger, path: Path, statement: str, balanced: bool
) -> None:
    assert filled.balanced()
    alter(path, statement)
    reseal(path)
    assert filled.balanced() is balanced
    assert faults(path) != []


def test_two_wrong_accounts_do_not_make_a_right_sum(path: Path) -> None:
    with ImpressionLedger.create(path, lanes=1) as ledger:
        ledger.report_many([("a", "apple", 5), ("b", "pear", 5)])
        alter(
            path,
            "UPDATE accounts SET micros = 4 WHERE item = 'apple'",
            "UPDATE accounts SET micros = 6 WHERE item = 'pear'",
        )
        assert not ledger.balanced()


def test_a_damaged_account_stops_its_item_only(filled: ImpressionLedger, path: Path) -> None:
    alter(path, "UPDATE accounts SET micros = micros + 1 WHERE item = 'apple'")
    many = [(f"new {item} {i}", item, 1) for i in range(9) for item in ("apple", "pear", "fig")]
    outcomes = filled.report_many(many)
    assert kinds(outcomes) == [LedgerDamaged, True, True] * 9
    assert kinds(filled.report_many([("2026-11-15-0", "apple", 10)])) == [LedgerDamaged]
    assert filled.item("pear").impressions == 29
    with pytest.raises(LedgerDamaged, match="tacit ledger check"):
        filled.item("apple")
    with pytest.raises(LedgerDamaged):
        list(filled.items())
    assert "apple" not in str(outcomes[0])


def test_a_damaged_end_of_a_lane_stops_everything(filled: ImpressionLedger, path: Path) -> None:
    alter(path, "UPDATE lanes SET position = position - 1 WHERE book = 'impressions'")
    with pytest.raises(LedgerDamaged):
        filled.report("new", "apple", 1)


# --- opening, sharing


def test_what_was_acknowledged_is_there_after_reopening(path: Path) -> None:
    with ImpressionLedger.create(path) as ledger:
        ledger.report("x", "apple", 5)
    with pytest.raises(LedgerUnavailable):
        ledger.report("y", "apple", 5)
    with ImpressionLedger.open(path) as again:
        assert list(again.items()) == [ItemTotal("apple", 1, 5)]
        assert not again.report("x", "apple", 5).fresh


def test_a_ledger_is_never_made_or_replaced_by_accident(path: Path) -> None:
    with pytest.raises(LedgerMissing):
        ImpressionLedger.open(path)
    assert not path.exists()
    with ImpressionLedger.open_or_create(path) as ledger:
        ledger.report("x", "apple", 5)
    with pytest.raises(LedgerExists):
        ImpressionLedger.create(path)
    with ImpressionLedger.open_or_create(path) as ledger:
        assert ledger.item("apple").impressions == 1


def test_a_noted_head_refuses_an_old_copy(filled: ImpressionLedger, path: Path, tmp_path: Path) -> None:
    filled.close()  # the last connection: the log is folded into the file
    old = tmp_path / "old.db"
    shutil.copy(path, old)
    with ImpressionLedger.open(path) as ledger:
        ledger.report_many([(f"new {i}", "apple", 1) for i in range(9)])
        head = ledger.head()
    with pytest.raises(LedgerBehind, match="impressions"):
        ImpressionLedger.open(old, head=head)
    with ImpressionLedger.open(path, head=head) as ledger:
        assert ledger.item("apple").impressions == 29


@pytest.mark.parametrize("maker", [PrivacyLedger, ImpressionLedger])
def test_one_file_holds_both_books(path: Path, maker: Any) -> None:
    maker.create(path).close()
    with PrivacyLedger.open(path) as privacy, ImpressionLedger.open(path) as impressions:
        privacy.enrol("ward-7", Budget(epsilon=2.0), protects=ONE_USER)
        impressions.report("x", "apple", 5)
        privacy.charge("ward-7", "mean", pure(0.5, ONE_USER))
        impressions.report("y", "apple", 5)
        assert privacy.head() == impressions.head()
        assert [tips[0][0] for tips in impressions.head().books.values()] == [2, 2]
        assert impressions.item("apple") == ItemTotal("apple", 2, 10)
        assert privacy.statement("ward-7").charges == 1
        assert faults(path) == []


def test_reading_holds_up_no_report_and_sees_one_instant(filled: ImpressionLedger) -> None:
    reading = filled.items()
    assert next(reading).item == "apple"
    filled.report_many([(f"new {i}", item, 1) for i, item in enumerate(["pear", "quince"])])
    assert [(total.item, total.impressions) for total in reading] == [("pear", 20)]
    assert [(total.item, total.impressions) for total in filled.items()][1:] == [("pear", 21), ("quince", 1)]


def test_threads_that_report_the_same_impressions_count_each_once(ledger: ImpressionLedger, path: Path) -> None:
    fresh: list[Counted] = []
    start = threading.Barrier(8)

    def work(ledger: ImpressionLedger, shift: int) -> None:
        start.wait()
        for i in range(30):
            outcomes = ledger.report_many(
                [(f"id-{(i + shift + j) % 30}", f"item-{(i + shift + j) % 3}", 7) for j in range(2)]
            )
            fresh.extend(outcome for outcome in outcomes if isinstance(outcome, Counted) and outcome.fresh)

    with ImpressionLedger.open(path) as other:
        threads = [threading.Thread(target=work, args=((ledger, other)[i % 2], i)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(fresh) == len({counted.number for counted in fresh}) == 30
    assert list(ledger.items()) == [ItemTotal(f"item-{i}", 10, 70) for i in range(3)]
    assert faults(path) == []
