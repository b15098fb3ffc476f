"""Forks, interrupts, and a store that changes under a running process."""

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tacit.errors import LedgerBehind, LedgerDamaged
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.verification import check
from tests.integration import writers


def printed(program: str, **arguments: object) -> object:
    """What a program of ``writers`` said; it has to end well."""
    command = [sys.executable, writers.__file__, program, json.dumps(arguments)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=100, check=True).stdout)


@pytest.fixture
def raced(target: str) -> str:
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", Budget(1e6), protects=ONE_USER)
    return target


def test_forked_child_that_outlives_its_parent_shares_the_ledger_with_others(raced: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    arguments = json.dumps({"target": raced, "notes": str(notes), "charges": 1_500})
    subprocess.run([sys.executable, writers.__file__, "fork_while_open", arguments], timeout=60, check=True)
    opened_often = 0
    while opened_often < 400 and "done" not in notes.read_text() and "failed" not in notes.read_text():
        with PrivacyLedger.open(raced) as ledger:
            ledger.charge("raced", f"third-{opened_often}", writers.COST)
        opened_often += 1
    end = time.monotonic() + 60
    while "done" not in (lines := notes.read_text()) and "failed" not in lines and time.monotonic() < end:
        time.sleep(0.05)
    assert "failed" not in lines
    findings = check(raced)
    assert findings.sound, findings.to_json()
    with PrivacyLedger.open(raced) as ledger:
        assert ledger.statement("raced").charges == 1 + 1_500 + opened_often


def test_children_forked_while_other_threads_charge_can_charge(raced: str) -> None:
    assert printed("fork_while_threads_charge", target=raced, forks=3) == 3
    assert check(raced).sound


def test_child_that_was_forked_while_a_file_was_read_may_not_use_it(tmp_path: Path) -> None:
    """A connection that was open during the fork would forget the locks of this file. PostgreSQL has no such trouble."""
    path = tmp_path / "ledger.db"
    with PrivacyLedger.create(path) as ledger:
        ledger.enrol("raced", Budget(1e6), protects=ONE_USER)
    assert printed("fork_while_read", target=str(path)) == [["ledger-unavailable", "ledger-unavailable"], 1]
    assert check(path).sound


def test_thread_that_is_interrupted_while_it_commits_holds_up_nobody(raced: str) -> None:
    assert printed("interrupt", target=raced, leads=True) == ["interrupt", "later"]
    with PrivacyLedger.open(raced) as ledger:
        assert ledger.statement("raced").charges == 1
    assert check(raced).sound


def test_thread_that_is_interrupted_while_it_waits_holds_up_nobody(raced: str) -> None:
    assert printed("interrupt", target=raced, leads=False) == ["interrupt", "other", "later"]
    assert check(raced).sound


@pytest.mark.parametrize("then", ["shorter", "as long, but another", "longer, but another"])
def test_backup_that_is_restored_under_a_running_process_takes_no_charge(tmp_path: Path, then: str) -> None:
    """As after a failover to a copy that lags: the process knows better, and says so; a new one has to be started."""
    target = tmp_path / "ledger.db"
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", Budget(1.0), protects=ONE_USER)
        ledger.charge("raced", "one", pure(0.1, ONE_USER))
        with sqlite3.connect(target) as live, sqlite3.connect(":memory:") as old:
            live.backup(old)
            ledger.charge("raced", "two", pure(0.2, ONE_USER))
            old.backup(live)
        live.close()
        old.close()
        if then != "shorter":
            with PrivacyLedger.open(target) as other:
                for number in range(1 if then.startswith("as long") else 3):
                    other.charge("raced", f"another-{number}", pure(0.1, ONE_USER))
        for _ in range(2):
            with pytest.raises(LedgerBehind if then == "shorter" else LedgerDamaged):
                ledger.charge("raced", "three", pure(0.2, ONE_USER))
    assert check(target).sound
    with PrivacyLedger.open(target) as ledger:
        assert ledger.charge("raced", "three", pure(0.2, ONE_USER)).fresh
    assert check(target).sound


def test_two_ledger_objects_in_one_process_see_each_others_charges(raced: str) -> None:
    """Neither trusts what it remembers of a subject once the other has charged her."""
    with PrivacyLedger.open(raced) as one, PrivacyLedger.open(raced) as two:
        one.enrol("both", Budget(1.0), protects=ONE_USER)
        for number in range(5):
            assert one.charge("both", f"one-{number}", writers.COST).fresh
            assert two.charge("both", f"two-{number}", writers.COST).fresh
        for ledger in (one, two):
            with pytest.raises(writers.BudgetExhausted):
                ledger.charge("both", "more", writers.COST)
        assert one.statement("both").charges == two.statement("both").charges == 10
    assert check(raced).sound
