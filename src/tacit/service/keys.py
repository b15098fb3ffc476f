"""API keys of a service: 256 random bits each, stored as a digest with a scope. Devices need no key.

The file of keys is small. It is replaced as a whole, and every worker reads it again when it changes: a revoked key ends
within seconds.
"""

import hmac
import json
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from tacit.errors import InvalidData, InvalidParameter, UnknownName
from tacit.files import OWNER_ONLY, lock, replace

_HEADER = re.compile(r"Bearer (?P<key>tacit_(?P<id>[0-9a-f]{8})_[A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,59}")
_FORMAT = 1


class Scope(StrEnum):
    """What a key allows."""

    OPERATOR = "operator"  # metrics, all statements, a curator's releases
    STATEMENTS = "statements"  # what was shown and is owed, for the items of the key
    ENTITY = "entity"  # the messages of one entity of a federation


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as the file stores it."""

    id: str
    name: str
    scope: Scope
    digest: str  # SHA-256 of the whole key: 256 random bits need no slower hash
    items: tuple[str, ...] = ()  # of an advertiser
    entity: str = ""
    expires: str = ""  # the last day on which it is valid, UTC; empty: until it is revoked

    def is_valid(self, today: date) -> bool:
        """Whether the key has not expired."""
        return not self.expires or today.isoformat() <= self.expires


def issue(
    file: Path, name: str, scope: Scope, *, items: Iterable[str] = (), entity: str = "", expires: date | None = None
) -> str:
    """Adds a key to the file and returns it. Only its digest is stored, so it cannot be read again."""
    items = tuple(items)
    if not _NAME.fullmatch(name):
        raise InvalidParameter("the name of a key must have 1 to 60 letters, digits, spaces, dots and hyphens.")
    if (scope is Scope.STATEMENTS) != bool(items):
        raise InvalidParameter("name items for a key with the scope statements, and for no other key.")
    if (scope is Scope.ENTITY) != bool(entity):
        raise InvalidParameter("name an entity for a key with the scope entity, and for no other key.")
    id = os.urandom(4).hex()
    text = f"tacit_{id}_{urlsafe_b64encode(os.urandom(32)).decode().rstrip('=')}"
    day = "" if expires is None else expires.isoformat()
    file.parent.mkdir(parents=True, exist_ok=True)
    with lock(file.parent):  # without it, one of two changes at once would be lost, such as a revocation
        keys = read(file)
        if any(key.name == name for key in keys):
            raise InvalidParameter("a key of that name exists: revoke it first, or choose another name.")
        _write(file, [*keys, ApiKey(id, name, scope, _digest(text), items, entity, day)])
    return text


def revoke(file: Path, name: str) -> None:
    """Deletes a key from the file. Raises UnknownName if there is no key of that name."""
    if not file.parent.is_dir():
        raise _no_such_key()
    with lock(file.parent):
        keys = read(file)
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            raise _no_such_key()
        _write(file, left)


def _no_such_key() -> UnknownName:
    return UnknownName("there is no key of that name; `tacit keys list` lists them.")


def read(file: Path) -> list[ApiKey]:
    """All keys in the file; an empty list if there is no file."""
    try:
        content = json.loads(file.read_bytes())
        if content["format"] != _FORMAT:
            raise ValueError
        return [_read_key(members) for members in content["keys"]]
    except FileNotFoundError:
        return []
    except PermissionError:
        raise InvalidData(f"{file} may not be read by the user that runs this. Change its owner with chown.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidData(
            f"{file} is not a file of keys that tacit wrote. Restore a backup, or add new keys to a new file."
        ) from None


def _read_key(members: dict[str, Any]) -> ApiKey:
    texts = [value for name, value in members.items() if name != "items"]
    if type(members["items"]) is not list or not all(isinstance(text, str) for text in [*texts, *members["items"]]):
        raise ValueError
    day = members["expires"]
    if not members["digest"].isascii() or (day and date.fromisoformat(day).isoformat() != day):
        raise ValueError
    return ApiKey(**{**members, "scope": Scope(members["scope"]), "items": tuple(members["items"])})


class KeyRing:
    """The keys of a running service."""

    def __init__(self, file: Path) -> None:
        self._file, self._state = file, (-1, -1)
        self._keys: dict[str, ApiKey] = {}
        self.refresh()

    def refresh(self) -> None:
        """Reads the file again if it was replaced. Raises if it cannot be read; the known keys then stay."""
        try:
            status = self._file.stat()
            state = (status.st_mtime_ns, status.st_ino)
        except FileNotFoundError:
            state = (0, 0)
        if state != self._state:
            self._keys, self._state = {key.id: key for key in read(self._file)}, state

    def find(self, authorization: str) -> ApiKey | None:
        """The key of a header ``Bearer tacit_...``, or None if it is unknown or has expired."""
        match = _HEADER.fullmatch(authorization)
        if match is None:
            return None
        key = self._keys.get(match["id"])
        if key is None or not hmac.compare_digest(key.digest, _digest(match["key"])):
            return None
        return key if key.is_valid(datetime.now(UTC).date()) else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _write(file: Path, keys: Iterable[ApiKey]) -> None:
    content = json.dumps({"format": _FORMAT, "keys": [asdict(key) for key in keys]}, indent=1)
    replace(file, content.encode() + b"\n", mode=OWNER_ONLY, inherit_owner=True)
