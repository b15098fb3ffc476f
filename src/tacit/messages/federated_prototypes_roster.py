"""Who takes part in a federation, over which items: names, public keys, roles; and the one hash of a catalogue."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from tacit.checks import keep, member, whole
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.messages import fields
from tacit.messages.federated_prototypes_frame import KEY_BYTES, canonical
from tacit.messages.private_slates_parts import MOST_ITEMS, Item, checked_items

MOST_ENTITIES = 10_000
USERS_EACH = 20  # users for each prototype, below which an entity receives only: its prototypes would be noise
_MEMBERS = ("name", "key", "role")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
_LONGEST = 64


class Role(StrEnum):
    """What an entity does in a run."""

    CONTRIBUTOR = "contributor"
    RECEIVER = "receiver"  # sends nothing, and gets the model


@dataclass(frozen=True, slots=True)
class Member:
    """An entity: its name, its public key in hexadecimal digits, and what it does."""

    name: str
    key: str
    role: Role = Role.CONTRIBUTOR

    def __post_init__(self) -> None:
        keep(self, name=entity_name(self.name), key=key_text(self.key), role=member("role", Role, self.role))

    @property
    def contributes(self) -> bool:
        """Whether this entity sends something."""
        return self.role is Role.CONTRIBUTOR

    def to_json(self) -> dict[str, Any]:
        """The member as values for JSON."""
        return {"name": self.name, "key": self.key, "role": self.role.value}

    @classmethod
    def from_json(cls, value: object) -> "Member":
        """The member of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a member of the roster", _MEMBERS)
        return cls(found["name"], found["key"], found["role"])


def role_for(users: int, k: int) -> Role:
    """The public rule for prototypes: by the declared order of magnitude of the users, never by how many there are.

    ``k`` is the number of prototypes: rows of values.
    """
    enough = whole("users", users, least=1) >= USERS_EACH * whole("k", k, least=1)
    return Role.CONTRIBUTOR if enough else Role.RECEIVER


def checked_roster(roster: object) -> tuple[Member, ...]:
    """Members with different names and different keys, at least one of whom contributes."""
    if not isinstance(roster, (tuple, list)) or not all(isinstance(one, Member) for one in roster):
        raise InvalidParameter("a roster is a tuple of Members: Member(name, public key in hexadecimal digits).")
    found = tuple(roster)
    if len(found) > MOST_ENTITIES:
        raise InvalidParameter(f"a roster has at most {MOST_ENTITIES:,} members.")
    if len({one.name for one in found}) < len(found) or len({one.key for one in found}) < len(found):
        raise InvalidParameter("every member of a roster has a name and a key of its own.")
    if not any(one.contributes for one in found):
        raise InvalidParameter("a roster needs at least one contributor.")
    return found


def entity_name(value: object) -> str:
    """A name that can stand in a file's name as well."""
    if isinstance(value, str) and 1 <= len(value) <= _LONGEST and not set(value) - _LETTERS and value[0].isalnum():
        return value
    raise InvalidParameter(
        f"an entity's name has 1 to {_LONGEST} lower-case letters, digits, hyphens, dots or underscores, the first of them a "
        "letter or digit."
    )


def key_text(value: object) -> str:
    try:
        return fields.hexadecimal(value, "a public key", length=2 * KEY_BYTES)
    except InvalidMessage:
        raise InvalidParameter(f"a public key is {2 * KEY_BYTES} hexadecimal digits in lower case.") from None


def catalogue_hash(items: Sequence[Item]) -> str:
    """What stands for the common catalogue: the ids of its items, in their order."""
    try:
        return sha256(canonical(list(checked_items(list(items), least=1, most=MOST_ITEMS)))).hexdigest()
    except InvalidMessage as problem:
        raise InvalidParameter(f"a catalogue lists ids of items: {str(problem).partition(': ')[2]}") from None
