"""A small federation: four hospitals with rows of their own, a manifest, and the files that each party keeps."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.engines.settings import entity_settings, open_entity
from tacit.entity import Entity
from tacit.messages.federated_prototypes.frame import public_of
from tacit.messages.federated_prototypes.manifest import Manifest, Member, catalogue_hash

NAMES = ("east", "north", "south", "west")
ITEMS = tuple(f"drug-{number}" for number in range(30))
USERS = 60
EPSILON = 4.0
TELLTALE = 3.1415926  # a value that only raw rows hold
_SETTINGS = """\
name = "{name}"
key = "key"
coordinator = "{key}"
catalogue = "items.txt"
rows = "rows.csv"
ledger = "ledger.db"
mailbox = "../../../exchanges/{name}"
budget = {{ epsilon = 20.0, delta = 1e-4 }}
"""


@dataclass(frozen=True)
class World:
    """``folder`` holds one private folder for each entity, which only its own process is told of."""

    folder: Path
    coordinator: bytes
    keys: dict[str, bytes]

    @classmethod
    def make(cls, folder: Path) -> "World":
        rng = np.random.default_rng(5)
        world = cls(folder, os.urandom(32), {name: os.urandom(32) for name in NAMES})
        world.folder.mkdir(parents=True, exist_ok=True)
        write_key(world.coordinator_key, world.coordinator)
        tastes = rng.random((4, len(ITEMS))) < 0.3
        for name in NAMES:
            private = world.private(name)
            private.mkdir(parents=True)
            _write_rows(private / "rows.csv", _rows(tastes, rng))
            write_key(private / "key", world.keys[name])
            (private / "items.txt").write_text("\n".join(ITEMS))
            (private / "entity.toml").write_text(_SETTINGS.format(name=name, key=public_of(world.coordinator).hex()))
        return world

    @property
    def coordinator_key(self) -> Path:
        return self.folder / "coordinator.key"

    def private(self, name: str) -> Path:
        return self.folder / "private" / name

    def manifest(self, **more: object) -> Manifest:
        roster = tuple(Member(name, public_of(key).hex()) for name, key in self.keys.items())
        common = {"catalogue": catalogue_hash(ITEMS), "items": len(ITEMS), "users": USERS, "epsilon": EPSILON}
        return Manifest(**common, roster=roster, coordinator=public_of(self.coordinator).hex(), **more)  # type: ignore[arg-type]

    def prototypes(self) -> Manifest:
        return self.manifest(
            mechanism="tree", k=2, items_each=8, value_bound=5.0, rank=2, depth=3, min_entities=3, title="prototypes"
        )

    def moments(self) -> Manifest:
        return self.manifest(mechanism="moments", aggregation="secure", fewest=3, colluding=1, title="moments")


def entity(private: Path) -> Entity:
    """An entity as its own process opens it: from its settings and the files that they name."""
    return open_entity(entity_settings(private / "entity.toml"))


def write_key(file: Path, key: bytes) -> None:
    file.touch(mode=0o600)
    file.write_text(key.hex())


def _rows(tastes: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float64]:
    """Users of four kinds; every value is one that no release can hold by chance."""
    kinds = rng.integers(len(tastes), size=USERS)
    seen = tastes[kinds] & (rng.random((USERS, len(ITEMS))) < 0.7)
    return np.where(seen, TELLTALE, 0.0)


def _write_rows(file: Path, rows: NDArray[np.float64]) -> None:
    cells = [f"user-{user},{ITEMS[item]},{rows[user, item]}" for user, item in zip(*rows.nonzero(), strict=True)]
    file.write_text("\n".join(["user,item,value", *cells]))
