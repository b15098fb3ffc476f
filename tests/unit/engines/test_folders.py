"""A federation over plain files: carried by any means, in any order, as often as one likes, with restarts between all steps."""

import json
import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.folders import Mailbox
from tacit.engines.keys import new_key, read_key, read_public
from tacit.errors import Conflict, InvalidData, InvalidParameter, TooFewEntities
from tacit.messages.federated_prototypes import SharedModel, open_frame, public_of
from tests.unit.federated_world import World, key_of

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"names": ("a", "b", "c", "d"), "fewest": 3}),
]
SECURE = KINDS[2][1]


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


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_a_run_over_files_gives_the_model_that_its_replies_give(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    files = made(mechanism, receivers=("z",), **own)
    for stage in files.world.manifest.stages:
        assert files.stage == stage
        files.carry()
        run, taken = files.step()
        assert taken.rejected == {}
        assert taken.closed == [stage]
    files.carry()
    assert files.stage == "model"
    replay = files.world.federation()
    for stage in files.world.manifest.stages:
        for file in sorted((files.place / "stages" / stage).glob("*.fp")):
            assert replay.accept(file.read_bytes())
        replay.advance()
    assert run.model is not None
    assert replay.model is not None
    assert replay.model.hash == run.model.hash == files.folder.status()["model"]["hash"]
    for name in files.boxes:
        assert files.world.entity(name).shared()[1].hash == run.model.hash
    assert files.step()[1].rejected == {}
    assert [file.name for file in (files.place / "inbox").iterdir()] == []
    message = (files.place / "model.fp").read_bytes()
    assert SharedModel.from_frame(open_frame(message), files.world.manifest).hash == run.model.hash


def test_steps_and_answers_may_be_repeated_at_any_time(made: Any) -> None:
    files = made("moments", **SECURE)
    while files.stage != "model":
        before = files.stage
        files.step()
        files.step()
        assert files.stage == before
        files.carry()
        sent = {file.name: file.read_bytes() for box in files.boxes.values() for file in box.outbox.iterdir()}
        files.carry()
        assert sent == {file.name: file.read_bytes() for box in files.boxes.values() for file in box.outbox.iterdir()}
        files.step()
    assert files.world.entity("a").statement().charges == 2


def test_a_drop_out_is_closed_out_by_hand_or_by_the_deadline(made: Any) -> None:
    files = made("moments", deadline="2926-12-01T12:00:00Z", **SECURE)
    before, after = datetime(2926, 12, 1, 11, 59, tzinfo=UTC), datetime(2926, 12, 1, 12, 0, tzinfo=UTC)
    files.carry("b")
    files.step(now=lambda: before)
    assert files.stage == "keys"
    files.step(now=lambda: before, close=True)
    assert files.stage == "shares"
    files.carry("b", "c")
    files.step(now=lambda: after)  # two are too few: it waits
    assert files.stage == "shares"
    files.carry("b")
    files.step(now=lambda: after)
    assert files.stage == "popularity"
    status = files.folder.status()
    assert [stage["replied"] for stage in status["stages"]] == [["a", "c", "d"], ["a", "c", "d"], []]


def test_closing_with_too_few_changes_nothing(made: Any) -> None:
    files = made("moments", **SECURE)
    files.carry("b", "c")
    with pytest.raises(TooFewEntities):
        files.step(close=True)
    assert files.stage == "keys"
    assert not (files.place / "stages" / "keys" / "closed").exists()
    files.carry()
    files.step()
    assert files.stage == "shares"


def test_a_coordinator_that_died_after_closing_goes_on_with_the_same_survivors(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had noted who was left and died before it sent anything: a reply that comes meanwhile must not change the story."""
    files = made("moments", **SECURE)
    for _ in range(2):
        files.carry()
        files.step()
    files.carry("d")
    with monkeypatch.context() as patch:

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(CoordinatorFolder, "_send", die)
        with pytest.raises(KeyboardInterrupt):
            files.step(close=True)
    files.carry()  # d's upload comes late
    run, taken = files.step()
    assert run.stage == "unmask-popularity"
    assert set(run.expected) == {"a", "b", "c"}
    assert list(taken.rejected.values()) == ["late"]
    while files.stage != "model":
        files.carry()
        files.step()


def test_two_coordinators_tell_one_story(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one closes a stage with three, another has closed it with four: what is on the disk counts."""
    files = made("tree", names=("a", "b", "c", "d"))
    files.carry("d")
    from tacit.engines import coordinator

    original = coordinator.write_once

    def slower(file: Path, content: bytes) -> bytes:
        if file.name == "closed":
            with monkeypatch.context() as patch:
                patch.setattr(coordinator, "write_once", original)
                files.carry()
                CoordinatorFolder(files.place).step(files.world.key)
        return original(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(coordinator, "write_once", slower)
        run, _ = files.step(close=True)
    assert run.model is not None
    assert run.model.contributors == 4
    assert run.model.hash == files.folder.status()["model"]["hash"]


def test_nonsense_in_the_inbox_is_put_aside_with_its_code(made: Any) -> None:
    files = made("tree")
    files.carry("c")
    inbox = files.place / "inbox"
    good = files.boxes["a"].outbox.glob("*.fp").__next__().read_bytes()
    (inbox / "x.fp").write_bytes(b"nonsense")
    (inbox / "y.fp").write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    (inbox / "empty.fp").write_bytes(b"")
    (inbox / "note.txt").write_text("not a message")
    (inbox / ".half.fp").write_bytes(b"being written")
    (inbox / "folder.fp").mkdir()
    run, taken = files.step()
    assert taken.rejected == {"x.fp": "malformed", "y.fp": "wrong-signature", "folder.fp": "malformed"}
    assert {file.name for file in (files.place / "rejected").iterdir()} == {
        "x.malformed.fp",
        "y.wrong-signature.fp",
        "folder.malformed.fp",
    }
    assert set(run.replied) == {"a", "b"}
    assert {file.name for file in inbox.iterdir()} == {"note.txt", ".half.fp"}


def test_a_reply_that_comes_early_waits_for_its_stage(made: Any) -> None:
    files = made("moments", aggregation="none")
    files.carry()
    files.step()
    files.carry()
    again = made("moments", aggregation="none")
    assert again.world.manifest.run == files.world.manifest.run
    for box in files.boxes.values():
        for file in box.outbox.glob("*gram*"):
            shutil.copy(file, again.place / "inbox" / file.name)
    run, taken = again.step()
    assert (taken.rejected, run.stage) == ({}, "popularity")  # the replies of the first stage are missing
    assert len(list((again.place / "inbox").iterdir())) == 3
    for box in files.boxes.values():
        for file in box.outbox.glob("*manifest*"):
            shutil.copy(file, again.place / "inbox" / file.name)
    run, taken = again.step()
    assert (run.stage, taken.closed) == ("model", ["popularity", "gram"])


def test_a_damaged_store_is_not_gone_on_with(made: Any) -> None:
    files = made("moments", aggregation="none")
    files.carry()
    files.step()
    stored = files.place / "stages" / "popularity" / "a.fp"
    data = stored.read_bytes()
    for change in (
        lambda: stored.write_bytes(data[:-1]),
        stored.unlink,
        lambda: (stored.parent / "closed").write_text("{"),
    ):
        stored.write_bytes(data)
        change()
        with pytest.raises(InvalidData):
            files.step()


def test_a_folder_holds_one_run(made: Any, tmp_path: Path) -> None:
    files = made("tree")
    CoordinatorFolder.open(files.place, files.world.manifest, files.world.key)  # the same again is no harm
    with pytest.raises(Conflict):
        CoordinatorFolder.open(files.place, made("grid").world.manifest, files.world.key)
    with pytest.raises(InvalidData, match="no run"):
        CoordinatorFolder(tmp_path / "nowhere").status()


def test_a_run_is_given_up_for_good(made: Any) -> None:
    files = made("moments", **SECURE)
    files.carry()
    files.step()
    files.folder.give_up(files.world.key)
    assert files.stage == "given-up"
    files.carry()
    run, _ = files.step()
    assert (run.stage, run.model) == ("given-up", None)


def test_a_message_that_an_entity_refuses_is_told_and_not_answered(made: Any) -> None:
    files = made("tree")
    box = files.boxes["a"]
    (box.inbox / "bad.fp").write_bytes(b"nonsense")
    (box.inbox / "other.fp").write_bytes(made("grid", epsilon=100.0).world.opening())
    name = box.put(files.world.opening())
    handled = {one.name: one for one in box.answer(files.world.entity("a"))}
    assert {one.name: one.outcome for one in handled.values()} == {
        "bad.fp": "refused",
        "other.fp": "refused",
        name: "answered",
    }
    assert "budget-exhausted" in (handled["other.fp"].reason or "")
    assert {file.name for file in box.outbox.iterdir()} == {name}
    assert box.reply(files.world.opening()) == files.world.entity("a").answer(files.world.opening())
    assert box.reply(b"unknown") is None


def test_messages_are_answered_in_the_order_of_their_stages_whatever_their_names(made: Any) -> None:
    files = made("moments", aggregation="none")
    files.carry()
    files.step()
    step = next((files.place / "outbox" / "a").glob("*gram*")).read_bytes()
    box = Mailbox(files.world.folder / "fresh")
    (box.inbox / "a-step.fp").write_bytes(step)
    (box.inbox / "b-manifest.fp").write_bytes(files.world.opening())
    files.world.folder = files.world.folder / "elsewhere"
    files.world.folder.mkdir()
    handled = box.answer(files.world.entity("a", again=True))
    assert [one.name for one in handled] == ["b-manifest.fp", "a-step.fp"]
    assert {one.outcome for one in handled} == {"answered"}


def test_keys_are_written_once_and_for_their_owner(tmp_path: Path) -> None:
    file = tmp_path / "north.key"
    before = os.umask(0)
    try:
        public = new_key(file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert public_of(read_key(file)) == public == read_public(f"{file}.pub") == read_public(public.hex())
    content = file.read_bytes()
    with pytest.raises(InvalidParameter, match="never overwritten"):
        new_key(file)
    assert file.read_bytes() == content
    file.chmod(0o640)
    with pytest.raises(InvalidParameter, match="others"):
        read_key(file)
    for wrong in (b"", b"xyz", b"00" * 31, b"\xff"):
        file.chmod(0o600)
        file.write_bytes(wrong)
        with pytest.raises(InvalidData) as caught:
            read_key(file)
        assert "xyz" not in str(caught.value)


def test_what_is_shown_of_a_run_is_json(made: Any) -> None:
    files = made("tree", receivers=("z",))
    status = files.folder.status()
    assert json.loads(json.dumps(status)) == status
    assert (status["contributors"], status["receivers"], status["model"]) == (["a", "b", "c"], ["z"], None)
    assert key_of("coordinator").hex() not in json.dumps(status)
