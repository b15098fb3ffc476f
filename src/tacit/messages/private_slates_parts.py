"""What the messages of private slates have in common: public ids of items, a route's name, a guarantee."""

from collections.abc import Collection
from typing import Any, TypeAlias

from tacit.errors import InvalidGuarantee, InvalidMessage
from tacit.guarantees import Guarantee
from tacit.messages import fields

Item: TypeAlias = int | str
MOST_ITEMS = 1_000_000
_MOST_ID = 2**53  # a browser's numbers are exact up to there
_LONGEST_ID = 200
_GUARANTEE = ("epsilon", "delta", "metric", "protects", "assumes", "proof", "loss")


def checked_items(items: object, *, least: int = 0, most: int = MOST_ITEMS) -> tuple[Item, ...]:
    """Public ids, each of them once, all whole numbers or all texts."""
    if not isinstance(items, (tuple, list)):
        raise InvalidMessage("the items of a message are a tuple of ids.")
    if not least <= len(items) <= most:
        raise InvalidMessage(f"a message names {least:,} to {most:,} items.")
    if items and isinstance(items[0], str):
        named: tuple[Item, ...] = tuple(fields.text(item, "$.items", least=1, most=_LONGEST_ID) for item in items)
    else:
        named = tuple(fields.whole(item, "$.items", least=-_MOST_ID, most=_MOST_ID) for item in items)
    if len(set(named)) < len(named):
        raise InvalidMessage("a message names every item once.")
    return named


def route_name(value: object) -> str:
    found = fields.text(value, "$.route", least=1, most=40)
    if not all(part.isascii() and part.isalnum() and part.islower() for part in found.split("-")):
        raise InvalidMessage("a route is named in lower case, with hyphens.")
    return found


def checked_guarantee(value: object) -> Guarantee:
    if not isinstance(value, Guarantee):
        raise InvalidMessage("a released message carries a Guarantee.")
    return value


def read_guarantee(value: Any) -> Guarantee:
    """The guarantee that ``to_json`` wrote, with every member and no other."""
    found = fields.members(value, "a guarantee", _GUARANTEE)
    if not isinstance(found["assumes"], Collection) or isinstance(found["assumes"], (str, dict)):
        raise InvalidMessage("expected a list of texts at $.guarantee.assumes.")
    try:
        guarantee = Guarantee.from_json(found)
    except InvalidGuarantee:
        raise InvalidMessage("expected a guarantee as tacit writes it at $.guarantee.") from None
    if guarantee.to_json() != found:  # further members, numbers of another type, assumptions out of order
        raise InvalidMessage("expected a guarantee as tacit writes it at $.guarantee.")
    return guarantee
