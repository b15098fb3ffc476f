"""Reading back what was kept: newest first, checked, and never a charge."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tacit.errors import InvalidParameter, LedgerDamaged, UnknownSubject
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger, Stored
from tacit.ledger.verification import check
from tests.unit.ledger.small_ledger import START, Hand

SMALL = pure(0.1, ONE_USER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def filled(path: Path) -> PrivacyLedger:
    clock = Hand()
    ledger = PrivacyLedger.create(path, clock=clock)
    for subject in ("one", "other"):
        ledger.enrol(subject, Budget(3), protects=ONE_USER)
    for number in range(3):
        clock.at = START + number
        ledger.release("one", f"id-{number}", SMALL, f"content {number}".encode)
        ledger.release("other", f"id-{number}", SMALL, b"of another".upper)
        ledger.charge("one", f"charged-only-{number}", SMALL)
    return ledger


def test_what_was_kept_comes_newest_first_and_only_the_subjects_own(path: Path) -> None:
    with filled(path) as ledger:
        assert list(ledger.stored("one")) == [
            Stored("id-2", START + 2, b"content 2"),
            Stored("id-1", START + 1, b"content 1"),
            Stored("id-0", START, b"content 0"),
        ]


def test_reading_charges_nothing(path: Path) -> None:
    with filled(path) as ledger:
        before = (ledger.head(), ledger.statement("one").charges)
        list(ledger.stored("one"))
        assert (ledger.head(), ledger.statement("one").charges) == before
    assert check(path).sound


def test_it_may_be_left_early_and_the_ledger_goes_on(path: Path) -> None:
    with filled(path) as ledger:
        with closing(ledger.stored("one")) as kept:
            assert next(kept).release_id == "id-2"
        ledger.release("one", "id-3", SMALL, b"more".upper)
        assert next(iter(ledger.stored("one"))) == Stored("id-3", START + 2, b"MORE")


def test_who_has_nothing_kept_and_who_is_not_there(path: Path) -> None:
    with PrivacyLedger.create(path) as ledger:
        ledger.enrol("idle", Budget(1), protects=ONE_USER)
        ledger.charge("idle", "charged-only", SMALL)
        assert list(ledger.stored("idle")) == []
        with pytest.raises(UnknownSubject):
            list(ledger.stored("nobody"))
        with pytest.raises(InvalidParameter):
            list(ledger.stored(""))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET release_id = 'id-9' WHERE release_id = 'id-1'",  # another slot's, by its name
        "UPDATE entries SET at = at + 1 WHERE release_id = 'id-1'",
        "UPDATE entries SET link = zeroblob(32) WHERE release_id = 'id-1'",
        "UPDATE entries SET link = zeroblob(32) WHERE number = (SELECT number - 1 FROM entries WHERE release_id = 'id-1' "
        "AND subject = (SELECT number FROM subjects WHERE name = 'one'))",  # the link before it
    ],
    ids=["name", "time", "link", "link before"],
)
def test_what_was_kept_for_an_entry_that_does_not_match_its_link_is_not_returned(damage: str, path: Path) -> None:
    filled(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with PrivacyLedger.open(path) as ledger, closing(ledger.stored("one")) as kept:
        assert next(kept).content == b"content 2"
        with pytest.raises(LedgerDamaged):
            next(kept)


def test_a_damaged_release_is_not_returned(path: Path) -> None:
    filled(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE releases SET content = ? WHERE content = ?", (b"content x", b"content 1"))
    with PrivacyLedger.open(path) as ledger, closing(ledger.stored("one")) as kept:
        assert next(kept).content == b"content 2"
        with pytest.raises(LedgerDamaged):
            next(kept)
