"""The command, in the test's own process."""

import pytest

from tests.unit.cli.called import Command


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """For calls that end soon: a process of their own takes longer to begin than they take."""
    return Command(monkeypatch, capfd)
