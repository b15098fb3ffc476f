"""An impression ledger whose clock a test sets by days."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger.impressions import ImpressionLedger
from tests.unit.ledger.impressions_made import Hands


@pytest.fixture
def clock() -> Hands:
    return Hands(date(2026, 11, 15))


@pytest.fixture(params=[1, 3], ids=["one lane", "three lanes"])
def ledger(request: pytest.FixtureRequest, path: Path, clock: Hands) -> Any:
    with ImpressionLedger.create(path, lanes=request.param, clock=clock) as ledger:
        yield ledger
