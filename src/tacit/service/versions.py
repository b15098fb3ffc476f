"""Published versions of a model on the disk. Each is a complete folder; one file names the version that is served.

    models/current                    the name of a version
    models/<version>/manifest.json    every file with its SHA-256; the digest of this file is the version's name
    models/<version>/store.tacit      items, features, scorer, look-alikes
    models/<version>/tables.safetensors
    models/<version>/<release>        a curator's release: counts for slates, or a model across domains

Publishing writes a hidden folder, renames it, then replaces ``current``. Readers see the old version or the new one.
All files get the owner, group and permissions of ``models``, which only its owner may read unless you change that. Change it
if the service runs as another user than the one who publishes.
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
from tacit.files import give, lock, replace, synchronise
from tacit.messages.cross_domain import TransferModel
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.models.tables import Tables, build_tables

FORMAT = "tacit-models/1"
STORE, TABLES, MANIFEST, CURRENT = "store.tacit", "tables.safetensors", "manifest.json", "current"
KEEP = 3  # versions besides the served one
_PARTIAL = ".partial-"
_DEMONSTRATION = "demonstration"
_ABANDONED = 24 * 3600  # seconds after which an unfinished folder is deleted
_MOST_RELEASE = 1 << 28  # bytes

Release = Popularity | TransferModel


@dataclass(frozen=True)
class Version:
    """A published version."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The version's name, a digest of its content."""
        return self.folder.name

    @property
    def published(self) -> int:
        """The time of publishing, in seconds since 1970."""
        return int(self.manifest["published"])

    @property
    def feature_names(self) -> list[str]:
        """The names of the features, in order."""
        return list(self.manifest["feature_names"])

    @property
    def releases(self) -> list[Mapping[str, Any]]:
        """The name, kind and guarantee of each release."""
        return list(self.manifest["releases"])

    def file(self, name: str) -> Path:
        """The path of a file of this version. Raises InvalidModel if the file was changed since it was published."""
        entry = self.manifest["files"].get(name)
        if entry is None:
            raise UnknownName("this version has no such file.")
        path = self.folder / name
        try:
            with path.open("rb") as content:
                digest = file_digest(content, "sha256").hexdigest()
        except PermissionError:
            raise _unreadable(path) from None
        except OSError:
            digest = ""
        if digest != entry["sha256"]:
            raise InvalidModel(f"{path} is missing or was changed. Publish again, or go back to an older version.")
        return path

    def check(self) -> "Version":
        """Checks all files and returns this version. Raises InvalidModel if a file was changed since it was published."""
        for name in self.manifest["files"]:
            self.file(name)
        return self

    def release(self, name: str) -> Release:
        """A release that was published with this version, by its name."""
        kind = next((entry["kind"] for entry in self.releases if entry["name"] == name), None)
        return read_release(self.file(name), kind)


def publish(
    models: Path, store: Store, *, feature_names: Sequence[str] = (), releases: Mapping[str, Release] | None = None
) -> Version:
    """Writes a new version and serves it. Publishing the same content again gives the same version."""
    models.mkdir(parents=True, exist_ok=True, mode=0o700)  # look-alikes are features of people
    with _draft(models, store, releases or {}) as partial, lock(models):
        return _finish(models, partial, store, feature_names, releases or {})


@contextmanager
def _draft(models: Path, store: Store, releases: Mapping[str, Release]) -> Iterator[Path]:
    """A hidden folder with all files of a version except its manifest. It is deleted unless it is renamed."""
    partial = models / f"{_PARTIAL}{os.urandom(8).hex()}"
    partial.mkdir()
    try:
        store.save(partial / STORE)
        if len(store.look_alikes):
            build_tables(store.scorer, store.look_alikes, store_version=store.version).save(partial / TABLES)
        for name, release in releases.items():
            file = partial / _checked_name(name)
            if isinstance(release, Popularity):
                file.write_text(json.dumps(release.to_json(), allow_nan=False), encoding="utf-8")
            else:
                release.save(file)
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def add_release(models: Path, name: str, release: Release) -> Version:
    """Publishes the served version again, with one more release."""
    current(models)  # raises if there is no such folder
    with lock(models):  # until the end: otherwise another release or a new model could be lost
        served = current(models).check()
        releases = {entry["name"]: served.release(entry["name"]) for entry in served.releases} | {name: release}
        store = Store.load(served.folder / STORE)
        with _draft(models, store, releases) as partial:
            return _finish(models, partial, store, served.feature_names, releases)


def current(models: Path) -> Version:
    """The version that is served."""
    try:
        name = (models / CURRENT).read_text(encoding="ascii").strip()
    except PermissionError:
        raise _unreadable(models / CURRENT) from None
    except (OSError, ValueError):
        raise InvalidModel(f"nothing is published in {models}: run `tacit fit --models {models}`.") from None
    return read_version(models, name)


def read_version(models: Path, name: str) -> Version:
    """A version by its name. Raises UnknownName if it does not exist, InvalidModel if its manifest was changed."""
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
        raise _unreadable(models / name / MANIFEST) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidModel(f"the manifest of version {name} in {models} was changed. Publish again.") from None
    return Version(models / name, manifest)


def names(models: Path) -> list[str]:
    """The names of all folders that have a manifest, valid or not."""
    if not models.is_dir():
        return []
    folders = [folder for folder in models.iterdir() if (folder / MANIFEST).is_file()]
    return sorted(folder.name for folder in folders if not folder.name.startswith("."))


def versions(models: Path) -> list[Version]:
    """All versions that can be read, the newest first."""
    readable = []
    for name in names(models):
        with suppress(InvalidModel, UnknownName):
            readable.append(read_version(models, name))
    return sorted(readable, key=lambda version: (-version.published, version.name))


def use(models: Path, name: str) -> Version:
    """Serves a version that was published before."""
    read_version(models, name)  # raises if there is no such folder
    with lock(models):
        return _use(models, name)


def _use(models: Path, name: str) -> Version:
    version = read_version(models, name).check()
    replace(models / CURRENT, name.encode() + b"\n", mode=_mode_of(models), inherit_owner=True)
    return version


def tidy(models: Path, keep: int = KEEP) -> list[str]:
    """Deletes all versions except the served one and the ``keep`` newest others. Returns the deleted names."""
    current(models)  # raises if there is no such folder
    with lock(models):
        served = current(models).name
        old = [version for version in versions(models) if version.name != served][keep:]
        for version in old:
            shutil.rmtree(version.folder)
        for partial in models.glob(f"{_PARTIAL}*"):
            with suppress(FileNotFoundError):  # another process has just renamed it
                if partial.stat().st_mtime < time() - _ABANDONED:
                    shutil.rmtree(partial, ignore_errors=True)
    return [version.name for version in old]


def mark_demonstration(version: Version) -> None:
    """Marks the version that `tacit serve` fitted as a demonstration."""
    models = version.folder.parent
    replace(models / _DEMONSTRATION, version.name.encode(), mode=_mode_of(models), inherit_owner=True)


def is_demonstration(version: Version) -> bool:
    """Whether `tacit serve` fitted this version as a demonstration."""
    try:
        return (version.folder.parent / _DEMONSTRATION).read_bytes() == version.name.encode()
    except OSError:
        return False


def load_tables(version: Version, store: Store, r: int = 100) -> Tables | None:
    """The tables of a version, memory-mapped, so that processes share them. None for a store without look-alikes."""
    if TABLES not in version.manifest["files"]:
        return None
    return Tables.load(version.folder / TABLES, f"{store.version}/r={min(r, len(store.items))}", mapped=True)


def read_release(file: Path, kind: str | None = None) -> Release:
    """Reads a released message: counts for slates, or a model across domains."""
    if file.stat().st_size > _MOST_RELEASE:
        raise InvalidModel(f"{file} is too large for a release.")
    if kind in (None, "popularity"):
        try:
            return Popularity.from_json(json.loads(file.read_bytes()))
        except (ValueError, RecursionError):
            if kind is not None:
                raise InvalidModel(f"{file} does not hold released counts.") from None
    try:
        return TransferModel.load(file)
    except RecursionError:
        raise InvalidModel(f"{file} does not hold a release.") from None


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
            {
                "name": name,
                "kind": "popularity" if isinstance(release, Popularity) else "transfer",
                "guarantee": release.guarantee.to_json(),
            }
            for name, release in releases.items()
        ],
        "files": {file.name: _digest_and_size(file) for file in sorted(partial.iterdir())},
    }
    name = _find_same(models, manifest)
    if name is None:
        content = json.dumps(manifest, indent=1, sort_keys=True).encode()
        (partial / MANIFEST).write_bytes(content)
        _inherit_permissions(partial)
        synchronise([*partial.iterdir(), partial])
        name = _name_of(content)
        if (models / name).exists():  # a damaged version of the same content, published in the same second
            os.rename(models / name, models / f"{_PARTIAL}{name}-{os.urandom(4).hex()}")
        os.rename(partial, models / name)
        synchronise([models])
    return _use(models, name)


def _inherit_permissions(folder: Path) -> None:
    """Gives a version the owner and permissions of the folder of all versions, which by default only its owner may read."""
    mode = _mode_of(folder.parent)
    for file in folder.iterdir():
        give(file, like=folder.parent, mode=mode)
    give(folder, like=folder.parent, mode=mode | (mode & 0o444) >> 2)  # readers may also enter


def _mode_of(models: Path) -> int:
    return models.stat().st_mode & 0o666


def _find_same(models: Path, manifest: Mapping[str, Any]) -> str | None:
    """The name of a sound version with this content, published at any time."""
    undated = {**manifest, "published": 0}
    for version in versions(models):
        if {**version.manifest, "published": 0} == undated:
            with suppress(InvalidModel):  # a damaged version is published again
                return version.check().name
    return None


def _unreadable(file: Path) -> InvalidModel:
    return InvalidModel(f"{file} may not be read by the user that runs this. Change its mode or owner.")


def _name_of(manifest: bytes) -> str:
    return sha256(manifest).hexdigest()[:16]


def _checked_name(name: str) -> str:
    if (
        not name.replace("-", "").replace(".", "").isalnum()
        or not name.isascii()
        or name.startswith(".")
        or len(name) > 60
    ):
        raise InvalidParameter(
            "the name of a release may have letters, digits, dots and hyphens, and at most 60 of them."
        )
    if name in (STORE, TABLES, MANIFEST):
        raise InvalidParameter(f"{name!r} is the name of another file of a version. Choose another name.")
    return name


def _digest_and_size(file: Path) -> dict[str, Any]:
    with file.open("rb") as content:
        return {"sha256": file_digest(content, "sha256").hexdigest(), "bytes": file.stat().st_size}
