"""Ledgers whose writes nobody waits for, where a test asks what was written and not whether a power cut would undo it."""

import os
import sqlite3
from pathlib import Path

import pytest

from tacit.ledger.stores import sqlite_files

_connect = sqlite_files.connect


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed process wrote still stays: the operating system has it. Programs that a test starts wait as ever."""

    def connect(path: Path, *, mode: str) -> sqlite3.Connection:
        connection = _connect(path, mode=mode)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(sqlite_files, "connect", connect)
    monkeypatch.setattr(os, "fsync", lambda file: None)
