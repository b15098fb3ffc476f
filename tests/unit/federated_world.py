"""A federation small enough for a test: a few entities over forty items, with ledgers in a folder."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.entity import Entity
from tacit.errors import TacitError
from tacit.ledger import Budget
from tacit.messages.federated_prototypes import Manifest, Member, Role, catalogue_hash, public_of, sign
from tacit.server.federated_prototypes import Federation, Verdict

ITEMS = 40
USERS = 40
PROTOTYPES: dict[str, Any] = {"k": 3, "items_each": 8, "value_bound": 5.0, "rank": 2}


def key_of(name: str) -> bytes:
    return sha256(b"a key for tests: " + name.encode()).digest()


def rows_of(name: str, users: int = USERS, items: int = ITEMS) -> NDArray[np.float64]:
    """Fifteen items that many have, and some others: a head that stands out of the noise at epsilon 8."""
    rng = np.random.default_rng(int.from_bytes(name.encode()))
    had = rng.random((users, items)) < np.where(np.arange(items) < 15, 0.7, 0.1)
    return np.asarray(had * rng.integers(1, 6, (users, items)), dtype=np.float64)


class World:
    """``names`` contribute, ``receivers`` do not; all other arguments are those of the manifest."""

    def __init__(
        self,
        folder: Path,
        mechanism: str,
        names: Iterable[str] = ("a", "b", "c"),
        receivers: Iterable[str] = (),
        **own: Any,
    ) -> None:
        self.folder, self.catalogue = folder, [f"item-{place}" for place in range(ITEMS)]
        self.names, self.key = tuple(names), key_of("coordinator")
        constants = {"epsilon": 8.0, **({} if mechanism == "moments" else PROTOTYPES), **own}
        roster = [Member(name, public_of(key_of(name)).hex()) for name in self.names]
        roster += [Member(name, public_of(key_of(name)).hex(), Role.RECEIVER) for name in receivers]
        self.manifest = Manifest(
            catalogue=catalogue_hash(self.catalogue),
            items=ITEMS,
            users=USERS,
            roster=tuple(roster),
            coordinator=public_of(self.key).hex(),
            mechanism=mechanism,  # type: ignore[arg-type]
            **constants,
        )
        self._opened: dict[str, Entity] = {}

    def entity(self, name: str, rows: Any = None, *, again: bool = False, **own: Any) -> Entity:
        """The entity of this name; ``again`` opens it anew, as another process would."""
        if again and name in self._opened:
            self._opened.pop(name).close()
        if name not in self._opened:
            pure = self.manifest.mechanism.value == "grid"
            settings = {"budget": Budget(self.manifest.epsilon, 0.0 if pure else self.manifest.delta or 0.0), **own}
            self._opened[name] = Entity(
                rows_of(name) if rows is None else rows,
                self.folder / f"{name}.db",
                name=name,
                key=key_of(name),
                coordinator=public_of(self.key),
                catalogue=self.catalogue,
                **settings,
            )
        return self._opened[name]

    def federation(self) -> Federation:
        return Federation(self.manifest, self.key)

    def opening(self) -> bytes:
        return self.manifest.signed(self.key)

    def converse(self, run: Federation, until: str | None = None, silent: Iterable[str] = ()) -> dict[str, Verdict]:
        """Goes on until the run is over, or this stage is open. Returns the verdicts of the last stage that was closed."""
        verdicts: dict[str, Verdict] = {}
        while not run.done and run.stage != until:
            verdicts = self.exchange(run, silent)
            run.advance()
        return verdicts

    def exchange(self, run: Federation, silent: Iterable[str] = ()) -> dict[str, Verdict]:
        """One stage: every entity that is asked and not silent replies."""
        asked = {name: message for name, message in run.outgoing().items() if name in run.expected}
        replies = {name: self.entity(name).answer(message) for name, message in asked.items() if name not in silent}
        return {name: run.accept(reply) for name, reply in replies.items() if reply is not None}

    def close(self) -> None:
        for entity in self._opened.values():
            entity.close()


def resigned(
    data: bytes, key: bytes, header: dict[str, Any] | None = None, arrays: dict[str, Any] | None = None
) -> bytes:
    """The same message with some members or arrays changed, signed anew by the holder of a key."""
    from tacit.messages.federated_prototypes import open_frame

    frame = open_frame(data)
    return sign(
        key,
        {**frame.header, **(header or {})},
        {**frame.arrays, **(arrays or {})} if arrays is not None else frame.arrays,
    )


def no_rows() -> Any:
    """For an entity whose rows must not be read."""
    raise AssertionError("the rows were read")


def refusal(call: Any, *arguments: Any) -> str:
    try:
        call(*arguments)
    except TacitError as problem:
        return problem.code
    return "nothing was refused"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    """Makes worlds, each in a folder of its own."""
    worlds = []

    def make(mechanism: str, **own: Any) -> World:
        worlds.append(World(tmp_path / str(len(worlds)), mechanism, **own))
        worlds[-1].folder.mkdir()
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()
