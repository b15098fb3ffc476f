"""Charges where a shortcut goes wrong: identities used twice, failed commits, swapped files, clocks that went back."""

import gc
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import Conflict, GuaranteeRefused, LedgerBehind, LedgerDamaged, LedgerError
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, pure
from tacit.ledger import Budget, PrivacyLedger, Receipt
from tacit.ledger.book import _MANY
from tacit.ledger.budgets import price
from tacit.ledger.chain import DAY
from tacit.ledger.verification import check
from tests.unit.ledger.small_ledger import LARGE, SMALL, START, Hand


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def ledger(path: Path, clock: Hand) -> Iterator[PrivacyLedger]:
    with PrivacyLedger.create(path, clock=clock) as created:
        created.enrol("anna", Budget(100), protects=ONE_USER)
        yield created


def put_in_place_of(path: Path, other: Path) -> None:
    """Restores a backup into the file of a running ledger, as the database's own tool does."""
    with closing(sqlite3.connect(other)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


def alter(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount
        connection.commit()


# Prices.


def test_a_guarantee_that_lives_where_another_one_died_is_charged_its_own_price(
    ledger: PrivacyLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.ledger.entries._MOST", 2)  # nothing keeps the earlier ones alive
    terms, places = ledger.terms("anna"), set()
    for number in range(200):
        guarantee = pure((number + 1) / 1000, ONE_USER)
        places.add(id(guarantee))
        assert ledger.charge("anna", f"r-{number}", guarantee).cost == price(guarantee, terms)
        del guarantee
        gc.collect(0)
    assert len(places) < 200, "no identity was used twice: this test has tested nothing"


def test_counted_releases_differ_also_by_nothing_but_their_loss(ledger: PrivacyLedger) -> None:
    each = Guarantee(1.0, ONE_USER, delta=1e-6, loss=Loss(LossKind.GAUSSIAN, 0.1))
    ledger.enrol("berta", Budget(1, 1e-5), protects=ONE_USER, accounting="pld", each=each)
    ledger.charge("berta", "as agreed", each)
    for loss in (Loss(LossKind.GAUSSIAN, 0.2), Loss(LossKind.GAUSSIAN, 0.05), None):
        with pytest.raises(GuaranteeRefused):
            ledger.charge("berta", "another loss", replace(each, loss=loss))
    assert ledger.statement("berta").charges == 1


@pytest.mark.parametrize("epsilon", [1e15, 1e100, 1e200, 1e308])
def test_a_loss_beyond_all_counting_is_refused_alone(ledger: PrivacyLedger, epsilon: float) -> None:
    ledger.enrol("rho", Budget(4, 1e-6), protects=ONE_USER, accounting="zcdp")
    wished = [("rho", "a", SMALL), ("rho", "huge", pure(epsilon, ONE_USER)), ("anna", "a", SMALL), ("rho", "b", SMALL)]
    outcomes = ledger.charge_many(wished)
    assert [isinstance(outcome, Receipt) for outcome in outcomes] == [True, False, True, True]
    assert isinstance(outcomes[1], GuaranteeRefused) or epsilon < 1e200  # a small one is counted, and does not fit
    assert ledger.statement("rho").charges == 2


# Texts of guarantees: each is written with the first charge that refers to it.


def test_a_guarantee_that_only_met_conflicts_is_written_with_its_first_charge(
    ledger: PrivacyLedger, path: Path
) -> None:
    ids = [f"r-{number}" for number in range(_MANY)]
    assert all(isinstance(one, Receipt) for one in ledger.charge_many([("anna", id, SMALL) for id in ids]))
    assert all(isinstance(one, Conflict) for one in ledger.charge_many([("anna", id, LARGE) for id in ids]))
    assert ledger.charge("anna", "new", LARGE).fresh
    assert ledger.statement("anna").charges == _MANY + 1
    assert check(path).sound


def test_a_guarantee_whose_batch_met_a_repeat_is_written_with_its_first_charge(
    ledger: PrivacyLedger, path: Path
) -> None:
    """Nothing of the batch fits but its repeats, so that the hope for new ones wrote nothing."""
    ledger.enrol("berta", Budget(1.7), protects=ONE_USER)
    ids = [f"r-{number}" for number in range(_MANY)]
    ledger.charge_many([("berta", id, SMALL) for id in ids])
    ledger.charge_many([*(("berta", id, SMALL) for id in ids), ("berta", "too much", LARGE)])
    assert ledger.charge("anna", "new", LARGE).fresh
    assert ledger.statement("anna").charges == 1
    assert check(path).sound


FAILURES = {  # what makes a commit fail, and what ends that
    "at its beginning": ("PRAGMA query_only = ON", "PRAGMA query_only = OFF"),
    "at its end": (
        "CREATE TEMP TRIGGER broken BEFORE UPDATE ON main.lanes BEGIN SELECT RAISE(ABORT, 'broken'); END",
        "DROP TRIGGER broken",
    ),
}


@pytest.mark.parametrize("failing", FAILURES)
@pytest.mark.parametrize("between", ["repeat", "conflict", "refusal", "nothing"])
def test_a_guarantee_whose_commit_failed_is_written_by_the_retry(
    ledger: PrivacyLedger, path: Path, between: str, failing: str
) -> None:
    ledger.charge("anna", "first", SMALL)
    connection = ledger._store.connection()  # type: ignore[attr-defined]
    connection.execute(FAILURES[failing][0])
    with pytest.raises(LedgerError):
        ledger.charge("anna", "second", LARGE)
    connection.execute(FAILURES[failing][1])
    if between != "nothing":
        release_id, guarantee = {
            "repeat": ("first", SMALL),
            "conflict": ("first", LARGE),
            "refusal": ("large", pure(1000, ONE_USER)),
        }[between]
        (outcome,) = ledger.charge_many([("anna", release_id, guarantee)])
        assert isinstance(outcome, Receipt) == (between == "repeat")
    assert ledger.charge("anna", "second", LARGE).fresh
    assert ledger.statement("anna").charges == 2
    assert check(path).sound


# A file that another history was put into while the ledger is open.


def test_another_history_of_the_same_length_is_noticed_by_a_running_ledger(
    ledger: PrivacyLedger, path: Path, tmp_path: Path
) -> None:
    ledger.charge("anna", "common", SMALL)
    put_in_place_of(tmp_path / "other.db", path)
    with PrivacyLedger.open(tmp_path / "other.db", clock=Hand()) as other:
        other.charge("anna", "theirs", LARGE)
    ledger.charge("anna", "ours", SMALL)
    put_in_place_of(path, tmp_path / "other.db")
    with pytest.raises(LedgerError) as caught:
        ledger.charge("anna", "next", SMALL)
    assert isinstance(caught.value, LedgerDamaged | LedgerBehind)
    with pytest.raises(LedgerError):  # and it does not get used to it
        ledger.charge("anna", "next", SMALL)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_history_that_went_back_is_noticed_by_a_running_ledger(
    ledger: PrivacyLedger, path: Path, tmp_path: Path, lost: int
) -> None:
    ledger.charge("anna", "common", SMALL)
    put_in_place_of(tmp_path / "old.db", path)
    for number in range(lost):
        ledger.charge("anna", f"lost-{number}", SMALL)
    put_in_place_of(path, tmp_path / "old.db")
    for _ in range(2):  # nor does it get used to it
        with pytest.raises(LedgerBehind):
            ledger.charge("anna", "next", SMALL)


def test_a_history_that_was_restored_as_it_was_goes_on(ledger: PrivacyLedger, path: Path, tmp_path: Path) -> None:
    ledger.charge("anna", "common", SMALL)
    put_in_place_of(tmp_path / "same.db", path)
    put_in_place_of(path, tmp_path / "same.db")
    assert ledger.charge("anna", "next", SMALL).fresh
    assert check(path).sound


# Time.


@pytest.mark.parametrize("lanes", [1, 3])
def test_an_enrolment_under_a_clock_that_went_back_is_not_earlier_than_what_came_before(
    path: Path, clock: Hand, lanes: int
) -> None:
    with PrivacyLedger.create(path, lanes=lanes, clock=clock) as ledger:
        early = [f"early-{number}" for number in range(12)]
        for subject in early:
            ledger.enrol(subject, Budget(1, per="day"), protects=ONE_USER)
            ledger.charge(subject, "r", SMALL)
        clock.at = START - 3 * DAY
        late = [f"late-{number}" for number in range(12)]
        ledger.enrol_many(late, ledger.terms("early-0"))
        assert all(ledger.charge(subject, "r", SMALL).at == START for subject in late)
    with closing(sqlite3.connect(path)) as connection:
        assert {at for (at,) in connection.execute("SELECT at FROM entries")} == {START}
        assert {at for (at,) in connection.execute("SELECT at FROM subjects")} == {START}
    assert check(path).sound


# Stored releases.


def test_stored_releases_that_changed_places_are_found_by_a_check_and_by_a_retry(
    ledger: PrivacyLedger, path: Path, tmp_path: Path
) -> None:
    for release_id in ("one", "two"):
        ledger.release("anna", release_id, SMALL, release_id.encode)
    alter(
        path,
        "UPDATE releases SET entry = -entry",
        "UPDATE releases SET entry = (SELECT sum(number) FROM entries WHERE release_id <> '') + entry",
    )
    assert not check(path).sound
    for release_id in ("one", "two"):
        with pytest.raises(LedgerDamaged):
            ledger.charge("anna", release_id, SMALL)
        with pytest.raises(LedgerDamaged):
            ledger.keep("anna", release_id, b"fresh noise")
        with pytest.raises(LedgerDamaged):
            ledger.release("anna", release_id, SMALL, lambda: pytest.fail("drawn for a damaged charge"))


@pytest.mark.parametrize("column", ["at", "amount", "delta", "total", "unprotected", "windowed"])
def test_nothing_is_kept_for_an_entry_that_was_altered(ledger: PrivacyLedger, path: Path, column: str) -> None:
    ledger.charge("anna", "whole", SMALL)
    ledger.charge("anna", "altered", SMALL)
    alter(path, f"UPDATE entries SET {column} = {column} + 1 WHERE release_id = 'altered'")
    with pytest.raises(LedgerDamaged):
        ledger.keep("anna", "altered", b"content")
    assert ledger.keep("anna", "whole", b"content") == b"content"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM releases").fetchone() == (1,)


def test_nothing_is_kept_for_an_entry_that_was_moved(ledger: PrivacyLedger, path: Path, tmp_path: Path) -> None:
    ledger.charge("anna", "moved", SMALL)
    ledger.close()
    shutil.copy(path, tmp_path / "copy.db")
    alter(tmp_path / "copy.db", "UPDATE entries SET number = number + 1 WHERE release_id = 'moved'")
    with PrivacyLedger.open(tmp_path / "copy.db") as reopened, pytest.raises(LedgerDamaged):
        reopened.keep("anna", "moved", b"content")
