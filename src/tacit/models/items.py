"""The items of a store: their public ids and titles. An item's code is its place in this list, ascending by id."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidModel, UnknownName
from tacit.models.titles import Titles


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    """The items of a store: ids in ascending order, and titles if there are any. An item's code is its place."""

    ids: NDArray[Any]  # int64 or text, ascending
    titles: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.ids.ndim != 1 or (self.ids.size and not np.all(self.ids[1:] > self.ids[:-1])):
            raise InvalidModel("item ids must ascend, without repeats.")
        if self.titles is not None and len(self.titles) != self.ids.size:
            raise InvalidModel("there must be one title for each item.")
        keep(self, titles=None if self.titles is None else tuple(self.titles))

    def __len__(self) -> int:
        return int(self.ids.size)

    def __repr__(self) -> str:
        return f"Items({len(self):,})"

    @cached_property
    def numbers(self) -> NDArray[np.uint64]:
        """What stands for each item on the wire: its id where that is a whole number of at least 0, else its code."""
        if self.ids.dtype.kind in "iu" and (not self.ids.size or int(self.ids[0]) >= 0):
            return self.ids.astype(np.uint64)
        return np.arange(self.ids.size, dtype=np.uint64)

    def code_of_number(self, number: int) -> int:
        """The code of the item that has this number on the wire (64 bits, from its id)."""
        place = int(np.searchsorted(self.numbers, np.uint64(number)))
        if place == len(self) or int(self.numbers[place]) != number:
            raise UnknownName(f"no item has the number {number} among the {len(self):,} of this store.")
        return place

    def id(self, code: int) -> int | str:
        """The item's id by its code."""
        found: int | str = self.ids[code].item()
        return found

    def title(self, code: int) -> str:
        """The item's title by its code; its id, as text, where there are no titles."""
        return self.titles[code] if self.titles is not None else str(self.ids[code])

    def code(self, item: int | str) -> int:
        """The code of an item by its id or, where ids are numbers, by its title."""
        if isinstance(item, str) and self.ids.dtype.kind in "iu":
            return self._searched.find(item)
        if isinstance(item, (int, np.integer, str)) and not isinstance(item, bool):
            place = int(np.searchsorted(self.ids, item))
            if place < len(self) and self.ids[place] == item:
                return place
        raise UnknownName(f"no such item among the {len(self):,} of this store: give an id or a title.")

    def codes(self, items: Sequence[int | str]) -> NDArray[np.int32]:
        """The codes of these ids or titles, in their order."""
        return np.array([self.code(item) for item in items], dtype=np.int32)

    @cached_property
    def _searched(self) -> Titles:
        return Titles(self.titles or ())
