"""The entry point of the command, in the test's own process: loading numpy for each call would take most of the time."""

import os
import sys
from typing import NamedTuple

import pytest

from tacit.cli import main
from tacit.service.settings import PREFIX


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Command:
    """Calls ``tacit``; its environment is as it was when the test ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capfd = monkeypatch, capfd
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            monkeypatch.delenv(name)

    def __call__(self, *words: object) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["tacit", *map(str, words)])
        before = dict(os.environ)
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            for name in set(os.environ) - set(before):
                del os.environ[name]
            os.environ.update(before)
        return Done(int(ended.value.code or 0), *self._capfd.readouterr())
