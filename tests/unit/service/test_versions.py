"""Versions on the disk: what is published is what is read, the same content is the same version, and which one is served."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import InvalidModel, InvalidParameter, TacitError, UnknownName
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.service import versions as room
from tacit.service.versions import add_release, current, load_tables, publish, read_version, tidy, use, versions
from tests.unit.server.small_store import small_store
from tests.unit.service.released import NAMES, counts_of, transfer_model


@pytest.fixture
def models(home: Path) -> Path:
    return home / "models"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Moves the clock of publishing."""
    began = room.time()
    return lambda seconds: monkeypatch.setattr(room, "time", lambda: began + seconds)


def others(models: Path, later: Callable[[int], None], count: int) -> list[str]:
    """Further versions, the last of which is served."""
    names = []
    for number in range(count):
        later(10 * (number + 1))
        names.append(publish(models, small_store(20, look_alikes=5, seed=number + 1)).name)
    return names


def test_what_is_published_is_what_is_read(models: Path, store: Store) -> None:
    found = current(models).check()
    assert Store.load(found.file("store.tacit")).version == store.version == found.manifest["store"]
    assert found.feature_names == NAMES
    assert [(one["name"], one["kind"], one["guarantee"]["epsilon"]) for one in found.releases] == [
        ("counts-1", "popularity", 1.0)
    ]
    assert found.release("counts-1") == counts_of(store)
    assert {file.name for file in found.folder.iterdir()} == {*found.manifest["files"], "manifest.json"}
    assert [file.name for file in models.iterdir() if file.name.startswith(".")] == []


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
@pytest.mark.parametrize(
    ("folder", "inside", "files"), [(None, 0o700, 0o600), (0o750, 0o750, 0o640), (0o755, 0o755, 0o644)]
)
def test_whoever_may_read_the_folder_of_all_versions_may_read_each_of_them_and_nobody_else(
    tmp_path: Path, umask: int, folder: int | None, inside: int, files: int
) -> None:
    """Look-alikes are people; but a service is often another user than the one who publishes."""
    models = tmp_path / "models"
    if folder is not None:
        models.mkdir()
        models.chmod(folder)
    before = os.umask(umask)
    try:
        store = small_store(20, look_alikes=5)
        found = publish(models, store, releases={"counts-1": counts_of(store)})
    finally:
        os.umask(before)
    assert len(list(found.folder.iterdir())) == 4
    assert {file.stat().st_mode & 0o777 for file in [*found.folder.iterdir(), models / "current"]} == {files}
    assert {one.stat().st_mode & 0o777 for one in (models, found.folder)} == {inside}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_version_belongs_to_the_owner_of_the_folder_of_all(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    os.chown(models, 10001, 10002)
    found = publish(models, small_store(20, look_alikes=5))
    for one in (found.folder, *found.folder.iterdir(), models / "current"):
        assert (one.stat().st_uid, one.stat().st_gid) == (10001, 10002)


@pytest.mark.parametrize("file", ["current", "manifest.json", "store.tacit"])
def test_what_may_not_be_read_is_told_as_that(models: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(self: Path, *given: Any, **more: Any) -> Any:
        if self.name == file:
            raise PermissionError(13, "Permission denied")  # as for everybody but root
        return opened(self, *given, **more)

    opened = Path.open
    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(InvalidModel, match=rf"{file} may not be read .* mode or owner"):
        current(models).check()


def test_releases_that_are_added_at_once_are_all_there_in_the_end(models: Path, store: Store) -> None:
    words = (
        "import sys; from pathlib import Path; from tacit.service.versions import add_release, current; "
        "models = Path(sys.argv[1]); add_release(models, sys.argv[2], current(models).release('counts-1'))"
    )
    adding = [subprocess.Popen([sys.executable, "-c", words, str(models), f"more-{number}"]) for number in range(4)]
    assert [one.wait(60) for one in adding] == [0] * 4
    found = current(models).check()
    assert {one["name"] for one in found.releases} == {"counts-1", *(f"more-{number}" for number in range(4))}


def test_every_file_stands_in_the_manifest_with_its_size_and_checksum(models: Path) -> None:
    found = current(models)
    for name, about in found.manifest["files"].items():
        content = (found.folder / name).read_bytes()
        assert about == {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    assert found.name == sha256((found.folder / "manifest.json").read_bytes()).hexdigest()[:16]


def test_the_same_content_is_the_same_version_whenever_it_is_published(
    models: Path, store: Store, later: Callable[[int], None]
) -> None:
    before = current(models)
    later(1000)
    again = publish(models, store, feature_names=NAMES, releases={"counts-1": counts_of(store)})
    assert (again.name, again.published, len(versions(models))) == (before.name, before.published, 1)
    for names, releases in (
        (NAMES[::-1], {"counts-1": counts_of(store)}),
        (NAMES, {"counts-2": counts_of(store)}),
        (NAMES, {"counts-1": counts_of(store, 2.0)}),
        (NAMES, {}),
    ):
        changed = publish(models, store, feature_names=names, releases=releases)
        assert changed.name != before.name
        assert current(models).name == changed.name
    assert publish(models, store, feature_names=NAMES, releases={"counts-1": counts_of(store)}).name == before.name
    assert current(models).name == before.name  # published again it is served again
    assert len(versions(models)) == 5


def test_versions_are_named_from_the_newest_to_the_oldest(models: Path, later: Callable[[int], None]) -> None:
    first = current(models).name
    one, two = others(models, later, 2)
    assert [version.name for version in versions(models)] == [two, one, first]
    assert versions(models / "no such folder") == []


def test_going_back_serves_an_older_version(models: Path, later: Callable[[int], None]) -> None:
    first = current(models).name
    (newer,) = others(models, later, 1)
    assert current(models).name == newer
    assert use(models, first).name == first == current(models).name
    assert (models / "current").read_text() == f"{first}\n"


@pytest.mark.parametrize("name", ["", ".", "..", "../models", "a/b", "0" * 16, ".partial-1", "current"])
def test_a_version_that_there_is_not_is_not_served(models: Path, name: str) -> None:
    before = current(models).name
    with pytest.raises((UnknownName, InvalidModel)):
        use(models, name)
    with pytest.raises((UnknownName, InvalidModel)):
        read_version(models, name)
    assert current(models).name == before


def test_old_versions_are_deleted_but_never_the_one_that_is_served(models: Path, later: Callable[[int], None]) -> None:
    first = current(models).name
    a, b, c, d = others(models, later, 4)
    use(models, first)  # the oldest of all
    assert set(tidy(models, keep=2)) == {a, b}
    assert [version.name for version in versions(models)] == [d, c, first]
    assert current(models).check().name == first
    assert tidy(models, keep=2) == []
    assert set(tidy(models, keep=0)) == {c, d}
    assert tidy(models, keep=0) == []
    assert current(models).check().name == first


def test_what_a_killed_process_left_is_tidied_up_after_a_day(models: Path) -> None:
    for name, age in ((".partial-old", 25 * 3600), (".partial-new", 3600)):
        (models / name).mkdir()
        (models / name / "store.tacit").write_bytes(b"half")
        at = room.time() - age
        os.utime(models / name, (at, at))
    tidy(models)
    assert [one.name for one in models.iterdir() if one.name.startswith(".")] == [".partial-new"]


def test_a_release_more_is_a_new_version_with_all_that_was_there(models: Path, store: Store) -> None:
    before = current(models)
    after = add_release(models, "counts-2", counts_of(store, 2.0))
    assert current(models).name == after.name != before.name
    assert [one["name"] for one in after.releases] == ["counts-1", "counts-2"]
    assert after.release("counts-1") == before.release("counts-1")
    assert (after.feature_names, after.manifest["store"]) == (NAMES, store.version)
    replaced = add_release(models, "counts-2", counts_of(store, 3.0))
    assert [one["guarantee"]["epsilon"] for one in replaced.releases] == [1.0, 3.0]
    assert read_version(models, before.name).check().releases == before.releases  # and the old one is as it was


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "a/b", "../a", "a b", "ä", "a\n", "x" * 61, "store.tacit", "manifest.json",
     "tables.safetensors", "a\0b", "---"],
)  # fmt: skip
def test_odd_names_of_releases_are_refused_and_nothing_is_published(models: Path, store: Store, name: str) -> None:
    before = sorted(path.name for path in models.rglob("*"))
    with pytest.raises(InvalidParameter):
        add_release(models, name, counts_of(store))
    assert sorted(path.name for path in models.rglob("*")) == before


@pytest.mark.parametrize("content", [None, b"", b"\n", b"0123456789abcdef\n", b"\xff\xfe", b"../..", b"a b"])
def test_where_nothing_is_served_that_is_said(models: Path, content: bytes | None) -> None:
    (models / "current").unlink()
    if content is not None:
        (models / "current").write_bytes(content)
    for work in (current, tidy):
        with pytest.raises((InvalidModel, UnknownName)):
            work(models)
    assert len(versions(models)) == 1  # what was published is still there


def test_a_store_without_look_alikes_has_no_tables(tmp_path: Path) -> None:
    version = publish(tmp_path / "m", small_store(look_alikes=0))
    assert set(version.manifest["files"]) == {"store.tacit"}
    assert load_tables(version, small_store(look_alikes=0)) is None


def test_tables_of_another_store_are_refused(models: Path, store: Store) -> None:
    """Also where their own checksum is right: their slates would be another model's."""
    other = publish(models, small_store(seed=1))
    found = load_tables(other, small_store(seed=1))
    assert found is not None
    assert found.r == min(100, len(store.items))
    with pytest.raises(InvalidModel, match="another model"):
        load_tables(other, store)
    first = next(version for version in versions(models) if version.name != other.name)
    shutil.copy(other.folder / "tables.safetensors", first.folder / "tables.safetensors")
    with pytest.raises(InvalidModel, match="another model"):
        load_tables(first, store)


def test_models_across_domains_are_releases_too(models: Path) -> None:
    after = add_release(models, "books", transfer_model())
    assert [(one["name"], one["kind"]) for one in after.releases] == [("counts-1", "popularity"), ("books", "transfer")]
    assert after.release("books") == room.read_release(after.file("books")) == transfer_model()


def test_a_release_is_read_as_what_it_is(models: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    version = current(models)
    assert isinstance(room.read_release(version.file("counts-1")), Popularity)
    for kind in (None, "popularity", "transfer"):
        for content in (b"", b"{", json.dumps({"items": []}).encode(), b"\xff" * 100, version.folder.name.encode()):
            file = models / "odd"
            file.write_bytes(content)
            with pytest.raises(TacitError):
                room.read_release(file, kind)
    monkeypatch.setattr(room, "_MOST_RELEASE", 10)
    with pytest.raises(InvalidModel, match="too large"):
        room.read_release(version.file("counts-1"))
    with pytest.raises(UnknownName):
        version.release("no-such")
