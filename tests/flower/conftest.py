"""A network for each module, with the hospitals' own processes beside it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.flower.__main__ import write_app
from tacit.engines.folders import messages_in, read_message
from tacit.messages.federated_prototypes.frame import open_frame
from tacit.messages.federated_prototypes.manifest import Manifest
from tacit.messages.federated_prototypes.replies import SharedModel
from tacit.server.federated_prototypes import Federation
from tests.flower.network import Network, network
from tests.flower.world import NAMES, TELLTALE, World

HERE = Path(__file__).parent


class Site:
    """A network, a world, an app, and one process for each entity."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.world = World.make(net.folder / "world")
        self.app = write_app(net.folder / "app")
        self.exchanges = net.folder / "exchanges"
        for name in NAMES:
            settings = self.world.private(name) / "entity.toml"
            self.net.start(f"entity-{name}", "python", HERE / "serve.py", settings, **self.watched("entities"))

    def exchange(self, name: str) -> Path:
        return self.exchanges / name

    def watched(self, who: str) -> dict[str, str]:
        """Makes a process write down what it opens of the private folders, and what it imports of tacit."""
        return {
            "PYTHONPATH": str(HERE / "watch"),
            "TACIT_WATCHED": str(self.world.folder),
            "TACIT_WATCH_LOG": str(self.net.folder / f"{who}.watched"),
        }

    def seen(self, who: str) -> list[str]:
        return (self.net.folder / f"{who}.watched").read_text().splitlines()

    def begin(self, manifest: Manifest) -> CoordinatorFolder:
        """The folder of a new run."""
        return CoordinatorFolder.open(self.net.folder / manifest.title, manifest, self.world.coordinator)

    def settings(self, folder: CoordinatorFolder, stage_seconds: int = 60) -> dict[str, object]:
        return {
            "federation": str(folder.folder),
            "key": str(self.world.coordinator_key),
            "start_seconds": 90,
            "stage_seconds": stage_seconds,
        }

    def replies(self, name: str, manifest: Manifest) -> list[bytes]:
        """What an entity has laid into its outbox in this run."""
        found = [read_message(file) for file in messages_in(self.exchange(name) / "outbox")]
        return [one for one in found if one and open_frame(one).header["run"] == manifest.run]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with network() as net:
        yield Site(net)


def model_of(folder: CoordinatorFolder) -> SharedModel:
    """The model that the coordinator has written, read as an entity reads it."""
    frame = open_frame(read_message(folder.folder / "model.fp"))
    frame.verify(bytes.fromhex(folder.manifest.coordinator))
    return SharedModel.from_frame(frame, folder.manifest)


def without_flower(site: Site, manifest: Manifest, leaves: dict[str, str] | None = None) -> SharedModel:
    """The model that the same replies give when they are handed over one by one. ``leaves``: in which stage an entity is gone."""
    run = Federation(manifest, site.world.coordinator)
    gone: set[str] = set()
    while not run.done:
        gone |= {name for name, stage in (leaves or {}).items() if stage == run.stage}
        for name in NAMES:
            for reply in [] if name in gone else site.replies(name, manifest):
                if open_frame(reply).header["stage"] == run.stage:
                    assert run.accept(reply)
        run.advance()
    assert run.model is not None
    return run.model


def crossed(site: Site) -> bytes:
    """All that lay in the folders between nodes and entities."""
    return b"".join(read_message(file) for file in site.exchanges.rglob("*.fp"))


def holds_raw_values(content: bytes) -> bool:
    forms = [np.array([TELLTALE], dtype=kind).tobytes() for kind in ("<f4", "<f8", ">f4", ">f8")]
    return any(form in content for form in [*forms, str(TELLTALE).encode()])
