"""API keys: 256 random bits each, kept as digests with what they may do. Devices need none.

The file is small, replaced as a whole, and read again when it changes: a key that is revoked ends within seconds, in every worker.
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
from tacit.service.disk import alone, put

_TEXT = re.compile(r"tacit_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,59}")
_FORMAT = 1


class Scope(StrEnum):
    OPERATOR = "operator"  # metrics, all statements, a curator's releases
    STATEMENTS = "statements"  # what was shown and is owed, for the items that the key names
    ENTITY = "entity"  # the messages of one entity of a federation


@dataclass(frozen=True, slots=True)
class Key:
    id: str
    name: str
    scope: Scope
    digest: str  # SHA-256 of the whole key; it has 256 random bits, so that nothing slower is needed
    items: tuple[str, ...] = ()  # of an advertiser
    entity: str = ""
    expires: str = ""  # the last day on which it holds, UTC; empty: until it is revoked

    def holds(self, today: date) -> bool:
        return not self.expires or today.isoformat() <= self.expires


def issue(
    file: Path, name: str, scope: Scope, *, items: Iterable[str] = (), entity: str = "", expires: date | None = None
) -> str:
    """A new key, which is told here and never again."""
    items = tuple(items)
    if not _NAME.fullmatch(name):
        raise InvalidParameter("the name of a key has 1 to 60 letters, digits, spaces, dots and hyphens.")
    if (scope is Scope.STATEMENTS) != bool(items):
        raise InvalidParameter("a key for statements, and no other, names the items it is for.")
    if (scope is Scope.ENTITY) != bool(entity):
        raise InvalidParameter("a key for an entity, and no other, names it.")
    id = os.urandom(4).hex()
    text = f"tacit_{id}_{urlsafe_b64encode(os.urandom(32)).decode().rstrip('=')}"
    day = "" if expires is None else expires.isoformat()
    file.parent.mkdir(parents=True, exist_ok=True)
    with alone(file.parent):  # of two at once the later would bring back what the earlier has revoked
        keys = read(file)
        if any(key.name == name for key in keys):
            raise InvalidParameter("there is a key of that name: revoke it first, or take another name.")
        _write(file, [*keys, Key(id, name, scope, _digest(text), items, entity, day)])
    return text


def revoke(file: Path, name: str) -> None:
    if not file.parent.is_dir():
        raise _no_such_key()
    with alone(file.parent):
        keys = read(file)
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            raise _no_such_key()
        _write(file, left)


def _no_such_key() -> UnknownName:
    return UnknownName("there is no key of that name: `tacit keys list` names them.")


def read(file: Path) -> list[Key]:
    """All keys; none where there is no file."""
    try:
        found = json.loads(file.read_bytes())
        if found["format"] != _FORMAT:
            raise ValueError
        return [_checked(one) for one in found["keys"]]
    except FileNotFoundError:
        return []
    except PermissionError:
        raise InvalidData(f"the user that this runs as may not read {file}: chown it to that user.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidData(f"{file} holds no keys as tacit writes them: restore a backup, or issue new ones.") from None


def _checked(one: dict[str, Any]) -> Key:
    texts = [value for name, value in one.items() if name != "items"]
    if type(one["items"]) is not list or not all(isinstance(text, str) for text in [*texts, *one["items"]]):
        raise ValueError
    day = one["expires"]
    if not one["digest"].isascii() or (day and date.fromisoformat(day).isoformat() != day):
        raise ValueError
    return Key(**{**one, "scope": Scope(one["scope"]), "items": tuple(one["items"])})


class Keys:
    """The keys of a running service."""

    def __init__(self, file: Path) -> None:
        self._file, self._seen = file, (-1, -1)
        self._keys: dict[str, Key] = {}
        self.refresh()

    def refresh(self) -> None:
        """Reads the file again if it was replaced. A file that cannot be read leaves what is known."""
        try:
            about = self._file.stat()
            state = (about.st_mtime_ns, about.st_ino)
        except FileNotFoundError:
            state = (0, 0)
        if state != self._seen:
            self._keys, self._seen = {key.id: key for key in read(self._file)}, state

    def find(self, authorization: str) -> Key | None:
        """The key of a header ``Bearer tacit_...``, if it is one and still holds."""
        match = _TEXT.fullmatch(authorization.removeprefix("Bearer ")) if authorization.startswith("Bearer ") else None
        key = None if match is None else self._keys.get(match[1])
        if key is None or match is None or not hmac.compare_digest(key.digest, _digest(match[0])):
            return None
        return key if key.holds(datetime.now(UTC).date()) else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _write(file: Path, keys: Iterable[Key]) -> None:
    """Whole or not at all, for its owner only."""
    content = json.dumps({"format": _FORMAT, "keys": [asdict(key) for key in keys]}, indent=1)
    put(file, content.encode() + b"\n")
