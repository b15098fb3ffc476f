"""Sixteen writers in four processes on one budget: never above it, and never below it either."""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.verification import check
from tests.integration import writers
from tests.integration.racing import raced

PROCESSES, THREADS, IDS = 4, 4, 60
BUDGETS = {
    "lifetime": [Budget(20.0)],
    "windows": [Budget(20.0, per="day", sliding=True), Budget(25.0, per="month", sliding=True), Budget(30.0)],
}


def race(target: str, tmp_path: Path, kind: str) -> list[object]:
    """What every thread of every process came to."""
    go = tmp_path / "go"
    commands = []
    for seed in range(PROCESSES):
        arguments = {"target": target, "go": str(go), "kind": kind, "threads": THREADS, "ids": IDS, "seed": seed}
        commands.append([sys.executable, writers.__file__, "race", json.dumps(arguments)])
    return raced(commands, go, THREADS)


@pytest.mark.parametrize("budgets", BUDGETS.values(), ids=BUDGETS.keys())
def test_racing_writers_spend_exactly_the_budget(target: str, tmp_path: Path, budgets: list[Budget]) -> None:
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", budgets, protects=ONE_USER)
    receipts = race(target, tmp_path, "exhaust")
    assert sum(receipts) == 200
    with PrivacyLedger.open(target) as ledger:
        statement = ledger.statement("raced")
    assert statement.charges == 200
    assert statement.windows[0].left.amount == 0
    assert check(target).sound


def test_racing_writers_charge_each_release_id_once(target: str, tmp_path: Path) -> None:
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", Budget(IDS / 10), protects=ONE_USER)  # a second charge for any id would not fit
    results = race(target, tmp_path, "charge")
    entries = {one: {result[one][0] for result in results} for one in results[0]}
    assert all(len(numbers) == 1 for numbers in entries.values())
    fresh = Counter(one for result in results for one, (_, new) in result.items() if new)
    assert fresh == dict.fromkeys(entries, 1)
    with PrivacyLedger.open(target) as ledger:
        assert ledger.statement("raced").charges == IDS
    assert check(target).sound


def test_racing_writers_all_send_the_same_bytes_for_a_release_id(target: str, tmp_path: Path) -> None:
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", Budget(IDS / 10), protects=ONE_USER)
    results = race(target, tmp_path, "release")
    assert all(result == results[0] for result in results)
    assert len(set(results[0].values())) == IDS
    with PrivacyLedger.open(target) as ledger:
        for release_id, sent in results[0].items():
            assert ledger.charge("raced", release_id, writers.COST).stored.hex() == sent
    assert check(target).sound


def test_threads_that_share_one_transaction_keep_one_release(tmp_path: Path) -> None:
    """While another process holds the ledger they queue up; then one of them commits for all."""
    target, kept = str(tmp_path / "ledger.db"), []
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", Budget(1.0), protects=ONE_USER)
        ledger.charge_many([("raced", "first", writers.COST), ("raced", "shared", writers.COST)])
        other = sqlite3.connect(target, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        names = ["first"] + ["shared"] * 6
        threads = [
            threading.Thread(target=lambda name=name, n=n: kept.append((name, ledger.keep("raced", name, b"%d" % n))))
            for n, name in enumerate(names)
        ]
        for thread in threads:
            thread.start()
            time.sleep(0.05)
        other.execute("ROLLBACK")
        other.close()
        for thread in threads:
            thread.join()
        assert len({content for name, content in kept if name == "shared"}) == 1
        assert ledger.charge("raced", "shared", writers.COST).stored == dict(kept)["shared"]
    assert check(target).sound


def test_processes_that_start_together_create_one_ledger(tmp_path: Path) -> None:
    """Each says ``open_or_create`` at the same moment, as programs on a device that starts do."""
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom tacit.ledger import PrivacyLedger\n"
        "target, go = sys.argv[1:]\n"
        "while not Path(go).exists(): time.sleep(0.0005)\n"
        "sys.stdout.write(PrivacyLedger.open_or_create(target).head().ledger)\n"
    )
    for number in range(4):
        target, go = tmp_path / f"{number}.db", tmp_path / f"go-{number}"
        command = [sys.executable, "-c", program, str(target), str(go)]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "123456"
        ]
        go.touch()
        ended = [process.communicate(timeout=100) for process in running]
        assert [errors for _, errors in ended] == [""] * 6
        assert len({ledger for ledger, _ in ended}) == 1
