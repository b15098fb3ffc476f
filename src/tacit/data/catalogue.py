"""The catalogue: the ids, titles and genres of items. All of it is public.

Files name users and items by ids. Codes 0, 1, 2, ... number them in ascending order of id, so "score descending, item id
ascending" is the same order as "score descending, code ascending". Films have genres of one fixed vocabulary, the same for
every MovieLens release.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NewType, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidData, InvalidParameter, UnknownName
from tacit.models.items import Titles

# An id as in the file, a whole number or text. A new type, so that the type checker keeps ids and codes (plain ints) apart.
UserId = NewType("UserId", object)
ItemId = NewType("ItemId", object)

Ids: TypeAlias = NDArray[Any]  # int64 or fixed-width text, ascending, no repeats
Codes: TypeAlias = NDArray[np.int32]

GENRES: tuple[str, ...] = (
    "Action", "Adventure", "Animation", "Children", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Film-Noir",
    "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western", "None",
)  # fmt: skip

_SYNONYMS = {"Children's": "Children", "(no genres listed)": "None", "unknown": "None", "": "None"}
_DROPPED = {"IMAX"}  # a format, not a genre
_COLUMN = {genre: column for column, genre in enumerate(GENRES)} | {
    old: GENRES.index(new) for old, new in _SYNONYMS.items()
}
_NO_GENRE = GENRES.index("None")

# A lookup table over the range of the ids is faster than sorting, unless it is much longer than the column.
_TABLE_PER_ROW, _TABLE_AT_LEAST = 4, 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue:
    """Items in ascending order of id. Row ``c`` of every field belongs to the item with code ``c``."""

    ids: Ids
    titles: tuple[str, ...] | None = None
    genres: NDArray[np.bool_] | None = None  # items x vocabulary
    vocabulary: tuple[str, ...] = field(default=())
    rated_only: NDArray[np.bool_] | None = None  # items known only from ratings, which is private; None: no such item

    def __post_init__(self) -> None:
        if self.ids.ndim != 1 or (self.ids.size and not np.all(self.ids[1:] > self.ids[:-1])):
            raise InvalidData("item ids must be ascending and without repeats.")
        if self.titles is not None and len(self.titles) != self.ids.size:
            raise InvalidData(f"there are {len(self.titles)} titles for {self.ids.size} items; every item needs one.")
        if self.genres is not None and self.genres.shape != (self.ids.size, len(self.vocabulary)):
            raise InvalidData("genres must have one row of flags per item and one column per genre of the vocabulary.")
        if self.rated_only is not None and self.rated_only.shape != self.ids.shape:
            raise InvalidData("rated_only must be one true-or-false value for each item.")
        lock_arrays(self)

    def __len__(self) -> int:
        return int(self.ids.size)

    def __repr__(self) -> str:
        genres = f", {len(self.vocabulary)} genres" if self.genres is not None else ""
        return f"Catalogue({len(self):,} items{genres})"

    def id(self, code: int) -> ItemId:
        """The id of an item, as in the file, by its code (0 to the number of items less 1)."""
        return ItemId(self.ids[checked_code("item", code, len(self))].item())

    def code(self, item: ItemId) -> int:
        """The code of an item id. Raises ``UnknownName`` if it is not in the catalogue."""
        code = code_of(self.ids, item)
        if code is None:
            raise UnknownName(f"no item {item!r} among the {len(self):,} of this catalogue.")
        return code

    def title(self, code: int) -> str:
        """The title of an item by its code; its id, as text, if the catalogue has no titles."""
        code = checked_code("item", code, len(self))
        return self.titles[code] if self.titles is not None else str(self.ids[code])

    def find(self, title: str) -> int:
        """The code of the one item with this title. Case, year and a leading article may differ from the catalogue's."""
        return self._title_index.find(title)

    def select(self, codes: NDArray[np.int32]) -> "Catalogue":
        """The catalogue of these items only; ``codes`` must ascend."""
        titles = None if self.titles is None else tuple(self.titles[code] for code in codes.tolist())
        genres = None if self.genres is None else self.genres[codes]
        rated_only = None if self.rated_only is None else self.rated_only[codes]
        return Catalogue(self.ids[codes], titles, genres, self.vocabulary, rated_only)

    @property
    def listed(self) -> NDArray[np.bool_]:
        """Which items come from a public list of items. Their presence says nothing about any user."""
        return np.ones(len(self), dtype=np.bool_) if self.rated_only is None else ~self.rated_only

    @cached_property
    def _title_index(self) -> Titles:
        return Titles(self.titles or ())


def catalogue_of(
    ids: Sequence[int] | Ids, titles: Sequence[str], genres: NDArray[np.bool_], vocabulary: tuple[str, ...]
) -> Catalogue:
    """A catalogue from a list in any order. Of two entries with the same id, the first counts."""
    unique, first = np.unique(np.asarray(ids, dtype=np.int64), return_index=True)
    return Catalogue(unique, tuple(titles[row] for row in first.tolist()), genres[first], vocabulary)


def extend(catalogue: Catalogue, ids: Ids) -> Catalogue:
    """The catalogue with rows for all of ``ids``, a superset of its own. A new item has its id as title, and no genre."""
    if ids.size == len(catalogue):
        return catalogue
    rows = np.searchsorted(ids, catalogue.ids)
    titles, genres = None, None
    if catalogue.titles is not None:
        names = ids.astype(str).astype(object)
        names[rows] = catalogue.titles
        titles = tuple(cast(list[str], names.tolist()))
    if catalogue.genres is not None:
        genres = np.zeros((ids.size, len(catalogue.vocabulary)), dtype=np.bool_)
        if "None" in catalogue.vocabulary:
            genres[:, catalogue.vocabulary.index("None")] = True
        genres[rows] = catalogue.genres
    rated_only = np.ones(ids.size, dtype=np.bool_)
    rated_only[rows] = ~catalogue.listed
    return Catalogue(ids, titles, genres, catalogue.vocabulary, rated_only)


def known_from_ratings(catalogue: Catalogue) -> Catalogue:
    """The same items, marked as known only from ratings (see ``Catalogue.rated_only``)."""
    return replace(catalogue, rated_only=np.ones(len(catalogue), dtype=np.bool_))


def genre_flags(texts: Sequence[str], where: Callable[[int], str]) -> NDArray[np.bool_]:
    """One row of flags over `GENRES` for each text like ``"Comedy|Drama"``. A film without a genre has the flag None.

    Raises InvalidData for a genre outside the vocabulary; ``where(row)`` names the location of a text in the error.
    """
    flags_of: dict[str, NDArray[np.bool_]] = {}  # 62,423 films share about 1,600 texts
    flags = np.zeros((len(texts), len(GENRES)), dtype=np.bool_)
    for row, text in enumerate(texts):
        if text not in flags_of:
            genres = [genre for genre in text.split("|") if genre not in _DROPPED]
            unknown = [genre for genre in genres if genre not in _COLUMN]
            if unknown:
                raise InvalidData(f"{where(row)}: {unknown[0]!r} is not a genre; allowed: {', '.join(GENRES)}.")
            flags_of[text] = np.zeros(len(GENRES), dtype=np.bool_)
            flags_of[text][[_COLUMN[genre] for genre in genres]] = True
            flags_of[text][_NO_GENRE] = not np.delete(flags_of[text], _NO_GENRE).any()
        flags[row] = flags_of[text]
    return flags


def encode(raw: Ids, known: Ids | None = None) -> tuple[Ids, Codes]:
    """The distinct ids of ``raw`` and ``known``, ascending, and the code of each entry of ``raw``."""
    if known is not None and known.dtype.kind != raw.dtype.kind:
        raw, known = raw.astype(str), known.astype(str)
    parts = [raw] if known is None else [raw, known]
    filled = [part for part in parts if part.size]
    if not filled:
        return raw, np.zeros(0, dtype=np.int32)
    if raw.dtype.kind in "iu":
        low = min(int(part.min()) for part in filled)
        span = max(int(part.max()) for part in filled) - low + 1
        if span <= max(_TABLE_PER_ROW * raw.size, _TABLE_AT_LEAST):
            return _encode_by_table(raw, parts, low, span)
    ids, codes = np.unique(np.concatenate(parts), return_inverse=True)
    return ids, codes[: raw.size].astype(np.int32)


def _encode_by_table(raw: Ids, parts: list[Ids], low: int, span: int) -> tuple[Ids, Codes]:
    occurs = np.zeros(span, dtype=np.bool_)
    for part in parts:
        occurs[part - low if low else part] = True
    codes = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs).astype(np.int64) + low, codes[raw - low if low else raw]


def whole_number_ids(ids: Ids, codes: Codes) -> tuple[Ids, Codes]:
    """The same coding with whole numbers instead of text ids, if every id is a number in its usual spelling.

    "0767803434" is not: as a number it would lose its zero, so such a column stays text.
    """
    try:
        numbers = ids.astype(np.int64)
    except (ValueError, OverflowError):
        return ids, codes
    if not np.array_equal(numbers.astype(str), ids):
        return ids, codes
    order = np.argsort(numbers)
    new_codes = np.empty(order.size, dtype=np.int32)
    new_codes[order] = np.arange(order.size, dtype=np.int32)
    return numbers[order], new_codes[codes]


def code_of(ids: Ids, id: object) -> int | None:
    """The code of one id, or None if it is unknown."""
    if isinstance(id, str) != (ids.dtype.kind == "U") or isinstance(id, bool):
        return None
    if not isinstance(id, (str, int, float, np.integer, np.floating)):
        return None
    if not isinstance(id, str) and not -(2.0**63) <= id < 2.0**63:
        return None
    code = int(np.searchsorted(ids, id))
    return code if code < ids.size and ids[code] == id else None


def checked_code(kind: str, code: int, n_codes: int) -> int:
    """``code`` as an int. Raises InvalidParameter if no item or user has it; numpy would read -1 as the last."""
    number = None if isinstance(code, (bool, np.bool_)) or not hasattr(code, "__index__") else code.__index__()
    if number is None or not 0 <= number < n_codes:
        raise InvalidParameter(f"no such {kind} code; {codes_allowed(n_codes)}.")
    return number


def codes_allowed(n_codes: int) -> str:
    return f"codes go from 0 to {n_codes - 1}" if n_codes else "there are no codes"


def lock_arrays(frozen: Any) -> None:
    """Makes every array of a frozen value read-only."""
    for name, value in vars(frozen).items():
        if isinstance(value, np.ndarray):
            keep(frozen, **{name: read_only(value)})


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view
