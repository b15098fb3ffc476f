"""What an entity and a coordinator say once, in a file: TOML, with places relative to that file.

An entity's file:                                  A coordinator's file:

    name = "north"                                     key = "coordinator.key"
    key = "north.key"                                  catalogue = "items.txt"
    coordinator = "coordinator.key.pub"                epsilon = 1.0
    catalogue = "items.txt"                            users = 600
    rows = "rows.csv"                                  [[roster]]
    ledger = "north.db"                                name = "north"
    mailbox = "north"                                  key = "north.key.pub"
    budget = { epsilon = 4.0, delta = 1e-6 }           role = "contributor"
    policy = { epsilon = 2.0 }

All other constants of a Manifest may stand in a coordinator's file, under their names.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tacit.engines.keys import read_key, read_public
from tacit.engines.row_files import read_rows
from tacit.entity import Entity, Policy, Tuning
from tacit.entity.account import SUBJECT
from tacit.entity.blend import BlendSettings
from tacit.errors import InvalidData, InvalidParameter
from tacit.ledger import Budget
from tacit.messages.federated_prototypes_frame import public_of
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_roster import Member, catalogue_hash
from tacit.messages.private_slates_parts import Item

_ENTITY = ("name", "key", "coordinator", "catalogue", "rows", "ledger", "mailbox")
_MAY = ("budget", "policy", "accounting", "journal", "subject", "fit")
_KEY = "a private key: `tacit entity keys FILE` draws one"
_GIVEN = ("catalogue", "items", "roster", "coordinator")  # of a manifest: they follow from files


class Settings:
    """The members of a settings file, and the places they name."""

    def __init__(self, file: str | os.PathLike[str], needed: Iterable[str], allowed: Iterable[str]) -> None:
        self._file, needed, allowed = Path(file), set(needed), set(allowed)
        self._folder = self._file.absolute().parent
        try:
            self.members: dict[str, Any] = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise InvalidData(f"{os.fspath(file)} is no TOML: {problem}.") from None
        if missing := sorted(needed - set(self.members)):
            raise InvalidParameter(f"{os.fspath(file)} must say {', '.join(missing)}.")
        if unknown := sorted(set(self.members) - needed - allowed):
            raise InvalidParameter(f"{os.fspath(file)} says what is not known here: {', '.join(unknown)}.")

    def text(self, name: str) -> str:
        """The text of that name; refused where it is something else."""
        value = self.members[name]
        if not isinstance(value, str):
            raise InvalidParameter(f"{name} must be a text.")
        return value

    def place(self, name: str) -> Path:
        """The file or folder of that name, beside the settings unless it is absolute."""
        return self._folder / self.text(name)

    def file(self, name: str, holds: str) -> Path:
        """The file of that name; where there is none, which one was named and what it ``holds`` is told."""
        return self._there(name, self.text(name), holds)

    def catalogue(self) -> list[Item]:
        """The ids of the items in the file ``catalogue``, in the common order."""
        return read_catalogue(self.file("catalogue", "the ids of all items, one in each line, in the common order"))

    def public(self, name: str, text: str) -> bytes:
        """A public key, as digits or as the file that holds them."""
        if len(text) == 64 and not (self._folder / text).exists():
            return read_public(text)
        return read_public(str(self._there(name, text, "a public key, as `tacit entity keys` writes it beside a key")))

    def _there(self, name: str, told: str, holds: str) -> Path:
        if not (self._folder / told).is_file():
            where = "" if Path(told).is_absolute() else f" beside {self._file.name}"
            raise InvalidData(
                f'{self._file.name} names {name} = "{told}", and there is no such file{where}. It should hold {holds}.'
            )
        return self._folder / told


def entity_settings(file: str | os.PathLike[str]) -> Settings:
    """An entity's settings (TOML), with all names checked; what they name is read later."""
    return Settings(file, _ENTITY, _MAY)


def open_entity(settings: Settings) -> Entity:
    """The entity that a settings file describes. Its rows are read when they are needed."""
    catalogue, ledger = settings.catalogue(), settings.text("ledger")
    rows = settings.file("rows", "columns user, item and perhaps value, as CSV or Parquet")
    budget, policy = settings.members.get("budget"), settings.members.get("policy", {})
    return Entity(
        lambda: read_rows(rows, catalogue),
        ledger if "://" in ledger else settings.place("ledger"),
        name=settings.text("name"),
        key=read_key(settings.file("key", _KEY)),
        coordinator=settings.public("coordinator", settings.text("coordinator")),
        catalogue=catalogue,
        budget=None if budget is None else Budget(**_known(budget, Budget, "budget")),
        accounting=settings.members.get("accounting"),
        policy=_policy(policy, settings),
        journal=settings.place("journal") if "journal" in settings.members else None,
        subject=settings.text("subject") if "subject" in settings.members else SUBJECT,
    )


def tuning_of(settings: Settings) -> Tuning:
    """The public constants of the local fit that a settings file states, for 'moments': ridge, alpha, gamma."""
    told = settings.members.get("fit")
    return Tuning() if told is None else Tuning(blend=BlendSettings(**_known(told, BlendSettings, "fit")))


def read_manifest(file: str | os.PathLike[str]) -> tuple[Manifest, bytes]:
    """The manifest that a coordinator's settings describe, and the coordinator's private key."""
    constants = {one.name for one in fields(Manifest)} - set(_GIVEN)
    settings = Settings(file, ("key", "catalogue", "roster", "epsilon", "users"), constants)
    key, catalogue = read_key(settings.file("key", _KEY)), settings.catalogue()
    told = {name: value for name, value in settings.members.items() if name in constants}
    if isinstance(told.get("shares"), list):
        told["shares"] = tuple(told["shares"])
    manifest = Manifest(
        catalogue=catalogue_hash(catalogue),
        items=len(catalogue),
        roster=_roster(settings),
        coordinator=public_of(key).hex(),
        **told,
    )
    return manifest, key


def read_catalogue(file: Path) -> list[Item]:
    """The ids of the items, in their order: one in each line, or a list in JSON."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidData(f"{file.name} is no text in UTF-8: write it in UTF-8, as plain text.") from None
    if file.suffix == ".json":
        try:
            found = json.loads(text)
        except ValueError:
            raise InvalidData(f"{file} is no JSON.") from None
        if not isinstance(found, list):
            raise InvalidData(f"{file} must hold a list of ids.")
        return found
    return [line.strip() for line in text.splitlines() if line.strip()]


def _roster(settings: Settings) -> tuple[Member, ...]:
    found = []
    for one in settings.members["roster"]:
        if not isinstance(one, Mapping) or not {"name", "key"} <= set(one) <= {"name", "key", "role"}:
            raise InvalidParameter("every entity of the roster has a name, a key and perhaps a role, and nothing else.")
        public = settings.public("key", str(one["key"])).hex()
        found.append(Member(one["name"], public, one.get("role", "contributor")))
    return tuple(found)


def _policy(value: Any, settings: Settings) -> Policy:
    """Peers are named with their public keys, as digits or as the files that hold them."""
    told = _known(value, Policy, "policy")
    if isinstance(told.get("peers"), Mapping):
        told["peers"] = {name: settings.public(name, str(key)).hex() for name, key in told["peers"].items()}
    return Policy(**told)


def _known(value: Any, kind: Any, what: str) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    if not isinstance(value, Mapping) or set(value) - names:
        raise InvalidParameter(f"{what} is a table with {', '.join(sorted(names))}, and nothing else.")
    return {name: tuple(one) if isinstance(one, list) else one for name, one in value.items()}
