"""What a ledger object remembers between transactions, and what it hopes for, must never decide a charge wrongly."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from tacit.errors import BudgetExhausted, Conflict, InvalidParameter, LedgerUnavailable
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger, Receipt, Terms
from tacit.ledger.book import _MANY

TENTH = pure(0.1, ONE_USER)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        ledger.enrol_many(["a", "b"], Terms((Budget(epsilon=1.0),), ONE_USER))
    return tmp_path / "ledger.db"


def spent(ledger: PrivacyLedger, subject: str = "a") -> int:
    return ledger.statement(subject).spent.amount // 100_000_000


def test_two_objects_on_one_file_see_each_others_charges(place: Path) -> None:
    with PrivacyLedger.open(place) as one, PrivacyLedger.open(place) as other:
        for number in range(5):
            one.charge("a", f"one-{number}", TENTH)
            other.charge("a", f"other-{number}", TENTH)
        for ledger in (one, other):
            with pytest.raises(BudgetExhausted):
                ledger.charge("a", "one more", TENTH)
        assert spent(one) == 10


def test_a_row_is_read_again_only_after_somebody_else_wrote(place: Path) -> None:
    read: list[str] = []
    with PrivacyLedger.open(place) as ledger, PrivacyLedger.open(place) as other:
        ledger._store.connection().set_trace_callback(read.append)  # type: ignore[attr-defined]

        def looked_up() -> bool:
            found = any("FROM subjects WHERE" in statement for statement in read)
            read.clear()
            return found

        ledger.charge("a", "1", TENTH)
        assert looked_up()
        ledger.charge("a", "2", TENTH)
        assert not looked_up()
        other.charge("b", "1", TENTH)  # another subject, but of the same lane
        ledger.charge("a", "3", TENTH)
        assert looked_up()
        assert spent(ledger) == 3


def test_a_failed_commit_is_forgotten(place: Path) -> None:
    with PrivacyLedger.open(place) as ledger:
        ledger.charge("a", "1", TENTH)
        connection = ledger._store.connection()  # type: ignore[attr-defined]
        connection.execute("PRAGMA query_only = ON")
        with pytest.raises(LedgerUnavailable):
            ledger.charge("a", "2", TENTH)
        connection.execute("PRAGMA query_only = OFF")
        ledger.charge("a", "3", TENTH)
        assert spent(ledger) == 2
        left = [ledger.charge_many([("a", f"more-{n}", TENTH)])[0] for n in range(10)]
        assert sum(isinstance(outcome, Receipt) for outcome in left) == 8


@pytest.mark.parametrize("together", [1, _MANY, 3 * _MANY])
def test_charges_repeated_after_the_budget_is_spent_are_recognised(place: Path, together: int) -> None:
    with PrivacyLedger.open(place) as ledger:
        cheap = pure(1.0 / 64, ONE_USER)  # 64 of them fit exactly
        wished = [("a", f"release-{number}", cheap) for number in range(64)]
        first = ledger.charge_many(wished)
        assert all(isinstance(outcome, Receipt) and outcome.fresh for outcome in first)
    with PrivacyLedger.open(place) as ledger:  # remembers nothing
        again = [o for start in range(0, 64, together) for o in ledger.charge_many(wished[start : start + together])]
        assert [(o.entry, o.fresh) for o in again if isinstance(o, Receipt)] == [
            (o.entry, False) for o in first if isinstance(o, Receipt)
        ]
        assert ledger.statement("a").charges == 64


def test_an_optimistic_batch_with_repeats_and_refusals_is_decided_as_one_by_one(place: Path) -> None:
    with PrivacyLedger.open(place) as ledger:
        ledger.charge("a", "old", TENTH)
        wished = [("a", f"new-{n}", TENTH) for n in range(30)] + [
            ("a", "old", TENTH),
            ("a", "old", pure(0.2, ONE_USER)),
        ]
        outcomes = ledger.charge_many(wished)
    assert [isinstance(o, Receipt) and o.fresh for o in outcomes] == [True] * 9 + [False] * 23
    assert all(isinstance(o, BudgetExhausted) for o in outcomes[9:30])
    assert isinstance(outcomes[30], Receipt)
    assert isinstance(outcomes[31], Conflict)


def test_one_wrong_name_does_not_stop_the_others(place: Path) -> None:
    with PrivacyLedger.open(place) as ledger:
        outcomes = ledger.charge_many([("", "1", TENTH), ("a", "1", TENTH), ("a", "x" * 129, TENTH), ("a", "2", TENTH)])
    assert [type(outcome) for outcome in outcomes] == [InvalidParameter, Receipt, InvalidParameter, Receipt]


@pytest.mark.filterwarnings(
    "ignore:os.fork\\(\\) was called:RuntimeWarning"
)  # from jax, where an earlier test loaded it
def test_a_forked_child_charges_by_itself_even_if_a_thread_was_charging(place: Path) -> None:
    with PrivacyLedger.open(place) as ledger:
        ledger.charge("a", "parent", TENTH)
        holding, may_end = threading.Event(), threading.Event()

        def hold_the_lock() -> None:
            with ledger._store.write("privacy", [0]):
                holding.set()
                may_end.wait(1)  # the fork waits for the end of the transaction

        thread = threading.Thread(target=hold_the_lock)
        thread.start()
        holding.wait(10)
        child = os.fork()
        if child == 0:
            try:
                ledger.charge("a", "child", TENTH)
                os._exit(0)
            except BaseException:
                os._exit(1)
        thread.join()
        assert os.waitpid(child, 0)[1] == 0
        ledger.charge("a", "parent again", TENTH)
        assert spent(ledger) == 3


def test_a_damaged_subject_leaves_the_others_served(place: Path) -> None:
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE subjects SET total = 5 WHERE name = 'a'")
    with PrivacyLedger.open(place) as ledger:
        damaged, served = ledger.charge_many([("a", "1", TENTH), ("b", "1", TENTH)])
    assert "ledger-damaged" in str(damaged)
    assert isinstance(served, Receipt)
