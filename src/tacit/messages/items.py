"""Public ids of items, as every message names them, and the indices of a profile's items in a catalogue."""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidInput, InvalidMessage, UnknownName
from tacit.messages.codec import Wire
from tacit.messages.values import text, whole

Item: TypeAlias = int | str
MOST_ITEMS = 1_000_000
_MOST_ID = 2**53  # a browser's numbers are exact up to there
_LONGEST_ID = 200
_DIGITS = 18  # of a whole number that is an id
_SCHEMA = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}
Items: TypeAlias = Annotated[tuple[Item, ...], Wire(list[Item], tuple, list, _SCHEMA)]  # a message checks them as well


def checked_items(items: object, *, least: int = 0, most: int = MOST_ITEMS) -> tuple[Item, ...]:
    """``items`` as a tuple, if they are different ids, all whole numbers or all texts."""
    if not isinstance(items, (tuple, list)):
        raise InvalidMessage("the items of a message are a tuple of ids.")
    if not least <= len(items) <= most:
        raise InvalidMessage(f"a message names {least:,} to {most:,} items.")
    if items and isinstance(items[0], str):
        ids: tuple[Item, ...] = tuple(text(item, "$.items", least=1, most=_LONGEST_ID) for item in items)
    else:
        ids = tuple(whole(item, "$.items", least=-_MOST_ID, most=_MOST_ID) for item in items)
    if len(set(ids)) < len(ids):
        raise InvalidMessage("a message names every item once.")
    return ids


def index_of(item: object, indices: Mapping[Any, int]) -> int | None:
    """The index of an id; None if there is none. 17 and "17" are the same item, "017" is another."""
    if not isinstance(item, (int, str, np.integer)) or isinstance(item, bool):
        return None
    if item in indices:
        return indices[item]
    if not isinstance(item, str):
        return indices.get(str(item))
    digits = item.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS and str(int(item)) == item
    return indices.get(int(item)) if plain else None


def indices_of(items: Iterable[Any], indices: Mapping[Any, int]) -> tuple[list[Any], NDArray[np.int64]]:
    """The items to predict, as you named them, and their indices. Raises UnknownName for an unknown item."""
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise InvalidInput("items must be a list of ids, also for a single item: [17].")
    names = list(items)
    positions = [index_of(name, indices) for name in names]
    if None in positions:
        raise UnknownName("an item that you asked for is in neither catalogue. Ask for items that are listed.")
    return names, np.array(positions, dtype=np.int64)


def known_ratings(
    profile: Mapping[Any, Any], indices: Mapping[Any, int], scale: tuple[float, float]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The indices of a profile's known items, ascending, and their ratings. Unknown items are ignored; no error shows a value.

    17 and "17" are the same item, so a profile stays the same when it passes through JSON.
    """
    if not isinstance(profile, Mapping):
        raise InvalidInput("a profile must be a mapping from item to rating.")
    rated = [(index_of(item, indices), value) for item, value in profile.items()]
    pairs = sorted(((index, value) for index, value in rated if index is not None), key=lambda pair: pair[0])
    if len({index for index, _ in pairs}) < len(pairs):
        raise InvalidInput(
            "a profile has two ratings of one item, by its number and by the same number as text: keep one."
        )
    values = [_number(value) for _, value in pairs]
    if not all(scale[0] <= value <= scale[1] for value in values):  # written so that NaN fails too
        raise InvalidInput(
            f"every rating of a profile must be a number on the scale, from {scale[0]:g} to {scale[1]:g}; one is not. Correct it "
            "or leave its item out."
        )
    return np.array([index for index, _ in pairs], dtype=np.int64), np.array(values, dtype=np.float64)


def _number(value: object) -> float:
    """``value`` as a float; NaN if it is not a number."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    return math.nan
