"""A federation over plain files: carried by any means, in any order, as often as one likes, with restarts between all steps."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.engines import coordinator
from tacit.engines.coordinator import CoordinatorFolder
from tacit.errors import Conflict, InvalidData, TooFewEntities
from tacit.messages.federated_prototypes import SharedModel, open_frame

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"names": ("a", "b", "c", "d"), "fewest": 3}),
]
SECURE = KINDS[2][1]


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
    original = coordinator.write_once

    def slower(file: Path, content: bytes, **options: Any) -> bytes:
        if file.name == "closed":
            with monkeypatch.context() as patch:
                patch.setattr(coordinator, "write_once", original)
                files.carry()
                CoordinatorFolder(files.place).step(files.world.key)
        return original(file, content, **options)

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
