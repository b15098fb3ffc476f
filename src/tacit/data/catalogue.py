"""The items: ids, titles, genres. All of it is public."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tacit.data.ids import Ids, ItemId, checked_code, code_of, frozen
from tacit.errors import InvalidData, UnknownName
from tacit.models.titles import Titles


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue:
    """Items in ascending order of id; row ``c`` of every field belongs to the item with code ``c``."""

    ids: Ids
    titles: tuple[str, ...] | None = None
    genres: NDArray[np.bool_] | None = None  # items x vocabulary
    vocabulary: tuple[str, ...] = field(default=())
    rated_only: NDArray[np.bool_] | None = None  # items known only because somebody rated them; None: there are none

    def __post_init__(self) -> None:
        if self.ids.ndim != 1 or (self.ids.size and not np.all(self.ids[1:] > self.ids[:-1])):
            raise InvalidData("item ids must be ascending and without repeats.")
        if self.titles is not None and len(self.titles) != self.ids.size:
            raise InvalidData(f"there are {len(self.titles)} titles for {self.ids.size} items; there must be one each.")
        if self.genres is not None and self.genres.shape != (self.ids.size, len(self.vocabulary)):
            raise InvalidData("genres must be one row of flags per item, one column per genre of the vocabulary.")
        if self.rated_only is not None and self.rated_only.shape != self.ids.shape:
            raise InvalidData("rated_only must be one true-or-false value for each item.")
        object.__setattr__(self, "ids", frozen(self.ids))
        if self.rated_only is not None:
            object.__setattr__(self, "rated_only", frozen(self.rated_only))
        if self.genres is not None:
            object.__setattr__(self, "genres", frozen(self.genres))

    def __len__(self) -> int:
        return int(self.ids.size)

    def __repr__(self) -> str:
        genres = f", {len(self.vocabulary)} genres" if self.genres is not None else ""
        return f"Catalogue({len(self):,} items{genres})"

    def id(self, code: int) -> ItemId:
        """The item's id, as its file had it, by its code (0 to the number of items less 1)."""
        return ItemId(self.ids[checked_code("item", code, len(self))].item())

    def code(self, item: ItemId) -> int:
        """The code of an item id; ``UnknownName`` if it is not in the catalogue."""
        code = code_of(self.ids, item)
        if code is None:
            raise UnknownName(f"no item {item!r} among the {len(self):,} of this catalogue.")
        return code

    def title(self, code: int) -> str:
        """The item's title by its code; its id, as text, where there are no titles."""
        code = checked_code("item", code, len(self))
        return self.titles[code] if self.titles is not None else str(self.ids[code])

    def genres_of(self, code: int) -> tuple[str, ...]:
        """The item's genres by its code; none where the catalogue has no genres."""
        code = checked_code("item", code, len(self))
        if self.genres is None:
            return ()
        return tuple(self.vocabulary[place] for place in np.flatnonzero(self.genres[code]))

    def find(self, title: str) -> int:
        """The code of the one item with this title; case, a year and a leading article may differ from the list's."""
        return self._searched.find(title)

    def select(self, codes: NDArray[np.int32]) -> "Catalogue":
        """The catalogue of these items alone; ``codes`` must ascend."""
        titles = None if self.titles is None else tuple(self.titles[code] for code in codes.tolist())
        genres = None if self.genres is None else self.genres[codes]
        rated_only = None if self.rated_only is None else self.rated_only[codes]
        return Catalogue(self.ids[codes], titles, genres, self.vocabulary, rated_only)

    @property
    def listed(self) -> NDArray[np.bool_]:
        """Items that stand in a list of items, whoever rated them: that they are here tells nothing about anybody."""
        return np.ones(len(self), dtype=np.bool_) if self.rated_only is None else ~self.rated_only

    @cached_property
    def _searched(self) -> Titles:
        return Titles(self.titles or ())


def listed(
    ids: Sequence[int] | Ids, titles: Sequence[str], genres: NDArray[np.bool_], vocabulary: tuple[str, ...]
) -> Catalogue:
    """A catalogue from a list in any order; the first of two entries with one id counts."""
    unique, first = np.unique(np.asarray(ids, dtype=np.int64), return_index=True)
    return Catalogue(unique, tuple(titles[place] for place in first.tolist()), genres[first], vocabulary)


def widened(catalogue: Catalogue, ids: Ids) -> Catalogue:
    """The catalogue with rows for all of ``ids``, which hold its own; a new item has its id as title and no genre."""
    if ids.size == len(catalogue):
        return catalogue
    place = np.searchsorted(ids, catalogue.ids)
    titles, genres = None, None
    if catalogue.titles is not None:
        names = ids.astype(str).astype(object)
        names[place] = catalogue.titles
        titles = tuple(cast(list[str], names.tolist()))
    if catalogue.genres is not None:
        genres = np.zeros((ids.size, len(catalogue.vocabulary)), dtype=np.bool_)
        if "None" in catalogue.vocabulary:
            genres[:, catalogue.vocabulary.index("None")] = True
        genres[place] = catalogue.genres
    rated_only = np.ones(ids.size, dtype=np.bool_)
    rated_only[place] = ~catalogue.listed
    return Catalogue(ids, titles, genres, catalogue.vocabulary, rated_only)


def from_ratings(catalogue: Catalogue) -> Catalogue:
    """The same items, where nothing but the ratings themselves says that they exist."""
    return replace(catalogue, rated_only=np.ones(len(catalogue), dtype=np.bool_))
