"""The check of the tables beside the books: every altered value is a finding, and a row that was deleted on purpose is none."""

import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest

from tacit.ledger import DisplayLedger, ImpressionLedger, MailLedger, Offered
from tacit.ledger.chain import SECOND
from tacit.ledger.stores import open_store
from tacit.ledger.stores.interface import BATCHES, CONSENTS, DISPLAYS, ENGAGEMENTS, MAIL, OFFERS, REFUSALS, LedgerTable
from tacit.ledger.verification import check
from tacit.ledger.verification.export import export, recompute
from tests.unit.ledger.small_ledger import START, Hand, build, copied

TABLES = (OFFERS, BATCHES, REFUSALS, ENGAGEMENTS, DISPLAYS, CONSENTS, MAIL)
COLUMNS = [pytest.param(table, column, id=f"{table.name}.{column}") for table in TABLES for column in table.columns]
EXPIRES = START // SECOND + 10**7


@pytest.fixture(params=[1, 3])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A ledger with something of everything in it."""
    copied(write_everything, tmp_path / "ledger.db", request.param)
    return tmp_path / "ledger.db"


def write_everything(path: Path, lanes: int) -> Hand:
    clock = build(path, lanes)
    with ImpressionLedger.open(path, clock=clock) as shop:
        shop.offer_many(Offered(f"t{i}", (("apple", 5), ("pear", 7)), "c", EXPIRES, 1 + i % 2) for i in range(6))
        shop.settle_many([("t0", ("apple",)), ("t1", ("pear", "apple")), ("t2", ("pear",))])
        shop.engage("t0", 1)
        shop.engage("t2", 0)
        shop.settle_batch("b", "g", [("x", "apple"), ("y", "pear")], {"apple": 1, "pear": 2})
        shop.settle_batch("b", "g", [("x", "apple")], {"apple": 1, "pear": 2})  # refused
    with DisplayLedger.open(path, clock=clock) as device:
        device.choose("shop", "t", ("pear",), EXPIRES, b"extra")
        device.consent(True)
        device.consent(False)
    with MailLedger.open(path, clock=clock) as mail:
        mail.add("b", "g", "pear", "t")
        mail.close_batch("c")
    assert check(path).sound
    return clock


def run(path: Path, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement, parameters).rowcount > 0
        connection.commit()


def _last(table: LedgerTable) -> str:
    """Which row: the last one; of a table whose rows have no numbers, the one that there is."""
    return "true" if table.by_key else f"rowid = (SELECT max(rowid) FROM {table.name})"


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_every_altered_value_is_found(path: Path, table: LedgerTable, column: str) -> None:
    other = {"int": f"{column} + 1", "text": f"{column} || 'x'", "bytes": f"CAST({column} || x'00' AS BLOB)"}
    run(path, f"UPDATE {table.name} SET {column} = {other[table.columns[column]]} WHERE {_last(table)}")
    findings = check(path)
    assert not findings.sound
    assert "pear" not in str(findings.findings)


@pytest.mark.parametrize(
    ("table", "column"), [p for p in COLUMNS if p.values[1] != "number"]
)  # that takes integers only
def test_values_of_another_type_are_found_and_raise_nothing(path: Path, table: LedgerTable, column: str) -> None:
    for value in {"int": [b"\xff", "many"], "text": [b"\xff\xfe"]}.get(table.columns[column], ["text", 7]):
        run(path, f"UPDATE {table.name} SET {column} = ? WHERE {_last(table)}", value)
        assert not check(path).sound


def test_an_engagement_without_its_impression_is_found(path: Path) -> None:
    seal = ENGAGEMENTS.seal_of(b"x" * 16, "pear", 1, 20_000)
    run(path, "INSERT INTO engagements VALUES (?, 'pear', 1, 20000, ?)", b"x" * 16, seal)
    assert "belongs to no impression" in str(check(path).findings)


def test_a_consent_that_was_removed_is_found(path: Path) -> None:
    run(path, "DELETE FROM consents WHERE number = 1")
    assert not check(path).sound


def test_what_is_deleted_on_purpose_is_no_finding(path: Path) -> None:
    for table in (OFFERS, DISPLAYS, MAIL):
        run(path, f"DELETE FROM {table.name}")
    assert check(path).sound


def test_an_export_holds_what_was_settled_and_nothing_of_offers_displays_or_mail(path: Path) -> None:
    store, out = open_store(path), StringIO()
    export(store, out)
    store.close()
    lines = out.getvalue().splitlines()
    recomputed = recompute(lines)
    assert recomputed.findings.sound
    with ImpressionLedger.open(path) as shop:
        assert list(recomputed.items) == sorted(shop.items())
        assert shop.balanced()
    assert {total.item: total[1:] for total in recomputed.items}["apple"] == (3, 5 + 5 + 1)
    assert not [line for line in lines if "extra" in line or '"shop"' in line]
