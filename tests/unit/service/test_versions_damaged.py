"""Versions and what may happen to them: a crash at any step of publishing, and files that are not what was written."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import InvalidModel
from tacit.messages.store import Store
from tacit.models.tables import Tables
from tacit.service import versions as room
from tacit.service.versions import current, publish, read_version, use, versions
from tests.unit.server.small_store import small_store
from tests.unit.service.released import NAMES, counts_of

NEW = small_store(20, look_alikes=5, seed=9)
FILES = ["store.tacit", "tables.safetensors", "counts-1"]


class Killed(BaseException):
    """The process ends here: nothing after it is done, not even what a ``finally`` would do."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Everything that changes the disk is counted; at step number ``step`` the process is gone, before or after the change."""
    steps: list[str] = []

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any, **more: Any) -> Any:
            if len(steps) >= step > 0:
                return None  # after its end a process does nothing
            steps.append(f"before {name}")
            if len(steps) == step:
                raise Killed
            done = real(*given, **more)
            steps.append(f"after {name}")
            if len(steps) == step:
                raise Killed
            return done

        return changed

    places: list[tuple[Any, str]] = [
        (os, "rename"), (os, "replace"), (os, "fsync"), (Path, "mkdir"), (Path, "write_bytes"), (Path, "write_text"),
        (Path, "unlink"), (Store, "save"), (Tables, "save"), (shutil, "rmtree"),
    ]  # fmt: skip
    with monkeypatch.context() as patched:
        for place, name in places:
            patched.setattr(place, name, counting(name, getattr(place, name)))
        yield steps


def test_a_process_that_is_killed_at_any_step_leaves_the_old_version_or_the_new_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = current(home / "models").name
    with killed_at(0, monkeypatch) as steps:  # none: how many steps there are
        new = publish(Path(shutil.copytree(home, tmp_path / "whole")) / "models", NEW, releases={"c": counts_of(NEW)})
    assert {"after fsync", "after rename", "after replace", "after save", "after write_text"} <= set(steps)
    monkeypatch.setattr(room, "time", lambda: new.published)
    switched = False
    for step in range(1, len(steps) + 1):
        models = Path(shutil.copytree(home, tmp_path / f"killed-{step}")) / "models"
        with killed_at(step, monkeypatch), pytest.raises(Killed):
            publish(models, NEW, releases={"c": counts_of(NEW)})
        served = current(models).check()
        assert served.name in ((new.name,) if switched else (old, new.name)), steps[step - 1]
        switched = switched or served.name == new.name  # once it is served it is served after every later step
        Store.load(served.file("store.tacit"))
        assert {one.check().name for one in versions(models)} <= {old, new.name}
        if step % 5 == 0 or step == len(steps):  # what is left lying about is in nobody's way
            assert publish(models, NEW, releases={"c": counts_of(NEW)}).check().name == new.name
        shutil.rmtree(models.parent)
    assert switched


def test_current_is_replaced_only_when_all_is_on_the_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with killed_at(0, monkeypatch) as steps:
        publish(home / "models", NEW)
    changes = [step.removeprefix("after ") for step in steps if step.startswith("after ")]
    renamed, replaced = changes.index("rename"), len(changes) - 1 - changes[::-1].index("replace")
    written = [place for place, change in enumerate(changes[:renamed]) if change in ("save", "write_bytes")]
    assert changes[max(written) + 1 : renamed] == ["fsync"] * 4  # store, tables, manifest, and their folder
    assert changes[renamed + 1] == "fsync"  # the new name
    assert changes[replaced - 1] == "fsync"  # what current will say, before it says it
    assert changes[replaced + 1] == "fsync"


@pytest.mark.parametrize("place", [(Store, "save"), (os, "rename"), (os, "replace")])
def test_a_full_disk_leaves_the_old_version_and_nothing_beside_it(
    home: Path, place: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = home / "models"
    old = current(models).name

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(*place, full)
        with pytest.raises(OSError, match="No space"):
            publish(models, NEW)
    assert current(models).check().name == old
    assert [one.name for one in models.iterdir() if one.name.startswith(".")] == []
    assert publish(models, NEW).check().name == current(models).name != old


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["first", "middle", "last", "longer", "shorter", "empty", "missing", "another"])
def test_a_file_that_is_not_what_was_published_is_found(home: Path, name: str, damage: str) -> None:
    version = current(home / "models")
    file = version.folder / name
    content = file.read_bytes()
    changed = {
        "first": flipped(content, 0),
        "middle": flipped(content, len(content) // 2),
        "last": flipped(content, len(content) - 1),
        "longer": content + b"\0",
        "shorter": content[:-1],
        "empty": b"",
        "another": (version.folder / FILES[FILES.index(name) - 1]).read_bytes(),
    }
    file.unlink()
    if damage != "missing":
        file.write_bytes(changed[damage])
    for work in (version.check, lambda: version.file(name), lambda: use(home / "models", version.name)):
        with pytest.raises(InvalidModel, match="missing or was changed") as told:
            work()
        assert name in str(told.value)
    if name == "counts-1":
        with pytest.raises(InvalidModel):
            version.release(name)


@pytest.mark.parametrize("change", [b" ", b"", None])
def test_a_manifest_that_was_changed_is_found(home: Path, change: bytes | None) -> None:
    version = current(home / "models")
    file = version.folder / "manifest.json"
    content = file.read_bytes()
    if change is None:  # a checksum that fits a changed file: the name of the version does not fit it any more
        (version.folder / "counts-1").write_bytes(b"{}")
        was = version.manifest["files"]["counts-1"]["sha256"]
        file.write_bytes(content.replace(was.encode(), sha256(b"{}").hexdigest().encode()))
    else:
        file.write_bytes(content + change if change else b"")
    with pytest.raises(InvalidModel, match="manifest"):
        current(home / "models")
    with pytest.raises(InvalidModel, match="manifest"):
        read_version(home / "models", version.name)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_publishing_again_mends_it(home: Path, store: Store, name: str) -> None:
    models = home / "models"
    (current(models).folder / name).write_bytes(b"damaged")
    mended = publish(models, store, feature_names=NAMES, releases={"counts-1": counts_of(store)})
    assert current(models).check().name == mended.name
    assert (mended.folder / name).read_bytes() != b"damaged"


def test_a_folder_that_is_none_of_ours_is_in_nobodys_way(home: Path) -> None:
    models = home / "models"
    shutil.copytree(current(models).folder, models / "my-backup")
    shutil.copytree(current(models).folder, models / "0123456789abcdef")
    names = [one.name for one in versions(models)]
    assert names == [current(models).name]
    assert publish(models, NEW).name == current(models).name
    assert room.tidy(models, keep=0) == names
    assert (models / "my-backup" / "manifest.json").exists()
