"""Versions of a model on the disk: each is a folder that is whole or not there, and one file says which is served.

    models/current                    the name of a version
    models/<version>/manifest.json    every file with its SHA-256; the version is the digest of this
    models/<version>/store.tacit      items, features, scorer, look-alikes
    models/<version>/tables.safetensors
    models/<version>/<release>        what a curator released: counts for slates, models across domains

Publishing writes a hidden folder, renames it, then replaces ``current``. Whoever reads sees the old version or the new one. Owner,
group and permissions are those of ``models``, which is its owner's alone unless it was made otherwise.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from time import time
from typing import Any

from tacit.errors import InvalidModel, InvalidParameter, UnknownName
from tacit.messages.cross_domain import TransferModel
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.models.tables import Tables, build_tables
from tacit.service.disk import alone, give, put, synchronise

FORMAT = "tacit-models/1"
STORE, TABLES, MANIFEST, CURRENT = "store.tacit", "tables.safetensors", "manifest.json", "current"
KEEP = 3  # versions besides the one that is served
_PARTIAL = ".partial-"
_DEMONSTRATION = "demonstration"
_ABANDONED = 24 * 3600  # seconds after which a folder that nobody finished is nobody's
_MOST_RELEASE = 1 << 28  # bytes

Release = Popularity | TransferModel


@dataclass(frozen=True)
class Version:
    """A version that was published."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The version's name, which its content gives."""
        return self.folder.name

    @property
    def published(self) -> int:
        """Seconds since 1970."""
        return int(self.manifest["published"])

    @property
    def feature_names(self) -> list[str]:
        """What the features mean, in their order."""
        return list(self.manifest["feature_names"])

    @property
    def releases(self) -> list[Mapping[str, Any]]:
        """name, kind and guarantee of each."""
        return list(self.manifest["releases"])

    def file(self, name: str) -> Path:
        """A file of it, as it was written: ``InvalidModel`` where it is not."""
        about = self.manifest["files"].get(name)
        if about is None:
            raise UnknownName("this version has no such file.")
        path = self.folder / name
        try:
            with path.open("rb") as content:
                found = file_digest(content, "sha256").hexdigest()
        except PermissionError:
            raise _closed(path) from None
        except OSError:
            found = ""
        if found != about["sha256"]:
            raise InvalidModel(f"{path} is missing, or not what was published: publish again, or go back a version.")
        return path

    def check(self) -> "Version":
        """This version, if every file of it is as it was written."""
        for name in self.manifest["files"]:
            self.file(name)
        return self

    def release(self, name: str) -> Release:
        """A release that was published with this version, by its name."""
        kind = next((one["kind"] for one in self.releases if one["name"] == name), None)
        return read_release(self.file(name), kind)


def publish(
    models: Path, store: Store, *, feature_names: Sequence[str] = (), releases: Mapping[str, Release] | None = None
) -> Version:
    """Writes a new version and makes it the one that is served. The same content again is the same version."""
    models.mkdir(parents=True, exist_ok=True, mode=0o700)  # look-alikes are people
    with _written(models, store, releases or {}) as partial, alone(models):
        return _finish(models, partial, store, feature_names, releases or {})


@contextmanager
def _written(models: Path, store: Store, releases: Mapping[str, Release]) -> Iterator[Path]:
    """All files of a version but its manifest, in a hidden folder that goes if it is not renamed."""
    partial = models / f"{_PARTIAL}{os.urandom(8).hex()}"
    partial.mkdir()
    try:
        store.save(partial / STORE)
        if len(store.look_alikes):
            build_tables(store.scorer, store.look_alikes, store_version=store.version).save(partial / TABLES)
        for name, release in releases.items():
            _write_release(partial / _checked_name(name), release)
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def add_release(models: Path, name: str, release: Release) -> Version:
    """The version that is served, with one release more, as a new version."""
    current(models)  # or there is no such folder
    with alone(models):  # all the time: another one's release, or a new model, would be lost
        now = current(models).check()
        releases = {one["name"]: now.release(one["name"]) for one in now.releases} | {name: release}
        store = Store.load(now.folder / STORE)
        with _written(models, store, releases) as partial:
            return _finish(models, partial, store, now.feature_names, releases)


def current(models: Path) -> Version:
    """The version that is served."""
    try:
        name = (models / CURRENT).read_text(encoding="ascii").strip()
    except PermissionError:
        raise _closed(models / CURRENT) from None
    except (OSError, ValueError):
        raise InvalidModel(f"nothing is published in {models}: `tacit fit --models {models}` does.") from None
    return read_version(models, name)


def read_version(models: Path, name: str) -> Version:
    if not name or not name.isalnum():
        raise UnknownName(f"there is no such version in {models}.")
    try:
        content = (models / name / MANIFEST).read_bytes()
        manifest = json.loads(content)
        if manifest["format"] != FORMAT or _name_of(content) != name:
            raise ValueError
    except FileNotFoundError:
        raise UnknownName(f"there is no version {name} in {models}.") from None
    except PermissionError:
        raise _closed(models / name / MANIFEST) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidModel(f"the manifest of version {name} in {models} is not what was published.") from None
    return Version(models / name, manifest)


def names(models: Path) -> list[str]:
    """Of all folders that have a manifest, whatever it says."""
    if not models.is_dir():
        return []
    return sorted(one.name for one in models.iterdir() if (one / MANIFEST).is_file() and not one.name.startswith("."))


def versions(models: Path) -> list[Version]:
    """All that can be read, the newest first."""
    found = []
    for name in names(models):
        with suppress(InvalidModel, UnknownName):  # of others nothing can be said, and nothing depends on them
            found.append(read_version(models, name))
    return sorted(found, key=lambda one: (-one.published, one.name))


def use(models: Path, name: str) -> Version:
    """Serves a version that was published before."""
    read_version(models, name)  # or there is no such folder
    with alone(models):
        return _use(models, name)


def _use(models: Path, name: str) -> Version:
    found = read_version(models, name).check()
    put(models / CURRENT, name.encode() + b"\n", mode=_mode_of(models))
    return found


def tidy(models: Path, keep: int = KEEP) -> list[str]:
    """Deletes all but the version that is served and the ``keep`` newest others; returns their names."""
    current(models)  # or there is no such folder
    with alone(models):
        return _tidied(models, keep)


def _tidied(models: Path, keep: int) -> list[str]:
    served = current(models).name
    old = [one for one in versions(models) if one.name != served][keep:]
    for one in old:
        shutil.rmtree(one.folder)
    for partial in models.glob(f"{_PARTIAL}*"):
        with suppress(FileNotFoundError):  # finished just now
            if partial.stat().st_mtime < time() - _ABANDONED:
                shutil.rmtree(partial, ignore_errors=True)
    return [one.name for one in old]


def mark_demonstration(version: Version) -> None:
    """Says that this one was fitted to show something."""
    put(version.folder.parent / _DEMONSTRATION, version.name.encode(), mode=_mode_of(version.folder.parent))


def is_demonstration(version: Version) -> bool:
    """Whether this is the version that was fitted here to show something, and not one that was published since."""
    try:
        return (version.folder.parent / _DEMONSTRATION).read_bytes() == version.name.encode()
    except OSError:
        return False


def load_tables(version: Version, store: Store, r: int = 100) -> Tables | None:
    """The tables of a version, mapped: processes share them. None for a store without look-alikes."""
    if TABLES not in version.manifest["files"]:
        return None
    wanted = f"{store.version}/r={min(r, len(store.items))}"
    return Tables.load(version.folder / TABLES, wanted, mapped=True)


def read_release(file: Path, kind: str | None = None) -> Release:
    """A released message in a file: counts for slates, or a model across domains."""
    if file.stat().st_size > _MOST_RELEASE:
        raise InvalidModel(f"{file} is too large for a release.")
    if kind in (None, "popularity"):
        try:
            return Popularity.from_json(json.loads(file.read_bytes()))
        except (ValueError, RecursionError):
            if kind is not None:
                raise InvalidModel(f"{file} holds no counts.") from None
    try:
        return TransferModel.load(file)
    except RecursionError:
        raise InvalidModel(f"{file} holds no release.") from None


def _finish(
    models: Path, partial: Path, store: Store, feature_names: Sequence[str], releases: Mapping[str, Release]
) -> Version:
    manifest = {
        "format": FORMAT,
        "name": store.name,
        "store": store.version,
        "published": int(time()),
        "feature_names": list(feature_names),
        "releases": [
            {"name": name, "kind": _kind(one), "guarantee": one.guarantee.to_json()} for name, one in releases.items()
        ],
        "files": {file.name: _about(file) for file in sorted(partial.iterdir())},
    }
    served = _same(models, manifest)
    if served is None:
        content = json.dumps(manifest, indent=1, sort_keys=True).encode()
        (partial / MANIFEST).write_bytes(content)
        _open_up(partial)
        synchronise([*partial.iterdir(), partial])
        served = _name_of(content)
        _make_room(models / served)
        os.rename(partial, models / served)
        synchronise([models])
    return _use(models, served)


def _open_up(folder: Path) -> None:
    """Whoever may read the folder of all versions may read this one: nobody but its owner, unless an operator says otherwise."""
    mode = _mode_of(folder.parent)
    for file in folder.iterdir():
        give(file, like=folder.parent, mode=mode)
    give(folder, like=folder.parent, mode=mode | (mode & 0o444) >> 2)  # who may read may enter


def _mode_of(models: Path) -> int:
    return models.stat().st_mode & 0o666


def _same(models: Path, manifest: Mapping[str, Any]) -> str | None:
    """The name of a version with this content, whenever it was published."""
    said = {**manifest, "published": 0}
    for one in versions(models):
        if {**one.manifest, "published": 0} == said:
            with suppress(InvalidModel):  # a damaged one is published anew
                return one.check().name
    return None


def _make_room(folder: Path) -> None:
    """A damaged version of the same name, from the same second, is put out of the way."""
    if folder.exists():
        os.rename(folder, folder.with_name(f"{_PARTIAL}{folder.name}-{os.urandom(4).hex()}"))


def _closed(file: Path) -> InvalidModel:
    return InvalidModel(f"the user that this runs as may not read {file}: chmod or chown it.")


def _name_of(manifest: bytes) -> str:
    return sha256(manifest).hexdigest()[:16]


def _kind(release: Release) -> str:
    return "popularity" if isinstance(release, Popularity) else "transfer"


def _write_release(file: Path, release: Release) -> None:
    if isinstance(release, Popularity):
        file.write_text(json.dumps(release.to_json(), allow_nan=False), encoding="utf-8")
    else:
        release.save(file)


def _checked_name(name: str) -> str:
    if (
        not name.replace("-", "").replace(".", "").isalnum()
        or not name.isascii()
        or name.startswith(".")
        or len(name) > 60
    ):
        raise InvalidParameter("a release is named with letters, digits, dots and hyphens.")
    if name in (STORE, TABLES, MANIFEST):
        raise InvalidParameter(f"{name!r} is taken: name the release otherwise.")
    return name


def _about(file: Path) -> dict[str, Any]:
    with file.open("rb") as content:
        return {"sha256": file_digest(content, "sha256").hexdigest(), "bytes": file.stat().st_size}
