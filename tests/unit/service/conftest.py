"""A small published model, made once; each test that changes one has a copy of its own."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.messages.store import Store
from tacit.models.items import Items
from tacit.service.settings import PREFIX, Settings, read_settings
from tacit.service.versions import publish
from tests.releases import changed
from tests.unit.server.small_store import small_store
from tests.unit.service.released import NAMES, counts_of


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting comes from outside the test, and none is left behind."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def store() -> Store:
    made = small_store()
    return changed(made, items=Items(made.items.ids, tuple(f"Film {place}" for place in range(len(made.items)))))


@pytest.fixture(scope="session")
def published(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one version, with counts. Not to be changed."""
    home = tmp_path_factory.mktemp("published")
    publish(home / "models", store, feature_names=NAMES, releases={"counts-1": counts_of(store)})
    return home


@pytest.fixture
def home(published: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(published, tmp_path / "home"))


@pytest.fixture
def settings(published: Path, tmp_path: Path) -> Callable[..., Settings]:
    def make(**given: Any) -> Settings:
        usual: dict[str, Any] = {"home": tmp_path, "models": published / "models", "rate": 0.0, "log_requests": False}
        return read_settings(**{**usual, **given})

    return make
