"""What a ledger refuses to open, to be charged and to be told, and heads that are another ledger's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import GuaranteeRefused, InvalidParameter, LedgerDamaged
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, ImpressionLedger, PrivacyLedger

TENTH = pure(0.1, ONE_USER)


@pytest.mark.parametrize("target", ["", None, 7, ":memory:", "mysql://host/ledger", "host=db password=secret"])
def test_a_ledger_is_a_file_or_a_postgresql_address_and_the_refusal_repeats_neither(target: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        PrivacyLedger.open(target)
    assert "secret" not in str(refused.value)


def test_what_is_no_charge_no_draw_or_no_report_is_refused_and_charges_nothing(path: Path) -> None:
    with PrivacyLedger.create(path) as ledger:
        ledger.enrol("ann", Budget(1), protects=ONE_USER)
        (outcome,) = ledger.charge_many([("ann", "r")])  # type: ignore[list-item]
        assert isinstance(outcome, InvalidParameter)
        with pytest.raises(InvalidParameter, match="a function that draws"):
            ledger.release("ann", "r", TENTH, b"drawn already")  # type: ignore[arg-type]
        with pytest.raises(GuaranteeRefused, match="too long to be kept"):
            ledger.charge("ann", "r", TENTH.assuming("x" * 100_000))
        assert ledger.statement("ann").charges == 0
    with ImpressionLedger.open(path) as shop:
        (told,) = shop.report_many([("id", "item")])  # type: ignore[list-item]
        assert isinstance(told, InvalidParameter)


def test_a_head_of_another_ledger_of_other_lanes_or_of_another_past_is_refused(tmp_path: Path) -> None:
    with PrivacyLedger.create(tmp_path / "one.db", lanes=2) as one, PrivacyLedger.create(tmp_path / "two.db") as two:
        for ledger in (one, two):
            ledger.enrol("ann", Budget(1), protects=ONE_USER)
        noted, other = one.head(), two.head()
    with pytest.raises(LedgerDamaged, match="not the ledger whose head"):
        PrivacyLedger.open(tmp_path / "one.db", head=other)
    with pytest.raises(LedgerDamaged, match="lanes"):
        PrivacyLedger.open(tmp_path / "one.db", head=replace(other, ledger=noted.ledger))
    forged = {book: tuple((position, "0" * 64) for position, _ in lanes) for book, lanes in noted.books.items()}
    with pytest.raises(LedgerDamaged, match="not the one that was noted"):
        PrivacyLedger.open(tmp_path / "one.db", head=replace(noted, books=forged))
    PrivacyLedger.open(tmp_path / "one.db", head=noted).close()
