"""The journal: whole records or none, the first one stands, readable by its owner only."""

import os
import stat
from pathlib import Path

import pytest

from tacit.entity.journal import Journal, Record
from tacit.errors import InvalidMessage, LedgerDamaged, LedgerUnavailable

RUN, OTHER = "a" * 64, "b" * 64
ONE, TWO = Record("1" * 64, b"reply\nwith a line", b"\x00secret"), Record("2" * 64, b"another")


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs")
    assert journal.read(RUN, "keys") is None
    assert journal.write(RUN, "keys", ONE) == ONE
    assert Journal(tmp_path / "runs").read(RUN, "keys") == ONE
    assert journal.read(OTHER, "keys") is None


def test_the_first_record_stands(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(RUN, "keys", ONE)
    assert Journal(tmp_path).write(RUN, "keys", TWO) == ONE
    assert journal.read(RUN, "keys") == ONE


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Journal(tmp_path / "runs").write(RUN, "keys", ONE)
        Journal(tmp_path / "runs").replace(RUN, "model", ONE)
    finally:
        os.umask(before)
    for path in [tmp_path / "runs", *(tmp_path / "runs").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_secrets_are_deleted_and_answers_stay(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(RUN, "keys", ONE)
    journal.write(OTHER, "keys", ONE)
    journal.forget_secrets(RUN)
    assert journal.read(RUN, "keys") == Record(ONE.message, ONE.reply)
    assert journal.read(OTHER, "keys") == ONE
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / RUN).iterdir())


def test_no_half_written_file_is_left(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(RUN, "keys", ONE)
    journal.write(RUN, "keys", TWO)
    assert [path.name for path in (tmp_path / RUN).iterdir()] == ["keys"]


def test_a_damaged_record_is_not_believed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(RUN, "keys", ONE)
    file = tmp_path / RUN / "keys"
    whole = file.read_bytes()
    for damaged in (b"", b"x", whole[:-1], whole + b"x", whole.replace(b"reply", b"REPLY"), b"[1]\nx", b"null\n"):
        file.write_bytes(damaged)
        with pytest.raises(LedgerDamaged):
            journal.read(RUN, "keys")


def test_a_run_is_named_by_its_hash_and_nothing_else(tmp_path: Path) -> None:
    for run in ("../" + "a" * 61, "short", "A" * 64):
        with pytest.raises(InvalidMessage):
            Journal(tmp_path).read(run, "keys")


def test_runs_are_listed_oldest_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert Journal(tmp_path / "nowhere").runs() == []
    for run in (OTHER, RUN):
        journal.write(run, "manifest", ONE)
    os.utime(tmp_path / OTHER / "manifest", ns=(1, 1))
    assert journal.runs() == [OTHER, RUN]


def test_a_disk_that_cannot_be_written_is_told_and_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable, match="Nothing was sent"):
        Journal(tmp_path / "file").write(RUN, "keys", ONE)
