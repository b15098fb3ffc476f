"""Stores, ratings, published versions, keys and runs that version 0.1.0 wrote are read, and go on."""

import os
import shutil
import tomllib
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import Store
from tacit.data import TwoDomains, load_ratings
from tacit.engines import (
    CoordinatorFolder,
    Mailbox,
    entity_settings,
    open_entity,
    read_catalogue,
    read_key,
    read_manifest,
    read_public,
    tuning_of,
)
from tacit.errors import InvalidModel
from tacit.ledger import Head, PrivacyLedger, check
from tacit.server import MultiSelection
from tests.unit.first_edition import (
    cd,
    digest_of,
    fp,
    keys,
    read_settings,
    recorded,
    unpacked,
    unsynced,
    versions,
    write_app,
)

__all__ = ["unsynced"]

SAID = recorded("stores.json")
RUNS = recorded("federation.json")
ENTITIES = sorted(RUNS["entities"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpacked("stores", tmp_path)


# --- stores and ratings


@pytest.mark.parametrize("name", SAID["stores"])
def test_a_store_is_read_and_scores_the_same(folder: Path, name: str) -> None:
    said, file = SAID["stores"][name], folder / f"{name}.tacit"
    store = Store.load(file)
    space = store.space
    assert (store.version, store.name, store.items.ids.tolist()) == (said["version"], said["name"], said["items"])
    assert [space.kind, store.scorer.kind] == said["kinds"]
    assert store.guarantee.to_json() == said["guarantee"]
    features = np.linspace(space.low, space.high, 4 * space.dimension).reshape(4, space.dimension)
    scores = store.scorer.score(features, np.arange(len(store.items)))
    assert np.allclose(scores, said["scores"], rtol=1e-4, atol=1e-4)
    assert np.allclose(space.of(np.array([0, 2]), np.array([5.0, 1.0])), said["features"], atol=1e-5)
    assert np.allclose(store.look_alikes.sum(axis=0), said["look_alikes"], atol=1e-3)
    assert (store.look_alike_sizes is not None) == said["weighed"]
    assert store.to_bytes() == file.read_bytes()
    assert Store.from_bytes(file.read_bytes()).version == said["version"]


def test_every_kind_of_scorer_and_of_space_is_among_them() -> None:
    assert {one["kinds"][1] for one in SAID["stores"].values()} == {
        *("factors/1", "rating-network/1", "two-tower/1", "onnx/1"),
    }
    assert {one["kinds"][0] for one in SAID["stores"].values()} == {"genre-profile/1", "folded-taste/1"}


def test_a_store_that_was_changed_is_refused(folder: Path) -> None:
    file = folder / "factors.tacit"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(InvalidModel):
        Store.load(file)


@pytest.mark.parametrize("name", SAID["data"])
def test_ratings_are_read_as_they_were_written(folder: Path, name: str) -> None:
    said, ratings = SAID["data"][name], load_ratings(folder / "data" / f"{name}.parquet")
    table, catalogue = ratings.csr().toarray(), ratings.catalogue
    found = {
        "name": ratings.name,
        "users": ratings.n_users,
        "items": ratings.n_items,
        "ratings": len(ratings),
        "sum": float(table.sum()),
        "row": table[0].tolist(),
        "user_ids": ratings.user_ids[:3].tolist(),
        "item_ids": catalogue.ids[:3].tolist(),
        "titles": None if catalogue.titles is None else list(catalogue.titles[:2]),
        "vocabulary": list(catalogue.vocabulary),
        "times": None if ratings.times is None else ratings.times[:3].tolist(),
        "scale": [ratings.scale.low, ratings.scale.high, ratings.scale.step],
        "provenance": [ratings.provenance.source, ratings.provenance.licence, ratings.provenance.citation],
        "entities": None if ratings.entities is None else [str(one) for one in ratings.entities.names],
        "digest": digest_of(ratings),
    }
    assert found == said


def test_two_domains_share_their_users(folder: Path) -> None:
    source, target = (load_ratings(folder / "data" / f"{name}.parquet") for name in ("source", "target"))
    assert TwoDomains(source, target).shared.size > 0


def test_releases_in_files_are_read(folder: Path) -> None:
    model = cd.TransferModel.load(folder / "messages" / "transfer.json")
    assert len(model.predict({"a": 5.0})) == len(model.target)
    table = cd.Replacements.load(folder / "messages" / "replacements.json")
    assert [table.replacement(item) for item in table.source] == [table.target[place] for place in table.chosen]
    for message, name in ((model, "transfer.json"), (table, "replacements.json")):
        again = message.save(folder / "again.json")
        assert again.read_bytes() == (folder / "messages" / name).read_bytes()


# --- the home of a service


def test_published_versions_are_served_and_can_be_gone_back_to(folder: Path) -> None:
    said, models = SAID["service"], folder / "home" / "models"
    found = versions.current(models).check()
    assert (found.name, found.releases, found.feature_names) == (
        said["current"],
        said["releases"],
        said["feature_names"],
    )
    assert [(one.name, one.published) for one in versions.versions(models)] == [
        (said["current"], said["published"][0]),
        (said["first"], said["published"][1]),
    ]
    store = Store.load(found.file("store.tacit"))
    tables = versions.load_tables(found, store)
    assert tables is not None
    assert MultiSelection(store, tables=tables).store.version == SAID["stores"]["factors"]["version"]
    assert {one["name"]: type(found.release(one["name"])).__name__ for one in found.releases} == {
        "counts-1": "Popularity",
        "across.1": "TransferModel",
    }
    back = versions.use(models, said["first"])
    assert versions.is_demonstration(back)
    assert versions.current(models).name == said["first"]
    again = versions.publish(  # the same content is the same version
        models, store, feature_names=said["feature_names"], releases={"counts-1": back.release("counts-1")}
    )
    assert again.name == said["first"]


def test_keys_that_were_issued_hold_and_those_that_were_revoked_do_not(folder: Path) -> None:
    said, known = SAID["service"], keys.KeyRing(folder / "home" / "keys.json")
    found = {scope: known.find(f"Bearer {text}") for scope, text in said["keys"].items()}
    assert {scope: key.scope.value for scope, key in found.items() if key is not None} == {
        scope: scope for scope in said["keys"]
    }
    assert found["statements"].items == ("3", "é")  # type: ignore[union-attr]
    assert found["entity"].entity == "north"  # type: ignore[union-attr]
    assert not found["entity"].is_valid(date(2100, 1, 1))  # type: ignore[union-attr]
    assert known.find(f"Bearer {said['revoked']}") is None


def test_a_file_of_settings_says_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TACIT_SERVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TACIT_SERVE_SETTINGS", str(folder / "home" / "settings.toml"))
    found = read_settings()
    assert (found.port, found.most_k, found.epsilon, found.page) == (8123, 7, 0.5, False)
    assert found.origins == ("https://a.example", "https://b.example")


def test_the_flower_app_is_written_as_it_was_but_for_the_version_and_the_places_of_its_parts(folder: Path) -> None:
    def settings_of(app: Path) -> dict[str, Any]:
        settings = tomllib.loads((app / "pyproject.toml").read_text(encoding="utf-8"))
        del settings["project"]["version"], settings["tool"]["flwr"]["app"]["components"]
        return settings

    assert settings_of(write_app(folder / "made")) == settings_of(folder / "flower-app")


# --- a federation


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return unpacked("federation", tmp_path)


def test_settings_and_keys_give_the_same_manifests(world: Path) -> None:
    for kind in ("tree", "moments"):
        manifest, key = read_manifest(world / f"{kind}.toml")
        assert (manifest.run, manifest.to_json()) == (RUNS[kind]["run"], RUNS[kind]["manifest"])
        assert fp.public_of(key) == read_public(str(world / "coordinator.key.pub"))
        assert CoordinatorFolder(world / f"run-{kind}").manifest == manifest
    assert read_catalogue(world / "items.txt")[:2] == ["item-0", "item-1"]


@pytest.mark.parametrize("kind", ["tree", "moments"])
def test_a_coordinators_folder_is_as_far_as_it_was(world: Path, kind: str) -> None:
    run = CoordinatorFolder(world / f"run-{kind}")
    assert run.status() == RUNS[kind]["status"]
    found = run.rebuild(read_key(world / "coordinator.key"))
    assert found.done == (kind == "tree")
    assert (found.model is not None) == (kind == "tree")
    if found.model is not None:
        assert found.model.hash == RUNS[kind]["status"]["model"]["hash"]
        sent = fp.open_frame((world / "run-tree" / "model.fp").read_bytes())
        sent.verify(read_public(str(world / "coordinator.key.pub")))
        assert fp.SharedModel.from_frame(sent, run.manifest).hash == found.model.hash


@pytest.mark.parametrize("name", ENTITIES)
def test_an_entity_answers_the_same_for_the_same_charge(world: Path, name: str) -> None:
    said, box = RUNS["entities"][name], Mailbox(world / "boxes" / name)
    settings = entity_settings(world / f"{name}.toml")
    with open_entity(settings) as entity:
        assert (len(entity.users()), float(entity.table().sum())) == (said["users"], said["sum"])
        assert entity.head() == Head.from_json(said["head"])
        for file in sorted(box.inbox.iterdir()):
            reply = entity.answer(file.read_bytes())
            assert sha256(reply or b"").hexdigest() == said["answers"][file.name]
        manifest, model = entity.shared(RUNS["tree"]["run"])
        assert (manifest.run, model.hash) == (RUNS["tree"]["run"], said["model"])
        statement: dict[str, Any] = entity.statement().to_json()
        del statement["at"]
        assert statement == said["statement"]
        fit = entity.fit(run=RUNS["tree"]["run"], tuning=tuning_of(settings), rng=np.random.default_rng(0))
        assert fit is not None
    assert check(world / f"{name}.db", head=Head.from_json(said["head"])).sound


def test_entities_and_coordinator_finish_the_run_that_was_half_way(world: Path) -> None:
    place, key = world / "run-moments", read_key(world / "coordinator.key")
    run = CoordinatorFolder(place)
    assert run.status()["stage"] == "popularity"
    stages = []
    while run.status()["stage"] != "model":
        stages.append(run.status()["stage"])
        assert len(stages) < 5
        carried(world, place)
        run.step(key)
    assert stages == ["popularity", "unmask-popularity", "gram", "unmask-gram"]
    carried(world, place)
    for name in ENTITIES:
        with open_entity(entity_settings(world / f"{name}.toml")) as entity:
            _, model = entity.shared(RUNS["moments"]["run"])
            assert model.hash == run.status()["model"]["hash"]
            before = RUNS["entities"][name]["statement"]["charges"]
            # the popularity of north was charged before it was interrupted
            assert entity.statement().charges == before + (1 if name == "north" else 2)
        with PrivacyLedger.open(world / f"{name}.db", head=Head.from_json(RUNS["entities"][name]["head"])):
            assert check(world / f"{name}.db").sound


def carried(world: Path, place: Path) -> None:
    """Messages to the entities, which answer as other processes would, and their replies back."""
    for name in ENTITIES:
        box = Mailbox(world / "boxes" / name)
        for file in (place / "outbox" / name).iterdir():
            shutil.copy(file, box.inbox / file.name)
        with open_entity(entity_settings(world / f"{name}.toml")) as entity:
            assert {one.outcome for one in box.answer(entity)} <= {"answered", "kept", "over"}
        for file in box.outbox.iterdir():
            shutil.copy(file, place / "inbox" / file.name)
