"""The messages of private slates: what leaves a curator of ratings.

curator -> user, server  Slate        items, the route that drew them, what it promises; no score, no merit, no size of the data
curator -> server        Popularity   noisy counts of all items, once; any number of slates from them cost nothing more
curator -> server        Similarity   a noisy kernel of all items, once; likewise
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.guarantees import Guarantee, Release
from tacit.messages import fields
from tacit.messages.private_slates_grid import Grid, Popularity, Similarity
from tacit.messages.private_slates_parts import Item, checked_guarantee, checked_items, read_guarantee, route_name

__all__ = ["Grid", "Item", "Popularity", "Similarity", "Slate"]

VERSION = 1
_NAMES = ("version", "items", "route", "guarantee")


@dataclass(frozen=True, slots=True)
class Slate:
    """The items finally offered, and nothing about how near any other was.

    Of a slate that was drawn from private data the items stand in the order of the catalogue: an order of merit would be a further
    answer.
    """

    items: tuple[Item, ...] = field(repr=False)
    route: str
    guarantee: Guarantee

    def __post_init__(self) -> None:
        keep(self, items=checked_items(self.items), route=route_name(self.route))
        checked_guarantee(self.guarantee)

    def __len__(self) -> int:
        return len(self.items)

    @classmethod
    def from_release(cls, release: Release[NDArray[np.int64]], ids: NDArray[Any], route: str) -> "Slate":
        """The message of a release (places in the list of ids), and of nothing else."""
        places = np.sort(np.asarray(release.value))
        return cls(tuple(ids[places].tolist()), route, release.guarantee)

    def to_json(self) -> dict[str, Any]:
        """The slate as values for JSON."""
        return {
            "version": VERSION,
            "items": list(self.items),
            "route": self.route,
            "guarantee": self.guarantee.to_json(),
        }

    @classmethod
    def from_json(cls, value: object) -> "Slate":
        """The slate of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a slate", _NAMES)
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        items = tuple(fields.listed(found["items"], "$.items"))
        return cls(items, found["route"], read_guarantee(found["guarantee"]))

    def require(self, *, k: int) -> "Slate":
        """This slate, if it has ``k`` items."""
        if len(self.items) != k:
            raise InvalidMessage(f"expected a slate of {k} items.")
        return self
