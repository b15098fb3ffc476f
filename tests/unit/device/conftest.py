from pathlib import Path

import pytest

from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "me.db"
