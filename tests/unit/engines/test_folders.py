"""A federation over plain files: carried by any means, in any order, as often as one likes, with restarts between all steps."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.folders import Mailbox
from tacit.engines.keys import new_key, read_key, read_public
from tacit.errors import Conflict, InvalidData, InvalidParameter, TooFewEntities
from tacit.ledger import Budget
from tacit.messages.federated_prototypes import SharedModel, open_frame, public_of
from tests.unit.federated_world import World, key_of, resigned

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


@pytest.mark.parametrize("own", [{"aggregation": "none"}, {"names": ("a", "b", "c", "d"), "fewest": 3}], ids=str)
def test_a_step_that_comes_with_the_model_is_too_late_and_costs_nothing(made: Any, own: dict[str, Any]) -> None:
    """Away while the others went on, it finds the step for its Gram matrix and the model in one bag."""
    files = made("moments", **own)
    while files.stage != "gram":
        files.carry()
        files.step()
    while files.stage != "model":
        files.carry("b")
        files.step(close=True)
    box, spent = files.boxes["b"], files.world.entity("b").statement().charges
    assert spent == 1
    for file in (files.place / "outbox" / "b").iterdir():
        shutil.copy(file, box.inbox / file.name)
    for _ in range(2):  # and so ever after
        handled = box.answer(files.world.entity("b", again=True))
        (late,) = [one for one in handled if "gram" in one.name and "unmask" not in one.name]
        assert late.outcome == "over"
        assert "over for this entity" in (late.reason or "")
        assert not (box.outbox / late.name).exists()
        assert {one.outcome for one in handled if one is not late} == {"answered", "kept"}
    assert files.world.entity("b").statement().charges == spent
    assert files.world.entity("b").shared()[1].hash == files.folder.status()["model"]["hash"]


def test_only_what_is_late_is_over_and_only_a_new_model_is_news(made: Any) -> None:
    files = made("moments", aggregation="none", receivers=("z",))
    while files.stage != "model":
        files.carry()
        files.step()
    box = files.boxes["a"]
    for file in (files.place / "outbox" / "a").iterdir():
        shutil.copy(file, box.inbox / file.name)
    (box.inbox / "bad.fp").write_bytes(b"nonsense")
    first, second = (box.answer(files.world.entity("a")) for _ in range(2))
    assert [one.kind for one in first] == ["manifest", "model", "step", ""]
    assert [one.outcome for one in first] == ["answered", "kept", "answered", "refused"]
    assert [one.brought_model for one in first] == [False, True, False, False]
    assert not any(one.brought_model or one.new for one in second)
    fresh = Mailbox(files.world.folder / "fresh")
    fresh.put(files.world.opening())
    (kept,) = fresh.answer(files.world.entity("z"))
    assert (kept.outcome, kept.new, kept.brought_model) == ("kept", True, False)  # a receiver's manifest is no model


def test_what_is_refused_for_another_reason_is_not_called_over(made: Any) -> None:
    files = made("moments", aggregation="none")
    files.carry()
    files.step()
    box, entity = files.boxes["a"], files.world.entity("a")
    shutil.copy(next((files.place / "outbox" / "a").glob("*gram*")), box.inbox / "step.fp")
    entity.leave(files.world.manifest.run)  # there is no model, and there will be none
    assert {one.name: one.outcome for one in box.answer(entity)}["step.fp"] == "refused"
    files = made("moments", aggregation="none")
    while files.stage != "model":
        files.carry()
        files.step()
    files.carry()
    others = next((files.place / "outbox" / "b").glob("*gram*"))
    shutil.copy(others, files.boxes["a"].inbox / "others.fp")
    handled = {one.name: one for one in files.boxes["a"].answer(files.world.entity("a"))}
    assert handled["others.fp"].outcome == "refused"
    assert "another entity" in (handled["others.fp"].reason or "")


def test_a_mailbox_tells_that_something_came(made: Any) -> None:
    box = Mailbox(made("tree").world.folder / "fresh")
    before = box.state()
    (box.inbox / ".half.fp").write_bytes(b"being written")
    assert box.state() == before == {}
    (box.inbox / "a.fp").write_bytes(b"one")
    came = box.state()
    assert list(came) == ["a.fp"]
    assert box.state() == came
    (box.inbox / "a.fp").write_bytes(b"three")
    assert box.state() != came


def test_a_mailbox_tells_that_a_file_can_be_read_at_last(made: Any) -> None:
    box = Mailbox(made("tree").world.folder / "fresh")
    (box.inbox / "loop.fp").symlink_to("loop.fp")
    assert box.state() == {}
    file = box.inbox / "a.fp"
    file.write_bytes(b"one")
    file.chmod(0o200)
    about, closed = file.stat(), box.state()
    time.sleep(0.02)
    file.chmod(0o600)
    assert box.state() != closed
    readable = box.state()
    time.sleep(0.02)
    file.write_bytes(b"two")
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))  # as a courier does that keeps the times of files
    assert box.state() != readable


@pytest.mark.parametrize("stem", ["0" * 240, "0" * 252, "0ü" * 80, "0" * 178])
def test_a_message_with_a_long_name_is_answered_and_so_are_those_behind_it(made: Any, stem: str) -> None:
    world = made("tree", epsilon=8.0).world
    box, entity = Mailbox(world.folder / "fresh"), world.entity("a")
    (box.inbox / f"{stem}.fp").write_bytes(world.opening())
    (box.inbox / "1.fp").write_bytes(world.opening())
    first, again = box.answer(entity), box.answer(entity)
    assert [(one.name, one.outcome, one.new) for one in first] == [
        (f"{stem}.fp", "answered", True),
        ("1.fp", "answered", True),
    ]
    assert [(one.outcome, one.new) for one in again] == [("answered", False)] * 2
    assert [file.read_bytes() for file in box.outbox.iterdir()] == [entity.answer(world.opening())] * 2
    assert all(file.name.startswith(stem[:40]) or file.name == "1.fp" for file in box.outbox.iterdir())
    assert {file.suffix for file in box.outbox.iterdir()} == {".fp"}


def test_replies_keep_their_messages_names_and_long_ones_do_not_meet(made: Any) -> None:
    world = made("tree").world
    box = Mailbox(world.folder / "fresh")
    names = [f"{'x' * 64}-82e60e96-05-unmask-popularity.fp", "y" * 177 + ".fp"]
    names += [f"{'z' * 240}{end}.fp" for end in "ab"]
    for name in names:
        (box.inbox / name).write_bytes(world.opening())
    box.answer(world.entity("a"))
    found = sorted(file.name for file in box.outbox.iterdir())
    assert (found[:2], len(found)) == (names[:2], 4)


def test_a_reply_that_cannot_be_written_stops_no_other_and_is_written_later(made: Any) -> None:
    world = made("tree").world
    box, entity = Mailbox(world.folder / "fresh"), world.entity("a")
    for name in ("0.fp", "1.fp"):
        (box.inbox / name).write_bytes(world.opening())
    (box.outbox / "0.fp").mkdir()
    stuck, other = box.answer(entity)
    assert (stuck.outcome, stuck.again, other.outcome) == ("refused", True, "answered")
    assert stuck.reason == f"it cannot be answered now ({os.strerror(errno.EISDIR)})."
    (box.outbox / "0.fp").rmdir()
    assert [one.outcome for one in box.answer(entity)] == ["answered"] * 2
    assert (box.outbox / "0.fp").read_bytes() == (box.outbox / "1.fp").read_bytes()
    assert entity.statement().charges == 1


def test_what_time_can_cure_is_told_apart_from_what_stays_refused(made: Any) -> None:
    world = made("tree").world
    box = Mailbox(world.folder / "fresh")
    (box.inbox / "junk.fp").write_bytes(b"nonsense")
    (box.inbox / "folder.fp").mkdir()
    (box.inbox / "forged.fp").write_bytes(world.manifest.signed(key_of("somebody")))
    (box.inbox / "much.fp").write_bytes(made("tree", epsilon=9.0).world.opening())
    (box.inbox / "run.fp").write_bytes(world.opening())

    def damaged() -> Any:
        raise InvalidData("the rows cannot be read.")

    handled = {one.name: one for one in box.answer(world.entity("a", damaged))}
    assert {one.outcome for one in handled.values()} == {"refused"}
    assert {name for name, one in handled.items() if one.again} == {"run.fp"}


def test_a_budget_that_is_renewed_is_waited_for(made: Any) -> None:
    world = made("tree").world
    for name, per, again in (("a", "lifetime", False), ("b", "month", True)):
        box = Mailbox(world.folder / "fresh" / name)
        box.put(world.opening())
        (refused,) = box.answer(world.entity(name, budget=Budget(1.0, world.manifest.delta, per=per)))
        assert (refused.outcome, refused.again) == ("refused", again)
        assert "budget-exhausted" in (refused.reason or "")


def test_only_a_model_that_the_entity_did_not_have_is_news(made: Any) -> None:
    """Whatever its file is called, and whoever has taken the replies away."""
    world = made("tree").world
    run = world.federation()
    world.converse(run)
    box, entity, model = Mailbox(world.folder / "fresh"), world.entity("a"), run.outgoing()["a"]
    box.put(world.opening())
    (box.inbox / "model.fp").write_bytes(model)
    (box.outbox / "model.fp").mkdir()  # not even if nothing can be noted of it

    def brought() -> list[str]:
        return [one.name for one in box.answer(entity) if one.brought_model]

    assert brought() == ["model.fp"]
    (box.outbox / "model.fp").rmdir()
    assert brought() == []
    (box.inbox / "copy.fp").write_bytes(model)
    assert brought() == []
    shutil.rmtree(box.outbox)
    box = Mailbox(box.folder)
    assert brought() == []
    (box.inbox / "forged.fp").write_bytes(resigned(model, key_of("somebody"), {"run": "0" * 64}))
    (box.inbox / "odd.fp").write_bytes(resigned(model, world.key, {"run": 5}))
    assert brought() == []


def test_a_newer_model_of_a_run_is_news_and_an_older_one_is_not(made: Any) -> None:
    world = made("tree").world
    run = world.federation()
    world.converse(run)
    box, entity = Mailbox(world.folder / "fresh"), world.entity("a")
    assert run.model is not None
    for number, news in ((2, True), (1, False), (3, True)):
        name = box.put(replace(run.model, number=number).signed(world.key))
        assert {one.name: one.brought_model for one in box.answer(entity)}[name] is news


def test_names_in_an_inbox_can_be_told_whatever_they_are(made: Any) -> None:
    box = Mailbox(made("tree").world.folder / "fresh")
    try:
        for name in (b"\xff", b"a\nanswered  b", b"\x1b[2J"):
            with open(os.fsencode(box.inbox) + b"/" + name + b".fp", "wb") as out:
                out.write(b"nonsense")
        os.mkdir(os.fsencode(box.inbox) + b"/\xfe.fp")
        os.mkfifo(os.fsencode(box.inbox) + b"/\xfd.fp")
    except (AttributeError, OSError):
        pytest.skip("this file system has no such names")
    handled = box.answer(made("tree").world.entity("a"))
    assert {one.name for one in handled} == {
        "\\udcff.fp",
        "\\udcfe.fp",
        "\\udcfd.fp",
        "a\\nanswered  b.fp",
        "\\x1b[2J.fp",
    }
    for one in handled:
        (one.name + str(one.reason)).encode()


def test_a_carrier_loads_nothing_that_could_read_rows() -> None:
    code = "import sys, tacit.engines.folders; print([one for one in sys.modules if one.startswith('tacit.entity')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


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


@pytest.mark.parametrize("stem", ["x" * 250, "ü" * 120, "y" * 181, "z" * 180])
def test_a_long_name_in_the_inbox_stops_nothing(made: Any, stem: str) -> None:
    files = made("tree")
    (files.place / "inbox" / f"{stem}.fp").write_bytes(b"nonsense")
    files.carry()
    _, taken = files.step()
    assert taken.rejected == {f"{stem}.fp": "malformed"}
    assert taken.closed == ["prototypes"]
    assert list((files.place / "inbox").iterdir()) == []
    (moved,) = (files.place / "rejected").iterdir()
    assert moved.read_bytes() == b"nonsense"
    assert moved.name.startswith(stem[:40])
    assert moved.name.endswith(".malformed.fp")


def test_two_long_names_that_begin_alike_are_both_kept(made: Any) -> None:
    files = made("tree")
    for end in "ab":
        (files.place / "inbox" / f"{'x' * 240}{end}.fp").write_bytes(end.encode())
    files.step()
    assert sorted(file.read_bytes() for file in (files.place / "rejected").iterdir()) == [b"a", b"b"]


def test_a_name_that_is_no_text_can_be_told(made: Any) -> None:
    files = made("tree")
    name = os.fsencode(files.place / "inbox") + b"/\xff.fp"
    try:
        with open(name, "wb") as out:
            out.write(b"nonsense")
    except OSError:
        pytest.skip("this file system has no such names")
    _, taken = files.step()
    assert [told.encode() for told in taken.rejected] == [b"\\udcff.fp"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_or_a_folder_in_the_inbox_is_rejected_and_not_waited_for(made: Any) -> None:
    files = made("tree")
    os.mkfifo(files.place / "inbox" / "pipe.fp")
    (files.place / "inbox" / "folder.fp" / "within").mkdir(parents=True)
    code = (
        "import sys; from tacit.engines.coordinator import CoordinatorFolder; "
        "print(CoordinatorFolder(sys.argv[1]).step(bytes.fromhex(sys.argv[2]))[1].rejected)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(files.place), files.world.key.hex()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "{'folder.fp': 'malformed', 'pipe.fp': 'malformed'}"
    files.carry()
    assert files.step()[1].closed == ["prototypes"]


def test_what_cannot_be_moved_away_keeps_nobody_from_being_taken(made: Any) -> None:
    files = made("tree")
    (files.place / "inbox" / "a0.fp").write_bytes(b"nonsense")
    (files.place / "rejected" / "a0.malformed.fp" / "within").mkdir(parents=True)
    files.carry()
    _, taken = files.step()
    assert taken.rejected == {"a0.fp": "malformed"}
    assert taken.closed == ["prototypes"]


@pytest.mark.parametrize("note", ["5", "null", '"abc"', "{}", "[1]", "[[]]", "", "\udcff", "[" * 100_000])
def test_a_damaged_note_of_who_was_there_is_said_to_be_damaged(made: Any, note: str) -> None:
    files = made("moments", aggregation="none")
    files.carry()
    files.step()
    (files.place / "stages" / "popularity" / "closed").write_bytes(note.encode(errors="surrogateescape"))
    for look in (files.step, files.folder.status):
        with pytest.raises(InvalidData, match="restore a backup"):
            look()


def test_a_note_that_is_damaged_while_a_stage_is_closed_is_found(made: Any) -> None:
    files = made("tree")
    (files.place / "stages" / "prototypes").mkdir(parents=True)
    files.carry()
    run = files.folder.rebuilt
    files.folder.rebuilt = lambda key: (run(key), (files.place / "stages" / "prototypes" / "closed").write_text("5"))[0]
    with pytest.raises(InvalidData, match="restore a backup"):
        files.folder.step(files.world.key)
