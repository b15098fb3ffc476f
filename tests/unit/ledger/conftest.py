"""What several tests of this folder start from."""

from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import ImpressionLedger
from tacit.ledger.verification import check
from tests.unit.ledger.small_ledger import START, Hand


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def clock() -> Hand:
    return Hand(START + 12_345_678)


@pytest.fixture(params=[1, 5], ids=["one lane", "five lanes"])
def ledger(request: pytest.FixtureRequest, path: Path, clock: Hand) -> Any:
    with ImpressionLedger.create(path, lanes=request.param, clock=clock) as ledger:
        yield ledger
        assert ledger.balanced()
        assert check(path).sound
