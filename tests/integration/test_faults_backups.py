"""Old backups and rewritten histories: only a head that was noted elsewhere can tell, and it always does."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tacit.errors import BudgetExhausted, InvalidParameter, LedgerBehind, LedgerDamaged, LedgerMissing
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, Head, PrivacyLedger
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.verification import check

TENTH = pure(0.1, ONE_USER)
Copy = Callable[[], str]


@pytest.fixture
def copy(target: str, request: pytest.FixtureRequest, tmp_path: Path) -> Copy:
    """Makes a copy of the ledger as it is now, and says where: of all its files, or of the whole database."""
    if not target.startswith("postgresql:"):
        return lambda: _copied_files(Path(target), tmp_path)
    server = request.getfixturevalue("postgresql")
    original = psycopg.conninfo.conninfo_to_dict(target)["dbname"]

    def copied() -> str:
        fresh = server.new_database()
        name = psycopg.conninfo.conninfo_to_dict(fresh)["dbname"]
        server.run(f"DROP DATABASE {name}")
        server.run(f"CREATE DATABASE {name} TEMPLATE {original}")
        return fresh

    return copied


def _copied_files(file: Path, tmp_path: Path) -> str:
    folder = tmp_path / f"copy-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    for one in file.parent.glob(f"{file.name}*"):
        shutil.copy(one, folder)
    return str(folder / file.name)


def begun(target: str) -> None:
    with PrivacyLedger.create(target, lanes=2) as ledger:
        ledger.enrol("s", Budget(0.5), protects=ONE_USER)
        ledger.enrol("t", Budget(0.5), protects=ONE_USER)
        ledger.charge("s", "one", TENTH)


def test_old_backup_is_refused_by_whoever_noted_the_head(target: str, copy: Copy) -> None:
    begun(target)
    backup = copy()
    with PrivacyLedger.open(target) as ledger:
        ledger.charge("s", "two", TENTH)
        head = ledger.head()
    with pytest.raises(LedgerBehind, match="an old backup"):
        PrivacyLedger.open(backup, head=head)
    with pytest.raises(LedgerBehind):
        ImpressionLedger.open(backup, head=head)
    assert not check(backup, head=head).sound
    PrivacyLedger.open(target, head=head).close()
    assert check(target, head=head).sound


def test_head_survives_being_written_down(target: str, copy: Copy) -> None:
    begun(target)
    backup = copy()
    with PrivacyLedger.open(target) as ledger:
        ledger.charge("t", "two", TENTH)
        head = Head.from_json(json.loads(json.dumps(ledger.head().to_json())))
        ledger.charge("s", "three", TENTH)
    PrivacyLedger.open(target, head=head).close()
    with pytest.raises(LedgerBehind):
        PrivacyLedger.open(backup, head=head)


def test_old_backup_without_a_head_looks_sound_and_spends_twice(target: str, copy: Copy) -> None:
    """The limit that the head is for: a ledger that is whole but old cannot know it. What it had forgotten is spent again."""
    begun(target)
    backup = copy()
    with PrivacyLedger.open(target) as ledger:
        for number in range(4):
            ledger.charge("s", f"true-{number}", TENTH)
        with pytest.raises(BudgetExhausted):
            ledger.charge("s", "too much", TENTH)
    assert check(backup).sound
    with PrivacyLedger.open(backup) as ledger:
        for number in range(4):
            assert ledger.charge("s", f"again-{number}", TENTH).fresh


def test_rewritten_history_of_the_same_length_is_refused(target: str, copy: Copy) -> None:
    begun(target)
    backup = copy()
    with PrivacyLedger.open(target) as ledger:
        ledger.charge("s", "two", TENTH)
        head = ledger.head()
    with PrivacyLedger.open(backup) as ledger:
        ledger.charge("s", "something else", TENTH)
        ledger.charge("s", "and more", TENTH)
    assert check(backup).sound
    with pytest.raises(LedgerDamaged, match="not the one that was noted"):
        PrivacyLedger.open(backup, head=head)
    assert not check(backup, head=head).sound


def test_old_backup_of_the_impressions_is_refused(target: str, copy: Copy) -> None:
    begun(target)
    with ImpressionLedger.open(target) as impressions:
        impressions.report("i-1", "item", 5)
    backup = copy()
    with ImpressionLedger.open(target) as impressions:
        impressions.report("i-2", "item", 5)
        head = impressions.head()
    with pytest.raises(LedgerBehind):
        ImpressionLedger.open(backup, head=head)
    with pytest.raises(LedgerBehind):
        PrivacyLedger.open(backup, head=head)


def test_head_of_another_ledger_is_refused(target: str, tmp_path: Path) -> None:
    begun(target)
    with PrivacyLedger.create(tmp_path / "other.db", lanes=2) as other:
        head = other.head()
    with pytest.raises(LedgerDamaged, match="not the ledger whose head"):
        PrivacyLedger.open(target, head=head)


def test_head_with_an_entry_that_was_altered_is_refused(target: str) -> None:
    begun(target)
    with PrivacyLedger.open(target) as ledger:
        written = ledger.head().to_json()
    for lane, (position, link) in enumerate(written["books"]["privacy"]):
        altered = json.loads(json.dumps(written))
        altered["books"]["privacy"][lane] = [position, link[:-1] + ("0" if link[-1] != "0" else "1")]
        with pytest.raises(LedgerDamaged):
            PrivacyLedger.open(target, head=Head.from_json(altered))
        altered["books"]["privacy"][lane] = [position + 1, link]
        with pytest.raises(LedgerBehind):
            PrivacyLedger.open(target, head=Head.from_json(altered))


@pytest.mark.parametrize(
    "head",
    [None, 5, {}, {"ledger": "x"}, {"books": {}}, {"ledger": "x", "books": [1]}, {"ledger": "x", "books": {"p": 1}}],
)
def test_what_is_no_head_is_refused(head: object) -> None:
    with pytest.raises(InvalidParameter):
        Head.from_json(head)


def test_file_copied_without_its_log_is_refused_by_whoever_noted_the_head(tmp_path: Path) -> None:
    """A copy of the one file, made while the ledger was in use, lacks what is still in the write-ahead log."""
    target = tmp_path / "ledger.db"
    begun(str(target))
    with PrivacyLedger.open(target) as ledger:
        ledger.charge("s", "two", TENTH)
        head = ledger.head()
        assert (tmp_path / "ledger.db-wal").stat().st_size > 0
        alone = tmp_path / "alone"
        alone.mkdir()
        shutil.copy(target, alone)
        whole = _copied_files(target, tmp_path)
    with pytest.raises(LedgerBehind):
        PrivacyLedger.open(alone / "ledger.db", head=head)
    with PrivacyLedger.open(whole, head=head) as copied:
        assert not copied.charge("s", "two", TENTH).fresh


def test_lost_ledger_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    target = tmp_path / "ledger.db"
    begun(str(target))
    target.unlink()
    with pytest.raises(LedgerMissing):
        PrivacyLedger.open(target)
    assert not target.exists()
    target.touch()
    with pytest.raises(LedgerMissing):
        PrivacyLedger.open(target)


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_dump_that_is_restored_is_the_same_ledger(target: str, postgresql, tmp_path: Path) -> None:
    """Written out by pg_dump and read in again: every link and seal is as it was, up to where the dump was made."""
    tools = Path(postgresql._binaries)
    if not (tools / "pg_dump").exists() or not (tools / "psql").exists():
        pytest.skip("this PostgreSQL comes without pg_dump and psql")
    begun(target)
    with PrivacyLedger.open(target) as ledger:
        then = ledger.head()
        dump = subprocess.run([tools / "pg_dump", target], capture_output=True, check=True).stdout
        ledger.charge("s", "two", TENTH)
        now = ledger.head()
    restored = postgresql.new_database()
    subprocess.run(
        [tools / "psql", "-q", "-v", "ON_ERROR_STOP=1", restored], input=dump, capture_output=True, check=True
    )
    assert check(restored, head=then).sound
    PrivacyLedger.open(restored, head=then).close()
    with pytest.raises(LedgerBehind):
        PrivacyLedger.open(restored, head=now)
