"""Writers that are killed at any moment, by the hundred: budget may be lost, a promise never."""

import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tacit.errors import LedgerMissing
from tacit.ledger import PrivacyLedger
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.verification import check
from tests.integration import writers
from tests.integration.writers import noted

KILLS = 480
UNIT = 100_000_000  # 0.1 in nano-epsilon


def run(program: str, **arguments: object) -> list[object]:
    """What a program of ``writers`` printed; it has to end well."""
    command = [sys.executable, writers.__file__, program, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def require_what_was_noted(target: str, notes: Path) -> dict[str, bytes | None]:
    """Everything that was acknowledged is there, and nothing was drawn that is not; returns what is kept for each release."""
    lines = noted(notes)
    assert not lines["failed"], lines["failed"][:3]
    made = {(subject, release_id) for subject, release_id in lines["charged"]}
    made |= {(writers.AMPLE, release_id) for (release_id,) in lines["drawn"]}
    stored = charged_before(target, sorted(made))
    sent: dict[str, set[str]] = defaultdict(set)
    for release_id, content in lines["sent"]:
        sent[release_id].add(content)
    for release_id, contents in sent.items():
        assert contents == {stored[release_id].hex()}, "two different releases were sent for one charge"
    with ImpressionLedger.open(target) as impressions:
        for (impression,) in {tuple(line) for line in lines["reported"]}:
            number = int(impression.split("-")[1])
            assert not impressions.report(*writers.report_of(number, impression)).fresh, "an impression was lost"
    return {release_id: stored[release_id] for release_id in sent}


def charged_before(target: str, made: list[tuple[str, str]]) -> dict[str, bytes | None]:
    """What is kept for each of these charges; none of them may be new to the ledger."""
    with PrivacyLedger.open(target) as ledger:
        receipts = ledger.charge_many((subject, release_id, writers.COST) for subject, release_id in made)
    assert not any(receipt.fresh for receipt in receipts), "a charge was acknowledged or drawn for, and is lost"
    return {release_id: receipt.stored for (_, release_id), receipt in zip(made, receipts, strict=True)}


def test_line_that_was_torn_by_a_kill_is_no_note_and_spoils_no_other(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    note = writers._noting(str(notes))
    note("charged", "ample", "c-1")
    whole = notes.read_bytes()
    for length in range(len(whole)):  # wherever the page ended
        notes.write_bytes(whole + whole[:length])
        note("charged", "ample", "c-2")
        assert noted(notes) == {"charged": [["ample", "c-1"], ["ample", "c-2"]]}


def test_kills_lose_budget_but_never_overspend_nor_lose_what_was_acknowledged(target: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    writers.prepare(target)
    head, awaited = None, 0
    for round_ in range(4):  # the head that was noted between two rounds of kills stays in the ledger
        ((killed, begun),) = run("nursery", target=target, notes=str(notes), kills=KILLS // 4, at_once=3, seed=round_)  # type: ignore[misc]
        assert killed == KILLS // 4
        awaited += begun
        require_what_was_noted(target, notes)
        findings = check(target, head=head)
        assert findings.sound, findings.to_json()
        with PrivacyLedger.open(target, head=head) as ledger:
            head = ledger.head()
            tight, ample = ledger.statement(writers.TIGHT), ledger.statement(writers.AMPLE)
        assert tight.spent.amount <= writers.TIGHT_CHARGES * UNIT
        assert tight.spent.amount == tight.charges * UNIT
        assert ample.spent.amount == ample.charges * UNIT
        assert ample.windows[1].spent == ample.spent
        with ImpressionLedger.open(target, head=head) as impressions:
            assert impressions.balanced()
    lines = noted(notes)
    # However slow the machine is: most writers were killed in the middle of a job, or between two of theirs.
    assert len(lines["started"]) >= awaited > KILLS // 2, "the writers were killed before they did anything"
    assert min(len(lines[kind]) for kind in ("charged", "sent", "reported", "drawn")) > 20


def test_retrying_everything_after_the_kills_reaches_exactly_the_sums_of_every_job_done_once(
    target: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    writers.prepare(target)
    run("nursery", target=target, notes=str(notes), kills=60, at_once=3, seed=9)
    before = require_what_was_noted(target, notes)
    run("do_all", target=target, notes=str(notes))
    run("do_all", target=target, notes=str(notes))
    assert before.items() <= require_what_was_noted(target, notes).items()
    numbers = range(writers.JOBS)
    with PrivacyLedger.open(target) as ledger:
        ample, tight = ledger.statement(writers.AMPLE), ledger.statement(writers.TIGHT)
        assert ample.charges == sum(number % 4 in (0, 1) for number in numbers)
        assert ample.spent.amount == ample.charges * UNIT
        assert tight.charges == writers.TIGHT_CHARGES
        assert tight.windows[0].left.amount == 0
    wanted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for number in numbers:
        if number % 4 == 3:
            wanted[f"item-{number % 5}"][0] += writers.BATCH
            wanted[f"item-{number % 5}"][1] += writers.BATCH * number
    with ImpressionLedger.open(target) as impressions:
        assert {one.item: [one.impressions, one.micros] for one in impressions.items()} == wanted
        assert impressions.balanced()
    assert check(target).sound


def test_process_killed_while_it_creates_a_ledger_leaves_one_or_none(tmp_path: Path) -> None:
    """All of a ledger or nothing of it: what is there can be opened, or created once more."""
    outcomes: Counter[str] = Counter()
    (killed,) = run("creators", folder=str(tmp_path), kills=60, seed=3)
    assert killed > 10
    for number in range(60):
        target = tmp_path / f"{number}.db"
        try:
            PrivacyLedger.open(target).close()
            outcomes["there"] += 1
        except LedgerMissing:
            PrivacyLedger.create(target).close()
            outcomes["created once more"] += 1
        assert check(target).sound
    # how many of each is a matter of how busy the machine is
    assert len(outcomes) == 2, "all kills came too early, or all too late"


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_server_that_crashes_loses_no_acknowledged_charge(target: str, postgresql, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", writers.Budget(1e6), protects=writers.ONE_USER)
    commands = [
        [
            sys.executable,
            writers.__file__,
            "charge_on",
            json.dumps({"target": target, "notes": str(notes), "number": number, "seconds": 90.0}),
        ]
        for number in range(2)
    ]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    for _ in range(4):
        time.sleep(1.0)
        postgresql.stop("immediate")
        postgresql.start()
    Path(f"{notes}.stop").touch()
    made = [json.loads(process.communicate(timeout=100)[0]) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    lines = noted(notes)
    assert len(lines["unavailable"]) >= 2
    assert min(made) > 10
    charged_before(target, [("raced", release_id) for _, release_id in lines["charged"]])
    with PrivacyLedger.open(target) as ledger:
        statement = ledger.statement("raced")
    assert statement.spent.amount == statement.charges * UNIT
    assert check(target).sound
