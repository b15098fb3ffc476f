"""A run in a folder, as its stages are carried: what counts is on the disk before it is told, and a new start goes on there."""

import os
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

import numpy as np
import pytest

from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.flower.rounds import RunFolder
from tacit.entity import Entity
from tacit.errors import TooFewEntities
from tacit.ledger import Budget
from tacit.messages.federated_prototypes.frame import public_of
from tacit.messages.federated_prototypes.manifest import Manifest, Member, catalogue_hash
from tacit.server.federated_prototypes import ReplyStatus

ITEMS = tuple(f"item-{number}" for number in range(12))
NAMES = ("a", "b", "c")
COORDINATOR = bytes(range(32))
KEYS = {name: bytes([number]) * 32 for number, name in enumerate(NAMES)}


def manifest(**more: object) -> Manifest:
    constants = {
        "catalogue": catalogue_hash(ITEMS),
        "items": len(ITEMS),
        "users": 40,
        "epsilon": 0.5,
        "aggregation": "none",
        "roster": tuple(Member(name, public_of(key).hex()) for name, key in KEYS.items()),
        "coordinator": public_of(COORDINATOR).hex(),
    }
    return Manifest(**{**constants, **more})  # type: ignore[arg-type]


def entities(folder: Path) -> dict[str, Entity]:
    rows = np.eye(len(ITEMS))
    return {
        name: Entity(
            rows,
            folder / f"{name}.db",
            name=name,
            key=key,
            coordinator=public_of(COORDINATOR),
            catalogue=ITEMS,
            budget=Budget(1.0, 1e-5),
        )
        for name, key in KEYS.items()
    }


@pytest.fixture
def folder(tmp_path: Path, unsynced: None) -> Path:
    return CoordinatorFolder.open(tmp_path / "run", manifest(), COORDINATOR).folder


def test_a_new_start_asks_only_those_whose_replies_are_not_stored(folder: Path, tmp_path: Path) -> None:
    known = entities(tmp_path)
    first = RunFolder(folder, COORDINATOR)
    assert set(first.outgoing()) == set(first.expected) == set(NAMES)
    reply = known["a"].answer(first.outgoing()["a"])
    assert reply is not None
    assert first.accept(reply).status is ReplyStatus.ACCEPTED
    assert first.accept(reply).status is ReplyStatus.REPEATED
    again = RunFolder(folder, COORDINATOR)  # as after a crash: the first one has told nobody
    assert set(again.outgoing()) == {"b", "c"}
    assert again.accept(reply).status is ReplyStatus.REPEATED
    assert (again.stage, again.done, again.needed) == ("popularity", False, 2)


def test_what_is_rejected_is_not_stored(folder: Path) -> None:
    run = RunFolder(folder, COORDINATOR)
    assert run.accept(os.urandom(100)).status is ReplyStatus.REJECTED
    assert list((folder / "inbox").iterdir()) == []


def test_a_stage_with_too_few_is_not_closed(folder: Path, tmp_path: Path) -> None:
    run = RunFolder(folder, COORDINATOR)
    reply = entities(tmp_path)["a"].answer(run.outgoing()["a"])
    assert reply is not None
    run.accept(reply)
    with pytest.raises(TooFewEntities):
        run.advance()
    assert RunFolder(folder, COORDINATOR).stage == "popularity"


def test_a_stage_is_closed_with_those_who_are_there(folder: Path, tmp_path: Path) -> None:
    known, run = entities(tmp_path), RunFolder(folder, COORDINATOR)
    while not run.done:
        for name, message in run.outgoing().items():
            if name != "c" and (reply := known[name].answer(message)) is not None:
                assert run.accept(reply).status is ReplyStatus.ACCEPTED
        run.advance()
    assert set(run.outgoing()) == set(NAMES)  # the model is for all
    assert run.expected == ()
    assert (folder / "model.fp").exists()
    assert set(RunFolder(folder, COORDINATOR).outgoing().values()) == set(run.outgoing().values())


def with_deadline(folder: Path, hours: float) -> RunFolder:
    moment = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    CoordinatorFolder.open(folder, manifest(deadline=moment), COORDINATOR)
    return RunFolder(folder, COORDINATOR)


def test_the_deadline_is_the_manifests(folder: Path, tmp_path: Path) -> None:
    assert RunFolder(folder, COORDINATOR).seconds_left() == inf
    assert 3000 < with_deadline(tmp_path / "soon", 1).seconds_left() <= 3600
    past = with_deadline(tmp_path / "past", -1)
    assert past.seconds_left() == 0
    with pytest.raises(TooFewEntities):
        past.advance()
