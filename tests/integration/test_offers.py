"""Offers, displays and mail in both stores, and in ledgers of every earlier version."""

import threading
from pathlib import Path

import pytest

from tacit.errors import Conflict
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import (
    Budget,
    Consent,
    DisplayLedger,
    Engagements,
    ImpressionLedger,
    ItemTotal,
    MailLedger,
    Offered,
    PrivacyLedger,
    Settlement,
)
from tacit.ledger.chain import DAY, SECOND
from tacit.ledger.stores import open_store
from tacit.ledger.stores.interface import DISPLAYS, MIGRATIONS, OFFERS, VERSION, LedgerTable
from tacit.ledger.verification import check
from tests.integration.test_stores import run

OK, DUPLICATE, CONFLICT, UNKNOWN, EXPIRED = Settlement
START = 20_000 * DAY
EXPIRES = START // SECOND + 60
PRICES = (("apple", 5), ("pear", 7), ("fig", 0))


class Hand:
    """A clock that is set by hand."""

    at = START + 1

    def __call__(self) -> int:
        return self.at


def offered(token: str, slots: int = 1) -> Offered:
    return Offered(token, PRICES, "fruit", EXPIRES, slots)


def test_the_life_of_offers_is_the_same_in_both_stores(target: str) -> None:
    clock = Hand()
    with ImpressionLedger.create(target, clock=clock) as shop:
        shop.offer(offered("one"))
        shop.offer_many([offered("one"), *(offered(f"t{i}", 1 + i % 2) for i in range(100))])
        with pytest.raises(Conflict):
            shop.offer_many([offered("new"), offered("one", 2)])
        assert shop.settle("one", ("plum",)) is CONFLICT
        assert shop.settle("new", ("pear",)) is OK
        reports = [(f"t{i}", ("pear", "apple")[: 1 + i % 2]) for i in range(100)]
        assert shop.settle_many(reports) == [OK] * 100
        assert shop.settle_many([*reports, ("t1", ("pear",)), ("t0", ("fig",)), ("none", ("fig",))]) == [
            *[DUPLICATE] * 100,
            CONFLICT,
            CONFLICT,
            UNKNOWN,
        ]
        clock.at = (EXPIRES + 86_400) * SECOND + 1
        assert shop.settle("one", ("pear",)) is EXPIRED
        assert shop.forget() == 102
        assert shop.settle("one", ("pear",)) is UNKNOWN
        assert shop.settle_many(reports) == [DUPLICATE] * 100
        assert shop.settle("t1", ("pear",)) is CONFLICT
        assert [shop.engage("t0", 1), shop.engage("t0", 1), shop.engage("t0", 0), shop.engage("t2", 0)] == [
            OK,
            DUPLICATE,
            CONFLICT,
            OK,
        ]
        assert [shop.engage("t1", 1), shop.engage("none", 1)] == [CONFLICT, UNKNOWN]
        assert shop.engagements("pear") == Engagements(2, 1)
        assert list(shop.items()) == [ItemTotal("apple", 50, 250), ItemTotal("pear", 101, 707)]
        assert shop.balanced()
    assert check(target).sound


@pytest.mark.parametrize("size", [0, 1, 3_000])
def test_a_batch_is_one_transaction_in_both_stores(target: str, size: int) -> None:
    with ImpressionLedger.create(target) as shop:
        reports = [(f"{i:032x}", PRICES[i % 3][0]) for i in range(size)]
        head = shop.head()
        assert shop.settle_batch("b", "g", [*reports, ("x", "plum")], dict(PRICES)) is CONFLICT
        assert shop.head() == head
        assert shop.settle_batch("b", "g", reports, dict(PRICES)) is OK
        assert shop.settle_batch("b", "g", reports, dict(PRICES)) is DUPLICATE
        assert shop.settle_batch("b", "g", [*reports, ("x", "pear")], dict(PRICES)) is CONFLICT
        assert [shop.refused("b", "g"), shop.refused("b", "h"), shop.refused("c", "g")] == [True, False, False]
        assert sum(one.impressions for one in shop.items()) == size
        assert sum(one.micros for one in shop.items()) == size // 3 * 12 + 5 * (size % 3 > 0)
        assert shop.balanced()
    assert check(target).sound


def test_displays_and_mail_are_the_same_in_both_stores(target: str) -> None:
    clock = Hand()
    with DisplayLedger.create(target, clock=clock) as device, MailLedger.open(target) as mail:
        for token in "cab":
            assert device.choose("shop", token, (f"item-{token}",), EXPIRES, b"\x00").items == (f"item-{token}",)
            device.mark_shown("shop", token)
        assert device.choose("shop", "a", ("other",), EXPIRES).items == ("item-a",)
        device.mark_reported("shop", "b")
        assert [display.token for display in device.pending("shop")] == ["a", "c"]
        assert device.consent(True) == device.consent_state() == Consent(True, 20_000)
        clock.at = (EXPIRES + 86_400) * SECOND
        assert device.forget() == 0
        clock.at += 1
        assert device.forget() == 3
        assert device.consents() == [Consent(True, 20_000)]
        assert mail.add_many([("b", f"g{i % 2}", "pear", f"{9 - i}") for i in range(10)]) == [True] * 10
        assert mail.add("b", "g0", "pear", "9") is False
        assert mail.groups("b") == {"g0": 5, "g1": 5}
        assert mail.reports("b", "g1") == [(token, "pear") for token in "02468"]
        mail.close_batch("b")
        with pytest.raises(Conflict):
            mail.add("b", "g0", "pear", "new")
        assert mail.forget("b") == 10
        assert check(target).sound


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_ledger_of_an_earlier_version_is_brought_up_to_date_and_works(target: str, version: int) -> None:
    with PrivacyLedger.create(target) as ledger, ImpressionLedger.open(target) as shop:
        ledger.enrol("ward", Budget(3), protects=ONE_USER)
        ledger.charge("ward", "first", pure(1.0, ONE_USER))
        if version > 1:
            shop.report("old", "apple", 3)
        head = ledger.head()
    for migration in reversed(MIGRATIONS[version:]):  # as that version left it
        run(target, *(f"DROP TABLE {table.name}" for table in migration.tables))
    run(target, f"UPDATE facts SET value = '{version}' WHERE name = 'version'")
    opened: list[ImpressionLedger] = []
    threads = [
        threading.Thread(target=lambda: opened.append(ImpressionLedger.open(target, head=head))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run(target, "SELECT value FROM facts WHERE name = 'version'") == [(str(VERSION),)]
    for number, shop in enumerate(opened):
        shop.offer(Offered(f"t{number}", PRICES, "", 4_000_000_000))
        assert shop.settle(f"t{number}", ("apple",)) is OK
    assert opened[0].item("apple") == ItemTotal("apple", 3 + (version > 1), 15 + 3 * (version > 1))
    if version > 1:
        assert not opened[0].report("old", "apple", 3).fresh
    assert opened[0].balanced()
    for shop in opened:
        shop.close()
    with DisplayLedger.open(target) as device, MailLedger.open(target) as mail, PrivacyLedger.open(target) as ledger:
        device.consent(True)
        device.choose("shop", "t", ("pear",), EXPIRES)
        assert mail.add("b", "g", "pear", "t")
        assert ledger.statement("ward").charges == 1
    assert check(target, head=head).sound


@pytest.mark.parametrize("many", [1, 3])
def test_deleting_removes_the_rows_with_these_keys_and_no_others(target: str, many: int) -> None:
    ImpressionLedger.create(target).close()
    store = open_store(target)
    tables: list[tuple[LedgerTable, list[tuple[object, ...]]]] = [
        (OFFERS, [(bytes([i]), "x", i, b"") for i in range(6)]),
        (DISPLAYS, [(f"s{i % 2}", f"t{i // 2}", "", 0, 0, b"", b"") for i in range(6)]),
    ]
    for table, rows in tables:
        with store.write("impressions", [0]) as writer:
            writer.insert(table, rows)
        with store.write("impressions", [0]) as writer:
            writer.delete(table, [row[: len(table.key)] for row in rows[:many]])
            writer.delete(table, [])
            writer.delete(table, [(b"none",) if table is OFFERS else ("s0", "none")])
        with store.read() as reader:
            found = sorted(reader.stream(f"SELECT {', '.join(table.columns)} FROM {table.name}"))
        assert found == sorted(rows[many:])
    store.close()


def test_a_transaction_that_fails_deletes_nothing(target: str) -> None:
    ImpressionLedger.create(target).close()
    store = open_store(target)
    with store.write("impressions", [0]) as writer:
        writer.insert(OFFERS, [(b"1", "x", 1, b"")])

    def delete_and_fail() -> None:
        with store.write("impressions", [0]) as writer:
            writer.delete(OFFERS, [(b"1",)])
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        delete_and_fail()
    with store.read() as reader:
        assert list(reader.stream("SELECT expires FROM offers")) == [(1,)]
    store.close()


def test_processes_that_forget_at_once_count_every_offer_once(target: str, tmp_path: Path) -> None:
    clock = Hand()
    with ImpressionLedger.create(target, clock=clock) as shop:
        shop.offer_many(offered(f"t{i}") for i in range(3_000))
        clock.at += 3 * DAY
        others = [ImpressionLedger.open(target, clock=clock) for _ in range(3)]
        gone: list[int] = []
        threads = [threading.Thread(target=lambda ledger=ledger: gone.append(ledger.forget())) for ledger in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(gone) == 3_000
        for ledger in others:
            ledger.close()
