"""A disk that is full, a place that cannot be written, a store that somebody else holds: nothing is released, nothing is lost."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tacit.errors import LedgerUnavailable
from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.stores import sqlite_files
from tacit.ledger.verification import check
from tests.integration import writers


def prepared(target: str) -> PrivacyLedger:
    ledger = PrivacyLedger.create(target)
    ledger.enrol("limited", Budget(1e5), protects=ONE_USER)
    ledger.release("limited", "first", writers.COST, lambda: b"first")
    return ledger


def refuses_everything(ledger: PrivacyLedger) -> str:
    """Nothing can be charged, so nothing is drawn; returns the message."""
    drawn: list[int] = []
    with pytest.raises(LedgerUnavailable) as caught:
        ledger.release("limited", "second", writers.COST, lambda: drawn.append(1) or b"second")
    assert not drawn
    with pytest.raises(LedgerUnavailable):
        ledger.charge("limited", "third", writers.COST)
    with pytest.raises(LedgerUnavailable):
        ledger.enrol("another", Budget(1.0), protects=ONE_USER)
    message = str(caught.value)
    assert "limited" not in message
    assert "second" not in message
    return message


def works_again(ledger: PrivacyLedger, target: str, charges: int) -> None:
    """As if nothing had happened: the refused charges were not made, and can be made now."""
    assert ledger.statement("limited").charges == charges
    assert ledger.release("limited", "first", writers.COST, lambda: b"other") == b"first"
    assert ledger.release("limited", "second", writers.COST, lambda: b"second") == b"second"
    assert ledger.charge("limited", "third", writers.COST).fresh
    assert ledger.statement("limited").charges == charges + 2
    findings = check(target)
    assert findings.sound, findings.to_json()


@contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[None]:
    """Something mounted at ``place``, where that is permitted."""
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 512):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


def test_full_disk_refuses_charges_until_there_is_space(tmp_path: Path) -> None:
    place = tmp_path / "small"
    with mounted(place, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        target = str(place / "ledger.db")
        with prepared(target) as ledger:
            ballast = fill(place)
            message = refuses_everything(ledger)
            assert "nothing may be released" in message
            ballast.unlink()
            works_again(ledger, target, charges=1)


def test_ledger_that_was_closed_on_a_full_disk_opens_when_there_is_space(tmp_path: Path) -> None:
    place = tmp_path / "small"
    with mounted(place, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        target = str(place / "ledger.db")
        prepared(target).close()
        ballast = fill(place)
        with pytest.raises(LedgerUnavailable), PrivacyLedger.open(target) as ledger:
            ledger.charge("limited", "second", writers.COST)
        ballast.unlink()
        with PrivacyLedger.open(target) as ledger:
            works_again(ledger, target, charges=1)


def test_disk_that_fills_while_charges_are_made_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    place = tmp_path / "small"
    with mounted(place, "-t", "tmpfs", "-o", "size=3m", "tmpfs"):
        target = str(place / "ledger.db")
        ballast = place / "ballast"
        ballast.write_bytes(bytes(1_000_000))
        with prepared(target) as ledger:
            sent, drawn = _releases_until_unavailable(ledger, 9_000)
        ballast.unlink()
        assert len(sent) > 10
        with PrivacyLedger.open(target) as ledger:
            for one, content in sent.items():
                assert ledger.charge("limited", one, writers.COST).stored == content
            for one in drawn - sent.keys():  # drawn, but nobody has seen it
                assert not ledger.charge("limited", one, writers.COST).fresh
        assert check(target).sound


def test_limit_on_the_size_of_files_refuses_charges_until_it_is_lifted(tmp_path: Path) -> None:
    target = str(tmp_path / "ledger.db")
    prepared(target).close()
    command = [sys.executable, writers.__file__, "meet_a_limit", json.dumps({"target": target, "spare": 200_000})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    made, message, refused_again, drawn_meanwhile, drawn, charges = json.loads(done.stdout)
    assert made > 10
    assert message.startswith("ledger-unavailable: ")
    assert "nothing may be released" in message
    assert refused_again
    assert drawn_meanwhile == 0
    assert drawn == 1
    assert charges == 1 + made + 1
    findings = check(target)
    assert findings.sound, findings.to_json()


def test_place_that_is_mounted_read_only_refuses_charges(tmp_path: Path) -> None:
    folder, view = tmp_path / "folder", tmp_path / "view"
    folder.mkdir()
    target = str(folder / "ledger.db")
    with prepared(target) as ledger, mounted(view, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(view)], check=True)
        with PrivacyLedger.open(view / "ledger.db") as readable:  # the writer keeps what a reader needs in place
            refuses_everything(readable)
            assert readable.statement("limited").charges == 1
        ledger.close()
        with pytest.raises(LedgerUnavailable):
            PrivacyLedger.open(view / "ledger.db")
    with PrivacyLedger.open(target) as ledger:
        works_again(ledger, target, charges=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="the modes of files do not bind root")
def test_file_without_write_permission_refuses_charges(tmp_path: Path) -> None:
    target = tmp_path / "ledger.db"
    prepared(str(target)).close()
    target.chmod(0o400)
    with pytest.raises(LedgerUnavailable), PrivacyLedger.open(target) as ledger:
        refuses_everything(ledger)
    target.chmod(0o600)
    with PrivacyLedger.open(target) as ledger:
        works_again(ledger, str(target), charges=1)


def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    """No kill can show this, only a power failure: the operating system keeps what a killed process wrote."""
    with prepared(str(tmp_path / "ledger.db")) as ledger:
        connection = ledger._store.connection()
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("loss", ["folder moved", "file removed", "file replaced", "second name"])
def test_file_that_is_not_where_it_was_takes_no_charge(tmp_path: Path, loss: str) -> None:
    """What is charged to it now would be gone, or would be charged beside another ledger in its place."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "ledger.db"
    with prepared(str(path)) as ledger:
        ledger.charge("limited", "before", writers.COST)
        match loss:
            case "folder moved":
                folder.rename(tmp_path / "elsewhere")
            case "file removed":
                path.unlink()
            case "file replaced":
                path.rename(folder / "old.db")
                prepared(str(path)).close()
            case "second name":
                (folder / "other.db").hardlink_to(path)
        for _ in range(2):
            with pytest.raises(LedgerUnavailable):
                ledger.charge("limited", "after", writers.COST)
            with pytest.raises(LedgerUnavailable):
                ledger.statement("limited")


def test_ledger_that_somebody_else_holds_is_unavailable_and_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_files, "_PATIENCE", 0.05)
    target = str(tmp_path / "ledger.db")
    with prepared(target) as ledger:
        other = sqlite3.connect(target, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        refuses_everything(ledger)
        other.execute("ROLLBACK")
        other.close()
        works_again(ledger, target, charges=1)


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_database_that_is_read_only_refuses_charges(target: str, postgresql) -> None:
    with prepared(target) as ledger:
        postgresql.set("default_transaction_read_only", "on")
        try:
            refuses_everything(ledger)
            with pytest.raises(LedgerUnavailable), PrivacyLedger.open(target) as fresh:
                fresh.charge("limited", "second", writers.COST)
        finally:
            _reset_read_only(postgresql)
        works_again(ledger, target, charges=1)


@pytest.mark.parametrize("target", ["postgresql"], indirect=True)
def test_full_disk_of_the_server_refuses_charges_until_there_is_space(target: str, postgresql, tmp_path: Path) -> None:
    """The database lives in a tablespace on a small disk of its own; the server's log of changes does not."""
    place = Path(postgresql.folder) / "small"
    with mounted(place, "-t", "tmpfs", "-o", "size=24m", "tmpfs"):
        owner = (Path(postgresql.folder) / "data").stat()
        os.chown(place, owner.st_uid, owner.st_gid)
        postgresql.run(f"CREATE TABLESPACE small LOCATION '{place}'")
        try:
            postgresql.run("CREATE DATABASE crowded TEMPLATE template0 TABLESPACE small")
            crowded = postgresql.uri_of("crowded")
            with prepared(crowded) as ledger:
                ballast = fill(place)
                sent, drawn = _releases_until_unavailable(ledger, 20_000)
                made = ledger.statement("limited").charges
                assert 1 + len(drawn) <= made <= 1 + len(drawn) + 1
                ballast.unlink()
                for one, content in sent.items():
                    assert ledger.charge("limited", one, writers.COST).stored == content
                works_again(ledger, crowded, charges=made)
        finally:
            postgresql.run("DROP DATABASE IF EXISTS crowded WITH (FORCE)")
            postgresql.run("DROP TABLESPACE small")


def _releases_until_unavailable(ledger: PrivacyLedger, size: int) -> tuple[dict[str, bytes], set[str]]:
    """Releases something large again and again; returns what was sent and what was drawn."""
    sent: dict[str, bytes] = {}
    drawn: set[str] = set()

    def draw() -> bytes:
        drawn.add(one)
        return os.urandom(size)

    for number in range(5_000):
        one = f"r-{number}"
        try:
            sent[one] = ledger.release("limited", one, writers.COST, draw)
        except LedgerUnavailable as problem:
            assert "nothing may be released" in str(problem)  # noqa: PT017
            return sent, drawn
    raise AssertionError("the disk was never full")


def _reset_read_only(postgresql) -> None:
    with psycopg.connect(postgresql.uri, autocommit=True, options="-c default_transaction_read_only=off") as connection:
        connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        connection.execute("SELECT pg_reload_conf()")
    while postgresql.run("SHOW default_transaction_read_only") != [("off",)]:
        pass
