"""Items: their public ids and titles, search by title, and classes of items that a model cannot tell apart.

An item's code is its position in the list of items, ascending by id.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidModel, UnknownName

_YEAR = re.compile(r"\s*\(\d{4}\)\s*$")
_LATE_ARTICLE = re.compile(r"^(.*), (The|A|An|Le|La|Les|L'|Der|Die|Das|El|Il)$", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    """The items of a store: ids in ascending order, and titles if there are any. An item's code is its position."""

    ids: NDArray[Any]  # int64 or text, ascending
    titles: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.ids.ndim != 1 or (self.ids.size and not np.all(self.ids[1:] > self.ids[:-1])):
            raise InvalidModel("item ids must be sorted in ascending order, without repeats.")
        if self.titles is not None and len(self.titles) != self.ids.size:
            raise InvalidModel("titles must be as many as item ids: one title for each item.")
        keep(self, titles=None if self.titles is None else tuple(self.titles))

    def __len__(self) -> int:
        return int(self.ids.size)

    def __repr__(self) -> str:
        return f"Items({len(self):,})"

    @cached_property
    def numbers(self) -> NDArray[np.uint64]:
        """Each item's number on the wire: its id if ids are whole numbers of at least 0, else its code."""
        if self.ids.dtype.kind in "iu" and (not self.ids.size or int(self.ids[0]) >= 0):
            return self.ids.astype(np.uint64)
        return np.arange(self.ids.size, dtype=np.uint64)

    def code_of_number(self, number: int) -> int:
        """The code of the item that has this number on the wire (64 bits)."""
        code = int(np.searchsorted(self.numbers, np.uint64(number)))
        if code == len(self) or int(self.numbers[code]) != number:
            raise UnknownName(f"unknown item number {number}: none of the {len(self):,} items of this store has it.")
        return code

    def id(self, code: int) -> int | str:
        """The item's id by its code."""
        item: int | str = self.ids[code].item()
        return item

    def title(self, code: int) -> str:
        """The item's title by its code, or its id as text if there are no titles."""
        return self.titles[code] if self.titles is not None else str(self.ids[code])

    def code(self, item: int | str) -> int:
        """The code of an item by its id or, if ids are numbers, by its title."""
        if isinstance(item, str) and self.ids.dtype.kind in "iu":
            return self._title_index.find(item)
        if isinstance(item, (int, np.integer, str)) and not isinstance(item, bool):
            code = int(np.searchsorted(self.ids, item))
            if code < len(self) and self.ids[code] == item:
                return code
        raise UnknownName(f"unknown item: give the id or the title of one of the {len(self):,} items of this store.")

    def codes(self, items: Sequence[int | str]) -> NDArray[np.int32]:
        """The codes of these ids or titles, in the same order."""
        return np.array([self.code(item) for item in items], dtype=np.int32)

    @cached_property
    def _title_index(self) -> "Titles":
        return Titles(self.titles or ())


class Titles:
    """Finds a title in a list. Case, a year and the position of a leading article may differ from the list."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = titles
        self._by_title = _positions([_plain(title) for title in titles])
        self._by_bare_title = _positions([_plain(_YEAR.sub("", title)) for title in titles])

    def find(self, title: str) -> int:
        """The position of the one item with this title."""
        matches = self._by_title.get(_plain(title), [])
        if not _YEAR.search(title):
            matches = matches or self._by_bare_title.get(_plain(title), [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UnknownName(
                f"{title!r} is ambiguous: it may be {' or '.join(self._titles[code] for code in matches)}."
            )
        bare = _plain(_YEAR.sub("", title))
        close = [code for key, codes in self._by_bare_title.items() if bare in key for code in codes][:3]
        hint = f"; similar titles: {', '.join(self._titles[code] for code in close)}" if close else ""
        raise UnknownName(f"no item is called {title!r}{hint}.")


def _plain(title: str) -> str:
    """``"Matrix, The (1999)"`` and ``"The Matrix (1999)"`` both become ``"the matrix (1999)"``."""
    year = _YEAR.search(title)
    name = _YEAR.sub("", title).strip()
    late = _LATE_ARTICLE.match(name)
    name = f"{late[2]} {late[1]}" if late else name
    return (f"{name} {year[0].strip()}" if year else name).casefold()


def _positions(keys: list[str]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for code, key in enumerate(keys):
        positions.setdefault(key, []).append(code)
    return positions


@dataclass(frozen=True, eq=False)
class Classes:
    """Which items are alike: items with equal features have equal scores, so a model scores each class once.

    Classes are numbered by their smallest item code, and members ascend. A ranking is always by score descending,
    then by item code ascending, also across classes with equal scores.
    """

    of: NDArray[np.int32]  # the class of each item

    @cached_property
    def members(self) -> NDArray[np.int32]:
        """All items, class by class, ascending within a class."""
        return np.argsort(self.of, kind="stable").astype(np.int32)

    @cached_property
    def starts(self) -> NDArray[np.int32]:
        """Class c holds members[starts[c]:starts[c + 1]]."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int32)

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """How many items each class has."""
        return np.bincount(self.of, minlength=0).astype(np.int32)

    @cached_property
    def first(self) -> NDArray[np.int32]:
        """The smallest item of each class, which is scored for all of them."""
        return self.members[self.starts[:-1]]

    def __len__(self) -> int:
        return int(self.sizes.size)

    @property
    def n_items(self) -> int:
        """How many items there are in all classes."""
        return int(self.of.size)


def classes_of(vectors: NDArray[Any]) -> Classes:
    """Classes of items (rows) with equal vectors."""
    _, first, inverse = np.unique(vectors, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size, dtype=np.int32)  # number by smallest member
    return Classes(rank[inverse.reshape(-1)])
