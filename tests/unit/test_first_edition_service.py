"""Both applications answer over what version 0.1.0 published and charged as that version did, letter for letter."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.first_edition import asked, comparable, recorded, running, unpacked, unsynced

__all__ = ["unsynced"]

ANSWERS: list[list[Any]] = recorded("answers.json")
KEYS = recorded("stores.json")["service"]["keys"]


@pytest.mark.parametrize("name", ["server", "curator"])
def test_an_application_answers_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [one for one in os.environ if one.startswith("TACIT_SERVE_")]:
        monkeypatch.delenv(variable)
    folder = unpacked("ledgers", unpacked("stores", tmp_path))
    rows = [row[1:] for row in ANSWERS if row[0] == name]
    assert len(rows) > 5
    with running(name, folder) as app:
        for path, key, body, *said in rows:
            assert told(path, asked(app, path, KEYS.get(key, ""), body)) == told(path, said), path


def told(path: str, answer: list[Any]) -> list[Any]:
    """Of a problem all but its wording."""
    status, kind, text = answer
    if kind != "application/problem+json":
        return comparable(path, answer)
    problem = json.loads(text)
    del problem["detail"]
    return [status, kind, problem]
