"""Ratings as columns: one row for each (user, item), sorted by user, then item.

The order makes the rows a CSR matrix as they stand, a user's profile a slice, and two ratings of one pair impossible.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.describe import Description, describe
from tacit.data.entities import Entities
from tacit.data.ids import Codes, Ids, UserId, checked_code, code_of, codes_allowed, frozen
from tacit.data.provenance import UNKNOWN, Provenance
from tacit.data.scale import Scale
from tacit.errors import InvalidData, InvalidParameter, UnknownName


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """What users think of items. Private: ``repr`` shows sizes, never content. The arrays cannot be written to."""

    starts: NDArray[np.int32]  # user c holds rows starts[c] to starts[c + 1]
    items: Codes
    values: NDArray[np.float32]
    times: NDArray[np.int64] | None  # seconds since 1970, MISSING_TIME where unknown
    user_ids: Ids
    catalogue: Catalogue
    scale: Scale
    name: str = "ratings"
    provenance: Provenance = UNKNOWN
    entities: Entities | None = None

    def __post_init__(self) -> None:
        _check_shape(self)
        for field in ("starts", "items", "values", "times", "user_ids"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, frozen(getattr(self, field)))

    def __len__(self) -> int:
        return int(self.items.size)

    def __repr__(self) -> str:
        return f"Ratings({self.name!r}: {len(self):,} ratings, {self.n_users:,} users, {self.n_items:,} items)"

    @property
    def n_users(self) -> int:
        """How many users there are, with ratings or without."""
        return int(self.user_ids.size)

    @property
    def n_items(self) -> int:
        """Items of the catalogue, rated or not."""
        return len(self.catalogue)

    @cached_property
    def users(self) -> Codes:
        """The user code of each row."""
        return frozen(np.repeat(np.arange(self.n_users, dtype=np.int32), self.counts))

    @property
    def counts(self) -> NDArray[np.int32]:
        """Ratings of each user."""
        return np.diff(self.starts)

    @property
    def item_counts(self) -> NDArray[np.int64]:
        """Ratings of each item."""
        return np.bincount(self.items, minlength=self.n_items).astype(np.int64)

    def csr(self) -> Any:
        """Users x items as a ``scipy.sparse.csr_array`` on the same memory: no copy, read only."""
        from scipy.sparse import csr_array

        matrix = csr_array((self.values, self.items, self.starts), shape=(self.n_users, self.n_items), copy=False)
        matrix.has_canonical_format = True  # sorted, no repeats: spares scipy a pass over the rows
        return matrix

    def rows_of(self, user: int) -> slice:
        """The rows of the user with this code: ``ratings.items[ratings.rows_of(user)]``."""
        user = checked_code("user", user, self.n_users)
        return slice(int(self.starts[user]), int(self.starts[user + 1]))

    def user_id(self, code: int) -> UserId:
        """The user's id, as its file had it, by her code (0 to the number of users less 1)."""
        return UserId(self.user_ids[checked_code("user", code, self.n_users)].item())

    def user_code(self, user: UserId) -> int:
        """The code of a user id; ``UnknownName`` (which does not repeat the id) if there is none."""
        code = code_of(self.user_ids, user)
        if code is None:
            raise UnknownName(f"no such user among the {self.n_users:,} of {self.name!r}.")
        return code

    def subset(self, rows: NDArray[np.bool_]) -> "Ratings":
        """The rows where the mask is true. Users, items and their codes stay, even those left without a rating."""
        if not isinstance(rows, np.ndarray) or rows.shape != (len(self),) or rows.dtype != np.bool_:
            raise InvalidParameter(f"rows must be an array of {len(self):,} true-or-false values, one for each rating.")
        kept = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(rows, dtype=np.int32)])
        times = None if self.times is None else self.times[rows]
        return replace(self, starts=kept[self.starts], items=self.items[rows], values=self.values[rows], times=times)

    def select_users(self, users: NDArray[np.bool_] | NDArray[np.integer[Any]]) -> "Ratings":
        """Only these users (a mask, or codes), with new codes in the old order; items and their codes stay."""
        wanted = _mask(users, self.n_users)
        chosen = self.subset(np.repeat(wanted, self.counts))
        ends = np.concatenate([np.zeros(1, dtype=np.int32), chosen.starts[1:][wanted]])
        entities = None if self.entities is None else self.entities.select(wanted)
        return replace(chosen, starts=ends, user_ids=self.user_ids[wanted], entities=entities)

    def compact(self, least: int = 1) -> "Ratings":
        """Without users of fewer than ``least`` ratings, then without items that nobody rated; new codes.

        The same ratings, not a copy, where all users and items stay.
        """
        enough = self.counts >= least
        kept = self if enough.all() else self.select_users(enough)
        rated = kept.item_counts > 0
        if rated.all():
            return kept
        places = np.cumsum(rated, dtype=np.int32) - np.int32(1)
        catalogue = kept.catalogue.select(np.flatnonzero(rated).astype(np.int32))
        return replace(kept, items=places[kept.items], catalogue=catalogue)

    def by_entity(self) -> Iterator[tuple[str, "Ratings"]]:
        """Each entity's name with the ratings of its users; items and their codes are shared."""
        if self.entities is None:
            raise InvalidParameter(f"{self.name!r} has no entities; with_entities() adds them.")
        for code, name in enumerate(self.entities.names):
            part = self.select_users(self.entities.codes == code)
            yield name, replace(part, name=f"{self.name}, {self.entities.kind} {name}")

    def with_entities(self, entities: Entities | None) -> "Ratings":
        """The same ratings, with these entities for their users; with None, without any."""
        return replace(self, entities=entities)

    def describe(self) -> Description:
        """Sizes and averages for whoever holds the data. Exact, so not for release."""
        return describe(self)


def _mask(users: object, n_users: int) -> NDArray[np.bool_]:
    """Users given by a mask or by their codes, as a mask; a code that nobody has is refused, not passed over."""
    if isinstance(users, np.ndarray) and users.dtype == np.bool_ and users.shape == (n_users,):
        return users
    if not isinstance(users, np.ndarray) or users.ndim != 1 or users.dtype.kind not in "iu":
        raise InvalidParameter(f"users must be an array of user codes, or of {n_users:,} true-or-false values.")
    if users.size and not 0 <= int(users.min()) <= int(users.max()) < n_users:
        raise InvalidParameter(f"a user code is unknown; {codes_allowed(n_users)}.")
    mask = np.zeros(n_users, dtype=np.bool_)
    mask[users] = True
    return mask


def _check_shape(ratings: Ratings) -> None:
    starts, items, times, entities = ratings.starts, ratings.items, ratings.times, ratings.entities
    if (
        starts.shape != (ratings.n_users + 1,)
        or starts[0] != 0
        or starts[-1] != items.size
        or np.any(starts[1:] < starts[:-1])
    ):
        raise InvalidData(f"starts must rise from 0 to {items.size}, one entry for each user and one more.")
    if ratings.values.shape != items.shape or (times is not None and times.shape != items.shape):
        raise InvalidData("items, values and times must be columns of one length.")
    if starts.dtype != np.int32 or items.dtype != np.int32 or ratings.values.dtype != np.float32:
        raise InvalidData("starts and items must be int32, values float32.")
    if items.size and not 0 <= int(items.min()) <= int(items.max()) < len(ratings.catalogue):
        raise InvalidData("every item code must be a place in the catalogue.")
    rises = items[1:] > items[:-1]
    rises[starts[(starts > 0) & (starts < items.size)] - 1] = True  # a new user may begin anywhere
    if not rises.all():
        raise InvalidData("the rows of a user must be sorted by item, each item once.")
    if entities is not None and entities.codes.shape != (ratings.n_users,):
        raise InvalidData(f"entities must name one entity for each of the {ratings.n_users:,} users.")
