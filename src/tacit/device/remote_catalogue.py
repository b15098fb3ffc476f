"""A server's catalogue, as a device reads it: which items there are, and what features are made of. All of it is public.

It is another's word, and features are made by it: what is not exactly as it should be is refused, before any of it is used.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.device.multi_selection import GRID_BITS
from tacit.errors import InvalidMessage
from tacit.messages import fields
from tacit.messages.multi_selection import MOST_DIMENSION
from tacit.messages.private_selection_offer import item_name
from tacit.models.features import GenreProfile
from tacit.models.items import Items

MOST_BYTES = 1 << 25  # of the catalogue, unpacked: about half a million items
MOST_CELLS = (
    1 << 24
)  # items times genres, or times the characters of the longest id: what a table of them takes in memory
_VERSION = 1
_NAMES = ("version", "name", "model", "features", "ids", "titles", "genres")
_FEATURES = ("kind", "dimension", "names", "liked_from", "low", "high", "grid_bits")
_LEAST_ID, _MOST_ID = -(1 << 63), (1 << 63) - 1
_MOST_TITLE = 1000


@dataclass(frozen=True, eq=False, repr=False)
class RemoteCatalogue:
    """``model`` is the version of the server's store; ``genres`` are the names that features are counted by."""

    name: str
    model: str
    items: Items
    space: GenreProfile
    genres: tuple[str, ...]

    @classmethod
    def from_json(cls, value: object) -> "RemoteCatalogue":
        found = fields.members(value, "a catalogue", _NAMES)
        fields.whole(found["version"], "$.version", least=_VERSION, most=_VERSION)
        ids = _ids(fields.listed(found["ids"], "$.ids"))
        titles = None if found["titles"] is None else _titles(found["titles"], len(ids))
        names, liked_from = _features(found["features"])
        flags = _flags(found["genres"], len(ids), len(names))
        return cls(
            _text(found["name"], "$.name"),
            fields.hexadecimal(found["model"], "$.model", least=2),
            Items(ids, titles),
            GenreProfile(flags, liked_from),
            names,
        )

    def title(self, item: str) -> str:
        """The title of an item of an offer; its own name where the catalogue does not have it."""
        code = self._codes.get(item)
        return item if code is None else self.items.title(code)

    def __repr__(self) -> str:
        return f"RemoteCatalogue({len(self.items):,} items, {self.space.dimension} features)"

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {str(one): code for code, one in enumerate(self.items.ids.tolist())}


def _features(value: object) -> tuple[tuple[str, ...], float]:
    found = fields.members(value, "the features of a catalogue", _FEATURES)
    if found["kind"] != GenreProfile.kind:
        raise InvalidMessage(f"this version makes features of the kind {GenreProfile.kind} only.")
    names = tuple(_text(one, "$.features.names") for one in fields.listed(found["names"], "$.features.names"))
    if not 1 <= len(names) <= MOST_DIMENSION // 2 or len(set(names)) < len(names):
        raise InvalidMessage(f"expected 1 to {MOST_DIMENSION // 2:,} different names at $.features.names.")
    fields.whole(found["dimension"], "$.features.dimension", least=2 * len(names), most=2 * len(names))
    for side, expected in (("low", GenreProfile.low), ("high", GenreProfile.high)):
        if fields.real(found[side], f"$.features.{side}") != expected:
            raise InvalidMessage("features of this kind lie from 0 to 1.")
    fields.whole(found["grid_bits"], "$.features.grid_bits", least=GRID_BITS, most=GRID_BITS)
    return names, fields.real(found["liked_from"], "$.features.liked_from")


def _ids(listed: list[Any]) -> NDArray[Any]:
    """Whole numbers, or texts; ascending, none of them twice."""
    if not listed:
        raise InvalidMessage("a catalogue has at least one item.")
    if isinstance(listed[0], str):
        texts = [item_name(one, "$.ids") for one in listed]
        if len(texts) * max(map(len, texts)) > MOST_CELLS:
            raise InvalidMessage("the ids of this catalogue take too much memory.")
        ids: NDArray[Any] = np.array(texts)
    else:
        ids = np.array([fields.whole(one, "$.ids", least=_LEAST_ID, most=_MOST_ID) for one in listed], dtype=np.int64)
    if not np.all(ids[1:] > ids[:-1]):
        raise InvalidMessage("the ids of a catalogue ascend, and none stands twice.")
    return ids


def _titles(value: object, count: int) -> tuple[str, ...]:
    return tuple(
        _text(one, "$.titles", least=0, most=_MOST_TITLE) for one in fields.listed(value, "$.titles", length=count)
    )


def _flags(value: object, count: int, genres: int) -> NDArray[np.bool_]:
    rows = fields.listed(value, "$.genres", length=count)
    if count * genres > MOST_CELLS:
        raise InvalidMessage(f"a catalogue has at most {MOST_CELLS:,} pairs of an item and a genre.")
    flags = np.zeros((count, genres), dtype=np.bool_)
    for code, row in enumerate(rows):
        places = [fields.whole(one, "$.genres", least=0, most=genres - 1) for one in fields.listed(row, "$.genres")]
        if len(set(places)) < len(places):
            raise InvalidMessage("an item has every genre once, at $.genres.")
        flags[code, places] = True
    return flags


def _text(value: object, path: str, *, least: int = 1, most: int = 200) -> str:
    """A text without control characters: it may be printed on a terminal."""
    text = fields.text(value, path, least=least, most=most)
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text):
        raise InvalidMessage(f"expected a text without control characters at {path}.")
    return text
