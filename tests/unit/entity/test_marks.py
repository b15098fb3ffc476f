"""A ledger from an old copy beside the newest journal: nothing is answered, and no budget is spent twice."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.entity import journal as journals
from tacit.entity.journal import Journal, Record
from tacit.entity.marks import Mark, note, require_reached
from tacit.errors import Conflict, LedgerDamaged
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tests.unit.federated_world import World, no_rows

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("grid", {}),
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"aggregation": "secure"}),
]
NOTHING = Mark(0, 0, 0, 0, 0)
OLDER = "older than the journal"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., World]]:
    worlds = []

    def make(mechanism: str, **own: Any) -> World:
        worlds.append(World(tmp_path / str(len(worlds)), mechanism, **own))
        worlds[-1].folder.mkdir()
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


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
def test_after_a_charge_an_older_ledger_or_none_is_not_opened(
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
        world.entity("a", no_rows)
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
        world.entity("a", no_rows)


def test_a_charge_whose_draw_failed_is_noted_too(made: Callable[..., World]) -> None:
    from tests.unit.entity.test_entity import CountedNoise

    world = made("tree")
    world.entity("a")
    before = Copies(world)
    with pytest.raises(Conflict, match="used up"):
        world.entity("a", noise=CountedNoise(fail_after=1)).answer(world.opening())
    before.restore()
    with pytest.raises(Conflict, match=OLDER):
        world.entity("a", no_rows)


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
        world.entity("a", subject="users after the loss")


# --- the notes themselves ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("less", ["charges", "amount", "delta", "unprotected", "notes"])
def test_whatever_is_less_than_was_noted_is_refused(tmp_path: Path, less: str) -> None:
    noted = Mark(3, 30, 5, 2, 4)
    note(Journal(tmp_path), "users", noted)
    require_reached(Journal(tmp_path), "users", lambda: noted)
    require_reached(Journal(tmp_path), "users", lambda: replace(noted, charges=4, amount=31))
    with pytest.raises(Conflict, match="newest ledger"):
        require_reached(Journal(tmp_path), "users", lambda: replace(noted, **{less: getattr(noted, less) - 1}))


def test_a_note_never_goes_back(tmp_path: Path) -> None:
    """Of two processes the later writer may have looked earlier."""
    journal = Journal(tmp_path / "runs")
    high, low = Mark(10, 10, 0, 0, 0), Mark(9, 9, 0, 0, 0)
    note(journal, "users", high)
    note(journal, "users", low)
    journal.put_mark(next((tmp_path / "runs" / "charged").iterdir()).name.rpartition("-")[0] + "-", 9, low.to_bytes())
    with pytest.raises(Conflict):
        require_reached(journal, "users", lambda: low)
    note(journal, "users", Mark(11, 11, 0, 0, 0))
    (only,) = (tmp_path / "runs" / "charged").iterdir()
    assert only.name.endswith("-11")
    assert stat.S_IMODE(only.stat().st_mode) == 0o600
    assert journal.runs() == []


def test_the_ledger_is_asked_after_the_notes_were_read(tmp_path: Path) -> None:
    """Another process charges in between: its note must not refuse this one."""
    journal = Journal(tmp_path)
    note(journal, "users", Mark(1, 1, 0, 0, 0))

    def now() -> Mark:
        note(journal, "users", Mark(2, 2, 0, 0, 0))
        return Mark(1, 1, 0, 0, 0)

    require_reached(journal, "users", now)


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
    require_reached(journal, "users", lambda: Mark(2, 2, 0, 0, 0))
    with pytest.raises(Conflict):
        require_reached(journal, "users", lambda: Mark(1, 1, 0, 0, 0))


@pytest.mark.parametrize("content", [b"", b"3", b"[1, 2]", b"[1, 2, 3, 4, true]", b"[1, 2, 3, 4, 5.0]", b"\xff"])
def test_a_damaged_note_is_not_believed(tmp_path: Path, content: bytes) -> None:
    note(Journal(tmp_path), "users", Mark(1, 1, 0, 0, 0))
    (file,) = (tmp_path / "charged").iterdir()
    file.write_bytes(content)
    (tmp_path / "charged" / "stray~").write_bytes(b"")
    with pytest.raises(LedgerDamaged):
        require_reached(Journal(tmp_path), "users", lambda: NOTHING)
