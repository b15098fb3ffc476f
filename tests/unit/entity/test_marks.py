"""A ledger from an old copy beside the newest journal: nothing is answered, and no budget is spent twice."""

import os
import shutil
import stat
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.entity import Entity
from tacit.entity import journal as journals
from tacit.entity.journal import Journal, Mark, Record, note, require_reached
from tacit.errors import BudgetExhausted, Conflict, LedgerDamaged
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.messages.federated_prototypes import open_frame, public_of
from tests.unit.entity.runs import CountedNoise
from tests.unit.federated_world import World, key_of, no_rows, rows_of

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("grid", {}),
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"aggregation": "secure"}),
]
NOTHING = Mark(0, 0, 0, 0, 0)
OLDER = "older than the journal"


def everything(ids: Collection[str]) -> Collection[str]:
    """A ledger that was charged for all of them."""
    return ids


class Copies:
    """The files of one entity, closed: its ledger, and its journal if that is wanted, as they were."""

    def __init__(self, world: World, journal: bool = False) -> None:
        self._world, self._kept = world, world.folder / f"kept-{os.urandom(4).hex()}"
        self._close()
        self._kept.mkdir()
        self._files = [one for one in world.folder.glob("a.db*") if journal or one.is_file()]
        for one in self._files:
            (shutil.copytree if one.is_dir() else shutil.copy2)(one, self._kept / one.name)
        self._journal = journal

    def restore(self) -> None:
        delete(self._world, self._journal)
        for one in self._kept.iterdir():
            (shutil.copytree if one.is_dir() else shutil.copy2)(one, self._world.folder / one.name)

    def _close(self) -> None:
        close(self._world)


def close(world: World) -> None:
    if "a" in world._opened:
        world._opened.pop("a").close()


def delete(world: World, journal: bool = False) -> None:
    close(world)
    for one in world.folder.glob("a.db*"):
        if one.is_file():
            one.unlink()
        elif journal:
            shutil.rmtree(one)


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
@pytest.mark.parametrize("lost", ["restored", "deleted"])
def test_after_a_charge_an_older_ledger_or_none_is_not_used(
    made: Callable[..., World], mechanism: str, own: dict[str, Any], lost: str
) -> None:
    world = made(mechanism, **own)
    world.entity("a")
    before = Copies(world)
    run = world.federation()
    world.converse(run)
    newest = Copies(world)
    before.restore() if lost == "restored" else delete(world)
    with pytest.raises(Conflict, match=OLDER):
        world.entity("a", no_rows).statement()
    for refused in (world.entity("a").answer, world.entity("a").outlook):
        with pytest.raises(Conflict, match=OLDER):
            refused(world.opening())
    newest.restore()
    assert world.entity("a", no_rows).answer(world.opening()) is not None


@pytest.mark.parametrize("aggregation", ["none", "secure"])
def test_a_run_does_not_go_on_with_a_ledger_of_an_earlier_stage(made: Callable[..., World], aggregation: str) -> None:
    world = made("moments", aggregation=aggregation)
    run = world.federation()
    world.converse(run, until="popularity")
    world.entity("a")
    before = Copies(world)
    world.converse(run, until="gram")
    before.restore()
    with pytest.raises(Conflict, match=OLDER):
        world.exchange(run)


def test_a_second_run_is_not_charged_to_a_budget_that_forgot_the_first(made: Callable[..., World]) -> None:
    """Two releases of epsilon 8 under a budget of 8, before this was checked."""
    world = made("tree")
    world.entity("a")
    before = Copies(world)
    world.entity("a").answer(world.opening())
    before.restore()
    with pytest.raises(Conflict, match=OLDER):
        world.entity("a", no_rows).answer(replace(world.manifest, title="second").signed(world.key))


def test_a_ledger_that_changes_under_an_open_entity_is_noticed_before_the_next_answer(
    made: Callable[..., World], tmp_path: Path
) -> None:
    """The check is not only at opening: new answers and repeated ones are refused alike."""
    world = made("tree")
    entity = world.entity("a")
    entity.answer(world.opening())
    original = entity._account.mark
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entity._account, "mark", lambda: replace(original(), charges=0))
        for message in (world.opening(), replace(world.manifest, title="second").signed(world.key)):
            with pytest.raises(Conflict, match=OLDER):
                entity.answer(message)
    assert entity.answer(world.opening()) is not None
    assert entity.statement().charges == 1


def test_both_from_the_same_old_copy_cannot_be_noticed(made: Callable[..., World]) -> None:
    """As the page for entities says: it is a second, different release."""
    world = made("tree")
    world.entity("a")
    before = Copies(world, journal=True)
    first = world.entity("a").answer(world.opening())
    before.restore()
    assert not (world.folder / "a.db.runs").exists()
    assert world.entity("a").answer(world.opening()) != first


def test_a_journal_that_is_lost_leaves_the_ledger_as_good_as_before(made: Callable[..., World]) -> None:
    world = made("tree")
    budget = Budget(20.0, 1e-6)
    first = world.entity("a", budget=budget).answer(world.opening())
    shutil.rmtree(world.folder / "a.db.runs")
    assert world.entity("a", again=True, budget=budget).answer(world.opening()) == first  # from the ledger, to the bit


def test_keys_that_were_sent_are_missed_in_a_new_ledger(made: Callable[..., World]) -> None:
    """Nothing was charged yet, but what was sent in a secure sum is noted in the ledger."""
    world = made("moments")
    world.entity("a").answer(world.opening())
    assert world.entity("a").statement().charges == 0
    delete(world)
    with pytest.raises(Conflict, match=OLDER):
        world.entity("a", no_rows).statement()


def test_a_charge_whose_draw_failed_is_noted_too(made: Callable[..., World]) -> None:

    world = made("tree")
    world.entity("a")
    before = Copies(world)
    with pytest.raises(Conflict, match="used up"):
        world.entity("a", noise=CountedNoise(fail_after=1)).answer(world.opening())
    before.restore()
    with pytest.raises(Conflict, match=OLDER):
        world.entity("a", no_rows).statement()


def test_a_refused_run_notes_nothing(made: Callable[..., World]) -> None:
    world = made("tree")
    entity = world.entity("a", no_rows, budget=Budget(1.0, 1e-6))
    assert "BudgetExhausted" in repr(_error(lambda: entity.answer(world.opening())))
    assert not (world.folder / "a.db.runs").exists()


def _error(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as problem:
        return problem
    return None


def test_other_charges_in_the_same_ledger_do_no_harm_and_count(made: Callable[..., World]) -> None:
    world = made("grid", epsilon=2.0)
    entity = world.entity("a", budget=Budget(8.0))
    entity.answer(world.opening())
    close(world)
    with PrivacyLedger.open(world.folder / "a.db") as ledger:
        ledger.charge("users", "something else", pure(1.0, ONE_USER))
    assert world.entity("a", budget=Budget(8.0)).answer(world.opening()) is not None  # and is noted now
    newest = world.folder / "a.db.runs" / "charged"
    (mark,) = newest.iterdir()
    assert Mark.from_bytes(mark.read_bytes()) == Mark(2, 3 * 10**9, 0, 0, 0)


def test_another_subject_starts_anew(made: Callable[..., World]) -> None:
    """The way out after a loss, once it was counted what was spent."""
    world = made("tree")
    world.entity("a").answer(world.opening())
    delete(world)
    entity = world.entity("a", subject="users after the loss")
    assert entity.answer(replace(world.manifest, title="second").signed(world.key)) is not None
    delete(world)
    with pytest.raises(Conflict, match=OLDER):
        world.entity("a", subject="users after the loss").statement()


def charge(world: World, release_id: str, epsilon: float = 1.0) -> None:
    """As another program does."""
    close(world)
    with PrivacyLedger.open(world.folder / "a.db") as ledger:
        ledger.charge("users", release_id, pure(epsilon, ONE_USER))


def test_an_old_ledger_does_not_catch_up_by_the_charges_of_others(made: Callable[..., World]) -> None:
    """As many charges, of as much: all numbers are reached, but what was released is not among them."""
    world, budget = made("grid", epsilon=2.0), Budget(8.0)
    world.entity("a", budget=budget)
    before = Copies(world)
    world.entity("a", budget=budget).answer(world.opening())
    newest = Copies(world)
    before.restore()
    for number in range(3):
        charge(world, f"something else {number}", 2.0)
    entity = world.entity("a", no_rows, budget=budget)
    assert entity._account.statement().charges == 3
    second = replace(world.manifest, title="second").signed(world.key)
    for message in (world.opening(), second):
        with pytest.raises(Conflict, match=OLDER):
            entity.answer(message)
    newest.restore()
    assert world.entity("a", no_rows, budget=budget).answer(world.opening()) is not None


def test_a_charge_whose_draw_failed_is_missed_too_whatever_others_charged(made: Callable[..., World]) -> None:

    world, budget = made("grid", epsilon=2.0), Budget(8.0)
    world.entity("a", budget=budget)
    before = Copies(world)
    with pytest.raises(Conflict, match="used up"):
        world.entity("a", budget=budget, noise=CountedNoise(fail_after=1)).answer(world.opening())
    before.restore()
    charge(world, "something else", 3.0)
    with pytest.raises(Conflict, match=OLDER):
        world.entity("a", no_rows, budget=budget).statement()


@pytest.mark.parametrize(
    ("mechanism", "own"), [("grid", {}), ("tree", {}), ("moments", {"aggregation": "none"})], ids=str
)
def test_what_was_charged_needs_no_room_again_when_the_journal_is_lost(
    made: Callable[..., World], mechanism: str, own: dict[str, Any]
) -> None:
    """The budget is just what the run costs."""
    world = made(mechanism, **own)
    run = world.federation()
    first = world.entity("a").answer(world.opening())
    world.converse(run)
    charges = world.entity("a").statement().charges
    close(world)
    shutil.rmtree(world.folder / "a.db.runs")
    entity = world.entity("a")
    assert entity.outlook(world.opening()).refusal is None
    assert entity.answer(world.opening()) == first
    assert entity.statement().charges == charges
    with pytest.raises(BudgetExhausted):
        entity.answer(replace(world.manifest, title="second").signed(world.key))


def test_two_entities_in_one_ledger_are_charged_and_noted_apart(made: Callable[..., World]) -> None:
    """Under subjects of their own; in a secure sum each of them sends what is its own."""
    world = made("moments", names=("a", "b", "c"))
    with PrivacyLedger.create(world.folder / "shared.db") as ledger:
        for name in world.names:
            world._opened[name] = Entity(
                rows_of(name),
                ledger,
                name=name,
                key=key_of(name),
                coordinator=public_of(world.key),
                catalogue=world.catalogue,
                budget=Budget(8.0, 1e-6),
                subject=f"users of {name}",
                journal=world.folder / f"{name}.runs",
            )
        run = world.federation()
        world.converse(run)
        assert run.model is not None
        assert [world.entity(name).statement().charges for name in world.names] == [2, 2, 2]
        # one for each stage: what others send does not make up for what is missing
        assert [world.entity(name)._account.mark().notes for name in world.names] == [len(world.manifest.stages)] * 3


def test_two_entities_with_the_same_users_are_charged_for_both_releases(made: Callable[..., World]) -> None:
    world = made("grid", epsilon=2.0)
    with PrivacyLedger.create(world.folder / "shared.db") as ledger:
        replies = []
        for name in ("a", "b"):
            entity = Entity(
                rows_of("a"),
                ledger,
                name=name,
                key=key_of(name),
                coordinator=public_of(world.key),
                catalogue=world.catalogue,
                budget=Budget(4.0),
                journal=world.folder / f"{name}.runs",
            )
            replies.append(open_frame(entity.answer(world.opening()) or b""))
            assert entity.statement().charges == len(replies)
        assert replies[0].header["entry"] != replies[1].header["entry"]
        assert replies[0].arrays["sizes"].tolist() != replies[1].arrays["sizes"].tolist()


def test_a_run_is_left_also_beside_an_old_ledger(made: Callable[..., World]) -> None:
    """It only deletes secrets."""
    world = made("moments")
    run = world.federation()
    world.converse(run, until="gram")
    delete(world)
    entity = world.entity("a", no_rows)
    entity.leave(world.manifest.run)
    folder = world.folder / "a.db.runs" / world.manifest.run
    assert not any(Record.from_bytes(file.read_bytes()).state for file in folder.iterdir())
    with pytest.raises(Conflict, match=OLDER):
        entity.answer(run.outgoing()["a"])


# --- the notes themselves ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("less", ["charges", "amount", "delta", "unprotected", "notes"])
def test_whatever_is_less_than_was_noted_is_refused(tmp_path: Path, less: str) -> None:
    noted = Mark(3, 30, 5, 2, 4)
    note(Journal(tmp_path), "users", noted)
    require_reached(Journal(tmp_path), "users", lambda: noted, everything)
    require_reached(Journal(tmp_path), "users", lambda: replace(noted, charges=4, amount=31), everything)
    with pytest.raises(Conflict, match="newest ledger"):
        require_reached(
            Journal(tmp_path), "users", lambda: replace(noted, **{less: getattr(noted, less) - 1}), everything
        )


def test_a_note_never_goes_back(tmp_path: Path) -> None:
    """Of two processes the later writer may have looked earlier."""
    journal = Journal(tmp_path / "runs")
    high, low = Mark(10, 10, 0, 0, 0), Mark(9, 9, 0, 0, 0)
    note(journal, "users", high)
    note(journal, "users", low)
    journal.put_mark(next((tmp_path / "runs" / "charged").iterdir()).name.rpartition("-")[0] + "-", 9, low.to_bytes())
    with pytest.raises(Conflict):
        require_reached(journal, "users", lambda: low, everything)
    note(journal, "users", Mark(11, 11, 0, 0, 0))
    (only,) = (tmp_path / "runs" / "charged").iterdir()
    assert only.name.endswith("-11")
    assert stat.S_IMODE(only.stat().st_mode) == 0o600
    assert journal.runs() == []


def test_a_note_takes_no_part_of_an_older_one_back(tmp_path: Path) -> None:
    """More charges, and less of something else: each number stays the largest."""
    journal = Journal(tmp_path)
    note(journal, "users", Mark(1, 50, 3, 2, 4))
    note(journal, "users", Mark(9, 10, 5, 0, 4))
    (only,) = (tmp_path / "charged").iterdir()
    assert Mark.from_bytes(only.read_bytes()) == Mark(9, 50, 5, 2, 4)
    note(journal, "users", Mark(9, 51, 5, 2, 4))  # of the same height
    assert Mark.from_bytes(only.read_bytes()) == Mark(9, 51, 5, 2, 4)


def test_an_id_that_was_noted_must_be_in_the_ledger(tmp_path: Path) -> None:
    journal, reached = Journal(tmp_path), Mark(2, 2, 0, 0, 0)
    note(journal, "users", reached, ["one", "two"])
    note(journal, "others", reached, ["three"])
    require_reached(journal, "users", lambda: reached, lambda ids: {"one", "two"} & set(ids))
    require_reached(journal, "nobody yet", lambda: reached, lambda ids: set(ids))
    for known in ({"one"}, {"two", "three"}, set()):
        with pytest.raises(Conflict, match=OLDER):
            require_reached(journal, "users", lambda: reached, lambda ids, known=known: known)  # type: ignore[misc]
    files = sorted((tmp_path / "entries").iterdir())
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
    for file in files:
        file.write_bytes(b"four")
    with pytest.raises(LedgerDamaged):
        require_reached(journal, "users", lambda: reached, everything)


def test_the_ledger_is_asked_after_the_notes_were_read(tmp_path: Path) -> None:
    """Another process charges in between: its note must not refuse this one."""
    journal = Journal(tmp_path)
    note(journal, "users", Mark(1, 1, 0, 0, 0))

    def now() -> Mark:
        note(journal, "users", Mark(2, 2, 0, 0, 0))
        return Mark(1, 1, 0, 0, 0)

    require_reached(journal, "users", now, everything)


def test_a_note_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    monkeypatch.setattr(journals.os, "fsync", os.fsync)
    note(Journal(tmp_path), "users", Mark(1, 1, 0, 0, 0))
    assert Path(synced[0]).parent == tmp_path / "charged"
    assert synced[-1] == str(tmp_path / "charged")


def test_answers_without_any_note_stand_for_their_charges(tmp_path: Path) -> None:
    """A journal whose notes were lost: each record of a release followed a charge."""
    journal = Journal(tmp_path)
    for stage in ("manifest", "keys", "popularity", "gram"):
        journal.write("a" * 64, stage, Record("1" * 64, b""))
    require_reached(journal, "users", lambda: Mark(2, 2, 0, 0, 0), everything)
    with pytest.raises(Conflict):
        require_reached(journal, "users", lambda: Mark(1, 1, 0, 0, 0), everything)


@pytest.mark.parametrize(
    "content", [b"", b"3", b"[1, 2]", b"[1, 2, 3, 4, true]", b"[1, 2, 3, 4, 5.0]", b"\xff", b"[" * 100_000]
)
def test_a_damaged_note_is_not_believed(tmp_path: Path, content: bytes) -> None:
    note(Journal(tmp_path), "users", Mark(1, 1, 0, 0, 0))
    (file,) = (tmp_path / "charged").iterdir()
    file.write_bytes(content)
    (tmp_path / "charged" / "stray~").write_bytes(b"")
    with pytest.raises(LedgerDamaged):
        require_reached(Journal(tmp_path), "users", lambda: NOTHING, everything)
