"""Bytes that rot in the file of a SQLite ledger.

What is promised. A charge rests on the end of its lane, on the subject's row and terms and, where a budget has a period, on the
entry before its window. Each carries a seal, a digest or a link, so a charge after any damage to them is refused with a ledger
error, or is decided as on the undamaged history: what was acknowledged before and after stays within the budget. A stored
release comes back byte for byte, or not at all.

What is not. Damage that makes a whole row unfindable leaves nothing to compare with: a subject whose name is lost from the index
may be enrolled anew, with a fresh budget; a stored release that is lost is drawn again; a damaged write-ahead log loses the
latest commits. ``check`` sees the first two, a noted head the third. Seals are no signatures: they stop rot, not forgers.
"""

import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tacit.errors import BudgetExhausted, LedgerDamaged, LedgerError, TacitError, UnknownSubject
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, Head, PrivacyLedger
from tacit.ledger.verification import check

DAY = 86_400_000_000
START = 20_000 * DAY
TENTH = pure(0.1, ONE_USER)
FITS = 3  # charges in one window
SUBJECTS = [f"subject-{number}" for number in range(5)]
KINDS = {
    "lifetime": [Budget(0.3)],
    "day": [Budget(0.3, per="day"), Budget(5.0, per="month")],
    "any 24 hours": [Budget(0.3, per="day", sliding=True)],
}
VARIANTS = 400


class Ledger(NamedTuple):
    """A ledger's bytes, what it had acknowledged, and the clock at that moment."""

    content: bytes
    budgets: list[Budget]
    sent: dict[tuple[str, str], bytes]
    now: int
    head: Head


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where possible: thousands of charges follow, and none of them has to outlast the test."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)


def written(folder: Path, budgets: list[Budget]) -> Ledger:
    """Two days with two releases of each subject on each: one more fits into the window that is open."""
    moment, sent = START, {}
    path = folder / "clean.db"
    with PrivacyLedger.create(path, clock=lambda: moment) as ledger:
        for subject in SUBJECTS:
            ledger.enrol(subject, budgets, protects=ONE_USER)
        for day in (0, 1) if budgets[0].per != "lifetime" else (1,):
            for number in range(2):
                moment = START + day * DAY + number
                for subject in SUBJECTS:
                    release_id, content = f"{day}-{number}", os.urandom(24)
                    sent[subject, release_id] = ledger.release(
                        subject, release_id, TENTH, lambda content=content: content
                    )
        head = ledger.head()
    return Ledger(path.read_bytes(), budgets, sent, moment + 1, head)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three bytes altered, mostly where there is something to alter."""
    altered = bytearray(content)
    used = np.flatnonzero(np.frombuffer(content, np.uint8))
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.choice(used)) if rng.random() < 0.9 else int(rng.integers(len(altered)))
        altered[place] ^= 1 << int(rng.integers(8)) if rng.random() < 0.5 else int(rng.integers(1, 256))
    return bytes(altered)


class Aftermath(NamedTuple):
    """What came of using a damaged ledger."""

    overspent: bool
    other_bytes: bool
    problems: list[Exception]


def use(path: Path, ledger: Ledger, *, enrol_again: bool = False) -> Aftermath:
    """Charges every subject until that is refused, then asks for what was released before."""
    problems: list[Exception] = []
    overspent = other_bytes = False
    try:
        opened = PrivacyLedger.open(path, clock=lambda: ledger.now)
    except Exception as problem:
        return Aftermath(False, False, [problem])
    with opened:
        for subject in SUBJECTS:
            if enrol_again:
                _attempt(problems, opened.enrol, subject, ledger.budgets, protects=ONE_USER)
            made = 2
            for number in range(FITS + 2):
                receipt = _attempt(problems, opened.charge, subject, f"new-{number}", TENTH)
                if receipt is None:
                    break
                made += receipt.fresh
            overspent |= made > FITS
        for (subject, release_id), content in ledger.sent.items():
            again = _attempt(problems, opened.release, subject, release_id, TENTH, lambda: b"fresh")
            other_bytes |= again not in (None, content)
    return Aftermath(overspent, other_bytes, problems)


def _attempt(problems: list[Exception], call, *arguments, **named):
    """The outcome, or None where there is none; a refusal for want of budget is as it should be."""
    try:
        return call(*arguments, **named)
    except BudgetExhausted:
        return None
    except Exception as problem:
        problems.append(problem)
        return None


def variants(folder: Path, ledger: Ledger, seed: int, number: int) -> Iterator[Path]:
    rng = np.random.default_rng(seed)
    for variant in range(number):
        path = folder / f"{variant}.db"
        path.write_bytes(damaged(ledger.content, rng))
        yield path
        for one in folder.glob(f"{variant}.db*"):
            one.unlink()


def test_undamaged_ledger_has_room_for_one_more_charge_each(folder: Path) -> None:
    for kind, budgets in KINDS.items():
        (folder / kind).mkdir()
        ledger = written(folder / kind, budgets)
        path = folder / kind / "copy.db"
        path.write_bytes(ledger.content)
        assert use(path, ledger, enrol_again=True) == (False, False, [])
        assert check(path).sound


@pytest.mark.parametrize("kind", KINDS)
def test_entry_that_was_altered_is_noticed_before_a_charge_rests_on_it(folder: Path, kind: str) -> None:
    """Of every entry, each figure that a window is computed from, made larger or smaller."""
    ledger = written(folder, KINDS[kind])
    path = folder / "altered.db"
    for change in (
        "total = total + 1000000000000",
        "total = total - 100000000",
        f"at = at - {DAY}",
        f"at = at + {DAY}",
    ):
        path.write_bytes(ledger.content)
        with sqlite3.connect(path) as connection:
            connection.execute(f"UPDATE entries SET {change} WHERE release_id <> ''")
        connection.close()
        assert not check(path).sound
        assert not use(path, ledger).overspent, change


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *[
            ("subjects", name)
            for name in ("total", "total_delta", "total_unprotected", "at", "seal", "terms", "number")
        ],
        *[("lanes", name) for name in ("position", "link", "at", "seal")],
        *[("texts", name) for name in ("text", "digest")],
    ],
)
def test_sealed_row_that_was_altered_refuses_every_charge(folder: Path, table: str, column: str) -> None:
    ledger = written(folder, KINDS["lifetime"])
    path = folder / "altered.db"
    path.write_bytes(ledger.content)
    changes = {"link": "zeroblob(32)", "seal": "zeroblob(8)", "terms": "zeroblob(16)", "digest": "randomblob(16)"}
    changes |= {"text": "replace(text, '0.3', '9.3')"}
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = {changes.get(column, f'{column} + 7')}")
    connection.close()
    assert not check(path).sound
    drawn: list[int] = []
    with PrivacyLedger.open(path, clock=lambda: ledger.now) as opened:
        for subject in SUBJECTS:
            with pytest.raises(LedgerDamaged) as caught:
                opened.release(subject, "new", TENTH, lambda: drawn.append(1) or b"")
            assert subject not in str(caught.value)
    assert not drawn


@pytest.mark.parametrize("column", ["content", "seal", "entry"])
def test_stored_release_that_was_altered_is_not_sent(folder: Path, column: str) -> None:
    ledger = written(folder, KINDS["lifetime"])
    path = folder / "altered.db"
    path.write_bytes(ledger.content)
    changes = {"content": "zeroblob(length(content))", "seal": "zeroblob(8)", "entry": "-entry"}
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE releases SET {column} = {changes[column]}")
    connection.close()
    assert not check(path).sound
    after = use(path, ledger)
    if column == "entry":
        assert after.other_bytes, (
            "known limit: a stored release that cannot be found is drawn again, under its one charge"
        )
    else:
        assert not after.other_bytes
        assert all(type(problem) is LedgerDamaged for problem in after.problems)


@pytest.mark.parametrize("kind", KINDS)
def test_rotten_bytes_never_lead_to_overspending(folder: Path, kind: str) -> None:
    ledger = written(folder, KINDS[kind])
    outcomes: Counter[bool] = Counter()
    for path in variants(folder, ledger, seed=1, number=VARIANTS):
        after = use(path, ledger)
        outcomes[bool(after.problems)] += 1
        assert not after.overspent
    assert outcomes[True] > VARIANTS // 10, "the damage hit nothing"
    # Not everything is refused: some damage hits nothing that matters. A small file is mostly schema, where all of it is noticed.
    assert outcomes[False] > VARIANTS // 20


@pytest.mark.parametrize("kind", KINDS)
def test_rotten_bytes_that_mislead_the_ledger_are_found_by_the_check(folder: Path, kind: str) -> None:
    """Also where a program enrols its subjects at every start: a check before that would have stopped it."""
    ledger = written(folder, KINDS[kind])
    before = folder / "before"
    for path in variants(folder, ledger, seed=2, number=VARIANTS):
        shutil.copy(path, before)
        after = use(path, ledger, enrol_again=True)
        if after.overspent or after.other_bytes:
            assert not check(before).sound


def test_rotten_bytes_are_reported_as_damage_of_the_ledger(folder: Path) -> None:
    ledger = written(folder, KINDS["any 24 hours"])
    for path in variants(folder, ledger, seed=3, number=VARIANTS):
        for problem in use(path, ledger).problems:
            assert isinstance(problem, (LedgerError, UnknownSubject)), repr(problem)


def test_no_message_about_damage_shows_what_is_stored(folder: Path) -> None:
    assert not any("subject-" in str(problem) for problem, _ in undecodable(folder))


def test_no_traceback_about_damage_shows_what_is_stored(folder: Path) -> None:
    assert not any("subject-" in str(cause) for _, cause in undecodable(folder))


def undecodable(folder: Path) -> list[tuple[BaseException, BaseException | None]]:
    """The errors, and what caused them, where a name is no text any more."""
    ledger, problems = written(folder, KINDS["lifetime"]), []
    path = folder / "altered.db"
    for name in (subject.encode() for subject in SUBJECTS):
        path.write_bytes(ledger.content.replace(name, name[:-1] + b"\xff"))
        with pytest.raises(TacitError) as caught, PrivacyLedger.open(path) as opened:
            list(opened.subjects())
        problems.append((caught.value, caught.value.__cause__))
    return problems


def test_rotten_log_of_a_killed_process_is_noticed_by_whoever_noted_the_head(folder: Path) -> None:
    """The last commits are in the write-ahead log only; SQLite stops reading it where a sum does not match."""
    outcomes: Counter[str] = Counter()
    moment = START
    with PrivacyLedger.create(folder / "ledger.db", clock=lambda: moment) as ledger:
        ledger.enrol("s", Budget(1.0), protects=ONE_USER)
        for number in range(8):
            ledger.charge("s", f"{number}", TENTH)
        head = ledger.head()
        content, log = ((folder / f"ledger.db{ending}").read_bytes() for ending in ("", "-wal"))
    rng = np.random.default_rng(4)
    for variant in range(VARIANTS):
        path = folder / f"{variant}.db"
        path.write_bytes(content)
        (folder / f"{variant}.db-wal").write_bytes(damaged(log, rng))
        try:
            with PrivacyLedger.open(path, head=head) as opened:
                receipts = [opened.charge("s", f"{number}", TENTH) for number in range(8)]
                assert not any(receipt.fresh for receipt in receipts)
                outcomes["all there"] += 1
        except LedgerError as problem:
            outcomes[type(problem).__name__] += 1
        for one in folder.glob(f"{variant}.db*"):
            one.unlink()
    assert outcomes["LedgerBehind"] + outcomes["LedgerMissing"] > VARIANTS // 2, outcomes


def test_file_that_was_cut_short_is_refused(folder: Path) -> None:
    ledger = written(folder, KINDS["lifetime"])
    for length in range(0, len(ledger.content), 4096):
        path = folder / f"{length}.db"
        path.write_bytes(ledger.content[:length])
        after = use(path, ledger)
        assert after.problems
        assert not after.overspent
        assert not after.other_bytes
