"""Runs over folders that a test carries files between."""

import shutil
from typing import Any

from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.folders import Mailbox
from tests.unit.federated_world import World


class Files:
    """A coordinator's folder, and a mailbox for everybody; a courier between them."""

    def __init__(self, world: World) -> None:
        self.world, self.place = world, world.folder / "run"
        self.folder = CoordinatorFolder.open(self.place, world.manifest, world.key)
        self.boxes = {one.name: Mailbox(world.folder / "boxes" / one.name) for one in world.manifest.roster}

    def carry(self, *silent: str) -> None:
        """To the entities, which answer in new processes, and back."""
        for name, box in self.boxes.items():
            if name in silent:
                continue
            for file in (self.place / "outbox" / name).iterdir():
                shutil.copy(file, box.inbox / file.name)
            assert {one.outcome for one in box.answer(self.world.entity(name, again=True))} <= {"answered", "kept"}
            for file in box.outbox.iterdir():
                shutil.copy(file, self.place / "inbox" / file.name)

    def step(self, **own: Any) -> Any:
        return CoordinatorFolder(self.place).step(self.world.key, **own)

    @property
    def stage(self) -> str:
        return str(CoordinatorFolder(self.place).status()["stage"])
