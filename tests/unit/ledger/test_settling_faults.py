"""What cannot stand in a ledger of offers, damage to it, and many that report at once."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import InvalidParameter, LedgerDamaged, TacitError
from tacit.ledger import ImpressionLedger, Settlement
from tacit.ledger.chain import SECOND, digest
from tacit.ledger.tally import MOST_MICROS
from tacit.ledger.verification import check
from tests.unit.ledger.impression_reference import alter, rows
from tests.unit.ledger.offers_made import DUPLICATE, EXPIRES, OK, PRICES, TOKEN, UNKNOWN, offered
from tests.unit.ledger.small_ledger import Hand

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
