"""The settings files of an entity and of a coordinator (TOML), and the tables that they name. Paths are relative to the
file.

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

A coordinator's file may set every other constant of a Manifest, under its name.
"""

import csv
import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tacit.engines.folders import read_key, read_public
from tacit.entity import Entity, Policy, Tuning
from tacit.entity.account import SUBJECT
from tacit.entity.fit import BlendedFit, BlendSettings, LocalFit
from tacit.errors import InvalidData, InvalidParameter
from tacit.files import OWNER_ONLY, draft
from tacit.ledger import Budget
from tacit.messages.federated_prototypes.frame import public_of
from tacit.messages.federated_prototypes.manifest import Manifest, Member, catalogue_hash
from tacit.messages.items import Item

Cell: TypeAlias = tuple[Any, Any, Any]
_BOM = b"\xef\xbb\xbf"
_MOST_COMMAS = 1 << 17  # in a line with quotes, which cannot be split in part; a line with more is left out
_USERS_AT_ONCE = 1024
_ENTITY = ("name", "key", "coordinator", "catalogue", "rows", "ledger", "mailbox")
_OPTIONAL = ("budget", "policy", "accounting", "journal", "subject", "fit")
_KEY = "a private key: `tacit entity keys FILE` draws one"
_FROM_FILES = ("catalogue", "items", "roster", "coordinator")  # members of a manifest that follow from files


class SettingsFile:
    """The members of a settings file, and the files that they name."""

    def __init__(self, file: str | os.PathLike[str], needed: Iterable[str], allowed: Iterable[str]) -> None:
        self._file, needed, allowed = Path(file), set(needed), set(allowed)
        self._folder = self._file.absolute().parent
        try:
            self.members: dict[str, Any] = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise InvalidData(f"{os.fspath(file)} is not valid TOML: {problem}.") from None
        if missing := sorted(needed - set(self.members)):
            raise InvalidParameter(f"{os.fspath(file)} must set {', '.join(missing)}.")
        if unknown := sorted(set(self.members) - needed - allowed):
            raise InvalidParameter(f"{os.fspath(file)} has unknown settings: {', '.join(unknown)}.")

    def text(self, name: str) -> str:
        """The value of a member. Raises InvalidParameter if it is not text."""
        value = self.members[name]
        if not isinstance(value, str):
            raise InvalidParameter(f"{name} must be text.")
        return value

    def path(self, name: str) -> Path:
        """The file or folder that a member names, relative to the settings file unless it is absolute."""
        return self._folder / self.text(name)

    def file(self, name: str, holds: str) -> Path:
        """The file that a member names. If there is none, the error says what it should hold (``holds``)."""
        return self._existing(name, self.text(name), holds)

    def catalogue(self) -> list[Item]:
        """The ids of the items in the file ``catalogue``, in the common order."""
        return read_catalogue(self.file("catalogue", "the ids of all items, one in each line, in the common order"))

    def public(self, name: str, text: str) -> bytes:
        """A public key, as digits or as the file that holds them."""
        if len(text) == 64 and not (self._folder / text).exists():
            return read_public(text)
        return read_public(
            str(self._existing(name, text, "a public key, as `tacit entity keys` writes it beside a key"))
        )

    def _existing(self, name: str, path: str, holds: str) -> Path:
        if not (self._folder / path).is_file():
            where = "" if Path(path).is_absolute() else f" beside {self._file.name}"
            raise InvalidData(
                f'{self._file.name} sets {name} = "{path}", but there is no such file{where}. It should hold {holds}.'
            )
        return self._folder / path


def entity_settings(file: str | os.PathLike[str]) -> SettingsFile:
    """An entity's settings (TOML). Names are checked now; the files that they name are read later."""
    return SettingsFile(file, _ENTITY, _OPTIONAL)


def open_entity(settings: SettingsFile) -> Entity:
    """Opens the entity that a settings file describes. The entity reads its rows when it needs them."""
    catalogue, ledger = settings.catalogue(), settings.text("ledger")
    rows = settings.file("rows", "the columns user, item and optionally value, as CSV or Parquet")
    budget, policy = settings.members.get("budget"), settings.members.get("policy", {})
    return Entity(
        lambda: read_rows(rows, catalogue),
        ledger if "://" in ledger else settings.path("ledger"),
        name=settings.text("name"),
        key=read_key(settings.file("key", _KEY)),
        coordinator=settings.public("coordinator", settings.text("coordinator")),
        catalogue=catalogue,
        budget=None if budget is None else Budget(**_members(budget, Budget, "budget")),
        accounting=settings.members.get("accounting"),
        policy=_policy(policy, settings),
        journal=settings.path("journal") if "journal" in settings.members else None,
        subject=settings.text("subject") if "subject" in settings.members else SUBJECT,
    )


def tuning_of(settings: SettingsFile) -> Tuning:
    """The public constants of the local fit in a settings file, for 'moments': ridge, alpha, gamma."""
    fit = settings.members.get("fit")
    return Tuning() if fit is None else Tuning(blend=BlendSettings(**_members(fit, BlendSettings, "fit")))


def read_manifest(file: str | os.PathLike[str]) -> tuple[Manifest, bytes]:
    """The manifest that a coordinator's settings describe, and the coordinator's private key."""
    constants = {field.name for field in fields(Manifest)} - set(_FROM_FILES)
    settings = SettingsFile(file, ("key", "catalogue", "roster", "epsilon", "users"), constants)
    key, catalogue = read_key(settings.file("key", _KEY)), settings.catalogue()
    members = {name: value for name, value in settings.members.items() if name in constants}
    if isinstance(members.get("shares"), list):
        members["shares"] = tuple(members["shares"])
    manifest = Manifest(
        catalogue=catalogue_hash(catalogue),
        items=len(catalogue),
        roster=_roster(settings),
        coordinator=public_of(key).hex(),
        **members,
    )
    return manifest, key


def read_catalogue(file: Path) -> list[Item]:
    """The ids of the items, in order: one in each line, or a list in JSON."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidData(f"{file.name} is not UTF-8 text: save it as plain text in UTF-8.") from None
    if file.suffix == ".json":
        try:
            ids = json.loads(text)
        except ValueError:
            raise InvalidData(f"{file} is not valid JSON.") from None
        if not isinstance(ids, list):
            raise InvalidData(f"{file} must hold a list of ids.")
        return ids
    return [line.strip() for line in text.splitlines() if line.strip()]


def read_rows(file: Path, catalogue: Iterable[Item]) -> list[Cell]:
    """The cells of a table, CSV or Parquet, with the columns user, item and, if cells differ, value.

    Malformed lines are left out. An item that is not in the catalogue is None, and so is a missing value.

    The header of a CSV file is public. It decides the columns and the line end. Every other line is a record and is read by
    itself: no quote, comma or odd byte in it changes how another line is read, and no line raises an error, because an error
    would reveal something about a record. So ids contain no line ends, and different bytes are different ids: an id that is
    not UTF-8 stays bytes.
    """
    known = {str(item): item for item in catalogue}
    try:
        columns, lines = _parquet(file) if file.suffix == ".parquet" else _csv(file)
    except Exception:  # the reader's message may quote a record
        raise InvalidData(f"{file} cannot be read as a table.") from None
    if not {"user", "item"} <= set(columns):
        raise InvalidData(f"{file} must have the columns user and item, and may have value.")
    user, item = columns.index("user"), columns.index("item")
    value = columns.index("value") if "value" in columns else None
    cells = list[Cell]()
    for line in lines:
        if line[user] is not None:
            listed = None if line[item] is None else known.get(str(line[item]))
            cells.append((_id(str(line[user])), listed, 1.0 if value is None else line[value]))
    return cells


def write_best(file: Path, entity: Entity, fit: LocalFit | BlendedFit, catalogue: Sequence[Item], top: int) -> int:
    """Writes each user's best items that they do not have yet, best first: user, place, item, score (CSV).

    Only its owner may read the file: it is never a message. Returns the number of users.
    """
    users, table = entity.users(), entity.table()
    with draft(file, mode=OWNER_ONLY) as temporary, temporary.open("w", encoding="utf-8", newline="") as content:
        rows = csv.writer(content)
        rows.writerow(["user", "place", "item", "score"])
        for first in range(0, len(users), _USERS_AT_ONCE):
            part = slice(first, first + _USERS_AT_ONCE)
            scores = fit.scores(users=part)
            own = table[part]
            scores[np.repeat(np.arange(len(scores)), np.diff(own.indptr)), own.indices] = -np.inf
            for user, values in zip(users[part], scores, strict=True):
                best = np.argsort(-values, kind="stable")[:top]
                rows.writerows(
                    (user, rank, catalogue[item], f"{values[item]:.6g}")
                    for rank, item in enumerate(best.tolist(), 1)
                    if np.isfinite(values[item])
                )
    return len(users)


def _roster(settings: SettingsFile) -> tuple[Member, ...]:
    members = []
    for entry in settings.members["roster"]:
        if not isinstance(entry, Mapping) or not {"name", "key"} <= set(entry) <= {"name", "key", "role"}:
            raise InvalidParameter(
                "every entry of the roster has a name, a key and optionally a role, and nothing else."
            )
        public = settings.public("key", str(entry["key"])).hex()
        members.append(Member(entry["name"], public, entry.get("role", "contributor")))
    return tuple(members)


def _policy(value: Any, settings: SettingsFile) -> Policy:
    """The policy; its peers have public keys, as digits or as the files that hold them."""
    members = _members(value, Policy, "policy")
    if isinstance(members.get("peers"), Mapping):
        members["peers"] = {name: settings.public(name, str(key)).hex() for name, key in members["peers"].items()}
    return Policy(**members)


def _members(value: Any, kind: Any, name: str) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    if not isinstance(value, Mapping) or set(value) - names:
        raise InvalidParameter(f"{name} must be a table with some of {', '.join(sorted(names))}.")
    return {key: tuple(member) if isinstance(member, list) else member for key, member in value.items()}


def _id(text: str) -> str | bytes:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape")  # a file of recommendations shows it as Python prints bytes
    return text


def _parquet(file: Path) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
    import polars

    frame = polars.read_parquet(file)
    return frame.columns, frame.iter_rows()


def _csv(file: Path) -> tuple[list[str], Iterable[list[str | None]]]:
    content = file.read_bytes().removeprefix(_BOM)
    ends = [index for end in (b"\n", b"\r") if (index := content.find(end)) >= 0]
    first = min(ends, default=len(content))
    # All lines end as the header does: a lone \r does not end a line in a file whose lines end with \n.
    end = b"\r" if content[first : first + 1] == b"\r" and content[first + 1 : first + 2] != b"\n" else b"\n"
    header, *lines = content.split(end)
    columns = [name.strip() for name in _fields(header) or ()]
    return columns, _filled(lines, len(columns))


def _filled(lines: Iterable[bytes], columns: int) -> Iterator[list[str | None]]:
    """One value of each line for each column. Further fields are dropped; missing and empty fields are None."""
    for line in lines:
        fields = _fields(line, columns)
        if fields is not None:
            values: list[str | None] = [field or None for field in fields[:columns]]
            yield values + [None] * (columns - len(values))


def _fields(line: bytes, columns: int = -1) -> list[str] | None:
    """The fields of one line: the first ``columns``, and perhaps more.

    Returns None if a quote is not closed or not at the ends of a field. A line with quotes is also malformed if it has a
    carriage return, which some readers take for a line end, or far too many fields.
    """
    text = line.removesuffix(b"\r").decode(errors="surrogateescape")
    if '"' not in text:
        return text.split(",", columns)
    if "\r" in text or text.count(",") > _MOST_COMMAS:
        return None
    try:
        return next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration):
        return None
