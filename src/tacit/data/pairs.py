"""Two domains with shared users: a user code means the same person in both."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import whole
from tacit.data.ids import Codes, Ids, encode
from tacit.data.ratings import Ratings
from tacit.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, eq=False, repr=False)
class TwoDomains:
    """Ratings in a source and in a target domain over one list of users; a user may have none in one of them."""

    source: Ratings
    target: Ratings

    def __post_init__(self) -> None:
        if not np.array_equal(self.source.user_ids, self.target.user_ids):
            raise InvalidData("the two domains must list the same users; TwoDomains.align() sees to it.")
        if np.isin(self.source.catalogue.ids, self.target.catalogue.ids).any():
            raise InvalidData("an item is in both domains; each must be in one.")

    def __repr__(self) -> str:
        return f"TwoDomains({self.source!r}, {self.target!r}, {self.shared.size:,} users in both)"

    @property
    def n_users(self) -> int:
        """How many users are in both domains."""
        return self.source.n_users

    @property
    def shared(self) -> Codes:
        """The users with ratings in both domains."""
        return np.flatnonzero((self.source.counts > 0) & (self.target.counts > 0)).astype(np.int32)

    def reversed(self) -> "TwoDomains":
        """The same with source and target changed over."""
        return TwoDomains(self.target, self.source)

    def at_least(self, ratings: int) -> "TwoDomains":
        """Without a user's ratings in a domain where there are fewer than so many; without users left empty."""
        whole("ratings", ratings, least=1)
        domains = [part.subset(np.repeat(part.counts >= ratings, part.counts)) for part in (self.source, self.target)]
        kept = (domains[0].counts > 0) | (domains[1].counts > 0)
        return TwoDomains(domains[0].select_users(kept), domains[1].select_users(kept))

    @classmethod
    def align(cls, source: Ratings, target: Ratings) -> "TwoDomains":
        """Give both domains the union of their users, in ascending order of id."""
        if not (isinstance(source, Ratings) and isinstance(target, Ratings)):
            raise InvalidParameter("two domains are two sets of Ratings: align(source, target).")
        users, places = encode(np.concatenate(_same_kind(source.user_ids, target.user_ids)))
        first, second = places[: source.n_users], places[source.n_users :]
        return cls(_moved(source, users, first), _moved(target, users, second))

    @classmethod
    def by_items(cls, ratings: Ratings, in_source: ArrayLike) -> "TwoDomains":
        """One set of ratings cut in two by item: those where the mask is true are the source."""
        mask = np.asarray(in_source)
        if mask.shape != (ratings.n_items,) or mask.dtype != np.bool_:
            raise InvalidParameter(f"in_source must be {ratings.n_items:,} true-or-false values, one for each item.")
        return cls(_cut(ratings, mask, "source"), _cut(ratings, ~mask, "target"))


def _same_kind(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Numbers on one side and text on the other meet as text: the same file may hold "17" and "A17"."""
    if first.dtype.kind == second.dtype.kind:
        return first, second
    return first.astype(str), second.astype(str)


def _moved(ratings: Ratings, users: Ids, places: Codes) -> Ratings:
    """The same rows over a longer list of users, where old user ``c`` has the code ``places[c]``.

    Text and numbers sort differently, so the old users may change their order; the rows then move with them.
    """
    counts = np.zeros(users.size, dtype=np.int32)
    counts[places] = ratings.counts
    starts = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(counts, dtype=np.int32)])
    rows = np.argsort(places[ratings.users], kind="stable")
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
    places = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    catalogue = ratings.catalogue.select(np.flatnonzero(kept).astype(np.int32))
    return replace(part, items=places[part.items], catalogue=catalogue, name=f"{ratings.name}, {side}")
