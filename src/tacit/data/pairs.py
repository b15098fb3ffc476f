"""Two domains with shared users: a user code means the same person in both."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.catalogue import Codes, Ids, encode
from tacit.data.ratings import Ratings
from tacit.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, eq=False, repr=False)
class TwoDomains:
    """Ratings in a source and a target domain over one list of users. A user may have ratings in only one of them."""

    source: Ratings
    target: Ratings

    def __post_init__(self) -> None:
        if not np.array_equal(self.source.user_ids, self.target.user_ids):
            raise InvalidData("the two domains must list the same users; TwoDomains.align() makes them.")
        if np.isin(self.source.catalogue.ids, self.target.catalogue.ids).any():
            raise InvalidData("an item is in both domains; every item must be in one only.")

    def __repr__(self) -> str:
        return f"TwoDomains({self.source!r}, {self.target!r}, {self.shared.size:,} users in both)"

    @property
    def n_users(self) -> int:
        """The number of users in the common list."""
        return self.source.n_users

    @property
    def shared(self) -> Codes:
        """The codes of the users with ratings in both domains."""
        return np.flatnonzero((self.source.counts > 0) & (self.target.counts > 0)).astype(np.int32)

    def reversed(self) -> "TwoDomains":
        """The same data with source and target exchanged."""
        return TwoDomains(self.target, self.source)

    @classmethod
    def align(cls, source: Ratings, target: Ratings) -> "TwoDomains":
        """Gives both domains the union of their users, in ascending order of id."""
        if not (isinstance(source, Ratings) and isinstance(target, Ratings)):
            raise InvalidParameter("align(source, target) takes two sets of Ratings.")
        users, codes = encode(np.concatenate(_same_kind(source.user_ids, target.user_ids)))
        first, second = codes[: source.n_users], codes[source.n_users :]
        return cls(_recode(source, users, first), _recode(target, users, second))

    @classmethod
    def by_items(cls, ratings: Ratings, in_source: ArrayLike) -> "TwoDomains":
        """Splits one set of ratings by item: items where the mask is true form the source."""
        mask = np.asarray(in_source)
        if mask.shape != (ratings.n_items,) or mask.dtype != np.bool_:
            raise InvalidParameter(f"in_source must be {ratings.n_items:,} true-or-false values, one for each item.")
        return cls(_cut(ratings, mask, "source"), _cut(ratings, ~mask, "target"))


def _same_kind(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Both as text if one has numbers and the other text: one list may contain "17" and "A17"."""
    if first.dtype.kind == second.dtype.kind:
        return first, second
    return first.astype(str), second.astype(str)


def _recode(ratings: Ratings, users: Ids, codes: Codes) -> Ratings:
    """The same rows over a longer list of users, in which user ``c`` gets the code ``codes[c]``.

    Text and numbers sort differently, so the users may change their order; their rows then move too.
    """
    counts = np.zeros(users.size, dtype=np.int32)
    counts[codes] = ratings.counts
    starts = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(counts, dtype=np.int32)])
    rows = np.argsort(codes[ratings.users], kind="stable")
    times = None if ratings.times is None else ratings.times[rows]
    return replace(
        ratings,
        starts=starts,
        items=ratings.items[rows],
        values=ratings.values[rows],
        times=times,
        user_ids=users,
        entities=None,
    )


def _cut(ratings: Ratings, kept: NDArray[np.bool_], side: str) -> Ratings:
    part = ratings.subset(kept[ratings.items])
    new_codes = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    catalogue = ratings.catalogue.select(np.flatnonzero(kept).astype(np.int32))
    return replace(part, items=new_codes[part.items], catalogue=catalogue, name=f"{ratings.name}, {side}")
