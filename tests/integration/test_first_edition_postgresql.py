"""Ledgers that version 0.1.0 kept in PostgreSQL: sound, with the same figures, charged further; an older schema is migrated."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

from tacit.errors import BudgetExhausted, Conflict, LedgerBehind
from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.ledger import Head, ImpressionLedger, Offered, PrivacyLedger, check, export, month, open_store, recompute
from tests.integration.conftest import PostgresqlServer
from tests.unit.first_edition import At, recorded, require_settled, unpacked

RECORDED = recorded("postgresql.json")
AT = At(*RECORDED["at"])
SCHEMA = "SELECT value FROM tacit.facts WHERE name = 'version'"
Opens = Callable[[str], "Kept"]


@dataclass(frozen=True)
class Kept:
    """A ledger as 0.1.0 left it in a database, and what 0.1.0 answered about it."""

    uri: str
    said: dict[str, Any]
    export: Path

    @property
    def head(self) -> Head:
        return Head.from_json(self.said["head"])


@pytest.fixture
def kept(postgresql: PostgresqlServer, tmp_path: Path) -> Iterator[Opens]:
    def restore(name: str) -> Kept:
        folder, uri = unpacked("postgresql", tmp_path), postgresql.new_database()
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute((folder / f"{name}.sql").read_bytes())
        return Kept(uri, RECORDED["ledgers"][name], folder / f"{name}.jsonl")

    yield restore
    postgresql.drop_databases()


def never() -> NoReturn:
    raise AssertionError("something was drawn that had been kept")


@pytest.mark.parametrize("name", ["lanes", "version-1"])
def test_it_says_what_it_said(kept: Opens, postgresql: PostgresqlServer, name: str) -> None:
    ledger_kept = kept(name)
    said = ledger_kept.said
    assert postgresql.run(SCHEMA, ledger_kept.uri) == [({"lanes": "3", "version-1": "1"}[name],)]
    with PrivacyLedger.open(ledger_kept.uri, head=ledger_kept.head, clock=AT) as ledger:
        assert ledger.head() == ledger_kept.head
        assert sorted(ledger.subjects()) == sorted(said["names"])
        for subject, (guarantee, content) in said["kept"].items():
            assert ledger.release(subject, "kept", Guarantee.from_json(guarantee), never).hex() == content
        assert {subject: ledger.statement(subject).to_json() for subject in said["names"]} == said["statements"]
        with ImpressionLedger.beside(ledger) as shop:
            assert [total.to_json() for total in shop.items()] == said["items"]
            assert shop.statement(*month(2026, 4)).to_json() == said["month"]
    assert postgresql.run(SCHEMA, ledger_kept.uri) == [("3",)]
    assert check(ledger_kept.uri, head=ledger_kept.head).to_json() == said["checked"]
    assert {statement["terms"]["accounting"] for statement in said["statements"].values()} == {"basic", "zcdp", "pld"}


@pytest.mark.parametrize("name", ["lanes", "version-1"])
def test_it_is_charged_and_appended_to(kept: Opens, name: str) -> None:
    ledger_kept = kept(name)
    said, names = ledger_kept.said, ledger_kept.said["names"]
    with (
        PrivacyLedger.open(ledger_kept.uri, clock=AT) as ledger,
        ImpressionLedger.open(ledger_kept.uri, clock=AT) as shop,
    ):
        for subject in names:
            ledger.charge(subject, "more", pure(0.125, ONE_USER))
        fresh = pure(0.25, ONE_USER)
        assert ledger.release(names[1], "fresh", fresh, lambda: b"\0drawn") == b"\0drawn"
        assert ledger.release(names[1], "fresh", fresh, never) == b"\0drawn"
        with pytest.raises(Conflict):
            ledger.charge(names[0], "c0", pure(0.25, ONE_USER))  # an id that was used with another guarantee
        with pytest.raises(BudgetExhausted):
            ledger.charge(names[0], "too much", pure(20.0, ONE_USER))
        assert {subject: ledger.statement(subject).charges for subject in names} == {
            subject: statement["charges"] + 1 + (subject == names[1])
            for subject, statement in said["statements"].items()
        }
        known = sum(total["impressions"] for total in said["items"])
        for place in range(12 if known else 0):
            assert not shop.report(f"id-{place}", "aé3"[place % 3], 10 * place).fresh
        assert all(shop.report(f"new-{place}", "a", 1).fresh for place in range(8))
        shop.offer(Offered("new", (("a", 5), ("b", 7)), "", 4_000_000_000))
        assert shop.settle("new", ("b",)).value == "ok"
        received, ones = shop.engagements("b")
        assert [shop.engage("new", bit).value for bit in (1, 1, 0)] == ["ok", "duplicate", "conflict"]
        assert shop.engagements("b") == (received + 1, ones + 1)
        batch = [(f"new-{place}", "ab"[place % 2]) for place in range(10, 22)]  # in all lanes
        settled = [
            shop.settle_batch("new", "g", reports, {"a": 3, "b": 4}).value for reports in (batch, batch, batch[1:])
        ]
        assert settled == ["ok", "duplicate", "conflict"]
        assert sum(total.impressions for total in shop.items()) == known + 21
        assert shop.balanced()
    assert check(ledger_kept.uri, head=ledger_kept.head).sound


def test_offers_batches_and_clicks_are_known(kept: Opens) -> None:
    ledger_kept = kept("lanes")
    said = ledger_kept.said
    with ImpressionLedger.open(ledger_kept.uri, clock=AT) as shop:
        require_settled(shop, said)
        assert shop.refused("c", "g")
    assert check(ledger_kept.uri).sound


def test_its_export_says_the_same(kept: Opens) -> None:
    ledger_kept, text = kept("lanes"), StringIO()
    store = open_store(ledger_kept.uri)
    export(store, text)
    store.close()
    assert text.getvalue() == ledger_kept.export.read_text(encoding="utf-8")
    recomputed = recompute(text.getvalue().splitlines())
    assert recomputed.findings.sound
    for subject, statement in ledger_kept.said["statements"].items():
        assert recomputed.statement(subject, AT()).to_json() == statement


def test_damage_and_a_lost_tail_are_noticed(kept: Opens, postgresql: PostgresqlServer) -> None:
    ledger_kept = kept("lanes")
    (position, link), *others = ledger_kept.head.books["privacy"]
    later = {**ledger_kept.head.books, "privacy": ((position + 1, link), *others)}
    with pytest.raises(LedgerBehind):
        PrivacyLedger.open(ledger_kept.uri, head=Head(ledger_kept.head.ledger, later))
    postgresql.run("UPDATE tacit.entries SET amount = 0 WHERE release_id = 'kept'", ledger_kept.uri)
    assert not check(ledger_kept.uri).sound
