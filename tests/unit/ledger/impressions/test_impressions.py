"""The impression ledger: each impression once, exact to the micro-unit, each on its day."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import (
    Conflict,
    InvalidParameter,
    LedgerDamaged,
)
from tacit.ledger.budgets import MOST
from tacit.ledger.chain import DAY, digest, lane_of, lane_of_digest
from tacit.ledger.impressions import ImpressionLedger, Report
from tacit.ledger.tally import MOST_MICROS, Counted, ItemTotal, month
from tests.unit.ledger.impression_reference import faults, rows
from tests.unit.ledger.impressions_made import Hands, kinds, number

# --- counting


def test_counts_and_money_are_exact_per_item(ledger: ImpressionLedger) -> None:
    ledger.report_many([(f"a{i}", "apple", 3 * i) for i in range(20)] + [(f"b{i}", "pear", 0) for i in range(7)])
    assert ledger.item("apple") == ItemTotal("apple", 20, 570)
    assert ledger.item("pear") == ItemTotal("pear", 7, 0)  # a free impression is counted all the same
    assert ledger.item("fig") == ItemTotal("fig", 0, 0)
    assert list(ledger.items()) == [ItemTotal("apple", 20, 570), ItemTotal("pear", 7, 0)]
    assert ledger.balanced()


def test_every_impression_has_a_number_of_its_own_in_the_lane_of_its_id(ledger: ImpressionLedger, path: Path) -> None:
    lanes = ledger._store.lanes
    outcomes = {id: ledger.report(id, "apple", 1) for id in (f"id-{i}" for i in range(30))}
    assert len({counted.number for counted in outcomes.values()}) == 30
    assert all(counted.number % lanes == lane_of(id, lanes) for id, counted in outcomes.items())
    assert all(lane_of_digest(digest(id), lanes) == lane_of(id, lanes) for id in outcomes)
    assert {item for (item,) in rows(path, "SELECT lane FROM accounts")} == set(range(lanes))


def test_the_same_report_again_changes_nothing(ledger: ImpressionLedger, path: Path, clock: Hands) -> None:
    first = ledger.report("x", "apple", 5)
    before = rows(path, "SELECT * FROM impressions"), rows(path, "SELECT * FROM accounts"), ledger.head()
    clock.day = date(2026, 12, 24)
    assert first.fresh
    assert ledger.report("x", "apple", 5) == Counted(first.number, number(date(2026, 11, 15)), False)
    assert (rows(path, "SELECT * FROM impressions"), rows(path, "SELECT * FROM accounts"), ledger.head()) == before


def test_a_repeat_within_one_call_is_counted_once(ledger: ImpressionLedger) -> None:
    first, again = ledger.report_many([("x", "apple", 5), ("x", "apple", 5)])
    assert isinstance(first, Counted)
    assert first.fresh
    assert again == first._replace(fresh=False)
    assert ledger.item("apple") == ItemTotal("apple", 1, 5)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_repeats_are_found_among_many_new_reports(ledger: ImpressionLedger, size: int) -> None:
    """Many at once are written in the hope that all are new; the hope must not be what decides."""
    first = ledger.report("old", "apple", 5)
    new = [(f"id-{i}", "pear", 1) for i in range(size)]
    outcomes = ledger.report_many([*new, ("old", "apple", 5), ("old", "apple", 6), ("new", "pear", 1), *new])
    assert kinds(outcomes) == [True] * size + [False, Conflict, True] + [False] * size
    assert outcomes[size] == first._replace(fresh=False)
    assert kinds(ledger.report_many(new)) == [False] * size
    assert kinds(ledger.report_many([(f"more-{i}", "pear", 1) for i in range(size)])) == [True] * size
    assert kinds(ledger.report_many([(id, "fig", 1) for id, _, _ in new])) == [Conflict] * size
    assert list(ledger.items()) == [ItemTotal("apple", 1, 5), ItemTotal("pear", 2 * size + 1, 2 * size + 1)]
    assert ledger.balanced()


@pytest.mark.parametrize("together", [True, False], ids=["in one call", "in two calls"])
@pytest.mark.parametrize(("item", "micros"), [("pear", 5), ("fig", 5), ("apple", 6), ("apple", 0), ("pear", 6)])
def test_the_same_id_for_something_else_is_refused(
    ledger: ImpressionLedger, together: bool, item: str, micros: int
) -> None:
    ledger.report_many([(f"p{i}", "pear", 1) for i in range(9)])  # pear has an account in every lane, fig in none
    reports = [("secret-id", "apple", 5), ("secret-id", item, micros)]
    outcomes = ledger.report_many(reports) if together else [ledger.report_many([one])[0] for one in reports]
    assert kinds(outcomes) == [True, Conflict]
    assert "secret-id" not in str(outcomes[1])
    assert list(ledger.items()) == [ItemTotal("apple", 1, 5), ItemTotal("pear", 9, 9)]
    assert kinds(ledger.report_many(reports)) == [False, Conflict]
    assert ledger.balanced()


def test_one_report_alone_raises_its_conflict(ledger: ImpressionLedger) -> None:
    ledger.report("x", "apple", 5)
    with pytest.raises(Conflict, match="new id"):
        ledger.report("x", "pear", 5)


def test_each_report_of_a_call_stands_alone_and_keeps_its_place(ledger: ImpressionLedger) -> None:
    ledger.report("old", "apple", 1)
    outcomes = ledger.report_many(
        [("", "apple", 1), ("a", "apple", 1), ("old", "pear", 1), ("b", "pear", -1), Report("old", "apple", 1)]
    )
    assert kinds(outcomes) == [InvalidParameter, True, Conflict, InvalidParameter, False]
    assert list(ledger.items()) == [ItemTotal("apple", 2, 2)]
    assert ledger.report_many([]) == []
    assert kinds(ledger.report_many([("c", "", 1)])) == [InvalidParameter]


def test_a_call_is_counted_as_a_whole_or_not_at_all(ledger: ImpressionLedger, path: Path) -> None:
    ledger.report("x", "apple", 1)
    rows(
        path, "CREATE TRIGGER t BEFORE INSERT ON impressions WHEN NEW.micros = 13 BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(LedgerDamaged):
        ledger.report_many([(f"id-{i}", "apple" if i % 2 else "pear", i) for i in range(20)])
    assert list(ledger.items()) == [ItemTotal("apple", 1, 1)]
    assert faults(path) == []
    rows(path, "DROP TRIGGER t")
    assert ledger.report("id-13", "pear", 13).fresh


# --- what may be reported


@pytest.mark.parametrize("micros", [-1, MOST_MICROS + 1, 2**80, 1.0, float("nan"), True, "secret-id", None, b"1"])
def test_money_is_a_whole_number_within_bounds(ledger: ImpressionLedger, micros: Any) -> None:
    with pytest.raises(InvalidParameter, match="whole number of micro-units from 0 to 1,000,000,000,000,000") as caught:
        ledger.report("x", "apple", micros)
    assert "secret" not in str(caught.value)
    assert list(ledger.items()) == []


@pytest.mark.parametrize("bad", ["", "secret\nid", "secret\0", "\ud800", "x" * 129, 5, b"secret", None])
def test_ids_and_items_are_short_printable_texts(ledger: ImpressionLedger, bad: Any) -> None:
    for report in [(bad, "apple", 1), ("x", bad, 1)]:
        with pytest.raises(InvalidParameter) as caught:
            ledger.report(*report)
        assert "secret" not in str(caught.value)
    assert list(ledger.items()) == []
    if not isinstance(bad, str) or len(bad) != 129:
        with pytest.raises(InvalidParameter):
            ledger.item(bad)


def test_the_bounds_themselves_may_be_reported(ledger: ImpressionLedger) -> None:
    ledger.report("x" * 128, "é" * 128, MOST_MICROS)
    ledger.report("y", "é" * 128, np.int32(7))  # type: ignore[arg-type]
    assert ledger.item("é" * 128) == ItemTotal("é" * 128, 2, MOST_MICROS + 7)


def test_a_sum_stops_at_the_most_that_can_be_counted(path: Path) -> None:
    with ImpressionLedger.create(path, lanes=1) as ledger:
        full, rest = divmod(MOST, MOST_MICROS)
        ledger.report_many([(f"id-{i}", "apple", MOST_MICROS) for i in range(full)])
        outcomes = ledger.report_many(
            [("a", "apple", rest + 1), ("b", "apple", rest), ("c", "apple", 1), ("d", "apple", 0), ("e", "pear", 1)]
        )
        assert kinds(outcomes) == [InvalidParameter, True, InvalidParameter, True, True]
        assert "not counted" in str(outcomes[0])
        assert ledger.item("apple") == ItemTotal("apple", full + 2, MOST)
        assert ledger.balanced()
        repeats = [("b", "apple", rest)] * 20  # a full account still knows its impressions
        assert kinds(ledger.report_many(repeats)) == [False] * 20
        assert ledger.report("new", "pear", 1).fresh
        assert kinds(ledger.report_many(repeats)) == [False] * 20
        assert ledger.report_many([("a", "apple", 0)])[0].fresh  # type: ignore[union-attr]  # a refused id is not used up


def test_sums_over_lanes_are_exact_beyond_64_bits(path: Path, clock: Hands) -> None:
    with ImpressionLedger.create(path, lanes=3, clock=clock) as ledger:
        ledger.report_many([(f"id-{i}", "apple", MOST_MICROS) for i in range(9_500)])
        ledger.report("one more", "apple", 1)
        total = ItemTotal("apple", 9_501, 9_500 * MOST_MICROS + 1)
        assert total.micros > 2**63
        assert ledger.item("apple") == total
        assert list(ledger.items()) == [total]
        assert ledger.statement(clock.day, clock.day).items == (total,)
        assert ledger.balanced()


# --- days and statements


def test_of_time_the_ledger_keeps_the_day_and_of_an_id_the_digest(
    ledger: ImpressionLedger, path: Path, clock: Hands
) -> None:
    counted = ledger.report("secret-id", "apple", 1)
    ledger.report_many([("secret-id", "apple", 1), ("secret-id", "pear", 1)])
    assert counted.day == number(clock.day)
    assert rows(path, "SELECT id, day FROM impressions") == [(digest("secret-id"), number(clock.day))]
    assert {at for (at,) in rows(path, "SELECT at FROM lanes")} <= {0, number(clock.day) * DAY}
    assert all(b"secret-id" not in file.read_bytes() for file in path.parent.iterdir())


def test_the_day_never_goes_back(path: Path, clock: Hands) -> None:
    with ImpressionLedger.create(path, lanes=1, clock=clock) as ledger:
        days = []
        for day in [date(2026, 11, 15), date(2026, 11, 14), date(2026, 11, 16), date(1999, 1, 1)]:
            clock.day = day
            days.append(ledger.report(day.isoformat(), "apple", 1).day - number(date(2026, 11, 15)))
        assert days == [0, 0, 1, 1]
        assert faults(path) == []


def test_a_repeat_moves_no_lane_to_another_day(path: Path, clock: Hands) -> None:
    with ImpressionLedger.create(path, lanes=3, clock=clock) as ledger:
        ids = {lane_of(f"id-{i}", 3): f"id-{i}" for i in range(30)}
        ledger.report(ids[0], "apple", 1)
        clock.day = date(2026, 11, 20)
        assert kinds(ledger.report_many([(ids[0], "apple", 1), (ids[1], "apple", 1)])) == [False, True]
        assert rows(path, "SELECT lane FROM lanes WHERE at = ?", number(clock.day) * DAY) == [(1,)]
        assert faults(path) == []


def test_a_statement_holds_its_first_and_its_last_day_and_no_other(ledger: ImpressionLedger, clock: Hands) -> None:
    days = [date(2026, 10, 31), date(2026, 11, 1), date(2026, 11, 30), date(2026, 12, 1)]
    for power, clock.day in enumerate(days):
        ledger.report(f"{clock.day}", "dcba"[power], 7)
        ledger.report_many([(f"{clock.day}-{i}", "apple", 10**power) for i in range(6)])
    statement = ledger.statement(*month(2026, 11))
    assert statement.items == (ItemTotal("apple", 12, 660), ItemTotal("b", 1, 7), ItemTotal("c", 1, 7))
    assert (statement.impressions, statement.micros) == (14, 674)
    assert ledger.statement(days[0], days[0]).micros == 13
    assert ledger.statement(days[0], days[-1]).impressions == 28
    assert ledger.statement(date(2026, 11, 2), date(2026, 11, 29)).items == ()


def test_a_statement_as_json_rounds_nothing(ledger: ImpressionLedger, clock: Hands) -> None:
    ledger.report_many([(f"id-{i}", "apple", MOST_MICROS) for i in range(10)] + [("x", "apple", 1)])
    said = json.loads(json.dumps(ledger.statement(*month(2026, 11)).to_json()), parse_int=float)
    owed = str(10 * MOST_MICROS + 1)
    assert float(owed) != int(owed)  # as a number it would have been rounded
    assert said == {
        "first_day": "2026-11-01",
        "last_day": "2026-11-30",
        "impressions": 11,
        "micros": owed,
        "items": [{"item": "apple", "impressions": 11, "micros": owed}],
    }


def test_months_have_their_own_lengths() -> None:
    assert month(2028, 2) == (date(2028, 2, 1), date(2028, 2, 29))
    assert month(2026, 12) == (date(2026, 12, 1), date(2026, 12, 31))
    for bad in [(2026, 0), (2026, 13), (0, 1), (10_000, 1), ("2026", 1), (2026, 1.5)]:
        with pytest.raises(InvalidParameter, match="1 to 12"):
            month(*bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (date(2026, 11, 2), date(2026, 11, 1)),
        (datetime(2026, 11, 1, tzinfo=UTC), date(2026, 11, 2)),
        (date(2026, 11, 1), datetime(2026, 11, 2, tzinfo=UTC)),
        ("2026-11-01", date(2026, 11, 2)),
        (20_000, 20_001),
    ],
)
def test_a_statement_is_over_days_in_order(ledger: ImpressionLedger, first: Any, last: Any) -> None:
    with pytest.raises(InvalidParameter):
        ledger.statement(first, last)
