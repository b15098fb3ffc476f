"""Entities and a coordinator that die at every durable step, and two processes that answer at once: one answer, one charge."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import files
from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.folders import Mailbox
from tacit.entity import journal
from tacit.errors import Conflict
from tacit.ledger import PrivacyLedger
from tacit.ledger.verification import check
from tacit.models.moments import STEPS
from tests.unit.federated_world import World

NAMES = ("a", "b", "c")
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"aggregation": "secure"}),
]


def forked(work: Callable[[], None]) -> int:
    """Does some work in a process of its own; its exit status, negative where it was killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def dying(at: int, work: Callable[[], None]) -> Callable[[], None]:
    """The same work by a process that is killed at its ``at``-th durable step, or the moment after it."""

    def until_then() -> None:
        steps = 0

        def counted(original: Callable[..., Any]) -> Callable[..., Any]:
            def step(*arguments: Any, **named: Any) -> Any:
                nonlocal steps
                for moment in ("before", "after"):
                    if steps == at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    steps += 1
                    if moment == "before":
                        found = original(*arguments, **named)
                return found

            return step

        for owner, name in (
            (PrivacyLedger, "charge"),
            (PrivacyLedger, "keep"),
            (PrivacyLedger, "enrol_many"),
            (os, "link"),
            (os, "replace"),
            (os, "fsync"),
        ):
            setattr(owner, name, counted(getattr(owner, name)))
        work()

    return until_then


def test_a_dying_process_dies() -> None:
    assert forked(lambda: None) == 0
    assert forked(dying(0, lambda: os.replace("x", "y"))) == -signal.SIGKILL


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    mechanism, own = request.param
    found = World(tmp_path, mechanism, NAMES, **own)
    yield found
    found.close()


@pytest.mark.parametrize("world", KINDS, ids=str, indirect=True)
def test_an_entity_that_dies_at_any_step_answers_once_and_is_charged_once(world: World, tmp_path: Path) -> None:
    run = world.federation()
    charged, deaths, refusals = 0, 0, 0
    backup, sent = tmp_path / "backup", tmp_path / "sent"
    world.entity("a")
    world.close()
    while not run.done:
        message = run.outgoing()["a"]
        backup.mkdir()
        copied(tmp_path, backup)
        charges = run.stage in ("prototypes", "popularity", "gram")
        charged += charges

        def answer(message: bytes = message) -> None:
            files.replace(sent, world.entity("a", again=True).answer(message) or b"")

        died, at = True, 0
        while died:
            copied(backup, tmp_path)
            sent.unlink(missing_ok=True)
            died = forked(dying(at, answer)) != 0
            if charges:
                refusals += died and refused_with_the_ledger_of(backup, world, run.stage)
            left = sent.read_bytes() if sent.exists() else None
            entity = world.entity("a", again=True)
            reply = entity.answer(message)
            assert reply is not None
            assert left in (None, reply)
            assert entity.answer(message) == reply
            assert entity.statement().charges == charged
            world.close()
            # Every step where something is released or unmasked; of the others, which only pass keys on, some.
            at, deaths = at + (1 if charges or run.stage.startswith("unmask-pop") else 3), deaths + died
        assert run.accept(reply)
        for name in ("b", "c"):
            assert run.accept(world.entity(name, again=True).answer(run.outgoing()[name]) or b"")
        run.advance()
        shutil.rmtree(backup)
    assert run.model is not None
    assert deaths >= 4 * len(world.manifest.stages)
    assert refusals >= 2 * charged
    assert check(str(tmp_path / "a.db")).sound
    if run.model.moments is not None:
        assert np.array_equal(run.model.moments.popularity * STEPS, total(tmp_path, "popularity"))


def copied(source: Path, target: Path, *, ledger_only: bool = False) -> None:
    """The files of entity a in one folder as they are in another."""
    for folder, act in ((target, _deleted), (source, lambda path: _copied(path, target))):
        for path in list(folder.glob("a.db*")):
            if path.is_file() or not ledger_only:
                act(path)


def _deleted(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _copied(path: Path, target: Path) -> None:
    (shutil.copytree if path.is_dir() else shutil.copy2)(path, target / path.name)


def refused_with_the_ledger_of(backup: Path, world: World, stage: str) -> bool:
    """Whether the journal, as a death left it, refuses the ledger of before the charge. All is left as it was."""
    now = world.folder / "now"
    now.mkdir()
    copied(world.folder, now)
    copied(backup, world.folder, ledger_only=True)
    answered = (world.folder / "a.db.runs" / world.manifest.run / stage).exists()
    try:
        world.entity("a", again=True).statement()
        refused = False
    except Conflict:
        refused = True
    world.close()
    assert refused or not answered  # an answer that is kept may have been sent
    copied(now, world.folder)
    shutil.rmtree(now)
    return refused


def total(folder: Path, stage: str) -> np.ndarray:
    shares = []
    for name in NAMES:
        with PrivacyLedger.open(folder / f"{name}.db") as ledger:
            kept = next(one for one in ledger.stored("users") if one.release_id.endswith(f" {stage}"))
            shares.append(np.frombuffer(kept.content.partition(b"\n")[2], dtype=np.int64))
    return np.asarray(np.sum(shares, axis=0))


@pytest.mark.parametrize("world", KINDS, ids=str, indirect=True)
def test_a_coordinator_that_dies_at_any_step_tells_one_story(world: World, tmp_path: Path) -> None:
    place = tmp_path / "run"
    CoordinatorFolder.open(place, world.manifest, world.key)
    boxes = {name: Mailbox(tmp_path / "boxes" / name) for name in NAMES}
    deaths = 0
    while CoordinatorFolder(place).status()["stage"] != "model":
        for name, box in boxes.items():
            for file in (place / "outbox" / name).iterdir():
                shutil.copy(file, box.inbox)
            # Whatever a coordinator wrote before it died, no entity is ever asked for a second answer.
            assert {one.outcome for one in box.answer(world.entity(name))} == {"answered"}
            for file in box.outbox.iterdir():
                shutil.copy(file, place / "inbox")
        status = -1
        at = 0
        while status != 0:
            status = forked(dying(at, lambda: CoordinatorFolder(place).step(world.key) and None))
            at, deaths = at + 3, deaths + (status != 0)
    assert deaths >= len(world.manifest.stages)
    model = CoordinatorFolder(place).rebuild(world.key).model
    assert model is not None
    assert model.contributors == 3
    if model.moments is not None:
        assert np.array_equal(model.moments.popularity * STEPS, total(tmp_path, "popularity"))
    for name in NAMES:
        assert world.entity(name).statement().charges == (2 if world.manifest.mechanism.value == "moments" else 1)


@pytest.mark.parametrize("world", KINDS, ids=str, indirect=True)
def test_processes_that_answer_at_once_send_the_same_bytes(world: World, tmp_path: Path) -> None:
    """The first to be on the disk counts for all; whoever comes too late with another answer sends none."""
    run = world.federation()
    world.entity("a")
    world.close()
    while not run.done:
        message = run.outgoing()["a"]
        start = time.monotonic() + 0.2
        children = []
        for number in range(4):

            def answer(number: int = number, start: float = start, message: bytes = message) -> None:
                entity = world.entity("a", again=True)
                while time.monotonic() < start:
                    pass
                files.replace(tmp_path / f"sent-{number}", entity.answer(message) or b"")

            child = os.fork()
            if child == 0:
                try:
                    answer()
                finally:
                    os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        sent = {file.read_bytes() for file in tmp_path.glob("sent-*")}
        assert len(sent) == 1
        assert sent == {world.entity("a", again=True).answer(message)}
        world.close()
        for file in tmp_path.glob("sent-*"):
            file.unlink()
        assert run.accept(sent.pop())
        for name in ("b", "c"):
            assert run.accept(world.entity(name, again=True).answer(run.outgoing()[name]) or b"")
        run.advance()
    entity = world.entity("a", again=True)
    assert entity.statement().charges == (2 if world.manifest.mechanism.value == "moments" else 1)


def test_the_journal_syncs_what_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record and the folder that lists it are both on the disk before an answer leaves."""
    synced: list[str] = []
    original = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")) or original(handle)
    )
    journal.Journal(tmp_path / "runs").write("a" * 64, "keys", journal.Record("1" * 64, b"reply", b"state"))
    assert any(Path(name).name.startswith(".keys.") for name in synced)
    assert str(tmp_path / "runs" / ("a" * 64)) in synced
