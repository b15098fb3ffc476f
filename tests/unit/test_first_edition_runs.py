"""Entities, coordinators, services and evaluations go on from rarer files that version 0.1.0 wrote."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tacit.audit import suite
from tacit.engines import CoordinatorFolder
from tacit.entity import Entity
from tacit.errors import Conflict, TacitError
from tacit.evaluation import registry
from tacit.evaluation.curve import Curve
from tacit.evaluation.result import Result
from tacit.ledger import Budget, Head, check
from tacit.server.federated_prototypes import Federation
from tests.unit.cli.called import Command
from tests.unit.entity.runs import CountedNoise
from tests.unit.evaluation.told import demonstration
from tests.unit.federated_world import ITEMS, key_of, rows_of
from tests.unit.first_edition import (
    asked,
    comparable,
    fp,
    read_settings,
    recorded,
    running,
    server_app,
    unpacked,
    unsynced,
)
from tests.unit.service.asking import Running

__all__ = ["unsynced"]

SAID = recorded("more.json")
NAMES = ("north", "south", "east")
KEY = key_of("coordinator")
WIDE = Budget(30, 1e-5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpacked("more", tmp_path)


@pytest.fixture
def opened() -> Iterator[Callable[..., Entity]]:
    entities = []

    def open_entity(file: Path, budget: Budget | None = None, **more: Any) -> Entity:
        name = more.pop("name", file.stem)
        entities.append(
            Entity(
                rows_of(name),
                file,
                name=name,
                key=key_of(name),
                coordinator=fp.public_of(KEY),
                catalogue=[f"item-{place}" for place in range(ITEMS)],
                budget=budget,
                **more,
            )
        )
        return entities[-1]

    yield open_entity
    for entity in entities:
        entity.close()


def told(entity: Entity) -> dict[str, Any]:
    """A statement, but for its moment."""
    statement: dict[str, Any] = entity.statement().to_json()
    del statement["at"]
    return statement


def ended(entity: Entity, message: bytes) -> str:
    """The digest of an answer, or the code of the error."""
    try:
        return sha256(entity.answer(message) or b"").hexdigest()
    except TacitError as problem:
        return problem.code


def manifest_of(message: bytes, **changed: Any) -> bytes:
    """The opening of another run, which asks for the same but for what is changed."""
    return replace(fp.Manifest.from_frame(fp.open_frame(message), fp.public_of(KEY)), **changed).signed(KEY)


# --- entities and their journals


def test_a_run_that_was_left_stays_left(folder: Path, opened: Callable[..., Entity]) -> None:
    said, file = SAID["left"], folder / "left" / "north.db"
    messages = {name: bytes.fromhex(message) for name, message in said["messages"].items()}
    entity = opened(file, head=Head.from_json(said["head"]))
    assert {name: ended(entity, message) for name, message in messages.items()} == said["answers"]
    assert said["answers"]["popularity"] == "conflict"
    with pytest.raises(Conflict, match="this run is over"):
        entity.answer(messages["popularity"])
    assert told(entity) == said["statement"]
    entity.leave(said["run"])
    entity.answer(manifest_of(messages["manifest"], title="new", aggregation="none", fewest=None, colluding=None))
    assert entity.statement().charges == said["statement"]["charges"] + 1
    assert check(file, head=Head.from_json(said["head"])).sound


def test_a_journal_without_marks_counts_its_records(folder: Path, opened: Callable[..., Entity]) -> None:
    said, place = SAID["unmarked"], folder / "unmarked"
    message = bytes.fromhex(said["message"])
    shutil.copytree(place, folder / "old copy")
    shutil.copy(place / "before.db", folder / "old copy" / "north.db")
    behind = opened(folder / "old copy" / "north.db")
    for ask in (lambda: behind.answer(message), behind.statement):
        with pytest.raises(Conflict, match="older than the journal"):
            ask()
    entity = opened(place / "north.db")
    assert told(entity) == said["statement"]
    assert ended(entity, message) == said["answer"]
    assert told(entity) == said["statement"]
    assert {one.name for one in (place / "north.db.runs").iterdir()} == {said["run"], "charged", "entries"}
    entity.answer(manifest_of(message, title="new"))
    assert entity.statement().charges == said["statement"]["charges"] + 1
    assert check(place / "north.db").sound


def test_a_stage_whose_draw_failed_stays_used_up(folder: Path, opened: Callable[..., Entity]) -> None:
    said, file, noise = SAID["failed"], folder / "failed" / "north.db", CountedNoise()
    message, head = bytes.fromhex(said["message"]), Head.from_json(said["head"])
    entity = opened(file, noise=noise, head=head)
    for _ in range(2):
        with pytest.raises(Conflict, match="used up"):
            entity.answer(message)
    assert (noise.asked, told(entity), said["statement"]["charges"]) == (0, said["statement"], 1)
    assert entity.answer(manifest_of(message, title="new"))
    assert entity.statement().charges == 2
    assert check(file, head=head).sound


# --- coordinators' folders


def test_a_run_of_grid_is_as_it_was(folder: Path, opened: Callable[..., Entity]) -> None:
    said, run = SAID["grid"], CoordinatorFolder(folder / "grid" / "run")
    assert (run.manifest.run, run.manifest.to_json(), run.status()) == (said["run"], said["manifest"], said["status"])
    assert said["manifest"]["mechanism"] == "grid"
    found = run.rebuild(KEY)
    assert found.model is not None
    assert found.model.hash == said["status"]["model"]["hash"]
    for name, one in said["entities"].items():
        entity = opened(folder / "grid" / f"{name}.db", head=Head.from_json(one["head"]))
        messages = sorted((run.folder / "outbox" / name).iterdir())
        assert {file.name: ended(entity, file.read_bytes()) for file in messages} == one["answers"]
        assert (told(entity), entity.shared()[1].hash) == (one["statement"], one["model"])
        with pytest.raises(TacitError):  # its budget was for one run
            entity.release(manifest_of(messages[0].read_bytes(), title="new"))
        assert check(folder / "grid" / f"{name}.db").sound


def test_a_run_that_was_given_up_stays_given_up(folder: Path) -> None:
    run = CoordinatorFolder(folder / "grid" / "given-up")
    assert run.status() == SAID["grid"]["given up"]
    found = run.rebuild(KEY)
    assert (found.done, found.model) == (True, None)
    assert run.step(KEY)[0].done


# --- services


def server(folder: Path, **own: Any) -> Running:
    return Running(server_app.create_app(read_settings(rate=0.0, log_requests=False, **own)))


@pytest.mark.usefixtures("quiet")
def test_a_run_goes_on_over_http(folder: Path, opened: Callable[..., Entity], tmp_path: Path) -> None:
    said, home = SAID["http"], unpacked("stores", tmp_path / "inputs") / "home"
    run = CoordinatorFolder(folder / "federations" / "half")
    headers = {"authorization": f"Bearer {recorded('stores.json')['service']['keys']['entity']}"}
    name, status, kind, digest = said["message"]
    database = str(tmp_path / "impressions.db")
    path = "/v1/federations/half"
    with server(folder, home=home, database=database, federations=folder / "federations") as app:
        assert app.ask(f"{path}/messages", headers=headers).body.decode() == said["list"]
        found = app.ask(f"{path}/messages/{name}", headers=headers)
        assert [found.status, found.headers["content-type"]] == [status, kind]
        assert sha256(found.body).hexdigest() == digest
        reply = bytes.fromhex(said["reply"])
        kept = app.ask(f"{path}/replies", method="POST", headers={**headers, "content-type": kind}, body=reply)
        assert [kept.status, kept.body.decode()] == said["kept"]
    assert [file.name for file in (run.folder / "inbox").iterdir()] == [json.loads(said["kept"][1])["name"]]
    run.step(KEY)
    assert run.status()["stages"][0]["replied"] == ["north"]
    for one in ("south", "east"):
        message = next((run.folder / "outbox" / one).iterdir())
        sent = opened(tmp_path / f"{one}.db", WIDE).answer(message.read_bytes())
        assert sent is not None
        (run.folder / "inbox" / message.name).write_bytes(sent)
    done: Federation = run.step(KEY)[0]
    assert done.model is not None
    assert run.manifest.run == said["run"]


@pytest.mark.usefixtures("quiet")
def test_the_version_that_was_served_last_is_served_when_the_published_one_is_damaged(
    folder: Path, tmp_path: Path
) -> None:
    inputs = unpacked("ledgers", unpacked("stores", tmp_path / "inputs"))
    shutil.copy(folder / "served", inputs / "home" / "served")
    assert (
        (folder / "served").read_text()
        == SAID["http"]["served"]
        == (inputs / "home/models/current").read_text().strip()
    )
    (inputs / "home" / "models" / "current").write_text("0123456789abcdef\n")
    known = recorded("stores.json")["service"]["keys"]
    rows = [row[1:] for row in recorded("answers.json") if row[0] == "server" and row[4] == 200]
    with running("server", inputs) as app:
        for path, key, body, *answer in rows:
            if path != "/readyz":
                assert comparable(path, asked(app, path, known.get(key, ""), body)) == comparable(path, answer), path


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings come from a test alone."""
    for variable in [one for one in os.environ if one.startswith("TACIT_SERVE_")]:
        monkeypatch.delenv(variable)


# --- results of evaluations, and reports


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], folder: Path) -> Command:
    monkeypatch.chdir(folder / "results")
    return Command(monkeypatch, capfd)


def test_a_result_and_its_curves_are_read(folder: Path) -> None:
    content = json.loads((folder / "results" / SAID["results"]["file"]).read_text(encoding="utf-8"))
    found = Result.from_json(content)
    assert found.to_json() == content
    assert (found.system, len(found.rows) > 100, len(found.claims) > 5, len(found.guarantees) > 5) == (
        *("private-slates", True, True, True),
    )
    report = json.loads((folder / "results" / "report.json").read_text(encoding="utf-8"))
    curves = [Curve.from_json(one) for one in report["curves"]]
    assert [one.to_json() for one in curves] == report["curves"]
    assert [one.to_json() for one in registry.curves(found)] == report["curves"]


def test_a_report_takes_the_result_that_was_kept_and_replaces_page_and_twin(
    tacit: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(*_: object, **__: object) -> NoReturn:
        raise AssertionError("evaluated again")

    audit = suite.run(["randomised-response"])
    monkeypatch.setattr(registry, "evaluate", evaluate)
    monkeypatch.setattr(import_module("tacit.cli.audit"), "run_audit", lambda: audit)
    monkeypatch.setattr(import_module("tacit.cli.demo"), "demonstrate", lambda data, systems: ((demonstration(),), {}))
    place = folder / "results"
    before = json.loads((place / "report.json").read_text(encoding="utf-8"))
    words = ("--system", "private-slates", "--data", "private-slates=movielens-small", "--results", ".")
    done = tacit("report", "--quick", *words)
    assert done.returncode == 0, done.stderr
    after = json.loads((place / "report.json").read_text(encoding="utf-8"))
    assert after["curves"] == before["curves"]
    assert after["results"] == [json.loads((place / SAID["results"]["file"]).read_text(encoding="utf-8"))]
    assert (place / "report.html").stat().st_size > 10_000


def test_advice_takes_its_figures_from_a_report(tacit: Command) -> None:
    words = ("--holder", "curator", "--wants", "slate", "--users", 6000, "--items", 4000, "--epsilon", 1)
    done = tacit("advise", *words, "--report", "report.json", "--json", "-")
    assert done.returncode == 0, done.stderr
    expected = json.loads(done.stdout)["expected"]
    assert {name: expected[name] for name in SAID["results"]["expected"]} == SAID["results"]["expected"]
