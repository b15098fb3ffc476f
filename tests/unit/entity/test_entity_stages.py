"""The stages of a run at an entity: in order, each once, from nobody but the coordinator; and its end."""

import shutil
import stat
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.entity import Policy
from tacit.errors import (
    Conflict,
    GuaranteeRefused,
    InvalidMessage,
    InvalidParameter,
    TacitError,
)
from tacit.ledger import Budget
from tacit.messages.federated_prototypes import Step, open_frame, sign
from tests.unit.entity.runs import charges
from tests.unit.federated_world import ITEMS, key_of, no_rows, rows_of

# --- stages -----------------------------------------------------------------------------------------------------------------------


def test_a_receiver_sends_nothing_and_gets_the_model(made: Any) -> None:
    world = made("tree", receivers=("tiny",))
    entity = world.entity("tiny", rows_of("tiny", 5))
    assert entity.answer(world.opening()) is None
    run = world.federation()
    world.converse(run)
    assert entity.answer(run.outgoing()["tiny"]) is None
    assert charges(entity) == 0
    assert entity.fit(rng=np.random.default_rng(0)).scores().shape == (5, ITEMS)
    with pytest.raises(InvalidParameter, match="receiver"):
        entity.release(world.opening())


def test_release_is_the_answer_to_a_manifest_of_prototypes(made: Any) -> None:
    world = made("grid")
    assert world.entity("a").release(world.opening()) == world.entity("a").answer(world.opening())
    world = made("moments")
    with pytest.raises(InvalidParameter):
        world.entity("a", no_rows).release(world.opening())


@pytest.mark.parametrize("aggregation", ["none", "secure"])
def test_another_message_for_an_answered_stage_is_refused(made: Any, aggregation: str) -> None:
    world = made("moments", aggregation=aggregation)
    run = world.federation()
    world.converse(run, until="gram")
    entity, sent = world.entity("a"), run.outgoing()["a"]
    first = entity.answer(sent)
    other = Step(world.manifest.run, "gram", "a", head=np.arange(20)).signed(world.key)
    for again in (False, True):
        entity = world.entity("a", again=again)
        with pytest.raises(Conflict, match="answered once"):
            entity.answer(other)
        assert entity.answer(sent) == first


def test_another_head_is_refused_even_if_the_journal_is_lost(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram")
    entity = world.entity("a")
    first = entity.answer(run.outgoing()["a"])
    kept = world.folder / "a.db.runs" / world.manifest.run
    (kept / "gram").unlink()
    other = Step(world.manifest.run, "gram", "a", head=np.arange(20)).signed(world.key)
    with pytest.raises(Conflict):
        entity.answer(other)
    assert entity.answer(run.outgoing()["a"]) == first  # from the ledger, to the bit
    assert charges(entity) == 2


@pytest.mark.parametrize("lost", ["shares", "popularity", "unmask-popularity"])
def test_a_journal_that_came_back_from_a_backup_cannot_answer_twice(made: Any, lost: str) -> None:
    """Two answers of a secure sum for two sets of survivors can unmask a single entity."""
    world = made("moments", names=("a", "b", "c", "d"), fewest=3)
    run = world.federation()
    world.converse(run, until=lost)
    folder, backup = world.folder / "a.db.runs", world.folder / "backup"
    shutil.copytree(folder, backup)
    entity = world.entity("a")
    sent = run.outgoing()["a"]
    first = entity.answer(sent)
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    if lost == "unmask-popularity":
        from tacit.messages.federated_prototypes.secure_sum import pack

        other = Step(world.manifest.run, lost, "a", body=pack(dict.fromkeys("abc", b""))).signed(world.key)
        with pytest.raises(Conflict):
            entity.answer(other)
    if lost == "popularity":
        assert entity.answer(sent) == first


def test_an_entity_that_lost_its_journal_is_out_of_a_secure_run(made: Any) -> None:
    world = made("moments")
    entity = world.entity("a", budget=Budget(20.0, 1e-6))
    entity.answer(world.opening())
    shutil.rmtree(world.folder / "a.db.runs")
    with pytest.raises(Conflict, match="journal"):
        entity.answer(world.opening())  # its new keys are not those that it sent


@pytest.mark.parametrize("stage", ["shares", "popularity", "unmask-popularity", "gram", "unmask-gram"])
def test_whatever_a_coordinator_signs_is_refused_by_an_error_of_ours(made: Any, stage: str) -> None:
    """And the honest message is answered afterwards: nothing of it has stuck."""
    from tacit.messages.federated_prototypes.secure_sum import pack

    world = made("moments")
    run = world.federation()
    world.converse(run, until=stage)
    entity = world.entity("a")
    before = charges(entity)
    rng = np.random.default_rng(3)
    honest = open_frame(run.outgoing()["a"])
    bodies = [b"", b"x", rng.bytes(200), pack({}), pack({"a": b""}), pack({"a": b"", "b": b"x", "c": rng.bytes(300)})]
    bodies += [pack({"zz": b"", "a": b"", "b": b""}), pack(dict.fromkeys("abcd", b""))]
    if "body" in honest.arrays:
        good = honest.arrays["body"].tobytes()
        bodies += [good[:-1], good + b"\x00", good[:5] + bytes([good[5] ^ 1]) + good[6:]]
    for body in bodies:
        with pytest.raises(TacitError):
            entity.answer(Step(world.manifest.run, stage, "a", body=body).signed(world.key))
    assert charges(entity) == before
    assert entity.answer(run.outgoing()["a"]) is not None


def test_stages_come_in_their_order(made: Any) -> None:
    world = made("moments", aggregation="none")
    step = Step(world.manifest.run, "gram", "a", head=np.arange(15)).signed(world.key)
    entity = world.entity("a")
    with pytest.raises(InvalidMessage, match="manifest"):
        entity.answer(step)
    entity.answer(world.opening())
    assert entity.answer(step) is not None
    secure = made("moments")
    entity = secure.entity("a")
    entity.answer(secure.opening())
    step = Step(secure.manifest.run, "gram", "a", head=np.arange(15)).signed(secure.key)
    with pytest.raises(InvalidMessage, match="earlier"):
        entity.answer(step)
    assert charges(entity) == 0


def test_a_step_for_another_entity_is_refused(made: Any) -> None:
    world = made("moments", aggregation="none")
    entity = world.entity("a")
    entity.answer(world.opening())
    for to in ("b", "nobody"):
        step = Step(world.manifest.run, "gram", to, head=np.arange(15)).signed(world.key)
        with pytest.raises(InvalidMessage, match="another entity"):
            entity.answer(step)


def test_steps_and_models_of_anybody_else_are_refused(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram")
    entity = world.entity("a")
    forged = Step(world.manifest.run, "gram", "a", head=np.arange(20))
    with pytest.raises(InvalidMessage, match="signature"):
        entity.answer(forged.signed(key_of("b")))
    assert charges(entity) == 1
    world.converse(run)
    assert run.model is not None
    with pytest.raises(InvalidMessage, match="signature"):
        entity.answer(run.model.signed(key_of("b")))
    with pytest.raises(InvalidParameter, match="no model"):
        entity.shared()


def test_a_policy_that_became_stricter_stops_a_run_that_has_begun(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram")
    entity = world.entity("a", again=True, policy=Policy(epsilon=1.0))
    with pytest.raises(GuaranteeRefused):
        entity.answer(run.outgoing()["a"])
    assert charges(entity) == 1
    assert entity.answer(world.opening()) is not None  # what was sent before is sent again


def test_after_the_model_nothing_more_is_answered(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram", silent=())
    sent = run.outgoing()["a"]
    for name in "bc":
        run.accept(world.entity(name).answer(run.outgoing()[name]))
    run.advance()
    entity = world.entity("a")
    assert entity.answer(run.outgoing()["a"]) is None
    with pytest.raises(Conflict, match="over"):
        entity.answer(sent)
    assert charges(entity) == 1


def test_secrets_are_deleted_when_the_last_of_them_was_given(made: Any) -> None:
    world = made("moments")
    run = world.federation()
    world.converse(run, until="unmask-gram")
    folder = world.folder / "a.db.runs" / world.manifest.run

    def state_bytes() -> int:
        from tacit.entity.journal import Record

        return sum(len(Record.from_bytes(file.read_bytes()).state) for file in folder.iterdir())

    assert state_bytes() > 0
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())
    reply = world.entity("a").answer(run.outgoing()["a"])
    assert state_bytes() == 0
    assert world.entity("a", again=True).answer(run.outgoing()["a"]) == reply


def test_a_run_that_ends_early_deletes_its_secrets_too(made: Any) -> None:
    """No information at this budget: the model comes after the first sum."""
    world = made("moments", epsilon=0.2)
    run = world.federation()
    world.converse(run)
    assert run.model is not None
    assert not run.model.informed
    entity = world.entity("a")
    entity.answer(run.outgoing()["a"])
    from tacit.entity.journal import Record

    folder = world.folder / "a.db.runs" / world.manifest.run
    assert sum(len(Record.from_bytes(file.read_bytes()).state) for file in folder.iterdir()) == 0
    assert charges(entity) == 1


def test_an_entity_may_leave_a_run_that_was_given_up(made: Any) -> None:
    world = made("moments")
    run = world.federation()
    world.converse(run, until="popularity")
    entity = world.entity("a")
    entity.leave(world.manifest.run)
    from tacit.entity.journal import Record

    folder = world.folder / "a.db.runs" / world.manifest.run
    assert sum(len(Record.from_bytes(file.read_bytes()).state) for file in folder.iterdir()) == 0
    with pytest.raises(Conflict, match="over for this entity"):
        entity.answer(run.outgoing()["a"])
    assert charges(entity) == 0
    with pytest.raises(InvalidMessage):
        entity.leave("0" * 64)


def test_two_models_of_one_number_are_a_story_too_many(made: Any) -> None:
    world = made("tree")
    run = world.federation()
    world.converse(run)
    model = run.model
    assert model is not None
    assert model.factors is not None
    entity = world.entity("a")
    entity.answer(model.signed(world.key))
    entity.answer(model.signed(world.key))
    other = replace(model, factors=model.factors + 1)
    with pytest.raises(Conflict, match="hash"):
        entity.answer(other.signed(world.key))
    newer = replace(other, number=2)
    entity.answer(newer.signed(world.key))
    assert entity.shared()[1].hash == newer.hash
    entity.answer(model.signed(world.key))  # an older one changes nothing
    assert entity.shared()[1].hash == newer.hash


def test_a_message_of_an_unknown_kind_is_refused(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a", no_rows)
    entity_messages = [sign(world.key, {"kind": kind, "run": world.manifest.run}) for kind in ("reply", None, 3)]
    for message in entity_messages:
        with pytest.raises(InvalidMessage):
            entity.answer(message)
    for run in (None, 3, "x", "../../etc"):
        with pytest.raises(InvalidMessage):
            entity.answer(sign(world.key, {"kind": "model", "run": run}))
