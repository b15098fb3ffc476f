"""The mailbox of an entity: what is answered, what waits, what is news, and what its owner is told."""

import errno
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from tacit.engines.folders import Mailbox
from tacit.errors import InvalidData
from tacit.ledger import Budget
from tests.unit.federated_world import key_of, resigned


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
    assert stuck.reason == f"the message cannot be answered now ({os.strerror(errno.EISDIR)})."
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
