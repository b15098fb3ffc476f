from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engines.runs_over_files import Files
from tests.unit.federated_world import World
from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    worlds = []

    def make(mechanism: str, **own: Any) -> "Files":
        (tmp_path / str(len(worlds))).mkdir()
        worlds.append(World(tmp_path / str(len(worlds)), mechanism, **own))
        return Files(worlds[-1])

    yield make
    for world in worlds:
        world.close()
